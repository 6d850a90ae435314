"""A member of the new protocol (KIP-848) against a scripted coordinator, heartbeat by heartbeat."""

from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.client.client_log import INFO, WARNING
from ottla.client.errors import FencedInstanceId, UnreleasedInstanceId, UnsupportedVersion
from ottla.client.membership.consumer.consumer_member import ConsumerGroupMember
from ottla.client.membership.member import Identity, LeaveBehaviour
from ottla.testing.scripted_brokers import DROP, KEEP
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerGroupHeartbeatResponse, MetadataResponse
from tests.unit.client.membership.group_rig import GroupRig, partitions

HEARTBEAT = "ConsumerGroupHeartbeat"
INTERVAL_MS = 5_000


def told(epoch: int, given: dict[Uuid, tuple[int, ...]] | None = None) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if given is not None:
        each = [
            ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=numbers)
            for topic_id, numbers in given.items()
        ]
        assignment = ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=each)
    return ConsumerGroupHeartbeatResponse(member_epoch=epoch, heartbeat_interval_ms=INTERVAL_MS, assignment=assignment)


def refused(error: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


class Rig(GroupRig):
    def __init__(self, **settings: Any) -> None:
        super().__init__(ConsumerGroupMember, **settings)
        self.member.subscribe(["t"])
        self.cluster.add_topics(["t"])
        self.cluster.refresh()
        self.brokers.run()
        self.t = self.brokers.topic_id("t")

    def told(self, epoch: int, *numbers: int) -> ConsumerGroupHeartbeatResponse:
        return told(epoch, {self.t: numbers})

    def heartbeats(self) -> list[Any]:
        return self.asked(HEARTBEAT)

    def has(self, request: Any) -> dict[str, list[int]] | None:
        """The partitions that a heartbeat tells of, if it does."""
        if request.topic_partitions is None:
            return None
        names = {self.t: "t"}
        return {names[one.topic_id]: list(one.partitions) for one in request.topic_partitions}


def a_stable_member(**settings: Any) -> Rig:
    """In epoch 1 with partitions 0 and 1."""
    rig = Rig(**settings)
    rig.brokers.answer(HEARTBEAT, [rig.told(1, 0, 1), told(1)])
    rig.poll()
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0, 1))]
    assert len(rig.heartbeats()) == 2
    return rig


def test_a_member_joins_when_the_application_first_polls_and_tells_what_it_has_taken() -> None:
    rig = Rig(client_rack="rack", group_remote_assignor="range", max_poll_interval_ms=60_000)
    rig.brokers.run()
    assert rig.heartbeats() == []
    rig.brokers.answer(HEARTBEAT, [rig.told(1, 2), told(1)])
    rig.poll()
    join, acknowledgement = rig.heartbeats()
    assert (join.member_epoch, list(join.subscribed_topic_names), rig.has(join)) == (0, ["t"], {})
    assert (join.rack_id, join.server_assignor, join.rebalance_timeout_ms) == ("rack", "range", 60_000)
    assert len(join.member_id) == 22
    assert (acknowledgement.member_epoch, rig.has(acknowledgement)) == (1, {"t": [2]})
    assert (acknowledgement.subscribed_topic_names, acknowledgement.rebalance_timeout_ms) == (None, -1)
    assert rig.consumer.take_events() == [("assigned", partitions("t", 2))]
    assert rig.member.identity == Identity(1, join.member_id)
    assert not rig.member.is_rebalancing


def test_heartbeats_go_on_in_the_coordinators_interval_and_say_nothing_that_it_knows() -> None:
    rig = a_stable_member()
    rig.brokers.answer(HEARTBEAT, told(1))
    rig.brokers.advance(3 * INTERVAL_MS + 100)
    beats = rig.heartbeats()
    assert len(beats) == 3
    assert all(rig.has(beat) is None and beat.subscribed_topic_names is None for beat in beats)


def test_partitions_are_given_up_before_that_is_told_and_heartbeats_go_on_meanwhile() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    rig.brokers.answer(HEARTBEAT, [rig.told(1, 1), told(1), told(1)])
    rig.brokers.advance(3 * INTERVAL_MS)
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0))]
    assert [rig.has(beat) for beat in rig.heartbeats()] == [None, None, None]
    assert rig.member.is_rebalancing
    rig.brokers.answer(HEARTBEAT, [rig.told(2, 1, 3), told(2)])
    rig.finish_held()
    assert [(beat.member_epoch, rig.has(beat)) for beat in rig.heartbeats()] == [(1, {"t": [1]}), (2, {"t": [1, 3]})]
    assert rig.consumer.take_events() == [("assigned", ()), ("assigned", partitions("t", 3))]
    assert rig.member.identity.generation == 2


def test_a_target_that_changes_while_partitions_are_given_up_is_followed_next() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    rig.brokers.answer(HEARTBEAT, [rig.told(1, 1), rig.told(2, 0, 1)])
    rig.brokers.advance(2 * INTERVAL_MS)
    rig.brokers.answer(HEARTBEAT, told(2))
    rig.finish_held()
    assert rig.consumer.take_events() == [
        ("revoked", partitions("t", 0)),
        ("assigned", ()),
        ("assigned", partitions("t", 0)),
    ]
    assert [rig.has(beat) for beat in rig.heartbeats()][-1] == {"t": [0, 1]}


@pytest.mark.parametrize("error", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_its_partitions_and_then_joins_again(error: ErrorCode) -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"lost"}
    rig.brokers.answer(HEARTBEAT, [refused(error)])
    rig.brokers.advance(4 * INTERVAL_MS)
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]
    assert len(rig.heartbeats()) == 1, "none while it is fenced"
    assert rig.member.identity == Identity()
    rig.brokers.answer(HEARTBEAT, [rig.told(5, 0), told(5)])
    rig.finish_held()
    join, _ = rig.heartbeats()
    assert (join.member_epoch, list(join.subscribed_topic_names), rig.has(join)) == (0, ["t"], {})
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0))]


def test_a_member_that_is_fenced_while_it_gives_partitions_up_does_not_acknowledge() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    rig.brokers.answer(HEARTBEAT, [rig.told(1, 1), refused(ErrorCode.FENCED_MEMBER_EPOCH)])
    rig.brokers.advance(2 * INTERVAL_MS)
    rig.heartbeats()
    rig.brokers.answer(HEARTBEAT, [rig.told(3), told(3)])
    rig.finish_held()
    assert rig.consumer.take_events() == [
        ("revoked", partitions("t", 0)),
        ("lost", partitions("t", 1)),
        ("assigned", ()),
    ]
    assert [beat.member_epoch for beat in rig.heartbeats()] == [0, 3]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ErrorCode.UNRELEASED_INSTANCE_ID, UnreleasedInstanceId),
        (ErrorCode.FENCED_INSTANCE_ID, FencedInstanceId),
    ],
)
def test_an_instance_id_of_another_is_told_to_the_application(error: ErrorCode, kind: type[Exception]) -> None:
    rig = Rig(group_instance_id="one")
    rig.brokers.answer(HEARTBEAT, [refused(error, "taken")])
    rig.poll()
    rig.brokers.advance(60_000)
    assert [(type(failure), str(failure).startswith("taken")) for failure in rig.consumer.failures] == [(kind, True)]
    assert len(rig.heartbeats()) == 1
    rig.brokers.answer(HEARTBEAT, [rig.told(1, 0), told(1)])
    rig.poll()
    if kind is FencedInstanceId:  # It stays out, or the two would fence each other for ever.
        assert len(rig.heartbeats()) == 0
        assert [type(failure) for failure in rig.consumer.failures] == [FencedInstanceId] * 2
        rig.member.leave()
        rig.member.subscribe(["t"])
        rig.poll()
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0))]


def test_a_cluster_without_the_protocol_is_named() -> None:
    rig = Rig()
    rig.brokers.newest[HEARTBEAT] = -1
    rig.poll()
    assert [type(failure) for failure in rig.consumer.failures] == [UnsupportedVersion]
    assert "group.protocol=consumer is not possible here" in str(rig.consumer.failures[0])


@pytest.mark.parametrize(
    "trouble",
    [DROP, refused(ErrorCode.NOT_COORDINATOR), refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)],
    ids=["dropped", "moved", "unavailable"],
)
def test_a_coordinator_that_is_gone_is_looked_for_anew_and_told_everything(trouble: Any) -> None:
    rig = a_stable_member()
    rig.coordinator_id = 2
    rig.brokers.answer(HEARTBEAT, [trouble, told(1)])
    rig.brokers.advance(INTERVAL_MS + 300)
    assert rig.brokers.transcript[-1].node_id == 2
    again = rig.heartbeats()[-1]
    assert (list(again.subscribed_topic_names), rig.has(again), again.member_epoch) == (["t"], {"t": [0, 1]}, 1)
    assert rig.consumer.events == []


def test_another_subscription_is_told_at_once() -> None:
    rig = a_stable_member()
    rig.brokers.answer(HEARTBEAT, told(2))
    rig.member.subscribe(["u", "t"])
    rig.brokers.run()
    (beat,) = rig.heartbeats()
    assert list(beat.subscribed_topic_names) == ["t", "u"]


def test_a_pattern_is_the_coordinators_to_match_and_names_are_asked_for_by_id() -> None:
    rig = Rig()
    rig.brokers.topics["found"] = 2
    rig.cluster.set_topics([])
    found = rig.brokers.topic_id("found")
    rig.member.subscribe_pattern("f.*")
    topic = MetadataResponse.MetadataResponseTopic(name="found", topic_id=found)
    unknown = MetadataResponse.MetadataResponseTopic(name=None, topic_id=found, error_code=ErrorCode.UNKNOWN_TOPIC_ID)
    plain = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="broker-1", port=9092)], topics=[]
    )
    by_id = [MetadataResponse(topics=[unknown]), MetadataResponse(topics=[topic])]
    rig.brokers.answer(
        "Metadata",
        lambda node, version, request: by_id.pop(0) if request.topics and request.topics[0].name is None else plain,
    )
    rig.brokers.answer(HEARTBEAT, [told(1, {found: (1,)}), told(1)])
    rig.poll()
    rig.brokers.advance(1_000)
    join = rig.heartbeats()[0]
    assert (join.subscribed_topic_regex, list(join.subscribed_topic_names)) == ("f.*", [])
    assert rig.consumer.take_events() == [("assigned", partitions("found", 1))]
    rig.brokers.answer(HEARTBEAT, told(1))
    rig.member.subscribe(["t"])
    rig.brokers.run()
    (beat,) = rig.heartbeats()
    assert (beat.subscribed_topic_regex, list(beat.subscribed_topic_names)) == ("", ["t"])


def test_topics_that_no_broker_can_name_do_not_keep_the_others_waiting() -> None:
    rig = Rig()
    deleted = Uuid(b"deleted".ljust(16))
    rig.brokers.answer(HEARTBEAT, [told(1, {rig.t: (0,), deleted: (0,)}), told(1)])
    rig.poll()
    rig.brokers.advance(4_000)
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0))]
    assert [rig.has(beat) for beat in rig.heartbeats()] == [{}, {"t": [0]}]
    rig.brokers.answer(HEARTBEAT, told(2, {rig.t: (0,)}))
    rig.brokers.advance(INTERVAL_MS)
    assert not rig.member.is_rebalancing


def test_a_pattern_needs_a_broker_that_matches_it() -> None:
    rig = Rig()
    rig.brokers.newest[HEARTBEAT] = 0
    rig.member.subscribe_pattern("f.*")
    rig.poll()
    assert [type(failure) for failure in rig.consumer.failures] == [UnsupportedVersion]


def test_an_old_broker_gives_the_member_its_id() -> None:
    rig = Rig()
    rig.brokers.newest[HEARTBEAT] = 0
    rig.brokers.answer(
        HEARTBEAT,
        [
            ConsumerGroupHeartbeatResponse(member_id="given", member_epoch=1, heartbeat_interval_ms=INTERVAL_MS),
            told(1),
        ],
    )
    rig.poll()
    rig.brokers.advance(INTERVAL_MS)
    assert rig.heartbeats()[-1].member_id == "given"


def test_an_application_that_does_not_poll_in_time_leaves_and_comes_back_when_it_does() -> None:
    rig = a_stable_member(max_poll_interval_ms=12_000)
    rig.consumer.holds = {"lost"}
    rig.brokers.answer(HEARTBEAT, told(1))
    rig.brokers.advance(60_000)
    assert [beat.member_epoch for beat in rig.heartbeats()] == [1, 1, -1], "and silence after it"
    assert rig.consumer.take_events() == [("lost", partitions("t", 0, 1))]
    rig.finish_held()
    assert rig.heartbeats() == []
    rig.brokers.answer(HEARTBEAT, [rig.told(4, 0), told(4)])
    rig.poll()
    assert [beat.member_epoch for beat in rig.heartbeats()] == [0, 4]
    assert rig.consumer.take_events() == [("assigned", partitions("t", 0))]


@pytest.mark.parametrize(
    ("instance", "behaviour", "epochs"),
    [
        (None, LeaveBehaviour.DEFAULT, [-1]),
        (None, LeaveBehaviour.REMAIN, []),
        ("one", LeaveBehaviour.DEFAULT, [-2]),
        ("one", LeaveBehaviour.REMAIN, [-2]),
        ("one", LeaveBehaviour.LEAVE, [-1]),
    ],
)
def test_leaving_is_told_by_an_epoch(instance: str | None, behaviour: LeaveBehaviour, epochs: list[int]) -> None:
    rig = a_stable_member(group_instance_id=instance)
    rig.brokers.answer(HEARTBEAT, told(-1))
    left = rig.member.leave(behaviour)
    rig.brokers.run()
    beats = rig.heartbeats()
    assert [(beat.member_epoch, beat.instance_id) for beat in beats] == [(epoch, instance) for epoch in epochs]
    assert left.is_done
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0, 1))]
    assert rig.member.identity == Identity(group_instance_id=instance)


def test_heartbeats_go_on_until_a_leaving_member_has_given_its_partitions_up() -> None:
    rig = a_stable_member()
    rig.consumer.holds = {"revoked"}
    rig.brokers.answer(HEARTBEAT, rig.told(1, 0))
    left = rig.member.leave()
    rig.brokers.advance(2 * INTERVAL_MS)
    assert [beat.member_epoch for beat in rig.heartbeats()] == [1, 1]
    assert not left.is_done
    rig.finish_held()
    assert [beat.member_epoch for beat in rig.heartbeats()] == [-1]
    assert left.is_done
    assert rig.consumer.take_events() == [("revoked", partitions("t", 0, 1))]
    rig.poll()
    rig.brokers.advance(4 * INTERVAL_MS)
    assert rig.heartbeats() == []


def test_leaving_ends_when_the_coordinator_cannot_be_reached() -> None:
    rig = a_stable_member()
    rig.brokers.unreachable |= {1, 2}
    rig.brokers.drop_connections()
    rig.brokers.run()
    left = rig.member.leave()
    rig.brokers.advance(1_000)
    assert left.is_done


def test_a_commit_with_a_stale_epoch_has_the_new_one_asked_for() -> None:
    rig = a_stable_member()
    rig.brokers.answer(HEARTBEAT, told(2))
    rig.member.on_commit_refused(ErrorCode.STALE_MEMBER_EPOCH, rig.member.identity)
    rig.brokers.run()
    assert rig.member.identity.generation == 2
    rig.heartbeats()
    rig.member.on_commit_refused(ErrorCode.STALE_MEMBER_EPOCH, Identity(1, "me"))
    rig.brokers.run()
    assert rig.heartbeats() == [], "the epoch is a newer one already"


def test_one_heartbeat_is_under_way_at_a_time() -> None:
    rig = a_stable_member()
    rig.brokers.answer(HEARTBEAT, KEEP)
    rig.brokers.advance(INTERVAL_MS)
    rig.member.subscribe(["t", "u"])
    rig.brokers.advance(2 * INTERVAL_MS)
    assert len(rig.heartbeats()) == 1
    rig.brokers.answer(HEARTBEAT, told(2))
    rig.brokers.release()
    rig.brokers.run()
    (beat,) = rig.heartbeats()
    assert list(beat.subscribed_topic_names) == ["t", "u"]


def test_a_client_that_closes_ends_its_member_without_a_word() -> None:
    rig = a_stable_member()
    rig.cluster.close()
    rig.brokers.advance(60_000)
    assert rig.consumer.failures == []
    assert rig.consumer.events == []


def test_joining_and_being_removed_are_told_to_the_log() -> None:
    rig = a_stable_member()
    rig.brokers.answer(HEARTBEAT, [refused(ErrorCode.FENCED_MEMBER_EPOCH), rig.told(5, 0), told(5)])
    rig.brokers.advance(INTERVAL_MS + 50)
    member = rig.member.identity.member_id
    assert [(line.level, line.text) for line in rig.brokers.lines] == [
        (INFO, f"member {member} of group 'group', generation 1, has 2 partitions: t-0, t-1"),
        (
            WARNING,
            "removed from group 'group' (the coordinator does not know it any more), with 2 partitions assigned to it; "
            "joining again",
        ),
        (INFO, "back in group 'group' after 0.0 s"),
        (INFO, f"member {member} of group 'group', generation 5, has 1 partition: t-0"),
    ]


def test_a_coordinator_that_fails_for_long_is_told_of_in_the_log() -> None:
    rig = a_stable_member()
    rig.brokers.answer(HEARTBEAT, refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    rig.brokers.advance(2 * INTERVAL_MS - 200)
    assert [line for line in rig.brokers.lines if line.level == WARNING] == []
    rig.brokers.advance(2 * INTERVAL_MS)
    line = next(line for line in rig.brokers.lines if line.level == WARNING)
    assert line.text.startswith("cannot send heartbeats to group 'group'; trying again: The coordinator is still")
