"""Replicas move from broker to broker, and the partition is served meanwhile (KIP-455)."""

from admin_scenes import reassign
from test_broker_lives import alter_isr, orders, partition

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListPartitionReassignmentsRequest


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
