"""The judge of the workload finds each kind of difference, and nothing in what is as it was sent."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.base.ids import TopicPartition
from ottla.records.header import Compression
from ottla.testing.workload.ledger import Ending, Fate, Ledger, SeenRecord, SentBatch, SentTransaction
from ottla.testing.workload.plans import BatchPlan, LaneKind, LanePlan, RecordPlan, TopicPlan

PLACE = TopicPartition("t", 0)
LANE = LanePlan("lane", LaneKind.PLAIN, False, ())
TOPIC = TopicPlan("t", 1, {})
COMPACTED = TopicPlan("t", 1, {"cleanup.policy": "compact"})


def plan(*numbers: int, key: bytes = b"k", topic: TopicPlan = TOPIC) -> BatchPlan:
    records = tuple(RecordPlan(1000 + number, key, number.to_bytes(4) + b"value", (("h", b"1"),)) for number in numbers)
    return BatchPlan(numbers[0], topic, 0, Compression.NONE, records)


def acknowledged(
    ledger: Ledger, batch: BatchPlan, offset: int, transaction: SentTransaction | None = None
) -> SentBatch:
    sent = ledger.note(LANE, batch, transaction)
    ledger.acknowledge(sent, offset, -1)
    return sent


def seen(batch: BatchPlan, offset: int) -> list[SeenRecord]:
    return [
        SeenRecord(offset + index, one.timestamp, one.key, one.value, one.headers)
        for index, one in enumerate(batch.records)
    ]


def test_what_is_as_it_was_sent_is_no_difference() -> None:
    ledger = Ledger()
    acknowledged(ledger, plan(1, 2), 0)
    unanswered = ledger.note(LANE, plan(3))
    unanswered.fate = Fate.UNANSWERED
    counts = ledger.compare("r", PLACE, [*seen(plan(1, 2), 0), *seen(plan(3), 2)], committed_only=True)
    ledger.check_orders()
    ledger.check_gaps(PLACE, [0, 1, 2], 3)
    assert not ledger.differences
    assert counts["records"] == 3
    assert unanswered.base_offset == 2


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (lambda records: [records[0]._replace(value=b"\0\0\0\1other"), records[1]], "value"),
        (lambda records: [records[0]._replace(key=None), records[1]], "key"),
        (lambda records: [records[0]._replace(timestamp=5), records[1]], "timestamp"),
        (lambda records: [records[0]._replace(headers=()), records[1]], "headers"),
        (lambda records: records[:1], "missing"),
        (lambda records: [*records, records[1]._replace(offset=2)], "twice"),
        (lambda records: [*records, records[1]._replace(offset=2, value=b"\0\0\1\1")], "never sent"),
        (lambda records: [one._replace(offset=one.offset + 1) for one in records], "not its place"),
        (lambda records: records[::-1], "comes after"),
    ],
)
def test_each_difference_is_told(changed: Callable[[list[SeenRecord]], list[SeenRecord]], told: str) -> None:
    ledger = Ledger()
    acknowledged(ledger, plan(1, 2), 0)
    ledger.compare("r", PLACE, changed(seen(plan(1, 2), 0)), committed_only=True)
    assert told in ledger.differences[0]


@pytest.mark.parametrize(
    ("ending", "committed_only", "is_shown", "told"),
    [
        (Ending.ABORTED, True, True, "not committed"),
        (Ending.ABORTED, True, False, ""),
        (Ending.ABORTED, False, True, ""),
        (Ending.ABORTED, False, False, "missing"),
        (Ending.COMMITTED, True, True, ""),
        (Ending.COMMITTED, True, False, "missing"),
    ],
)
def test_who_sees_records_of_transactions(ending: Ending, committed_only: bool, is_shown: bool, told: str) -> None:
    ledger = Ledger()
    transaction = ledger.begin()
    acknowledged(ledger, plan(1), 0, transaction)
    transaction.ending = ending
    ledger.compare("r", PLACE, seen(plan(1), 0) if is_shown else [], committed_only=committed_only)
    assert bool(ledger.differences) == bool(told)
    assert told in "".join(ledger.differences)


def test_a_refused_batch_is_not_there() -> None:
    ledger = Ledger()
    ledger.note(LANE, plan(1)).fate = Fate.REFUSED
    ledger.compare("r", PLACE, [], committed_only=False)
    assert not ledger.differences
    ledger.compare("r", PLACE, seen(plan(1), 0), committed_only=False)
    assert "refused" in ledger.differences[0]


def test_a_repetition_has_the_offset_of_the_first() -> None:
    ledger = Ledger()
    sent = acknowledged(ledger, plan(1), 0)
    ledger.acknowledge(sent, 0, -1)
    assert not ledger.differences
    ledger.acknowledge(sent, 1, -1)
    assert "repetition" in ledger.differences[0]


def test_a_connections_batches_keep_their_order() -> None:
    ledger = Ledger()
    acknowledged(ledger, plan(1), 1)
    acknowledged(ledger, plan(2), 0)
    ledger.check_orders()
    assert "out of order" in ledger.differences[0]


def test_offsets_without_a_record_are_those_of_markers() -> None:
    ledger = Ledger()
    transaction = ledger.begin()
    transaction.places = {PLACE}
    acknowledged(ledger, plan(1), 0, transaction)
    transaction.ending = Ending.COMMITTED
    ledger.check_gaps(PLACE, [0], 2)
    assert not ledger.differences
    ledger.check_gaps(PLACE, [0], 1)
    ledger.check_gaps(PLACE, [0], 3)
    assert len(ledger.differences) == 2


def test_compaction_may_remove_what_a_later_record_of_the_key_replaces() -> None:
    ledger = Ledger()
    acknowledged(ledger, plan(1, topic=COMPACTED), 0)
    acknowledged(ledger, plan(2, topic=COMPACTED), 1)
    acknowledged(ledger, plan(3, topic=COMPACTED, key=b"other"), 2)
    kept = [*seen(plan(2), 1), *seen(plan(3, key=b"other"), 2)]
    assert ledger.compare("r", PLACE, kept, committed_only=True)["gone"] == 1
    assert not ledger.differences
    ledger.compare("r", PLACE, kept[1:], committed_only=True)
    assert "offset 1 is missing" in ledger.differences[0]


def test_log_append_time_is_the_one_that_was_told() -> None:
    stamped = replace(TOPIC, settings={"message.timestamp.type": "LogAppendTime"})
    ledger = Ledger()
    sent = ledger.note(LANE, plan(1, topic=stamped))
    ledger.acknowledge(sent, 0, 77)
    (record,) = seen(plan(1), 0)
    ledger.compare("r", PLACE, [record._replace(timestamp=77)], committed_only=True)
    assert not ledger.differences
    ledger.compare("r", PLACE, [record], committed_only=True)
    assert "timestamp" in ledger.differences[0]


# --- where nodes are killed ---


def test_what_may_be_lost_is_missed_only_after_it_was_seen() -> None:
    ledger = Ledger()
    gone, kept = (acknowledged(ledger, plan(number), offset) for number, offset in ((1, 0), (2, 0)))
    gone.may_be_lost = kept.may_be_lost = True
    ledger.compare("r", PLACE, seen(plan(2), 0), committed_only=False)
    assert not ledger.differences
    ledger.settle()
    ledger.compare("r", PLACE, [], committed_only=False)
    assert len(ledger.differences) == 1
    assert "is missing: batch 2" in ledger.differences[0]


def test_what_was_not_there_when_all_was_read_is_not_there_later() -> None:
    ledger = Ledger()
    ledger.note(LANE, plan(1))
    ledger.compare("r", PLACE, [], committed_only=False)
    ledger.settle()
    ledger.compare("r", PLACE, seen(plan(1), 0), committed_only=False)
    assert "was refused" in ledger.differences[0]


def test_a_record_that_nobody_was_told_of_may_have_replaced_one_of_its_key() -> None:
    ledger = Ledger()
    acknowledged(ledger, plan(1, topic=COMPACTED), 0)
    ledger.note(LANE, plan(2, topic=COMPACTED))
    assert ledger.compare("r", PLACE, seen(plan(2), 1), committed_only=True)["gone"] == 1
    assert not ledger.differences


def test_a_marker_may_be_written_again_when_its_coordinator_was_killed() -> None:
    ledger = Ledger()
    transaction = ledger.begin()
    transaction.places, transaction.ending = {PLACE}, Ending.COMMITTED
    acknowledged(ledger, plan(1), 0, transaction)
    ledger.check_gaps(PLACE, [0], 3, has_kills=True)
    assert not ledger.differences
    ledger.check_gaps(PLACE, [0], 3)
    assert len(ledger.differences) == 1
