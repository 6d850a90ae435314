"""What a follower's fetch tells its leader: the follower has all before the offset that it asks for.

So the fetch moves the high watermark, may bring its follower back into the ISR, and wakes those who wait for either.
It tells so once, when it comes. One that has waited is of the past when it is answered, and tells nothing more.
"""

from ottla.base.ports import Clock
from ottla.broker.data.fetch_sessions import Wanted
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.wire.errors import ErrorCode


class FollowerProgress:
    """One fetch of one follower. `replica_epoch` is its broker's epoch, -1 if the request's version has none."""

    __slots__ = ("_clock", "_events", "_partitions", "_replica_epoch", "_replica_id")

    def __init__(
        self, partitions: Partitions, clock: Clock, events: PartitionEvents, replica_id: int, replica_epoch: int
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._events = events
        self._replica_id = replica_id
        self._replica_epoch = replica_epoch

    def note(self, partition: Partition, wanted: Wanted) -> ErrorCode:
        """The follower asks for that of a partition, and may. An error is the answer to it: nothing was noted."""
        state = partition.state
        assert state is not None, "followers fetch from leaders"
        if state.is_of_the_past(self._replica_id, self._replica_epoch):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        partitions, log_start_offset = self._partitions, wanted.log_start_offset
        has_deleted = state.followers[self._replica_id].log_start_offset != log_start_offset
        has_moved = partition.apply_high_watermark(
            state.on_fetched(
                self._replica_id, wanted.offset, log_start_offset, self._clock.now_ms(), self._replica_epoch
            )
        )
        if self._replica_id not in state.isr:
            self._events.on_fetched(partition, self._replica_id)
        if has_moved or has_deleted:
            partitions.has_news_for_checkpoints |= has_moved
            partitions.purgatory.wake(partition)
        return ErrorCode.NONE
