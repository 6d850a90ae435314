"""One log, cleaned by Apache Kafka and by us: what is left is the same, to the byte where the codec allows it.

The log is a random history, written by our own classes into a directory that both then clean. The time of a cleaning
shows in the delete horizons that Kafka wrote, so that ours can be given the same one.
"""

import shutil
import time
from pathlib import Path
from random import Random

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.checkpoint import read_offsets
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleanedSegment
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.scan import scan_batches
from ottla.records.batch import Compression
from ottla.records.reader import read_records
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource
from tests.interop.apache_kafka import ApacheKafka

pytestmark = pytest.mark.interop

PARTITION = TopicPartition("orders", 0)
CLEAN_TIMEOUT_S = 60
KAFKA = {
    "log.cleaner.backoff.ms": 300,
    "log.cleaner.min.cleanable.ratio": 0,
    "log.cleaner.delete.retention.ms": 1000,
    "log.index.interval.bytes": 300,
    "log.cleanup.policy": "compact",
    "log.segment.delete.delay.ms": 0,
}
OURS = LogConfig(cleanup_policy=("compact",), index_interval_bytes=300, delete_retention_ms=1000, segment_bytes=1 << 30)


class Source(BatchSource):
    def _compression(self) -> int:
        return self.random.choice(list(Compression))


def opened(directory: Path, *, now_ms: int) -> PartitionLog:
    log = PartitionLog.open(OsDisk(), str(directory), PARTITION, OURS, FixedClock(now_ms), clean=True)
    log.advance_high_watermark(log.log_end_offset)
    return log


def write(directory: Path, source: BatchSource, batches: int) -> None:
    log = opened(directory, now_ms=source.now_ms)
    for _ in range(batches):
        assert not log.append_as_leader(source.next_batch(), 0).error
        if source.random.random() < 0.1:
            log.roll()
    log.roll()
    log.close()


def cleaned_by_kafka(kafka: ApacheKafka, log: Path) -> int:
    """Gives Kafka the log, waits until it has cleaned it, and takes it back; returns the clean offset."""
    checkpoint = kafka.data / "cleaner-offset-checkpoint"
    theirs = kafka.data / "orders-0"
    before = read_offsets(OsDisk(), str(checkpoint)).get(PARTITION, -1)
    topic_id = (theirs / "partition.metadata").read_bytes()
    shutil.rmtree(theirs)
    shutil.copytree(log, theirs)
    (theirs / "partition.metadata").write_bytes(topic_id)
    # Until it leads, Kafka goes by this file, and could clean a part of the log first.
    (kafka.data / "replication-offset-checkpoint").unlink()
    kafka.start()
    deadline = time.monotonic() + CLEAN_TIMEOUT_S
    while (offset := read_offsets(OsDisk(), str(checkpoint)).get(PARTITION, -1)) <= before:
        assert time.monotonic() < deadline, "Kafka has not cleaned the log"
        time.sleep(0.05)
    kafka.stop()
    return offset


def cleaned_by_us(directory: Path, clean_offset: int | None, now_ms: int) -> int:
    log = opened(directory, now_ms=now_ms)
    log.flush()
    done = None
    part = cleanable(log, clean_offset, now_ms)
    for done in clean(OsDisk(), plan_cleaning(log, part, CleanerLimits(), now_ms, bytes(16))):
        if isinstance(done, CleanedSegment):
            replacement = log.start_replacement(done.base_offsets)
            replacement.run()
            assert log.finish_replacement(replacement)
    log.close()
    return done.clean_offset


def batches_in(directory: Path) -> list[tuple]:
    """Every batch: its header but for what depends on the codec's library, and its records."""
    log = opened(directory, now_ms=0)
    found = []
    for segment in log.segments:
        for _, header, data in scan_batches(segment.file, 0, segment.size):
            depends = {"batch_length": 0, "crc": 0} if header.compression == Compression.SNAPPY else {}
            records = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in read_records(data, 0, header)]
            found.append((segment.base_offset, header._replace(**depends), records))
    log.release()
    return found


def entries_in(directory: Path) -> list[tuple]:
    log = opened(directory, now_ms=0)
    entries = [(s.base_offset, entry) for s in log.segments for entry in s.transaction_index.entries()]
    log.release()
    return entries


def horizons(batches: list[tuple]) -> list[int]:
    return [header.base_timestamp for _, header, _ in batches if header.has_delete_horizon]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory):
    with ApacheKafka(tmp_path_factory.mktemp("kafka"), config=KAFKA) as kafka:
        kafka.tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--create", "--topic", "orders")
        kafka.stop()
        yield kafka


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_leave_the_same_batches(kafka: ApacheKafka, seed: int, tmp_path: Path) -> None:
    """Two cleanings: the first gives tombstones and markers their horizons, the second finds them passed."""
    (kafka.data / "cleaner-offset-checkpoint").unlink(missing_ok=True)
    source = Source(Random(seed), now_ms=int(time.time() * 1000) - 60_000, tombstones=0.2)
    log, ours, theirs = tmp_path / "orders-0", tmp_path / "ours" / "orders-0", kafka.data / "orders-0"
    clean_offset = None
    for _ in range(2):
        write(log, source, 150)
        shutil.copytree(log, ours, dirs_exist_ok=True)
        began_ms = int(time.time() * 1000)
        offset = cleaned_by_kafka(kafka, log)
        expected = batches_in(theirs)
        now_ms = max([began_ms + 1000, *horizons(expected)]) - 1000
        assert cleaned_by_us(ours, clean_offset, now_ms) == offset
        assert batches_in(ours) == expected
        assert entries_in(ours) == entries_in(theirs)
        clean_offset = offset
        shutil.rmtree(log)
        shutil.copytree(theirs, log)
        shutil.rmtree(ours)
    assert sum(len(records) for _, _, records in expected) < 200, "nothing was cleaned"
