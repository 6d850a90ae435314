"""Settings that were given at run time, by the resource they belong to."""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.wire.messages import ConfigRecord


class ResourceType(IntEnum):
    """What a resource is, with the numbers of the protocol."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """Whose settings: a topic's, or a broker's by its id, or of all brokers if the name is empty."""

    type: int
    name: str


CLUSTER_DEFAULT: Final = ConfigResource(ResourceType.BROKER, "")

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class ConfigsImage:
    __slots__ = ("by_resource",)

    def __init__(self) -> None:
        self.by_resource: dict[ConfigResource, dict[str, str]] = {}

    def of(self, type: int, name: str) -> Mapping[str, str]:
        return self.by_resource.get(ConfigResource(type, name), NOTHING)

    def of_topic(self, name: str) -> Mapping[str, str]:
        return self.of(ResourceType.TOPIC, name)

    def of_broker(self, broker_id: int) -> Mapping[str, str]:
        """Of this broker alone; `of_cluster` is for all, and weaker."""
        return self.of(ResourceType.BROKER, str(broker_id))

    def of_cluster(self) -> Mapping[str, str]:
        return self.of(*CLUSTER_DEFAULT)

    def replay(self, record: ConfigRecord, delta: MetadataDelta) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        delta.configs.add(resource)
        values = self.by_resource.setdefault(resource, {})
        if record.value is not None:
            values[record.name] = record.value
        else:
            values.pop(record.name, None)
            if not values:
                del self.by_resource[resource]

    def forget_topic(self, name: str, delta: MetadataDelta) -> None:
        resource = ConfigResource(ResourceType.TOPIC, name)
        if self.by_resource.pop(resource, None) is not None:
            delta.configs.add(resource)

    def records(self) -> Iterator[ConfigRecord]:
        for (type, name), values in self.by_resource.items():
            for key, value in values.items():
                yield ConfigRecord(resource_type=type, resource_name=name, name=key, value=value)

    def copy(self) -> "ConfigsImage":
        copied = ConfigsImage()
        copied.by_resource = {resource: dict(values) for resource, values in self.by_resource.items()}
        return copied
