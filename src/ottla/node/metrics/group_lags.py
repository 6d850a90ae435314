"""How far consumer groups are behind, as their coordinator knows it: in records, and in seconds.

A coordinator has the committed offsets. Where a partition ends, its leader knows: this node for those that it leads,
and the others are asked every few seconds (ListOffsets), a request for each node. Lag in seconds is the age of the
oldest record that a group has not read. For partitions that are led here its batch is looked up; for others, and where
that would be too much, it is taken from when the end of the partition passed that offset, as far as it was watched.

Everything is bounded: how many partitions are watched, how many heads of batches are looked up for a page.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from ottla.base.ports import ColdRead
from ottla.broker.partitions.cold_reads import warm
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.reading import slot_of
from ottla.runtime.apart import ask_surely
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.wire.messages import ListOffsetsResponse

MOST_LOOKED_UP: Final = 200
_LOOKED_UP_A_PIECE: Final = 25
_ROWS_A_PIECE: Final = 2_000
_MOST_WATCHED: Final = 5_000
_MOST_SAMPLES: Final = 12
_LOOKED_AT_A_STEP: Final = 1_000
_MOST_ASKED: Final = 2_000
"""Partitions of one node in one request."""
_LATEST: Final = -1
_LIST_OFFSETS_VERSION: Final = 7

Name = tuple[str, int]


Committed = tuple[str, str, int, int]
"""Group, topic, partition and committed offset. A bare tuple: a page may have 50,000."""
_NAME_OF: Final = itemgetter(1, 2)


class EndsOverTime:
    """When the end of a partition was where. At most a dozen samples: when there are more, every other goes."""

    __slots__ = ("samples",)

    def __init__(self) -> None:
        self.samples: list[tuple[int, int]] = []

    def note(self, now_ms: int, end_offset: int) -> None:
        samples = self.samples
        if samples and samples[-1][1] == end_offset and len(samples) > 1 and samples[-2][1] == end_offset:
            samples[-1] = (now_ms, end_offset)
            return
        samples.append((now_ms, end_offset))
        if len(samples) > _MOST_SAMPLES:
            del samples[1:-1:2]

    def age_ms(self, offset: int, now_ms: int) -> int | None:
        """Of the record at an offset; at least as old as it has been watched. None if it has not come yet."""
        before = self.samples[0]
        if before[1] > offset:
            return now_ms - before[0]
        for at_ms, end_offset in self.samples:
            if end_offset > offset:
                part = (offset - before[1]) / (end_offset - before[1])
                return int(now_ms - (before[0] + part * (at_ms - before[0])))
            before = at_ms, end_offset
        return None


class GroupLags:
    """Of the groups that a broker coordinates. `look` is called every few seconds."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.ends: dict[Name, int] = {}
        """Of partitions that others lead, as they last said."""
        self.watched: dict[Name, EndsOverTime] = {}
        self._asking: set[int] = set()
        self._is_looking = False

    # What groups have committed, and where partitions end

    def all(self) -> Iterator[tuple[list[Committed], list[int]]]:
        """What was committed, and beside it where the partitions end, in pieces, with time in between."""
        broker, known = self._broker, dict(self.ends)
        partitions = list(broker.partitions.values())
        for start in range(0, len(partitions), _ROWS_A_PIECE):
            for partition in partitions[start : start + _ROWS_A_PIECE]:
                if partition.state is not None:
                    known[partition.name] = partition.log.high_watermark
            yield [], []
        for led in list(broker.coordinators.groups.active):
            offsets = list(led.machine.offsets.each())
            for start in range(0, len(offsets), _ROWS_A_PIECE):
                some = offsets[start : start + _ROWS_A_PIECE]
                ends = list(map(known.get, map(_NAME_OF, some)))
                if None in ends:
                    is_known = [end is not None for end in ends]
                    some, ends = list(compress(some, is_known)), list(compress(ends, is_known))
                yield some, ends  # type: ignore[misc]  # none of the ends is None

    def end_offset(self, topic: str, index: int) -> int | None:
        partition = self._broker.partitions.get((topic, index))
        if partition is not None and partition.is_leader:
            return partition.log.high_watermark
        return self.ends.get((topic, index))

    def look(self) -> None:
        """Notes where partitions end that groups read from, and asks other leaders.

        In steps, with the loop's other work in between. While one look is under way, no other begins.
        """
        if not self._is_looking:
            self._is_looking = True
            self._step(self._looks())

    def _step(self, steps: Iterator[None]) -> None:
        self._is_looking = False  # Whatever the step raises, the next look begins anew.
        for _ in islice(steps, 1):
            self._is_looking = True
            self._broker.world.timers.after(0, lambda: self._step(steps))

    def _looks(self) -> Iterator[None]:
        broker, now_ms = self._broker, self._broker.clock.now_ms()
        by_leader: dict[int, dict[Name, None]] = {}
        lagging: dict[Name, int] = {}
        for led in list(broker.coordinators.groups.active):
            remaining = iter(list(led.machine.offsets.each()))
            while some := list(islice(remaining, _LOOKED_AT_A_STEP)):
                for _group, topic, index, committed in some:
                    end_offset = self.end_offset(topic, index)
                    if end_offset is not None and end_offset > committed and len(lagging) < _MOST_WATCHED:
                        lagging[topic, index] = end_offset
                    leader = broker.metadata.leader_of(topic, index)
                    if leader is not None and leader >= 0 and leader != broker.identity.node_id:
                        by_leader.setdefault(leader, {})[topic, index] = None
                yield
        self.watched = {name: self.watched.get(name) or EndsOverTime() for name in lagging}
        for name, end_offset in lagging.items():
            self.watched[name].note(now_ms, end_offset)
        asked = {name for names in by_leader.values() for name in names}
        self.ends = {name: end for name, end in self.ends.items() if name in asked}
        for leader, names in by_leader.items():
            if leader not in self._asking:
                self._ask(leader, list(names)[:_MOST_ASKED])

    def _ask(self, leader: int, names: list[Name]) -> None:
        from ottla.wire.messages import ListOffsetsRequest

        by_topic: dict[str, list[int]] = {}
        for topic, index in names:
            by_topic.setdefault(topic, []).append(index)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=index, current_leader_epoch=-1, timestamp=_LATEST
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic.items()
            ],
        )
        self._asking.add(leader)

        def heard(response: "ListOffsetsResponse") -> None:
            self._asking.discard(leader)
            for topic in response.topics:
                for partition in topic.partitions:
                    if partition.error_code == ErrorCode.NONE:
                        self.ends[topic.name, partition.partition_index] = partition.offset

        def failed(_error: ErrorCode) -> None:
            self._asking.discard(leader)

        ask_surely(
            self._broker.world.timers,
            lambda *outcomes: self._broker.peers.ask(leader, request, _LIST_OFFSETS_VERSION, *outcomes),
            heard,
            failed,
        )

    # Seconds

    def ages(self, found: Sequence[Committed], records: Sequence[int]) -> Iterator[tuple[list[int], list[float]]]:
        """Places among `found`, and the ages there in seconds, in pieces. `records` is by how many each is behind. What
        would have to be waited for is left out of this page, and read for the next.
        """
        broker, watched, now_ms = self._broker, self.watched, self._broker.clock.now_ms()
        current = [place for place, behind in enumerate(records) if not behind]
        yield current, [0] * len(current)
        most_first = sorted(
            (place for place, behind in enumerate(records) if behind), key=records.__getitem__, reverse=True
        )
        yield [], []
        cold: list[ColdRead] = []
        places: list[int] = []
        ages: list[float] = []
        looked_up = 0
        for count, place in enumerate(most_first, 1):
            _, topic, index, committed = found[place]
            name = topic, index
            age_ms: int | None = None
            is_full = not count % _ROWS_A_PIECE
            if looked_up < MOST_LOOKED_UP:
                partition = broker.partitions.get(name)
                if partition is not None and partition.is_leader:
                    looked_up += 1
                    age_ms = self._looked_up(partition, committed, now_ms, cold)
                    is_full = is_full or not looked_up % _LOOKED_UP_A_PIECE
            if age_ms is None and (ends := watched.get(name)) is not None:
                age_ms = ends.age_ms(committed, now_ms)
            if age_ms is not None:
                places.append(place)
                ages.append(0 if age_ms < 0 else age_ms / 1000 if age_ms % 1000 else age_ms // 1000)
            if is_full:
                yield places, ages
                places, ages = [], []
        yield places, ages
        if cold:
            warm(broker.world.workers, cold, lambda _: None)

    def _looked_up(self, partition: Partition, offset: int, now_ms: int, cold: list[ColdRead]) -> int | None:
        disk = self._broker.world.disk
        disk.reads_may_wait(False)
        try:
            timestamp_ms = _timestamp_of(partition, offset)
        except ColdRead as read_later:
            cold.append(read_later)
            return None
        finally:
            disk.reads_may_wait(True)
        return None if timestamp_ms is None else now_ms - timestamp_ms


def _timestamp_of(partition: Partition, offset: int) -> int | None:
    """Of the first record at or after an offset: that of its batch's first, which may be a little older."""
    log = partition.log
    offset = max(offset, log.log_start_offset)
    try:
        for segment in log.segments[slot_of(log.segments, offset) :]:
            found = segment.find(offset)
            if found is not None:
                header = found[1]
                stamped = header.is_log_append_time or header.has_delete_horizon
                return header.max_timestamp if stamped else header.base_timestamp
    except STORAGE_PROBLEMS:
        return None  # The consumer that reads the partition gets the error.
    return None
