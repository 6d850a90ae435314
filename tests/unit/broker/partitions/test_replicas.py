"""Partitions follow the metadata: made, led, given up, deleted, found again after a restart."""

import errno
import gc
import weakref
from random import Random

import pytest

from ottla.broker.partitions.replicas import LOGS_A_JOB
from ottla.log.files import write_file
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterPartitionResponse, ConfigRecord, PartitionChangeRecord
from tests.unit.broker.brokers import (
    TestNode,
    batch,
    fetch_request,
    only,
    produce_request,
    produced,
    topic_id_of,
    values_in,
)

FILE_DELETE_DELAY_MS = 60_000


@pytest.fixture
def node() -> TestNode:
    return TestNode()


def directories(node: TestNode, path: str = "/data") -> list[str]:
    return [name for name in node.disk.list_dir(path) if node.disk.is_dir(f"{path}/{name}")]


def test_a_new_topic_gets_its_logs_and_serves(node):
    node.create_topic("orders", partitions=3)
    assert directories(node) == ["orders-0", "orders-1", "orders-2"]
    assert node.produce(batch(), index=2).error_code == ErrorCode.NONE


def test_partitions_of_other_nodes_are_not_kept(node):
    node.create_topic("theirs", replicas=(2, 3), leader=2)
    assert directories(node) == []


def test_a_new_leader_writes_down_where_its_epoch_begins(node):
    node.create_topic("orders", replicas=(1, 2), isr=(1,), leader_epoch=3)
    node.produce(batch(b"a", b"b"))
    for leader in (2, 1):
        node.change_partition(leader=leader)
    assert node.partition().log.epochs.entries == [(3, 0), (5, 2)]


def test_a_node_that_no_longer_leads_takes_no_records(node):
    node.create_topic("orders", replicas=(1, 2))
    node.change_partition(leader=2)
    assert node.produce(batch()).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_settings_count_at_once(node):
    node.create_topic()
    node.configure_topic(segment_bytes="1048576", min_insync_replicas="3")
    partition = node.partition()
    assert (partition.log.config.segment_bytes, partition.settings.min_insync_replicas) == (1_048_576, 3)
    node.configure_topic(segment_bytes=None)
    assert node.partition().log.config.segment_bytes == 1 << 30


@pytest.mark.parametrize("resource", [(2, "orders"), (4, "")], ids=["topic", "cluster"])
def test_a_smaller_isr_is_held_against_the_min_insync_replicas_that_come_with_it(node, resource):
    """The replica that leaves stays eligible to lead by the new number (KIP-966), and does not have the record."""
    node.register_broker(2, "b", 9092)
    node.create_topic("orders", replicas=(1, 2))
    reply = node.ask(produce_request(batch()), 9)
    node.commit(
        ConfigRecord(resource_type=resource[0], resource_name=resource[1], name="min.insync.replicas", value="2"),
        PartitionChangeRecord(topic_id=topic_id_of("orders"), partition_id=0, isr=[1], eligible_leader_replicas=[2]),
    )
    assert (node.partition().log.high_watermark, reply.is_here) == (0, False)


def test_an_isr_that_the_controller_answered_counts_when_the_metadata_has_it(node):
    """Before the answer the metadata may have raised min.insync.replicas, of which this node has not heard yet."""
    node.register_broker(2, "b", 9092)
    node.broker.identity.broker_epoch = 0
    node.create_topic("orders", replicas=(1, 2))
    node.produce(batch(), acks=1)
    answered = AlterPartitionResponse.PartitionData(partition_index=0, leader_id=1, isr=[1], partition_epoch=1)
    topic = AlterPartitionResponse.TopicData(topic_id=topic_id_of("orders"), partitions=[answered])
    node.controller.replies = [AlterPartitionResponse(topics=[topic])]
    node.clock.advance(60_000)
    node.broker.isr_changes.shrink()
    node.timers.advance(1)
    assert [type(asked).__name__ for asked in node.controller.asked] == ["AlterPartitionRequest"]
    assert node.partition().log.high_watermark == 0
    node.commit(
        ConfigRecord(resource_type=2, resource_name="orders", name="min.insync.replicas", value="2"),
        PartitionChangeRecord(topic_id=topic_id_of("orders"), partition_id=0, isr=[1], eligible_leader_replicas=[2]),
    )
    assert node.partition().log.high_watermark == 0


def test_settings_of_the_broker_are_behind_those_of_its_topics(node):
    from tests.unit.broker.brokers import broker_settings

    node.create_topic("plain")
    node.create_topic("special", retention_ms="5")
    node.broker.on_settings(broker_settings(log_retention_ms="7"))
    assert node.partition("plain").log.config.retention_ms == 7
    assert node.partition("special").log.config.retention_ms == 5


# Deleting


def test_a_deleted_topic_is_gone_at_once_and_its_files_after_a_while(node):
    node.create_topic()
    node.produce(batch())
    node.delete_topic()
    assert node.produce(batch()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (left,) = directories(node)
    assert left.startswith("orders-0.")
    assert left.endswith("-delete")
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert directories(node) == []


def test_a_deleted_partition_is_forgotten_without_a_collection_of_garbage(node):
    """Partitions that were made by the thousand are kept out of the collector's sight."""
    node.create_topic("orders", partitions=LOGS_A_JOB)
    gc.collect()
    node.produce(batch())
    node.fetch()
    log = weakref.ref(node.partition().log)
    gc.disable()
    try:
        node.delete_topic()
        node.timers.advance(FILE_DELETE_DELAY_MS)
        assert log() is None
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_topic_can_be_made_again_while_the_old_one_goes(node):
    node.create_topic()
    node.produce(batch(b"old"))
    node.workers.hold()
    node.delete_topic()
    node.create_topic("orders", id=topic_id_of("orders, again"))
    node.workers.let_go()
    assert node.produce(batch(b"new")).base_offset == 0
    assert values_in(node.fetch()) == [b"new"]
    assert node.partition().topic_id == topic_id_of("orders, again")


def test_a_topic_that_is_deleted_before_its_log_was_made(node):
    node.workers.hold()
    node.create_topic()
    node.delete_topic()
    node.workers.let_go()
    assert node.partition() is None
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert directories(node) == []


def test_a_topic_that_is_deleted_and_made_again_before_its_log_was_made(node):
    node.workers.hold()
    node.create_topic()
    node.delete_topic()
    node.create_topic("orders", id=topic_id_of("orders, again"))
    node.workers.let_go()
    assert node.produce(batch(b"new")).base_offset == 0
    assert node.partition().topic_id == topic_id_of("orders, again")
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert directories(node) == ["orders-0"]


def test_a_topic_that_is_made_again_while_the_old_one_is_being_flushed(node):
    node.create_topic(flush_messages="1")
    node.workers.hold()
    node.ask(produce_request(batch(b"old")), 9)
    node.delete_topic()
    node.create_topic("orders", id=topic_id_of("orders, again"))
    reply = node.ask(produce_request(batch(b"new")), 9)
    assert not reply.is_here
    node.workers.let_go()
    assert only(reply.message).error_code == ErrorCode.NONE
    assert values_in(node.fetch()) == [b"new"]


def test_a_replica_that_moves_away_is_deleted(node):
    node.create_topic("orders", replicas=(1, 2))
    node.change_partition(replicas=(2, 3), isr=(2,), leader=2)
    assert node.partition() is None
    assert node.fetch().error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_log_is_not_deleted_under_a_flush(node):
    node.create_topic(flush_messages="1")
    node.workers.hold()
    reply = node.ask(produce_request(batch()), 9)
    node.delete_topic()
    assert only(reply.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert directories(node) == ["orders-0"]
    node.workers.let_go()
    assert directories(node)[0].endswith("-delete")


def test_deleting_wakes_who_waits_for_records(node):
    node.create_topic()
    reply = node.ask(fetch_request(max_wait_ms=1000), 12)
    node.delete_topic()
    assert only(reply.message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(node.broker.partitions.purgatory) == 0


def test_many_partitions_are_deleted_a_few_at_a_time(node):
    node.create_topic("orders", partitions=150)
    node.delete_topic()
    assert node.fetch(index=149).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sum(name.endswith("-delete") for name in directories(node)) == 64
    node.timers.advance(0)
    assert all(name.endswith("-delete") for name in directories(node))
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert directories(node) == []
    assert len(node.timers) == 0


# Starting again


def test_after_a_clean_stop_everything_is_as_it_was(node):
    node.create_topic("orders", partitions=2)
    node.produce(produced(7, 0, b"a"))
    node.produce(batch(b"b"), index=1)
    node.logs.close()
    again = TestNode(node.disk, node.image)
    assert values_in(again.fetch()) == [b"a"]
    assert values_in(again.fetch(index=1)) == [b"b"]
    repeated = again.produce(produced(7, 0, b"a"))
    assert (repeated.error_code, repeated.base_offset) == (ErrorCode.NONE, 0)


def test_what_was_acknowledged_survives_kill_9():
    node = TestNode(MemoryDisk())
    node.create_topic()
    for value in (b"a", b"b"):
        node.produce(batch(value))
    again = TestNode(node.disk.survivor_of_kill(), node.image)
    assert values_in(again.fetch()) == [b"a", b"b"]


@pytest.mark.parametrize("seed", range(10))
def test_what_was_flushed_before_it_was_acknowledged_survives_a_power_cut(seed):
    node = TestNode(MemoryDisk())
    node.create_topic(flush_messages="1")
    for value in (b"a", b"b"):
        assert node.produce(batch(value)).error_code == ErrorCode.NONE
    again = TestNode(node.disk.survivor(Random(seed)), node.image)
    assert values_in(again.fetch()) == [b"a", b"b"]


def test_what_was_being_deleted_is_gone_after_a_restart(node):
    node.create_topic()
    node.delete_topic()
    node.logs.close()
    assert directories(TestNode(node.disk, node.image)) == []


def test_a_log_without_a_topic_is_set_aside_and_kept(node):
    node.create_topic()
    node.produce(batch())
    node.logs.close()
    again = TestNode(node.disk)  # a cluster that does not know the topic
    (stray,) = directories(again)
    assert stray.startswith("orders-0.")
    assert stray.endswith("-stray")


def test_the_log_of_an_earlier_topic_of_the_same_name_is_set_aside(node):
    node.create_topic()
    node.produce(batch(b"old"))
    node.logs.close()
    node.delete_topic()
    node.create_topic("orders", id=topic_id_of("orders, again"))
    again = TestNode(node.disk, node.image)
    assert values_in(again.fetch()) == []
    assert [name.rpartition("-")[2] for name in directories(again)] == ["0", "stray"]


def test_a_log_that_was_lost_is_made_anew():
    node = TestNode()
    node.create_topic()
    node.logs.close()
    again = TestNode(MemoryDisk(), node.image)
    assert again.produce(batch()).base_offset == 0


# Directories


def test_a_partition_that_cannot_be_opened_is_offline_and_the_others_are_served(node):
    for topic in ("broken", "orders"):
        node.create_topic(topic)
        node.produce(batch(b"value"), topic)
    node.broker.partitions.logs.close()
    write_file(node.disk, "/data/broken-0/whatever.log.swap", b"")
    again = TestNode(node.disk, node.image)
    assert values_in(again.fetch()) == [b"value"]
    assert again.produce(batch(), "broken").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert again.partition("broken") is None, "another one would hide it"
    again.delete_topic("broken")
    assert again.produce(batch(), "broken").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    again.create_topic("broken", id=topic_id_of("broken, again"))
    assert again.produce(batch(), "broken").base_offset == 0
    assert [name for name in directories(again) if name.endswith("-delete")], "it goes with its topic"


def test_partitions_go_where_there_are_fewest():
    node = TestNode(log_dirs=("/one", "/two"))
    node.create_topic("orders", partitions=4)
    assert [len(directories(node, path)) for path in ("/one", "/two")] == [2, 2]


def test_a_cordoned_directory_gets_no_new_partitions():
    node = TestNode(log_dirs=("/one", "/two"), cordoned_log_dirs="/one")
    node.create_topic("orders", partitions=3)
    assert directories(node, "/one") == []
    assert len(directories(node, "/two")) == 3


def test_a_directory_that_fails_while_a_log_is_made_goes_offline_and_another_gets_the_log():
    disk = MemoryDisk()
    node = TestNode(disk, log_dirs=("/one", "/two"))
    disk.fail_at(disk.calls + 1, errno.EIO)
    node.create_topic("orders", partitions=2)
    assert list(node.broker.partitions.logs.online) == ["/two"]
    assert [node.produce(batch(), index=index).error_code for index in range(2)] == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_directory_that_fails_while_its_logs_are_taken_up_goes_offline_and_others_serve():
    disk = MemoryDisk()
    node = TestNode(disk, log_dirs=("/one", "/two"))
    node.create_topic("orders", partitions=2)
    node.logs.close()
    (lost,) = (int(name[-1]) for name in directories(node, "/two"))
    disk.remove(f"/two/orders-{lost}/partition.metadata")  # Lost in a power cut; it is written again.
    disk.fail_next("create partition.metadata", errno.EIO)
    again = TestNode(disk, node.image, log_dirs=("/one", "/two"))
    assert list(again.broker.partitions.logs.online) == ["/one"]
    told = [again.produce(batch(), index=index).error_code for index in (lost, 1 - lost)]
    assert told == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE]


def test_a_disk_without_room_for_a_log_keeps_its_other_partitions():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic()
    node.produce(batch(b"kept"))
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    node.create_topic("clicks")
    assert node.produce(batch(), "clicks").error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert values_in(node.fetch()) == [b"kept"]


def test_a_directory_that_fails_while_a_topic_in_it_is_being_deleted(node):
    node.create_topic()
    node.workers.hold()
    node.broker.partitions.on_disk_error("/data", OSError(errno.EIO, "gone"))
    node.delete_topic()
    node.workers.let_go()
    assert node.fetch().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "/data" in node.broker.partitions.logs.offline


def test_a_directory_that_fails_while_a_log_in_it_is_being_made(node):
    node.create_topic()
    node.workers.hold()
    node.create_topic("clicks")
    node.broker.partitions.on_disk_error("/data", OSError(errno.EIO, "gone"))
    node.workers.let_go()
    for topic in ("orders", "clicks"):
        assert node.fetch(topic=topic).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_directory_fails_once_however_often_it_is_noticed(node):
    told: list[str] = []
    node.broker.partition_events.on_directory_failed = lambda directory, problem: told.append(directory)
    node.workers.hold()
    for _ in range(3):
        node.broker.partitions.on_disk_error("/data", OSError(errno.EIO, "gone"))
    node.workers.let_go()
    node.broker.partitions.on_disk_error("/data", OSError(errno.EIO, "gone"))
    assert told == ["/data"]


def test_with_the_last_directory_everything_is_offline():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic()
    node.broker.partitions.on_disk_error("/data", OSError(errno.EIO, "gone"))
    node.create_topic("clicks")
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.fetch(topic="clicks").error_code == ErrorCode.KAFKA_STORAGE_ERROR
