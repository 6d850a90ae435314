"""The smaller APIs of transactions: adding and verifying partitions, markers by hand, describing and listing."""

from typing import Any

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FeatureLevelRecord,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from tests.unit.broker.transactional_nodes import NEW, OLD, TransactionalNode

P = (1000, 0)
Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction


@pytest.fixture
def node() -> TransactionalNode:
    node = TransactionalNode()
    node.init()
    return node


def name_of(code: int) -> str:
    return ErrorCode(code).name


# AddPartitionsToTxn and AddOffsetsToTxn


def test_if_one_partition_does_not_exist_none_is_added(node: TransactionalNode) -> None:
    assert node.add(P, 0, 7) == ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert node.state() == "Empty"


def test_a_broker_adds_to_several_transactions_and_verifies_others(node: TransactionalNode) -> None:
    node.init("y")
    request = AddPartitionsToTxnRequest(
        transactions=[
            Transaction(
                transactional_id="x", producer_id=1000, producer_epoch=0, topics=[Topic(name="orders", partitions=[0])]
            ),
            Transaction(
                transactional_id="y",
                producer_id=1001,
                producer_epoch=0,
                verify_only=True,
                topics=[Topic(name="orders", partitions=[1])],
            ),
            Transaction(
                transactional_id="z", producer_id=5, producer_epoch=0, topics=[Topic(name="orders", partitions=[1])]
            ),
        ]
    )
    results = node.send(request, 5).results_by_transaction
    assert {
        one.transactional_id: name_of(one.topic_results[0].results_by_partition[0].partition_error_code)
        for one in results
    } == {"x": "NONE", "y": "TRANSACTION_ABORTABLE", "z": "INVALID_PRODUCER_ID_MAPPING"}


def test_offsets_of_a_group_are_one_more_partition(node: TransactionalNode) -> None:
    node.create_topic("__consumer_offsets", 4, cleanup_policy="compact")
    request = AddOffsetsToTxnRequest(transactional_id="x", producer_id=1000, producer_epoch=0, group_id="g")
    assert node.send(request, 4).error_code == 0
    (state,) = node.send(DescribeTransactionsRequest(transactional_ids=["x"]), 0).transaction_states
    (topic,) = state.topics
    assert topic.topic == "__consumer_offsets"
    assert list(topic.partitions) == [node.broker.coordinators.groups.partition_for("g")]


@pytest.mark.parametrize("version", [0, 5])
def test_nobodys_transaction_cannot_be_ended(node: TransactionalNode, version: int) -> None:
    reply = node.send(EndTxnRequest(transactional_id="", producer_id=1, producer_epoch=0), version)
    assert name_of(reply.error_code) == "INVALID_REQUEST"


def test_without_its_partition_a_coordinator_sends_clients_away() -> None:
    node = TransactionalNode(topics=False)
    assert node.end(P, True)[0] == "NOT_COORDINATOR"
    assert node.init()[0] == "NOT_COORDINATOR"
    assert node.state() == "NOT_COORDINATOR"


def test_a_first_producer_waits_for_a_producer_id_and_is_not_sent_away() -> None:
    node = TransactionalNode()
    node.controller.is_held = True
    reply = node.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000), 4)
    assert not reply.is_here
    node.controller.let_go()
    assert (reply.message.producer_id, reply.message.producer_epoch) == P


def test_a_longer_timeout_than_the_cluster_allows_is_refused(node: TransactionalNode) -> None:
    assert node.init("y", transaction_timeout_ms=900_001)[0] == "INVALID_TRANSACTION_TIMEOUT"


# WriteTxnMarkers


def marker(producer: tuple[int, int], *indexes: int, committed: bool = False, **fields: Any) -> Any:
    topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="orders", partition_indexes=indexes or (0,))
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=committed,
        topics=[topic],
        **{"coordinator_epoch": 0, **fields},
    )


def written(node: TransactionalNode, *markers: Any, version: int = 1) -> dict[int, list[str]]:
    response = node.send(WriteTxnMarkersRequest(markers=list(markers)), version)
    return {
        one.producer_id: [name_of(place.error_code) for topic in one.topics for place in topic.partitions]
        for one in response.markers
    }


def test_no_markers_are_answered_with_none(node: TransactionalNode) -> None:
    assert written(node) == {}


def test_a_hanging_transaction_is_found_and_aborted_by_an_administrator() -> None:
    """What the tool for it does: it lists, describes, and writes the marker that never came (KIP-664)."""
    node = TransactionalNode(OLD, transaction_partition_verification_enable="false")
    node.init()
    node.write(P, 0, b"hangs")
    ask = DescribeProducersRequest(topics=[DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=[0])])
    (producer,) = node.send(ask, 0).topics[0].partitions[0].active_producers
    assert producer.current_txn_start_offset == 0
    assert node.state() == "Empty", "its coordinator knows of no transaction: nobody will end it"

    coordinator_epoch = max(producer.coordinator_epoch, 0)
    abort = marker((producer.producer_id, producer.producer_epoch), coordinator_epoch=coordinator_epoch)
    assert written(node, abort) == {1000: ["NONE"]}
    (producer,) = node.send(ask, 0).topics[0].partitions[0].active_producers
    assert producer.current_txn_start_offset == -1
    assert node.fetch(isolation_level=1).last_stable_offset == 2
    assert node.committed() == []


def test_markers_of_the_past_are_refused(node: TransactionalNode) -> None:
    node.write(P, 0, b"a")
    node.end(P, True)
    assert written(node, marker(P)) == {1000: ["INVALID_PRODUCER_EPOCH"]}
    assert written(node, marker((1000, 1), coordinator_epoch=-1)) == {1000: ["TRANSACTION_COORDINATOR_FENCED"]}


def test_a_marker_that_is_written_again_is_taken(node: TransactionalNode) -> None:
    node.write(P, 0, b"a")
    node.end(P, True)
    assert written(node, marker((1000, 1), committed=True, transaction_version=2), version=2) == {1000: ["NONE"]}
    assert node.committed() == [b"a"]


def test_markers_go_to_leaders_alone(node: TransactionalNode) -> None:
    node.change_partition(index=1, leader=-1)
    answers = written(node, marker((5, 0), 0, 1, 7), marker((6, 0), 0))
    assert answers == {5: ["NONE", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION"], 6: ["NONE"]}


def test_a_marker_is_answered_for_when_the_replicas_have_it(node: TransactionalNode) -> None:
    node.change_partition(index=0, isr=(1, 2), replicas=(1, 2), leader=1)
    reply = node.ask(WriteTxnMarkersRequest(markers=[marker((5, 0))]), 1)
    assert not reply.is_here
    node.change_partition(index=0, isr=(1,), replicas=(1, 2))
    node.broker.partitions.purgatory.wake(node.broker.partitions["orders", 0])
    assert reply.message.markers[0].topics[0].partitions[0].error_code == 0


def test_a_marker_that_replicas_do_not_get_times_out(node: TransactionalNode) -> None:
    node.change_partition(index=0, isr=(1, 2), replicas=(1, 2), leader=1)
    reply = node.ask(WriteTxnMarkersRequest(markers=[marker((5, 0))]), 1)
    node.timers.advance(30_000)
    assert name_of(reply.message.markers[0].topics[0].partitions[0].error_code) == "REQUEST_TIMED_OUT"


# Describing and listing


def test_a_transaction_is_described(node: TransactionalNode) -> None:
    node.write(P, 0, b"a", index=2)
    request = DescribeTransactionsRequest(transactional_ids=["x", "", "unknown"])
    found, empty, unknown = node.send(request, 0).transaction_states
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == ("Ongoing", 1000, 0)
    assert (found.transaction_timeout_ms, found.transaction_start_time_ms) == (60_000, node.clock.now_ms())
    assert [(topic.topic, list(topic.partitions)) for topic in found.topics] == [("orders", [2])]
    assert [name_of(one.error_code) for one in (empty, unknown)] == ["INVALID_REQUEST", "TRANSACTIONAL_ID_NOT_FOUND"]
    assert node.send(DescribeTransactionsRequest(), 0).transaction_states == []


def test_transactions_are_listed_with_filters(node: TransactionalNode) -> None:
    node.write(P, 0, b"a")
    node.init("other-1")
    node.clock.advance(5_000)

    def listed(version: int = 2, **asked: Any) -> list[str]:
        response = node.send(ListTransactionsRequest(**asked), version)
        assert response.error_code == 0
        return sorted(f"{one.transactional_id} {one.transaction_state}" for one in response.transaction_states)

    assert listed() == ["other-1 Empty", "x Ongoing"]
    assert listed(state_filters=["Ongoing"]) == ["x Ongoing"]
    assert listed(state_filters=["Nonsense"]) == []
    assert listed(producer_id_filters=[1001]) == ["other-1 Empty"]
    assert listed(duration_filter=4_999, state_filters=["Ongoing"]) == ["x Ongoing"]
    assert listed(duration_filter=5_000, state_filters=["Ongoing"]) == []
    assert listed(transactional_id_pattern="other-.*") == ["other-1 Empty"]
    assert listed(transactional_id_pattern="other") == [], "the whole id has to match"


def test_filters_that_make_no_sense_are_named(node: TransactionalNode) -> None:
    response = node.send(ListTransactionsRequest(state_filters=["Nonsense", "Empty"]), 2)
    assert list(response.unknown_state_filters) == ["Nonsense"]
    response = node.send(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert name_of(response.error_code) == "INVALID_REGULAR_EXPRESSION"


def test_nothing_is_listed_while_a_coordinator_loads() -> None:
    node = TransactionalNode()
    node.init()
    node.workers.hold()
    node.change_partition("__transaction_state", leader=-1)
    node.change_partition("__transaction_state", leader=1)
    response = node.send(ListTransactionsRequest(), 2)
    assert name_of(response.error_code) == "COORDINATOR_LOAD_IN_PROGRESS"
    assert node.init()[0] == "COORDINATOR_LOAD_IN_PROGRESS"
    node.workers.let_go()
    assert node.init() == ("NONE", 1000, 1)


def test_the_cluster_may_go_over_to_the_newer_protocol_while_transactions_are_open() -> None:
    node = TransactionalNode(OLD)
    node.init()
    node.add(P, 0)
    node.write(P, 0, b"a")
    node.commit(FeatureLevelRecord(name="transaction.version", feature_level=NEW))
    assert node.end(P, True, version=4)[0] == "NONE"
    node.version = NEW
    assert node.write(P, 0, b"b", index=1)[0] == "NONE"
    assert node.end(P, True) == ("NONE", 1000, 1)
    assert (node.committed(), node.committed(1)) == ([b"a"], [b"b"])
