"""A classic member against a scripted coordinator, request by request."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.client_log import INFO, WARNING
from ottla.client.errors import FencedInstanceId, GroupMaxSizeReached, UnsupportedVersion
from ottla.client.membership.assignors.assignor import Division, MemberSubscription, Subscriptions, Topics
from ottla.client.membership.classic.classic_member import ClassicMember
from ottla.client.membership.classic.consumer_protocol import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from ottla.client.membership.member import Identity, LeaveBehaviour
from ottla.testing.scripted_brokers import DROP, KEEP
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from tests.unit.client.membership.group_rig import GROUP, GroupRig, partitions

ME = "me-1"
EAGER = ("range",)
COOPERATIVE = ("cooperative-sticky",)


def joined(
    generation: int, members: dict[str, MemberSubscription] | None = None, protocol: str = "range", **fields: Any
) -> JoinGroupResponse:
    """Led by this member if it is given the members."""
    return JoinGroupResponse(
        generation_id=generation,
        protocol_type="consumer",
        protocol_name=protocol,
        leader=ME if members else "somebody",
        member_id=ME,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(member_id=member, metadata=write_subscription(said))
            for member, said in (members or {}).items()
        ],
        **fields,
    )


def synced(*given: TopicPartition) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=write_assignment(given))


def refused(error: ErrorCode) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, protocol_name="", leader="", member_id="")


KAFKA_2_1 = {"FindCoordinator": 2, "JoinGroup": 3, "SyncGroup": 2, "Heartbeat": 2, "LeaveGroup": 2}
NEEDS_ID = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, protocol_name="", leader="", member_id=ME)


def a_member(strategy: tuple[str, ...] = EAGER, **settings: Any) -> GroupRig:
    rig = GroupRig(ClassicMember, partition_assignment_strategy=strategy, **settings)
    rig.member.subscribe(["t"])
    rig.brokers.answer("Heartbeat", HeartbeatResponse())
    rig.brokers.answer("LeaveGroup", LeaveGroupResponse())
    return rig


def a_stable_member(strategy: tuple[str, ...] = EAGER, **settings: Any) -> GroupRig:
    """In generation 1 with partitions 0 and 1."""
    rig = a_member(strategy, **settings)
    rig.brokers.answer("JoinGroup", joined(1, protocol=strategy[0]))
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 0, 1)))
    rig.poll()
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0, 1))]
    rig.names()
    return rig


def test_a_member_joins_when_the_application_first_polls_with_the_id_that_it_is_given() -> None:
    rig = a_member()
    rig.brokers.run()
    assert rig.names() == []
    rig.brokers.answer("JoinGroup", [NEEDS_ID, joined(1)])
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 2)))
    rig.poll()
    assert rig.names() == ["FindCoordinator", "JoinGroup", "JoinGroup", "SyncGroup"]
    first, second = rig.brokers.asked("JoinGroup")
    assert (first.member_id, second.member_id) == ("", ME)
    assert read_subscription(first.protocols[0].metadata).topics == ("t",)
    assert rig.consumer.events == [("assigned", partitions("t", 2))]
    assert rig.member.identity == Identity(1, ME)
    assert rig.member.assignment == frozenset(partitions("t", 2))
    assert not rig.member.is_rebalancing


def test_the_leader_divides_by_the_assignor_that_the_group_has_agreed_on() -> None:
    rig = a_member(("range", "roundrobin"))
    members = {ME: MemberSubscription(["t"]), "other": MemberSubscription(["t", "u"])}
    rig.brokers.topics["u"] = 1
    rig.brokers.answer("JoinGroup", joined(1, members, "roundrobin"))
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 0, 2)))
    rig.poll()
    (sync,) = rig.brokers.asked("SyncGroup")
    given = {one.member_id: read_assignment(one.assignment) for one in sync.assignments}
    assert given == {
        ME: partitions("t", 0, 2),
        "other": (*partitions("t", 1, 3), *partitions("u", 0)),
    }
    assert [protocol.name for protocol in rig.brokers.asked("JoinGroup")[0].protocols] == ["range", "roundrobin"]


def test_the_leader_has_the_group_join_again_when_a_topic_grows_even_while_it_divides() -> None:
    rig = a_member()
    rig.brokers.answer("JoinGroup", joined(1, {ME: MemberSubscription(["t"])}))
    rig.brokers.answer("SyncGroup", KEEP)
    rig.poll()
    rig.brokers.topics["t"] = 6
    rig.cluster.refresh()
    rig.brokers.run()
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 0)))
    rig.brokers.release()
    rig.brokers.run()
    second = rig.brokers.asked("JoinGroup")[1]
    assert second.reason == "cached metadata has changed"
    assert len(rig.brokers.asked("SyncGroup")[1].assignments) == 1
    rig.cluster.refresh()
    rig.brokers.run()
    assert len(rig.brokers.asked("JoinGroup")) == 2, "nothing has changed since"


def test_a_follower_does_not_mind_when_a_topic_grows() -> None:
    rig = a_stable_member()
    rig.brokers.topics["t"] = 6
    rig.cluster.refresh()
    rig.brokers.run()
    assert rig.names() == []


def test_heartbeats_go_on_while_the_application_works() -> None:
    rig = a_stable_member()
    rig.brokers.advance(9_100)
    heartbeats = rig.asked("Heartbeat")
    assert [(one.generation_id, one.member_id) for one in heartbeats] == [(1, ME)] * 3


def test_eager_gives_up_all_partitions_before_it_joins_again_and_heartbeats_meanwhile() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    rig.brokers.answer("Heartbeat", HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    rig.brokers.answer("JoinGroup", joined(2))
    rig.brokers.advance(10_000)
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0, 1))]
    assert rig.names() == ["Heartbeat"] * 3, "it does not join before the consumer is done"
    assert rig.member.identity == Identity(1, ME), "offsets can still be committed"
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 1)))
    rig.finish_held()
    assert rig.names() == ["JoinGroup", "SyncGroup"]
    assert rig.consumer.take_events() == [("assigned", partitions("t", 1))]
    assert rig.brokers.asked("JoinGroup")[-1].reason == "group is already rebalancing"


def test_cooperative_keeps_its_partitions_while_it_joins_and_gives_up_what_moves() -> None:
    rig = a_stable_member(COOPERATIVE)
    rig.brokers.answer("Heartbeat", HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    rig.brokers.answer(
        "JoinGroup", [joined(2, protocol="cooperative-sticky"), joined(3, protocol="cooperative-sticky")]
    )
    rig.brokers.answer("SyncGroup", [synced(*partitions("t", 0)), synced(*partitions("t", 0, 3))])
    rig.brokers.advance(3_050)
    assert rig.consumer.take_events() == [
        ("revoked", partitions("t", 1)),
        ("assigned", ()),
        ("assigned", partitions("t", 3)),
    ]
    said = [read_subscription(join.protocols[0].metadata) for join in rig.asked("JoinGroup")]
    assert [(one.owned_partitions, one.generation) for one in said] == [
        (partitions("t", 0, 1), 1),
        (partitions("t", 0), 2),
    ]
    assert rig.member.assignment == frozenset(partitions("t", 0, 3))


def test_cooperative_gives_up_what_is_no_longer_subscribed_before_it_joins() -> None:
    rig = a_stable_member(COOPERATIVE)
    rig.brokers.topics["u"] = 1
    rig.brokers.answer("JoinGroup", joined(2, protocol="cooperative-sticky"))
    rig.brokers.answer("SyncGroup", synced(*partitions("u", 0)))
    rig.member.subscribe(["u"])
    rig.brokers.run()
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0, 1)), ("assigned", partitions("u", 0))]
    assert rig.asked("JoinGroup")[0].reason == "subscription has changed"


def test_an_assignment_of_a_topic_that_is_no_longer_subscribed_is_not_taken() -> None:
    rig = a_member()
    rig.brokers.answer("JoinGroup", [joined(1), joined(2)])
    rig.brokers.answer("SyncGroup", KEEP)
    rig.poll()
    rig.member.subscribe(["u"])
    rig.brokers.answer("SyncGroup", [synced(*partitions("t", 0)), synced()])
    rig.brokers.release()
    rig.brokers.run()
    assert rig.consumer.take_events() == [("assigned", ())]
    assert len(rig.brokers.asked("JoinGroup")) == 2


@pytest.mark.parametrize(
    ("error", "member_id"),
    [(ErrorCode.UNKNOWN_MEMBER_ID, ""), (ErrorCode.ILLEGAL_GENERATION, ME)],
    ids=lambda x: str(x),
)
def test_a_fenced_member_has_lost_its_partitions_and_joins_again(error: ErrorCode, member_id: str) -> None:
    rig = a_stable_member(COOPERATIVE)
    rig.brokers.answer("Heartbeat", [HeartbeatResponse(error_code=error)])
    rig.brokers.answer("JoinGroup", KEEP)
    rig.brokers.advance(3_050)
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]
    (join,) = rig.asked("JoinGroup")
    assert join.member_id == member_id
    assert read_subscription(join.protocols[0].metadata).owned_partitions == ()
    assert rig.member.identity.generation == -1


def test_an_instance_that_is_fenced_stays_out_and_says_so_at_every_poll() -> None:
    """Joining again would fence the other consumer, which would join again and fence this one, for ever."""
    rig = a_stable_member(group_instance_id="one")
    rig.brokers.answer("Heartbeat", [HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)])
    rig.brokers.advance(60_000)
    assert [type(failure) for failure in rig.consumer.failures] == [FencedInstanceId]
    assert "'one'" in str(rig.consumer.failures[0])
    assert rig.names() == ["Heartbeat"]
    for count in (2, 3):
        rig.poll()
        rig.brokers.advance(60_000)
        assert [type(failure) for failure in rig.consumer.failures] == [FencedInstanceId] * count
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]
    assert rig.names() == []
    assert rig.member.identity.generation == -1


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
def test_an_instance_that_is_fenced_while_it_joins_stays_out_too(api: str) -> None:
    rig = a_member(group_instance_id="one")
    rig.brokers.answer("JoinGroup", joined(1))
    rig.brokers.answer("SyncGroup", SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    if api == "JoinGroup":
        rig.brokers.answer("JoinGroup", refused(ErrorCode.FENCED_INSTANCE_ID))
    rig.poll()
    rig.names()
    rig.poll()
    assert rig.names() == []
    assert [type(failure) for failure in rig.consumer.failures] == [FencedInstanceId] * 2


def test_an_instance_that_was_fenced_may_join_after_it_has_unsubscribed() -> None:
    rig = a_stable_member(group_instance_id="one")
    rig.brokers.answer("Heartbeat", [HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)])
    rig.brokers.advance(60_000)
    rig.poll()
    rig.member.leave()
    rig.brokers.run()
    rig.consumer.take_events()
    rig.member.subscribe(["t"])
    rig.poll()
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0, 1))]
    assert rig.brokers.asked("JoinGroup")[-1].member_id == ""


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_has_moved_is_looked_for_anew(error: ErrorCode) -> None:
    rig = a_stable_member()
    rig.brokers.answer("Heartbeat", [HeartbeatResponse(error_code=error), HeartbeatResponse()])
    rig.coordinator_id = 2
    rig.brokers.advance(3_300)
    assert rig.names() == ["Heartbeat", "FindCoordinator", "Heartbeat"]
    assert rig.brokers.transcript[-1].node_id == 2
    assert rig.consumer.events == [], "the member has kept its partitions"


def test_joining_goes_on_after_a_lost_connection_and_a_coordinator_that_loads() -> None:
    rig = a_member()
    rig.brokers.answer("JoinGroup", [DROP, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), joined(1)])
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 0)))
    rig.poll()
    rig.brokers.advance(1_000)
    assert rig.consumer.events == [("assigned", partitions("t", 0))]
    assert rig.names() == ["FindCoordinator", "JoinGroup", "FindCoordinator", "JoinGroup", "JoinGroup", "SyncGroup"]


def test_a_rebalance_that_begins_before_the_last_has_ended_is_joined_at_once() -> None:
    rig = a_member()
    rig.brokers.answer("JoinGroup", [joined(1), joined(2)])
    again = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    rig.brokers.answer("SyncGroup", [again, synced(*partitions("t", 0))])
    rig.poll()
    assert rig.names() == ["FindCoordinator", "JoinGroup", "SyncGroup", "JoinGroup", "SyncGroup"]
    assert [join.member_id for join in rig.brokers.asked("JoinGroup")] == ["", ME]


def test_a_group_that_is_full_is_told_to_the_application() -> None:
    rig = a_member()
    rig.brokers.answer("JoinGroup", refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
    rig.poll()
    rig.brokers.advance(10_000)
    assert [type(failure) for failure in rig.consumer.failures] == [GroupMaxSizeReached]
    assert rig.names() == ["FindCoordinator", "JoinGroup"], "it tries again when the application polls"
    rig.poll()
    assert rig.names() == ["JoinGroup"]


def test_an_application_that_does_not_poll_in_time_leaves_and_comes_back_when_it_does() -> None:
    rig = a_stable_member(max_poll_interval_ms=10_000)
    rig.consumer.holds = {"lost"}
    rig.brokers.advance(9_000)
    rig.poll()
    rig.brokers.advance(9_900)
    assert "LeaveGroup" not in rig.names(), "it has polled in between"
    rig.brokers.advance(30_000)
    assert rig.names() == ["LeaveGroup"], "and no heartbeat after it"
    (leave,) = rig.brokers.asked("LeaveGroup")
    assert [(member.member_id, member.reason) for member in leave.members] == [
        (ME, "consumer poll timeout has expired.")
    ]
    assert rig.member.identity == Identity()
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]
    rig.finish_held()
    assert rig.names() == [], "it waits for the application"
    rig.poll()
    assert rig.names() == ["JoinGroup", "SyncGroup"]
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0, 1))]


def test_a_static_member_that_does_not_poll_only_falls_silent() -> None:
    rig = a_stable_member(group_instance_id="one", max_poll_interval_ms=10_000)
    rig.brokers.advance(60_000)
    assert rig.names() == ["Heartbeat"] * 3
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]


def test_leaving_gives_partitions_up_first_and_then_tells_the_coordinator() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    left = rig.member.leave()
    rig.brokers.advance(4_000)
    assert rig.names() == ["Heartbeat"], "the member lives on while offsets are committed"
    assert not left.is_done
    rig.finish_held()
    assert rig.names() == ["LeaveGroup"]
    assert left.is_done
    assert rig.member.assignment == frozenset()
    rig.brokers.advance(20_000)
    assert rig.names() == []


@pytest.mark.parametrize(
    ("instance", "behaviour", "asked"),
    [
        (None, LeaveBehaviour.DEFAULT, ["LeaveGroup"]),
        (None, LeaveBehaviour.REMAIN, []),
        ("one", LeaveBehaviour.DEFAULT, []),
        ("one", LeaveBehaviour.LEAVE, ["LeaveGroup"]),
    ],
)
def test_who_tells_the_coordinator_of_leaving(
    instance: str | None, behaviour: LeaveBehaviour, asked: list[str]
) -> None:
    rig = a_stable_member(group_instance_id=instance)
    left = rig.member.leave(behaviour)
    rig.brokers.run()
    assert rig.names() == asked
    assert left.is_done


def test_leaving_does_not_wait_for_a_join_that_is_under_way() -> None:
    rig = a_member()
    rig.brokers.answer("JoinGroup", [NEEDS_ID, KEEP])
    rig.poll()
    left = rig.member.leave()
    rig.brokers.run()
    assert left.is_done
    assert rig.names()[-1] == "LeaveGroup"


def test_after_leaving_a_member_may_subscribe_again() -> None:
    rig = a_stable_member()
    rig.member.leave()
    rig.brokers.run()
    rig.poll()
    assert rig.names() == ["LeaveGroup"], "there is nothing to join for"
    rig.consumer.take_events()
    rig.member.subscribe(["t"])
    rig.poll()
    assert rig.names() == ["JoinGroup", "SyncGroup"]
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0, 1))]


def test_leaving_waits_for_what_the_consumer_was_asked_before() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    rig.member.request_rejoin("rebalance enforced by user")
    rig.brokers.run()
    left = rig.member.leave()
    rig.brokers.run()
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0, 1))], "and not twice"
    rig.finish_held()
    assert left.is_done
    assert rig.names() == ["LeaveGroup"]


def test_a_commit_that_is_refused_tells_the_member_only_if_it_is_still_the_same() -> None:
    rig = a_stable_member()
    rig.brokers.answer("JoinGroup", KEEP)
    rig.member.on_commit_refused(ErrorCode.ILLEGAL_GENERATION, Identity(0, ME))
    rig.brokers.run()
    assert rig.names() == []
    rig.member.on_commit_refused(ErrorCode.ILLEGAL_GENERATION, Identity(1, ME))
    rig.brokers.run()
    assert rig.names() == ["JoinGroup"]
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]


def test_the_leader_of_a_group_that_keeps_its_division_sends_none() -> None:
    """KIP-814: a static leader has come back."""
    rig = a_member(group_instance_id="one")
    members = {ME: MemberSubscription(["t"])}
    rig.brokers.answer("JoinGroup", joined(5, members, skip_assignment=True))
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 0)))
    rig.poll()
    (sync,) = rig.asked("SyncGroup")
    assert sync.assignments == []
    rig.brokers.topics["t"] = 9
    rig.cluster.refresh()
    rig.brokers.run()
    assert len(rig.asked("JoinGroup")) == 1, "but it watches the topics"


def test_sticky_tells_the_leader_what_it_was_given() -> None:
    rig = a_stable_member(("sticky",))
    rig.brokers.answer("JoinGroup", KEEP)
    rig.member.request_rejoin("rebalance enforced by user")
    rig.brokers.run()
    (join,) = rig.asked("JoinGroup")
    said = read_subscription(join.protocols[0].metadata)
    assert said.owned_partitions == ()
    assert said.user_data is not None
    assert said.user_data.hex() == "000000010001" + b"t".hex() + "00000002000000000000000100000001"


def test_a_static_member_needs_a_broker_that_knows_of_them() -> None:
    rig = a_member(group_instance_id="one")
    rig.brokers.newest["JoinGroup"] = 4
    rig.poll()
    assert [type(failure) for failure in rig.consumer.failures] == [UnsupportedVersion]


def test_a_broker_of_kafka_2_1_is_spoken_to_in_its_own_words() -> None:
    rig = a_member()
    rig.brokers.newest |= KAFKA_2_1
    members = {ME: MemberSubscription(["t"])}
    rig.brokers.answer("JoinGroup", joined(1, members))
    rig.brokers.answer("SyncGroup", synced(*partitions("t", 0, 1, 2, 3)))
    rig.poll()
    rig.brokers.advance(3_100)
    rig.member.leave()
    rig.brokers.run()
    assert rig.names() == ["FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"]
    assert len(rig.brokers.asked("SyncGroup")[0].assignments) == 1
    assert rig.brokers.asked("LeaveGroup")[0].member_id == ME
    assert {one.api: one.version for one in rig.brokers.transcript if one.api in KAFKA_2_1} == KAFKA_2_1


def test_assignors_must_have_a_way_of_rebalancing_in_common() -> None:
    rig = a_stable_member(("cooperative-sticky", "range"))
    rig.brokers.answer("JoinGroup", KEEP)
    rig.member.request_rejoin("rebalance enforced by user")
    rig.brokers.run()
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0, 1))], "range is not cooperative"
    for strategy in ((), ("range", "range"), ("no-such",)):
        with pytest.raises(ValueError, match="assign"):
            a_member(strategy)
    assert a_member(("org.apache.kafka.clients.consumer.RangeAssignor",)).settings.group_id == GROUP


def test_a_client_that_closes_ends_its_member_without_a_word() -> None:
    rig = a_stable_member()
    rig.cluster.close()
    rig.brokers.advance(60_000)
    assert rig.consumer.failures == []
    assert rig.consumer.events == []


class Confused:
    """An assignor of an application's own."""

    name = "confused"
    protocols = ("eager",)

    def user_data(self) -> None:
        return None

    def divide(self, topics: Topics, subscriptions: Subscriptions) -> Division:
        raise LookupError("which way is up?")

    def on_assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        pass


def test_an_assignor_that_fails_is_told_to_the_application() -> None:
    rig = GroupRig(ClassicMember, partition_assignment_strategy=(Confused(),))
    rig.member.subscribe(["t"])
    rig.brokers.answer("JoinGroup", joined(1, {ME: MemberSubscription(["t"])}, "confused"))
    rig.brokers.answer("Heartbeat", HeartbeatResponse())
    rig.poll()
    rig.brokers.advance(10_000)
    assert [str(failure) for failure in rig.consumer.failures] == ["which way is up?"]
    assert rig.names() == ["FindCoordinator", "JoinGroup"]


def test_joining_and_being_removed_are_told_to_the_log() -> None:
    rig = a_stable_member(COOPERATIVE)
    rig.brokers.answer("Heartbeat", [HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)])
    rig.brokers.answer("JoinGroup", KEEP)
    rig.brokers.advance(3_050)
    assert [(line.level, line.text) for line in rig.brokers.lines] == [
        (INFO, f"member {ME} of group 'group', generation 1, has 2 partitions: t-0, t-1"),
        (WARNING, "removed from group 'group' (UNKNOWN_MEMBER_ID), with 2 partitions assigned to it; joining again"),
    ]


def test_an_application_that_does_not_poll_in_time_is_told_of_in_the_log() -> None:
    rig = a_stable_member(max_poll_interval_ms=10_000)
    rig.brokers.advance(60_000)
    assert [line.text for line in rig.brokers.lines if line.level == WARNING] == [
        "leaves group 'group': the application has not polled for 10000 ms (max.poll.interval.ms); it joins again with "
        "the next poll"
    ]
