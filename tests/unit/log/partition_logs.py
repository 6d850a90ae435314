"""What the tests of the log share: batches with just the fields a test is about, and a log on a disk in memory."""

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Disk
from ottla.log.directory import LogDirectory
from ottla.log.log_config import LogConfig
from ottla.log.outcomes import FileSlice
from ottla.log.partition_log import PartitionLog
from ottla.log.scan import scan_batches
from ottla.records.batch import BatchHeader, assign, complete_batches, read_header
from ottla.records.builder import BatchBuilder
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.records.reader import read_records
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk

PARTITION = TopicPartition("orders", 0)
TOPIC_ID = Uuid(bytes(range(16)))
DIRECTORY = "/data/orders-0"
NOW_MS = 1_700_000_000_000
# An index entry per batch, so that small logs have indexes worth looking at.
CONFIG = LogConfig(index_interval_bytes=0)


def batch(*values: bytes, timestamp: int = NOW_MS, count: int = 1, **fields: Any) -> bytearray:
    """A batch of these values, or of `count` short ones; every record has the same timestamp."""
    builder = BatchBuilder(**fields)
    for value in values or [b"value"] * count:
        builder.append(timestamp, b"key", value)
    return builder.build()


def produced(producer_id: int, sequence: int, *, epoch: int = 0, count: int = 1, **fields: Any) -> bytearray:
    """A batch of an idempotent producer (KIP-98)."""
    return batch(count=count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)


def in_transaction(producer_id: int, sequence: int, *, epoch: int = 0, count: int = 1) -> bytearray:
    return produced(producer_id, sequence, epoch=epoch, count=count, transactional=True)


def marker(producer_id: int, *, committed: bool, epoch: int = 0, coordinator_epoch: int = 0) -> bytearray:
    return build_end_transaction_marker(EndTransactionMarker(committed, coordinator_epoch), producer_id, epoch, NOW_MS)


def header_of(data: bytes | bytearray, **changes: int) -> BatchHeader:
    return read_header(data)._replace(**changes)


def at_offset(base_offset: int, data: bytearray, leader_epoch: int = 0) -> bytearray:
    """The batch as a leader wrote it at `base_offset`: what a follower is sent."""
    assign(data, 0, base_offset, leader_epoch)
    return data


def open_log(
    disk: Disk | None = None, config: LogConfig = CONFIG, clock: FixedClock | None = None, **options: Any
) -> PartitionLog:
    return PartitionLog.open(disk or MemoryDisk(), DIRECTORY, PARTITION, config, clock or FixedClock(NOW_MS), **options)


def open_directory(disk: Disk, config: LogConfig = CONFIG, clock: FixedClock | None = None) -> LogDirectory:
    directory = LogDirectory(disk, "/data", clock or FixedClock(NOW_MS), config_of=lambda topic: config)
    directory.open_all()
    return directory


def append(log: PartitionLog, *batches: bytearray, leader_epoch: int = 0) -> int:
    """Appends as the leader of a partition without followers; returns the offset of the last record."""
    last_offset = log.log_end_offset - 1
    for data in batches:
        appended = log.append_as_leader(data, leader_epoch)
        assert not appended.error, appended.error
        last_offset = appended.last_offset
    log.advance_high_watermark(log.log_end_offset)
    return last_offset


def bytes_of(part: FileSlice) -> bytes:
    return part.file.read_at(part.position, part.size) if part.file else b""


def offsets_in(part: FileSlice) -> list[int]:
    """The offsets of the records in the whole batches of a slice."""
    data = bytes_of(part)
    return [
        record.offset for position, header in complete_batches(data) for record in read_records(data, position, header)
    ]


def headers_in(log: PartitionLog) -> Iterator[BatchHeader]:
    for segment in log.segments:
        for _, header, _ in scan_batches(segment.file, 0, segment.size):
            yield header


def base_offsets(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def files_in(disk: Disk, suffix: str = "", directory: str = DIRECTORY) -> list[str]:
    return [name for name in disk.list_dir(directory) if name.endswith(suffix)]


def contiguous(headers: Iterable[BatchHeader], start: int = 0) -> bool:
    for header in headers:
        if header.base_offset != start:
            return False
        start = header.next_offset
    return True


def rolling(config: LogConfig = CONFIG, *, batches: int) -> LogConfig:
    """A configuration under which a segment takes `batches` batches of one short record, and then rolls."""
    return config._replace(segment_bytes=batches * len(batch()))
