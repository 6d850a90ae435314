"""Aborted transactions and control batches (KIP-98)."""

from ottla.records.batch import assign
from ottla.records.builder import BatchBuilder
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.visibility import visible_batches

NOW = 1_700_000_000_000


def written(producer_id, transactional=True):
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=transactional)
    builder.append(NOW, None, b"v")
    return builder.build()


def ended(producer_id, committed):
    return build_end_transaction_marker(EndTransactionMarker(committed, 0), producer_id, 0, NOW)


def log(*parts):
    data = bytearray()
    for offset, part in enumerate(parts):
        assign(part, 0, offset, 0)
        data += part
    return bytes(data)


def shown(data, aborted=(), **options):
    return [header.base_offset for _, header in visible_batches(data, aborted, **options)]


def test_only_the_aborted_producers_records_are_left_out_and_only_up_to_its_marker():
    data = log(written(1), written(2), written(1), ended(1, False), written(1), ended(2, True), ended(1, True))
    assert shown(data) == [0, 1, 2, 4]
    assert shown(data, [(1, 0)]) == [1, 4]


def test_a_producers_second_aborted_transaction_is_left_out_too():
    data = log(written(1), ended(1, False), written(1), ended(1, True), written(1), ended(1, False))
    assert shown(data, [(1, 4), (1, 0)]) == [2]


def test_records_outside_transactions_are_always_shown():
    assert shown(log(written(1), written(1, transactional=False), ended(1, False)), [(1, 0)]) == [1]


def test_control_batches_are_shown_only_when_asked_for():
    data = log(written(1), ended(1, False))
    assert shown(data, keep_control=True) == [0, 1]
    assert shown(data, [(1, 0)], keep_control=True) == [1]


def test_a_cut_off_last_batch_is_left_out():
    data = log(written(1), written(1))
    assert shown(data[:-1]) == [0]
