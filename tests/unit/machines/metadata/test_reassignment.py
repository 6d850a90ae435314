"""Replicas move from broker to broker, and the partition is served meanwhile (KIP-455)."""

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListPartitionReassignmentsRequest
from tests.unit.machines.metadata.admin_scenes import reassign
from tests.unit.machines.metadata.controllers import ControllerUnderTest
from tests.unit.machines.metadata.test_broker_lives import alter_isr, orders, partition


def test_replicas_are_added_first_and_removed_when_the_new_ones_are_in_sync() -> None:
    node = orders(1, 2)
    node.start(3)
    node.ask(reassign(("orders", 0, (2, 3))))
    moving = partition(node)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((2, 3, 1), (3,), (1,))
    (listed,) = node.ask(ListPartitionReassignmentsRequest(topics=None)).topics
    assert listed.partitions[0].adding_replicas == (3,)
    answer = alter_isr(node, 1, (1, 2, 3))
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED, "the leader was moved away"
    moved = partition(node)
    assert (moved.replicas, moved.isr, moved.leader) == ((2, 3), (2, 3), 2)
    assert not moved.is_reassigning
    assert len(moved.directories) == 2


def test_a_move_can_be_called_off() -> None:
    node = orders(1, 2)
    node.start(3)
    node.ask(reassign(("orders", 0, (2, 3))))
    node.ask(reassign(("orders", 0, None)))
    back = partition(node)
    assert sorted(back.replicas) == [1, 2]
    assert not back.is_reassigning
    assert back.leader == 1


def test_dropping_a_replica_is_done_at_once_and_starts_a_leader_epoch() -> None:
    node = orders(1, 2)
    node.ask(reassign(("orders", 0, (1,))))
    assert (partition(node).replicas, partition(node).isr, partition(node).leader_epoch) == ((1,), (1,), 1)


def test_replicas_that_are_taken_away_are_not_eligible_to_lead() -> None:
    node = orders(1, 2, 3, min_insync_replicas="2")
    node.ask(reassign(("orders", 0, (1,))))
    left = partition(node)
    assert (left.replicas, left.isr, left.eligible_leader_replicas) == ((1,), (1,), ())


def test_the_number_of_replicas_changes_only_where_it_may() -> None:
    node = orders(1, 2)
    reply = node.ask(reassign(("orders", 0, (1,)), allow_change=False))
    (result,) = reply.responses[0].partitions
    assert result.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert result.error_message == "The replication factor is changed from 2 to 1"


def moving_to(*replicas: int) -> ControllerUnderTest:
    """The topic `orders` is on its way from 1, 2, 3."""
    node = orders(1, 2, 3)
    node.start(4, 5)
    node.ask(reassign(("orders", 0, replicas)))
    assert partition(node).is_reassigning
    return node


def test_naming_the_replicas_that_it_had_ends_the_move() -> None:
    """As `kafka-reassign-partitions --execute` does with the assignment that it printed for a rollback."""
    node = moving_to(2, 3, 4)
    node.ask(reassign(("orders", 0, (1, 2, 3))))
    back = partition(node)
    assert (back.replicas, back.isr, back.leader, back.leader_epoch) == ((1, 2, 3), (1, 2, 3), 1, 1)
    assert not back.is_reassigning


def test_naming_the_replicas_that_it_had_ends_the_move_while_some_of_them_are_behind() -> None:
    node = moving_to(2, 3, 4)
    alter_isr(node, 1, (1,))
    node.ask(reassign(("orders", 0, (3, 2, 1))))
    assert (partition(node).replicas, partition(node).isr) == ((3, 2, 1), (1,))
    assert not partition(node).is_reassigning


def test_a_move_back_to_replicas_that_all_are_behind_ends_when_they_are_in_sync() -> None:
    node = moving_to(4, 5)
    alter_isr(node, 1, (1, 4))
    for broker_id in (1, 2, 3):
        node.heartbeat(broker_id, want_fence=True)
    node.ask(reassign(("orders", 0, (1, 2, 3))))
    back = partition(node)
    assert (back.replicas, back.isr, back.adding_replicas, back.removing_replicas) == (
        (1, 2, 3, 4, 5), (4,), (), (4, 5)
    )  # fmt: skip
    for broker_id in (1, 2, 3):
        node.heartbeat(broker_id)
    alter_isr(node, 4, (1, 2, 4))
    assert partition(node).is_reassigning
    alter_isr(node, 4, (1, 2, 3, 4))
    assert (partition(node).replicas, partition(node).isr) == ((1, 2, 3), (1, 2, 3))
    assert not partition(node).is_reassigning


def test_what_was_to_be_added_and_is_not_in_another_target_is_removed() -> None:
    node = moving_to(3, 4, 5)
    node.ask(reassign(("orders", 0, (1, 3, 4))))
    moving = partition(node)
    assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((1, 3, 4, 2, 5), (4,), (2, 5))
    alter_isr(node, 1, (1, 2, 3, 4))
    assert (partition(node).replicas, partition(node).isr) == ((1, 3, 4), (1, 3, 4))


def test_replicas_that_were_to_go_and_are_named_again_stay() -> None:
    node = orders(1, 2, 3)
    alter_isr(node, 1, (1,))
    node.ask(reassign(("orders", 0, (2,))))
    assert partition(node).removing_replicas == (1, 3)
    node.ask(reassign(("orders", 0, (1, 2, 3))))
    assert not partition(node).is_reassigning
    alter_isr(node, 1, (1, 2))
    assert (partition(node).replicas, partition(node).isr) == ((1, 2, 3), (1, 2))
