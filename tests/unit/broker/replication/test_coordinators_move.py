"""Groups and transactions whose coordinator's node dies: the next leader of its partition goes on with them."""

from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    EndTxnRequest,
    FeatureLevelRecord,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)
from tests.unit.broker.brokers import Reply, batch, fetch_request, only, produce_request, values_in
from tests.unit.broker.groups.test_groups import GROUP, commit, fetch_all, offsets_in
from tests.unit.broker.replicating_nodes import Cluster

NEW = 2
READ_COMMITTED = 1


def cluster_with(topic: str, *replicas: int) -> Cluster:
    cluster = Cluster(3)
    cluster.commit(FeatureLevelRecord(name="transaction.version", feature_level=NEW))
    cluster.create_topic(topic, replicas, cleanup_policy="compact", min_insync_replicas="2")
    cluster.create_topic("orders", (2, 3, 1))
    return cluster


def answered(cluster: Cluster, node_id: int, request: Message, version: int) -> Any:
    reply: Reply = cluster[node_id].ask(request, version)
    cluster.advance(1000)
    assert reply.is_here, "no reply"
    return reply.message


def test_committed_offsets_are_those_of_the_group_at_its_next_coordinator():
    cluster = cluster_with("__consumer_offsets", 1, 2, 3)
    reply = answered(cluster, 1, commit(5, generation_id_or_member_epoch=-1), 9)
    assert reply.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert answered(cluster, 2, fetch_all(GROUP), 9).groups[0].error_code == ErrorCode.NOT_COORDINATOR
    cluster.kill(1)
    cluster.advance(1000)
    found = answered(cluster, 3, FindCoordinatorRequest(coordinator_keys=[GROUP]), 6).coordinators[0]
    assert (found.node_id, found.host) == (2, "b2")
    assert offsets_in(answered(cluster, 2, fetch_all(GROUP), 9))[GROUP] == {("orders", 0): 5}
    reply = answered(cluster, 2, commit(9, generation_id_or_member_epoch=-1), 9)
    assert reply.topics[0].partitions[0].error_code == ErrorCode.NONE
    cluster.start(1)
    cluster.advance(1000)
    assert answered(cluster, 1, fetch_all(GROUP), 9).groups[0].error_code == ErrorCode.NOT_COORDINATOR
    assert offsets_in(answered(cluster, 2, fetch_all(GROUP), 9))[GROUP] == {("orders", 0): 9}


def init(cluster: Cluster, node_id: int) -> tuple[int, int]:
    reply = answered(cluster, node_id, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 5)
    assert reply.error_code == ErrorCode.NONE
    return reply.producer_id, reply.producer_epoch


def write(cluster: Cluster, node_id: int, producer: tuple[int, int], sequence: int, value: bytes) -> ErrorCode:
    records = batch(
        value, producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence, transactional=True
    )
    request = produce_request(records, transactional_id="x")
    return ErrorCode(only(answered(cluster, node_id, request, 12)).error_code)


def end(cluster: Cluster, node_id: int, producer: tuple[int, int], *, committed: bool) -> Any:
    request = EndTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], committed=committed
    )
    return answered(cluster, node_id, request, 5)


def committed_in(cluster: Cluster, node_id: int) -> list[bytes | None]:
    request = fetch_request(0, isolation_level=READ_COMMITTED)
    return values_in(only(answered(cluster, node_id, request, 12)))


def test_a_transaction_across_nodes_is_committed_by_its_next_coordinator():
    """The partition of records is led by node 2, the coordinator's by node 1 and then by node 3."""
    cluster = cluster_with("__transaction_state", 1, 3, 2)
    producer = init(cluster, 1)
    assert write(cluster, 2, producer, 0, b"a") == ErrorCode.NONE, "node 2 has asked node 1 to add the partition"
    assert committed_in(cluster, 2) == []
    cluster.kill(1)
    cluster.advance(1000)
    assert write(cluster, 2, producer, 1, b"b") == ErrorCode.NONE
    reply = end(cluster, 3, producer, committed=True)
    assert reply.error_code == ErrorCode.NONE
    assert reply.producer_epoch == producer[1] + 1
    cluster.advance(1000)
    assert committed_in(cluster, 2)[:2] == [b"a", b"b"]


def test_markers_reach_the_next_leader_of_a_partition():
    cluster = cluster_with("__transaction_state", 1, 3, 2)
    producer = init(cluster, 1)
    assert write(cluster, 2, producer, 0, b"a") == ErrorCode.NONE
    cluster.kill(2)
    assert end(cluster, 1, producer, committed=True).error_code == ErrorCode.NONE
    cluster.advance(2000)
    assert committed_in(cluster, 3)[:1] == [b"a"]
    log = cluster[3].partition().log
    assert log.last_stable_offset == log.log_end_offset, "no transaction hangs"
