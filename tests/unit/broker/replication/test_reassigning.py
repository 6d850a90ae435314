"""Replicas that move between brokers, and leadership that goes back to the preferred one."""

from ottla.machines.metadata.decisions.elect_leaders import elect_leaders
from ottla.machines.metadata.decisions.reassign_partitions import alter_partition_reassignments
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterPartitionReassignmentsRequest, ElectLeadersRequest
from tests.unit.broker.brokers import batch, only, produce_request, values_in
from tests.unit.broker.replicating_nodes import Cluster


def reassign(cluster: Cluster, *replicas: int) -> None:
    request = AlterPartitionReassignmentsRequest
    partition = request.ReassignablePartition(partition_index=0, replicas=list(replicas))
    topic = request.ReassignableTopic(name="orders", partitions=[partition])
    reply = cluster.decide(alter_partition_reassignments, request(topics=[topic]))
    assert only(reply).error_code == ErrorCode.NONE


def partition_of(cluster: Cluster):
    return cluster.image.topics.by_name["orders"].partitions[0]


def test_a_reassignment_ends_when_the_new_replicas_are_in_sync():
    cluster = Cluster(4)
    cluster.create_topic(replicas=(1, 2))
    for value in (b"a", b"b", b"c"):
        cluster[1].ask(produce_request(batch(value)), 12)
    cluster.run()
    reassign(cluster, 3, 4)
    assert partition_of(cluster).is_reassigning
    cluster.advance(2000)
    partition = partition_of(cluster)
    assert (partition.replicas, sorted(partition.isr), partition.leader) == ((3, 4), [3, 4], 3)
    assert not partition.is_reassigning
    assert cluster[1].partition() is None
    assert cluster[2].partition() is None
    assert values_in(cluster[3].fetch(0)) == [b"a", b"b", b"c"]
    reply = cluster[3].ask(produce_request(batch(b"d")), 12)
    cluster.run()
    assert (only(reply.message).error_code, only(reply.message).base_offset) == (ErrorCode.NONE, 3)


def test_a_replica_that_is_added_alone_joins_without_another_leader_epoch():
    cluster = Cluster(3)
    cluster.create_topic(replicas=(1, 2))
    cluster[1].ask(produce_request(batch(b"a")), 12)
    cluster.run()
    reassign(cluster, 1, 2, 3)
    cluster.advance(2000)
    assert sorted(cluster.isr()) == [1, 2, 3]
    assert partition_of(cluster).leader_epoch == 0
    assert cluster[3].partition().log.high_watermark == 1


def test_leadership_goes_back_to_the_preferred_replica_without_a_loss():
    cluster = Cluster(3)
    cluster.create_topic()
    cluster.kill(1)
    cluster.advance(1000)
    reply = cluster[2].ask(produce_request(batch(b"a")), 12)
    cluster.start(1)
    cluster.advance(1000)
    assert only(reply.message).error_code == ErrorCode.NONE
    assert (cluster.isr(), partition_of(cluster).leader) == ((2, 3, 1), 2)
    asked = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[0])
    cluster.decide(elect_leaders, ElectLeadersRequest(election_type=0, topic_partitions=[asked], timeout_ms=1000))
    cluster.advance(1000)
    assert partition_of(cluster).leader == 1
    assert values_in(cluster[1].fetch(0)) == [b"a"]
    reply = cluster[1].ask(produce_request(batch(b"b")), 12)
    cluster.run()
    assert only(reply.message).base_offset == 1
