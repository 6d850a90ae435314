"""Groups. Given to one group by name; what is not given comes from the broker's settings.

Rows of DescribeConfigs and of the controller's checks; no file has them, so the reference page does not list them.
"""

from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, MEDIUM, Flag, Int, Synonym, Text

SETTINGS = (
    # The consumer protocol (KIP-848)
    Int(
        "consumer.session.timeout.ms",
        45_000,
        at_least(1),
        MEDIUM,
        "Silence after which a member is removed.",
        synonyms=(Synonym("group.consumer.session.timeout.ms"),),
    ),
    Int(
        "consumer.heartbeat.interval.ms",
        5000,
        at_least(1),
        MEDIUM,
        "Time between two heartbeats that members are told to keep.",
        synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),),
    ),
    Int(
        "consumer.assignment.interval.ms",
        1000,
        at_least(0),
        MEDIUM,
        "Shortest time between two computations of the assignment.",
        synonyms=(Synonym("group.consumer.assignment.interval.ms"),),
    ),
    # Share groups (KIP-932)
    Int(
        "share.session.timeout.ms",
        45_000,
        at_least(1),
        MEDIUM,
        "Silence after which a member is removed.",
        synonyms=(Synonym("group.share.session.timeout.ms"),),
    ),
    Int(
        "share.heartbeat.interval.ms",
        5000,
        at_least(1),
        MEDIUM,
        "Time between two heartbeats that members are told to keep.",
        synonyms=(Synonym("group.share.heartbeat.interval.ms"),),
    ),
    Int(
        "share.assignment.interval.ms",
        1000,
        at_least(0),
        MEDIUM,
        "Shortest time between two computations of the assignment.",
        synonyms=(Synonym("group.share.assignment.interval.ms"),),
    ),
    Int(
        "share.record.lock.duration.ms",
        30_000,
        at_least(1000),
        MEDIUM,
        "How long a member holds a record before it may be delivered again.",
        synonyms=(Synonym("group.share.record.lock.duration.ms"),),
    ),
    Int(
        "share.delivery.count.limit",
        5,
        at_least(2),
        MEDIUM,
        "Deliveries of a record before it is given up.",
        synonyms=(Synonym("group.share.delivery.count.limit"),),
    ),
    Int(
        "share.partition.max.record.locks",
        2000,
        at_least(100),
        MEDIUM,
        "Records of a partition that may be held at the same time.",
        synonyms=(Synonym("group.share.partition.max.record.locks"),),
    ),
    Text(
        "share.auto.offset.reset",
        "latest",
        ANY,
        MEDIUM,
        "Where a new group begins: `latest`, `earliest`, or `by_duration:` and an ISO 8601 duration.",
    ),
    Text(
        "share.isolation.level",
        "read_uncommitted",
        OneOf(("read_committed", "read_uncommitted")),
        MEDIUM,
        "Whether records of transactions are delivered before they are committed.",
    ),
    Flag(
        "share.renew.acknowledge.enable",
        True,
        ANY,
        MEDIUM,
        "Whether a member may hold a record for longer by acknowledging it as renewed (KIP-1222).",
    ),
    # Streams groups (KIP-1071)
    Int(
        "streams.session.timeout.ms",
        45_000,
        at_least(1),
        MEDIUM,
        "Silence after which a member is removed.",
        synonyms=(Synonym("group.streams.session.timeout.ms"),),
    ),
    Int(
        "streams.heartbeat.interval.ms",
        5000,
        at_least(1),
        MEDIUM,
        "Time between two heartbeats that members are told to keep.",
        synonyms=(Synonym("group.streams.heartbeat.interval.ms"),),
    ),
    Int(
        "streams.assignment.interval.ms",
        1000,
        at_least(0),
        MEDIUM,
        "Shortest time between two computations of the assignment.",
        synonyms=(Synonym("group.streams.assignment.interval.ms"),),
    ),
    Int(
        "streams.num.standby.replicas",
        0,
        at_least(0),
        MEDIUM,
        "Standby copies of each task's state.",
        synonyms=(Synonym("group.streams.num.standby.replicas"),),
    ),
    Int(
        "streams.initial.rebalance.delay.ms",
        3000,
        at_least(0),
        MEDIUM,
        "How long the first rebalance of an empty group waits for more members.",
        synonyms=(Synonym("group.streams.initial.rebalance.delay.ms"),),
    ),
)
