"""Every record that Apache Kafka's consumer read from its directories, we read from the same bytes."""

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.log.checkpoint import read_offsets
from ottla.log.disk import OsDisk
from ottla.log.file_names import CLEAN_SHUTDOWN, HIGH_WATERMARKS, LOG_START_OFFSETS
from ottla.log.partition_log import PartitionLog
from ottla.records.batch import BatchHeader, complete_batches
from ottla.records.kernel import Record
from ottla.records.reader import read_records
from ottla.testing.clock import FixedClock
from tests.golden.test_directories import GOLDEN, config_of, copy_of


def expected_of(*names: str) -> list[tuple[str, str]]:
    return [(name, path.stem) for name in names for path in sorted((GOLDEN / f"{name}.expected").glob("*.json"))]


@pytest.mark.parametrize(("name", "partition"), expected_of("clean", "killed", "recovered"))
def test_every_record_is_read_as_kafkas_consumer_read_it(name: str, partition: str, tmp_path: Path) -> None:
    expected = read_expected(name, partition)
    log = opened(name, partition, tmp_path)
    assert log.log_start_offset == expected["log_start_offset"]
    assert log.high_watermark == expected["high_watermark"]
    assert log.last_stable_offset == expected["last_stable_offset"]
    assert_records(log, expected["records"])
    committed = [record.offset for _, record in consumed(log, log.last_stable_offset, read_committed=True)]
    assert committed == expected["read_committed"]


@pytest.mark.parametrize(("name", "partition"), expected_of("legacy"))
def test_every_record_of_the_older_formats_is_read(name: str, partition: str, tmp_path: Path) -> None:
    assert_records(opened(name, partition, tmp_path), read_expected(name, partition)["records"])


def read_expected(name: str, partition: str) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((GOLDEN / f"{name}.expected" / f"{partition}.json").read_text())
    return expected


def assert_records(log: PartitionLog, expected: list[dict[str, Any]]) -> None:
    found = [shown(header, record) for header, record in consumed(log, log.log_end_offset)]
    assert len(found) == len(expected)
    for ours, kafkas in zip(found, expected, strict=True):
        assert {field: ours[field] for field in kafkas} == kafkas


def opened(name: str, partition: str, tmp_path: Path) -> PartitionLog:
    path = copy_of(name, tmp_path)
    topic, _, number = partition.rpartition("-")
    key = TopicPartition(topic, int(number))
    disk = OsDisk()
    log = PartitionLog.open(
        disk,
        f"{path}/{partition}",
        key,
        config_of(topic),
        FixedClock(),
        log_start_offset=read_offsets(disk, f"{path}/{LOG_START_OFFSETS}").get(key, 0),
        clean=(path / CLEAN_SHUTDOWN).exists(),
    )
    watermarks = read_offsets(disk, f"{path}/{HIGH_WATERMARKS}")
    log.advance_high_watermark(watermarks.get(key, log.log_end_offset))
    return log


def consumed(
    log: PartitionLog, upper_bound: int, *, read_committed: bool = False
) -> Iterator[tuple[BatchHeader, Record]]:
    """What a consumer does with small fetches: from offset to offset, leaving out markers and aborted transactions."""
    aborted = {}
    if read_committed:
        for transaction in log.aborted_transactions(log.log_start_offset, upper_bound):
            aborted.setdefault(transaction.producer_id, []).append(transaction)
    offset = start = log.log_start_offset
    while (piece := log.read(offset, 600, upper_bound, min_one_batch=True)).file:
        for position, header in complete_batches(data := piece.file.read_at(piece.position, piece.size)):
            offset = header.next_offset
            hidden = header.is_transactional and any(
                transaction.first_offset <= header.base_offset <= transaction.last_offset
                for transaction in aborted.get(header.producer_id, ())
            )
            if not header.is_control and not hidden:
                for record in read_records(data, position, header):
                    if record.offset >= start:
                        yield header, record


def shown(header: BatchHeader, record: Record) -> dict[str, Any]:
    """A record as make_golden.py writes it down."""
    timestamp_type = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "timestamp_type": "NoTimestampType" if header.magic == 0 else timestamp_type,
        "leader_epoch": header.partition_leader_epoch,
        "key": base64(record.key),
        "value": base64(record.value),
        "value_sha256": sha256(record.value or b"").hexdigest(),
        "headers": [[key, base64(value)] for key, value in record.headers],
    }


def base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()
