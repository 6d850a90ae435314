"""DescribeQuorum 0-2: the state of the metadata log's replicas (KIP-595, KIP-836).

Only the leader knows how far the others are. Brokers pass the request on to it; another controller that is asked itself
answers with NOT_LEADER_OR_FOLLOWER and, as Kafka's does not, the leader's id to go to.
"""

from collections.abc import Sequence
from typing import Final

from ottla.base.ids import ZERO_UUID
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.machines.metadata.topic_names import CLUSTER_METADATA
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.quorum_view import QuorumEndpoint, QuorumReplica
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse

_NOT_LEADER: Final = "This controller does not lead the quorum."
_UNKNOWN: Final = "This node has no such partition of a quorum."
_FIRST_WITH_DIRECTORIES: Final = 2


def describe_quorum(server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    request: DescribeQuorumRequest = asked.request
    partitions = [
        (topic.topic_name, partition.partition_index) for topic in request.topics for partition in topic.partitions
    ]
    if not partitions:
        then(DescribeQuorumResponse(error_message=None))
    elif partitions == [(CLUSTER_METADATA, 0)]:
        then(_described(server, asked.version))
    else:
        then(_refused(request))


def _described(server: ControllerServer, api_version: int) -> DescribeQuorumResponse:
    quorum, now_ms = server.quorum, server.clock.now_ms()
    is_leader = quorum.leader_id == server.node_id
    partition = DescribeQuorumResponse.PartitionData(
        error_code=ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER,
        error_message=None if is_leader else _NOT_LEADER,
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
