"""A group whose state contradicts itself is offline by name; its node, its partition and the other groups go on."""

import pytest

from ottla.machines.group.classic.group import ClassicGroup
from ottla.machines.group.commits import Commits
from ottla.machines.group.offsets import Offsets
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import HeartbeatRequest, ListGroupsRequest
from tests.unit.broker.brokers import TestNode
from tests.unit.broker.groups.test_groups import commit, coordinating, errors_in, fetch_all, join, joined, offsets_in


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> TestNode:
    """All groups are in one partition, and `bad` breaks as soon as somebody joins it."""
    add = ClassicGroup.add

    def checked(group: ClassicGroup, *args: object) -> None:
        assert group.group_id != "bad", "this group has no members"
        add(group, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ClassicGroup, "add", checked)
    return coordinating(partitions=1)


def test_a_broken_group_costs_nobody_else_anything(node: TestNode, caplog: pytest.LogCaptureFixture) -> None:
    member_id, generation = joined(node, group_id="good")
    required = node.send(join(group_id="bad"), 9)
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert node.send(join(required.member_id, "bad"), 9).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [entry.getMessage() for entry in caplog.records if entry.exc_info] == [
        "bad failed, and is unavailable until __consumer_offsets-0 is loaded again"
    ]
    assert node.send(join(group_id="bad"), 9).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    refused = node.send(commit(group_id="bad", generation_id_or_member_epoch=-1), 9)
    assert errors_in(refused) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}
    beat = HeartbeatRequest(group_id="good", member_id=member_id, generation_id=generation)
    assert node.send(beat, 4).error_code == ErrorCode.NONE
    taken = node.send(commit(7, group_id="good", member_id=member_id, generation_id_or_member_epoch=generation), 9)
    assert errors_in(taken) == {"orders": {0: ErrorCode.NONE}}
    assert offsets_in(node.send(fetch_all("good"), 9)) == {"good": {("orders", 0): 7}}
    assert [group.group_id for group in node.send(ListGroupsRequest(), 5).groups] == ["good"]


def test_timers_of_a_broken_group_are_of_no_account(node: TestNode) -> None:
    required = node.send(join(group_id="bad"), 9)
    node.send(join(required.member_id, "bad"), 9)
    node.timers.advance(600_000)
    assert node.send(join(group_id="good"), 9).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_the_group_without_a_name_breaks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps offsets as any other does (KIP-289), and is one group and not all of them."""
    node = coordinating(partitions=1)
    replay = Offsets.replay_commits

    def checked(offsets: Offsets, commits: Commits) -> None:
        assert commits.group_id != "", "this group keeps nothing"
        replay(offsets, commits)

    monkeypatch.setattr(Offsets, "replay_commits", checked)
    refused = node.send(commit(group_id="", generation_id_or_member_epoch=-1), 9)
    assert errors_in(refused) == {"orders": {0: ErrorCode.UNKNOWN_SERVER_ERROR}}
    refused = node.send(commit(group_id="", generation_id_or_member_epoch=-1), 9)
    assert errors_in(refused) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}
    taken = node.send(commit(group_id="good", generation_id_or_member_epoch=-1), 9)
    assert errors_in(taken) == {"orders": {0: ErrorCode.NONE}}
