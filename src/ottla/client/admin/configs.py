"""Settings of topics, brokers, groups and client metrics: describe, change one by one, list what has any."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.client.admin.asking import ANY_BROKER, Asking, never
from ottla.client.admin.known_values import numbered
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.admin.routing import spread
from ottla.client.errors import InvalidRequest, KafkaError, UnknownTopicOrPartition, error_for
from ottla.wire import messages


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """Something that has settings. A broker without a name is all of them: the cluster-wide defaults."""

    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int | str = "") -> "ConfigResource":
        return cls(ResourceType.BROKER, str(broker_id))

    @classmethod
    def broker_logger(cls, broker_id: int | str) -> "ConfigResource":
        return cls(ResourceType.BROKER_LOGGER, str(broker_id))

    @classmethod
    def client_metrics(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.CLIENT_METRICS, name)

    @classmethod
    def group(cls, group_id: str) -> "ConfigResource":
        return cls(ResourceType.GROUP, group_id)


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    DYNAMIC_CLIENT_METRICS = 7
    DYNAMIC_GROUP = 8


class ConfigType(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    """None for a secret."""
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...]
    """All that give the setting a value, the one that counts first; empty unless asked for."""
    type: ConfigType
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


class AlterOperation(IntEnum):
    SET = 0
    DELETE = 1
    """Back to the default."""
    APPEND = 2
    """Adds to a list."""
    SUBTRACT = 3
    """Takes away from a list."""


class AlterConfig(NamedTuple):
    """One change of one setting."""

    name: str
    value: str | None = None
    operation: AlterOperation = AlterOperation.SET


async def describe_configs(
    asking: Asking,
    resources: Iterable[ConfigResource] | Mapping[ConfigResource, Iterable[str] | None],
    *,
    include_synonyms: bool = False,
    include_documentation: bool = False,
    timeout: float | None = None,
) -> Results[ConfigResource, dict[str, ConfigEntry]]:
    """All settings of each resource by name; or those that a mapping names for it."""
    wanted: Mapping[ConfigResource, Iterable[str] | None]
    wanted = resources if isinstance(resources, Mapping) else dict.fromkeys(resources)
    keys = {resource: None if names is None else list(names) for resource, names in wanted.items()}
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[ConfigResource]) -> dict[ConfigResource, Outcome[dict[str, ConfigEntry]]]:
        request = messages.DescribeConfigsRequest(
            resources=[
                messages.DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=resource.type, resource_name=resource.name, configuration_keys=keys[resource]
                )
                for resource in left
            ],
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        response = await asking.broker(node_id, request, deadline)
        return {_resource(one): _described(one) for one in response.results}

    async def attempt(left: list[ConfigResource]) -> dict[ConfigResource, Outcome[dict[str, ConfigEntry]]]:
        return await spread(asking, {resource: _node_of(resource) for resource in left}, ask)

    return await asking.each("describe_configs", keys, attempt, deadline, may_pass=_is_not_about_the_resource)


async def incremental_alter_configs(
    asking: Asking,
    changes: Mapping[ConfigResource, Iterable[AlterConfig] | Mapping[str, str | None]],
    *,
    validate_only: bool = False,
    timeout: float | None = None,
) -> Results[ConfigResource, None]:
    """Changes the settings that are named, and no others. In a mapping, None takes a setting back to its default."""
    wanted = {resource: _changes(given) for resource, given in changes.items()}
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[ConfigResource]) -> dict[ConfigResource, Outcome[None]]:
        request = messages.IncrementalAlterConfigsRequest
        made = request(
            resources=[
                request.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        request.AlterableConfig(name=name, config_operation=operation, value=value)
                        for name, value, operation in wanted[resource]
                    ],
                )
                for resource in left
            ],
            validate_only=validate_only,
        )
        response = await asking.broker(node_id, made, deadline)
        return {_resource(one): failure(one) for one in response.responses}

    async def attempt(left: list[ConfigResource]) -> dict[ConfigResource, Outcome[None]]:
        nodes = {resource: _node_of(resource) for resource in left}
        if asking.via_controllers:
            controller_id = await asking.controller_id(deadline)
            nodes = dict.fromkeys(left, controller_id)
        return await spread(asking, nodes, ask)

    return await asking.each("incremental_alter_configs", wanted, attempt, deadline, may_pass=never)


async def list_config_resources(
    asking: Asking, types: Iterable[ResourceType] = (), *, timeout: float | None = None
) -> list[ConfigResource]:
    """The resources that may have settings of their own, of these types or all (KIP-1142).

    A broker before version 4.1 lists client metrics alone.
    """
    wanted = set(types)
    # What the oldest version lists; it has no place for types.
    listed = () if wanted == {ResourceType.CLIENT_METRICS} else sorted(wanted)
    request = messages.ListConfigResourcesRequest(resource_types=listed)
    response = await asking.any(request, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code)
    found = (_resource(one) for one in response.config_resources if one.resource_type in set(ResourceType))
    return sorted(resource for resource in found if not wanted or resource.type in wanted)


async def list_client_metrics_resources(asking: Asking, *, timeout: float | None = None) -> list[str]:
    """The names under which brokers ask clients for metrics (KIP-714)."""
    found = await list_config_resources(asking, [ResourceType.CLIENT_METRICS], timeout=timeout)
    return [resource.name for resource in found]


def _changes(given: Iterable[AlterConfig] | Mapping[str, str | None]) -> list[AlterConfig]:
    if not isinstance(given, Mapping):
        return list(given)
    return [
        AlterConfig(name, None, AlterOperation.DELETE) if value is None else AlterConfig(name, str(value))
        for name, value in given.items()
    ]


def _node_of(resource: ConfigResource) -> Outcome[int]:
    """A broker knows its own settings best; for all others any will do."""
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return ANY_BROKER
    try:
        return int(resource.name)
    except ValueError:
        return InvalidRequest(f"a broker is named by its id, not {resource.name!r}")


def _resource(answer: Any) -> ConfigResource:
    return ConfigResource(ResourceType(answer.resource_type), answer.resource_name)


def _described(answer: Any) -> Outcome[dict[str, ConfigEntry]]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    return {
        one.name: ConfigEntry(
            one.name,
            one.value,
            _source(one.config_source),
            one.is_sensitive,
            one.read_only,
            tuple(ConfigSynonym(synonym.name, synonym.value, _source(synonym.source)) for synonym in one.synonyms),
            numbered(ConfigType, one.config_type, ConfigType.UNKNOWN),
            one.documentation,
        )
        for one in answer.configs
    }


def _source(number: int) -> ConfigSource:
    return numbered(ConfigSource, number, ConfigSource.UNKNOWN)


def _is_not_about_the_resource(error: KafkaError) -> bool:
    """A topic that is not there is reported at once; a broker that is busy is asked again."""
    return error.retriable and not isinstance(error, UnknownTopicOrPartition)
