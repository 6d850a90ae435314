"""Prints what stands beside the logs: aborted transactions, producer snapshots, checkpoints, properties."""

from collections.abc import Callable, Iterator

from ottla.base.ids import uuid_text
from ottla.cli.dump.disk import ReadOnlyDisk
from ottla.log.checkpoint import parse_leader_epochs, parse_offsets, parse_partition_metadata
from ottla.log.files import read_file
from ottla.log.producer_state import ProducerRecord, parse_snapshot
from ottla.log.transaction_index import parse_entries

_NONE = -1
_SEQUENCES = 2**31


def dump_transaction_index(path: str) -> Iterator[str]:
    for aborted in parse_entries(read_file(ReadOnlyDisk(), path), path):
        yield (
            f"version: 0 producerId: {aborted.producer_id} firstOffset: {aborted.first_offset} "
            f"lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
        )


def dump_producer_snapshot(path: str) -> Iterator[str]:
    for producer in parse_snapshot(read_file(ReadOnlyDisk(), path), path):
        first = producer.current_txn_first_offset
        yield (
            f"producerId: {producer.producer_id} producerEpoch: {producer.epoch} "
            f"coordinatorEpoch: {producer.coordinator_epoch} "
            f"currentTxnFirstOffset: {'OptionalLong.empty' if first == _NONE else f'OptionalLong[{first}]'} "
            f"lastTimestamp: {producer.timestamp}{_last_batch(producer)}"
        )


def _last_batch(producer: ProducerRecord) -> str:
    """Empty for a producer whose last word was a transaction marker."""
    if producer.last_offset < 0:
        return ""
    first_sequence = (producer.last_sequence - producer.offset_delta) % _SEQUENCES
    return (
        f" firstSequence: {first_sequence} lastSequence: {producer.last_sequence} "
        f"lastOffset: {producer.last_offset} offsetDelta: {producer.offset_delta} timestamp: {producer.timestamp}"
    )


def dump_offsets(path: str) -> Iterator[str]:
    for partition, offset in parse_offsets(read_file(ReadOnlyDisk(), path), path).items():
        yield f"topic: {partition.topic} partition: {partition.partition} offset: {offset}"


def dump_leader_epochs(path: str) -> Iterator[str]:
    for epoch, start_offset in parse_leader_epochs(read_file(ReadOnlyDisk(), path), path):
        yield f"leaderEpoch: {epoch} startOffset: {start_offset}"


def dump_partition_metadata(path: str) -> Iterator[str]:
    yield f"topicId: {uuid_text(parse_partition_metadata(read_file(ReadOnlyDisk(), path), path))}"


def dump_text(path: str) -> Iterator[str]:
    """Properties and JSON are readable as they are; comments say only when they were written."""
    for line in read_file(ReadOnlyDisk(), path).decode("utf-8", "replace").splitlines():
        if line and not line.startswith("#"):
            yield line


STATE_FILES: dict[str, Callable[[str], Iterator[str]]] = {
    "recovery-point-offset-checkpoint": dump_offsets,
    "replication-offset-checkpoint": dump_offsets,
    "log-start-offset-checkpoint": dump_offsets,
    "cleaner-offset-checkpoint": dump_offsets,
    "leader-epoch-checkpoint": dump_leader_epochs,
    "partition.metadata": dump_partition_metadata,
    "meta.properties": dump_text,
    "quorum-state": dump_text,
    ".kafka_cleanshutdown": dump_text,
}
