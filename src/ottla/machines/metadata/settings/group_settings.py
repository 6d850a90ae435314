"""Settings of a group, and of a client metrics subscription (KIP-714): they exist only at run time, in no file."""

from collections.abc import Mapping
from typing import Final

from ottla.config.bounds import OneOf, Shaped, at_least
from ottla.config.setting import ANY, MEDIUM, Flag, Int, List, Setting, Text

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
