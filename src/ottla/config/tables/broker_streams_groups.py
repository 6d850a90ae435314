"""Streams groups. Kafka Streams applications whose tasks the broker assigns (KIP-1071)."""

from ottla.config.bounds import at_least
from ottla.config.setting import CLUSTER_WIDE, INT_MAX, MEDIUM, Int

SETTINGS = (
    Int("group.streams.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Silence after which a member is removed."),
    Int("group.streams.min.session.timeout.ms", 45_000, at_least(1), MEDIUM,
        "Shortest session timeout that a group may be given."),
    Int("group.streams.max.session.timeout.ms", 60_000, at_least(1), MEDIUM,
        "Longest session timeout that a group may be given."),
    Int("group.streams.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Time between two heartbeats that members are told to keep."),
    Int("group.streams.min.heartbeat.interval.ms", 5000, at_least(1), MEDIUM,
        "Shortest heartbeat interval that a group may be given."),
    Int("group.streams.max.heartbeat.interval.ms", 15_000, at_least(1), MEDIUM,
        "Longest heartbeat interval that a group may be given."),
    Int("group.streams.assignment.interval.ms", 1000, at_least(0), MEDIUM,
        "Shortest time between two computations of a group's assignment.", CLUSTER_WIDE),
    Int("group.streams.min.assignment.interval.ms", 0, at_least(0), MEDIUM,
        "Shortest assignment interval that a group may be given."),
    Int("group.streams.max.assignment.interval.ms", 15_000, at_least(0), MEDIUM,
        "Longest assignment interval that a group may be given."),
    Int("group.streams.initial.rebalance.delay.ms", 3000, at_least(0), MEDIUM,
        "How long the first assignment of an empty group waits for more members."),
    Int("group.streams.max.size", INT_MAX, at_least(1), MEDIUM,
        "Members of one group; more are refused."),
    Int("group.streams.num.standby.replicas", 0, at_least(0), MEDIUM,
        "Warm copies of a task's state that are kept on other members."),
    Int("group.streams.max.standby.replicas", 2, at_least(0), MEDIUM,
        "Most warm copies that a group may ask for."),
)
