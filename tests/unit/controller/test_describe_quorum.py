"""DescribeQuorum, held to what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from ottla.machines.raft.events import LogEnd, QuorumState, Started
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.runtime.metadata.quorum.quorum_view import QuorumEndpoint, QuorumReplica, RaftQuorum
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeQuorumRequest as Request
from tests.unit.broker.admin_node import AdminNode
from tests.unit.broker.brokers import NOW_MS

METADATA = "__cluster_metadata"
DIRECTORY = b"d" * 16


class Quorum:
    """One voter, which leads unless a test says otherwise."""

    def __init__(self, leader_id=1):
        self.leader_id, self.leader_epoch, self.high_watermark = leader_id, 3, 356

    def voters(self, now_ms):
        return [QuorumReplica(1, DIRECTORY, 357, now_ms, now_ms)]

    def observers(self, now_ms):
        return []

    def endpoints(self):
        return [QuorumEndpoint(1, "CONTROLLER", "127.0.0.1", 9093)]


def ask(*partitions, version=2, quorum=None):
    node = AdminNode()
    node.server.quorum = quorum or Quorum()
    topics = [
        Request.TopicData(topic_name=name, partitions=[Request.PartitionData(partition_index=index)])
        for name, index in partitions
    ]
    return node.send(Request(topics=topics), version)


@pytest.mark.parametrize("version", range(3))
def test_the_leader_tells_how_far_the_voters_are(version):
    reply = ask((METADATA, 0), version=version)
    ((partition,),) = [topic.partitions for topic in reply.topics]
    assert (reply.error_code, partition.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 3, 356)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, 357)
    assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == (NOW_MS if version >= 1 else -1)
    assert voter.replica_directory_id == (DIRECTORY if version >= 2 else bytes(16))
    assert partition.observers == []
    nodes = [(node.node_id, [(end.name, end.host, end.port) for end in node.listeners]) for node in reply.nodes]
    assert nodes == ([(1, [("CONTROLLER", "127.0.0.1", 9093)])] if version >= 2 else [])


@pytest.mark.parametrize(
    "partitions",
    [[("a", 0)], [(METADATA, 1)], [(METADATA, 0), (METADATA, 1)], [(METADATA, 0), (METADATA, 0)]],
)
def test_there_is_one_quorum_with_one_partition(partitions):
    reply = ask(*partitions)
    described = [
        (topic.topic_name, part.partition_index, part.error_code) for topic in reply.topics for part in topic.partitions
    ]
    assert described == [(*partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for partition in partitions]


def test_asking_for_nothing_gets_nothing():
    reply = ask()
    assert (reply.error_code, reply.topics, reply.nodes) == (ErrorCode.NONE, [], [])


def test_who_does_not_lead_says_who_does():
    reply = ask((METADATA, 0), quorum=Quorum(leader_id=2))
    (partition,) = reply.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 2)
    assert partition.current_voters == []
    assert partition.error_message == "This controller does not lead the quorum."


def test_the_view_of_a_raft_machine_is_what_a_quorum_of_one_looks_like():
    me = Voter(ReplicaKey(1, DIRECTORY), (Endpoint("CONTROLLER", "127.0.0.1", 9093),))
    raft = Raft(me, VoterSet([me]), QuorumState(), LogEnd(0, 0))
    raft.step(Started())
    view = RaftQuorum(raft)
    assert (view.leader_id, view.leader_epoch) == (1, 1)
    assert view.voters(NOW_MS) == [QuorumReplica(1, DIRECTORY, raft.log_end.offset, NOW_MS, NOW_MS)]
    assert view.endpoints() == [QuorumEndpoint(1, "CONTROLLER", "127.0.0.1", 9093)]
