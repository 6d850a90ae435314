"""Brokers register, are unfenced, lead, fall silent, stop and come back: who leads what meanwhile."""

from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.partition_image import RECOVERED, RECOVERING, PartitionImage
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    ElectLeadersRequest,
    UnregisterBrokerRequest,
)
from tests.unit.machines.metadata.admin_scenes import alter, assigned, create, topic
from tests.unit.machines.metadata.controllers import CLUSTER_ID, ControllerUnderTest, directory_of
from tests.unit.machines.metadata.golden_metadata import GOLDEN, records_of
from tests.unit.machines.metadata.plain_messages import plain


def cluster(*broker_ids: int, **settings: str) -> ControllerUnderTest:
    node = ControllerUnderTest(**settings)
    node.start(*broker_ids)
    return node


def orders(*broker_ids: int, **configs: str) -> ControllerUnderTest:
    """A cluster with the topic `orders`: one partition, on all brokers, the first leads."""
    node = cluster(*broker_ids)
    made = assigned("orders", broker_ids)
    made.configs = topic("orders", **configs).configs
    assert node.ask(create(made)).topics[0].error_code == 0
    return node


def partition(node: ControllerUnderTest) -> PartitionImage:
    return node.image.topics.by_name["orders"].partitions[0]


def isr_request(node: ControllerUnderTest, leader: int, isr: tuple[int, ...], **fields: int) -> AlterPartitionRequest:
    now = partition(node)
    wanted = AlterPartitionRequest.PartitionData(
        **{"leader_epoch": now.leader_epoch, "partition_epoch": now.partition_epoch} | fields  # type: ignore[arg-type]
    )
    state = AlterPartitionRequest.BrokerState
    wanted.new_isr_with_epochs = [state(broker_id=id, broker_epoch=node.image.brokers.by_id[id].epoch) for id in isr]
    asked = AlterPartitionRequest.TopicData(topic_id=node.image.topics.by_name["orders"].id, partitions=[wanted])
    epoch = node.image.brokers.by_id[leader].epoch
    return AlterPartitionRequest(broker_id=leader, broker_epoch=epoch, topics=[asked])


def alter_isr(node: ControllerUnderTest, leader: int, isr: tuple[int, ...], **fields: int) -> Any:
    reply = node.ask(isr_request(node, leader, isr, **fields), 3)
    return reply.topics[0].partitions[0]


# The life of one broker


def test_a_broker_is_known_before_it_takes_part() -> None:
    node = ControllerUnderTest()
    epoch = node.register(1)
    assert node.image.brokers.by_id[1].fenced
    assert node.image.brokers.by_id[1].epoch == epoch
    behind = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch - 1)
    reply = node.ask(behind)
    assert (reply.is_caught_up, reply.is_fenced) == (False, True)
    assert node.heartbeat(1, want_fence=True).is_fenced
    assert not node.heartbeat(1).is_fenced
    assert node.image.brokers.by_id[1].is_active


def test_a_broker_of_an_earlier_life_is_not_listened_to() -> None:
    node = cluster(1)
    stale = BrokerHeartbeatRequest(broker_id=1, broker_epoch=node.image.brokers.by_id[1].epoch - 1)
    assert node.ask(stale).error_code == ErrorCode.STALE_BROKER_EPOCH
    unknown = BrokerHeartbeatRequest(broker_id=9, broker_epoch=0)
    assert node.ask(unknown).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_two_brokers_cannot_have_one_number() -> None:
    node = cluster(1)
    request = registration(1, b"another life")
    assert node.ask(request).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    node.now_ms += 9_000  # broker.session.timeout.ms
    assert node.ask(request).error_code == ErrorCode.NONE


def registration(broker_id: int, life: bytes, **fields: Any) -> BrokerRegistrationRequest:
    supported = BrokerRegistrationRequest.Feature
    known = [
        supported(name=name, max_supported_version=highest)
        for name, highest in (
            ("metadata.version", 30),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("transaction.version", 2),
        )
    ]
    given = {"cluster_id": CLUSTER_ID, "log_dirs": (directory_of(broker_id),), "features": known}
    return BrokerRegistrationRequest(broker_id=broker_id, incarnation_id=Uuid(life.ljust(16)), **given | fields)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (Uuid(bytes(16)),)}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory_of(2),) * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": (directory_of(1),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.INVALID_REGISTRATION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_a_broker_that_does_not_fit_is_refused(fields: dict[str, Any], error: ErrorCode) -> None:
    node = cluster(1)
    assert node.ask(registration(2, b"new", **fields)).error_code == error


def test_a_broker_that_lacks_a_feature_in_use_is_refused() -> None:
    node = cluster(1)
    request = registration(2, b"new")
    request.features = [feature for feature in request.features if feature.name != "group.version"]
    assert node.ask(request).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_registering_again_in_the_same_life_keeps_epoch_and_fencing() -> None:
    node = cluster(1)
    before = node.image.brokers.by_id[1]
    node.register(1, rack="north")
    after = node.image.brokers.by_id[1]
    assert (after.epoch, after.fenced, after.rack) == (before.epoch, False, "north")


def test_a_silent_broker_is_fenced() -> None:
    node = orders(1, 2)
    node.now_ms += 8_000
    node.heartbeat(2)
    node.now_ms += 1_000
    node.fence_silent_brokers()
    assert node.image.brokers.by_id[1].fenced
    assert not node.image.brokers.by_id[2].fenced
    assert (partition(node).leader, partition(node).isr) == (2, (2,))


def test_a_new_controller_gives_everybody_a_session() -> None:
    first = orders(1)
    second = ControllerUnderTest(first.image.copy())
    for passed_ms, fenced in ((0, False), (8_999, False), (1, True)):
        second.now_ms += passed_ms
        second.fence_silent_brokers()
        assert second.image.brokers.by_id[1].fenced is fenced


def test_a_combined_node_that_was_killed_is_back_at_once_and_another_broker_when_its_session_ran_out() -> None:
    before = orders(1, 2)
    node = ControllerUnderTest(before.image.copy())
    node.fence_silent_brokers()
    assert node.ask(registration(1, b"next")).error_code == ErrorCode.NONE
    other = registration(2, b"next")
    assert node.ask(other).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    node.now_ms += 9_000
    assert node.ask(other).error_code == ErrorCode.NONE


# Stopping and starting


def test_a_stopping_broker_hands_its_partitions_over_and_waits_until_the_others_know() -> None:
    node = orders(1, 2)
    assert not node.heartbeat(1, want_shut_down=True).should_shut_down
    assert node.image.brokers.by_id[1].in_controlled_shutdown
    assert (partition(node).leader, partition(node).isr) == (2, (2,))
    assert not node.heartbeat(1, want_shut_down=True).should_shut_down, "broker 2 has not read about it yet"
    node.heartbeat(2)
    assert node.heartbeat(1, want_shut_down=True).should_shut_down
    assert node.image.brokers.by_id[1].fenced


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    node = cluster(1)
    assert node.heartbeat(1, want_shut_down=True).should_shut_down


def test_the_only_replica_stops_cleanly_and_leads_again() -> None:
    node = orders(1)
    assert not node.heartbeat(1, want_shut_down=True).should_shut_down
    assert node.heartbeat(1, want_shut_down=True).should_shut_down
    stopped = partition(node)
    assert (stopped.leader, stopped.isr, stopped.eligible_leader_replicas) == (-1, (), (1,))
    node.register(1, life=1, clean=True)
    node.heartbeat(1)
    assert (partition(node).leader, partition(node).isr) == (1, (1,))
    assert partition(node).leader_recovery_state == RECOVERED
    assert partition(node).leader_epoch == 2


def test_the_only_replica_is_killed_and_leads_again_as_the_last_known_leader() -> None:
    """It may have lost what it had not flushed, so it is marked as recovering until it says that it has (KIP-966)."""
    node = orders(1)
    node.now_ms += 9_000
    node.register(1, life=1)
    assert (partition(node).leader, partition(node).eligible_leader_replicas) == (-1, ())
    assert partition(node).last_known_elr == (1,)
    node.heartbeat(1)
    assert (partition(node).leader, partition(node).isr) == (1, (1,))
    assert partition(node).leader_recovery_state == RECOVERING
    assert alter_isr(node, 1, (1,), leader_recovery_state=RECOVERED).error_code == ErrorCode.NONE
    assert partition(node).leader_recovery_state == RECOVERED


@pytest.mark.parametrize("min_insync_replicas", ["1", "2"])
def test_after_kills_of_all_the_last_leader_leads_though_its_directory_is_empty(min_insync_replicas: str) -> None:
    """As Apache Kafka 4.3.1 has it (KIP-966): its PartitionChangeBuilder goes through the same states."""
    node = orders(1, 2, 3, min_insync_replicas=min_insync_replicas)
    states = []

    def note() -> None:
        now = partition(node)
        states.append((now.leader, now.isr, now.eligible_leader_replicas, now.last_known_elr))

    node.now_ms += 9_000
    for broker_id in (2, 3):
        node.register(broker_id, life=1)
        note()
        node.heartbeat(broker_id)
    node.fence_silent_brokers()
    note()
    empty = Uuid(b"an empty one, 1.")
    node.register(1, life=1, directory=empty)
    note()
    in_directory = AssignReplicasToDirsRequest.DirectoryData(
        id=empty,
        topics=[
            AssignReplicasToDirsRequest.TopicData(
                topic_id=node.image.topics.by_name["orders"].id,
                partitions=[AssignReplicasToDirsRequest.PartitionData(partition_index=0)],
            )
        ],
    )
    epoch = node.image.brokers.by_id[1].epoch
    node.ask(AssignReplicasToDirsRequest(broker_id=1, broker_epoch=epoch, directories=[in_directory]))
    note()
    node.heartbeat(1)
    note()
    assert states == [
        (1, (1, 3), (), ()),
        (1, (1,), (), ()),
        (-1, (), (1,), (1,)),
        (-1, (), (), (1,)),
        (-1, (), (), (1,)),
        (1, (1,), (), ()),
    ]
    assert partition(node).leader_recovery_state == RECOVERING


def test_kafkas_controller_wrote_the_same_records_when_its_broker_stopped_and_started() -> None:
    """The log of a real node, decision by decision: every record about a broker and what followed from it."""
    log = [
        (record, version)
        for segment in sorted((GOLDEN / "clean" / "__cluster_metadata-0").glob("*.log"))
        for _, record, version in records_of(segment)
    ]
    node = ControllerUnderTest()
    compared = 0
    while log:
        decided = decide_like(node, log[0][0])
        expected, log = log[: len(decided)], log[len(decided) :]
        ours = [(plain(made.message), made.version) for made in decided]
        assert sorted(ours, key=repr) == sorted(((plain(one), its) for one, its in expected), key=repr)
        compared += len(decided)
        for one, _ in expected or [log.pop(0)]:
            node.image.replay(one)
    assert compared > 100


def decide_like(node: ControllerUnderTest, record: Any) -> list[Any]:
    """What our controller decides where Kafka's wrote `record`; nothing for what is not about brokers."""
    match type(record).__name__, getattr(record, "fenced", 0), getattr(record, "in_controlled_shutdown", 0):
        case "BrokerRegistrationChangeRecord", -1, _:
            wants: dict[str, Any] = {}
        case "BrokerRegistrationChangeRecord", 0, 0:
            wants = {"want_fence": True, "cordoned_log_dirs": record.cordoned_log_dirs}
        case "BrokerRegistrationChangeRecord", _, _:
            wants = {"want_shut_down": True}
        case _:
            return []
    request = BrokerHeartbeatRequest(
        broker_id=1, broker_epoch=record.broker_epoch, current_metadata_offset=1 << 40, **wants
    )
    return node.controller.decide(request, 2, 0).records


# In-sync replicas and leaders


def test_the_leader_shrinks_and_grows_the_isr() -> None:
    node = orders(1, 2, 3)
    answer = alter_isr(node, 1, (1, 2))
    assert (answer.isr, answer.partition_epoch, answer.leader_epoch) == ((1, 2), 1, 0)
    assert alter_isr(node, 1, (1, 2, 3)).partition_epoch == 2
    assert partition(node).isr == (1, 2, 3)


@pytest.mark.parametrize("resource", [(2, "orders"), (4, "")], ids=["of the topic", "of the cluster"])
def test_another_min_insync_leaves_eligible_leaders_where_nobody_is_in_sync(resource: tuple[int, str]) -> None:
    node = orders(1, 2, min_insync_replicas="2")
    for broker_id in (2, 1):
        node.heartbeat(broker_id, want_fence=True)
    before = partition(node)
    assert (before.isr, before.eligible_leader_replicas, before.last_known_elr) == ((), (1, 2), (1,))
    assert node.ask(alter((*resource, (0, "min.insync.replicas", "1")))).responses[0].error_code == 0
    after = partition(node)
    assert (after.isr, after.eligible_leader_replicas, after.last_known_elr) == ((), (1, 2), (1,))
    node.heartbeat(2)
    elected = partition(node)
    assert (elected.leader, elected.isr) == (2, (2,))
    if resource == (2, "orders"):
        assert elected.eligible_leader_replicas == (), "one is enough now: it acknowledges what broker 1 never had"
    else:
        assert elected.eligible_leader_replicas == (1,), "the topic's own setting still asks for two"


def test_replicas_below_min_insync_stay_eligible_to_lead() -> None:
    node = orders(1, 2, 3, min_insync_replicas="2")
    alter_isr(node, 1, (1,))
    assert partition(node).eligible_leader_replicas == (2, 3)
    node.now_ms += 9_000
    for broker_id in (2, 3):
        node.heartbeat(broker_id)
    node.fence_silent_brokers()
    assert (partition(node).leader, partition(node).isr) == (2, (2,))
    assert partition(node).leader_recovery_state == RECOVERED, "it has all that was acknowledged"
    assert partition(node).eligible_leader_replicas == (1, 3)
    alter_isr(node, 2, (2, 3))
    assert partition(node).eligible_leader_replicas == ()


@pytest.mark.parametrize(
    ("leader", "isr", "fields", "error"),
    [
        (1, (1, 2), {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        (1, (1, 2), {"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        (1, (1, 2), {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        (1, (1, 2), {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        (2, (1, 2), {}, ErrorCode.INVALID_REQUEST),
        (1, (2, 3), {}, ErrorCode.INVALID_REQUEST),
        (1, (), {}, ErrorCode.INVALID_REQUEST),
        (1, (1, 1), {}, ErrorCode.INVALID_REQUEST),
        (1, (1, 4), {}, ErrorCode.INVALID_REQUEST),
        (1, (1,), {"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        (1, (1,), {"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_an_isr_that_cannot_be_is_refused(
    leader: int, isr: tuple[int, ...], fields: dict[str, int], error: ErrorCode
) -> None:
    node = orders(1, 2, 3)
    node.start(4)
    assert alter_isr(node, leader, isr, **fields).error_code == error


def test_a_leader_of_an_earlier_life_changes_no_isr() -> None:
    node = orders(1, 2, 3)
    request = isr_request(node, 1, (1, 2))
    request.broker_epoch -= 1
    reply = node.ask(request, 3)
    assert (reply.error_code, reply.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    assert partition(node).isr == (1, 2, 3)


def test_a_fenced_replica_and_one_of_an_earlier_life_cannot_join_the_isr() -> None:
    node = orders(1, 2)
    node.heartbeat(2, want_fence=True)
    assert alter_isr(node, 1, (1, 2)).error_code == ErrorCode.INELIGIBLE_REPLICA
    node.heartbeat(2)
    request = isr_request(node, 1, (1, 2))
    request.topics[0].partitions[0].new_isr_with_epochs[1].broker_epoch -= 1
    reply = node.ask(request, 3)
    assert reply.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA


def test_an_unclean_election_only_where_it_is_allowed() -> None:
    for allowed, leader in (("false", -1), ("true", 2)):
        node = orders(1, 2, unclean_leader_election_enable=allowed)
        alter_isr(node, 1, (1,))
        node.heartbeat(1, want_fence=True)
        assert partition(node).leader == leader
        assert partition(node).leader_recovery_state == (RECOVERING if leader == 2 else RECOVERED)


def test_an_operator_can_order_an_unclean_election() -> None:
    node = orders(1, 2)
    alter_isr(node, 1, (1,))
    node.heartbeat(1, want_fence=True)
    asked = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=(0,))
    node.ask(ElectLeadersRequest(election_type=1, topic_partitions=[asked]))
    assert (partition(node).leader, partition(node).isr) == (2, (2,))


def test_leaders_are_led_back_to_where_they_belong() -> None:
    node = orders(1, 2)
    node.heartbeat(1, want_fence=True)
    assert partition(node).leader == 2
    preferred = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=(0,))
    request = ElectLeadersRequest(election_type=0, topic_partitions=[preferred])
    (result,) = node.ask(request).replica_election_results[0].partition_result
    assert result.error_code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    node.heartbeat(1)
    assert not node.do(node.controller.balance_leaders(0))
    assert partition(node).leader == 2, "it is not in sync yet"
    alter_isr(node, 2, (2, 1))
    node.do(node.controller.balance_leaders(0))
    assert partition(node).leader == 1


def test_an_unregistered_broker_leads_nothing() -> None:
    node = orders(1, 2)
    node.ask(UnregisterBrokerRequest(broker_id=1))
    assert (partition(node).leader, partition(node).isr) == (2, (2,))
    assert 1 not in node.image.brokers.by_id


def test_changing_min_insync_replicas_clears_what_was_found_with_it() -> None:
    node = orders(1, 2, min_insync_replicas="2")
    alter_isr(node, 1, (1,))
    assert partition(node).eligible_leader_replicas == (2,)
    node.ask(alter((2, "orders", (0, "min.insync.replicas", "1"))))
    assert partition(node).eligible_leader_replicas == ()


# Log directories


def test_replicas_of_a_failed_directory_leave_the_isr() -> None:
    node = orders(1, 2)
    node.heartbeat(1, offline_log_dirs=(directory_of(1),))
    assert (partition(node).leader, partition(node).isr) == (2, (2,))


@pytest.mark.parametrize(
    ("directories", "eligible"),
    [((b"directory of   2",), (2, 3)), ((b"the new one's id",), (3,))],
    ids=["with its directory", "with another one"],
)
def test_a_broker_whose_directory_is_gone_is_no_eligible_leader_however_cleanly_it_stopped(
    directories: tuple[bytes, ...], eligible: tuple[int, ...]
) -> None:
    node = orders(1, 2, 3, min_insync_replicas="2")
    alter_isr(node, 1, (1,))
    assert partition(node).eligible_leader_replicas == (2, 3)
    epoch = node.image.brokers.by_id[2].epoch
    node.now_ms += 9_000
    asked = registration(2, b"next life", log_dirs=tuple(map(Uuid, directories)), previous_broker_epoch=epoch)
    assert node.ask(asked).error_code == ErrorCode.NONE
    assert partition(node).eligible_leader_replicas == eligible


def test_a_broker_says_where_it_put_a_replica() -> None:
    node = orders(1)
    here, topic_id = Uuid(b"another log dir."), node.image.topics.by_name["orders"].id
    request = AssignReplicasToDirsRequest(broker_id=1, broker_epoch=node.image.brokers.by_id[1].epoch)
    data = AssignReplicasToDirsRequest
    for id, number in ((topic_id, 0), (topic_id, 5), (Uuid(b"no such topic id"), 0)):
        topics = [data.TopicData(topic_id=id, partitions=[data.PartitionData(partition_index=number)])]
        request.directories.append(data.DirectoryData(id=directory_of(1), topics=topics))
    reply = node.ask(request)
    assert [answer.topics[0].partitions[0].error_code for answer in reply.directories] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    assert partition(node).partition_epoch == 0, "it was there already"
    request.directories = [data.DirectoryData(id=here, topics=request.directories[0].topics)]
    node.ask(request)
    assert partition(node).directories == (here,)
    assert partition(node).leader == -1, "that directory is none of those that work"


# Other things brokers and controllers ask


def test_every_block_of_producer_ids_is_given_once() -> None:
    node = cluster(1)
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=node.image.brokers.by_id[1].epoch)
    blocks = [node.ask(request) for _ in range(3)]
    assert [(block.producer_id_start, block.producer_id_len) for block in blocks] == [
        (0, 1000),
        (1000, 1000),
        (2000, 1000),
    ]
    request.broker_epoch -= 1
    assert node.ask(request).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_controllers_are_registered_too() -> None:
    node = cluster(1)
    listener = ControllerRegistrationRequest.Listener(name="CONTROLLER", host="localhost", port=9093)
    request = ControllerRegistrationRequest(controller_id=1, incarnation_id=Uuid(b"a controller's 1"))
    request.listeners.append(listener)
    assert node.ask(request).error_code == ErrorCode.NONE
    assert node.image.brokers.controllers[1].endpoints[0].port == 9093
