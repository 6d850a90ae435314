"""Consumer groups (KIP-848): members follow the coordinator's assignment one heartbeat at a time."""

from typing import Any

import pytest

from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.machines.group.settings import MigrationPolicy
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConfigRecord
from tests.unit.machines.group.group_bench import GROUP, NOW_MS, Groups
from tests.unit.machines.group.group_members import HEARTBEAT_MS, Member, Owned


def settle(groups: Groups, *members: Member) -> None:
    """Heartbeats as they come, until nothing changes any more."""
    for _ in range(6):
        groups.advance(HEARTBEAT_MS)
        for member in members:
            member.follow()
    assert groups.state == "Stable"


def group(groups: Groups) -> ConsumerGroup:
    found = groups.group()
    assert isinstance(found, ConsumerGroup)
    return found


# Joining


def test_the_first_member_has_everything_with_its_first_heartbeat() -> None:
    groups = Groups()
    groups.create_topic("orders", 3)
    ann = Member(groups, "ann", "orders")
    reply = ann.beat()
    assert (reply.error_code, reply.member_id, reply.member_epoch) == (ErrorCode.NONE, "ann", 2)
    assert reply.heartbeat_interval_ms == HEARTBEAT_MS
    assert ann.partitions == {("orders", 0), ("orders", 1), ("orders", 2)}
    assert groups.state == "Stable"


def test_the_records_of_a_join_are_those_of_kafka() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    Member(groups, "ann", "orders", subscribed_topic_regex="").beat()
    names = [type(value).__name__ for _, value in groups.records()]
    assert names == [
        "ConsumerGroupMemberMetadataValue",
        "ConsumerGroupMetadataValue",
        "ConsumerGroupTargetAssignmentMemberValue",
        "ConsumerGroupTargetAssignmentMetadataValue",
        "ConsumerGroupCurrentMemberAssignmentValue",
    ]
    epoch, target_epoch, current = (groups.records()[place][1] for place in (1, 3, 4))
    assert (epoch.epoch, target_epoch.assignment_epoch, target_epoch.assignment_timestamp) == (2, 2, NOW_MS)
    assert (current.member_epoch, current.previous_member_epoch, current.state) == (2, 0, 0)
    (assigned,) = current.assigned_partitions
    assert (list(assigned.partitions), list(assigned.assignment_epochs)) == ([0, 1], [2, 2])


def test_a_member_without_an_id_is_given_one() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    assert Member(groups, "", "orders").beat().member_id == "id1"


def test_a_heartbeat_with_no_news_writes_nothing_and_tells_nothing() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    written = len(groups.log)
    reply = ann.beat()
    assert (reply.member_epoch, reply.assignment) == (2, None)
    assert len(groups.log) == written


def test_whoever_says_everything_is_told_everything() -> None:
    groups = Groups()
    topic_id = groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    reply = ann.beat(
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[Owned(topic_id=topic_id, partitions=[0])],
    )
    assert reply.assignment.topic_partitions[0].partitions == [0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_id": ""},
        {"instance_id": ""},
        {"rack_id": ""},
        {"member_epoch": -3},
        {"member_id": "", "member_epoch": 1},
        {"member_epoch": -2},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"subscribed_topic_names": None},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    groups = Groups()
    said = {
        "member_id": "ann",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["orders"],
        "topic_partitions": [],
    }
    assert groups.beat(**{**said, **wrong}) is ErrorCode.INVALID_REQUEST


def test_an_assignor_that_is_not_known_is_refused() -> None:
    groups = Groups()
    assert Member(groups, "ann", "orders", server_assignor="mine").beat() is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_full_group_takes_nobody_in() -> None:
    groups = Groups(consumer_max_size=1)
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    assert Member(groups, "bob", "orders").beat() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert ann.beat().error_code == ErrorCode.NONE


def test_strangers_are_sent_away() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    assert groups.beat(member_id="ann", member_epoch=1) is ErrorCode.GROUP_ID_NOT_FOUND
    Member(groups, "ann", "orders").beat()
    assert groups.beat(member_id="bob", member_epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.beat(member_id="bob", member_epoch=-1) is ErrorCode.UNKNOWN_MEMBER_ID


# Sharing


def test_a_newcomer_gets_a_partition_when_its_owner_has_given_it_up() -> None:
    groups = Groups()
    groups.create_topic("orders", 4)
    ann, bob = Member(groups, "ann", "orders"), Member(groups, "bob", "orders")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    bob.beat()
    assert (bob.epoch, bob.partitions) == (3, set()), "what it is to have is not free yet"
    ann.beat()
    assert (ann.epoch, len(ann.partitions)) == (2, 2), "told what it keeps, in its old epoch until it has let go"
    assert groups.state == "Reconciling"
    bob.beat()
    assert bob.partitions == set()
    ann.follow()
    assert ann.epoch == 3
    bob.beat()
    assert len(bob.partitions) == 2
    assert ann.partitions | bob.partitions == {("orders", index) for index in range(4)}
    assert groups.state == "Stable"


def test_a_member_that_does_not_say_what_it_has_is_taken_to_have_it_still() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    ann, bob = Member(groups, "ann", "orders"), Member(groups, "bob", "orders")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    bob.beat(), ann.beat()
    for _ in range(3):
        assert ann.beat().member_epoch == 2
        assert bob.beat().assignment is None


def test_when_a_member_leaves_the_others_get_what_it_had() -> None:
    groups = Groups()
    groups.create_topic("orders", 4)
    ann, bob = Member(groups, "ann", "orders"), Member(groups, "bob", "orders")
    ann.beat(), bob.beat()
    settle(groups, ann, bob)
    reply = bob.leave()
    assert reply.member_epoch == -1
    settle(groups, ann)
    assert len(ann.partitions) == 4


def test_the_last_member_leaves_an_empty_group() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    written = len(groups.log)
    ann.leave()
    assert groups.state == "Empty"
    assert groups.timers == set()
    *tombstones, (_, epoch) = groups.records(written)
    assert [value for _, value in tombstones] == [None] * 3
    assert (epoch.epoch, epoch.metadata_hash) == (3, 0)


def test_many_newcomers_cost_one_assignment() -> None:
    groups = Groups(consumer_assignment_interval_ms=1000)
    groups.create_topic("orders", 10)
    members = [Member(groups, f"member-{number}", "orders") for number in range(10)]
    for member in members:
        member.beat()
    assert group(groups).assignment_epoch == 2, "the first is not made to wait"
    assert group(groups).epoch == 11
    groups.advance(1000)
    members[0].beat()
    assert group(groups).assignment_epoch == 11
    settle(groups, *members)
    assert [len(member.partitions) for member in members] == [1] * 10


def test_no_two_members_ever_have_the_same_partition() -> None:
    groups = Groups()
    groups.create_topic("orders", 7)
    groups.create_topic("payments", 5)
    members: list[Member] = []

    def check() -> None:
        owned = [place for member in members for place in member.partitions]
        assert len(owned) == len(set(owned))

    for number in range(5):
        members.append(Member(groups, f"member-{number}", "orders", *["payments"] * (number % 2)))
        for _ in range(3):
            groups.advance(HEARTBEAT_MS)
            for member in members:
                member.follow()
                check()
    for _ in range(4):
        members.pop(0).leave()
        for _ in range(3):
            groups.advance(HEARTBEAT_MS)
            for member in members:
                member.follow()
                check()
    assert len(members[0].partitions) == 7


# Epochs


def test_a_member_from_the_future_is_fenced() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    assert groups.beat(member_id="ann", member_epoch=9) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_whose_last_reply_was_lost_is_taken_if_it_has_nothing_else() -> None:
    groups = Groups()
    topic_id = groups.create_topic("orders", 2)
    Member(groups, "ann", "orders").beat()
    groups.advance(HEARTBEAT_MS)
    groups.grow_topic("orders", 3)
    groups.beat(member_id="ann", member_epoch=2)
    assert group(groups).members["ann"].epoch == 3
    owned = [Owned(topic_id=topic_id, partitions=[0, 1])]
    assert groups.beat(member_id="ann", member_epoch=2, topic_partitions=owned).member_epoch == 3
    assert groups.beat(member_id="ann", member_epoch=2) is ErrorCode.FENCED_MEMBER_EPOCH, "it does not say what it has"
    owned = [Owned(topic_id=topic_id, partitions=[0, 1, 7])]
    fenced = groups.beat(member_id="ann", member_epoch=2, topic_partitions=owned)
    assert fenced is ErrorCode.FENCED_MEMBER_EPOCH
    assert groups.beat(member_id="ann", member_epoch=1, topic_partitions=[]) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_begins_anew_gets_its_assignment_again() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    again = Member(groups, "ann", "orders")
    assert again.beat().member_epoch == 2
    assert again.partitions == ann.partitions


def test_a_member_that_falls_silent_is_lost() -> None:
    groups = Groups(consumer_session_timeout_ms=45_000)
    groups.create_topic("orders", 4)
    ann, bob = Member(groups, "ann", "orders"), Member(groups, "bob", "orders")
    ann.beat(), bob.beat()
    settle(groups, ann, bob)
    for _ in range(9):
        groups.advance(HEARTBEAT_MS)
        ann.follow()
    assert set(group(groups).members) == {"ann"}
    assert bob.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_its_partitions_is_lost_with_its_rebalance_timeout() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    ann = Member(groups, "ann", "orders", rebalance_timeout_ms=20_000)
    bob = Member(groups, "bob", "orders")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    bob.beat(), ann.beat()
    for _ in range(4):
        assert ann.beat().error_code == ErrorCode.NONE
        groups.advance(HEARTBEAT_MS)
    assert ann.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    settle(groups, bob)
    assert len(bob.partitions) == 2


def test_sessions_and_rebalances_go_on_at_the_next_coordinator() -> None:
    groups = Groups(consumer_session_timeout_ms=45_000)
    groups.create_topic("orders", 2)
    ann, bob = Member(groups, "ann", "orders", rebalance_timeout_ms=10_000), Member(groups, "bob", "orders")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    bob.beat(), ann.beat()
    groups.reload()
    assert ann.beat().error_code == ErrorCode.NONE
    groups.advance(10_000)
    assert ann.beat() is ErrorCode.UNKNOWN_MEMBER_ID, "it still had not given up"
    groups.advance(45_000)
    assert groups.state == "Empty"


# Static members


def test_a_static_member_that_comes_back_has_what_it_had() -> None:
    groups = Groups()
    groups.create_topic("orders", 4)
    ann = Member(groups, "ann", "orders", instance_id="a")
    bob = Member(groups, "bob", "orders", instance_id="b")
    ann.beat(), bob.beat()
    settle(groups, ann, bob)
    before, epoch = bob.partitions, bob.epoch
    assert bob.leave(-2).member_epoch == -2
    assert ann.beat().assignment is None, "nothing is taken from the absent"
    again = Member(groups, "bob again", "orders", instance_id="b")
    again.beat()
    assert (again.partitions, again.epoch) == (before, epoch)
    assert set(group(groups).members) == {"ann", "bob again"}
    assert ann.beat().error_code == ErrorCode.NONE


def test_a_static_member_that_is_away_is_not_brought_back_by_a_heartbeat_that_comes_late() -> None:
    groups = Groups(consumer_session_timeout_ms=45_000)
    groups.create_topic("orders", 4)
    ann = Member(groups, "ann", "orders", instance_id="a")
    bob = Member(groups, "bob", "orders")
    ann.beat(), bob.beat()
    settle(groups, ann, bob)
    away = group(groups).members["ann"]
    assert 0 < away.previous_epoch < away.epoch
    ann.leave(-2)
    for epoch in (away.previous_epoch, away.epoch):
        late = groups.beat(member_id="ann", member_epoch=epoch, instance_id="a", topic_partitions=[])
        assert late is ErrorCode.FENCED_MEMBER_EPOCH
    assert group(groups).members["ann"].epoch == -2
    back = Member(groups, "ann again", "orders", instance_id="a")
    back.beat()
    assert back.partitions == ann.partitions


def test_a_static_member_that_does_not_come_back_is_lost_with_its_session() -> None:
    groups = Groups(consumer_session_timeout_ms=45_000)
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders", instance_id="a")
    ann.beat()
    ann.leave(-2)
    groups.advance(45_000)
    assert groups.state == "Empty"


def test_a_static_member_that_comes_back_under_its_old_id_has_a_session_too() -> None:
    groups = Groups(consumer_session_timeout_ms=45_000)
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders", instance_id="a")
    ann.beat()
    ann.leave(-2)
    Member(groups, "ann", "orders", instance_id="a").beat()
    assert groups.state == "Stable"
    groups.advance(45_000)
    assert groups.state == "Empty"


def test_an_instance_that_is_in_use_is_not_given_to_another() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders", instance_id="a")
    ann.beat()
    assert Member(groups, "twin", "orders", instance_id="a").beat() is ErrorCode.UNRELEASED_INSTANCE_ID
    ann.leave(-2)
    twin = Member(groups, "twin", "orders", instance_id="a")
    twin.beat()
    assert ann.beat() is ErrorCode.FENCED_INSTANCE_ID
    assert ann.leave() is ErrorCode.FENCED_INSTANCE_ID
    assert groups.beat(member_id="x", member_epoch=5, instance_id="?") is ErrorCode.UNKNOWN_MEMBER_ID


# Topics come, grow and go


def test_a_topic_that_grows_is_noticed_with_the_next_heartbeat() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    groups.grow_topic("orders", 3)
    ann.beat()
    assert (ann.epoch, len(ann.partitions)) == (3, 3)


def test_a_topic_may_come_after_its_readers() -> None:
    groups = Groups()
    ann = Member(groups, "ann", "orders")
    ann.beat()
    assert ann.partitions == set()
    groups.advance(HEARTBEAT_MS)
    groups.create_topic("orders", 2)
    ann.beat()
    assert len(ann.partitions) == 2


def test_a_topic_that_nobody_reads_changes_nothing() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    groups.create_topic("others", 1)
    assert ann.beat().member_epoch == 2


def test_a_deleted_topic_is_given_up() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    groups.create_topic("payments", 1)
    ann = Member(groups, "ann", "orders", "payments")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    groups.delete_topic("payments")
    settle(groups, ann)
    assert ann.partitions == {("orders", 0)}


def test_a_member_may_change_its_mind() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    groups.create_topic("payments", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    ann.beat(subscribed_topic_names=["payments"])
    settle(groups, ann)
    assert ann.partitions == {("payments", 0)}


# Regular expressions


def test_an_expression_stands_for_the_topics_that_there_are() -> None:
    groups = Groups()
    for name in ("orders.eu", "orders.us", "payments"):
        groups.create_topic(name, 1)
    ann = Member(groups, "ann", subscribed_topic_regex="orders.*")
    ann.beat()
    assert ann.partitions == {("orders.eu", 0), ("orders.us", 0)}
    groups.advance(HEARTBEAT_MS)
    groups.create_topic("orders.jp", 1)
    groups.delete_topic("orders.us")
    settle(groups, ann)
    assert ann.partitions == {("orders.eu", 0), ("orders.jp", 0)}


def test_an_expression_that_nobody_has_any_more_is_forgotten() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann, bob = Member(groups, "ann", subscribed_topic_regex="ord.*"), Member(groups, "bob", "orders")
    ann.beat(), bob.beat()
    assert set(group(groups).regexes) == {"ord.*"}
    ann.leave()
    assert group(groups).regexes == {}


def test_names_and_an_expression_go_together() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    groups.create_topic("payments", 1)
    ann = Member(groups, "ann", "payments", subscribed_topic_regex="o.*")
    ann.beat()
    assert ann.partitions == {("orders", 0), ("payments", 0)}


def test_an_expression_that_nobody_understands_is_refused() -> None:
    groups = Groups()
    invalid = Member(groups, "ann", subscribed_topic_regex="(").beat()
    assert invalid is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert groups.machine.groups == {}


# Offsets


def test_a_member_commits_in_its_epoch() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    Member(groups, "ann", "orders").beat()
    offsets = {("orders", 0): 5}
    assert groups.commit(offsets, member_id="ann", generation=2) == [ErrorCode.NONE]
    assert groups.commit(offsets, member_id="ann", generation=3) is ErrorCode.STALE_MEMBER_EPOCH
    assert groups.commit(offsets, member_id="bob", generation=2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit(offsets) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.commit(offsets, member_id="ann", generation=2, version=8) is ErrorCode.UNSUPPORTED_VERSION
    assert groups.committed() == {("orders", 0): 5}


def test_offsets_of_a_consumer_group_grow_old_where_nobody_reads() -> None:
    groups = Groups(offsets_retention_ms=100_000, offsets_retention_check_interval_ms=10_000)
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    groups.commit({("orders", 0): 1, ("old", 0): 2}, member_id="ann", generation=2)
    for _ in range(30):
        groups.advance(HEARTBEAT_MS)
        ann.beat()
    assert groups.committed() == {("orders", 0): 1}
    ann.leave()
    groups.advance(10_000)
    assert groups.machine.groups == {}


# From one protocol to the other


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    (old,) = groups.settled("old")
    groups.commit({("orders", 0): 5}, member_id=old.member_id, generation=1)
    assert Member(groups, "ann", "orders").beat() is ErrorCode.GROUP_ID_NOT_FOUND, "it has members"
    groups.leave(old)
    ann = Member(groups, "ann", "orders")
    assert ann.beat().error_code == ErrorCode.NONE
    assert groups.group().TYPE == "consumer"
    assert groups.committed() == {("orders", 0): 5}


def test_an_empty_consumer_group_becomes_a_classic_group_and_keeps_its_offsets() -> None:
    groups = Groups(migration_policy=MigrationPolicy.DISABLED)
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    groups.commit({("orders", 0): 5}, member_id="ann", generation=2)
    assert groups.ask_join("new").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    ann.leave()
    groups.settled("new")
    assert groups.group().TYPE == "classic"
    assert groups.committed() == {("orders", 0): 5}


def test_who_speaks_the_consumer_protocol_cannot_stay_by_the_classic_one_but_can_be_removed() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    Member(groups, "ann", "orders").beat()
    assert groups.heartbeat("ann", generation=2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.sync("ann", generation=2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.leave("ann", "nobody") == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert groups.state == "Empty"


# Administration and settings


def test_a_consumer_group_is_described_with_what_members_have_and_are_to_have() -> None:
    groups = Groups()
    groups.create_topic("orders", 2)
    Member(groups, "ann", "orders", server_assignor="range").beat()
    described = groups.machine.describe_consumer_group(GROUP)
    assert described is not None
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
    assert described.assignor_name == "range"
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.member_type) == ("ann", 2, 1)
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("orders", [0, 1])
    assert groups.machine.describe_group(GROUP) is None


def test_an_empty_consumer_group_is_deleted_completely() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    ann.beat()
    refused = groups.carry_out(groups.machine.delete_group(GROUP, groups.now_ms))
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    ann.leave()
    groups.carry_out(groups.machine.delete_group(GROUP, groups.now_ms))
    assert groups.machine.groups == {}


def test_a_group_may_have_settings_of_its_own() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    for name, value in (("consumer.session.timeout.ms", "50000"), ("consumer.heartbeat.interval.ms", "7000")):
        groups.image.replay(ConfigRecord(resource_type=32, resource_name=GROUP, name=name, value=value))
    assert Member(groups, "ann", "orders").beat().heartbeat_interval_ms == 7000
    groups.advance(49_999)
    assert groups.state == "Stable"
    groups.advance(1)
    assert groups.state == "Empty"


def test_what_cannot_be_written_has_not_happened() -> None:
    groups = Groups()
    groups.create_topic("orders", 1)
    ann = Member(groups, "ann", "orders")
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ann.beat() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.machine.groups == {}
    ann.beat()
    groups.advance(HEARTBEAT_MS)
    groups.grow_topic("orders", 2)
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    ann.beat()
    assert ann.beat().member_epoch == 3, "it is tried again"
