"""Every batch once and in order: what a partition asks of its producers (KIP-98, KIP-360, KIP-890)."""

import pytest

from ottla.log.producer_state import AppendOrigin, NotedBatch, ProducerRecord, ProducerState
from ottla.records.batch import BatchHeader
from ottla.records.control import EndTransactionMarker
from ottla.wire.errors import ErrorCode
from tests.unit.log.partition_logs import NOW_MS, header_of, in_transaction, marker, produced

CLIENT, COORDINATOR = AppendOrigin.CLIENT, AppendOrigin.COORDINATOR
LAST_SEQUENCE = 2**31 - 1
COMMIT, ABORT = EndTransactionMarker(True, 0), EndTransactionMarker(False, 0)


class Partition:
    """Producer state with a log end offset, which is all of a log that it needs."""

    def __init__(self) -> None:
        self.state = ProducerState()
        self.end = 0

    def check(self, header: BatchHeader, origin: AppendOrigin = CLIENT) -> ErrorCode | NotedBatch:
        error, noted = self.state.check(header, origin)
        if self.state.sender_of_next(header) is not None:
            assert (error, noted) == (ErrorCode.NONE, None), "what needs no check would not pass it"
        return noted or error

    def take(self, data: bytearray) -> None:
        header = header_of(data, base_offset=self.end)
        assert self.check(header) is ErrorCode.NONE
        self.state.note(header)
        self.end = header.next_offset

    def end_transaction(self, decision: EndTransactionMarker, producer_id: int, epoch: int = 0) -> None:
        header = header_of(marker(producer_id, committed=decision.committed, epoch=epoch), base_offset=self.end)
        assert self.state.check_marker(header, decision) is ErrorCode.NONE
        self.state.note_marker(header, decision)
        self.end += 1


@pytest.fixture
def partition() -> Partition:
    return Partition()


class TestSequences:
    def test_an_unknown_producer_may_begin_anywhere(self, partition: Partition) -> None:
        """Its earlier batches may have been deleted (KIP-360)."""
        assert partition.check(header_of(produced(7, 4711))) is ErrorCode.NONE

    def test_the_next_batch_follows_the_last(self, partition: Partition) -> None:
        partition.take(produced(7, 0, count=3))
        partition.take(produced(7, 3))
        assert partition.check(header_of(produced(7, 4))) is ErrorCode.NONE

    def test_the_next_plain_batch_needs_no_further_check(self, partition: Partition) -> None:
        assert partition.state.sender_of_next(header_of(produced(7, 0))) is None
        partition.take(produced(7, LAST_SEQUENCE - 1))
        partition.take(produced(7, LAST_SEQUENCE))
        producer = partition.state.sender_of_next(header_of(produced(7, 0)))
        assert producer is partition.state.get(7)
        for other in (
            produced(7, LAST_SEQUENCE),
            produced(7, 1),
            produced(7, 0, epoch=1),
            in_transaction(7, 0),
            produced(8, 0),
        ):
            assert partition.state.sender_of_next(header_of(other)) is None

    @pytest.mark.parametrize("sequence", [1, 2, 4, 100])
    def test_a_gap_is_out_of_order(self, partition: Partition, sequence: int) -> None:
        partition.take(produced(7, 0, count=3))
        assert partition.check(header_of(produced(7, sequence))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_sequences_wrap_from_two_to_the_31_less_one_to_zero(self, partition: Partition) -> None:
        partition.take(produced(7, LAST_SEQUENCE))
        partition.take(produced(7, 0))
        assert partition.check(header_of(produced(7, 1))) is ErrorCode.NONE

    def test_a_batch_may_span_the_wrap(self, partition: Partition) -> None:
        spanning = produced(7, LAST_SEQUENCE - 1, count=4)
        partition.take(spanning)
        noted = partition.check(header_of(spanning))
        assert isinstance(noted, NotedBatch)
        assert (noted.first_sequence, noted.last_sequence) == (LAST_SEQUENCE - 1, 1)
        assert partition.check(header_of(produced(7, 2))) is ErrorCode.NONE

    def test_a_coordinators_batches_have_no_order(self, partition: Partition) -> None:
        partition.take(produced(7, 0))
        assert partition.check(header_of(produced(7, 9)), COORDINATOR) is ErrorCode.NONE


class TestRepetitions:
    def test_a_repetition_has_the_offsets_of_the_first_time(self, partition: Partition) -> None:
        partition.take(produced(1, 0, count=10))
        partition.take(produced(7, 0, count=3))
        noted = partition.check(header_of(produced(7, 0, count=3)))
        assert isinstance(noted, NotedBatch)
        assert (noted.first_offset, noted.last_offset, noted.timestamp) == (10, 12, NOW_MS)

    def test_the_last_five_batches_are_known(self, partition: Partition) -> None:
        for sequence in range(6):
            partition.take(produced(7, sequence))
        assert [type(partition.check(header_of(produced(7, sequence)))) for sequence in range(6)] == [
            ErrorCode,
            *[NotedBatch] * 5,
        ]
        assert partition.check(header_of(produced(7, 0))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_a_batch_with_other_bounds_is_no_repetition(self, partition: Partition) -> None:
        partition.take(produced(7, 0, count=3))
        for other in (produced(7, 0, count=2), produced(7, 1, count=2), produced(7, 0, count=4)):
            assert partition.check(header_of(other)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_the_same_sequence_of_another_producer_is_no_repetition(self, partition: Partition) -> None:
        partition.take(produced(7, 0))
        assert partition.check(header_of(produced(8, 0))) is ErrorCode.NONE


class TestEpochs:
    def test_a_new_epoch_starts_at_zero(self, partition: Partition) -> None:
        partition.take(produced(7, 0, count=5))
        assert partition.check(header_of(produced(7, 5, epoch=1))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        partition.take(produced(7, 0, epoch=1))

    def test_an_older_epoch_is_a_zombie(self, partition: Partition) -> None:
        partition.take(produced(7, 0, epoch=1))
        assert partition.check(header_of(produced(7, 0, epoch=0))) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert partition.check(header_of(produced(7, 1, epoch=0)), COORDINATOR) is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_a_zombies_batch_is_no_repetition_of_the_new_epochs(self, partition: Partition) -> None:
        partition.take(produced(7, 0, epoch=0))
        partition.take(produced(7, 0, epoch=1))
        assert partition.check(header_of(produced(7, 0, epoch=0))) is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_a_marker_that_raises_the_epoch_fences_the_one_before(self, partition: Partition) -> None:
        """KIP-890: the end of a transaction carries the next epoch."""
        partition.take(in_transaction(7, 0))
        partition.end_transaction(COMMIT, 7, epoch=1)
        assert partition.check(header_of(in_transaction(7, 1, epoch=0))) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert partition.check(header_of(in_transaction(7, 1, epoch=1))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert partition.check(header_of(in_transaction(7, 0, epoch=1))) is ErrorCode.NONE

    def test_a_zombie_coordinator_is_fenced(self, partition: Partition) -> None:
        partition.take(in_transaction(7, 0))
        newer = EndTransactionMarker(committed=True, coordinator_epoch=5)
        partition.end_transaction(newer, 7)
        partition.take(in_transaction(7, 1))
        header = header_of(marker(7, committed=False))
        older = EndTransactionMarker(committed=False, coordinator_epoch=4)
        assert partition.state.check_marker(header, older) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
        assert partition.state.check_marker(header, newer) is ErrorCode.NONE

    def test_a_zombies_marker_is_refused(self, partition: Partition) -> None:
        partition.take(in_transaction(7, 0, epoch=3))
        header = header_of(marker(7, committed=True, epoch=2))
        assert partition.state.check_marker(header, COMMIT) is ErrorCode.INVALID_PRODUCER_EPOCH


class TestTransactions:
    def test_a_transaction_begins_with_its_first_batch_and_ends_with_its_marker(self, partition: Partition) -> None:
        partition.take(produced(1, 0))
        partition.take(in_transaction(7, 0))
        partition.take(in_transaction(7, 1))
        assert partition.state.first_undecided_offset == 1
        partition.end_transaction(COMMIT, 7)
        assert partition.state.first_undecided_offset is None

    def test_the_oldest_of_several_open_ones_counts(self, partition: Partition) -> None:
        for producer_id in (7, 8, 9):
            partition.take(in_transaction(producer_id, 0))
        partition.end_transaction(COMMIT, 8)
        assert partition.state.first_undecided_offset == 0
        partition.end_transaction(COMMIT, 7)
        assert partition.state.first_undecided_offset == 2

    def test_a_decided_transaction_is_unstable_until_its_marker_is_replicated(self, partition: Partition) -> None:
        partition.take(in_transaction(7, 0))
        partition.end_transaction(COMMIT, 7)
        partition.state.on_high_watermark(1)
        assert partition.state.first_unstable_offset == 0
        partition.state.on_high_watermark(2)
        assert partition.state.first_unstable_offset is None

    def test_a_plain_batch_within_an_open_transaction_is_refused(self, partition: Partition) -> None:
        partition.take(in_transaction(7, 0))
        assert partition.check(header_of(produced(7, 1))) is ErrorCode.INVALID_TXN_STATE
        partition.end_transaction(COMMIT, 7)
        assert partition.check(header_of(produced(7, 1))) is ErrorCode.NONE

    def test_a_marker_without_a_transaction_completes_nothing(self, partition: Partition) -> None:
        assert partition.state.note_marker(header_of(marker(7, committed=False)), ABORT) is None
        producer = partition.state.get(7)
        assert producer is not None
        assert (producer.coordinator_epoch, producer.last_sequence) == (0, -1)

    def test_an_aborts_entry_tells_how_far_the_log_is_stable_then(self, partition: Partition) -> None:
        partition.take(in_transaction(7, 0))
        partition.take(in_transaction(8, 0))
        first = partition.state.note_marker(header_of(marker(7, committed=False), base_offset=2), ABORT)
        assert first is not None
        assert partition.state.aborted(first) == (7, 0, 2, 1)
        second = partition.state.note_marker(header_of(marker(8, committed=False), base_offset=3), ABORT)
        assert second is not None
        assert partition.state.aborted(second) == (8, 1, 3, 4)


class TestKeeping:
    def test_silent_producers_are_forgotten_but_for_those_with_an_open_transaction(self, partition: Partition) -> None:
        partition.take(produced(1, 0, timestamp=1000))
        partition.take(produced(2, 0, timestamp=1001))
        partition.take(produced(3, 0, timestamp=1000, transactional=True))
        partition.state.expire(silent_since_ms=1000)
        assert sorted(producer.producer_id for producer in partition.state) == [2, 3]

    def test_a_forgotten_producer_may_go_on_where_it_was(self, partition: Partition) -> None:
        partition.take(produced(7, 0, timestamp=1000))
        partition.state.expire(1000)
        assert partition.check(header_of(produced(7, 1))) is ErrorCode.NONE

    def test_what_a_snapshot_keeps_is_enough_to_go_on(self, partition: Partition) -> None:
        partition.take(produced(1, 0, count=3))
        partition.take(in_transaction(7, 0, epoch=2))
        partition.take(in_transaction(8, 0))
        restored = Partition()
        restored.state.load(iter(list(partition.state.records())), silent_since_ms=0)
        assert isinstance(restored.check(header_of(produced(1, 0, count=3))), NotedBatch)
        assert restored.check(header_of(produced(1, 4))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert restored.check(header_of(in_transaction(7, 1, epoch=1))) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert restored.state.first_undecided_offset == 3
        assert list(restored.state.records()) == list(partition.state.records())

    def test_open_transactions_are_loaded_in_the_order_of_their_offsets(self) -> None:
        """A snapshot lists producers in any order; the oldest transaction is what holds readers back."""
        state = ProducerState()
        record = ProducerRecord(7, 0, 0, 10, 0, NOW_MS, -1, 10)
        state.load(iter([record, record._replace(producer_id=8, current_txn_first_offset=5)]), silent_since_ms=0)
        assert state.first_undecided_offset == 5
        assert state.first_unstable_offset == 5

    def test_a_producer_known_only_by_a_marker_is_kept_without_a_batch(self, partition: Partition) -> None:
        partition.end_transaction(COMMIT, 7, epoch=4)
        [record] = partition.state.records()
        assert record == ProducerRecord(7, 4, -1, -1, 0, NOW_MS, 0, -1)
        restored = Partition()
        restored.state.load(iter([record]), silent_since_ms=0)
        assert restored.check(header_of(produced(7, 0, epoch=4))) is ErrorCode.NONE
        assert restored.check(header_of(produced(7, 3, epoch=4))) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
