"""UpdateRaftVoter as a controller answers it: who leads is in it (KIP-853)."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.controller.controller_server import ControllerRequest
from ottla.controller.voter_requests import update_raft_voter
from ottla.runtime.channels import THIS_NODE
from ottla.runtime.metadata.quorum.quorum_view import QuorumEndpoint
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import UpdateRaftVoterRequest


def answered(error: ErrorCode) -> tuple[list[Any], list[ErrorCode]]:
    ends = [QuorumEndpoint(1, "CONTROLLER", "one", 9093), QuorumEndpoint(2, "CONTROLLER", "two", 9094)]
    quorum = SimpleNamespace(leader_id=2, leader_epoch=7, endpoints=lambda: ends)
    changes = SimpleNamespace(update=lambda _request, told: told(error, None))
    server: Any = SimpleNamespace(quorum=quorum, replica=SimpleNamespace(voter_changes=changes))
    replies: list[Any] = []
    failures: list[ErrorCode] = []
    update_raft_voter(
        server, ControllerRequest(UpdateRaftVoterRequest(), 0, THIS_NODE), replies.append, failures.append
    )
    return replies, failures


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
def test_the_answer_names_the_leader_and_its_epoch(error: ErrorCode) -> None:
    """Apache Kafka's voters take an answer without them for one of the past, and ask for ever."""
    ((reply,), failures) = answered(error)
    leader = reply.current_leader
    assert (reply.error_code, failures) == (error, [])
    assert (leader.leader_id, leader.leader_epoch, leader.host, leader.port) == (2, 7, "two", 9094)


def test_a_controller_that_is_not_active_yet_is_asked_again() -> None:
    assert answered(ErrorCode.NOT_CONTROLLER) == ([], [ErrorCode.NOT_CONTROLLER])
