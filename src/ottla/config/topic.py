"""The settings one topic lives by: its own overrides over its broker's, over Apache Kafka's defaults.

A topic setting that the topic does not set takes its broker's value of another name (`retention.ms` from
`log.retention.ms`, else `log.retention.minutes`, else `log.retention.hours`): the synonyms of its row, first set first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.config.parse import ConfigError, Parsed, Problem, Values, parse
from ottla.config.scopes import Scope, settings
from ottla.config.setting import LONG_MAX, REQUIRED, Setting
from ottla.config.values import Value

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """Every setting of a topic, resolved and typed; `segment.bytes` is `segment_bytes`.

    Made by `resolve_topic`, whose values are checked. Made directly, as tests do, it takes any value: a segment of a
    hundred bytes, say.
    """

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_type: str = "producer"
    compression_zstd_level: int = 3
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    index_interval_bytes: int = 4096
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    local_retention_bytes: int = -2
    local_retention_ms: int = -2
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1024 * 1024 + 12
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    remote_log_copy_disable: bool = False
    remote_log_delete_on_disable: bool = False
    remote_storage_enable: bool = False
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 1024 * 1024 * 1024
    segment_index_bytes: int = 10 * 1024 * 1024
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * _DAY_MS
    unclean_leader_election_enable: bool = False

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def segment_roll_jitter_max_ms(self) -> int:
        """Jitter never makes a segment live less than nothing."""
        return min(self.segment_jitter_ms, self.segment_ms)


class Source(NamedTuple):
    """Where a topic's value comes from: the topic itself, a broker setting by name, or the default of the row."""

    value: Value
    scope: Scope | None
    key: str


def resolve_topic(overrides: Mapping[str, str], broker: Values | None = None) -> TopicConfig:
    """The settings of a topic with `overrides` on a broker with values `broker`.

    Raises `ConfigError` with all problems; unlike a file's, an unknown key is one of them, as it is for CreateTopics.
    """
    table = settings(Scope.TOPIC)
    unknown = tuple(
        Problem(key, text, "the name of a topic setting") for key, text in overrides.items() if key not in table
    )
    if unknown:
        raise ConfigError(unknown)
    parsed: Parsed = parse(Scope.TOPIC, overrides)
    values: dict[str, Any] = {
        row.name.replace(".", "_"): sources(row, parsed.values, broker)[0].value for row in table.values()
    }
    config = TopicConfig(**values)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        bound = f"at most max.compaction.lag.ms, which is {config.max_compaction_lag_ms}"
        raise ConfigError((Problem("min.compaction.lag.ms", str(config.min_compaction_lag_ms), bound),))
    return config


def sources(row: Setting, topic: Values, broker: Values | None) -> list[Source]:
    """All that give the topic setting of `row` a value, the one that counts first; DescribeConfigs' synonyms."""
    found: list[Source] = []
    if row.name in topic.given:
        found.append(Source(topic.given[row.name], Scope.TOPIC, row.name))
    given = broker.given if broker is not None else {}
    for name, times in row.synonyms:
        if given.get(name) is not None:
            found.append(Source(_in_topic_units(row, given[name], times), Scope.BROKER, name))
    assert row.default is not REQUIRED, "every topic setting has a default"
    found.append(Source(row.default, None, row.synonyms[-1].name if row.synonyms else row.name))
    return found


def _in_topic_units(row: Setting, value: Value, times: int) -> Value:
    if row.name == "retention.ms" and isinstance(value, int) and value < 0:
        return -1  # a broker reads every negative retention time as unlimited
    return value * times if isinstance(value, int) and times != 1 else value
