"""Transactions through a broker: from InitProducerId to what a read-committed consumer sees (KIP-98, KIP-890)."""

import pytest

from ottla.records.batch import complete_batches
from ottla.records.control import parse_end_transaction_marker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import WriteTxnMarkersRequest
from tests.unit.broker.brokers import batch, only, produce_request
from tests.unit.broker.transactional_nodes import NEW, OLD, READ_COMMITTED, TOPIC, TransactionalNode, outcome

P = (1000, 0)
BOTH = pytest.mark.parametrize("version", [OLD, NEW])


def begun(version: int = NEW, *indexes: int) -> TransactionalNode:
    """A node on which producer P may write in its first transaction."""
    node = TransactionalNode(version)
    assert node.init() == ("NONE", *P)
    if version == OLD:
        node.add(P, *(indexes or (0,)))
    return node


def markers(node: TransactionalNode, index: int = 0) -> list[tuple[int, bool]]:
    """Epoch and outcome of every marker in a partition."""
    log = node.log_of(index)
    data = log.read(0, 1 << 20, log.log_end_offset).read()
    found = []
    for position, header in complete_batches(data):
        marker = parse_end_transaction_marker(data, position, header)
        if marker is not None:
            found.append((header.producer_epoch, marker.committed))
    return found


# The plain way


@BOTH
def test_what_is_committed_is_seen_and_not_before(version: int) -> None:
    node = begun(version)
    assert node.write(P, 0, b"a", b"b") == ("NONE", 0)
    assert node.committed() == []
    assert node.fetch(isolation_level=READ_COMMITTED).last_stable_offset == 0
    assert node.end(P, True)[0] == "NONE"
    assert node.committed() == [b"a", b"b"]
    assert node.state() == "CompleteCommit"


@BOTH
def test_what_is_aborted_is_never_seen(version: int) -> None:
    node = begun(version)
    node.write(P, 0, b"a")
    _, *after = node.end(P, False)
    producer = (after[0], after[1]) if version == NEW else P
    if version == OLD:
        node.add(P, 0)
    assert node.write(producer, 0 if version == NEW else 1, b"b")[0] == "NONE"
    node.end(producer, True)
    assert node.committed() == [b"b"]
    (aborted,) = node.fetch(isolation_level=READ_COMMITTED).aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (1000, 0)


def test_in_the_newer_protocol_partitions_are_added_by_the_write_itself() -> None:
    node = begun()
    node.write(P, 0, b"a")
    node.write(P, 0, b"b", index=2)
    assert node.state() == "Ongoing"
    assert node.end(P, True) == ("NONE", 1000, 1)
    assert [markers(node, index) for index in range(3)] == [[(1, True)], [], [(1, True)]]


def test_in_the_older_protocol_a_write_to_a_partition_that_was_not_added_is_refused() -> None:
    node = begun(OLD)
    assert node.write(P, 0, b"a", index=1)[0] == "TRANSACTION_ABORTABLE"
    assert node.write(P, 0, b"a", index=1, version=10)[0] == "INVALID_TXN_STATE", "an older client knows no better"
    assert node.log_of(1).log_end_offset == 0


def test_verification_can_be_switched_off() -> None:
    node = TransactionalNode(OLD, transaction_partition_verification_enable="false")
    node.init()
    assert node.write(P, 0, b"a", index=1)[0] == "NONE"


# Cases in which others lost data


def test_kafka_17754_a_late_produce_does_not_join_the_next_transaction() -> None:
    node = begun()
    node.write(P, 0, b"a")
    node.end(P, True)
    assert node.write((1000, 1), 0, b"b")[0] == "NONE"
    assert node.write(P, 1, b"late")[0] == "INVALID_PRODUCER_EPOCH"
    assert node.write(P, 0, b"late", index=1)[0] == "INVALID_PRODUCER_EPOCH"
    node.end((1000, 1), False)
    assert node.committed() == [b"a"]
    assert node.committed(1) == []


def test_kafka_17754_a_late_end_does_not_end_the_next_transaction() -> None:
    node = begun()
    node.write(P, 0, b"a")
    node.end(P, True)
    node.write((1000, 1), 0, b"b")
    assert node.end(P, True)[0] == "PRODUCER_FENCED"
    assert node.committed() == [b"a"]
    assert node.end((1000, 1), False) == ("NONE", 1000, 2)
    assert node.committed() == [b"a"]


def test_kip_890_a_late_marker_does_not_end_the_next_transaction() -> None:
    node = begun()
    node.write(P, 0, b"a")
    node.end(P, True)
    node.write((1000, 1), 0, b"b")
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="orders", partition_indexes=[0])
    late = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=1000, producer_epoch=1, transaction_result=True, topics=[topic], transaction_version=2
    )
    (answer,) = node.send(WriteTxnMarkersRequest(markers=[late]), 2).markers[0].topics[0].partitions
    assert answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert markers(node) == [(1, True)]


@BOTH
def test_an_abort_marker_is_in_every_partition_before_a_new_epoch_writes(version: int) -> None:
    node = begun(version)
    node.write(P, 0, b"of the old one")
    assert node.init()[0] == "CONCURRENT_TRANSACTIONS"
    assert markers(node) == [(1, False)], "it is there by the time that a new epoch can be had"
    assert node.init() == ("NONE", 1000, 2)
    if version == OLD:
        node.add((1000, 2), 0)
    assert node.write((1000, 2), 0, b"of the new one")[0] == "NONE"
    assert node.write(P, 1, b"of a zombie")[0] == "INVALID_PRODUCER_EPOCH"
    node.end((1000, 2), True)
    assert node.committed() == [b"of the new one"]


def test_an_idempotent_retry_after_a_server_error_does_not_write_twice() -> None:
    node = begun()
    node.create_topic("replicated", replicas=(1, 2))
    for _ in range(2):
        reply = node.ask_to_write(P, 0, b"a", topic="replicated")
        node.timers.advance(30_000)
        assert outcome(only(reply.message))[0] == "REQUEST_TIMED_OUT"
    log = node.broker.partitions["replicated", 0].log
    assert log.log_end_offset == 1
    node.change_partition("replicated", isr=(1,))
    reply = node.ask_to_write(P, 0, b"a", topic="replicated")
    assert outcome(only(reply.message)) == ("NONE", 0)
    assert log.log_end_offset == 1


@BOTH
def test_a_repeated_batch_is_answered_with_its_first_offset_even_after_the_end(version: int) -> None:
    node = begun(version)
    assert node.write(P, 0, b"a") == ("NONE", 0)
    assert node.write(P, 0, b"a") == ("NONE", 0)
    node.end(P, True)
    again = node.write(P, 0, b"a")
    assert again == (("INVALID_PRODUCER_EPOCH", -1) if version == NEW else ("NONE", 0))
    assert node.committed() == [b"a"]


# Zombies


@pytest.mark.parametrize(("api_version", "error"), [(3, "INVALID_PRODUCER_EPOCH"), (4, "PRODUCER_FENCED")])
def test_a_fenced_producer_is_told_so_in_words_of_its_version_by_init(api_version: int, error: str) -> None:
    node = begun()
    node.init()
    assert node.init(version=api_version, producer_id=1000, producer_epoch=0)[0] == error


@pytest.mark.parametrize(("api_version", "error"), [(1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")])
def test_a_fenced_producer_is_told_so_in_words_of_its_version(api_version: int, error: str) -> None:
    node = begun(OLD)
    node.init()
    node.init()
    assert node.add(P, 0, version=api_version) == [error]
    assert node.end(P, True, version=api_version)[0] == error


def test_two_producers_in_one_request_are_refused() -> None:
    node = begun()
    request = produce_request(
        batch(b"a", producer_id=1000, producer_epoch=0, base_sequence=0, transactional=True), transactional_id="x"
    )
    another = produce_request(
        batch(b"a", producer_id=1001, producer_epoch=0, base_sequence=0, transactional=True), index=1
    )
    request.topic_data[0].partition_data += another.topic_data[0].partition_data
    (topic,) = node.send(request, 12).responses
    assert {one.error_code for one in topic.partition_responses} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert len(node.broker.verifications) == 0


# Time


@BOTH
def test_a_transaction_that_runs_for_too_long_is_aborted(version: int) -> None:
    node = begun(version)
    node.write(P, 0, b"a")
    node.timers.advance(60_000)
    assert node.state() == "Ongoing"
    node.timers.advance(10_001)
    assert node.state() == "CompleteAbort"
    assert markers(node) == [(1, False)]
    assert node.write(P, 1, b"b")[0] == "INVALID_PRODUCER_EPOCH"
    assert node.end(P, True)[0] == ("INVALID_TXN_STATE" if version == NEW else "PRODUCER_FENCED")


@pytest.mark.slow
def test_ids_that_nobody_uses_are_forgotten() -> None:
    node = begun()
    node.timers.advance(604_800_000 + 3_600_000)
    assert node.state() == "TRANSACTIONAL_ID_NOT_FOUND"


# Restarts


@BOTH
def test_an_open_transaction_survives_a_restart(version: int) -> None:
    node = begun(version)
    node.write(P, 0, b"a")
    node = node.restart()
    assert node.state() == "Ongoing"
    assert node.write(P, 1, b"b")[0] == "NONE"
    assert node.end(P, True)[0] == "NONE"
    assert node.committed() == [b"a", b"b"]


@BOTH
def test_markers_survive_a_restart_half_way(version: int) -> None:
    """One partition is elsewhere when the end is decided: it gets its marker from the node's next life."""
    node = begun(version, 0, 1)
    node.write(P, 0, b"a")
    node.write(P, 0, b"b", index=1)
    node.change_partition(index=1, leader=-1)
    assert node.end(P, True)[0] == "NONE"
    assert node.state() == "PrepareCommit"
    assert (len(markers(node)), len(markers(node, 1))) == (1, 0)

    node = node.restart()
    assert node.state() == "PrepareCommit"
    node.change_partition(index=1, leader=1)
    node.timers.advance(1_000)
    assert node.state() == "CompleteCommit"
    assert node.committed(1) == [b"b"]
    assert node.committed() == [b"a"], "a second marker there ended nothing twice"


def test_markers_are_not_for_partitions_that_are_gone() -> None:
    node = begun()
    node.create_topic("short-lived")
    node.write(P, 0, b"a", topic="short-lived")
    node.delete_topic("short-lived")
    assert node.end(P, True)[0] == "NONE"
    assert node.state() == "CompleteCommit"


def test_records_of_the_coordinator_are_kafkas_byte_for_byte() -> None:
    node = begun()
    node.write(P, 0, b"a")
    node.end(P, True)
    log = node.broker.partitions[TOPIC, 0].log
    headers = [header for _, header in complete_batches(log.read(0, 1 << 20, log.log_end_offset).read())]
    assert len(headers) == 4, "Empty, Ongoing, PrepareCommit, CompleteCommit"
    assert {(one.base_sequence, one.producer_id, one.attributes) for one in headers} == {(-1, -1, 0)}


# Waiting for replicas


def lag(node: TransactionalNode) -> None:
    """The coordinator gets a follower that lags: nothing is committed until it is out of the ISR."""
    node.change_partition(TOPIC, isr=(1, 2), replicas=(1, 2), leader=1)


def catch_up(node: TransactionalNode) -> None:
    node.change_partition(TOPIC, isr=(1,), replicas=(1, 2))
    node.broker.partitions.purgatory.wake(node.broker.partitions[TOPIC, 0])


def test_a_first_write_waits_until_its_partition_is_safely_in_the_transaction() -> None:
    node = begun()
    lag(node)
    reply = node.ask_to_write(P, 0, b"a")
    assert not reply.is_here
    assert node.log_of().log_end_offset == 0
    catch_up(node)
    assert outcome(only(reply.message)) == ("NONE", 0)


def test_no_marker_is_written_before_the_end_is_safe() -> None:
    node = begun()
    node.write(P, 0, b"a")
    lag(node)
    reply = node.ask_to_end(P, True)
    assert not reply.is_here
    assert markers(node) == []
    catch_up(node)
    assert reply.message.error_code == 0
    assert markers(node) == [(1, True)]
    assert node.state() == "CompleteCommit"


def test_an_end_whose_commit_took_too_long_gets_its_markers_in_the_end() -> None:
    node = begun()
    node.write(P, 0, b"a")
    lag(node)
    reply = node.ask_to_end(P, True)
    node.timers.advance(30_000)
    assert reply.message.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    catch_up(node)
    node.timers.advance(10_000)
    assert markers(node) == [(1, True)]
    assert node.state() == "CompleteCommit"
