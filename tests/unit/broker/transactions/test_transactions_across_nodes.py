"""A transaction whose coordinator, or some of whose partitions, are on another node, which is played by the test."""

from typing import Any

import pytest

from ottla.records.header import Compression
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddPartitionsToTxnResponse, WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.unit.broker.brokers import NODE_ID, only, values_in
from tests.unit.broker.transactional_nodes import NEW, OLD, TOPIC, TransactionalNode

OTHER, THIRD = 2, 3
RETRY_MS = 100


# The coordinator is elsewhere: the leader of a partition asks it


def node_of_another_coordinator(version: int) -> TransactionalNode:
    node = TransactionalNode(version)
    node.change_partition(TOPIC, replicas=(OTHER,), isr=(OTHER,), leader=OTHER)
    return node


def coordinators_answer(error: ErrorCode, index: int = 0) -> AddPartitionsToTxnResponse:
    response = AddPartitionsToTxnResponse
    partition = response.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
    topic = response.AddPartitionsToTxnTopicResult(name="orders", results_by_partition=[partition])
    result = response.AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])
    return response(results_by_transaction=[result])


@pytest.mark.parametrize(("version", "verifies"), [(OLD, True), (NEW, False)])
def test_the_coordinator_is_asked_before_the_first_write(version: int, verifies: bool) -> None:
    node = node_of_another_coordinator(version)
    node.peers.replies = [coordinators_answer(ErrorCode.NONE)]
    assert node.write((1000, 0), 0, b"a") == ("NONE", 0)
    ((asked_of, request),) = node.peers.asked
    (transaction,) = request.transactions
    assert asked_of == OTHER
    assert (transaction.transactional_id, transaction.producer_id, transaction.producer_epoch) == ("x", 1000, 0)
    assert transaction.verify_only == verifies
    assert [(topic.name, list(topic.partitions)) for topic in transaction.topics] == [("orders", [0])]
    assert node.write((1000, 0), 1, b"b") == ("NONE", 1), "the transaction is open, and nobody is asked again"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (coordinators_answer(ErrorCode.INVALID_TXN_STATE), "INVALID_TXN_STATE"),
        (coordinators_answer(ErrorCode.PRODUCER_FENCED), "INVALID_PRODUCER_EPOCH"),
        (coordinators_answer(ErrorCode.NOT_COORDINATOR), "NOT_ENOUGH_REPLICAS"),
        (AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), "CLUSTER_AUTHORIZATION_FAILED"),
        (ErrorCode.NETWORK_EXCEPTION, "NOT_ENOUGH_REPLICAS"),
    ],
    ids=["refused", "fenced", "moved", "not allowed", "not reached"],
)
def test_a_write_that_the_coordinator_does_not_agree_to_is_refused(answer: Any, error: str) -> None:
    node = node_of_another_coordinator(NEW)
    node.peers.replies = [answer]
    assert node.write((1000, 0), 0, b"a") == (error, -1)
    assert node.log_of().log_end_offset == 0


def test_a_coordinator_that_still_ends_the_last_transaction_is_asked_again() -> None:
    node = node_of_another_coordinator(NEW)
    node.peers.replies = [coordinators_answer(ErrorCode.CONCURRENT_TRANSACTIONS), coordinators_answer(ErrorCode.NONE)]
    reply = node.ask_to_write((1000, 0), 0, b"a")
    assert not reply.is_here
    node.timers.advance(20)
    assert reply.message.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert len(node.peers.asked) == 2


def test_the_marker_that_the_coordinator_still_waited_for_refuses_no_write() -> None:
    """It is of the transaction before: the coordinator is asked about this one again, and after the marker."""
    node = node_of_another_coordinator(NEW)
    node.peers.replies = [coordinators_answer(ErrorCode.CONCURRENT_TRANSACTIONS), coordinators_answer(ErrorCode.NONE)]
    reply = node.ask_to_write((1000, 1), 0, b"a")
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="orders", partition_indexes=(0,))
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=1000, producer_epoch=1, transaction_result=True, topics=[topic], transaction_version=2
    )
    node.send(WriteTxnMarkersRequest(markers=[marker]), 2)
    node.timers.advance(20)
    assert reply.message.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert len(node.broker.verifications) == 0


@pytest.mark.parametrize("answer", [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE])
def test_what_comes_behind_a_write_that_waits_for_the_coordinator_does_not_overtake_it(answer: ErrorCode) -> None:
    """The request behind it may have the next sequence of a partition that the coordinator knows already."""
    node = node_of_another_coordinator(NEW)
    node.peers.replies = [coordinators_answer(answer)]
    node.peers.is_held = True
    reply = node.ask_to_write((1000, 0), 0, b"a")
    assert not reply.is_here
    assert node.client.is_paused, "its connection is read on only when it is written or refused"
    node.peers.let_go()
    assert only(reply.message).error_code == answer
    assert not node.client.is_paused


@pytest.mark.parametrize("version", [OLD, NEW])
def test_a_batch_that_was_checked_by_a_worker_is_not_overtaken_while_the_coordinator_is_asked(version: int) -> None:
    """The connection is paused for the worker, and stays so for the coordinator."""
    node = node_of_another_coordinator(version)
    node.peers.replies = [coordinators_answer(ErrorCode.NONE)]
    node.peers.is_held = True
    node.workers.hold()
    reply = node.ask_to_write((1000, 0), 0, bytes(900_000), bytes(900_000), compression=Compression.LZ4)
    assert not node.peers.asked, "the worker has not looked at it"
    node.workers.let_go()
    assert len(node.peers.asked) == 1
    assert not reply.is_here
    assert node.client.is_paused, "the next request may have the next sequence"
    node.peers.let_go()
    assert only(reply.message).error_code == ErrorCode.NONE
    assert not node.client.is_paused


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("version", [OLD, NEW])
@pytest.mark.parametrize("settings", [{}, {"message_timestamp_type": "LogAppendTime"}, {"compression_type": "gzip"}])
def test_a_batch_that_waited_for_the_coordinator_is_stored_as_it_was_sent(
    version: int, codec: Compression, settings: dict[str, str]
) -> None:
    """The bytes of a request are only lent: checked before the coordinator is asked, and gone when it answers."""
    node = node_of_another_coordinator(version)
    node.configure_topic(**settings)
    node.peers.replies = [coordinators_answer(ErrorCode.NONE)]
    node.peers.is_held = True
    reply = node.ask_to_write((1000, 0), 0, b"a" * 1000, b"b" * 1000, compression=codec)
    assert not reply.is_here
    node.peers.let_go()
    assert only(reply.message).error_code == ErrorCode.NONE
    assert values_in(node.fetch()) == [b"a" * 1000, b"b" * 1000]


def test_without_a_leader_of_its_partition_there_is_no_coordinator_to_ask() -> None:
    node = TransactionalNode(NEW)
    node.change_partition(TOPIC, leader=-1)
    assert node.write((1000, 0), 0, b"a") == ("NOT_ENOUGH_REPLICAS", -1)
    assert node.peers.asked == []


# Some of the partitions are elsewhere: the coordinator asks their leaders


def open_transaction_over(*leaders: int) -> tuple[TransactionalNode, tuple[int, int]]:
    """Partition after partition of `orders`, with these leaders."""
    node = TransactionalNode(OLD)
    _, *producer = node.init()
    node.add((producer[0], producer[1]), *range(len(leaders)))
    for index, leader in enumerate(leaders):
        if leader != NODE_ID:
            node.change_partition(index=index, replicas=(OTHER, THIRD), isr=(OTHER, THIRD), leader=leader)
    node.peers.asked.clear()
    return node, (producer[0], producer[1])


def written(*indexes: int, error: ErrorCode = ErrorCode.NONE) -> WriteTxnMarkersResponse:
    response = WriteTxnMarkersResponse
    partitions = [response.WritableTxnMarkerPartitionResult(partition_index=one, error_code=error) for one in indexes]
    topic = response.WritableTxnMarkerTopicResult(name="orders", partitions=partitions)
    return response(markers=[response.WritableTxnMarkerResult(producer_id=1000, topics=[topic])])


def partitions_in(request: Any) -> list[int]:
    (marker,) = request.markers
    (topic,) = marker.topics
    return list(topic.partition_indexes)


def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    node, producer = open_transaction_over(OTHER, NODE_ID, OTHER)
    node.peers.replies = [written(0, 2)]
    assert node.end(producer, committed=True)[0] == "NONE"
    assert [(asked_of, partitions_in(request)) for asked_of, request in node.peers.asked] == [
        (OTHER, [0, 2]),
        (NODE_ID, [1]),
    ]
    marker = node.peers.asked[0][1].markers[0]
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (*producer, True)
    assert node.state() == "CompleteCommit"


def test_what_a_leader_did_not_write_is_asked_again_and_no_more() -> None:
    node, producer = open_transaction_over(OTHER, THIRD, OTHER)
    node.peers.replies = [
        written(0, 2, error=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ErrorCode.NETWORK_EXCEPTION,
        written(0, 2),
        written(1),
    ]
    node.ask_to_end(producer, committed=False, version=4)
    assert node.state() == "PrepareAbort"
    node.timers.advance(RETRY_MS)
    assert node.state() == "CompleteAbort"
    assert [asked_of for asked_of, _ in node.peers.asked] == [OTHER, THIRD, OTHER, THIRD]
    assert node.peers.replies == []


def test_a_partition_that_changes_its_leader_is_asked_for_there() -> None:
    node, producer = open_transaction_over(OTHER)
    node.peers.replies = [written(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER), written(0)]
    node.ask_to_end(producer, committed=True, version=4)
    node.change_partition(index=0, leader=THIRD)
    node.timers.advance(RETRY_MS)
    assert [asked_of for asked_of, _ in node.peers.asked] == [OTHER, THIRD]
    assert node.state() == "CompleteCommit"


def test_a_partition_without_a_leader_is_waited_for() -> None:
    node, producer = open_transaction_over(-1)
    node.ask_to_end(producer, committed=True, version=4)
    node.timers.advance(RETRY_MS)
    assert node.peers.asked == []
    assert node.state() == "PrepareCommit"
    node.peers.replies = [written(0)]
    node.change_partition(index=0, leader=OTHER)
    node.timers.advance(RETRY_MS)
    assert node.state() == "CompleteCommit"


def test_a_fenced_coordinator_asks_no_more() -> None:
    node, producer = open_transaction_over(OTHER)
    node.peers.replies = [written(0, error=ErrorCode.TRANSACTION_COORDINATOR_FENCED)]
    node.ask_to_end(producer, committed=True, version=4)
    node.timers.advance(10 * RETRY_MS)
    assert len(node.peers.asked) == 1


# Leadership of a partition of records changes while its transaction's coordinator is asked


@pytest.mark.parametrize("version", [OLD, NEW])
def test_what_the_coordinator_said_before_another_node_led_no_longer_holds(version: int) -> None:
    """The other leader may have written the marker of that transaction meanwhile."""
    node = node_of_another_coordinator(version)
    node.peers.replies = [coordinators_answer(ErrorCode.NONE)]
    node.peers.is_held = True
    reply = node.ask_to_write((1000, 0), 0, b"a")
    node.change_partition("orders", replicas=(NODE_ID, OTHER), isr=(NODE_ID, OTHER), leader=OTHER)
    node.change_partition("orders", leader=NODE_ID, isr=(NODE_ID,))
    node.peers.let_go()
    answer = reply.message.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "which its client tries again after"
    assert node.log_of().log_end_offset == 0
    assert len(node.broker.verifications) == 0
