"""What happens without a request: retention, flushing, checkpoints, forgetting."""

import errno

import pytest

from ottla.broker.partitions.background import Background
from ottla.log.checkpoint import read_offsets
from ottla.log.directory import LogDirectory
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import NOW_MS, TestNode, batch, fetch_request, produced, values_in

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS


def start(node: TestNode) -> Background:
    background = Background(node.broker.partitions, node.broker.world)
    background.start()
    return background


def rolled(node: TestNode, *values: bytes) -> None:
    """A segment for each value."""
    for value in values:
        node.produce(batch(value))
        node.partition().log.roll()


def files(node: TestNode, suffix: str) -> list[str]:
    return [name for name in node.disk.list_dir("/data/orders-0") if name.endswith(suffix)]


# Retention


def test_old_segments_go_and_their_files_a_minute_later():
    node = TestNode(log_retention_check_interval_ms=str(5 * MINUTE_MS))
    node.create_topic(retention_ms="1000", file_delete_delay_ms=str(MINUTE_MS))
    start(node)
    rolled(node, b"a", b"b")
    node.timers.advance(5 * MINUTE_MS)
    assert node.fetch(0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert node.fetch(2).log_start_offset == 2
    assert len(files(node, ".log.deleted")) == 2
    node.timers.advance(MINUTE_MS)
    assert files(node, ".deleted") == []


def test_segments_beyond_retention_bytes_go():
    node = TestNode()
    node.create_topic(retention_bytes=str(len(batch(b"a"))))
    rolled(node, b"a", b"b", b"c")
    Background(node.broker.partitions, node.broker.world).apply_retention()
    assert values_in(node.fetch(2)) == [b"c"]
    assert node.fetch(1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_retention_lets_requests_in_between():
    node = TestNode()
    node.create_topic("orders", partitions=5, retention_ms="1")
    for index in range(5):
        node.produce(batch(), index=index)
    node.clock.advance(DAY_MS)
    seconds = iter(range(100))
    node.clock.elapsed_s = lambda: float(next(seconds))  # every look takes a second
    background = Background(node.broker.partitions, node.broker.world)
    background.apply_retention()
    starts = [node.partition(index=index).log.log_start_offset for index in range(5)]
    assert starts == [1, 0, 0, 0, 0]
    node.timers.advance(0)
    assert [node.partition(index=index).log.log_start_offset for index in range(5)] == [1, 1, 1, 1, 1]


@pytest.mark.parametrize("count", [15, 16, 40])
def test_many_segments_of_a_partition_go_a_few_at_a_time(count):
    node = TestNode()
    node.create_topic(retention_bytes="0", file_delete_delay_ms="0")
    rolled(node, *(b"%d" % number for number in range(count)))
    seconds = iter(range(1000))
    node.clock.elapsed_s = lambda: float(next(seconds))  # every look takes a second
    Background(node.broker.partitions, node.broker.world).apply_retention()
    assert node.partition().log.log_start_offset == min(count, 16)
    node.timers.advance(0)
    assert node.partition().log.log_start_offset == count
    assert files(node, ".deleted") == []


def test_a_reader_that_holds_a_part_of_a_deleted_segment_can_finish():
    node = TestNode()
    node.create_topic(retention_ms="1")
    rolled(node, b"a")
    part = node.partition().log.read(0, 1 << 20, 1)
    node.clock.advance(DAY_MS)
    Background(node.broker.partitions, node.broker.world).apply_retention()
    assert part.read() == part.file.read_at(0, part.size)


def test_a_disk_that_fails_during_retention_goes_offline():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic(retention_ms="1")
    rolled(node, b"a")
    node.clock.advance(DAY_MS)
    disk.fail_from(disk.calls + 1, errno.EIO)
    Background(node.broker.partitions, node.broker.world).apply_retention()
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR


# Flushing


def test_flush_ms_is_looked_at_when_the_scheduler_says():
    node = TestNode(log_flush_scheduler_interval_ms="1000")
    node.create_topic(flush_ms="5000")
    start(node)
    node.produce(batch())
    node.timers.advance(4000)
    assert node.partition().log.recovery_point == 0
    node.timers.advance(1000)
    assert node.partition().log.recovery_point == 1


def test_a_log_that_has_not_grown_is_not_flushed():
    node = TestNode(MemoryDisk(), log_flush_scheduler_interval_ms="1000")
    node.create_topic(flush_ms="0")
    background = start(node)
    node.produce(batch())
    background.flush_due()
    calls = node.disk.calls
    background.flush_due()
    assert node.disk.calls == calls


# Checkpoints


def test_checkpoints_are_written_every_few_seconds():
    node = TestNode()
    node.create_topic()
    start(node)
    node.produce(batch())
    node.timers.advance(5000)
    assert read_offsets(node.disk, "/data/replication-offset-checkpoint") == {("orders", 0): 1}


def test_checkpoints_without_news_are_not_written():
    node = TestNode(MemoryDisk())
    node.create_topic()
    start(node)
    node.timers.advance(5000)
    calls = node.disk.calls
    node.timers.advance(50_000)
    assert node.disk.calls == calls


def test_a_full_disk_does_not_take_the_directory_away_and_the_checkpoint_is_tried_again():
    disk = MemoryDisk()
    node = TestNode(disk)
    node.create_topic()
    background = Background(node.broker.partitions, node.broker.world)
    node.produce(batch())
    disk.fail_from(disk.calls + 1, errno.ENOSPC)
    background.checkpoint()
    assert node.produce(batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.repair()
    background.checkpoint()
    assert read_offsets(node.disk, "/data/replication-offset-checkpoint") == {("orders", 0): 1}


def test_a_checkpoint_that_breaks_is_tried_again(monkeypatch):
    node = TestNode()
    node.create_topic()
    background = Background(node.broker.partitions, node.broker.world)
    node.produce(batch(b"a"))

    def breaks(_):
        raise AssertionError("an invariant")

    monkeypatch.setattr(LogDirectory, "checkpoint", breaks)
    with pytest.raises(AssertionError):
        background.checkpoint()
    monkeypatch.undo()
    background.checkpoint()
    assert read_offsets(node.disk, "/data/replication-offset-checkpoint") == {("orders", 0): 1}


# Forgetting


def test_a_producer_that_has_been_silent_for_a_day_is_forgotten():
    node = TestNode(producer_id_expiration_ms=str(DAY_MS))
    node.create_topic()
    background = Background(node.broker.partitions, node.broker.world)
    node.produce(produced(7, 0, timestamp=NOW_MS))
    node.clock.advance(DAY_MS - 1)
    background.expire_producers()
    assert len(node.partition().log.producers) == 1
    node.clock.advance(1)
    background.expire_producers()
    assert len(node.partition().log.producers) == 0


def test_clients_that_have_gone_are_forgotten():
    node = TestNode()
    node.create_topic()
    start(node)
    node.ask(fetch_request(max_wait_ms=DAY_MS), 12)
    node.client.is_open = False
    node.timers.advance(10_000)
    assert len(node.broker.partitions.purgatory) == 0


def test_a_stopped_background_leaves_no_timers():
    node = TestNode()
    background = start(node)
    assert len(node.timers) > 0
    background.stop()
    assert len(node.timers) == 0


@pytest.mark.parametrize("setting", ["log_flush_scheduler_interval_ms"])
def test_what_is_never_due_has_no_timer(setting):
    never, sometimes = TestNode(), TestNode(**{setting: "1000"})
    start(never)
    start(sometimes)
    assert len(sometimes.timers) == len(never.timers) + 1
