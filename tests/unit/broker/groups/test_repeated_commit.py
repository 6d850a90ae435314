"""Commits that come again with other offsets: which are known, and which are decoded after all."""

from errno import ENOSPC
from random import Random
from typing import Any

import pytest
from brokers import NODE_ID, TestNode, topic_id_of
from repeated_commits import again
from test_groups import GROUP, GROUPS, coordinating, errors_in, fetch_all, join, joined, offsets_in

from ottla.broker.partitions.partition import Partition
from ottla.machines.coordinator_machine import TransactionStamp
from ottla.machines.group.offsets import Offsets
from ottla.records.control import EndTransactionMarker
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetCommitRequest, TxnOffsetCommitRequest

VERSIONS = range(6, 11)
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
NONE = {"orders": {0: ErrorCode.NONE}}


@pytest.fixture(autouse=True)
def way() -> None:
    """Here each test says itself what is decoded."""


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
def test_a_commit_like_the_one_before_is_taken_undecoded(node: TestNode, version: int) -> None:
    def request(*offsets: int) -> OffsetCommitRequest:
        made = commit(*offsets, epoch=offsets[0] + 7)
        return by_id(made) if version >= 10 else made

    assert again(node, request(5, 6), version) is None
    decoded = node.send(request(5, 6), version)
    known = again(node, request(7, 8), version)
    assert known is not None
    assert known.message == decoded
    assert committed(node) == {("orders", 0): 7, ("orders", 1): 8}
    (topic,) = node.send(fetch_all(), 9).groups[0].topics
    assert topic.partitions[0].committed_leader_epoch == 14


def test_partitions_of_several_topics_keep_their_own_offsets(node: TestNode) -> None:
    node.create_topic("bills", 2)

    def request(*offsets: int) -> OffsetCommitRequest:
        made = commit(*offsets[:2])
        made.topics += commit(offsets[2], topic="bills").topics
        return made

    node.send(request(1, 2, 3), 9)
    assert again(node, request(4, 5, 6)) is not None
    assert committed(node) == {("orders", 0): 4, ("orders", 1): 5, ("bills", 0): 6}


@pytest.mark.parametrize(
    "other",
    [
        commit(6, group_id="other"),
        commit(6, group_id="writers"),
        commit(6, 7),
        commit(6, metadata="m"),
        commit(6, metadata=None),
        commit(6, member_id="m"),
        commit(6, generation_id_or_member_epoch=1),
        commit(6, group_instance_id="i"),
        commit(6, topic="bills"),
    ],
)
def test_another_commit_is_decoded_and_nothing_has_happened(node: TestNode, other: OffsetCommitRequest) -> None:
    node.send(commit(5), 9)
    assert again(node, other) is None
    assert again(node, commit(6), client_id="another") is None
    assert again(node, commit(6), 8) is None
    assert committed(node) == {("orders", 0): 5}


@pytest.mark.parametrize("request_", [commit(5, metadata="m"), commit(5, topic="nowhere")])
def test_there_are_commits_that_are_never_known(node: TestNode, request_: OffsetCommitRequest) -> None:
    node.send(request_, 9)
    assert again(node, request_) is None


def test_before_there_were_leader_epochs_no_commit_is_known(node: TestNode) -> None:
    node.send(commit(5), 5)
    assert again(node, commit(6), 5) is None


def test_the_log_cannot_tell_whether_a_commit_was_decoded() -> None:
    chance = Random(7)
    decoding, knowing = coordinating(partitions=1), coordinating(partitions=1)
    for node in (decoding, knowing):
        for group_id in ("a", "b"):
            node.send(commit(1, 2, group_id=group_id), 9)
    for _ in range(50):
        request = commit(chance.randrange(-5, 1 << 62), chance.randrange(99), epoch=chance.randrange(-1, 9))
        request.group_id = chance.choice("ab")
        assert again(knowing, request) is not None
        decoding.send(request, 9)
        assert log_of(knowing) == log_of(decoding)
        for node in (decoding, knowing):
            node.clock.advance(1)
    assert knowing.partition(GROUPS).traffic.bytes_in == decoding.partition(GROUPS).traffic.bytes_in


def test_offsets_that_were_taken_undecoded_outlive_a_restart(node: TestNode) -> None:
    node.send(commit(5), 9)
    assert again(node, commit(6)) is not None
    node.logs.close(0)
    assert committed(TestNode(disk=node.disk, image=node.image, clock=node.clock)) == {("orders", 0): 6}


# Whether the group still takes it


def test_a_member_of_an_earlier_generation_is_refused(node: TestNode) -> None:
    member_id, generation = joined(node)
    of_member = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    assert errors_in(node.send(commit(5, **of_member), 9)) == NONE
    assert again(node, commit(6, **of_member)) is not None
    node.ask(join(member_id), 9, "ann")
    node.timers.advance(0)
    assert again(node, commit(7, **of_member)) is None
    assert errors_in(node.send(commit(7, **of_member), 9)) == {"orders": {0: ErrorCode.ILLEGAL_GENERATION}}
    assert committed(node) == {("orders", 0): 6}


def test_a_commit_keeps_the_session_of_its_member(node: TestNode) -> None:
    member_id, generation = joined(node)
    of_member = {"member_id": member_id, "generation_id_or_member_epoch": generation}
    node.send(commit(5, **of_member), 9)
    for _ in range(5):
        node.timers.advance(8_000)
        assert again(node, commit(6, **of_member)) is not None
    node.timers.advance(11_000)
    assert again(node, commit(7, **of_member)) is None
    assert errors_in(node.send(commit(7, **of_member), 9)) == {"orders": {0: ErrorCode.UNKNOWN_MEMBER_ID}}


def test_a_group_that_was_deleted_begins_anew_by_being_decoded(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.broker.groups.find(GROUP).machine.groups.clear()
    assert again(node, commit(6)) is None
    assert errors_in(node.send(commit(6), 9)) == NONE


def test_a_commit_after_one_in_a_transaction_counts(node: TestNode) -> None:
    node.send(commit(5), 9)
    stamp = TransactionStamp(7, 0)
    in_transaction = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=50)
    topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="orders", partitions=[in_transaction])
    request = TxnOffsetCommitRequest(group_id=GROUP, producer_id=7, producer_epoch=0, generation_id=-1, topics=[topic])
    led = node.broker.groups.find(GROUP)
    led.submit(lambda machine, now_ms: machine.commit_offsets_in_transaction(request, now_ms), print, print, GROUP)
    assert again(node, commit(6)) is not None
    led.end_transaction(stamp, EndTransactionMarker(True, 0), print, print)
    assert committed(node) == {("orders", 0): 6}


# What else may have changed


def test_a_topic_that_is_gone_takes_no_offsets(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.delete_topic("orders")
    assert again(node, commit(6)) is None
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}


def test_a_coordinator_that_has_lost_its_partition_takes_nothing(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.change_partition(GROUPS, leader=2, isr=(2,), replicas=(2,))
    assert again(node, commit(6)) is None
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.NOT_COORDINATOR}}


def test_what_one_connection_has_learned_is_its_own(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.client = type(node.client)(2, "PLAINTEXT", "127.0.0.1", "User:somebody", line=node.line)
    assert again(node, commit(6)) is None
    node.send(commit(6), 9)
    node.client.repeated[8]._known.clear()
    assert again(node, commit(7)) is None


# Waiting, and what goes wrong


def test_it_waits_for_the_replicas_and_is_told_when_they_are_too_late() -> None:
    node = TestNode()
    node.create_topic(GROUPS, replicas=(NODE_ID, 2), isr=(NODE_ID, 2))
    node.create_topic("orders")
    first = node.ask(commit(5), 9)
    partition = node.partition(GROUPS)
    if partition.state.on_fetched(2, 1, 0, 0):
        partition.log.advance_high_watermark(1)
    node.broker.partitions.purgatory.wake(partition)
    assert errors_in(first.message) == NONE
    known = again(node, commit(6))
    assert not known.is_here
    node.timers.advance(5_000)
    assert errors_in(known.message) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def test_a_full_disk_is_told_as_to_any_other_commit(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.send(commit(5), 9)
    with monkeypatch.context() as full:

        def fails(*_: Any) -> Any:
            raise OSError(ENOSPC, "no space")

        full.setattr(Partition, "append_assigned", fails)
        known = again(node, commit(6))
    assert errors_in(known.message) == {"orders": {0: ErrorCode.NOT_COORDINATOR}}
    assert again(node, commit(7)) is None, "nothing is taken up for a second"
    assert committed(node) == {("orders", 0): 5}
    node.timers.advance(1_001)
    assert errors_in(node.send(commit(8), 9)) == NONE
    assert again(node, commit(9)) is not None


def test_too_few_replicas_in_sync_are_told_by_the_usual_way(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.configure_topic(GROUPS, min_insync_replicas="2")
    node.partition(GROUPS).state.has_enough_replicas = False
    assert again(node, commit(6)) is None
    assert errors_in(node.send(commit(6), 9)) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def test_a_commit_that_does_not_fit_into_a_batch_is_decoded(node: TestNode) -> None:
    node.send(commit(5), 9)
    node.configure_topic(GROUPS, max_message_bytes="100")
    assert again(node, commit(6)) is None


def test_a_group_that_breaks_meanwhile_is_offline(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.send(commit(5), 9)

    def breaks(*_: Any) -> None:
        raise RuntimeError("this cannot be")

    monkeypatch.setattr(Offsets, "replay_commit", breaks)
    known = again(node, commit(6))
    assert errors_in(known.message) == {"orders": {0: ErrorCode.UNKNOWN_SERVER_ERROR}}
    assert node.partition(GROUPS).log.log_end_offset == 1, "nothing of it is written"
    assert again(node, commit(7)) is None
    assert errors_in(node.send(commit(7), 9)) == {"orders": {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def test_commits_of_one_turn_are_one_batch_whether_they_are_known_or_not(node: TestNode) -> None:
    node.send(commit(1, group_id="a"), 9)
    endings: list[Any] = []
    node.network.at_end_of_turn = endings.append
    replies = [again(node, commit(2, group_id="a")), node.ask(commit(3, group_id="b"), 9)]
    replies += [again(node, commit(4, group_id="a"))]
    assert not any(reply.is_here for reply in replies)
    (write,) = endings
    write()
    assert all(errors_in(reply.message) == NONE for reply in replies)
    log = node.partition(GROUPS).log
    assert (log.log_end_offset, log.high_watermark) == (4, 4)
    assert (committed(node, "a"), committed(node, "b")) == ({("orders", 0): 4}, {("orders", 0): 3})
