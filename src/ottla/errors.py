"""What `ottla`'s clients raise, by name: `from ottla.errors import TopicAlreadyExists`. See `ottla.client.errors`."""

from ottla.client.errors import *  # noqa: F403 - a second door to the same room
from ottla.client.schema_registry.registry_errors import RegistryError as RegistryError
from ottla.client.schema_registry.registry_errors import RegistryUnreachable as RegistryUnreachable
from ottla.config.parse import ConfigError as ConfigError
