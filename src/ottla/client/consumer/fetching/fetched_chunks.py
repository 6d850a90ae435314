"""What was fetched and not handed out, in the order in which it came.

Theory of operation. A chunk is what one response holds of one partition. It is of use as long as its partition is
assigned and has not been moved since it was asked for; `discard` takes a partition's chunks out when it is. Every byte
that is kept is counted, for its partition and in total, which is what bounds the memory of a slow consumer. Chunks of
one response share its buffer until the last of them is read up; a partition that is paused gives its own up, or it
would keep the others' for as long.

A deserializer is the application's code, and may take its time. So it runs without the client's lock (`unlocked`), and
what it was given may be of no use any more when it is done: then its records are dropped.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from ottla.client.consumer.subscription import NO_EPOCH, FetchPosition, PartitionState
from ottla.client.errors import CorruptMessage, DeserializationFailed, KafkaError
from ottla.records.columns import Deserialize
from ottla.records.fetched import fetched_records
from ottla.records.header import CorruptBatch
from ottla.records.kernel import ConsumerRecord, FetchedRecords
from ottla.wire.exchange.frames import SpareBuffers


class RecordReading:
    """How fetched bytes become records."""

    def __init__(
        self, *, check_crcs: bool, key_deserializer: Deserialize | None, value_deserializer: Deserialize | None
    ) -> None:
        self.check_crcs = check_crcs
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer


class Chunk:
    """`shares_buffer`: with chunks of other partitions, all of which keep the whole response.

    `start` and `moves` are the partition's when the chunk was taken whole.
    """

    __slots__ = ("aborted", "moves", "records", "shares_buffer", "size", "start", "state")

    def __init__(
        self, state: PartitionState, records: FetchedRecords, aborted: list[tuple[int, int]], shares_buffer: bool
    ) -> None:
        self.state = state
        self.shares_buffer = shares_buffer
        self.records = records
        self.aborted = aborted
        self.size = records.bytes_left
        self.start = FetchPosition(records.next_offset)
        self.moves = state.moves


class FetchedChunks:
    """One consumer's."""

    def __init__(self, reading: RecordReading, spare: SpareBuffers, max_partition_bytes: int) -> None:
        self._reading = reading
        self._spare = spare
        self._chunks: deque[Chunk] = deque()
        self.buffered_bytes = 0
        self._is_one_read_up = False
        self._much_bytes = self._room_at_bytes = max_partition_bytes // 2
        self.handed_out_bytes = 0
        """Since the beginning, counted by batches."""
        self.unlocked: Callable[[Callable[[], None]], None] | None = None
        """What calls a deserializer, where there is a lock."""

    def __len__(self) -> int:
        return len(self._chunks)

    def add(
        self, state: PartitionState, data: Any, aborted: list[tuple[int, int]], *, shares_buffer: bool = False
    ) -> bool:
        """What came for a partition at its `fetch_position`, which moves on. False if there is no whole batch in it."""
        position = state.fetch_position
        assert position is not None, "nothing was asked for"
        partition = state.partition
        reading = self._reading
        records = fetched_records(
            partition.topic,
            partition.partition,
            data,
            position.offset,
            aborted=aborted,
            check_crcs=reading.check_crcs,
            key_deserializer=reading.key_deserializer,
            value_deserializer=reading.value_deserializer,
        )
        if records.end_offset <= position.offset:
            return False
        epoch = records.end_epoch if records.end_epoch >= 0 else position.epoch
        state.fetch_position = FetchPosition(records.end_offset, epoch)
        chunk = Chunk(state, records, aborted, shares_buffer)
        self._chunks.append(chunk)
        state.next_batch_bytes = records.next_batch_bytes
        state.buffered_bytes += chunk.size
        self.buffered_bytes += chunk.size
        return True

    def discard(self, state: PartitionState) -> None:
        """The partition was moved or taken away: its chunks are of no use."""
        if any(chunk.state is state for chunk in self._chunks):
            self._chunks = deque(chunk for chunk in self._chunks if chunk.state is not state)
        self.buffered_bytes -= state.buffered_bytes
        state.buffered_bytes = state.next_batch_bytes = 0
        state.fetch_position = state.position

    @property
    def is_ready(self) -> bool:
        """Whether there is something to hand out."""
        return any(chunk.state.can_hand_out for chunk in self._chunks)

    def has_new_room(self) -> bool:
        """Whether, since it last was so, a chunk was read up, or half of a large one.

        With the other half still there, brokers work while the application does.
        """
        if not self._is_one_read_up and self.handed_out_bytes < self._room_at_bytes:
            return False
        self._is_one_read_up = False
        self._room_at_bytes = self.handed_out_bytes + self._much_bytes
        return True

    def take(self, out: list[ConsumerRecord], most: int) -> None:
        """Appends at most so many records; positions move behind them. Raises what is wrong with the first of them.

        Those that are there when an interrupt strikes count as taken.
        """
        while (chunk := self._next()) is not None:
            taken = len(out)
            try:
                self._read(chunk, out, most - taken)
            except Exception as problem:
                if not self._settle(chunk, out, taken):
                    continue
                if out:
                    return  # The next call finds the same, and tells.
                raise self._explained(chunk, problem) from problem
            except BaseException:
                self._settle(chunk, out, taken)
                raise
            if not self._settle(chunk, out, taken):
                continue
            if len(out) >= most:
                return
            self._remove(chunk)
            self.read_up(chunk)

    def _read(self, chunk: Chunk, out: list[ConsumerRecord], most: int) -> None:
        if self.unlocked is None:
            chunk.records.take(out, most)
        else:
            self.unlocked(lambda: chunk.records.take(out, most))

    def _settle(self, chunk: Chunk, out: list[ConsumerRecord], taken: int) -> bool:
        """Moves the position behind what was taken of the chunk. False if that is of no use any more: it is dropped."""
        if self.unlocked is not None and chunk not in self._chunks:
            del out[taken:]
            return False
        self._moved(chunk)
        return True

    def take_chunk(self) -> Chunk | None:
        """The oldest chunk, whole, for a caller who reads it in another way. Positions move behind it."""
        chunk = self._next()
        if chunk is not None:
            self._remove(chunk)
            self.handed_out_bytes += chunk.size
            chunk.start, chunk.moves = chunk.state.position or chunk.start, chunk.state.moves
            chunk.state.position = FetchPosition(chunk.records.end_offset, chunk.records.end_epoch)
        return chunk

    def on_paused(self, state: PartitionState) -> None:
        """One that waits long must not keep what others were sent. What is dropped is fetched again."""
        if any(chunk.state is state and chunk.shares_buffer for chunk in self._chunks):
            self.discard(state)

    def read_up(self, chunk: Chunk) -> None:
        """Nobody needs the chunk any more. Its buffer may be used again, if it was the last to look into it."""
        data = chunk.records.data
        buffer = data.obj if isinstance(data, memoryview) else None
        del data, chunk.records
        if isinstance(buffer, bytearray):
            self._spare.give(buffer)

    def _next(self) -> Chunk | None:
        chunks = self._chunks
        if chunks and chunks[0].state.can_hand_out:
            return chunks[0]
        return next((chunk for chunk in chunks if chunk.state.can_hand_out), None)

    def _remove(self, chunk: Chunk) -> None:
        self._is_one_read_up = True
        if self._chunks[0] is chunk:
            self._chunks.popleft()
        else:
            self._chunks.remove(chunk)
        self.buffered_bytes -= chunk.size
        chunk.state.buffered_bytes -= chunk.size

    def _moved(self, chunk: Chunk) -> None:
        """Positions and counts after something was taken."""
        records, state = chunk.records, chunk.state
        before = state.position
        epoch = records.last_epoch if records.last_epoch >= 0 else (before.epoch if before else NO_EPOCH)
        state.position = FetchPosition(records.next_offset, epoch)
        left = records.bytes_left
        self.handed_out_bytes += chunk.size - left
        state.buffered_bytes -= chunk.size - left
        self.buffered_bytes -= chunk.size - left
        chunk.size = left

    def _explained(self, chunk: Chunk, problem: Exception) -> KafkaError:
        partition, offset = chunk.state.partition, chunk.records.next_offset
        where = f"{partition} at offset {offset}"
        if isinstance(problem, CorruptBatch):
            return CorruptMessage(f"what was fetched from {where} is damaged: {problem}")
        error = DeserializationFailed(f"the record of {where} could not be read: {problem}")
        error.record = chunk.records.next_raw()
        return error
