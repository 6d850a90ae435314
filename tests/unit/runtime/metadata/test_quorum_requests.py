"""Vote, BeginQuorumEpoch and EndQuorumEpoch that are not for this replica, or of the past (KIP-595, KIP-853)."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest, VoteRequest
from tests.unit.runtime.metadata.quorum_of_replicas import CLUSTER_ID, Quorum, Replica, directory_of

METADATA = "__cluster_metadata"
NOBODY = -1

Asked = Callable[..., Any]


@pytest.fixture
def quorum() -> Quorum:
    quorum = Quorum()
    quorum.run(5000)
    return quorum


def vote(
    replica: Replica,
    *,
    epochs_on: int = 0,
    cluster_id: str = CLUSTER_ID,
    voter_id: int | None = None,
    directory: Uuid = ZERO_UUID,
    topic: str = METADATA,
    last_offset: int = 1000,
) -> Any:
    epoch = replica.log.raft.epoch
    partition = VoteRequest.PartitionData(
        replica_epoch=epoch + epochs_on,
        replica_id=replica.log.raft.leader_id,
        voter_directory_id=directory,
        last_offset_epoch=epoch,
        last_offset=last_offset,
    )
    request = VoteRequest(
        cluster_id=cluster_id,
        voter_id=replica.node_id if voter_id is None else voter_id,
        topics=[VoteRequest.TopicData(topic_name=topic, partitions=[partition])],
    )
    return _told(replica, lambda answers, then: answers.vote(request, 2, then))


def begin(
    replica: Replica,
    *,
    epochs_on: int = 0,
    cluster_id: str = CLUSTER_ID,
    voter_id: int | None = None,
    directory: Uuid = ZERO_UUID,
    topic: str = METADATA,
    leader_id: int | None = None,
) -> Any:
    raft, make = replica.log.raft, BeginQuorumEpochRequest
    partition = make.PartitionData(
        leader_id=raft.leader_id if leader_id is None else leader_id,
        leader_epoch=raft.epoch + epochs_on,
        voter_directory_id=directory,
    )
    request = make(
        cluster_id=cluster_id,
        voter_id=replica.node_id if voter_id is None else voter_id,
        topics=[make.TopicData(topic_name=topic, partitions=[partition])],
    )
    return _told(replica, lambda answers, then: answers.begin_epoch(request, 1, then))


def end(
    replica: Replica,
    *,
    epochs_on: int = 0,
    cluster_id: str = CLUSTER_ID,
    topic: str = METADATA,
    leader_id: int | None = None,
) -> Any:
    raft, make = replica.log.raft, EndQuorumEpochRequest
    partition = make.PartitionData(
        leader_id=raft.leader_id if leader_id is None else leader_id, leader_epoch=raft.epoch + epochs_on
    )
    topics = [make.TopicData(topic_name=topic, partitions=[partition])]
    request = make(cluster_id=cluster_id, topics=topics)
    return _told(replica, lambda answers, then: answers.end_epoch(request, 1, then))


def _told(replica: Replica, ask: Callable[[Any, Callable[[Any], None]], None]) -> Any:
    told: list[Any] = []
    ask(replica.log.answers, told.append)
    (reply,) = told
    return reply


def state_of(replica: Replica) -> tuple[object, ...]:
    raft = replica.log.raft
    return raft.role, raft.epoch, raft.leader_id, raft.voted_for


@pytest.mark.parametrize("ask", [vote, begin, end])
@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topic": "orders"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_request_of_another_cluster_or_about_another_log_is_refused(
    quorum: Quorum, ask: Asked, wrong: dict[str, Any], error: ErrorCode
) -> None:
    replica = quorum.followers()[0]
    before = state_of(replica)
    assert ask(replica, epochs_on=1, **wrong).error_code == error
    assert state_of(replica) == before


@pytest.mark.parametrize("ask", [vote, begin])
def test_a_request_for_another_voter_or_another_directory_is_refused(quorum: Quorum, ask: Asked) -> None:
    """KIP-853: a node with an empty disk is not the voter that it was, and must not vote twice."""
    replica = quorum.followers()[0]
    before = state_of(replica)
    assert ask(replica, epochs_on=1, voter_id=9).error_code == ErrorCode.INVALID_VOTER_KEY
    (partition,) = ask(replica, epochs_on=1, directory=directory_of(9)).topics[0].partitions
    assert partition.error_code == ErrorCode.INVALID_VOTER_KEY
    assert state_of(replica) == before
    (partition,) = ask(replica, epochs_on=1, directory=directory_of(replica.node_id)).topics[0].partitions
    assert partition.error_code == ErrorCode.NONE


@pytest.mark.parametrize("ask", [vote, begin, end])
def test_a_request_of_an_older_epoch_is_fenced_and_told_who_leads(quorum: Quorum, ask: Asked) -> None:
    replica = quorum.followers()[0]
    before = state_of(replica)
    (partition,) = ask(replica, epochs_on=-1).topics[0].partitions
    assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (partition.leader_id, partition.leader_epoch) == (quorum.leader.node_id, replica.log.raft.epoch)
    assert state_of(replica) == before


@pytest.mark.parametrize("ask", [begin, end])
@pytest.mark.parametrize("claimed", ["nobody", "the replica itself", "another voter"])
def test_an_epoch_has_the_leader_that_it_has(quorum: Quorum, ask: Asked, claimed: str) -> None:
    replica, other = quorum.followers()
    leader_id = {"nobody": NOBODY, "the replica itself": replica.node_id, "another voter": other.node_id}[claimed]
    before = state_of(replica)
    (partition,) = ask(replica, leader_id=leader_id).topics[0].partitions
    assert partition.error_code == ErrorCode.INVALID_REQUEST
    assert state_of(replica) == before


def test_a_candidate_whose_log_ends_nowhere_is_refused(quorum: Quorum) -> None:
    replica = quorum.followers()[0]
    (partition,) = vote(replica, epochs_on=1, last_offset=-1).topics[0].partitions
    assert (partition.error_code, partition.vote_granted) == (ErrorCode.INVALID_REQUEST, False)
