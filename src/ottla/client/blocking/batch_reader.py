"""A consumer of whole batches: for jobs that keep, compare or move what brokers store, and look at no record.

Theory of operation. Ranges of partitions wait in line, and some of them are read at once; as one is done, the next
comes in. What is handed out is what one response holds of one partition: whole batches as they are stored, from the one
in which the range continues, and at most to the one in which it ends. Batches of aborted transactions, and markers, are
among them. What is handed out keeps the buffer that it was received into until it is given back, which any thread may
do; what is fetched ahead is bounded as any consumer's is.

A range that cannot be read is handed out as a failure, and the others continue: its begin is not in the log any more,
its log is another one than the epoch says (KIP-320), or it may not be read.
"""

from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.blocking.range_consumer import RangeConsumer
from ottla.client.cluster.view import Leader
from ottla.client.consumer.subscription import NO_EPOCH, FetchPosition
from ottla.client.errors import KafkaError
from ottla.client.settings import ClientSettings
from ottla.wire.messages import OffsetForLeaderEpochRequest

if TYPE_CHECKING:
    from ottla.client.consumer.fetching.fetched_chunks import Chunk


class BatchRange(NamedTuple):
    """Offsets from `begin` up to `end`, which is not among them."""

    partition: TopicPartition
    begin: int
    end: int
    epoch: int = NO_EPOCH
    """Leader epoch of the record before `begin`, if it is known: then the log is held against it."""


class FetchedBatches:
    """Whole batches, one after the other: those that hold offsets of [`begin`, `end`).

    The first may begin before `begin`, with records that the reader has seen or that are deleted. `end` may be beyond
    the range, by batches that came with the others.
    """

    __slots__ = ("_chunk", "_reader", "aborted", "begin", "data", "end", "partition")

    def __init__(self, reader: "BatchReader", chunk: "Chunk", begin: int) -> None:
        self._reader = reader
        self._chunk: Chunk | None = chunk
        self.partition = chunk.state.partition
        self.data = memoryview(chunk.records.data)
        """The last batch in it may be cut off, and does not count."""
        self.begin = begin
        self.end = chunk.records.end_offset
        self.aborted = chunk.aborted
        """(producer id, first offset) of aborted transactions in it, with read committed."""

    def give_back(self) -> None:
        """Nobody looks at the bytes any more. May be called by any thread, and again."""
        chunk, self._chunk = self._chunk, None
        if chunk is not None:
            self.data.release()
            self._reader.read_up(chunk)


class FailedRange(NamedTuple):
    """Nothing more comes of this range, unless it is added anew."""

    range: BatchRange
    error: KafkaError
    position: int
    """How far it was read."""


class BatchReader(RangeConsumer):
    """`add` ranges, then call `next_batches` until nothing `is_left`."""

    def _begin(self, settings: ClientSettings) -> None:
        super()._begin(settings)
        self.at_once = 64
        """So many ranges are read side by side."""
        self._waiting: deque[BatchRange] = deque()
        self._active: dict[TopicPartition, BatchRange] = {}

    def add(self, wanted: BatchRange) -> None:
        """A partition has one range at a time."""
        self._waiting.append(wanted)

    @property
    def is_left(self) -> bool:
        return bool(self._waiting or self._active)

    @property
    def under_way(self) -> list[BatchRange]:
        """Those that are read now."""
        return list(self._active.values())

    def drop(self, partition: TopicPartition) -> None:
        """Nothing more of this partition is wanted."""
        if self._active.pop(partition, None) is not None:
            self._call(lambda: self._core.subscription.remove([partition]))

    def next_batches(self, timeout: float) -> FetchedBatches | FailedRange | None:
        """What came of one range; None if nothing came in time, or nothing is left."""
        deadline_s = monotonic() + timeout
        while self.is_left:
            self._let_in()
            if not self._active:
                break
            self._handle_answers()
            with self._lock, self._step:
                try:
                    chunk = self._core.poll_chunk()
                except KafkaError as problem:
                    return self._failed(problem)
            if chunk is not None:
                self._loop.hand_over()
                return self._taken(chunk)
            if not self._wait_for_activity(deadline_s):
                return None
        return None

    def _let_in(self) -> None:
        waiting, active = self._waiting, self._active
        new: list[BatchRange] = []
        while waiting and len(active) < self.at_once:
            one = waiting.popleft()
            if one.begin >= one.end:
                continue
            assert one.partition not in active, "a partition has one range at a time"
            active[one.partition] = one
            new.append(one)
        if not new:
            return
        self._call(lambda: self._begin_with_these(new))

    def _begin_with_these(self, new: list[BatchRange]) -> None:
        self._assign(list(self._active))
        for one in new:
            self._core.subscription.seek(one.partition, FetchPosition(one.begin, one.epoch))
            self._core.subscription.state_of(one.partition).fetch_end = one.end
        self._core.stir()

    def _taken(self, chunk: "Chunk") -> FetchedBatches:
        fetched = FetchedBatches(self, chunk, chunk.start.offset)
        wanted = self._active[fetched.partition]
        if fetched.end >= wanted.end:
            self.drop(fetched.partition)
        return fetched

    def _failed(self, problem: KafkaError) -> FailedRange:
        partition: TopicPartition | None = getattr(problem, "partition", None)
        if partition is None or partition not in self._active:
            raise problem
        wanted = self._active[partition]
        position = self._core.subscription.state_of(partition).position
        failed = FailedRange(wanted, problem, wanted.begin if position is None else position.offset)
        self._active.pop(partition)
        self._core.subscription.remove([partition])
        return failed

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where each of these leader epochs ends in the log of its partition (KIP-320); where no broker tells, nothing.

        An end before an offset that was read in that epoch means that the log was truncated since. 0 where the log
        has nothing of an epoch that old.
        """
        return self._ask(lambda: self._ends_of_epochs(epochs), None)

    async def _ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        cluster = self._core.cluster
        cluster.set_topics(sorted({partition.topic for partition in epochs}))
        await cluster.refresh()
        by_leader: dict[Leader, dict[str, list[int]]] = {}
        for partition in sorted(epochs):
            leader = cluster.view.leader_of(partition)
            if leader is not None:
                by_leader.setdefault(leader, {}).setdefault(partition.topic, []).append(partition.partition)
        found: dict[TopicPartition, int] = {}
        for leader, topics in by_leader.items():
            request = OffsetForLeaderEpochRequest
            made = request(
                replica_id=-1,
                topics=[
                    request.OffsetForLeaderTopic(
                        topic=topic,
                        partitions=[
                            request.OffsetForLeaderPartition(
                                partition=number,
                                current_leader_epoch=NO_EPOCH,
                                leader_epoch=epochs[TopicPartition(topic, number)],
                            )
                            for number in numbers
                        ],
                    )
                    for topic, numbers in topics.items()
                ],
            )
            try:
                response = await cluster.ask(leader.node_id, made)
            except KafkaError:
                continue
            for topic in response.topics:
                for one in topic.partitions:
                    if not one.error_code:
                        found[TopicPartition(topic.topic, one.partition)] = max(one.end_offset, 0)
        return found

    def read_up(self, chunk: "Chunk") -> None:
        """Of `FetchedBatches`."""
        with self._lock, self._step:
            self._core.chunks.read_up(chunk)
