"""Groups that change their protocol while they have members, and members of both in one (KIP-848)."""

from typing import Any

import pytest

from ottla.machines.group.classic.group import ClassicGroup
from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.settings import MigrationPolicy
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerGroupHeartbeatRequest
from tests.unit.machines.group.group_bench import GROUP, Groups, subscription
from tests.unit.machines.group.group_members import HEARTBEAT_MS, ClassicConsumer, Member, assignment, partitions_in

ALL = {("orders", 0), ("orders", 1)}


def settled(**details: Any) -> tuple[Groups, ClassicConsumer]:
    """A stable classic group of one, ann, who has both partitions of a topic."""
    groups = Groups(initial_rebalance_delay_ms=0, consumer_assignment_interval_ms=0, **details)
    groups.create_topic("orders", 2)
    ann = ClassicConsumer(groups, "ann", "orders")
    settle(groups, ann)
    assert ann.has == ALL
    return groups, ann


def settle(groups: Groups, *members: ClassicConsumer | Member) -> None:
    for _ in range(12):
        groups.advance(HEARTBEAT_MS // 5)
        for member in members:
            if isinstance(member, Member):
                member.follow()
            else:
                member.step()
    assert groups.state == "Stable"


def kinds(groups: Groups, start: int) -> list[tuple[str, bool]]:
    """The kinds of records since, and which of them are tombstones."""
    return [(type(key).__name__.removesuffix("Key"), value is None) for key, value in groups.records(start)]


# From classic to consumer


def test_a_consumer_that_joins_a_classic_group_makes_it_a_consumer_group() -> None:
    groups, ann = settled()
    written = len(groups.log)
    bob = Member(groups, "bob", "orders")
    reply = bob.beat()
    assert (reply.error_code, reply.member_epoch) == (ErrorCode.NONE, 2)
    assert isinstance(groups.group(), ConsumerGroup)
    assert kinds(groups, written)[:6] == [
        ("GroupMetadata", True),
        ("ConsumerGroupMemberMetadata", False),
        ("ConsumerGroupMetadata", False),
        ("ConsumerGroupTargetAssignmentMember", False),
        ("ConsumerGroupTargetAssignmentMetadata", False),
        ("ConsumerGroupCurrentMemberAssignment", False),
    ]
    of_ann, epoch, target, target_epoch, current = (value for _, value in groups.records(written)[1:6])
    assert of_ann.classic_member_metadata.session_timeout_ms == 10_000
    assert [offered.name for offered in of_ann.classic_member_metadata.supported_protocols] == ["range"]
    assert (epoch.epoch, target_epoch.assignment_epoch, target_epoch.assignment_timestamp) == (1, 1, 0)
    assert list(target.topic_partitions[0].partitions) == [0, 1]
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (1, 1, 0)
    assert bob.partitions == set(), "ann has everything still"
    assert ann.has == ALL


def test_classic_members_give_up_partitions_at_their_own_pace() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()
    assert ann.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    ann.step()  # Learns of it,
    ann.step()  # joins, says what it has, and is given what it keeps.
    assert len(ann.has) == 1
    assert ann.generation == 1, "its epoch stays until it has given up the other"
    bob.beat()
    assert bob.partitions == set()
    ann.step()
    assert ann.generation == 2
    bob.beat()
    assert ann.has | bob.partitions == ALL
    assert not ann.has & bob.partitions
    assert ann.heartbeat() is ErrorCode.NONE
    assert groups.state == "Stable"


def test_an_eager_member_has_given_up_everything_when_it_joins_again() -> None:
    groups = Groups(initial_rebalance_delay_ms=0, consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 2)
    ann = ClassicConsumer(groups, "ann", "orders", eager=True)
    settle(groups, ann)
    bob = Member(groups, "bob", "orders")
    bob.beat()
    ann.step(), ann.step()
    assert ann.generation == 2
    bob.beat()
    assert (len(ann.has), len(bob.partitions)) == (1, 1)


def test_whoever_waits_for_a_rebalance_is_sent_to_the_new_group() -> None:
    groups, ann = settled()
    cat = ClassicConsumer(groups, "cat", "orders")
    cat.step(), cat.step()
    assert groups.state == "PreparingRebalance"
    bob = Member(groups, "bob", "orders")
    bob.beat()
    assert cat.calls[-1].error is ErrorCode.REBALANCE_IN_PROGRESS
    settle(groups, ann, bob, cat)
    assert set(groups.group().members) == {ann.member_id, "bob", cat.member_id}
    assert ann.has | bob.partitions | cat.has == ALL


def test_a_group_that_gathers_for_the_first_time_can_be_joined_too() -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 2)
    ann = ClassicConsumer(groups, "ann", "orders")
    ann.step(), ann.step()
    assert groups.state == "PreparingRebalance"
    bob = Member(groups, "bob", "orders")
    assert bob.beat().member_epoch == 1
    settle(groups, ann, bob)
    assert ann.has | bob.partitions == ALL


def test_what_classic_timers_were_set_is_of_no_account_any_more() -> None:
    groups, ann = settled()
    cat = ClassicConsumer(groups, "cat", "orders")
    cat.step(), cat.step()
    groups.ask_join("dog", protocols={"range": subscription("orders")})  # Which never comes back with its id.
    Member(groups, "bob", "orders").beat()
    assert groups.timers == {("session", GROUP, member_id) for member_id in (ann.member_id, cat.member_id, "bob")}


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_a_group_stays_classic_where_the_policy_says_so(policy: MigrationPolicy) -> None:
    groups, ann = settled(migration_policy=policy)
    assert Member(groups, "bob", "orders").beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(groups.group(), ClassicGroup)
    assert ann.heartbeat() is ErrorCode.NONE


def test_a_group_that_is_too_large_stays_classic() -> None:
    groups, _ = settled(consumer_max_size=0)
    assert Member(groups, "bob", "orders").beat() is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "given", [b"anything", assignment(ALL)[:-6], assignment(ALL, user_data=b"mine")], ids=["other", "cut", "custom"]
)
def test_a_group_whose_assignments_cannot_be_read_in_full_stays_classic(given: bytes) -> None:
    groups = Groups(initial_rebalance_delay_ms=0)
    ann = groups.join("ann")
    groups.advance(0)
    groups.sync(ann, {ann.member_id: given})
    assert Member(groups, "bob", "orders").beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert groups.heartbeat(ann) is ErrorCode.NONE


def test_a_group_of_another_kind_stays_classic() -> None:
    groups = Groups(initial_rebalance_delay_ms=0)
    worker = groups.join("worker", protocol_type="connect")
    groups.advance(0)
    groups.sync(worker, {worker.member_id: b"connectors"})
    assert Member(groups, "bob", "orders").beat() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_refused_heartbeat_leaves_the_classic_group_alone() -> None:
    groups, ann = settled()
    cat = ClassicConsumer(groups, "cat", "orders")
    cat.step(), cat.step()
    bob = Member(groups, "bob", "orders", subscribed_topic_regex="(")
    assert bob.beat() is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not cat.calls[-1].is_answered
    settle(groups, ann, cat)
    assert isinstance(groups.group(), ClassicGroup)
    assert ann.has | cat.has == ALL


def test_an_upgrade_that_cannot_be_written_never_was() -> None:
    groups, ann = settled()
    cat = ClassicConsumer(groups, "cat", "orders")
    cat.step(), cat.step()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert Member(groups, "bob", "orders").beat() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    settle(groups, ann, cat)
    assert isinstance(groups.group(), ClassicGroup)


# Classic members in a consumer group


def test_a_classic_consumer_can_join_a_consumer_group() -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 2)
    bob = Member(groups, "bob", "orders")
    bob.beat()
    call = groups.ask_join("ann")
    assert (call.error, call.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "id1")
    assert groups.state == "Stable", "nothing is kept of that"
    joined = groups.ask_join("ann", call.member_id)
    assert (joined.error, joined.generation, joined.reply.leader) == (ErrorCode.NONE, 3, "")
    assert (joined.reply.protocol_type, joined.reply.protocol_name, joined.reply.members) == ("consumer", "range", [])
    synced = groups.sync(joined, generation=3, protocol_type="consumer", protocol_name="range")
    assert partitions_in(synced.reply.assignment) == set()
    assert groups.heartbeat(joined, generation=3) is ErrorCode.NONE, "what it is to have is not free yet"
    bob.beat()
    bob.follow()
    assert groups.heartbeat(joined, generation=3) is ErrorCode.REBALANCE_IN_PROGRESS
    again = groups.ask_join("ann", call.member_id)
    assert len(partitions_in(groups.sync(again, generation=3).reply.assignment)) == 1


def test_the_assignment_is_written_in_the_version_that_the_member_speaks() -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 1)
    Member(groups, "bob", "payments").beat()
    joined = groups.ask_join("ann", version=3)
    data = groups.sync(joined, generation=joined.generation).reply.assignment
    assert data == b"\0\1\0\0\0\1\0\6orders\0\0\0\1\0\0\0\0\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"sticky": subscription("orders")}}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": {"range": b"?"}}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"instance_id": "a"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_cannot_join_a_consumer_group_is_told_why(details: dict[str, Any], error: ErrorCode) -> None:
    groups, ann = settled()
    Member(groups, "bob", "orders").beat()
    written = len(groups.log)
    assert groups.ask_join("new", "an id", **details).error is error
    assert len(groups.log) == written
    assert set(groups.group().members) == {ann.member_id, "bob"}


def test_a_consumer_group_that_is_full_takes_no_classic_member() -> None:
    groups = Groups(consumer_max_size=1)
    groups.create_topic("orders", 1)
    Member(groups, "bob", "orders").beat()
    assert groups.ask_join("ann").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_classic_member_must_know_its_epoch_and_its_protocol() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()
    settle(groups, ann, bob)
    for asked, error in (
        ({"generation": 1}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "a"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert groups.sync(ann.member_id, **{"generation": ann.generation, **asked}).error is error
    assert groups.heartbeat(ann.member_id, generation=1) is ErrorCode.ILLEGAL_GENERATION
    assert groups.heartbeat("bob", generation=bob.epoch) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_that_does_not_join_again_in_time_is_lost() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()
    for _ in range(12):
        assert ann.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        bob.beat()
        groups.advance(HEARTBEAT_MS)  # Its session goes on; the time to join runs from the first heartbeat.
    bob.beat()
    assert set(groups.group().members) == {"bob"}
    assert groups.group().rejoining == set()
    assert bob.partitions == ALL


def test_a_classic_member_that_has_joined_again_has_no_time_running_against_it() -> None:
    groups, ann, bob = mixed()
    assert groups.timers == {("session", GROUP, ann.member_id), ("session", GROUP, "bob")}
    for _ in range(15):
        groups.advance(HEARTBEAT_MS)
        bob.beat()
        assert ann.heartbeat() is ErrorCode.NONE


def test_a_classic_member_that_does_not_ask_for_its_assignment_in_time_is_lost() -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 1)
    bob = Member(groups, "bob", "orders")
    bob.beat()
    joined = groups.join("ann", rebalance_timeout_ms=20_000)
    for _ in range(4):
        assert joined.member_id in groups.group().members
        groups.heartbeat(joined, generation=joined.generation)
        bob.beat()
        groups.advance(HEARTBEAT_MS)
    assert joined.member_id not in groups.group().members


def test_a_classic_member_has_the_session_that_it_asked_for() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()
    groups.advance(10_000)
    assert set(groups.group().members) == {"bob"}
    assert ann.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_classic_member_commits_in_the_generation_in_which_it_was_given_the_partition() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()

    def commit(generation: int, partition: int) -> Any:
        return groups.commit({("orders", partition): 1}, member_id=ann.member_id, generation=generation, version=8)

    assert commit(1, 0) == commit(1, 1) == [ErrorCode.NONE]
    settle(groups, ann, bob)
    (kept,) = (index for _, index in ann.has)
    assert commit(2, kept) == commit(1, kept) == [ErrorCode.NONE], "it has had it since"
    assert commit(1, 1 - kept) is ErrorCode.ILLEGAL_GENERATION, "it has given it up"
    assert commit(3, kept) is ErrorCode.ILLEGAL_GENERATION


def test_a_mixed_group_is_described_with_the_protocols_of_its_members() -> None:
    groups, ann = settled()
    Member(groups, "bob", "orders").beat()
    described = groups.machine.describe_consumer_group(GROUP)
    assert described is not None
    assert {member.member_id: member.member_type for member in described.members} == {ann.member_id: 0, "bob": 1}
    assert described.group_state == "Reconciling"
    assert groups.machine.describe_group(GROUP) is None
    (listed,) = groups.machine.list_groups(frozenset(), frozenset())
    assert (listed.group_type, listed.group_state, listed.protocol_type) == ("consumer", "Reconciling", "consumer")


def test_a_mixed_group_that_is_loaded_goes_on() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()
    groups.reload()
    settle(groups, ann, bob)
    groups.reload()
    assert ann.heartbeat() is ErrorCode.NONE
    assert ann.has | bob.partitions == ALL


# From consumer to classic


def mixed(**details: Any) -> tuple[Groups, ClassicConsumer, Member]:
    groups, ann = settled(**details)
    bob = Member(groups, "bob", "orders")
    bob.beat()
    settle(groups, ann, bob)
    return groups, ann, bob


def test_a_group_without_consumer_members_is_a_classic_group_again() -> None:
    groups, ann, bob = mixed()
    written = len(groups.log)
    bob.leave()
    group = groups.group()
    assert isinstance(group, ClassicGroup)
    assert (group.generation, group.state_name, group.leader_id) == (2, "PreparingRebalance", ann.member_id)
    records = groups.records(written)
    assert all(value is None for _, value in records[:-1])
    assert {key.member_id for key, _ in records[:-1] if hasattr(key, "member_id")} == {ann.member_id, "bob"}
    _, value = records[-1]
    assert (value.protocol_type, value.protocol, value.generation) == ("consumer", "range", 2)
    assert partitions_in(bytes(value.members[0].assignment)) == ann.has
    settle(groups, ann)
    assert ann.has == ALL
    assert groups.group().generation == 3


def test_what_timers_ran_for_a_consumer_group_are_of_no_account_in_a_classic_one() -> None:
    groups, ann = settled()
    bob = Member(groups, "bob", "orders")
    bob.beat()
    assert ann.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert ("join", GROUP, ann.member_id) in groups.timers
    bob.leave()
    assert groups.timers == {("session", GROUP, ann.member_id), ("join", GROUP, None)}


def test_a_consumer_that_falls_silent_leaves_a_classic_group() -> None:
    groups, ann, _ = mixed()
    for _ in range(12):
        groups.advance(HEARTBEAT_MS)
        ann.step()
    assert isinstance(groups.group(), ClassicGroup)
    assert ann.has == ALL


def test_several_who_leave_at_once_may_leave_a_classic_group() -> None:
    groups, ann, bob = mixed()
    cat = ClassicConsumer(groups, "cat", "orders")
    settle(groups, ann, bob, cat)
    assert groups.leave("bob", cat.member_id, "nobody") == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert isinstance(groups.group(), ClassicGroup)
    assert set(groups.group().members) == {ann.member_id}


def test_who_is_left_when_the_last_classic_member_goes_is_a_consumer_group() -> None:
    groups, ann, bob = mixed()
    ann.leave()
    bob.beat()
    assert isinstance(groups.group(), ConsumerGroup)
    assert bob.partitions == ALL
    bob.leave()
    assert groups.state == "Empty"
    assert isinstance(groups.group(), ConsumerGroup), "nobody is left who would need another"


def test_classic_members_alone_in_a_consumer_group_share_what_others_had() -> None:
    """Where the policy does not allow the group to become classic. Nobody else is there to ask for a new target."""
    groups, ann, bob = mixed(migration_policy=MigrationPolicy.UPGRADE)
    bob.leave()
    assert isinstance(groups.group(), ConsumerGroup)
    assert ann.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    settle(groups, ann)
    assert ann.has == ALL


def test_a_group_that_is_too_large_stays_a_consumer_group() -> None:
    groups = Groups(max_size=1, consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 2)
    bob = Member(groups, "bob", "orders")
    bob.beat()
    ann, cat = (ClassicConsumer(groups, name, "orders") for name in ("ann", "cat"))
    settle(groups, ann, bob, cat)
    bob.leave()
    settle(groups, ann, cat)
    assert isinstance(groups.group(), ConsumerGroup)
    assert ann.has | cat.has == ALL


def test_a_downgrade_that_cannot_be_written_is_tried_again() -> None:
    groups, ann, bob = mixed()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bob.leave() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert isinstance(groups.group(), ConsumerGroup)
    assert ann.heartbeat() is ErrorCode.NONE
    for _ in range(8):
        groups.advance(HEARTBEAT_MS)
        ann.step()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.advance(HEARTBEAT_MS)  # Bob's session ends, and that cannot be written either.
    assert groups.fails_with is None
    assert isinstance(groups.group(), ConsumerGroup)
    groups.advance(500)
    assert isinstance(groups.group(), ClassicGroup)


def test_a_classic_group_that_was_a_consumer_group_can_be_one_again() -> None:
    groups, ann, bob = mixed()
    for _ in range(3):
        bob.leave()
        bob.epoch = 0
        settle(groups, ann)
        assert ann.has == ALL
        bob.beat()
        settle(groups, ann, bob)
        assert ann.has | bob.partitions == ALL
    groups.advance(60_000)
    assert groups.timers == set()


# Static members


def test_a_static_member_may_come_back_with_the_consumer_protocol() -> None:
    groups = Groups(initial_rebalance_delay_ms=0, consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 2)
    ann = ClassicConsumer(groups, "ann", "orders", instance_id="a")
    settle(groups, ann)
    bob = Member(groups, "bob", "orders", instance_id="a")
    assert bob.beat().member_epoch == 1, "nothing has changed but its id"
    assert bob.partitions == ALL
    assert set(groups.group().members) == {"bob"}
    assert ann.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


def test_the_last_consumer_may_come_back_with_the_classic_protocol_and_nothing_moves() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    bob = Member(groups, "bob", "orders", instance_id="a")
    bob.beat()
    back = groups.ask_join("ann", instance_id="a")
    assert (back.error, back.generation) == (ErrorCode.NONE, 2)
    group = groups.group()
    assert (group.TYPE, group.generation, group.state_name) == ("classic", 2, "Stable")
    assert partitions_in(groups.sync(back, instance_id="a").reply.assignment) == ALL
    assert bob.beat() is ErrorCode.GROUP_ID_NOT_FOUND


def test_if_it_reads_something_else_now_everybody_gathers() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    Member(groups, "bob", "orders", instance_id="a").beat()
    back = groups.ask_join("ann", instance_id="a", protocols={"range": subscription("orders", "payments")})
    assert (back.error, back.generation) == (ErrorCode.NONE, 0)
    assert groups.state == "PreparingRebalance"
    assert groups.heartbeat(back, generation=0, instance_id="a") is ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_that_comes_back_to_a_mixed_group_keeps_what_it_had() -> None:
    groups, ann, bob = mixed()
    cat = Member(groups, "cat", "orders", instance_id="c")
    cat.beat()
    settle(groups, ann, bob, cat)
    had = cat.partitions
    back = groups.ask_join("cat again", instance_id="c")
    assert set(groups.group().members) == {ann.member_id, "bob", back.member_id}
    assert partitions_in(groups.sync(back, generation=back.generation, instance_id="c").reply.assignment) == had
    assert cat.beat() is ErrorCode.FENCED_INSTANCE_ID


def test_a_join_that_cannot_be_written_is_answered_and_never_was() -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 2)
    bob = Member(groups, "bob", "orders", instance_id="a")
    bob.beat()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.ask_join("ann", instance_id="a").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert isinstance(groups.group(), ConsumerGroup)
    assert bob.beat().error_code == ErrorCode.NONE


def test_a_classic_member_may_go_on_under_its_id_with_the_consumer_protocol() -> None:
    groups, ann, bob = mixed()
    has = [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
        for topic_id, indexes in bob.has.items()
    ]
    dog = Member(groups, ann.member_id, "orders")
    reply = dog.beat()
    assert reply.error_code == ErrorCode.NONE
    assert groups.group().members[ann.member_id].classic is None
    assert ann.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID, "it does not speak the classic protocol any more"
    assert bob.beat(topic_partitions=has).error_code == ErrorCode.NONE
