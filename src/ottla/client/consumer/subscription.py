"""What a consumer wants to read, and where it stands in each partition that it has.

Theory of operation. Partitions come from `assign`, or from a group after `subscribe`; never both. A partition without
a position waits for one: the group's committed offset, or what `auto.offset.reset` says. `moves` counts how often the
application or a reset has moved the position; what was asked for before the last move is of no use any more.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.consumer.offsets.offset_reset import OffsetReset
from ottla.client.consumer.unread_records import UnreadRecords
from ottla.client.errors import InvalidState

NO_EPOCH: Final = -1


class FetchPosition(NamedTuple):
    """The offset of the next record to hand out."""

    offset: int
    epoch: int = NO_EPOCH
    """Leader epoch of the record before it, if it is known."""


class Mode(Enum):
    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    SERVER_PATTERN = "a pattern that the coordinator matches"
    ASSIGNED = "partitions"


class PartitionState:
    """One assigned partition."""

    __slots__ = (
        "buffered_bytes",
        "error_until_s",
        "fetch_end",
        "fetch_position",
        "high_watermark",
        "is_coming",
        "is_paused",
        "is_revoking",
        "last_stable_offset",
        "log_start_offset",
        "moves",
        "next_batch_bytes",
        "partition",
        "position",
        "preferred_replica",
        "preferred_until_s",
        "reset",
        "validated_epoch",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position: FetchPosition | None = None
        self.fetch_position: FetchPosition | None = None
        """Where the next fetch begins: beyond what is buffered."""
        self.fetch_end: int | None = None
        """Nothing is fetched from this offset on: a caller who reads a range has no use for it."""
        self.reset: OffsetReset | None = None
        """Where the position has to be moved to first."""
        self.moves = 0
        self.is_paused = False
        self.is_revoking = False
        """The group takes it away: nothing of it is fetched or handed out any more."""
        self.is_coming = False
        """The application's listener has not heard yet that it came: nothing is fetched yet."""
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.preferred_replica: int | None = None
        self.preferred_until_s = 0.0
        self.validated_epoch = NO_EPOCH
        """The leader epoch in whose log the position is known to be."""
        self.buffered_bytes = 0
        self.next_batch_bytes = 0
        """How large the first batch of the next response will be, as far as the last one showed."""
        self.error_until_s = 0.0
        """After an error: when to fetch again."""

    def move_to(self, position: FetchPosition) -> None:
        """The next record to hand out is another one than was to come."""
        self.position = self.fetch_position = position
        self.reset = None
        self.validated_epoch = NO_EPOCH
        self.error_until_s = 0.0
        self.moves += 1

    def move_by(self, reset: OffsetReset) -> None:
        """The position is to be found first."""
        self.position = self.fetch_position = None
        self.reset = reset
        self.error_until_s = 0.0
        self.moves += 1

    @property
    def can_hand_out(self) -> bool:
        return not (self.is_paused or self.is_revoking or self.is_coming)

    @property
    def can_fetch(self) -> bool:
        if self.fetch_position is None or self.is_paused or self.is_revoking or self.is_coming:
            return False
        return self.fetch_end is None or self.fetch_position.offset < self.fetch_end

    def lag(self, *, is_committed: bool = False) -> int | None:
        """Records from the position to the high watermark, or to the last stable offset, as far as a fetch has
        reported."""
        end = self.last_stable_offset if is_committed else self.high_watermark
        return None if self.position is None or end is None else max(end - self.position.offset, 0)


class Subscription:
    """`on_moved` is notified of a partition whose buffered records are of no use any more."""

    def __init__(self, on_moved: Callable[[PartitionState], None]) -> None:
        self._on_moved = on_moved
        self.mode = Mode.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: str | None = None
        self.matches: Callable[[str], object] | None = None
        """With a pattern of ours: whether a topic matches it."""
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.unread = UnreadRecords()

    def subscribe_topics(self, topics: Iterable[str]) -> None:
        self._become(Mode.TOPICS)
        self.topics = frozenset(topics)

    def subscribe_pattern(self, pattern: str, matches: Callable[[str], object]) -> None:
        self._become(Mode.PATTERN)
        self.pattern, self.matches, self.topics = pattern, matches, frozenset()

    def subscribe_server_pattern(self, pattern: str) -> None:
        self._become(Mode.SERVER_PATTERN)
        self.pattern, self.matches, self.topics = pattern, None, frozenset()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replaces the partitions. One that stays keeps its position."""
        self._become(Mode.ASSIGNED)
        wanted = dict.fromkeys(partitions)
        for partition in list(self.partitions):
            if partition not in wanted:
                self.remove([partition])
        self.add(wanted)

    def clear(self) -> None:
        self.remove(list(self.partitions))
        self.mode = Mode.NONE
        self.topics, self.pattern, self.matches = frozenset(), None, None

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            if partition not in self.partitions:
                self.partitions[partition] = PartitionState(partition)

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self.partitions.pop(partition, None)
            if state is not None:
                state.is_revoking = True  # what still comes for it is dropped
                state.moves += 1
                self._on_moved(state)

    def state_of(self, partition: TopicPartition) -> PartitionState:
        try:
            return self.partitions[partition]
        except KeyError:
            raise InvalidState(f"{partition} is not assigned to this consumer") from None

    def seek(self, partition: TopicPartition, position: FetchPosition) -> None:
        state = self.state_of(partition)
        state.move_to(position)
        self._on_moved(state)

    def reset(self, partition: TopicPartition, reset: OffsetReset) -> None:
        state = self.state_of(partition)
        state.move_by(reset)
        self._on_moved(state)

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(partition for partition, state in self.partitions.items() if state.is_paused)

    def consumed(self) -> Iterator[tuple[TopicPartition, FetchPosition]]:
        """The positions to commit."""
        unread = self.unread.offsets()
        for partition, state in self.partitions.items():
            if partition in unread:
                yield partition, FetchPosition(unread[partition])
            elif state.position is not None:
                yield partition, state.position

    def take_back_unread(self) -> None:
        """What a loop has not come to is fetched again: the loop has ended early, or another call interferes."""
        for partition, offset in self.unread.take_back().items():
            if partition in self.partitions:
                self.seek(partition, FetchPosition(offset))

    def _become(self, mode: Mode) -> None:
        if self.mode not in (Mode.NONE, mode):
            raise InvalidState(f"this consumer has {self.mode.value}; unsubscribe before it takes {mode.value}")
        self.mode = mode
