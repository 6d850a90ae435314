"""Idempotence: which batch has which sequence, and what to do when a broker finds them out of order.

Theory of operation. A producer has an id and an epoch, and counts its records for each partition. A batch gets its
sequence when it is drained for the first time and keeps it over retries, so that a broker that has it already can tell.
At most five batches of a partition are on their way, which is as many as a broker remembers; the first of an epoch goes
alone, because a broker that knows nothing of a producer takes any sequence for the first, and so the second batch if
the first one fails. When one fails, those behind it are sent again one at a time, the first first.

A batch that is given up without an answer leaves its sequence unresolved: nothing new is drained until those behind it
are answered. If one of them was acknowledged, so was the lost one; if not, there is a gap. A producer without
transactions closes a gap by itself: it takes the next epoch and counts from 0 again (KIP-360). A transaction is
aborted instead.

Under another epoch a broker cannot tell that it has a batch already. So the next epoch waits for batches of which
nobody knows whether they are written: they are sent again under the old one, until an answer tells. One thing no answer
can tell: a broker may have a request for longer than the producer waits for it, and carry it out after it has answered
the next attempt. Under the old epoch that does no harm, and after the first batch of the new one it is refused. In
between a batch could be written that is sent again under the new epoch, if the one that left the gap may come late too.
Such batches fail, as perhaps written: a record is never in the log twice. (Kafka's own producer sends them again.)
"""

from collections.abc import Callable
from itertools import takewhile

from ottla.client.producer.batch import ABOUT_SEQUENCES, ProducerBatch, Stamp
from ottla.client.producer.partition_queue import NOBODY, Identity, PartitionQueue
from ottla.records.header import NO_SEQUENCE
from ottla.wire.errors import ErrorCode

_MOST_EPOCH = 0x7FFF
_SEQUENCE_MASK = 0x7FFFFFFF


def next_sequence(sequence: int, count: int) -> int:
    """Sequences begin again at 0 after 2^31 - 1."""
    return (sequence + count) & _SEQUENCE_MASK


def _is_from(sequence: int, first: int) -> bool:
    """Whether a sequence is that one or behind it."""
    return next_sequence(sequence, -first) <= _SEQUENCE_MASK >> 1


def _may_be_counted_anew(unacked: list[ProducerBatch]) -> bool:
    """Whether none of a partition's batches may be written. They are in the order of their sequences: behind one that a
    broker found out of order it has written none, and that one is first in line, so no answer about others would come.
    """
    if any(batch.is_in_flight for batch in unacked):
        return False
    for batch in unacked:
        if batch.may_be_written:
            return False
        if batch.is_out_of_order:
            return True
    return True


class Sequences:
    """Of one idempotent producer, with or without transactions."""

    def __init__(self, is_transactional: bool) -> None:
        self.is_transactional = is_transactional
        self.identity = NOBODY
        self.wants_epoch = False
        """A gap has to be closed by a new epoch."""
        self._rewritten: dict[PartitionQueue, None] = {}
        self._unresolved: dict[PartitionQueue, None] = {}
        self.on_rewritten: Callable[[PartitionQueue], None] = lambda queue: None
        """Is notified of each queue that waited for the epoch of now."""

    @property
    def is_identified(self) -> bool:
        return self.identity.producer_id >= 0

    # --- draining ---

    def may_drain(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        if batch.has_sequence:
            return queue.unacked[0] is batch
        if queue in self._rewritten:
            return False
        if queue.unacked and (queue.identity != self.identity or queue.last_acked_sequence == NO_SEQUENCE):
            return False
        return queue not in self._unresolved

    def assign(self, queue: PartitionQueue, batch: ProducerBatch) -> Stamp:
        """The stamp of a batch that is drained for the first time."""
        if queue.identity != self.identity:
            assert not queue.unacked, "batches of another epoch are on their way"
            queue.forget_sequence()
            queue.identity = self.identity
        stamp = Stamp(*self.identity, queue.next_sequence, self.is_transactional)
        queue.next_sequence = next_sequence(queue.next_sequence, batch.record_count)
        queue.unacked.append(batch)
        return stamp

    # --- answers ---

    def on_acked(self, batch: ProducerBatch, base_offset: int) -> None:
        queue = batch.queue
        queue.unacked.remove(batch)
        if queue.late_sequence is not None and _is_from(batch.stamp.base_sequence, queue.late_sequence):
            queue.late_sequence = None
        if queue.identity == (batch.stamp.producer_id, batch.stamp.producer_epoch) and not self.is_written(batch):
            queue.last_acked_sequence = batch.last_sequence
        if base_offset >= 0:
            queue.last_acked_offset = max(queue.last_acked_offset, base_offset + batch.record_count - 1)

    def is_written(self, batch: ProducerBatch) -> bool:
        """Whether a batch behind this one was acknowledged, in the same epoch: a broker takes them in order.

        It may have forgotten that it has this one: it knows a producer's last five batches, and calls older ones out of
        order. As many may be written while a batch is sent again that was written and not acknowledged in time.
        """
        queue = batch.queue
        if queue.last_acked_sequence == NO_SEQUENCE:
            return False
        is_same_epoch = queue.identity == (batch.stamp.producer_id, batch.stamp.producer_epoch)
        return is_same_epoch and _is_from(queue.last_acked_sequence, batch.last_sequence)

    def is_lost(self, batch: ProducerBatch, code: int) -> bool:
        """Whether nobody will know if a part of a batch is written: the whole may be, from before it was too large.

        A broker knows batches by their first and last sequence, and finds parts of what it has out of order. That all
        before the first part is written, or may be, leaves one other cause: the broker has lost what it knew.
        """
        queue = batch.queue
        return (
            code in ABOUT_SEQUENCES
            and batch.is_perhaps_written_whole
            and (queue in self._unresolved or self._is_next(queue, batch))
        )

    def may_retry(self, batch: ProducerBatch, code: int, log_start_offset: int) -> bool | None:
        """Whether a batch is sent again after an error about sequences; None if the error is about something else."""
        queue = batch.queue
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset == -1 or batch.sequence_was_reset:
                return True
            if queue.last_acked_offset < log_start_offset and self.is_transactional:
                # Retention has taken all that the broker knew this producer by.
                self.start_over(queue)
                return True
            if not self.is_transactional:
                self._want_epoch(queue)
                return True
            return False
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_unresolved = queue in self._unresolved
            if not is_unresolved and (batch.sequence_was_reset or not self._is_next(queue, batch)):
                return True
            if not self.is_transactional:
                if not is_unresolved or queue.unresolved_sequence == batch.stamp.base_sequence:
                    self._want_epoch(queue)
                return True
            return False
        return None

    def on_failed(self, batch: ProducerBatch, code: int, *, was_refused: bool) -> None:
        """A batch was given up. `was_refused`: a broker said that it is not written, so its sequence is free."""
        queue = batch.queue
        if not batch.has_sequence or batch not in queue.unacked:
            return
        position = queue.unacked.index(batch)
        del queue.unacked[position]
        if batch.may_come_late:
            queue.late_sequence = next_sequence(batch.last_sequence, 1)
        elif not batch.may_be_written and not self.is_transactional:
            for behind in queue.unacked[position:]:
                behind.is_behind_a_gap = True
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self.is_transactional:
            self._want_epoch(queue)
        elif code == ErrorCode.UNKNOWN_PRODUCER_ID:
            queue.forget_sequence()
        elif was_refused and not self.is_transactional:
            self._want_epoch(queue)
        elif was_refused:
            self._close_up(queue, position, batch.record_count)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """A batch was split: its sequences are those of its parts, and so is its epoch, perhaps an older one."""
        unacked = batch.queue.unacked
        position = unacked.index(batch)
        unacked[position : position + 1] = parts
        sequence = batch.stamp.base_sequence
        for part in parts:
            part.put_stamp(Stamp(batch.stamp.producer_id, batch.stamp.producer_epoch, sequence, self.is_transactional))
            part.sequence_was_reset = batch.sequence_was_reset
            sequence = next_sequence(sequence, part.record_count)

    def leave_unresolved(self, batch: ProducerBatch) -> None:
        """A batch was given up that may have been written."""
        queue = batch.queue
        if batch.has_sequence and queue.identity == (batch.stamp.producer_id, batch.stamp.producer_epoch):
            queue.unresolved_sequence = next_sequence(batch.last_sequence, 1)
            self._unresolved[queue] = None

    def resolve(self) -> bool:
        """Looks whether the fate of unresolved sequences is clear. False if a transaction has a gap now."""
        if not self._unresolved:
            return True
        is_whole = True
        for queue in [queue for queue in self._unresolved if not queue.unacked]:
            del self._unresolved[queue]
            queue.unresolved_sequence = None
            if queue.next_sequence == next_sequence(queue.last_acked_sequence, 1):
                continue
            if self.is_transactional:
                is_whole = False
            else:
                self._want_epoch(queue)
        return is_whole

    # --- epochs ---

    def _want_epoch(self, queue: PartitionQueue) -> None:
        self.wants_epoch = True
        self._rewritten[queue] = None

    def may_take_epoch(self) -> bool:
        """Whether no batch that would be counted anew may be written already."""
        return all(_may_be_counted_anew(queue.unacked) for queue in self._rewritten)

    def known_as_written(self) -> list[ProducerBatch]:
        """Batches that would be counted anew, and are written."""
        return [batch for queue in self._rewritten for batch in queue.unacked if self.is_written(batch)]

    def perhaps_late(self) -> list[ProducerBatch]:
        """Batches that would be counted anew, and may be written under the old epoch before that.

        A broker takes them in order: the first that cannot come late keeps out those behind it.
        """
        found: list[ProducerBatch] = []
        for queue in self._rewritten:
            if queue.late_sequence is not None:
                found += takewhile(lambda batch: batch.may_come_late, queue.unacked)
        return found

    def take_epoch(self) -> bool:
        """Goes on with the next epoch, by our own choice. False if there is none: then a new id is needed."""
        assert not self.is_transactional, "the coordinator decides on the epoch of a transactional producer"
        self.wants_epoch = False
        if self.identity.producer_epoch == _MOST_EPOCH:
            self.identity = NOBODY
            return False
        self.identity = Identity(self.identity.producer_id, self.identity.producer_epoch + 1)
        self._rewrite()
        return True

    def become(self, identity: Identity) -> None:
        """A broker has given an id, or a coordinator an epoch."""
        self.identity = identity
        self._rewrite()

    def _rewrite(self) -> None:
        rewritten, self._rewritten = self._rewritten, {}
        for queue in rewritten:
            self.start_over(queue)
            self._unresolved.pop(queue, None)
            self.on_rewritten(queue)

    def forget_all(self, queues: "list[PartitionQueue]") -> None:
        """Nothing is on its way, and every partition begins at 0 under a new epoch."""
        self._unresolved.clear()
        self._rewritten.clear()
        self.wants_epoch = False
        for queue in queues:
            queue.unresolved_sequence = None
            queue.unacked.clear()

    def start_over(self, queue: PartitionQueue) -> None:
        """The batches that are not acknowledged are counted from 0, under the identity of now."""
        queue.forget_sequence()
        queue.identity = self.identity
        for batch in queue.unacked:
            self._restamp(batch, queue.next_sequence)
            batch.forget_attempts()
            batch.sequence_was_reset = True
            queue.next_sequence = next_sequence(queue.next_sequence, batch.record_count)

    def _close_up(self, queue: PartitionQueue, position: int, count: int) -> None:
        """A batch is not written: those behind it move up, so that there is no gap."""
        queue.next_sequence = next_sequence(queue.next_sequence, -count)
        for batch in queue.unacked[position:]:
            self._restamp(batch, next_sequence(batch.stamp.base_sequence, -count))
            batch.sequence_was_reset = True

    def _restamp(self, batch: ProducerBatch, base_sequence: int) -> None:
        batch.put_stamp(Stamp(*self.identity, base_sequence, self.is_transactional))

    def _is_next(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        last = queue.last_acked_sequence
        return batch.stamp.base_sequence == (0 if last == NO_SEQUENCE else next_sequence(last, 1))
