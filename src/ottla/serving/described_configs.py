"""DescribeConfigs 1-4: the settings of topics, brokers, groups, client metrics and loggers (KIP-133, KIP-569).

A broker answers for topics, groups and client metrics from the metadata, for itself from its own settings, and for
other brokers not at all. An empty list of keys is taken for all keys, as in Kafka.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.config.parse import ConfigError, Values
from ottla.config.scopes import OWN, Scope, settings
from ottla.config.setting import REQUIRED, Setting
from ottla.config.topic import resolve_topic
from ottla.config.values import Value
from ottla.machines.metadata.decisions.alter_configs import LONGEST_NODE_ID
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.refusal import Refusal
from ottla.machines.metadata.settings.effective_settings import CLIENT_METRICS_SETTINGS, GROUP_SETTINGS
from ottla.machines.metadata.topic_names import check_name
from ottla.serving import loggers
from ottla.serving.config_entries import (
    OF_THE_AUTHORIZER,
    BrokerSources,
    Entry,
    Shown,
    Source,
    Synonym,
    described_row,
    entry,
    is_read_only,
    java_text,
)
from ottla.serving.node_settings import NodeSettings, broker_row
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Described = Refusal | list[Entry]


class DescribedNode(NamedTuple):
    """A broker or a controller, as far as its settings go."""

    image: MetadataImage
    node_settings: NodeSettings

    @property
    def node_id(self) -> int:
        return self.node_settings.node_id

    @property
    def config(self) -> Values:
        return self.node_settings.effective


def described_configs(node: DescribedNode, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    if any(resource.resource_type not in _DESCRIBERS for resource in request.resources):
        unknown = Refusal(ErrorCode.INVALID_REQUEST, "A resource is of an unknown type.")
        return DescribeConfigsResponse(results=[_result(resource, unknown) for resource in request.resources])
    shown = Shown(request.include_synonyms, request.include_documentation)
    described: dict[tuple[int, str], Described] = {}
    for type, name in dict.fromkeys((resource.resource_type, resource.resource_name) for resource in request.resources):
        described[type, name] = _DESCRIBERS[type](node, name, shown)  # Once, also if it is asked for a thousand times.
    return DescribeConfigsResponse(
        results=[
            _result(resource, described[resource.resource_type, resource.resource_name])
            for resource in request.resources
        ]
    )


def _result(resource: Resource, described: Described) -> Result:
    result = Result(resource_type=resource.resource_type, resource_name=resource.resource_name)
    if isinstance(described, Refusal):
        result.error_code, result.error_message = described
    else:
        keys = frozenset(resource.configuration_keys or ())
        result.configs = [config for config in described if config.name in keys] if keys else described
    return result


def _topic(node: DescribedNode, name: str, shown: Shown) -> Described:
    refusal = check_name(name)
    if refusal is not None:
        return refusal
    if name not in node.image.topics.by_name:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    overrides = node.image.configs.of_topic(name)
    try:
        values = resolve_topic(overrides, node.config)
    except ConfigError as problem:
        return Refusal(ErrorCode.INVALID_CONFIG, str(problem))
    sources = BrokerSources(node.node_settings, node.image.configs)
    return [
        entry(row.name, row, values[row.name], _topic_synonyms(row, values[row.name], overrides, sources), shown)
        for row in settings(Scope.TOPIC).values()
    ]


def _topic_synonyms(row: Setting, value: Value, overrides: Mapping[str, str], sources: BrokerSources) -> list[Synonym]:
    own = [Synonym(row.name, java_text(value), Source.TOPIC)] if row.name in overrides else []
    return own + (sources.synonyms(row.synonyms[0].name) if row.synonyms else [])


def _broker(node: DescribedNode, name: str, shown: Shown) -> Described:
    sources = BrokerSources(node.node_settings, node.image.configs)
    if not name:
        return [_broker_entry(key, text, sources, shown, for_all=True) for key, text in sources.cluster.items()]
    refusal = _not_this_broker(node, name)
    if refusal is not None:
        return refusal
    # Ours, and those of the authorizer, are listed if they are given.
    kafkas = [key for key in settings(Scope.BROKER) if not key.startswith(OWN) and key not in OF_THE_AUTHORIZER]
    return [
        _broker_entry(key, _broker_value(node, key, sources), sources, shown, for_all=False)
        for key in dict.fromkeys((*kafkas, *sources.cluster, *sources.own, *sources.file))
    ]


def _broker_value(node: DescribedNode, key: str, sources: BrokerSources) -> Value:
    given = node.config.given.get(key, sources.file.get(key))
    row = broker_row(key)
    if given is not None or row is None or row.default is REQUIRED:
        return given
    return row.default


def _broker_entry(name: str, value: Value, sources: BrokerSources, shown: Shown, *, for_all: bool) -> Entry:
    synonyms = sources.synonyms(name)
    if for_all:
        synonyms = [synonym for synonym in synonyms if synonym.source is Source.CLUSTER]
    return entry(name, described_row(name), value, synonyms, shown, read_only=is_read_only(name))


def _logger(node: DescribedNode, name: str, _shown: Shown) -> Described:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    refusal = _not_this_broker(node, name)
    if refusal is not None:
        return refusal
    return [Entry(name=name, value=level, config_source=Source.LOGGER) for name, level in loggers.levels().items()]


def _client_metrics(node: DescribedNode, name: str, shown: Shown) -> Described:
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    given = node.image.configs.of(ResourceType.CLIENT_METRICS, name)
    return [
        entry(row.name, row, value, [Synonym(row.name, java_text(value), Source.CLIENT_METRICS)] if own else [], shown)
        for row, value, own in _values(CLIENT_METRICS_SETTINGS, given)
    ]


def _group(node: DescribedNode, name: str, shown: Shown) -> Described:
    """What a group is not given it takes from its brokers, whose settings are named `group.` and the group's."""
    if not name:
        return Refusal(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    given = node.image.configs.of(ResourceType.GROUP, name)
    sources = BrokerSources(node.node_settings, node.image.configs)
    described = []
    for row, value, own in _values(GROUP_SETTINGS, given):
        synonyms = [Synonym(row.name, java_text(value), Source.GROUP)] if own else []
        of_brokers = f"group.{row.name}"
        if of_brokers in settings(Scope.BROKER):
            value = value if own else node.config[of_brokers]
            synonyms += sources.synonyms(of_brokers)
        else:
            synonyms.append(Synonym(row.name, java_text(_default(row)), Source.DEFAULT))
        described.append(entry(row.name, row, value, synonyms, shown))
    return described


def _values(rows: Mapping[str, Setting], given: Mapping[str, str]) -> Iterator[tuple[Setting, Value, bool]]:
    """Each row with its value, and whether the resource itself gives it."""
    for row in rows.values():
        own = row.name in given
        yield row, row.parse(given[row.name]) if own else _default(row), own


def _default(row: Setting) -> Value:
    assert row.default is not REQUIRED, "only a node has settings without a default"
    return row.default


def _not_this_broker(node: DescribedNode, name: str) -> Refusal | None:
    digits = name.removeprefix("-")
    if not digits.isdecimal() or len(digits) > LONGEST_NODE_ID:
        return Refusal(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node.node_id:
        return Refusal(ErrorCode.INVALID_REQUEST, f"This is broker {node.node_id}; it cannot speak for {name}.")
    return None


_DESCRIBERS: Final[Mapping[int, Callable[[DescribedNode, str, Shown], Described]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _logger,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}
