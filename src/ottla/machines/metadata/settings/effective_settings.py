"""A topic's settings as they count on this node: its own, else those of brokers, each by the names it has there."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.config.bounds import OneOf, Shaped, at_least
from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.config.setting import ANY, MEDIUM, REQUIRED, Flag, Int, List, Setting, Text
from ottla.config.values import Type, Value, value_text

# Sources of a value, as DescribeConfigs and CreateTopics number them.
DYNAMIC_TOPIC = 1
DYNAMIC_BROKER = 2
DYNAMIC_CLUSTER = 3
STATIC_BROKER = 4
DEFAULT = 5


class EffectiveSetting(NamedTuple):
    name: str
    text: str | None
    """As a client reads it; None for a secret."""
    source: int


def effective_settings(
    topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str], static: Values
) -> Iterator[EffectiveSetting]:
    """Every topic setting by name, for a topic with settings `topic`, where brokers were given `broker`, all of them
    `cluster`, and their files say `static`.
    """
    for name, row in sorted(settings(Scope.TOPIC).items()):
        text, source = _effective(row, topic, broker, cluster, static)
        yield EffectiveSetting(name, None if row.type is Type.PASSWORD else text, source)


def effective_value(
    name: str, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str], static: Values
) -> Value:
    row = settings(Scope.TOPIC)[name]
    return row.parse(_effective(row, topic, broker, cluster, static)[0])


def _effective(
    row: Setting, topic: Mapping[str, str], broker: Mapping[str, str], cluster: Mapping[str, str], static: Values
) -> tuple[str, int]:
    if row.name in topic:
        return topic[row.name], DYNAMIC_TOPIC
    for given, source in ((broker, DYNAMIC_BROKER), (cluster, DYNAMIC_CLUSTER)):
        for name, times in row.synonyms:
            if name in given:
                return _times(given[name], times), source
    for name, times in row.synonyms:
        if name in static.given:
            return _times(value_text(static.given[name]), times), STATIC_BROKER
    assert row.default is not REQUIRED, "every topic setting has a default"
    return value_text(row.default), DEFAULT


def _times(text: str, times: int) -> str:
    """Hours and minutes of a broker's setting in milliseconds of the topic's."""
    return text if times == 1 else str(int(text) * times)


# Settings of a group, and of a client metrics subscription (KIP-714): they exist only at run time, in no file.

_OFFSET_RESET = Shaped(r"earliest|latest|by_duration:P.+", "earliest, latest or by_duration:PnDTnHnMn.nS")
_ISOLATION_LEVEL = OneOf(("read_committed", "read_uncommitted"))


def _by_name(*rows: Setting) -> Mapping[str, Setting]:
    return {row.name: row for row in rows}


GROUP_SETTINGS: Final = _by_name(
    Int("consumer.session.timeout.ms", 45_000, at_least(1), MEDIUM, "Silence after which a member is gone."),
    Int("consumer.heartbeat.interval.ms", 5_000, at_least(1), MEDIUM, "Time between a member's heartbeats."),
    Int("consumer.assignment.interval.ms", 1_000, at_least(0), MEDIUM, "Least time between two assignments."),
    Int("share.session.timeout.ms", 45_000, at_least(1), MEDIUM, "Silence after which a member is gone."),
    Int("share.heartbeat.interval.ms", 5_000, at_least(1), MEDIUM, "Time between a member's heartbeats."),
    Int("share.assignment.interval.ms", 1_000, at_least(0), MEDIUM, "Least time between two assignments."),
    Int("share.record.lock.duration.ms", 30_000, at_least(1_000), MEDIUM, "How long a record is one member's."),
    Int("share.delivery.count.limit", 5, at_least(2), MEDIUM, "How often a record is delivered at most."),
    Int("share.partition.max.record.locks", 2_000, at_least(100), MEDIUM, "Records delivered and not acknowledged."),
    Text("share.auto.offset.reset", "latest", _OFFSET_RESET, MEDIUM, "Where a new group starts."),
    Text("share.isolation.level", "read_uncommitted", _ISOLATION_LEVEL, MEDIUM, "Whether aborted records are seen."),
    Flag("share.renew.acknowledge.enable", True, ANY, MEDIUM, "Whether a member may keep a record for longer."),
    Int("streams.session.timeout.ms", 45_000, at_least(1), MEDIUM, "Silence after which a member is gone."),
    Int("streams.heartbeat.interval.ms", 5_000, at_least(1), MEDIUM, "Time between a member's heartbeats."),
    Int("streams.assignment.interval.ms", 1_000, at_least(0), MEDIUM, "Least time between two assignments."),
    Int("streams.num.standby.replicas", 0, at_least(0), MEDIUM, "Copies of a task's state beside the task."),
    Int("streams.initial.rebalance.delay.ms", 3_000, at_least(0), MEDIUM, "How long a new group waits for members."),
)

CLIENT_METRICS_SETTINGS: Final = _by_name(
    List("metrics", (), ANY, MEDIUM, "Prefixes of the metrics that clients are to send; * is all."),
    Int("interval.ms", 300_000, ANY, MEDIUM, "Time between two sendings."),
    List("match", (), ANY, MEDIUM, "Which clients: selectors with regular expressions."),
)

_LIMITED = (
    *(
        f"{kind}.{what}"
        for kind in ("consumer", "share", "streams")
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
    ),
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
)


def _limits(name: str) -> tuple[str, str]:
    kind, _, what = name.partition(".")
    return f"group.{kind}.min.{what}", f"group.{kind}.max.{what}"


GROUP_LIMITS: Final[Mapping[str, tuple[str | None, str]]] = {
    **{name: _limits(name) for name in _LIMITED},
    "streams.num.standby.replicas": (None, "group.streams.max.standby.replicas"),
}
"""The broker settings that a group's must lie between."""
