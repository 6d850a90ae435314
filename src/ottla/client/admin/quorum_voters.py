"""The quorum that keeps the cluster's metadata: describe it, add and remove voters (KIP-595, KIP-853)."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from ottla.base.ids import ZERO_UUID, parse_uuid, uuid_text
from ottla.client.admin.asking import Asking
from ottla.client.errors import UnknownTopicOrPartition, error_for
from ottla.wire import messages

_METADATA_TOPIC = "__cluster_metadata"


class QuorumReplica(NamedTuple):
    replica_id: int
    directory_id: str | None
    """None if the quorum's voters are fixed by configuration."""
    log_end_offset: int
    last_fetch_timestamp_ms: int | None
    last_caught_up_timestamp_ms: int | None


class VoterEndpoint(NamedTuple):
    """Where a controller listens, under the name of the listener."""

    name: str
    host: str
    port: int


class QuorumInfo(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: dict[int, tuple[VoterEndpoint, ...]]
    """Where the voters listen; empty from a broker that does not tell."""


async def describe_metadata_quorum(asking: Asking, *, timeout: float | None = None) -> QuorumInfo:
    """The state of each replica of the metadata, as the quorum's leader sees it."""
    request = messages.DescribeQuorumRequest
    made = request(
        topics=[request.TopicData(topic_name=_METADATA_TOPIC, partitions=[request.PartitionData(partition_index=0)])]
    )
    response = await asking.controller(made, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    if not response.topics or not response.topics[0].partitions:
        raise UnknownTopicOrPartition(f"the answer tells nothing of {_METADATA_TOPIC}")
    partition = response.topics[0].partitions[0]
    if partition.error_code:
        raise error_for(partition.error_code, partition.error_message)
    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(map(_replica, partition.current_voters)),
        tuple(map(_replica, partition.observers)),
        {
            node.node_id: tuple(VoterEndpoint(one.name, one.host, one.port) for one in node.listeners)
            for node in response.nodes
        },
    )


def _replica(answer: Any) -> QuorumReplica:
    return QuorumReplica(
        answer.replica_id,
        None if answer.replica_directory_id == ZERO_UUID else uuid_text(answer.replica_directory_id),
        answer.log_end_offset,
        None if answer.last_fetch_timestamp < 0 else answer.last_fetch_timestamp,
        None if answer.last_caught_up_timestamp < 0 else answer.last_caught_up_timestamp,
    )


async def add_raft_voter(
    asking: Asking,
    voter_id: int,
    directory_id: str,
    endpoints: Iterable[VoterEndpoint],
    *,
    cluster_id: str | None = None,
    timeout: float | None = None,
) -> None:
    """Makes an observer a voter. Its directory id is in its `meta.properties`."""
    deadline = asking.deadline(timeout)
    request = messages.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=asking.server_timeout_ms(deadline),
        voter_id=voter_id,
        voter_directory_id=parse_uuid(directory_id),
        listeners=[
            messages.AddRaftVoterRequest.Listener(name=name, host=host, port=port) for name, host, port in endpoints
        ],
    )
    response = await asking.controller(request, deadline)
    if response.error_code:
        raise error_for(response.error_code, response.error_message)


async def remove_raft_voter(
    asking: Asking, voter_id: int, directory_id: str, *, cluster_id: str | None = None, timeout: float | None = None
) -> None:
    """Makes a voter an observer."""
    request = messages.RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=parse_uuid(directory_id)
    )
    response = await asking.controller(request, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
