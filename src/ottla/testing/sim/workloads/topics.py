"""The topics of a run, and what programs may do to each.

orders, clicks   written by all writers; every record stays
outcomes         what comes of `clicks`: written by programs that consume, transform and produce
rings            whose beginning is deleted by requests (DeleteRecords)
trails           whose old segments are deleted (`retention.ms`)
states           of which the last record of each key stays (compaction)
"""

from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.admin.topics import NewTopic

ORDERS: Final = "orders"
CLICKS: Final = "clicks"
OUTCOMES: Final = "outcomes"
RINGS: Final = "rings"
TRAILS: Final = "trails"
STATES: Final = "states"

KEPT: Final = {ORDERS: 3, CLICKS: 2}
"""How many partitions those have that every run has."""

_ROLLS_OFTEN: Final = {"segment.ms": "1500", "file.delete.delay.ms": "500"}
_OTHERS: Final = {
    OUTCOMES: NewTopic(OUTCOMES, 2),
    RINGS: NewTopic(RINGS, 2, config=_ROLLS_OFTEN),
    TRAILS: NewTopic(TRAILS, 1, config={**_ROLLS_OFTEN, "retention.ms": "4000"}),
    STATES: NewTopic(
        STATES, 1, config={**_ROLLS_OFTEN, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    ),
}

ALL_TOPICS: Final = frozenset((*KEPT, *_OTHERS))


def topics_of(names: set[str]) -> list[NewTopic]:
    """Those that every run has, and these."""
    kept = [NewTopic(name, count) for name, count in KEPT.items()]
    return kept + [topic for name, topic in _OTHERS.items() if name in names]


def partitions_of(*names: str) -> list[TopicPartition]:
    counts = KEPT | {name: topic.partitions or 1 for name, topic in _OTHERS.items()}
    return [TopicPartition(name, number) for name in names for number in range(counts[name])]
