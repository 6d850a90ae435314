"""Consumer groups as clients of a broker see them; the groups themselves are tested with their machine."""

from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.broker.coordination.coordinators import GROUPS
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsResponse,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FeatureLevelRecord,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    PartitionRecord,
    SyncGroupRequest,
)
from tests.unit.broker.brokers import NODE_ID, TestNode, topic_id_of

GROUP = "readers"


def coordinating(partitions: int = 3, **settings: str) -> TestNode:
    """A node that leads the topic of the groups and a topic to read."""
    node = TestNode(group_initial_rebalance_delay_ms="0", **settings)
    node.register_broker(NODE_ID, "here", 9092)
    node.create_topic(GROUPS, partitions)
    node.create_topic("orders", 2)
    return node


def restarted(node: TestNode) -> TestNode:
    node.logs.close(0)
    return TestNode(disk=node.disk, image=node.image, clock=node.clock, group_initial_rebalance_delay_ms="0")


def join(member_id: str = "", group_id: str = GROUP, **fields: Any) -> JoinGroupRequest:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=fields.pop("session_timeout_ms", 10_000),
        rebalance_timeout_ms=fields.pop("rebalance_timeout_ms", 60_000),
        protocol_type="consumer",
        protocols=[protocol],
        **fields,
    )


def joined(node: TestNode, version: int = 9, group_id: str = GROUP) -> tuple[str, int]:
    """A member of a stable group of one, and its generation."""
    first = node.send(join(group_id=group_id), version, "ann")
    reply = node.ask(join(first.member_id, group_id), version, "ann")
    node.timers.advance(0)
    assert reply.message.error_code == ErrorCode.NONE
    member_id, generation = reply.message.member_id, reply.message.generation_id
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[assignment],
    )
    assert node.send(request, 5).assignment == b"all"
    return member_id, generation


def commit(offset: int = 5, index: int = 0, topic: str = "orders", **fields: Any) -> OffsetCommitRequest:
    topic_id = fields.pop("topic_id", ZERO_UUID)
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata=""
    )
    named = OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[partition])
    return OffsetCommitRequest(group_id=fields.pop("group_id", GROUP), topics=[named], **fields)


def fetch_all(*group_ids: str, require_stable: bool = False) -> OffsetFetchRequest:
    groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=id, topics=None) for id in group_ids or [GROUP]]
    return OffsetFetchRequest(groups=groups, require_stable=require_stable)


def offsets_in(reply: Any) -> dict[str, dict[tuple[str, int], int]]:
    return {
        group.group_id: {
            (topic.name, part.partition_index): part.committed_offset
            for topic in group.topics
            for part in topic.partitions
        }
        for group in reply.groups
    }


def errors_in(reply: Any) -> dict[str, dict[int, int]]:
    return {topic.name: {part.partition_index: part.error_code for part in topic.partitions} for topic in reply.topics}


# Finding


def test_the_coordinator_is_the_leader_of_the_groups_partition() -> None:
    node = coordinating()
    reply = node.send(FindCoordinatorRequest(key=GROUP), 3)
    assert (reply.error_code, reply.node_id, reply.host, reply.port) == (ErrorCode.NONE, NODE_ID, "here", 9092)
    reply = node.send(FindCoordinatorRequest(coordinator_keys=["a", "b"]), 6)
    assert [(found.key, found.node_id) for found in reply.coordinators] == [("a", NODE_ID), ("b", NODE_ID)]


def test_the_topic_of_the_groups_is_created_when_somebody_asks() -> None:
    node = TestNode()
    node.controller.replies.append(CreateTopicsResponse())
    reply = node.send(FindCoordinatorRequest(key=GROUP), 3)
    assert (reply.error_code, reply.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert len(node.controller.asked) == 1


def test_what_no_node_leads_has_no_coordinator() -> None:
    node = TestNode()
    node.create_topic(GROUPS, replicas=(NODE_ID, 2), leader=-1)
    reply = node.send(FindCoordinatorRequest(key=GROUP), 3)
    assert reply.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_node_that_is_not_the_coordinator_says_so_to_everyone() -> None:
    node = TestNode()
    not_here = ErrorCode.NOT_COORDINATOR
    node.create_topic("orders")
    for version in (1, 9):
        assert node.send(join(), version).error_code == not_here
    assert node.send(SyncGroupRequest(group_id=GROUP), 4).error_code == not_here
    assert node.send(HeartbeatRequest(group_id=GROUP), 4).error_code == not_here
    assert node.send(LeaveGroupRequest(group_id=GROUP, member_id="m"), 2).error_code == not_here
    assert node.send(commit(), 9).topics[0].partitions[0].error_code == not_here
    assert node.send(fetch_all(), 9).groups[0].error_code == not_here
    assert node.send(OffsetFetchRequest(group_id=GROUP, topics=None), 5).error_code == not_here
    assert node.send(DescribeGroupsRequest(groups=[GROUP]), 5).groups[0].error_code == not_here
    assert node.send(DeleteGroupsRequest(groups_names=[GROUP]), 2).results[0].error_code == not_here
    assert node.send(ListGroupsRequest(), 4).groups == []


def test_the_oldest_fetch_has_its_error_in_the_partitions() -> None:
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])
    reply = TestNode().send(OffsetFetchRequest(group_id=GROUP, topics=[topic]), 1)
    assert [part.error_code for part in reply.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2


# Members


@pytest.mark.parametrize("version", [4, 6, 7, 9])
def test_a_member_joins_syncs_commits_and_leaves(version: int) -> None:
    node = coordinating()
    member_id, generation = joined(node, version)
    assert member_id.startswith("ann-")
    heartbeat = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation)
    assert node.send(heartbeat, 4).error_code == ErrorCode.NONE
    taken = node.send(commit(member_id=member_id, generation_id_or_member_epoch=generation), 9)
    assert taken.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert offsets_in(node.send(fetch_all(), 9)) == {GROUP: {("orders", 0): 5}}
    leaving = [LeaveGroupRequest.MemberIdentity(member_id=member_id)]
    assert node.send(LeaveGroupRequest(group_id=GROUP, members=leaving), 5).members[0].error_code == ErrorCode.NONE
    assert node.send(DescribeGroupsRequest(groups=[GROUP]), 5).groups[0].group_state == "Empty"


def test_a_member_of_the_first_version_has_one_timeout_for_everything() -> None:
    node = coordinating()
    reply = node.ask(join(session_timeout_ms=7000, rebalance_timeout_ms=-1), 0)
    node.timers.advance(0)
    member_id = reply.message.member_id
    led = node.broker.coordinators.groups.find(GROUP)
    assert led is not None
    assert led.machine.groups[GROUP].members[member_id].rebalance_timeout_ms == 7000
    assert node.send(LeaveGroupRequest(group_id=GROUP, member_id=member_id), 0).error_code == ErrorCode.NONE
    assert node.send(LeaveGroupRequest(group_id=GROUP, member_id=member_id), 0).error_code == (
        ErrorCode.UNKNOWN_MEMBER_ID
    )


@pytest.mark.parametrize(
    ("request_", "version", "error"),
    [
        (join(group_id=""), 9, ErrorCode.INVALID_GROUP_ID),
        (join(session_timeout_ms=5999), 9, ErrorCode.INVALID_SESSION_TIMEOUT),
        (join(session_timeout_ms=1_800_001), 1, ErrorCode.INVALID_SESSION_TIMEOUT),
        (SyncGroupRequest(), 4, ErrorCode.INVALID_GROUP_ID),
        (SyncGroupRequest(group_id=GROUP), 5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (HeartbeatRequest(), 4, ErrorCode.INVALID_GROUP_ID),
        (LeaveGroupRequest(), 5, ErrorCode.INVALID_GROUP_ID),
        (OffsetDeleteRequest(), 0, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_what_makes_no_sense_is_refused(request_: Any, version: int, error: ErrorCode) -> None:
    assert coordinating().send(request_, version).error_code == error


def test_a_member_that_falls_silent_is_lost() -> None:
    node = coordinating()
    member_id, generation = joined(node)
    node.timers.advance(10_000)
    heartbeat = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation)
    assert node.send(heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_whoever_waits_is_answered_when_the_node_stops() -> None:
    node = coordinating()
    joined(node)
    waiting = node.ask(join(node.send(join(), 9, "bob").member_id), 9, "bob")
    assert not waiting.is_here
    node.broker.coordinators.close()
    assert waiting.message.error_code == ErrorCode.NOT_COORDINATOR


def test_heartbeats_are_answered_well_while_groups_are_loaded() -> None:
    node = coordinating(1)
    member_id, generation = joined(node)
    node.workers.hold()
    node.change_partition(GROUPS, leader=NODE_ID)
    heartbeat = HeartbeatRequest(group_id=GROUP, member_id=member_id, generation_id=generation)
    assert node.send(heartbeat, 4).error_code == ErrorCode.NONE
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert node.send(fetch_all(), 9).groups[0].error_code == loading
    assert node.send(ListGroupsRequest(), 4).error_code == loading
    node.workers.let_go()
    assert node.send(heartbeat, 4).error_code == ErrorCode.NONE


def test_groups_and_offsets_outlive_a_restart() -> None:
    node = coordinating()
    member_id, generation = joined(node)
    node.send(commit(member_id=member_id, generation_id_or_member_epoch=generation), 9)
    node.send(commit(7, group_id="simple"), 9)
    again = restarted(node)
    described = again.send(DescribeGroupsRequest(groups=[GROUP]), 5).groups[0]
    assert (described.group_state, described.members[0].member_id) == ("Stable", member_id)
    assert offsets_in(again.send(fetch_all(GROUP, "simple"), 9)) == {
        GROUP: {("orders", 0): 5},
        "simple": {("orders", 0): 7},
    }


# Offsets


def test_partitions_that_do_not_exist_take_no_offsets() -> None:
    node = coordinating()
    request = commit(1)
    request.topics += commit(2, index=7).topics + commit(3, topic="nowhere").topics
    reply = node.send(request, 9)
    assert [
        (topic.name, part.partition_index, part.error_code) for topic in reply.topics for part in topic.partitions
    ] == [
        ("orders", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 0, ErrorCode.NONE),
        ("nowhere", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert offsets_in(node.send(fetch_all(), 9)) == {GROUP: {("orders", 0): 1}}


def test_offsets_are_committed_and_told_by_topic_id() -> None:
    node = coordinating()
    orders, nobodys = topic_id_of("orders"), Uuid(b"no topic's id...")
    assert node.send(commit(4, topic="", topic_id=orders), 10).topics[0].topic_id == orders
    refused = node.send(commit(4, topic="", topic_id=nobodys), 10).topics[0]
    assert refused.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    (topic,) = node.send(fetch_all(), 10).groups[0].topics
    assert (topic.topic_id, topic.partitions[0].committed_offset) == (orders, 4)
    asked = OffsetFetchRequest.OffsetFetchRequestTopics(topic_id=nobodys, partition_indexes=[0])
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, topics=[asked])
    (topic,) = node.send(OffsetFetchRequest(groups=[group]), 10).groups[0].topics
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_offsets_go_with_their_topic() -> None:
    node = coordinating()
    node.send(commit(), 9)
    node.delete_topic("orders")
    assert offsets_in(node.send(fetch_all(), 9)) == {GROUP: {}}


def test_a_commit_that_does_not_fit_into_a_batch_is_refused() -> None:
    node = coordinating(offset_metadata_max_bytes="100000")
    node.configure_topic(GROUPS, max_message_bytes="1000")
    request = commit()
    request.topics[0].partitions[0].committed_metadata = "x" * 2000
    assert node.send(request, 9).topics[0].partitions[0].error_code == ErrorCode.INVALID_COMMIT_OFFSET_SIZE


def test_a_generation_that_does_not_fit_into_a_batch_is_told_once_to_who_brought_it() -> None:
    node = coordinating()
    member_id, generation = joined(node)
    node.configure_topic(GROUPS, max_message_bytes="1000")
    rejoined = node.ask(join(member_id), 9, "ann")
    node.timers.advance(0)
    assert rejoined.message.generation_id == generation + 1
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"x" * 2000)
    request = SyncGroupRequest(
        group_id=GROUP, member_id=member_id, generation_id=generation + 1, assignments=[assignment]
    )
    assert node.send(request, 4, "ann").error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_new_group_that_does_not_fit_into_a_batch_is_refused_once() -> None:
    node = coordinating()
    node.configure_topic(GROUPS, max_message_bytes="60")
    assert node.send(join(), 9, "ann").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.send(ListGroupsRequest(), 5).groups == []


def test_a_commit_waits_for_the_replicas_of_its_partition() -> None:
    node = TestNode()
    node.create_topic(GROUPS, replicas=(NODE_ID, 2), isr=(NODE_ID, 2))
    node.create_topic("orders")
    reply, told = node.ask(commit(), 9), node.ask(fetch_all(), 9)
    assert not reply.is_here
    assert not told.is_here, "what it would tell may be lost"
    partition = node.partition(GROUPS)
    if partition.state.on_fetched(2, 1, 0, 0):
        partition.log.advance_high_watermark(1)
    node.broker.partitions.purgatory.wake(partition)
    assert reply.message.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert offsets_in(told.message) == {GROUP: {("orders", 0): 5}}


def test_offsets_are_deleted_partition_by_partition() -> None:
    node = coordinating()
    node.send(commit(), 9)
    partitions = [OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)]
    topics = [
        OffsetDeleteRequest.OffsetDeleteRequestTopic(name="orders", partitions=partitions),
        OffsetDeleteRequest.OffsetDeleteRequestTopic(name="nowhere", partitions=partitions[:1]),
    ]
    reply = node.send(OffsetDeleteRequest(group_id=GROUP, topics=topics), 0)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {
        topic.name: {part.partition_index: part.error_code for part in topic.partitions} for topic in reply.topics
    } == {
        "orders": {9: unknown, 0: ErrorCode.NONE},
        "nowhere": {0: unknown},
    }
    assert offsets_in(node.send(fetch_all(), 9)) == {GROUP: {}}


# Administration


def test_groups_of_all_partitions_are_listed_and_deleted_together() -> None:
    node = coordinating()
    names = [f"group-{number}" for number in range(10)]
    for name in names:
        node.send(commit(group_id=name), 9)
    listed = node.send(ListGroupsRequest(states_filter=["Empty"], types_filter=["CLASSIC"]), 5)
    assert sorted(group.group_id for group in listed.groups) == names
    assert {node.broker.coordinators.groups.partition_for(name) for name in names} == {0, 1, 2}
    deleted = node.send(DeleteGroupsRequest(groups_names=[*names, "nobody"]), 2)
    assert {result.group_id: result.error_code for result in deleted.results} == {
        **dict.fromkeys(names, ErrorCode.NONE),
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert node.send(ListGroupsRequest(), 5).groups == []


def test_what_a_client_may_do_with_a_group_is_told_if_asked() -> None:
    node = coordinating()
    joined(node)
    request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True)
    assert node.send(request, 5).groups[0].authorized_operations > 0
    request.include_authorized_operations = False
    assert node.send(request, 5).groups[0].authorized_operations == -(1 << 31)


def test_a_group_that_does_not_exist_is_dead_or_not_found() -> None:
    node = coordinating()
    request = DescribeGroupsRequest(groups=["nobody"])
    old, new = node.send(request, 5).groups[0], node.send(request, 6).groups[0]
    assert (old.error_code, old.group_state) == (ErrorCode.NONE, "Dead")
    assert (new.error_code, new.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert new.error_message


# The consumer protocol (KIP-848)


def consumer_heartbeat(member_id: str = "ann", epoch: int = 0, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    said = {**(joining if epoch == 0 else {}), **fields}
    return ConsumerGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **said)


def enabling_consumer_groups(node: TestNode) -> TestNode:
    node.commit(FeatureLevelRecord(name="group.version", feature_level=1))
    return node


def test_a_consumer_joins_is_described_and_outlives_a_restart() -> None:
    node = enabling_consumer_groups(coordinating())
    reply = node.send(consumer_heartbeat(), 1)
    (topic,) = reply.assignment.topic_partitions
    assert (reply.member_epoch, topic.topic_id, list(topic.partitions)) == (2, topic_id_of("orders"), [0, 1])
    committed = node.send(commit(member_id="ann", generation_id_or_member_epoch=2), 9)
    assert errors_in(committed) == {"orders": {0: ErrorCode.NONE}}
    again = restarted(node)
    described = again.send(ConsumerGroupDescribeRequest(group_ids=[GROUP, "nobody", ""]), 1)
    assert [group.error_code for group in described.groups] == [
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.INVALID_GROUP_ID,
    ]
    assert (described.groups[0].group_state, described.groups[0].members[0].member_id) == ("Stable", "ann")
    assert again.send(consumer_heartbeat(epoch=2), 1).member_epoch == 2
    (listed,) = again.send(ListGroupsRequest(types_filter=["Consumer"]), 5).groups
    assert (listed.group_id, listed.group_type, listed.group_state) == (GROUP, "consumer", "Stable")


def test_offsets_are_told_to_consumers_in_their_right_epoch() -> None:
    node = enabling_consumer_groups(coordinating())
    node.send(consumer_heartbeat(), 1)

    def fetched(member_id: str | None, epoch: int) -> int:
        group = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None
        )
        return node.send(OffsetFetchRequest(groups=[group]), 9).groups[0].error_code  # type: ignore[no-any-return]

    assert fetched("ann", 2) == ErrorCode.NONE
    assert fetched("ann", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetched("bob", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetched(None, -1) == ErrorCode.NONE


def test_a_topic_that_grows_reaches_its_consumers() -> None:
    node = enabling_consumer_groups(coordinating(group_consumer_assignment_interval_ms="0"))
    node.send(consumer_heartbeat(), 1)
    topic_id = topic_id_of("orders")
    node.commit(PartitionRecord(topic_id=topic_id, partition_id=2, replicas=(NODE_ID,), isr=(NODE_ID,), leader=NODE_ID))
    (topic,) = node.send(consumer_heartbeat(epoch=2), 1).assignment.topic_partitions
    assert list(topic.partitions) == [0, 1, 2]


def test_refusals_are_explained() -> None:
    node = enabling_consumer_groups(coordinating())
    reply = node.send(consumer_heartbeat(epoch=7), 1)
    assert (reply.error_code, bool(reply.error_message)) == (ErrorCode.GROUP_ID_NOT_FOUND, True)


@pytest.mark.parametrize("settings", [{}, {"group_coordinator_rebalance_protocols": "classic"}])
def test_consumer_groups_need_the_cluster_and_the_node_to_agree(settings: dict[str, str]) -> None:
    node = coordinating(**settings)
    if settings:
        enabling_consumer_groups(node)
    assert node.send(consumer_heartbeat(), 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    described = node.send(ConsumerGroupDescribeRequest(group_ids=[GROUP]), 1)
    assert described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
