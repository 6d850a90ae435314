"""InitProducerId: who owns a transactional id (KIP-98, KIP-360, KIP-588)."""

from itertools import repeat

import pytest

from ottla.machines.transaction.replies import ProducerReply
from ottla.wire.errors import ErrorCode
from tests.unit.machines.transaction.transaction_coordinators import NEW, OLD, T0, Coordinator, coordinator_at

BOTH = pytest.mark.parametrize("version", [OLD, NEW])


def test_the_first_producer_gets_a_new_id_and_every_next_one_the_next_epoch() -> None:
    coordinator = Coordinator()
    assert coordinator.init() == (ErrorCode.NONE, 100, 0)
    assert coordinator.init() == (ErrorCode.NONE, 100, 1)
    assert coordinator.init("another") == (ErrorCode.NONE, 101, 0)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_not_allowed_is_refused(timeout_ms: int) -> None:
    assert Coordinator().init(timeout_ms=timeout_ms).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_without_a_producer_id_to_give_the_client_is_asked_to_come_again() -> None:
    coordinator = Coordinator()
    coordinator.ids = repeat(None)
    assert coordinator.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not coordinator.log


def test_a_producer_that_carries_on_after_an_error_gets_the_next_epoch() -> None:
    coordinator = Coordinator()
    coordinator.init()
    assert coordinator.init(has=(100, 0)) == (ErrorCode.NONE, 100, 1)


def test_a_lost_answer_is_given_again() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.init(has=(100, 0))
    assert coordinator.init(has=(100, 0)) == (ErrorCode.NONE, 100, 1)
    assert coordinator.init(has=(100, 1)) == (ErrorCode.NONE, 100, 2)


def test_a_producer_whose_id_another_has_taken_over_is_fenced() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.init()
    assert coordinator.init(has=(100, 0)).error is ErrorCode.PRODUCER_FENCED
    assert coordinator.init(has=(55, 1)).error is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_an_id_that_was_forgotten_carries_on_with_a_new_one() -> None:
    assert Coordinator().init(has=(55, 7)) == (ErrorCode.NONE, 100, 0)


@BOTH
def test_what_a_newer_producer_finds_open_is_aborted_and_the_older_one_fenced(version: int) -> None:
    coordinator = Coordinator(transaction_version=version)
    coordinator.init()
    coordinator.add((100, 0), T0, version=version)

    assert coordinator.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.state() == "PrepareAbort 100/1"
    assert coordinator.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    [end] = coordinator.write_markers()
    assert (end.producer_epoch, end.committed, end.partitions) == (1, False, {T0})

    assert coordinator.init() == (ErrorCode.NONE, 100, 2)
    assert coordinator.add((100, 0), T0, version=version) == "PRODUCER_FENCED"
    assert coordinator.commit((100, 0), version)[0] == "PRODUCER_FENCED"


def test_in_the_newer_protocol_the_epoch_before_an_abort_by_timeout_may_carry_on() -> None:  # KIP-588
    coordinator = Coordinator()
    coordinator.init()
    coordinator.add((100, 0), T0)
    coordinator.now_ms += 60_001
    coordinator.fire("abort_timed_out")
    coordinator.write_markers()
    assert coordinator.init(has=(100, 0)) == (ErrorCode.NONE, 100, 1)


@BOTH
def test_producer_epoch_overflow_a_new_producer_gets_a_new_id(version: int) -> None:
    coordinator = coordinator_at(32765, transaction_version=version)
    assert coordinator.init() == (ErrorCode.NONE, 7, 32766)
    assert coordinator.init() == (ErrorCode.NONE, 100, 0)
    assert coordinator.init() == (ErrorCode.NONE, 100, 1)


@BOTH
def test_producer_epoch_overflow_the_last_epoch_is_for_fencing(version: int) -> None:
    coordinator = coordinator_at(32766, transaction_version=version)
    coordinator.add((7, 32766), T0, version=version)
    assert coordinator.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    [end] = coordinator.write_markers()
    assert (end.producer_id, end.producer_epoch) == (7, 32767)
    reply = coordinator.init()
    assert reply.producer_id != 7
    assert reply.producer_epoch == (0 if version == OLD else 1)


@BOTH
def test_producer_epoch_overflow_a_lost_answer_with_a_new_id_is_given_again(version: int) -> None:
    coordinator = coordinator_at(32766, transaction_version=version)
    given = ProducerReply(ErrorCode.NONE, 100, 0)
    assert coordinator.init(has=(7, 32766)) == given
    assert coordinator.init(has=(7, 32766)) == given
    assert coordinator.init(has=(7, 32765)).error is ErrorCode.PRODUCER_FENCED


def test_a_producer_that_starts_makes_the_one_before_a_zombie_for_good() -> None:
    coordinator = Coordinator()
    coordinator.init()
    coordinator.init(has=(100, 0))
    coordinator.init()
    assert coordinator.init(has=(100, 1)).error is ErrorCode.PRODUCER_FENCED
    coordinator.restart()
    assert coordinator.init(has=(100, 1)).error is ErrorCode.PRODUCER_FENCED
