"""Replaying a partition's log into its machine, without holding the loop up.

A disk thread reads as much at a time as the topic's setting says; the loop replays it in slices that take a few
milliseconds each, so that requests for other partitions are answered in between. What is loaded goes to the end of the
log. The end of it may not be committed yet: replies that rest on it wait for that.

A record that cannot be replayed is about a group or a transactional id whose records contradict each other. That one is
taken offline, and the others are loaded.
"""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from ottla.base.ports import ColdRead
from ottla.broker.partitions.cold_reads import MOST_ROUNDS, warm
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import CorruptFile, OffsetOutOfRange
from ottla.machines.coordinator_machine import CoordinatorMachine, TransactionStamp
from ottla.records.batch import complete_batches
from ottla.records.control import parse_end_transaction_marker
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.reader import read_records
from ottla.runtime.world import World
from ottla.wire.faults import DecodeError, UnsupportedVersionError
from ottla.wire.record_values import CoordinatorTopic, decode_key, decode_value

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)
_SLICE_BYTES = 1 << 16
_BUFFER_SETTINGS = {
    CoordinatorTopic.CONSUMER_OFFSETS: "offsets.load.buffer.size",
    CoordinatorTopic.TRANSACTION_STATE: "transaction.state.log.load.buffer.size",
}

UNREADABLE = (OSError, CorruptFile, CorruptBatch, DecodeError, OffsetOutOfRange)


class Loaded(Protocol):
    """What hears how the loading goes."""

    def on_loaded(self) -> None: ...

    def on_unreadable(self, problem: Exception) -> None: ...

    def take_offline(self, subject: str | None, problem: Exception) -> None: ...


class Loading:
    """One partition being loaded. Tells `owner` of the end, or that it cannot be read; nothing after `cancel`."""

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        partition: Partition,
        topic: CoordinatorTopic,
        machine: CoordinatorMachine,
        owner: Loaded,
    ) -> None:
        self._partitions = partitions
        self._world = world
        self._partition = partition
        self._topic = topic
        self._machine = machine
        self._owner = owner
        self._buffer_bytes = partitions.node_settings.effective.integer(_BUFFER_SETTINGS[topic])
        self._offset = partition.log.log_start_offset
        self._is_cancelled = False
        self._rounds = 0

    def cancel(self) -> None:
        self._is_cancelled = True

    def read_on(self, may_wait: bool = False) -> None:
        """Asks a disk thread for the next bytes, or ends. An empty log is loaded before this returns."""
        partition, log, disk = self._partition, self._partition.log, self._world.disk
        try:
            disk.reads_may_wait(may_wait)
            try:
                found = log.read(self._offset, self._buffer_bytes, log.log_end_offset, min_one_batch=True)
            finally:
                disk.reads_may_wait(True)
        except ColdRead as cold:
            partition.begin_job()
            warm(self._world.workers, [cold], self._on_warm)
            return
        except UNREADABLE as problem:
            self._owner.on_unreadable(problem)
            return
        if not found:
            self._owner.on_loaded()
            return
        partition.begin_job()
        self._world.workers.run(found.read, self._on_read, self._on_unreadable)

    def _on_warm(self, is_warm: bool) -> None:
        self._partition.end_job()
        self._rounds += 1
        if not self._is_cancelled:
            self.read_on(not is_warm or self._rounds % MOST_ROUNDS == 0)

    def _on_unreadable(self, problem: Exception) -> None:
        self._partition.end_job()
        if not self._is_cancelled:
            self._owner.on_unreadable(problem)

    def _on_read(self, data: bytes) -> None:
        self._partition.end_job()
        self._replay_rest(data, complete_batches(data))

    def _replay_rest(self, data: bytes, batches: Iterator[tuple[int, BatchHeader]]) -> None:
        if self._is_cancelled:
            return
        left = _SLICE_BYTES
        try:
            for position, header in batches:
                replay_batch(self._machine, self._topic, data, position, header, self._owner.take_offline)
                if self._is_cancelled:  # The owner was closed meanwhile.
                    return
                self._offset = header.next_offset
                left -= header.size
                if left <= 0:
                    self._world.timers.after(0, lambda: self._replay_rest(data, batches))
                    return
        except UNREADABLE as problem:
            self._owner.on_unreadable(problem)
            return
        self.read_on()


def replay_batch(
    machine: CoordinatorMachine,
    topic: CoordinatorTopic,
    data: bytes,
    position: int,
    header: BatchHeader,
    on_broken: Callable[[str | None, Exception], None],
) -> None:
    """What the batch says, as it was said when it was written. Kinds of records that are not known are passed over."""
    stamp = TransactionStamp(header.producer_id, header.producer_epoch)
    if header.is_control:
        marker = parse_end_transaction_marker(data, position, header)
        if marker is not None:
            machine.replay_end_of_transaction(stamp, committed=marker.committed)
        return
    records = read_records(data, position, header)
    for record in records if header.is_transactional else machine.replay_encoded(records):
        if record.key is None:
            continue
        try:
            key = decode_key(topic, record.key)
            value = None if record.value is None else decode_value(key, record.value)
        except UnsupportedVersionError as unknown:
            _log.warning("skipped the record at offset %s of %s: %s", record.offset, topic.name, unknown)
            continue
        try:
            if header.is_transactional:
                machine.replay_in_transaction(stamp, key, value)
            else:
                machine.replay(key, value)
        except Exception as problem:
            on_broken(machine.subject_of(key), problem)
