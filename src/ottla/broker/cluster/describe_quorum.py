"""DescribeQuorum 0-2: the state of the metadata log's replicas (KIP-595, KIP-836).

The node gives `broker.quorum` a view of its Raft replica. Only the leader knows how far the others are; on any other
node the request is answered with NOT_LEADER_OR_FOLLOWER, and the leader's id to go to.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.broker.context import Broker
from ottla.machines.metadata.topic_names import CLUSTER_METADATA
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.progress import UNKNOWN
from ottla.machines.raft.voters import ReplicaKey
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse

_UNKNOWN: Final = "This node has no such partition of a quorum."
_FIRST_WITH_DIRECTORIES: Final = 2


class QuorumReplica(NamedTuple):
    """A voter, or an observer, as the leader knows it; -1 is what it does not know."""

    replica_id: int
    directory_id: Uuid = ZERO_UUID
    log_end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class QuorumEndpoint(NamedTuple):
    node_id: int
    listener: str
    host: str
    port: int


class QuorumView(Protocol):
    """What a node knows of the metadata quorum at this moment. The leader stands for itself among the voters."""

    @property
    def leader_id(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    def voters(self, now_ms: int) -> Sequence[QuorumReplica]: ...

    def observers(self, now_ms: int) -> Sequence[QuorumReplica]: ...

    def endpoints(self) -> Sequence[QuorumEndpoint]:
        """Of the voters, for clients that speak to controllers directly (KIP-919)."""
        ...


class RaftQuorum:
    """The view that the Raft machine of this node gives."""

    def __init__(self, raft: Raft) -> None:
        self._raft = raft

    @property
    def leader_id(self) -> int:
        return self._raft.leader_id

    @property
    def leader_epoch(self) -> int:
        return self._raft.epoch

    @property
    def high_watermark(self) -> int:
        return self._raft.high_watermark

    def voters(self, now_ms: int) -> list[QuorumReplica]:
        return [self._replica(voter.key, now_ms) for voter in self._raft.voters]

    def observers(self, now_ms: int) -> list[QuorumReplica]:
        """None are known of: brokers that only read the log are a matter of several nodes."""
        return []

    def endpoints(self) -> list[QuorumEndpoint]:
        return [QuorumEndpoint(voter.key.id, *endpoint) for voter in self._raft.voters for endpoint in voter.endpoints]

    def _replica(self, key: ReplicaKey, now_ms: int) -> QuorumReplica:
        """The leader is as far as its log, and never behind itself."""
        if key.id == self._raft.me.key.id:
            return QuorumReplica(key.id, key.directory_id, self._raft.log_end.offset, now_ms, now_ms)
        progress = self._raft.progress
        end_offset = progress.end_of(key.id) if progress is not None else UNKNOWN
        return QuorumReplica(key.id, key.directory_id, end_offset)


def handle_describe_quorum(
    broker: Broker, context: RequestContext, request: DescribeQuorumRequest, respond: Respond
) -> None:
    asked = [
        (topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    if not asked:
        respond(DescribeQuorumResponse(error_message=None))
    elif asked == [(CLUSTER_METADATA, 0)]:
        respond(_described(broker, context.api_version))
    else:
        respond(_refused(request))


def _described(broker: Broker, api_version: int) -> DescribeQuorumResponse:
    quorum, now_ms = broker.quorum, broker.clock.now_ms()
    assert quorum is not None, "the node gives the broker its quorum before it listens"
    is_leader = quorum.leader_id == broker.node_id
    partition = DescribeQuorumResponse.PartitionData(
        error_code=ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        error_message=None,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
    )
    if is_leader:
        partition.high_watermark = quorum.high_watermark
        partition.current_voters = _states(quorum.voters(now_ms), api_version)
        partition.observers = _states(quorum.observers(now_ms), api_version)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponse.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        nodes=_nodes(quorum.endpoints()) if api_version >= _FIRST_WITH_DIRECTORIES else [],
    )


def _states(replicas: Sequence[QuorumReplica], api_version: int) -> list[DescribeQuorumResponse.ReplicaState]:
    with_directories = api_version >= _FIRST_WITH_DIRECTORIES
    return [
        DescribeQuorumResponse.ReplicaState(
            replica_id=replica.replica_id,
            replica_directory_id=replica.directory_id if with_directories else ZERO_UUID,
            log_end_offset=replica.log_end_offset,
            last_fetch_timestamp=replica.last_fetch_ms,
            last_caught_up_timestamp=replica.last_caught_up_ms,
        )
        for replica in replicas
    ]


def _nodes(endpoints: Sequence[QuorumEndpoint]) -> list[DescribeQuorumResponse.Node]:
    nodes: dict[int, DescribeQuorumResponse.Node] = {}
    for end in endpoints:
        node = nodes.setdefault(end.node_id, DescribeQuorumResponse.Node(node_id=end.node_id))
        node.listeners.append(DescribeQuorumResponse.Listener(name=end.listener, host=end.host, port=end.port))
    return list(nodes.values())


def _refused(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    """One quorum, one partition: a request that asks for more is refused in every part."""
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            DescribeQuorumResponse.TopicData(
                topic_name=topic.topic_name,
                partitions=[
                    DescribeQuorumResponse.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=_UNKNOWN,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
