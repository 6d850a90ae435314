"""What a broker does again and again it does whatever one reply, one partition or one step has raised.

Each row is a loop, the handler in it that raises once, and a scene in which the loop has something to do. The handler
must be called again, and the fault must have reached the node's loop, which counts and logs it.
"""

from collections.abc import Callable

import pytest

from ottla.base.ids import Uuid
from ottla.broker.partitions.background import Background
from ottla.broker.partitions.cleaning.cleaner import LogCleaner
from ottla.broker.partitions.cleaning.cleaner_task import CleaningTask
from ottla.broker.partitions.directory_assignments import DirectoryAssignments
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.fetcher import Fetcher
from ottla.broker.replication.followed import FollowedPartition
from ottla.broker.replication.follower_session import FollowerSession
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.transactions.transaction_markers import _Ending
from ottla.log.flush import Flush
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import ProducerState
from ottla.machines.metadata.image.directory_ids import UNASSIGNED
from ottla.machines.partition.leader import LeaderState
from ottla.serving.node_settings import NodeSettings
from ottla.wire.messages import AssignReplicasToDirsResponse
from tests.unit.broker.brokers import TestNode, batch, produce_request
from tests.unit.broker.replicating_nodes import Cluster
from tests.unit.broker.transactional_nodes import TransactionalNode
from tests.unit.runtime.raising_once import faults_in, raise_once

MINUTE_MS = 60_000
Scene = Callable[[], Callable[[], None]]
"""Begins, and returns what lets time go on."""


def followers_fetch() -> Callable[[], None]:
    cluster = Cluster(2)
    cluster.create_topic(replicas=(1, 2))
    cluster[1].produce(batch(b"x"), acks=1)
    return lambda: cluster.advance(2000)


def a_follower_has_what_its_leader_has_not() -> Callable[[], None]:
    cluster = Cluster(2)
    cluster.create_topic(replicas=(1, 2))
    cluster.down.add(2)
    cluster[1].produce(batch(b"x"), acks=1)
    cluster.down = {1}
    cluster.elect(2, (2,))
    cluster[2].produce(batch(b"y"), acks=1)
    cluster.down.clear()
    cluster.tell()
    return lambda: cluster.advance(2000)


def a_follower_comes_too_late() -> Callable[[], None]:
    """The leader has deleted what comes next for it."""
    cluster = Cluster(2)
    cluster.create_topic(replicas=(1, 2), min_insync_replicas="1")
    cluster.kill(2)
    cluster[1].produce(batch(b"x"))
    cluster[1].partition().log.advance_log_start_offset(1)
    cluster.start(2)
    return lambda: cluster.advance(2000)


def a_follower_lags() -> Callable[[], None]:
    """And comes back."""
    cluster = Cluster(3)
    cluster.create_topic("orders")
    cluster.create_topic("clicks")
    cluster.down.add(3)
    cluster[1].produce(batch(b"x"), acks=1)
    cluster[1].produce(batch(b"x"), topic="clicks", acks=1)
    cluster.agenda.call_at(cluster.clock.elapsed_us() + 10_000_000, lambda: cluster.down.discard(3))
    return lambda: cluster.advance(20_000)


def replicas_are_placed() -> Callable[[], None]:
    ids = {"/one": Uuid(b"1" * 16), "/two": Uuid(b"2" * 16)}
    node = TestNode(log_dirs=tuple(ids), directory_ids=ids)
    node.broker.identity.broker_epoch = 7
    node.controller.replies = [AssignReplicasToDirsResponse()] * 3
    node.create_topic("orders", directories=(UNASSIGNED,))
    return lambda: node.timers.advance(2000)


def a_transaction_ends() -> Callable[[], None]:
    node = TransactionalNode()
    _, *producer = node.init()
    node.write((producer[0], producer[1]), 0, b"x")
    node.timers.after(1, lambda: node.ask_to_end((producer[0], producer[1]), committed=True))
    return lambda: node.timers.advance(3000)


def segments_are_old() -> Callable[[], None]:
    node = TestNode()
    for name in ("orders", "clicks"):
        node.create_topic(name, retention_ms="1000", flush_ms="1000", flush_messages="1000000")
        node.produce(batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0), topic=name)
    Background(node.broker.partitions, node.broker.world).start()
    return lambda: node.timers.advance(20 * MINUTE_MS)


def records_must_be_flushed() -> Callable[[], None]:
    node = TestNode()
    node.create_topic("orders", flush_messages="1")
    node.timers.after(1, lambda: node.ask(produce_request(batch(b"x")), 9))
    return lambda: node.timers.advance(10_000)


def dirty_node() -> TestNode:
    node = TestNode()
    node.broker.identity.broker_epoch = 7
    node.create_topic("orders", cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    for value in (b"a", b"b", b"c"):
        node.produce(batch(value))
        node.partition().log.roll()
    node.broker.start_cleaner()
    return node


def logs_are_dirty() -> Callable[[], None]:
    node = dirty_node()
    return lambda: node.timers.advance(2 * MINUTE_MS)


LOOPS: list[tuple[type, str, Scene]] = [
    (Fetcher, "_on_reply", followers_fetch),
    (Fetcher, "_take", followers_fetch),
    (Fetcher, "_send", followers_fetch),
    (Fetcher, "_send_offset_question", a_follower_comes_too_late),
    (Fetcher, "_find_first", a_follower_comes_too_late),
    (FollowerSession, "fill", followers_fetch),
    (FollowerSession, "on_reply", followers_fetch),
    (FollowedPartition, "truncate", a_follower_has_what_its_leader_has_not),
    (FollowedPartition, "start_within", a_follower_comes_too_late),
    (IsrChanges, "_send", a_follower_lags),
    (IsrChanges, "_on_reply", a_follower_lags),
    (IsrChanges, "_is_to_be_repeated", a_follower_lags),
    (LeaderState, "propose_to_shrink", a_follower_lags),
    (DirectoryAssignments, "_send", replicas_are_placed),
    (_Ending, "_write", a_transaction_ends),
    (_Ending, "_send", a_transaction_ends),
    (_Ending, "_on_written", a_transaction_ends),
    (_Ending, "_complete", a_transaction_ends),
    (Flush, "run", records_must_be_flushed),
    (Background, "_retain", segments_are_old),
    (ProducerState, "expire", segments_are_old),
    (LogCleaner, "_consider", logs_are_dirty),
    (CleaningTask, "_make_durable", logs_are_dirty),
    (CleaningTask, "_begin", logs_are_dirty),
    (CleaningTask, "_on_step", logs_are_dirty),
]


@pytest.mark.parametrize(
    ("owner", "method", "scene"), LOOPS, ids=[f"{owner.__name__}.{method}" for owner, method, _ in LOOPS]
)
def test_a_loop_goes_on_after_its_handler_has_raised(monkeypatch, owner, method, scene):
    resume = scene()
    calls = raise_once(monkeypatch, owner, method)
    faults = faults_in(resume)
    assert len(calls) > 1
    assert faults == 1


def test_a_partition_is_offline_after_a_swap_that_has_raised(monkeypatch):
    """Its log is neither as it was nor as it was to be."""
    node = dirty_node()
    raise_once(monkeypatch, PartitionLog, "finish_replacement")
    node.timers.advance(2 * MINUTE_MS)
    assert node.broker.partitions.offline == {("orders", 0)}


def test_a_partition_is_offline_after_the_end_of_a_flush_has_raised(monkeypatch):
    """Nobody knows what of its log is on the disk."""
    resume = records_must_be_flushed()
    raise_once(monkeypatch, PartitionLog, "finish_flush")
    offline: list[Partition] = []
    monkeypatch.setattr(Partitions, "on_broken", lambda _self, partition, _problem: offline.append(partition))
    assert faults_in(resume) == 0
    assert [partition.is_idle for partition in offline] == [True]


def test_what_a_part_of_the_broker_raises_over_the_metadata_keeps_no_other_from_them(monkeypatch):
    node = TestNode()
    for owner, method in ((NodeSettings, "on_metadata"), (IsrChanges, "on_brokers_changed")):
        raise_once(monkeypatch, owner, method)
    node.register_broker(2, "b", 9092)
    assert faults_in(lambda: node.timers.advance(1)) == 2
    raise_once(monkeypatch, NodeSettings, "on_metadata")
    node.create_topic("orders")
    assert node.produce(batch(b"x")).error_code == 0
