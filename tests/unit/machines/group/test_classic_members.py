"""Members of classic groups fall silent, leave, and come back under their own name (KIP-345)."""

import pytest

from ottla.wire.errors import ErrorCode
from tests.unit.machines.group.group_bench import Groups, subscription

# Sessions


def test_a_member_that_falls_silent_is_lost_and_the_others_gather() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob", session_timeout_ms=10_000)
    groups.advance(9000)
    groups.heartbeat(ann)
    groups.advance(1000)
    assert bob.member_id not in groups.group().members
    assert groups.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    again = groups.ask_join("ann", ann.member_id)
    assert [member.member_id for member in again.reply.members] == [ann.member_id]


def test_a_group_whose_last_member_is_lost_is_empty() -> None:
    groups = Groups()
    groups.settled("ann", session_timeout_ms=10_000)
    groups.advance(10_000)
    assert (groups.state, groups.group().generation) == ("Empty", 2)
    assert groups.timers == set()


def test_heartbeats_keep_a_session() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann", session_timeout_ms=10_000)
    for _ in range(5):
        groups.advance(9999)
        assert groups.heartbeat(ann) is ErrorCode.NONE


def test_a_commit_is_a_sign_of_life() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann", session_timeout_ms=10_000)
    groups.advance(9999)
    groups.commit({("orders", 0): 1}, member_id=ann.member_id, generation=1)
    groups.advance(9999)
    assert groups.heartbeat(ann) is ErrorCode.NONE


def test_who_waits_at_the_barrier_need_not_be_heard_of() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob", session_timeout_ms=10_000, rebalance_timeout_ms=60_000)
    again = groups.ask_join("ann", ann.member_id, session_timeout_ms=10_000)
    for _ in range(5):
        groups.advance(9000)
        groups.heartbeat(bob)
    assert not again.is_answered
    groups.ask_join("bob", bob.member_id)
    assert again.generation == 2


def test_a_newcomer_that_gives_up_does_not_wait_forever() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann", session_timeout_ms=1_000_000, rebalance_timeout_ms=1_000_000)
    bob = groups.join("bob")
    groups.advance(5 * 60 * 1000)
    assert bob.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_session_begins_anew_with_each_generation() -> None:
    groups = Groups()
    ann, bob = groups.join("ann", session_timeout_ms=10_000), groups.join("bob", session_timeout_ms=10_000)
    groups.advance(6000)
    assert ann.is_answered
    groups.advance(9999)
    assert set(groups.group().members) == {ann.member_id, bob.member_id}
    groups.advance(1)
    assert groups.group().members == {}


def test_a_member_that_never_asks_for_its_assignment_is_lost_with_the_rebalance_timeout() -> None:
    groups = Groups()
    details = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 30_000}
    ann, bob = groups.join("ann", **details), groups.join("bob", **details)
    groups.advance(6000)
    groups.sync(ann, {ann.member_id: b"all"})
    for _ in range(6):
        groups.advance(5000)
        groups.heartbeat(bob), groups.heartbeat(ann)
    assert set(groups.group().members) == {ann.member_id}
    assert groups.state == "PreparingRebalance"


def test_members_of_a_loaded_group_have_a_session_to_be_heard_of_in() -> None:
    groups = Groups()
    ann, _ = groups.settled("ann", "bob", session_timeout_ms=10_000)
    groups.reload()
    groups.advance(9000)
    assert groups.heartbeat(ann) is ErrorCode.NONE
    groups.advance(1000)
    assert set(groups.group().members) == {ann.member_id}


@pytest.mark.parametrize(
    ("generation", "member", "error"),
    [
        (0, "ann", ErrorCode.ILLEGAL_GENERATION),
        (2, "ann", ErrorCode.ILLEGAL_GENERATION),
        (1, "somebody", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_must_be_of_a_member_of_the_generation(generation: int, member: str, error: ErrorCode) -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    assert groups.heartbeat(ann if member == "ann" else member, generation=generation) is error


def test_a_heartbeat_to_no_group_is_of_no_member() -> None:
    assert Groups().heartbeat("ann", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


# Leaving


def test_who_leaves_makes_the_others_gather() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob")
    assert groups.leave(bob) == [ErrorCode.NONE]
    assert groups.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.ask_join("ann", ann.member_id).generation == 2


def test_when_all_leave_the_group_is_empty_at_once() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob")
    assert groups.leave(ann, bob) == [ErrorCode.NONE] * 2
    assert groups.state == "Empty"
    assert groups.timers == set()


def test_who_leaves_at_the_barrier_is_not_waited_for() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob")
    again = groups.ask_join("ann", ann.member_id)
    groups.leave(bob)
    assert again.generation == 2


def test_a_leader_that_leaves_is_followed_by_another() -> None:
    groups = Groups()
    ann, bob = groups.settled("ann", "bob")
    groups.leave(ann)
    assert groups.ask_join("bob", bob.member_id).reply.leader == bob.member_id


def test_an_id_that_was_given_out_can_be_given_back() -> None:
    groups = Groups()
    (ann,) = groups.settled("ann")
    given = groups.ask_join("bob")
    groups.join("cid")
    again = groups.ask_join("ann", ann.member_id)
    assert groups.leave(given) == [ErrorCode.NONE]
    assert again.generation == 2


def test_strangers_cannot_leave() -> None:
    groups = Groups()
    assert groups.leave("somebody") == [ErrorCode.UNKNOWN_MEMBER_ID]
    groups.settled("ann")
    assert groups.leave("somebody", "") == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert groups.state == "Stable"


# Static members


def test_a_static_member_that_comes_back_keeps_its_assignment_and_disturbs_nobody() -> None:
    groups = Groups()
    ann, bob = groups.join("ann", instance_id="a"), groups.join("bob")
    groups.advance(6000)
    groups.sync(ann, {ann.member_id: b"of a", bob.member_id: b"rest"}, instance_id="a")
    groups.sync(bob)
    back = groups.ask_join("ann", instance_id="a")
    assert back.error is ErrorCode.NONE
    assert back.member_id != ann.member_id
    assert (back.generation, groups.state) == (1, "Stable")
    assert groups.sync(back, instance_id="a").reply.assignment == b"of a"
    assert groups.heartbeat(bob) is ErrorCode.NONE


def test_whoever_still_uses_the_old_id_of_a_static_member_is_fenced() -> None:
    groups = Groups()
    (ann,) = groups.settled_static("a")
    back = groups.ask_join("ann", instance_id="a")
    assert groups.heartbeat(ann, instance_id="a") is ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(back, instance_id="a") is ErrorCode.NONE
    assert groups.leave(ann, instance_id="a") == [ErrorCode.FENCED_INSTANCE_ID]
    assert groups.ask_join("ann", ann.member_id, instance_id="a").error is ErrorCode.FENCED_INSTANCE_ID
    fenced = groups.commit({("orders", 0): 1}, member_id=ann.member_id, generation=1, group_instance_id="a")
    assert fenced is ErrorCode.FENCED_INSTANCE_ID


def test_a_twin_at_the_barrier_is_fenced_at_once() -> None:
    groups = Groups()
    first = groups.ask_join("ann", instance_id="a")
    second = groups.ask_join("twin", instance_id="a")
    assert first.error is ErrorCode.FENCED_INSTANCE_ID
    groups.advance(6000)
    assert second.generation == 1


def test_a_twin_that_comes_while_assignments_are_awaited_starts_a_rebalance() -> None:
    groups = Groups()
    ann, bob = groups.ask_join("ann", instance_id="a"), groups.ask_join("bob", instance_id="b")
    groups.advance(6000)
    waiting = groups.sync(bob, instance_id="b")
    twin = groups.ask_join("bob", instance_id="b")
    assert waiting.error is ErrorCode.FENCED_INSTANCE_ID
    assert groups.state == "PreparingRebalance"
    again = groups.ask_join("ann", ann.member_id, instance_id="a")
    assert again.generation == twin.generation == 2


def test_a_leader_that_comes_back_is_told_to_divide_nothing() -> None:
    groups = Groups()
    groups.settled_static("a", "b")
    back = groups.ask_join("one", instance_id="a")
    assert (back.reply.leader, back.reply.skip_assignment) == (back.member_id, True)
    assert len(back.reply.members) == 2


def test_a_leader_too_old_to_skip_its_assignment_is_told_of_another_leader() -> None:
    groups = Groups()
    ann, _ = groups.settled_static("a", "b")
    back = groups.ask_join("one", instance_id="a", version=8)
    assert (back.reply.leader, back.reply.members) == (ann.member_id, [])


def test_a_static_member_that_comes_back_with_another_protocol_starts_a_rebalance() -> None:
    groups = Groups()
    data = subscription("orders")
    groups.settled_static("a", protocols={"range": data, "sticky": data})
    back = groups.ask_join("one", instance_id="a", protocols={"sticky": data})
    assert (back.generation, back.reply.protocol_name) == (2, "sticky")


def test_a_static_member_survives_rebalances_that_it_misses() -> None:
    groups = Groups()
    ann, bob = groups.settled_static("a", "b", session_timeout_ms=100_000, rebalance_timeout_ms=30_000)
    again = groups.ask_join("one", ann.member_id, instance_id="a", rebalance_timeout_ms=30_000)
    groups.advance(30_000)
    assert again.generation == 2
    assert [member.member_id for member in again.reply.members] == [ann.member_id, bob.member_id]


def test_if_no_static_member_comes_the_barrier_stays_until_their_sessions_end() -> None:
    groups = Groups()
    ann, _ = groups.settled_static("a", "b", session_timeout_ms=100_000, rebalance_timeout_ms=30_000)
    groups.ask_join("one", ann.member_id, instance_id="a")
    groups.leave("", instance_id="a")
    groups.advance(60_000)
    assert groups.state == "PreparingRebalance"
    groups.advance(100_000)
    assert groups.state == "Empty"


def test_an_admin_removes_static_members_by_their_instance() -> None:
    groups = Groups()
    groups.settled_static("a")
    assert groups.leave("", instance_id="a") == [ErrorCode.NONE]
    assert groups.state == "Empty"


def test_a_static_member_that_cannot_be_written_keeps_its_old_id() -> None:
    groups = Groups()
    (ann,) = groups.settled_static("a")
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.ask_join("ann", instance_id="a").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert groups.heartbeat(ann, instance_id="a") is ErrorCode.NONE
    assert groups.sync(ann, instance_id="a").reply.assignment == b"a"


def test_static_members_are_loaded_as_such() -> None:
    groups = Groups()
    (ann,) = groups.settled_static("a")
    groups.reload()
    assert groups.ask_join("one", instance_id="a").reply.generation_id == 1
    assert groups.heartbeat(ann, instance_id="a") is ErrorCode.FENCED_INSTANCE_ID
