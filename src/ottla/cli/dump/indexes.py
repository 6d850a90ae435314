"""Prints a segment's sparse indexes, and holds every entry against the log it points into.

Until its segment is closed, an index is as long as it was made at first (`segment.index.bytes`), and the rest is
zeros: an entry that points to the segment's first offset, and is not the first, ends it.
"""

import os
from collections.abc import Iterator

from ottla.base.ports import File
from ottla.cli.dump.disk import ReadOnlyDisk
from ottla.cli.dump.findings import Findings, Pairs
from ottla.cli.dump.options import Options
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.index import OffsetIndex, TimeIndex
from ottla.log.scan import scan_batches, scan_headers
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.reader import read_records

_NOWHERE = -1
_NO_TIMESTAMP = -1


def dump_offset_index(path: str, options: Options, findings: Findings) -> Iterator[str]:
    base_offset = _base_offset(path)
    index = OffsetIndex(ReadOnlyDisk(), path, base_offset)
    log = _sibling(path, file_names.LOG)
    try:
        if not len(index):
            yield f"{path} is empty."
        elif options.index_sanity_check:
            if index.last_offset < base_offset:
                raise CorruptFile(f"{path}: its last offset {index.last_offset} is before its first, {base_offset}")
            yield f"{path} passed sanity check."
        else:
            yield from _offset_entries(path, index, log, options, findings)
    finally:
        index.forget()
        log.close()


def _offset_entries(path: str, index: OffsetIndex, log: File, options: Options, findings: Findings) -> Iterator[str]:
    base_offset = _base_offset(path)
    for slot in range(len(index)):
        offset, position = index.entry(slot)
        if offset == base_offset and (slot > 0 or (position == 0 and not options.as_kafka)):
            return
        found = _batch_at(log, position, options.max_message_size)
        if found != offset:
            _note(findings.index_mismatches, path, offset, found)
        if not options.verify_index_only:
            yield f"offset: {offset} position: {position}"


def dump_time_index(path: str, options: Options, findings: Findings) -> Iterator[str]:
    base_offset = _base_offset(path)
    index = TimeIndex(ReadOnlyDisk(), path, base_offset)
    offsets = OffsetIndex(ReadOnlyDisk(), path.removesuffix(file_names.TIME_INDEX) + file_names.INDEX, base_offset)
    log = _sibling(path, file_names.LOG)
    try:
        if options.index_sanity_check:
            _check_time_index(path, index, base_offset)
            yield f"{path} passed sanity check."
        else:
            yield from _time_entries(path, index, offsets, log, options, findings)
    finally:
        index.forget()
        offsets.forget()
        log.close()


def _check_time_index(path: str, index: TimeIndex, base_offset: int) -> None:
    if len(index):
        (first, _), (last, last_offset) = index.entry(0), index.last_entry
        if last < first:
            raise CorruptFile(f"{path}: its last timestamp {last} is before its first, {first}")
        if last_offset < base_offset:
            raise CorruptFile(f"{path}: its last offset {last_offset} is before its first, {base_offset}")


def _time_entries(
    path: str, index: TimeIndex, offsets: OffsetIndex, log: File, options: Options, findings: Findings
) -> Iterator[str]:
    base_offset, previous = _base_offset(path), _NO_TIMESTAMP
    for slot in range(len(index)):
        timestamp, offset = index.entry(slot)
        if offset == base_offset and (slot > 0 or (timestamp == 0 and not options.as_kafka)):
            return
        position, header = _batch_with(log, offsets.position_before(offset), offset)
        if header is None or header.last_offset != offset:
            _note(findings.offsets_not_found, path, offset, _NOWHERE if header is None else header.last_offset)
        else:
            latest = _latest_timestamp(log, position, header)
            if latest != timestamp:
                _note(findings.timestamp_mismatches, path, timestamp, latest)
            if previous >= timestamp:
                _note(findings.timestamps_out_of_order, path, timestamp, previous)
        if not options.verify_index_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        previous = timestamp


def _batch_at(log: File, position: int, max_size: int) -> int:
    """The last offset of the batch at `position`, or `_NOWHERE` if no batch begins there."""
    try:
        for _, header in scan_headers(log, position, min(log.size(), position + max_size)):
            return header.last_offset
    except CorruptBatch:
        pass
    return _NOWHERE


def _batch_with(log: File, position: int, offset: int) -> tuple[int, BatchHeader | None]:
    """The first batch from `position` on that ends at `offset` or later."""
    try:
        for at, header in scan_headers(log, position, log.size()):
            if header.last_offset >= offset:
                return at, header
    except CorruptBatch:
        pass
    return position, None


def _latest_timestamp(log: File, position: int, header: BatchHeader) -> int:
    """Of the records themselves: the header's word for it is what is being checked."""
    for _, _, batch in scan_batches(log, position, position + header.size):
        return max((record.timestamp for record in read_records(batch, 0, header)), default=_NO_TIMESTAMP)
    return _NO_TIMESTAMP


def _note(pairs: Pairs, path: str, one: int, other: int) -> None:
    pairs.setdefault(os.path.abspath(path), []).append((one, other))


def _base_offset(path: str) -> int:
    stem = os.path.basename(path).partition(".")[0]
    try:
        return int(stem)
    except ValueError:
        raise CorruptFile(f"{path}: the name of an index begins with an offset, not with {stem!r}") from None


def _sibling(path: str, suffix: str) -> File:
    """The segment's log, without which an index cannot be checked."""
    return ReadOnlyDisk().open(os.path.join(os.path.dirname(path), os.path.basename(path).partition(".")[0] + suffix))
