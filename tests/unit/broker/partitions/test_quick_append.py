"""Appends by compiled code leave what appends by the partition's own methods leave: files, offsets, producers."""

import errno
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from ottla.base.ids import ZERO_UUID, TopicPartition
from ottla.broker.partitions import quick_append
from ottla.broker.partitions.partition import Partition, Surroundings
from ottla.broker.partitions.topic_settings import topic_settings
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.log.files import read_file
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import AppendOrigin
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.records.batch import assign, read_header
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.header import ChecksumMismatch
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from tests.unit.broker.brokers import NODE_ID, NOW_MS, batch, produced

PARTITION = TopicPartition("orders", 0)
DIRECTORY = "/data/orders-0"
KINDS = ["plain", "of a producer", "made here", "again", "gap", "transaction", "epoch"]
WEIGHTS = [9, 9, 5, 1, 1, 1, 1]
needs_compiler = pytest.mark.skipif(quick_append.partition_end is None, reason="there is no C compiler")


class Brokers:
    def active_epoch(self, broker_id: int) -> int | None:
        return 0

    def is_alive(self, broker_id: int) -> bool:
        return True


class Led:
    """A partition that this node leads, whose segments are small."""

    def __init__(self, *followers: int, **overrides: str) -> None:
        self.disk = MemoryDisk()
        settings = topic_settings({"internal.segment.bytes": "2000", "index.interval.bytes": "300", **overrides})
        log = PartitionLog.open(self.disk, DIRECTORY, PARTITION, settings.log, FixedClock(NOW_MS))
        self.partition = Partition(PARTITION, ZERO_UUID, log, settings, TopicTraffic())
        self.followers = followers
        self.taken_quickly = 0
        self.lead(0)

    def lead(self, epoch: int) -> None:
        replicas = (NODE_ID, *self.followers)
        image = PartitionImage(replicas, replicas, NODE_ID, epoch, 0)
        self.partition.on_image(image, Surroundings(NODE_ID, Brokers(), 1000), NOW_MS)

    def append(self, data: bytearray, *, quickly: bool) -> object:
        header = read_header(data)
        if quickly and not header.attributes:
            offset = quick_append.append_produced(self.partition, data, header)
            if offset != quick_append.NOT_NOW:
                self.taken_quickly += 1
                return offset
        origin = AppendOrigin.COORDINATOR if header.is_control else AppendOrigin.CLIENT
        appended = self.partition.append_as_leader(data, origin, header)
        return appended.error or appended.base_offset

    def append_made_here(self, count: int, *, quickly: bool) -> object:
        log = self.partition.log
        data = batch(*[b"made"] * count)
        assign(data, 0, log.log_end_offset, self.partition.leader_epoch)
        header = read_header(data)
        if quickly:
            offset = quick_append.append_made_here(self.partition, data, count, header.max_timestamp)
            if offset != quick_append.NOT_NOW:
                self.taken_quickly += 1
                return offset
        return self.partition.append_made_here(data, count, header.max_timestamp).base_offset

    def state(self) -> dict[str, Any]:
        partition, log, state = self.partition, self.partition.log, self.partition.state
        assert state is not None
        return {
            "ends": (log.log_end_offset, log.high_watermark, log.last_stable_offset),
            "leader's": (state.local_end_offset, state.high_watermark, partition.awaits_flush),
            "epochs": log.epochs.entries,
            "fresh": partition._fresh,
            "sizes": [(segment.base_offset, segment.size) for segment in log.segments],
            "batches": bytes(log.read(0, 1 << 20, log.log_end_offset).read()),
            "read": [
                partition.read(offset, 500, log.log_end_offset, min_one_batch=True).size
                for offset in range(log.log_end_offset)
            ],
        }

    def files(self) -> dict[str, bytes]:
        self.partition.log.close()
        return {name: read_file(self.disk, f"{DIRECTORY}/{name}") for name in self.disk.list_dir(DIRECTORY)}


def history(seed: int) -> list[Callable[[Led, bool], object]]:
    """A step does the same to each partition that it is done to."""
    chance, steps = Random(seed), list[Callable[[Led, bool], object]]()
    sequences, epoch = dict[int, int](), 0

    def append(made: bytearray) -> None:
        steps.append(lambda led, quickly: led.append(bytearray(made), quickly=quickly))

    for _ in range(80):
        (kind,) = chance.choices(KINDS, WEIGHTS)
        count, producer = chance.randint(1, 4), chance.randint(1, 3)
        sequence = sequences.get(producer, 0)
        if kind == "plain":
            append(batch(*[b"value"] * count, timestamp=NOW_MS + chance.randint(-500, 500)))
        elif kind == "of a producer":
            append(produced(producer, sequence, *[b"value"] * count))
            sequences[producer] = sequence + count
        elif kind == "made here":
            steps.append(lambda led, quickly, count=count: led.append_made_here(count, quickly=quickly))
        elif kind == "again" and sequence:
            append(produced(producer, sequence - 1, b"value"))
        elif kind == "gap":
            append(produced(producer, sequence + 7, b"value"))
        elif kind == "transaction":
            append(produced(producer + 10, sequences.get(producer + 10, 0), b"value", transactional=True))
            append(produced(producer + 10, sequences.get(producer + 10, 0) + 1, b"value"))
            marker = EndTransactionMarker(chance.random() < 0.5, 0)
            append(build_end_transaction_marker(marker, producer + 10, 0, NOW_MS))
            sequences[producer + 10] = sequences.get(producer + 10, 0) + 1
        elif kind == "epoch":
            epoch += 1
            steps.append(lambda led, quickly, epoch=epoch: led.lead(epoch))
    return steps


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("followers", [(), (2,)])
@pytest.mark.parametrize("overrides", [{}, {"flush.messages": "3"}])
@pytest.mark.parametrize("seed", range(12))
def test_both_ways_end_in_the_same_log(seed: int, followers: tuple[int, ...], overrides: dict[str, str]) -> None:
    quick, usual = Led(*followers, **overrides), Led(*followers, **overrides)
    for step in history(seed):
        assert step(quick, True) == step(usual, False)
        assert quick.state() == usual.state()
    assert quick.taken_quickly > 10, "most are as usual"
    assert usual.taken_quickly == 0
    assert quick.files() == usual.files()


@needs_compiler
def test_a_batch_that_changed_since_it_was_checked_is_left_to_the_usual_way() -> None:
    led = Led()
    led.append(batch(b"value"), quickly=False)
    changed = batch(b"value")
    header = read_header(changed)
    changed[-1] ^= 1
    before = bytes(changed)
    assert quick_append.append_produced(led.partition, changed, header) == quick_append.NOT_NOW
    assert bytes(changed) == before, "as it came"
    with pytest.raises(ChecksumMismatch):
        led.partition.append_as_leader(changed, AppendOrigin.CLIENT, header)
    assert led.partition.log.log_end_offset == 1


@needs_compiler
def test_a_disk_that_fails_half_way_leaves_the_log_as_it_was() -> None:
    led = Led()
    led.append(batch(b"value"), quickly=False)
    before = led.state()
    led.disk.fail_from(led.disk.calls + 1, errno.ENOSPC)
    for _ in range(3):
        with pytest.raises(OSError, match="injected"):
            led.append(batch(b"value", b"value"), quickly=True)
    led.disk.repair()
    assert led.state() == before
    assert led.append(batch(b"value", b"value"), quickly=True) == 1
