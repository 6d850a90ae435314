"""What the history of a simulation takes for promised, and which records may be gone."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.testing.sim.workloads.history import Care, Ending, Fate, History

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize("acks", [0, 1])
def test_what_only_a_leader_has_taken_is_not_promised(acks: int) -> None:
    history = History()
    record = history.send("shop", 1, ORDERS, care=Care(acks, is_once=False))
    history.acknowledge(record, None if acks == 0 else 7)
    assert record.fate is Fate.TAKEN
    assert not record.must_be_there


def test_what_all_replicas_have_is_promised() -> None:
    history = History()
    record = history.send("shop", 1, ORDERS)
    history.acknowledge(record, 7)
    assert (record.fate, record.offset, record.must_be_there) == (Fate.ACKNOWLEDGED, 7, True)


def test_a_record_of_a_transaction_is_promised_when_that_is_committed() -> None:
    history = History()
    transaction = history.begin_transaction("sale")
    record = history.send("shop", 1, ORDERS, transaction)
    history.acknowledge(record, 7)
    assert not record.must_be_there
    assert record.must_be_hidden
    transaction.ending = Ending.COMMITTED
    assert record.must_be_there
    assert not record.must_be_hidden


def test_padding_makes_a_value_longer_and_leaves_it_unique() -> None:
    history = History()
    first, second = (history.send("shop", number, ORDERS, padding=bytes(100)) for number in (1, 2))
    assert len(first.value) > 100
    assert first.value != second.value
    assert history.sent[first.value] is first


def test_what_was_said_to_be_deleted_only_grows() -> None:
    history = History()
    for offset in (5, 9, 3):
        history.note_deletion_asked(ORDERS, offset)
        history.note_deleted(ORDERS, offset - 1)
    assert history.may_be_deleted[ORDERS] == 9
    assert history.is_deleted[ORDERS] == 8
