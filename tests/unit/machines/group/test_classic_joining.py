"""Joining a classic group, and the rebalance that follows (KIP-62, KIP-134, KIP-394)."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import GroupMetadataValue
from tests.unit.machines.group.group_bench import GROUP, NOW_MS, Groups, subscription


def test_a_new_member_is_given_an_id_to_come_back_with() -> None:
    groups = Groups()
    first = groups.ask_join("ann")
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id == "ann-id1"
    second = groups.ask_join("ann", first.member_id)
    assert not second.is_answered, "it waits for others"
    groups.advance(3000)
    assert (second.error, second.generation, second.reply.leader) == (ErrorCode.NONE, 1, "ann-id1")


def test_a_member_of_an_older_version_needs_no_id_first() -> None:
    groups = Groups()
    call = groups.ask_join("ann", version=3)
    groups.advance(3000)
    assert (call.error, call.member_id) == (ErrorCode.NONE, "ann-id1")


def test_an_id_that_is_not_taken_up_is_forgotten_with_its_session() -> None:
    groups = Groups()
    first = groups.ask_join("ann", session_timeout_ms=10_000)
    groups.advance(10_000)
    assert groups.ask_join("ann", first.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_nobody_gave_out_is_unknown() -> None:
    groups = Groups()
    assert groups.ask_join(member_id="made up").error is ErrorCode.UNKNOWN_MEMBER_ID
    groups.settled("ann")
    assert groups.ask_join(member_id="made up").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_longer_as_long_as_more_members_come() -> None:
    groups = Groups(initial_rebalance_delay_ms=3000)
    ann = groups.join("ann")
    groups.advance(2000)
    bob = groups.join("bob")
    groups.advance(1000)
    assert not ann.is_answered
    groups.advance(3000)
    assert ann.generation == bob.generation == 1


def test_the_first_rebalance_waits_no_longer_than_the_rebalance_timeout() -> None:
    groups = Groups(initial_rebalance_delay_ms=3000)
    ann = groups.join("ann", rebalance_timeout_ms=5000)
    for number in range(6):
        groups.join(f"more-{number}", rebalance_timeout_ms=5000)
        groups.advance(1000)
    assert ann.is_answered


def test_without_a_delay_the_first_member_waits_for_nobody() -> None:
    groups = Groups(initial_rebalance_delay_ms=0)
    ann = groups.join("ann")
    groups.advance(0)
    assert ann.generation == 1


def test_only_the_leader_is_told_who_the_members_are() -> None:
    groups = Groups()
    ann, bob = groups.join("ann"), groups.join("bob")
    groups.advance(6000)
    assert ann.reply.leader == bob.reply.leader == ann.member_id
    assert [member.member_id for member in ann.reply.members] == [ann.member_id, bob.member_id]
    assert [member.metadata for member in ann.reply.members] == [subscription("orders")] * 2
    assert bob.reply.members == []


def test_every_member_gets_what_the_leader_gave_it() -> None:
    groups = Groups()
    ann, bob = groups.join("ann"), groups.join("bob")
    groups.advance(6000)
    of_bob = groups.sync(bob)
    assert not of_bob.is_answered, "the leader has not come yet"
    of_ann = groups.sync(ann, {ann.member_id: b"0,1", bob.member_id: b"2"})
    assert (of_ann.reply.assignment, of_bob.reply.assignment) == (b"0,1", b"2")
    assert (of_bob.reply.protocol_type, of_bob.reply.protocol_name) == ("consumer", "range")
    assert groups.state == "Stable"
    assert groups.sync(bob).reply.assignment == b"2", "asked again"


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    groups = Groups()
    ann, bob = groups.join("ann"), groups.join("bob")
    groups.advance(6000)
    groups.sync(ann, {ann.member_id: b"all", "a stranger": b"some"})
    assert groups.sync(bob).reply.assignment == b""


def test_what_is_written_is_what_kafka_writes() -> None:
    groups = Groups()
    ann = groups.join("ann", session_timeout_ms=45_000, rebalance_timeout_ms=300_000)
    groups.advance(3000)
    groups.sync(ann, {ann.member_id: b"all"})
    groups.leave(ann)
    values = [value for _, value in groups.records()]
    assert values == [
        GroupMetadataValue(current_state_timestamp=NOW_MS, protocol=None, leader=None),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader=ann.member_id,
            current_state_timestamp=NOW_MS + 3000,
            members=[
                GroupMetadataValue.MemberMetadata(
                    member_id=ann.member_id,
                    group_instance_id=None,
                    client_id="ann",
                    client_host="/127.0.0.1",
                    rebalance_timeout=300_000,
                    session_timeout=45_000,
                    subscription=subscription("orders"),
                    assignment=b"all",
                )
            ],
        ),
        GroupMetadataValue(
            protocol_type="consumer", generation=2, protocol=None, leader=None, current_state_timestamp=NOW_MS + 3000
        ),
    ]


def test_a_newcomer_makes_everybody_join_again() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    bob = groups.join("bob")
    assert groups.state == "PreparingRebalance"
    assert groups.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not bob.is_answered
    again = groups.ask_join("ann", ann.member_id)
    assert again.generation == bob.generation == 2


def test_who_does_not_join_again_in_time_is_left_behind() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann", rebalance_timeout_ms=60_000, session_timeout_ms=30_000)
    bob = groups.join("bob")
    for _ in range(6):
        groups.advance(10_000)
        if not bob.is_answered:
            assert groups.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bob.generation == 2
    assert bob.reply.leader == bob.member_id
    assert groups.heartbeat(ann) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_those_who_have_been_given_an_id() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    given = groups.ask_join("bob")
    groups.join("cid")
    again = groups.ask_join("ann", ann.member_id)
    assert not again.is_answered, "bob is about to come back"
    groups.ask_join("bob", given.member_id)
    assert again.generation == 2


def test_a_leader_who_joins_again_wants_a_rebalance() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob")
    groups.ask_join("ann", ann.member_id)
    assert groups.state == "PreparingRebalance"
    assert groups.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_follower_who_joins_again_unchanged_learns_the_generation() -> None:
    groups = Groups()
    _, bob = groups.settled("ann", "bob")
    again = groups.ask_join("bob", bob.member_id)
    assert (again.generation, groups.state) == (1, "Stable")


def test_a_follower_who_has_changed_its_mind_starts_a_rebalance() -> None:
    groups = Groups()
    _, bob = groups.settled("ann", "bob")
    groups.ask_join("bob", bob.member_id, protocols={"range": subscription("orders", "payments")})
    assert groups.state == "PreparingRebalance"


def test_a_join_that_is_repeated_while_assignments_are_awaited_gets_the_same_reply() -> None:
    groups = Groups()
    ann, bob = groups.join("ann"), groups.join("bob")
    groups.advance(6000)
    assert groups.ask_join("bob", bob.member_id).reply == bob.reply
    assert groups.ask_join("ann", ann.member_id).reply == ann.reply


def test_a_join_that_is_repeated_at_the_barrier_replaces_the_first() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    groups.join("bob")
    first = groups.ask_join("cid")
    waiting = groups.ask_join("cid", first.member_id)
    second = groups.ask_join("cid", first.member_id)
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.ask_join("ann", ann.member_id)
    assert second.generation == 2


def test_a_newcomer_sends_those_back_who_wait_for_an_assignment() -> None:
    groups = Groups()
    ann, bob = groups.join("ann"), groups.join("bob")
    groups.advance(6000)
    waiting = groups.sync(bob)
    groups.join("cid")
    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.sync(ann, {ann.member_id: b"all"}).error is ErrorCode.REBALANCE_IN_PROGRESS


# Protocols


def test_the_protocol_is_the_one_that_most_members_prefer_of_those_that_all_have() -> None:
    groups = Groups()
    data = subscription("orders")
    ann = groups.join("ann", protocols={"sticky": data, "range": data, "own": data})
    bob = groups.join("bob", protocols={"range": data, "sticky": data})
    cid = groups.join("cid", protocols={"range": data, "sticky": data})
    groups.advance(9000)
    assert {call.reply.protocol_name for call in (ann, bob, cid)} == {"range"}


@pytest.mark.parametrize(
    "details", [{"protocols": {"roundrobin": b""}}, {"protocol_type": "connect"}, {"protocols": {}}]
)
def test_who_has_no_protocol_in_common_is_refused(details: dict[str, object]) -> None:
    groups = Groups()
    groups.settled("ann")
    assert groups.join("bob", **details).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.state == "Stable"


def test_who_names_a_protocol_twice_is_refused() -> None:
    """As members are counted for a protocol, this one would count twice."""
    groups = Groups()
    twice = [("range", b"a"), ("range", b"b")]
    assert groups.join("ann", protocols=twice).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    ann = groups.settled("ann")[0]
    assert groups.ask_join("ann", ann.member_id, protocols=twice).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.state == "Stable"


def test_an_id_that_no_reply_could_tell_is_not_given() -> None:
    groups = Groups()
    assert groups.join("c" * 32767).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.join("ann", instance_id="i" * 32767).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not groups.group().pending


def test_a_first_member_must_offer_something() -> None:
    groups = Groups()
    assert groups.join("ann", protocols={}).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.join("ann", protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("details", "error"),
    [
        ({"generation": 7}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
    ],
)
def test_a_sync_must_fit_its_group(details: dict[str, object], error: ErrorCode) -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    assert groups.sync(ann, **details).error is error  # type: ignore[arg-type]


def test_strangers_get_no_assignment() -> None:
    groups = Groups()
    assert groups.sync("somebody", generation=1).error is ErrorCode.UNKNOWN_MEMBER_ID
    groups.settled("ann")
    assert groups.sync("somebody").error is ErrorCode.UNKNOWN_MEMBER_ID


# Size


def test_a_full_group_takes_nobody_in() -> None:
    groups = Groups(max_size=2)
    groups.settled("ann", "bob")
    assert groups.join("cid").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.state == "Stable"


def test_of_a_group_that_gathers_the_last_to_come_are_left_out() -> None:
    groups = Groups(max_size=2)
    groups.join("ann"), groups.join("bob")
    assert groups.join("cid").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_that_is_larger_than_allowed_when_it_is_loaded_gathers_anew() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob")
    groups.settings = type(groups.settings)(max_size=1)
    groups.reload()
    assert groups.state == "PreparingRebalance"
    first = groups.ask_join("bob", bob.member_id)
    assert groups.ask_join("ann", ann.member_id).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.generation == 2


# When the log cannot be written


def test_a_group_that_cannot_be_written_is_not_there() -> None:
    groups = Groups()
    groups.fails_with = ErrorCode.NOT_COORDINATOR
    assert groups.ask_join("ann").error is ErrorCode.NOT_COORDINATOR
    assert groups.machine.groups == {}


def test_a_static_member_of_a_group_that_cannot_be_written_is_told() -> None:
    groups = Groups()
    groups.fails_with = ErrorCode.MESSAGE_TOO_LARGE
    assert groups.ask_join("ann", instance_id="one").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.machine.groups == {}


def test_assignments_that_cannot_be_written_are_given_to_nobody() -> None:
    groups = Groups()
    ann, bob = groups.join("ann"), groups.join("bob")
    groups.advance(6000)
    of_bob = groups.sync(bob)
    groups.fails_with = ErrorCode.MESSAGE_TOO_LARGE
    of_ann = groups.sync(ann, {ann.member_id: b"all"})
    assert of_ann.error is of_bob.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.state == "Empty", "as the log has it"
    assert groups.timers == set()
    assert groups.ask_join("ann", ann.member_id).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.settled("ann", "bob")


def test_a_generation_that_cannot_be_written_leaves_the_one_before() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    bob = groups.join("bob")
    groups.ask_join("ann", ann.member_id)
    assert groups.group().generation == 2
    of_bob = groups.sync(bob.member_id)
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.sync(ann, {ann.member_id: b"half", bob.member_id: b"half"})
    assert of_bob.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (groups.state, groups.group().generation, list(groups.group().members)) == ("Stable", 1, [ann.member_id])
    assert groups.timers == {("session", GROUP, ann.member_id)}
    assert groups.heartbeat(ann, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert groups.sync(ann, generation=1).reply.assignment == b"ann"


def test_a_generation_of_nobody_that_cannot_be_written_is_tried_again() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.leave(ann)
    assert (groups.state, list(groups.group().members)) == ("Stable", [ann.member_id])
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.advance(10_000)  # Its session ends, and that cannot be written either.
    assert groups.state == "Stable"
    groups.advance(500)
    group = groups.group()
    assert (group.state_name, group.generation, group.members) == ("Empty", 2, {})


# Changing coordinators


def test_whoever_waits_is_sent_to_the_next_coordinator() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    waiting = groups.join("bob")
    groups.reload()
    assert waiting.error is ErrorCode.NOT_COORDINATOR
    assert groups.state == "Stable"
    assert groups.heartbeat(ann) is ErrorCode.NONE
    assert groups.sync(ann).reply.assignment == b"ann"
