"""Directories that Apache Kafka wrote: we read every record, and what we write for the same input has the same bytes.

What is not the same, and why:

- Checkpoints that list partitions do so in the order of a Java hash map; we compare what they say.
- `.kafka_cleanshutdown` carries the broker's epoch, which only a node has.
- A leader epoch in which nothing was written, and that began after the last change of the log, is not in our file, and
  for a log that never held a record there is no file: an opening drops such an epoch, ours as Kafka's.
- A clean stop of Kafka's, followed by a start, leaves the snapshot of that stop until some later start finds it to
  belong to no segment. Our next start is that later start, so those go one start earlier.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.log import file_names
from ottla.log.checkpoint import format_leader_epochs, parse_leader_epochs, parse_offsets, parse_partition_metadata
from ottla.log.directory import LogDirectory
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.records.batch import BatchHeader, batches
from ottla.testing.clock import FixedClock
from ottla.wire.errors import ErrorCode

GOLDEN = Path(__file__).parent / "kafka-4.3.1"

# As Workload.java sets them; only what the log acts on.
CONFIGS = {
    **{codec: LogConfig(index_interval_bytes=512) for codec in ("gzip", "snappy", "lz4", "zstd")},
    "create-time": LogConfig(index_interval_bytes=100, segment_bytes=2000),
    "append-time": LogConfig(index_interval_bytes=100),
    "idempotent": LogConfig(index_interval_bytes=200, segment_bytes=2000),
    "full-index": LogConfig(index_interval_bytes=0, segment_index_bytes=64),
    "transactions": LogConfig(index_interval_bytes=150, segment_bytes=1500),
    "compacted": LogConfig(cleanup_policy=("compact",), index_interval_bytes=100, segment_bytes=1500),
    "compacted-expired": LogConfig(cleanup_policy=("compact",), index_interval_bytes=100, segment_bytes=800),
    "epochs": LogConfig(index_interval_bytes=100),
    "deleted-records": LogConfig(index_interval_bytes=100, segment_bytes=1000),
    "retained": LogConfig(segment_bytes=1000, retention_bytes=2500),
    "deleting": LogConfig(segment_bytes=1000, retention_bytes=2500, file_delete_delay_ms=86_400_000),
    "__consumer_offsets": LogConfig(cleanup_policy=("compact",), segment_bytes=100 << 20),
    "__transaction_state": LogConfig(cleanup_policy=("compact",), segment_bytes=100 << 20),
}
PER_DIRECTORY = {file_names.RECOVERY_POINTS, file_names.HIGH_WATERMARKS, file_names.LOG_START_OFFSETS}


def config_of(topic: str) -> LogConfig:
    return CONFIGS.get(topic, LogConfig())


def clock_of(name: str) -> FixedClock:
    """A moment after the directory was written: producers of 2023 have expired, those of that day have not."""
    newest = max(
        header.max_timestamp for _, header in batches((GOLDEN / name / "append-time-0" / log_file(0)).read_bytes())
    )
    return FixedClock(newest + 60_000)


def log_file(base_offset: int) -> str:
    return file_names.file_name(base_offset, file_names.LOG)


def partitions(name: str) -> list[str]:
    return sorted(
        path.name
        for path in (GOLDEN / name).iterdir()
        if path.is_dir()
        and not path.name.endswith("-delete")
        and not path.name.startswith(file_names.CLUSTER_METADATA_TOPIC)
    )


def copy_of(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / name, tmp_path / name))


def opened(path: Path, clock: FixedClock) -> LogDirectory:
    directory = LogDirectory(OsDisk(), str(path), clock, config_of=config_of)
    directory.open_all()
    return directory


def assert_same_files(ours: Path, kafkas: Path, *, except_for: frozenset[str] = frozenset()) -> None:
    def found(path: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in path.iterdir() if file.name not in except_for}

    ours_found, kafkas_found = found(ours), found(kafkas)
    for files in (ours_found, kafkas_found):
        if file_names.LEADER_EPOCHS in files:
            kept = kept_epochs(files)
            files.pop(file_names.LEADER_EPOCHS)
            if kept:
                files[file_names.LEADER_EPOCHS] = format_leader_epochs(kept)
    assert sorted(ours_found) == sorted(kafkas_found)
    for name, content in kafkas_found.items():
        assert ours_found[name] == content, name


def kept_epochs(files: dict[str, bytes]) -> list[tuple[int, int]]:
    """The leader epochs that an opening of this log keeps."""
    newest = max(name for name in files if name.endswith(file_names.LOG))
    end = int(newest.removesuffix(file_names.LOG))
    for _, header in batches(files[newest]):
        end = header.next_offset
    entries = parse_leader_epochs(files[file_names.LEADER_EPOCHS], file_names.LEADER_EPOCHS)
    return [entry for entry in entries if entry[1] < end]


def lead_as_kafka_did(log: PartitionLog, kafkas: Path) -> None:
    """A node leads again after each start, which its last leader epoch tells."""
    path = kafkas / file_names.LEADER_EPOCHS
    log.begin_leader_epoch(parse_leader_epochs(path.read_bytes(), str(path))[-1][0])


def stray_snapshots(kafkas: Path) -> frozenset[str]:
    """Snapshots of earlier clean stops: not at the start of a segment, not the newest."""
    snapshots = sorted(path.name for path in kafkas.glob("*" + file_names.PRODUCER_SNAPSHOT))
    return frozenset(
        name
        for name in snapshots[:-1]
        if not (kafkas / name.replace(file_names.PRODUCER_SNAPSHOT, file_names.LOG)).exists()
    )


def test_a_clean_directory_is_opened_and_closed_without_changing_a_byte(tmp_path: Path) -> None:
    path = copy_of("clean", tmp_path)
    directory = opened(path, clock_of("clean"))
    assert directory.was_clean
    for partition, log in directory.logs.items():
        lead_as_kafka_did(log, GOLDEN / "clean" / str(partition))
    directory.close(directory.broker_epoch)
    for name in partitions("clean"):
        kafkas = GOLDEN / "clean" / name
        # A snapshot that was there before is a later start's to remove; see the module.
        assert_same_files(path / name, kafkas, except_for=stray_snapshots(kafkas))
    for name in PER_DIRECTORY:
        assert parse_offsets((path / name).read_bytes(), name) == parse_offsets(
            (GOLDEN / "clean" / name).read_bytes(), name
        )
    assert (path / file_names.CLEAN_SHUTDOWN).read_bytes() == (
        GOLDEN / "clean" / file_names.CLEAN_SHUTDOWN
    ).read_bytes()


def test_recovery_of_a_killed_directory_leaves_what_kafkas_recovery_leaves(tmp_path: Path) -> None:
    path = copy_of("killed", tmp_path)
    directory = opened(path, clock_of("killed"))
    assert not directory.was_clean
    for partition, log in directory.logs.items():
        lead_as_kafka_did(log, GOLDEN / "recovered" / str(partition))
    directory.close()
    for name in partitions("recovered"):
        kafkas = GOLDEN / "recovered" / name
        assert_same_files(path / name, kafkas, except_for=stray_snapshots(kafkas))


def rewritten(name: str) -> Iterator[str]:
    """The partitions that still hold all that was ever appended to them."""
    for partition in partitions(name):
        topic = partition.rpartition("-")[0]
        if (GOLDEN / name / partition / log_file(0)).exists() and not config_of(topic).is_compacted:
            yield partition


# The leader epochs of the three runs of the node that made `clean`.
RUNS = (0, 2, 4)


@pytest.mark.parametrize("name", list(rewritten("clean")))
def test_appending_the_same_batches_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    kafkas = GOLDEN / "clean" / name
    topic, _, number = name.rpartition("-")
    partition = TopicPartition(topic, int(number))
    written = [batch for segment in sorted(kafkas.glob("*" + file_names.LOG)) for batch in batches_of(segment)]
    clock = clock_of("clean")
    for epoch in RUNS:
        directory = opened(tmp_path, clock)
        log = directory.logs.get(partition) or directory.create(partition, topic_id_of(kafkas))
        log.begin_leader_epoch(epoch)
        for header, batch in written:
            if header.partition_leader_epoch == epoch:
                appended = log.append_as_leader(bytearray(batch), epoch)
                assert (appended.error, appended.base_offset) == (ErrorCode.NONE, header.base_offset)
                log.advance_high_watermark(log.log_end_offset)
        directory.close()
    assert_same_files(tmp_path / name, kafkas, except_for=stray_snapshots(kafkas))


def batches_of(segment: Path) -> Iterator[tuple[BatchHeader, bytes]]:
    content = segment.read_bytes()
    for position, header in batches(content):
        yield header, content[position : position + header.size]


def topic_id_of(kafkas: Path) -> Uuid:
    path = kafkas / file_names.PARTITION_METADATA
    return parse_partition_metadata(path.read_bytes(), str(path))
