"""Prints a file of record batches: a segment's `.log`, or a snapshot of the metadata log (`.checkpoint`)."""

import os
from collections.abc import Iterator
from struct import Struct

from ottla.base.errors import ProtocolError
from ottla.base.ports import Buffer, File
from ottla.cli.dump.control import control_text
from ottla.cli.dump.disk import ReadOnlyDisk
from ottla.cli.dump.findings import Findings
from ottla.cli.dump.options import MAX_INT, Options
from ottla.log.errors import CorruptFile
from ottla.log.scan import scan_batches
from ottla.records.batch import checksum_matches
from ottla.records.header import LOG_OVERHEAD, MAGIC_POSITION, NO_SEQUENCE, BatchHeader, Compression, CorruptBatch
from ottla.records.reader import read_records
from ottla.records.record import Record

BOOTSTRAP = "bootstrap.checkpoint"
_LENGTH = Struct(">i")
_SHORTEST_LENGTH = 14
_CODECS = {int(codec): codec.name.lower() for codec in Compression}


def dump_batches(path: str, options: Options, findings: Findings) -> Iterator[str]:
    yield _title(path)
    file = ReadOnlyDisk().open(path)
    try:
        yield from _batch_lines(file, path, options, findings)
    finally:
        file.close()


def _title(path: str) -> str:
    name = os.path.basename(path)
    stem = name.partition(".")[0]
    if name == BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    end_offset, dash, epoch = stem.partition("-")
    try:
        if name.endswith(".checkpoint") and dash:
            return f"Snapshot end offset: {int(end_offset)}, epoch: {int(epoch)}"
        return f"Log starting offset: {int(stem)}"
    except ValueError:
        raise CorruptFile(f"{path}: the name of a log file begins with an offset, not with {stem!r}") from None


def _batch_lines(file: File, path: str, options: Options, findings: Findings) -> Iterator[str]:
    size = file.size()
    end = min(size, options.max_bytes)
    position, last_offset = 0, -1
    try:
        for position, header, batch in scan_batches(file, 0, end):
            valid = checksum_matches(batch, 0, header)
            if not valid:
                findings.invalid_batches.setdefault(path, []).append(position)
            yield _batch_line(position, header, valid)
            if options.deep_iteration:
                try:
                    for record in read_records(batch, 0, header):
                        if record.offset != last_offset + 1 and options.as_kafka:
                            gaps = findings.non_consecutive_offsets.setdefault(os.path.abspath(path), [])
                            gaps.append((last_offset, record.offset))
                        last_offset = record.offset
                        yield _record_line(record, batch, header, valid, options)
                except ProtocolError as problem:
                    # Where the next batch begins is known all the same.
                    findings.unreadable.append(f"{path}: corrupt batch at position {position}: {problem}")
            position += header.size
    except CorruptBatch as problem:
        if not _is_cut_short(file, position, end):
            raise CorruptFile(f"{path}: corrupt batch at position {position}: {problem}") from problem
        if options.max_bytes == MAX_INT:
            yield f"Found {size - position} invalid bytes at the end of {os.path.basename(path)}"


def _is_cut_short(file: File, position: int, end: int) -> bool:
    """Whether what is at `position` may be the beginning of a batch, as a crash or a limit on bytes leaves it."""
    left = end - position
    if left <= MAGIC_POSITION + 1:
        return True
    (length,) = _LENGTH.unpack(file.read_at(position + 8, _LENGTH.size))
    return bool(length >= _SHORTEST_LENGTH and left < LOG_OVERHEAD + length)


def _batch_line(position: int, header: BatchHeader, valid: bool) -> str:
    if header.magic < 2:
        who = f"offset: {header.last_offset}"
    else:
        who = (
            f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
            f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
            f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
            f"partitionLeaderEpoch: {header.partition_leader_epoch} "
            f"isTransactional: {_java(header.is_transactional)} isControl: {_java(header.is_control)} "
            f"deleteHorizonMs: {_delete_horizon(header)}"
        )
    codec = _CODECS.get(header.compression, f"unknown({header.compression})")
    return (
        f"{who} position: {position} {_timestamp_type(header)}: {header.max_timestamp} size: {header.size} "
        f"magic: {header.magic} compresscodec: {codec} crc: {header.crc} isvalid: {_java(valid)}"
    )


def _record_line(record: Record, batch: Buffer, header: BatchHeader, valid: bool, options: Options) -> str:
    parts = []
    if not options.skip_record_metadata:
        parts.append(_record_metadata(record, header, valid))
        if header.is_control:
            parts.append(control_text(record, batch, header))
    if options.print_data_log and not header.is_control:
        key, payload = options.parser(record)
        if key is not None:
            parts.append(f"key: {key}")
        if payload is not None:
            parts.append(f"payload: {payload}")
    return f"| {' '.join(parts)}" if parts else ""


def _record_metadata(record: Record, header: BatchHeader, valid: bool) -> str:
    line = (
        f"offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)}"
    )
    if header.magic >= 2:
        line += f" sequence: {_sequence(record, header)} headerKeys: [{','.join(key for key, _ in record.headers)}]"
    elif not header.compression:
        # A record inside a compressed entry has a checksum of its own, which the entry's covers.
        line += f" isValid: {_java(valid)} crc: {header.crc}"
    return line


def _sequence(record: Record, header: BatchHeader) -> int:
    if header.base_sequence == NO_SEQUENCE:
        return NO_SEQUENCE
    return (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _timestamp_type(header: BatchHeader) -> str:
    if header.magic == 0:
        return "NoTimestampType"
    return "LogAppendTime" if header.is_log_append_time else "CreateTime"


def _delete_horizon(header: BatchHeader) -> str:
    return f"OptionalLong[{header.base_timestamp}]" if header.has_delete_horizon else "OptionalLong.empty"


def _java(flag: bool) -> str:
    return "true" if flag else "false"
