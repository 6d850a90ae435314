"""What a replica of the quorum answers to Vote, BeginQuorumEpoch and EndQuorumEpoch (KIP-595, KIP-853, KIP-996).

Each is checked first: the cluster it is of, the partition it is about, and that it was meant for this replica in this
directory. A request of an older epoch is fenced, and answered with who leads now.
"""

from __future__ import annotations  # messages are made when they are first named

from typing import Any, Protocol

from ottla.base.ids import ZERO_UUID
from ottla.machines.raft.events import NOBODY, AnswerVote, EpochBegan, EpochEnded, LogEnd, VoteRequested
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import ReplicaKey
from ottla.runtime.channels import Then
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.storage.store import PARTITION
from ottla.wire import messages
from ottla.wire.errors import ErrorCode


class QuorumLog(Protocol):
    raft: Raft
    quorum: QuorumDriver


class QuorumAnswers:
    """Of one replica."""

    def __init__(self, log: QuorumLog, network: QuorumNetwork) -> None:
        self._log = log
        self._network = network

    def vote(self, request: messages.VoteRequest, version: int, then: Then, listener: str = "") -> None:
        raft = self._log.raft
        error = self._refusal(request, getattr(request, "voter_id", -1))
        if error is not ErrorCode.NONE:
            then(messages.VoteResponse(error_code=error))
            return
        asked = request.topics[0].partitions[0]
        error = self._wrong_directory(asked)
        is_own = self._network.same_id.is_own_question(asked)
        if is_own or asked.last_offset < 0 or asked.last_offset_epoch < 0 or asked.replica_epoch < 0:
            error = ErrorCode.INVALID_REQUEST
        elif error is ErrorCode.NONE and asked.replica_epoch < raft.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        if error is not ErrorCode.NONE:
            then(self._vote_response(version, listener, error, granted=False))
            return

        def answer(answered: AnswerVote) -> None:
            response = self._vote_response(version, listener, ErrorCode.NONE, granted=answered.granted)
            if (answered.epoch, answered.leader_id) != (raft.epoch, raft.leader_id):
                # More has become known while the vote was saved: the answer is about the moment of the vote.
                partition = response.topics[0].partitions[0]
                partition.leader_epoch, partition.leader_id = answered.epoch, NOBODY
                response.node_endpoints = []
            then(response)

        self._log.quorum.votes.append(answer)
        self._log.quorum.step(
            VoteRequested(
                ReplicaKey(asked.replica_id, asked.replica_directory_id),
                asked.replica_epoch,
                LogEnd(asked.last_offset_epoch, asked.last_offset),
                asked.pre_vote,
            )
        )

    def begin_epoch(
        self, request: messages.BeginQuorumEpochRequest, version: int, then: Then, listener: str = ""
    ) -> None:
        error = self._refusal(request, request.voter_id)
        if error is not ErrorCode.NONE:
            then(messages.BeginQuorumEpochResponse(error_code=error))
            return
        asked = request.topics[0].partitions[0]
        error = self._wrong_directory(asked) or self._wrong_leader(asked)
        if error is ErrorCode.NONE:
            self._network.learn_of(asked.leader_id, request.leader_endpoints)
            self._log.quorum.step(EpochBegan(asked.leader_id, asked.leader_epoch))
        then(self._reply(messages.BeginQuorumEpochResponse, version, listener, error))

    def end_epoch(self, request: messages.EndQuorumEpochRequest, version: int, then: Then, listener: str = "") -> None:
        error = self._refusal(request, -1)
        if error is not ErrorCode.NONE:
            then(messages.EndQuorumEpochResponse(error_code=error))
            return
        asked = request.topics[0].partitions[0]
        error = self._wrong_leader(asked)
        if error is ErrorCode.NONE:
            successors = [one.candidate_id for one in asked.preferred_candidates] or asked.preferred_successors
            self._log.quorum.step(EpochEnded(asked.leader_epoch, tuple(successors)))
        then(self._reply(messages.EndQuorumEpochResponse, version, listener, error))

    # Checks

    def _refusal(self, request: Any, voter_id: int) -> ErrorCode:
        """Why the whole request is refused."""
        if request.cluster_id is not None and request.cluster_id != self._network.cluster_id:
            return ErrorCode.INCONSISTENT_CLUSTER_ID
        topics = request.topics
        if (
            len(topics) != 1
            or topics[0].topic_name != PARTITION.topic
            or [partition.partition_index for partition in topics[0].partitions] != [0]
        ):
            return ErrorCode.INVALID_REQUEST
        if voter_id >= 0 and voter_id != self._log.raft.me.key.id:
            return ErrorCode.INVALID_VOTER_KEY
        return ErrorCode.NONE

    def _wrong_directory(self, asked: Any) -> ErrorCode:
        """A voter is known by its directory too, where the voters are data."""
        is_mine = asked.voter_directory_id in (ZERO_UUID, self._log.raft.me.key.directory_id)
        return ErrorCode.NONE if is_mine else ErrorCode.INVALID_VOTER_KEY

    def _wrong_leader(self, asked: Any) -> ErrorCode:
        raft = self._log.raft
        if asked.leader_epoch < raft.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if asked.leader_id < 0 or asked.leader_id == raft.me.key.id:
            return ErrorCode.INVALID_REQUEST
        is_other = asked.leader_epoch == raft.epoch and raft.leader_id not in (-1, asked.leader_id)
        return ErrorCode.INVALID_REQUEST if is_other else ErrorCode.NONE

    # Responses

    def _vote_response(self, version: int, listener: str, error: ErrorCode, *, granted: bool) -> messages.VoteResponse:
        response = self._reply(messages.VoteResponse, version, listener, error)
        response.topics[0].partitions[0].vote_granted = granted
        return response  # type: ignore[no-any-return]

    def _reply(self, kind: Any, version: int, listener: str, error: ErrorCode) -> Any:
        """An answer that names the leader and the epoch, as all of them do."""
        raft = self._log.raft
        leader_id, address = self._network.leader_for(raft, listener)
        partition = kind.PartitionData(
            partition_index=0, error_code=error, leader_id=leader_id, leader_epoch=raft.epoch
        )
        response = kind(topics=[kind.TopicData(topic_name=PARTITION.topic, partitions=[partition])])
        if version >= 1 and address is not None:
            response.node_endpoints = [kind.NodeEndpoint(node_id=leader_id, host=address.host, port=address.port)]
        return response
