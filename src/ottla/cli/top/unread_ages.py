"""When the record was written that a group has to read next: that is how far it is behind in time.

A record's time never changes, so what was found is kept for as long as the group stays where it is.
"""

import time
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.cli.top.sampling import Sample

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer

Place = tuple[TopicPartition, int]
_BUDGET_S = 2.0
"""How long one look may take: a view that waits for all of a thousand partitions is no live view."""


class UnreadAges:
    """`consumer` is used for nothing else: it has no group, and fetches little."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer
        self._times_ms: dict[Place, int] = {}

    def look(self, sample: Sample) -> dict[Place, int]:
        """The times of the next records, where there are any. Those that take too long come with a later look."""
        wanted = {
            (partition, offset)
            for group in sample.groups.values()
            for partition, offset in group.committed.items()
            if _is_behind(sample, partition, offset)
        }
        self._times_ms = {place: at for place, at in self._times_ms.items() if place in wanted}
        deadline_s = time.monotonic() + _BUDGET_S
        missing = sorted(wanted - self._times_ms.keys())
        while missing and time.monotonic() < deadline_s:
            # A partition is read at one offset at a time; groups at others come in the next round.
            round_ = dict(reversed(missing))
            self._fetch(round_, deadline_s)
            missing = [place for place in missing if round_.get(place[0]) != place[1]]
        return dict(self._times_ms)

    def _fetch(self, places: dict[TopicPartition, int], deadline_s: float) -> None:
        consumer, left = self._consumer, dict(places)
        consumer.assign(left)
        consumer.resume(*left)  # those that the last look paused, and that stay assigned
        for partition, offset in left.items():
            consumer.seek(partition, offset)
        while left and (wait_s := deadline_s - time.monotonic()) > 0:
            for record in consumer.poll(wait_s):
                partition = TopicPartition(record.topic, record.partition)
                if partition in left:
                    self._times_ms[partition, left.pop(partition)] = record.timestamp
                    consumer.pause(partition)


def _is_behind(sample: Sample, partition: TopicPartition, offset: int) -> bool:
    topic = sample.topics.get(partition.topic)
    return topic is not None and offset < topic.ends.get(partition.partition, 0)
