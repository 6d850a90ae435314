"""AddRaftVoter 0-1, RemoveRaftVoter 0 and UpdateRaftVoter 0 (KIP-853): the leader of the quorum changes its voters.

A broker passes on what an administrator asks (`kafka-metadata-quorum add-controller`); on a controller that does not
lead the answer is NOT_LEADER_OR_FOLLOWER, which sends a tool on, and NOT_CONTROLLER to a broker.
"""

from collections.abc import Callable
from typing import Any

from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.quorum_view import QuorumView
from ottla.runtime.metadata.quorum.voter_changes import Done, VoterChanges
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddRaftVoterResponse, RemoveRaftVoterResponse, UpdateRaftVoterResponse


def add_raft_voter(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    _changes(server).add(asked.request, _replying(AddRaftVoterResponse, then, failed))


def remove_raft_voter(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    _changes(server).remove(asked.request, _replying(RemoveRaftVoterResponse, then, failed))


def update_raft_voter(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    """The answer names the leader, or Apache Kafka's controllers take it for one of the past and ask for ever."""

    def done(error: ErrorCode, _message: str | None) -> None:
        if error is ErrorCode.NOT_CONTROLLER:
            failed(error)
        else:
            then(UpdateRaftVoterResponse(error_code=error, current_leader=_current_leader(server.quorum)))

    _changes(server).update(asked.request, done)


def _current_leader(quorum: QuorumView) -> UpdateRaftVoterResponse.CurrentLeader:
    leader = UpdateRaftVoterResponse.CurrentLeader(leader_id=quorum.leader_id, leader_epoch=quorum.leader_epoch)
    for end in quorum.endpoints():
        if end.node_id == quorum.leader_id and not leader.host:
            leader.host, leader.port = end.host, end.port
    return leader


def _replying(kind: Callable[..., Any], then: Then, failed: Failed) -> Done:
    def done(error: ErrorCode, message: str | None) -> None:
        if error in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            failed(ErrorCode.NOT_CONTROLLER)
        else:
            then(kind(error_code=error, error_message=message))

    return done


def _changes(server: ControllerServer) -> VoterChanges:
    assert server.replica is not None and server.replica.voter_changes is not None, "a node without a network was asked"
    return server.replica.voter_changes
