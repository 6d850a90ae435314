"""EndTxn in the older protocol and in the newer one (KIP-98, KIP-890), and what coordinators do by themselves."""

from itertools import repeat

import pytest

from ottla.machines.transaction.listing import TransactionFilter
from ottla.machines.transaction.states import TransactionState
from ottla.wire.errors import ErrorCode
from tests.unit.machines.transaction.transaction_coordinators import NEW, OLD, T0, T1, U0, Coordinator, coordinator_at

BOTH = pytest.mark.parametrize("version", [OLD, NEW])
P = (100, 0)
"""The producer that an id has after its first InitProducerId."""


def opened(version: int = NEW, *, timeout_ms: int = 60_000) -> Coordinator:
    coordinator = Coordinator(transaction_version=version)
    coordinator.init(timeout_ms=timeout_ms)
    assert coordinator.add(P, T0, version=version) == "NONE"
    return coordinator


# The older protocol


@pytest.mark.parametrize(("committed", "word"), [(True, "Commit"), (False, "Abort")])
def test_in_the_older_protocol_a_transaction_ends_in_its_epoch(committed: bool, word: str) -> None:
    coordinator = opened(OLD)
    assert coordinator.end(P, committed, OLD) == ("NONE", 100, 0)
    assert coordinator.state() == f"Prepare{word} 100/0"
    [end] = coordinator.write_markers()
    assert (end.producer_epoch, end.committed, end.transaction_version) == (0, committed, 0)
    assert coordinator.state() == f"Complete{word} 100/0"


def test_in_the_older_protocol_a_repeated_end_is_answered_by_the_state() -> None:
    coordinator = opened(OLD)
    assert coordinator.commit(P, OLD)[0] == "NONE"
    assert coordinator.commit(P, OLD)[0] == "CONCURRENT_TRANSACTIONS"
    assert coordinator.abort(P, OLD)[0] == "CONCURRENT_TRANSACTIONS"
    coordinator.write_markers()
    assert coordinator.commit(P, OLD)[0] == "NONE"
    assert coordinator.abort(P, OLD)[0] == "INVALID_TXN_STATE"


def test_in_the_older_protocol_nothing_cannot_be_ended() -> None:
    coordinator = Coordinator(transaction_version=OLD)
    coordinator.init()
    assert coordinator.abort(P, OLD)[0] == "INVALID_TXN_STATE"


# The newer protocol


@pytest.mark.parametrize(("committed", "word"), [(True, "Commit"), (False, "Abort")])
def test_in_the_newer_protocol_every_end_bumps_the_epoch_and_markers_carry_it(committed: bool, word: str) -> None:
    coordinator = opened()
    assert coordinator.end(P, committed) == ("NONE", 100, 1)
    [end] = coordinator.write_markers()
    assert (end.producer_epoch, end.committed, end.transaction_version) == (1, committed, 2)
    assert coordinator.state() == f"Complete{word} 100/1"
    assert coordinator.add((100, 1), T1) == "NONE"
    assert coordinator["x"].partitions == {T1}


def test_in_the_newer_protocol_a_lost_answer_is_given_again() -> None:
    coordinator = opened()
    coordinator.commit(P)
    assert coordinator.commit(P)[0] == "CONCURRENT_TRANSACTIONS"
    assert coordinator.abort(P)[0] == "CONCURRENT_TRANSACTIONS"
    coordinator.write_markers()
    assert coordinator.commit(P) == ("NONE", 100, 1)
    assert coordinator.abort(P)[0] == "INVALID_TXN_STATE"


@pytest.mark.parametrize("committed", [True, False])
def test_the_end_of_the_next_transaction_is_asked_for_again_while_markers_of_the_one_before_are_on_their_way(
    committed: bool,
) -> None:
    """It reached nothing, so that no write has waited for the markers. Fenced, the producer would have to give up."""
    coordinator = opened()
    assert coordinator.commit(P) == ("NONE", 100, 1)
    assert coordinator.end((100, 1), committed) == ("CONCURRENT_TRANSACTIONS", -1, -1)
    assert coordinator.state() == "PrepareCommit 100/1"
    coordinator.write_markers()
    assert coordinator.abort((100, 1)) == ("NONE", 100, 2)


def test_in_the_newer_protocol_a_transaction_that_reached_nothing_can_be_aborted() -> None:
    coordinator = Coordinator()
    coordinator.init()
    assert coordinator.commit(P)[0] == "INVALID_TXN_STATE"
    assert coordinator.abort(P) == ("NONE", 100, 1)
    [end] = coordinator.write_markers()
    assert end.partitions == frozenset()
    assert coordinator.abort((100, 1)) == ("NONE", 100, 2)
    coordinator.write_markers()
    assert coordinator.commit((100, 2))[0] == "INVALID_TXN_STATE"


def test_kafka_17754_a_late_end_does_not_end_the_next_transaction() -> None:
    coordinator = opened()
    coordinator.commit(P)
    coordinator.write_markers()
    coordinator.add((100, 1), T1)
    assert coordinator.commit(P)[0] == "PRODUCER_FENCED"
    assert coordinator.abort(P)[0] == "PRODUCER_FENCED"
    assert coordinator.state() == "Ongoing 100/1"


def test_kafka_17754_a_late_write_does_not_join_the_next_transaction() -> None:
    coordinator = opened()
    coordinator.commit(P)
    assert coordinator.add(P, U0) == "CONCURRENT_TRANSACTIONS"
    coordinator.write_markers()
    assert coordinator.add(P, U0) == "PRODUCER_FENCED"
    assert coordinator.machine.verify_partitions("x", *P, [T0]).error is ErrorCode.PRODUCER_FENCED


def test_a_commit_that_lost_against_the_timeout_is_told_so() -> None:
    coordinator = opened()
    coordinator.now_ms += 60_001
    coordinator.fire("abort_timed_out")
    assert coordinator.commit(P)[0] == "CONCURRENT_TRANSACTIONS"
    coordinator.write_markers()
    assert coordinator.commit(P)[0] == "INVALID_TXN_STATE"
    assert coordinator.abort(P) == ("NONE", 100, 1)


def test_producer_epoch_overflow_the_new_id_waits_for_the_markers_of_the_old_one() -> None:
    coordinator = coordinator_at(32766)
    coordinator.add((7, 32766), T0)
    assert coordinator.commit((7, 32766)) == ("NONE", 100, 0)
    assert coordinator["x"].next_producer_id == 100
    coordinator.restart()
    [end] = coordinator.write_markers()
    assert (end.producer_id, end.producer_epoch) == (7, 32767)
    assert coordinator.state() == "CompleteCommit 100/0"
    assert coordinator.commit((7, 32766)) == ("NONE", 100, 0), "its answer was lost"
    assert coordinator.init(has=(7, 32766)) == (ErrorCode.NONE, 100, 0)
    assert coordinator.add((100, 0), T0) == "NONE"
    assert coordinator.commit((7, 32766))[0] == "INVALID_PRODUCER_ID_MAPPING"


def test_without_a_producer_id_an_exhausted_epoch_does_not_end_yet() -> None:
    coordinator = coordinator_at(32766)
    coordinator.add((7, 32766), T0)
    coordinator.ids = repeat(None)
    assert coordinator.commit((7, 32766))[0] == "COORDINATOR_LOAD_IN_PROGRESS"
    assert coordinator.state() == "Ongoing 7/32766"


# Both


@BOTH
def test_who_is_not_the_producer_ends_nothing(version: int) -> None:
    coordinator = opened(version)
    assert coordinator.end(P, True, version, name="unknown")[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert coordinator.commit((55, 0), version)[0] == "INVALID_PRODUCER_ID_MAPPING"
    assert coordinator.commit((100, 1), version)[0] == "PRODUCER_FENCED"
    assert coordinator.state() == "Ongoing 100/0"


@BOTH
def test_partitions_are_added_once_and_by_their_producer(version: int) -> None:
    coordinator = opened(version)
    written = len(coordinator.log)
    assert coordinator.add(P, T0, version=version) == "NONE"
    assert len(coordinator.log) == written, "nothing new, so nothing is written"
    assert coordinator.add(P, T1, U0, version=version) == "NONE"
    assert coordinator["x"].partitions == {T0, T1, U0}
    assert coordinator.add((55, 0), T1, version=version) == "INVALID_PRODUCER_ID_MAPPING"
    coordinator.commit(P, version)
    epoch = coordinator["x"].producer_epoch
    assert coordinator.add((100, epoch), T1, version=version) == "CONCURRENT_TRANSACTIONS"


def test_verification_tells_which_partitions_are_not_in_the_transaction() -> None:
    coordinator = opened(OLD)
    assert coordinator.machine.verify_partitions("x", *P, [T0, T1]) == (ErrorCode.NONE, {T1})
    assert coordinator.machine.verify_partitions("y", *P, [T0]).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    coordinator.commit(P, OLD)
    assert coordinator.machine.verify_partitions("x", *P, [T0]).error is ErrorCode.CONCURRENT_TRANSACTIONS


@BOTH
def test_a_transaction_is_aborted_after_its_timeout_and_not_before(version: int) -> None:
    coordinator = opened(version, timeout_ms=5_000)
    coordinator.now_ms += 5_000
    coordinator.fire("abort_timed_out")
    assert coordinator.state() == "Ongoing 100/0"
    coordinator.now_ms += 1
    coordinator.fire("abort_timed_out")
    assert coordinator.state() == "PrepareAbort 100/1"
    [end] = coordinator.write_markers()
    assert not end.committed
    assert coordinator.add(P, T0, version=version) == "PRODUCER_FENCED"


@BOTH
def test_markers_survive_restarts_half_way(version: int) -> None:
    coordinator = opened(version)
    coordinator.add(P, T1, version=version)
    coordinator.commit(P, version)
    coordinator.restart()
    coordinator.restart()
    [end] = coordinator.markers.told
    assert (end.committed, end.partitions) == (True, {T0, T1})
    coordinator.write_markers()
    assert coordinator["x"].state is TransactionState.COMPLETE_COMMIT
    coordinator.restart()
    assert not coordinator.markers.told


def test_markers_that_were_forgotten_are_asked_for_again() -> None:
    coordinator = opened()
    coordinator.commit(P)
    coordinator.markers.told.clear()
    coordinator.fire("abort_timed_out")
    assert [end.transactional_id for end in coordinator.write_markers()] == ["x"]


@BOTH
def test_a_completion_of_an_earlier_end_completes_nothing(version: int) -> None:
    coordinator = opened(version)
    _, *producer = coordinator.commit(P, version)
    [first] = coordinator.write_markers()
    coordinator.now_ms += 1
    coordinator.add((producer[0], producer[1]), T0, version=version)
    coordinator.commit((producer[0], producer[1]), version)
    coordinator.carry_out(coordinator.machine.complete(first, coordinator.now_ms))
    assert coordinator["x"].state is TransactionState.PREPARE_COMMIT


@BOTH
def test_ids_that_nobody_uses_expire_and_open_transactions_never(version: int) -> None:
    coordinator = opened(version)
    coordinator.init("idle")
    coordinator.now_ms += 604_800_000
    coordinator.fire("expire_ids")
    assert set(coordinator.machine.transactions) == {"x"}
    coordinator.commit(P, version)
    coordinator.write_markers()
    coordinator.now_ms += 604_799_999
    coordinator.fire("expire_ids")
    assert set(coordinator.machine.transactions) == {"x"}
    coordinator.now_ms += 1
    coordinator.fire("expire_ids")
    assert not coordinator.machine.transactions
    assert coordinator.commit(P, version)[0] == "INVALID_PRODUCER_ID_MAPPING"


def test_transactions_are_listed_by_state_producer_age_and_name() -> None:
    coordinator = opened()
    coordinator.now_ms += 500
    coordinator.init("y")
    coordinator.add((101, 0), T0, name="y")

    def names(**asked: object) -> list[str]:
        listed = coordinator.machine.listed(TransactionFilter(**asked), coordinator.now_ms)  # type: ignore[arg-type]
        return [name for name, _ in listed]

    assert names() == ["x", "y"]
    assert names(states=frozenset({TransactionState.EMPTY})) == []
    assert names(states=frozenset()) == []
    assert names(producer_ids=frozenset({101})) == ["y"]
    assert names(longer_than_ms=100) == ["x"]
