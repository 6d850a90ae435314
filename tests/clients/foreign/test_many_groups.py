"""Very many groups at one node: what a member costs in memory, and that each of them is heard.

One connection carries all members, by raw requests of which many are under way. Requests of one connection are taken
in order, which is what lets a group form in a known way.
"""

import socket
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest

from ottla.testing.node import RunningNode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import (
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from ottla.wire.record_values import encode_versioned
from tests.clients.eventually import eventually

MEMBERS_A_GROUP = 10
GROUPS_AT_ONCE = 50
MOST_BYTES_A_MEMBER = 5_000
SESSION_MS = 1_800_000  # nobody's session ends while the others join
# JoinGroup before version 4 lets a member in without asking it to come again with its id.
VERSIONS = {FindCoordinatorRequest: 4, JoinGroupRequest: 3, SyncGroupRequest: 3, HeartbeatRequest: 3}
SUBSCRIPTION = encode_versioned(ConsumerProtocolSubscription(topics=["orders"]), 3)
ASSIGNMENT = bytes(50)

Members = dict[str, list[str]]
"""The ids of the members of each group; the first is its leader."""


class Crowd:
    def __init__(self, node: RunningNode) -> None:
        self._socket = socket.create_connection(node.address, 60)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, requests: Sequence[Message]) -> list[Any]:
        """All at once; the answers come in the same order."""
        frames = [encode_request(request, VERSIONS[type(request)], 1, "crowd") for request in requests]
        self._socket.sendall(b"".join(frames))
        return [self._answer(type(request)) for request in requests]

    def _answer(self, request: type[Message]) -> Any:
        frame = self._stream.read(int.from_bytes(self._stream.read(4), "big"))
        return decode_response(response_type(request._schema.api_key), frame, VERSIONS[request])[1]

    def form(self, groups: list[str]) -> Members:
        """The first member is a group by itself; when the others have come it joins again, and all are let in."""
        alone = self.ask([join(group) for group in groups])
        firsts = {group: only.member_id for group, only in zip(groups, alone, strict=True)}
        joined = iter(self.ask([request for group in groups for request in rest_joins(group, firsts[group])]))
        members: Members = {}
        for group in groups:
            *others, first = islice(joined, MEMBERS_A_GROUP)
            members[group] = [each.member_id for each in (first, *others)]
            assert {each.error_code for each in (first, *others)} == {ErrorCode.NONE}
            assert len(first.members) == MEMBERS_A_GROUP
            assert (first.leader, first.generation_id) == (firsts[group], 2)
        for synced in self.ask([sync(group, ids, each) for group, ids in members.items() for each in ids]):
            assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, ASSIGNMENT)
        return members


def join(group: str, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )


def rest_joins(group: str, first_id: str) -> list[JoinGroupRequest]:
    return [*(join(group) for _ in range(MEMBERS_A_GROUP - 1)), join(group, first_id)]


def sync(group: str, ids: list[str], member_id: str) -> SyncGroupRequest:
    given = [SyncGroupRequest.SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT) for each in ids]
    return SyncGroupRequest(
        group_id=group, generation_id=2, member_id=member_id, assignments=given if member_id == ids[0] else []
    )


def errors_of_heartbeats(crowd: Crowd, members: Members) -> set[int]:
    beats = [
        HeartbeatRequest(group_id=group, generation_id=2, member_id=each)
        for group, ids in members.items()
        for each in ids
    ]
    return {answer.error_code for answer in crowd.ask(beats)}


@pytest.mark.parametrize(
    "groups", [pytest.param(500, id="500 groups"), pytest.param(10_000, id="10,000 groups", marks=pytest.mark.long)]
)
def test_a_member_costs_less_than_five_kilobytes_and_is_heard(groups: int) -> None:
    names = [f"group-{number}" for number in range(groups)]
    waves = [names[start : start + GROUPS_AT_ONCE] for start in range(0, groups, GROUPS_AT_ONCE)]
    with RunningNode() as node, Crowd(node) as crowd:
        crowd.ask([FindCoordinatorRequest(key_type=0, coordinator_keys=names[:1])])
        nobody = {name: ["nobody"] for name in names[:500]}
        eventually(lambda: errors_of_heartbeats(crowd, nobody), {int(ErrorCode.UNKNOWN_MEMBER_ID)})
        crowd.form(["one that brings in what is only loaded when it is needed"])

        before = node.rss_bytes()
        formed = [crowd.form(wave) for wave in waves]
        per_member = (node.rss_bytes() - before) / (groups * MEMBERS_A_GROUP)
        assert per_member < MOST_BYTES_A_MEMBER, (
            f"{per_member:.0f} bytes for each of {groups * MEMBERS_A_GROUP} members"
        )

        for members in formed:
            assert errors_of_heartbeats(crowd, members) == {ErrorCode.NONE}
