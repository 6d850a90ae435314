"""The checker of `make chaos`: each anomaly in the smallest history that shows it, and what only looks like one."""

from io import StringIO
from itertools import count
from random import Random

import pytest

from ottla.testing.chaos.anomaly import AnomalyKind
from ottla.testing.chaos.cycle_anomalies import components
from ottla.testing.chaos.operations import Operation, Outcome, Polled, Sent, read_operations, write_operation
from ottla.testing.chaos.verdict import counts, judge, table

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


class Scene:
    """Writes a history, a line an operation; each takes a microsecond, ten after the one before."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def _add(self, process, outcome=OK, **given):
        now = 10 * len(self.operations)
        self.operations.append(
            Operation(process, outcome, given.pop("began", now), given.pop("ended", now + 1), **given)
        )

    def send(self, process, value, offset, outcome=OK, partition="p"):
        self._add(process, outcome, sends=(Sent(partition, value, offset),))

    def poll(self, process, *records, assigned=(), to_the_end=False):
        """Records are (offset, value) of partition p."""
        polls = tuple(Polled("p", offset, value) for offset, value in records)
        self._add(process, polls=polls, assigned=assigned, reads_to_the_end=to_the_end)

    def transaction(self, process, sends=(), polls=(), outcome=OK, **given):
        """Sends are (partition, value, offset), polls are (partition, offset, value)."""
        self._add(
            process,
            outcome,
            sends=tuple(Sent(*sent) for sent in sends),
            polls=tuple(Polled(*polled) for polled in polls),
            is_transaction=True,
            **given,
        )

    def found(self) -> list[str]:
        return [str(kind) for kind in judge(self.operations).found()]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_history_of_a_good_log_is_good(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.send("writer", 2, 1)
    scene.transaction("txn", [("p", 3, 2), ("q", 4, 0)], commit_began_us=25)
    scene.transaction("txn", [("p", 5, 4), ("q", 6, 2)], (), FAIL)
    scene.poll("reader", (0, 1), (1, 2))
    scene.poll("reader", (2, 3))  # 3 is a marker, 4 is aborted
    scene.transaction("copier", [("q", 7, 4)], [("p", 2, 3)])
    scene.poll("end", (0, 1), (1, 2), (2, 3), assigned=("p",), to_the_end=True)
    assert scene.found() == []
    assert judge(scene.operations).is_good


def test_an_empty_history_is_good_and_says_that_it_is_empty() -> None:
    assert judge([]).is_good
    assert counts([]).startswith("0 operations: 0 of 0 records acknowledged, 0 read, 0 transactions")


# Lost writes


def test_an_acknowledged_record_that_others_read_beyond_is_lost(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.send("writer", 2, 1)
    scene.send("writer", 3, 2)
    scene.poll("late", (2, 3), assigned=("p",))
    scene.poll("early", (0, 1), assigned=("p",))
    assert scene.found() == ["lost write"]


def test_an_acknowledged_record_behind_the_end_of_the_log_is_lost(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.send("writer", 2, 1)
    scene.poll("end", (0, 1), assigned=("p",), to_the_end=True)
    assert scene.found() == ["lost write"]


def test_a_record_that_nobody_has_come_to_yet_is_not_lost(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.send("writer", 2, 1)
    scene.poll("reader", (0, 1))
    assert scene.found() == []


@pytest.mark.parametrize("outcome", [FAIL, UNKNOWN])
def test_a_record_that_was_not_acknowledged_may_be_missing(scene: Scene, outcome: Outcome) -> None:
    scene.send("writer", 1, 0, outcome)
    scene.send("writer", 2, 1)
    scene.poll("end", (1, 2), assigned=("p",), to_the_end=True)
    assert scene.found() == []


def test_an_acknowledged_record_whose_place_another_took_is_lost_too(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.poll("end", (0, 2), assigned=("p",), to_the_end=True)
    assert scene.found() == ["lost write", "inconsistent offsets"]


def test_an_acknowledged_record_that_was_read_and_is_gone_in_the_end_is_lost(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.poll("reader", (0, 1))
    scene.poll("end", assigned=("p",), to_the_end=True)
    assert scene.found() == ["lost write"]


# Offsets


def test_an_offset_with_two_values_is_inconsistent(scene: Scene) -> None:
    scene.poll("one", (0, 1))
    scene.poll("other", (0, 2))
    assert scene.found() == ["inconsistent offsets"]


def test_a_value_at_two_offsets_is_a_duplicate(scene: Scene) -> None:
    scene.send("writer", 1, 0)
    scene.poll("reader", (0, 1), (1, 1))
    assert scene.found() == ["duplicate"]


def test_a_record_that_was_not_acknowledged_may_be_there_once(scene: Scene) -> None:
    scene.send("writer", 1, None, UNKNOWN)
    scene.poll("reader", (0, 1))
    assert scene.found() == []


# Reads


def test_a_record_of_an_aborted_transaction_is_not_to_be_read(scene: Scene) -> None:
    scene.transaction("txn", [("p", 1, 0)], outcome=FAIL)
    scene.poll("reader", (0, 1))
    assert scene.found() == ["aborted read"]


def test_a_record_of_a_transaction_of_unknown_outcome_may_be_read(scene: Scene) -> None:
    scene.transaction("txn", [("p", 1, 0)], outcome=UNKNOWN, commit_began_us=1)
    scene.poll("reader", (0, 1))
    assert scene.found() == []


def test_a_transaction_that_reads_its_own_record_reads_too_early(scene: Scene) -> None:
    scene.transaction("txn", [("p", 1, 0)], [("p", 0, 1)])
    assert scene.found() == ["precommitted read"]


def test_a_poll_that_ends_before_the_commit_began_reads_too_early(scene: Scene) -> None:
    scene.transaction("txn", [("p", 1, 0)], began=0, ended=100, commit_began_us=50)
    scene.poll("reader", (0, 1))
    assert scene.found() == ["precommitted read"]


def test_a_poll_that_ends_while_the_commit_runs_may_read(scene: Scene) -> None:
    scene.transaction("txn", [("p", 1, 0)], began=0, ended=100, commit_began_us=5)
    scene.poll("reader", (0, 1))
    assert scene.found() == []


# Order


def test_a_consumer_that_passes_over_a_record_skips(scene: Scene) -> None:
    scene.poll("good", (0, 1), (1, 2), (2, 3))
    scene.poll("bad", (0, 1))
    scene.poll("bad", (2, 3))
    assert scene.found() == ["poll skip"]


def test_a_consumer_skips_within_one_poll_too(scene: Scene) -> None:
    scene.poll("good", (0, 1), (1, 2), (2, 3))
    scene.poll("bad", (0, 1), (2, 3))
    assert scene.found() == ["poll skip"]


def test_a_consumer_may_pass_over_offsets_that_hold_no_record(scene: Scene) -> None:
    scene.transaction("txn", [("p", 9, 1)], outcome=FAIL)
    scene.poll("reader", (0, 1), (3, 2))
    assert scene.found() == []


@pytest.mark.parametrize("offset", [0, 1])
def test_a_consumer_that_reads_a_record_again_goes_back(scene: Scene, offset: int) -> None:
    scene.poll("reader", (0, 1), (1, 2))
    scene.poll("reader", (offset, offset + 1))
    assert scene.found() == ["nonmonotonic poll"]


def test_a_consumer_may_begin_anywhere_in_a_partition_that_it_is_assigned(scene: Scene) -> None:
    scene.poll("reader", (0, 1), (1, 2), (2, 3))
    scene.poll("reader", (0, 1), assigned=("p",))
    scene.poll("reader", (2, 3), assigned=("p",))
    assert scene.found() == []


def test_an_assignment_of_one_partition_excuses_nothing_in_another(scene: Scene) -> None:
    scene.poll("reader", (0, 1), (1, 2))
    scene.poll("reader", (0, 1), assigned=("q",))
    assert scene.found() == ["nonmonotonic poll"]


def test_a_producer_whose_later_record_is_earlier_goes_back(scene: Scene) -> None:
    scene.send("writer", 1, 5)
    scene.send("writer", 2, 4)
    assert scene.found() == ["nonmonotonic send"]


def test_producers_and_partitions_are_apart(scene: Scene) -> None:
    scene.send("writer", 1, 5)
    scene.send("other", 2, 4)
    scene.send("writer", 3, 0, partition="q")
    assert scene.found() == []


# Cycles


def test_transactions_that_write_around_each_other_are_g0_which_kafka_allows(scene: Scene) -> None:
    scene.transaction("one", [("p", 1, 0), ("q", 2, 1)])
    scene.transaction("other", [("p", 3, 1), ("q", 4, 0)])
    verdict = judge(scene.operations)
    assert verdict.found() == [AnomalyKind.G0]
    assert verdict.is_good
    assert not judge(scene.operations, allowed=()).is_good


def test_transactions_that_read_from_each_other_are_g1c(scene: Scene) -> None:
    scene.transaction("one", [("p", 1, 0)], [("q", 0, 2)])
    scene.transaction("other", [("q", 2, 0)], [("p", 0, 1)])
    assert scene.found() == ["G1c"]
    assert not judge(scene.operations).is_good


def test_a_circle_of_a_read_and_a_write_is_told_apart(scene: Scene) -> None:
    scene.transaction("one", [("p", 1, 1), ("q", 3, 0)])
    scene.transaction("other", [("p", 2, 0)], [("q", 0, 3)])
    assert scene.found() == ["G1c with writes"]


def test_a_chain_of_transactions_is_no_circle(scene: Scene) -> None:
    scene.transaction("one", [("p", 1, 0), ("q", 2, 0)])
    scene.transaction("two", [("p", 3, 1), ("q", 4, 1)], [("p", 0, 1)])
    scene.transaction("three", [("p", 5, 2), ("q", 6, 2)], [("q", 0, 2), ("q", 1, 4)])
    assert scene.found() == []


def test_an_aborted_transaction_is_in_no_circle(scene: Scene) -> None:
    scene.transaction("one", [("p", 1, 0)], [("q", 0, 2)])
    scene.transaction("other", [("q", 2, 0), ("q", 3, 1)], [("p", 0, 1)], FAIL)
    assert scene.found() == ["aborted read"]


def test_components_of_a_graph() -> None:
    graph = {1: [2], 2: [3], 3: [1, 4], 4: [5], 5: [4], 6: [1]}
    assert sorted(sorted(component) for component in components(graph)) == [[1, 2, 3], [4, 5]]
    ring = {number: [(number + 1) % 5000] for number in range(5000)}  # deeper than Python's own stack
    assert [len(component) for component in components(ring)] == [5000]


# The history, kept


def test_a_history_is_the_same_after_it_was_kept(scene: Scene) -> None:
    scene.send("writer", 1, None, UNKNOWN)
    scene.poll("reader", (0, 1), assigned=("p",), to_the_end=True)
    scene.transaction("txn", [("p", 2, 1)], [("p", 0, 1)], FAIL, commit_began_us=21)
    file = StringIO()
    for operation in scene.operations:
        write_operation(operation, file)
    file.seek(0)
    assert list(read_operations(file)) == scene.operations


def test_the_table_shows_what_was_found_with_its_evidence(scene: Scene) -> None:
    scene.send("writer", 1, 5)
    scene.send("writer", 2, 4)
    lines = list(table(judge(scene.operations)))
    at = next(index for index, line in enumerate(lines) if line.startswith("nonmonotonic send"))
    assert "FOUND" in lines[at]
    assert lines[at + 1].strip() == "writer has 2 at p 4, after it had 5"
    assert sum("FOUND" in line for line in lines) == 1


def a_long_history(operations: int) -> list[Operation]:
    """What four writers, a transactional one and two readers do in eight partitions, without a fault."""
    random, value = Random(1), count()
    logs: dict[str, list[int]] = {f"p{index}": [] for index in range(8)}
    positions = {(reader, name): 0 for reader in range(2) for name in logs}
    history = []
    for now in range(0, operations * 10, 10):
        sends, polls = [], []
        is_poll = random.random() < 0.3
        if is_poll:
            reader = random.randrange(2)
            name = random.choice(list(logs))
            start = positions[reader, name]
            polls = [Polled(name, start + i, one) for i, one in enumerate(logs[name][start : start + 10])]
            positions[reader, name] += len(polls)
        else:
            for _ in range(random.choice((1, 1, 3))):
                name = random.choice(list(logs))
                logs[name].append(next(value))
                sends.append(Sent(name, logs[name][-1], len(logs[name]) - 1))
        process = f"reader-{reader}" if is_poll else "writer"
        history.append(Operation(process, OK, now, now + 5, tuple(sends), tuple(polls)))
    return history


@pytest.mark.slow
def test_a_long_history_without_a_fault_is_good() -> None:
    assert judge(a_long_history(20_000)).found() == []
