"""Commits, from the request to the log and back: one way for all of them, compiled and in Python."""

from copy import deepcopy
from errno import ENOSPC
from random import Random
from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID
from ottla.broker.partitions import quick_append
from ottla.broker.partitions.partition import Partition
from ottla.machines.coordinator_machine import TransactionStamp
from ottla.machines.group.offsets import Offsets
from ottla.records.control import EndTransactionMarker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetCommitRequest, TxnOffsetCommitRequest
from tests.unit.broker.brokers import NODE_ID, TestNode, topic_id_of
from tests.unit.broker.groups.commits_in_python import commit_in_python
from tests.unit.broker.groups.test_groups import (
    GROUP,
    GROUPS,
    coordinating,
    errors_in,
    fetch_all,
    join,
    joined,
    offsets_in,
)

VERSIONS = range(2, 11)
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
NONE = {"orders": {0: ErrorCode.NONE}}


@pytest.fixture
def node() -> TestNode:
    return coordinating(partitions=1)


def commit(*offsets: int, topic: str = "orders", epoch: int = -1, metadata: str | None = "", **fields: Any) -> Any:
    """Of the first partitions of a topic."""
    partitions = [
        _Partition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=epoch,
            committed_metadata=metadata,
        )
        for index, offset in enumerate(offsets)
    ]
    named = _Topic(name=topic, partitions=partitions)
    return OffsetCommitRequest(group_id=fields.pop("group_id", GROUP), topics=[named], **fields)


def by_id(request: OffsetCommitRequest) -> OffsetCommitRequest:
    for topic in request.topics:
        topic.name, topic.topic_id = "", topic_id_of(topic.name)
    return request


def committed(node: TestNode, group_id: str = GROUP) -> dict[tuple[str, int], int]:
    return offsets_in(node.send(fetch_all(group_id), 9))[group_id]


def log_of(node: TestNode) -> bytes:
    log = node.partition(GROUPS).log
    return log.read(0, 1 << 20, log.log_end_offset).read()


@pytest.mark.parametrize("version", VERSIONS)
def test_offsets_are_kept_in_every_version(node: TestNode, version: int) -> None:
    made = commit(7, 8, epoch=14)
    reply = node.send(by_id(made) if version >= 10 else made, version)
    (topic,) = reply.topics
    assert (topic.name, topic.topic_id) == (("", topic_id_of("orders")) if version >= 10 else ("orders", ZERO_UUID))
    assert [(part.partition_index, part.error_code) for part in topic.partitions] == [(0, 0), (1, 0)]
    assert committed(node) == {("orders", 0): 7, ("orders", 1): 8}
    (told,) = node.send(fetch_all(), 9).groups[0].topics
    assert told.partitions[0].committed_leader_epoch == (14 if version >= 6 else -1)


def test_partitions_of_several_topics_keep_their_own_offsets(node: TestNode) -> None:
    node.create_topic("bills", 2)
    request = commit(4, 5)
    request.topics += commit(6, topic="bills").topics
    assert errors_in(node.send(request, 9)) == {"orders": {0: ErrorCode.NONE, 1: ErrorCode.NONE}, "bills": {0: 0}}
    assert committed(node) == {("orders", 0): 4, ("orders", 1): 5, ("bills", 0): 6}


def test_a_topic_that_is_named_twice_is_answered_once(node: TestNode) -> None:
    request = commit(4)
    request.topics += commit(5, 6).topics
    (topic,) = node.send(request, 9).topics
    assert [(part.partition_index, part.error_code) for part in topic.partitions] == [(0, 0), (0, 0), (1, 0)]
    assert committed(node) == {("orders", 0): 5, ("orders", 1): 6}


def test_what_the_cluster_does_not_have_is_refused_beside_what_it_has(node: TestNode) -> None:
    request = commit(4, topic="nowhere")
    request.topics += commit(5, 6, 7, 8).topics
    errors = errors_in(node.send(request, 9))
    assert errors["nowhere"] == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    there = committed(node)
    assert there == {("orders", index): 5 + index for index in range(len(there))}
    assert [index for index, error in errors["orders"].items() if not error] == list(range(len(there)))
    assert len(there) < 4, "the topic has fewer partitions than were committed"


@pytest.mark.parametrize("metadata", ["", None, "a note", "ü" * 100, "n" * 4096])
def test_the_metadata_of_a_commit_comes_back(node: TestNode, metadata: str | None) -> None:
    assert errors_in(node.send(commit(5, metadata=metadata), 9)) == NONE
    (topic,) = node.send(fetch_all(), 9).groups[0].topics
    assert topic.partitions[0].metadata == (metadata or "")


def test_the_log_cannot_tell_which_code_wrote_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Random(7)
    compiled, in_python = coordinating(partitions=1), coordinating(partitions=1)
    for number in range(60):
        request = commit(chance.randrange(-5, 1 << 62), chance.randrange(99), epoch=chance.randrange(-1, 9))
        request.group_id = chance.choice("ab")
        if number % 7 == 0:
            request.topics[0].partitions[1].committed_metadata = "ä" * chance.randrange(200)
        again = deepcopy(request)
        assert errors_in(compiled.send(request, 9)) == {"orders": {0: ErrorCode.NONE, 1: ErrorCode.NONE}}
        with monkeypatch.context() as patch:
            commit_in_python(patch)
            in_python.send(again, 9)
        assert log_of(compiled) == log_of(in_python)
        for node in (compiled, in_python):
            node.clock.advance(1)
    assert compiled.partition(GROUPS).traffic.bytes_in == in_python.partition(GROUPS).traffic.bytes_in
    assert committed(compiled, "a") == committed(in_python, "a")


def test_offsets_outlive_a_restart(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.send(commit(6), 9)
    node.logs.close(0)
    assert committed(TestNode(disk=node.disk, image=node.image, clock=node.clock)) == {("orders", 0): 6}


# Whether the group still takes it


def test_a_member_of_an_earlier_generation_is_refused(node: TestNode) -> None:
    member_id, generation = joined(node)
    of_member = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    assert errors_in(node.send(commit(5, **of_member), 9)) == NONE
    assert errors_in(node.send(commit(6, **of_member), 9)) == NONE
    node.ask(join(member_id), 9, "ann")
    node.timers.advance(0)
    assert errors_in(node.send(commit(7, **of_member), 9)) == {"orders": {0: ErrorCode.ILLEGAL_GENERATION}}
    assert committed(node) == {("orders", 0): 6}


def test_a_commit_keeps_the_session_of_its_member(node: TestNode) -> None:
    member_id, generation = joined(node)
    of_member = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    for _ in range(5):
        node.timers.advance(8_000)
        assert errors_in(node.send(commit(6, **of_member), 9)) == NONE
    node.timers.advance(11_000)
    assert errors_in(node.send(commit(7, **of_member), 9)) == {"orders": {0: ErrorCode.UNKNOWN_MEMBER_ID}}


def test_a_group_that_was_deleted_begins_anew(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.broker.groups.find(GROUP).machine.groups.clear()
    assert errors_in(node.send(commit(6), 9)) == NONE
    assert list(node.broker.groups.find(GROUP).machine.groups) == [GROUP]


def test_a_commit_after_one_in_a_transaction_counts(node: TestNode) -> None:
    node.send(commit(5), 9)
    stamp = TransactionStamp(7, 0)
    in_transaction = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=50)
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="orders", partitions=[in_transaction])
    request = TxnOffsetCommitRequest(group_id=GROUP, producer_id=7, producer_epoch=0, generation_id=-1, topics=[topic])
    led = node.broker.groups.find(GROUP)
    led.submit(lambda machine, now_ms: machine.commit_offsets_in_transaction(request, now_ms), print, print, GROUP)
    assert errors_in(node.send(commit(6), 9)) == NONE
    led.end_transaction(stamp, EndTransactionMarker(True, 0), print, print)
    assert committed(node) == {("orders", 0): 6}


# What else may have changed


def test_a_topic_that_is_gone_takes_no_offsets(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.delete_topic("orders")
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}


def test_a_coordinator_that_has_lost_its_partition_takes_nothing(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.change_partition(GROUPS, leader=2, isr=(2,), replicas=(2,))
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.NOT_COORDINATOR}}


# Waiting, and what goes wrong


def test_it_waits_for_the_replicas_and_is_told_when_they_are_too_late() -> None:
    node = TestNode()
    node.create_topic(GROUPS, replicas=(NODE_ID, 2), isr=(NODE_ID, 2))
    node.create_topic("orders")
    first = node.ask(commit(5), 9)
    partition = node.partition(GROUPS)
    assert not first.is_here
    if partition.state.on_fetched(2, 1, 0, 0):
        partition.log.advance_high_watermark(1)
    node.broker.partitions.purgatory.wake(partition)
    assert errors_in(first.message) == NONE
    late = node.ask(commit(6), 9)
    assert not late.is_here
    node.timers.advance(5_000)
    assert errors_in(late.message) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def test_a_full_disk_takes_no_commits_for_a_second(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.send(commit(5), 9)
    with monkeypatch.context() as full:

        def fails(*_: Any) -> Any:
            raise OSError(ENOSPC, "no space")

        full.setattr(Partition, "append_made_here", fails)
        full.setattr(quick_append, "append_made_here", fails)
        refused = node.send(commit(6), 9)
    assert errors_in(refused) == {"orders": {0: ErrorCode.NOT_COORDINATOR}}
    assert errors_in(node.send(commit(7), 9)) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}
    assert committed(node) == {("orders", 0): 5}
    node.timers.advance(1_001)
    assert errors_in(node.send(commit(8), 9)) == NONE


def test_too_few_replicas_in_sync_are_told(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.configure_topic(GROUPS, min_insync_replicas="2")
    node.partition(GROUPS).state.has_enough_replicas = False
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def test_a_commit_that_does_not_fit_into_a_batch_is_refused(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.configure_topic(GROUPS, max_message_bytes="100")
    (error,) = errors_in(node.send(commit(6, metadata="n" * 200), 9))["orders"].values()
    assert error
    assert committed(node) == {("orders", 0): 5}


def test_a_group_that_breaks_meanwhile_is_offline(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.send(commit(5), 9)

    def breaks(*_: Any) -> None:
        raise RuntimeError("this cannot be")

    monkeypatch.setattr(Offsets, "replay_commits", breaks)
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.UNKNOWN_SERVER_ERROR}}
    assert node.partition(GROUPS).log.log_end_offset == 1, "nothing of it is written"
    assert errors_in(node.send(commit(7), 9)) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def test_commits_of_one_turn_are_one_batch(node: TestNode) -> None:
    node.send(commit(1, group_id="a"), 9)
    endings: list[Any] = []
    node.network.at_end_of_turn = endings.append
    replies = [node.ask(commit(2, group_id="a"), 9), node.ask(commit(3, group_id="b"), 9)]
    replies += [node.ask(commit(4, group_id="a"), 9)]
    assert not any(reply.is_here for reply in replies)
    (write,) = endings
    write()
    assert all(errors_in(reply.message) == NONE for reply in replies)
    log = node.partition(GROUPS).log
    assert (log.log_end_offset, log.high_watermark) == (4, 4)
    assert (committed(node, "a"), committed(node, "b")) == ({("orders", 0): 4}, {("orders", 0): 3})
