"""Rebuilding indexes of a segment whose batches are taken as they are: one was lost or damaged, the log was not.

What is rebuilt is written beside the segment, under names with .cleaned, and takes its place when it is durable. A
crash before that leaves the index missing, or damaged, and the next start begins anew; it removes the unfinished files.

Checksums are not looked at, and nothing is cut: a batch that cannot be read is its readers' affair, and what comes
after it is found by readers only as far as the index reaches.
"""

from collections.abc import Callable, Collection

from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.errors import CorruptFile
from ottla.log.files import sync_file
from ottla.log.index import OffsetIndex, TimeIndex
from ottla.log.producer_recovery import note_written
from ottla.log.producer_state import ProducerState
from ottla.log.scan import scan_headers
from ottla.log.segment import Segment
from ottla.log.transaction_index import TransactionIndex
from ottla.records.batch import CorruptBatch

SPARSE = (file_names.INDEX, file_names.TIME_INDEX)
"""Both get their entries at the same moments, so that neither is rebuilt without the other."""


def remove_damaged(disk: Disk, directory: str, base_offset: int) -> set[str]:
    """Removes those of a segment's indexes that cannot be what was written; returns the suffixes of their names."""
    removed: set[str] = set()
    for kind in (*SPARSE, file_names.TRANSACTION_INDEX):
        path = f"{directory}/{file_names.file_name(base_offset, kind)}"
        if disk.exists(path) and not _is_sound(disk, path, kind, base_offset):
            disk.remove(path)
            removed.add(kind)
    return removed


def _is_sound(disk: Disk, path: str, kind: str, base_offset: int) -> bool:
    try:
        if kind == file_names.INDEX:
            OffsetIndex(disk, path, base_offset)
        elif kind == file_names.TIME_INDEX:
            TimeIndex(disk, path, base_offset)
        else:
            transactions = TransactionIndex(disk, path)
            try:
                transactions.check(base_offset)
            finally:
                transactions.close()
    except CorruptFile:
        return False
    return True


def rebuild_indexes(
    disk: Disk, segment: Segment, rebuilt: Segment, lost: Collection[str], producers: Callable[[], ProducerState]
) -> int:
    """Makes the indexes with the suffixes `lost` anew; returns up to where the segment's batches could be read.

    `rebuilt` is a segment of the same base offset without files, whose names end in .cleaned. `producers` gives the
    producer state as of the base offset. Afterwards the segment is to be opened anew.
    """
    wanted = {*lost, *SPARSE} if not {*lost}.isdisjoint(SPARSE) else {*lost}
    end = 0
    try:
        state = producers() if file_names.TRANSACTION_INDEX in wanted else None
        try:
            for position, header in scan_headers(segment.file, 0, segment.size):
                if not segment.fits(header.last_offset):
                    break
                rebuilt.index(header, position)
                if state is not None and header.producer_id >= 0:
                    completed = note_written(state, header, segment, position)
                    if completed and completed.aborted:
                        rebuilt.transaction_index.append(state.aborted(completed))
                end = position + header.size
        except CorruptBatch:
            pass
        if rebuilt.max_timestamp[0] >= 0:
            rebuilt.time_index.maybe_append(*rebuilt.max_timestamp)
        _put_in_place(disk, segment, rebuilt, wanted)
    finally:
        rebuilt.delete()
    return end


def _put_in_place(disk: Disk, segment: Segment, rebuilt: Segment, wanted: Collection[str]) -> None:
    rebuilt.write_indexes()
    for kind in sorted(wanted):
        if disk.exists(rebuilt.path(kind)):
            sync_file(disk, rebuilt.path(kind))
            disk.rename(rebuilt.path(kind), segment.path(kind))
    disk.sync_dir(segment.path(file_names.LOG).rpartition("/")[0])
