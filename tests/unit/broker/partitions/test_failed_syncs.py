"""A sync that fails has lost data, whatever the reason: its directory goes, and the next sync is not believed."""

import errno
import os

import pytest

from ottla.base.ports import SyncFailed
from ottla.broker.partitions.background import Background
from ottla.broker.replication.followed import FollowedPartition
from ottla.log import disk
from ottla.log.disk import OsDisk
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchResponse
from tests.unit.broker.brokers import TestNode, batch, produce_request
from tests.unit.broker.moving_nodes import in_one, moving_node

FULL = [errno.ENOSPC, errno.EDQUOT, errno.EMFILE]


@pytest.fixture
def node() -> TestNode:
    """With five records in /one, all of them flushed, and another directory to go on with."""
    node = moving_node()
    in_one(node)
    for _ in range(5):
        node.produce(batch(b"value"))
    node.partition().log.flush()
    node.disk.syncs_lose_pages = True
    return node


def has_failed(node: TestNode) -> bool:
    return list(node.broker.partitions.logs.offline) == ["/one"] and ("orders", 0) in node.broker.partitions.offline


@pytest.mark.parametrize("error", FULL)
def test_at_a_roll(node: TestNode, error: int) -> None:
    node.configure_topic("orders", segment_ms="1")
    node.disk.fail_next("sync file", error)
    late = batch(b"value", timestamp=node.clock.now_ms() + 1000)
    assert node.produce(late).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert has_failed(node)


@pytest.mark.parametrize("error", FULL)
def test_at_a_roll_that_cuts_off_what_a_failed_write_has_left(node: TestNode, error: int) -> None:
    node.disk.fail_next("write", errno.ENOSPC)
    node.disk.fail_next("truncate", errno.ENOSPC)
    node.produce(batch(b"does not fit"))
    assert not node.broker.partitions.logs.offline, "a full disk is no reason"
    node.configure_topic("orders", segment_ms="1")
    node.disk.fail_next("sync file", error)
    node.produce(batch(b"value", timestamp=node.clock.now_ms() + 1000))
    assert has_failed(node)


@pytest.mark.parametrize("error", FULL)
@pytest.mark.parametrize("call", ["sync file", "sync_dir"])
def test_at_a_cut(node: TestNode, error: int, call: str) -> None:
    node.change_partition(leader=2, isr=[2])
    follower = FollowedPartition(node.broker.partitions, node.broker.partition_events, node.partition(), 1000)
    node.partition().is_changing_log = True  # So the cut is to be durable at once.
    node.disk.fail_next(call, error)
    assert not follower.truncate(FetchResponse.EpochEndOffset(epoch=0, end_offset=3))
    assert has_failed(node)


@pytest.mark.parametrize("error", [*FULL, errno.ENOMEM])
def test_no_room_for_what_a_flush_writes_is_no_failed_sync(node: TestNode, error: int) -> None:
    """It is tried again."""
    node.change_partition(leader=2)
    node.change_partition(leader=1)
    node.configure_topic("orders", flush_messages="1")
    node.disk.fail_next("create", error)  # Of the leader epochs.
    node.ask(produce_request(batch(b"of the new epoch"), "orders", 0, -1), 12)
    assert not node.broker.partitions.logs.offline
    assert node.partition().log.recovery_point == 5
    node.timers.advance(10_000)
    assert node.partition().log.recovery_point == 6


@pytest.mark.parametrize("error", FULL)
def test_at_a_checkpoint(node: TestNode, error: int) -> None:
    node.disk.fail_next("sync file", error)
    Background(node.broker.partitions, node.broker.world).checkpoint()
    assert len(node.broker.partitions.logs.offline) == 1


@pytest.mark.parametrize("error", FULL)
def test_the_real_disk_says_so_of_every_sync(error: int, monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    def fail(_fd: int) -> None:
        raise OSError(error, os.strerror(error))

    path = str(tmp_path)
    file = OsDisk().open(f"{path}/file", create=True)
    monkeypatch.setattr(disk, "_sync_file", fail)
    monkeypatch.setattr(os, "fsync", fail)
    for sync in (file.sync, lambda: OsDisk().sync_dir(path), lambda: OsDisk().sync_all([path])):
        with pytest.raises(SyncFailed) as failed:
            sync()
        assert failed.value.errno == errno.EIO
        assert os.strerror(error) in str(failed.value)
    file.close()


def test_a_sync_of_a_file_system_says_so_too(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    class Library:
        def __init__(self, *_: object, **__: object) -> None: ...

        def syncfs(self, _fd: int) -> int:
            import ctypes

            ctypes.set_errno(errno.ENOSPC)
            return -1

    monkeypatch.setattr(disk, "file_system_type", lambda _device: "ext4")
    monkeypatch.setattr(disk, "_kernel_version", lambda: (6, 0))
    monkeypatch.setattr("ctypes.CDLL", Library)
    with open(tmp_path / "file", "w") as file, pytest.raises(SyncFailed) as failed:
        disk.sync_file_system(file.fileno())
    assert failed.value.errno == errno.EIO
