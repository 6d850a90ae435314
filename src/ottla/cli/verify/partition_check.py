"""One partition's directory: its segments in order, its leader epochs, and the snapshots of its producers."""

import os
from bisect import bisect_right
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.cli.dump.disk import ReadOnlyDisk
from ottla.cli.verify.batch_order import BatchOrder
from ottla.cli.verify.problems import BY_ITSELF, DAMAGE, FORGET, NOTE, RESTORE, Problem, Tell
from ottla.cli.verify.segment_check import Segment, check_segment
from ottla.log import file_names
from ottla.log.checkpoint import parse_leader_epochs, parse_partition_metadata
from ottla.log.errors import CorruptFile
from ottla.log.producer_state import parse_snapshot
from ottla.log.scan import scan_batches
from ottla.records.batch import checksum_matches
from ottla.records.header import BatchHeader, CorruptBatch

_METADATA_SNAPSHOT: Final = ".checkpoint"
_OLDER: Final = "Another node of the quorum sends a sound one to a controller whose metadata directory is empty."


class Checkpoints(NamedTuple):
    """What the directory's checkpoints say of a partition, None where they say nothing."""

    recovery_point: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None
    first_dirty_offset: int | None = None


class Circumstances(NamedTuple):
    """`is_live`: a node runs on the directory. `was_closed`: the last one stopped in good order."""

    is_live: bool
    was_closed: bool
    deep: bool


def segments_of(path: str) -> list[tuple[int, int]]:
    """Base offset and size of each segment, in order. Files that are on their way in or out are none."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            base_offset = file_names.offset_of(entry.name, file_names.LOG)
            if base_offset is not None:
                found.append((base_offset, entry.stat().st_size))
    return sorted(found)


def check_partition(
    partition: str,
    path: str,
    checkpoints: Checkpoints,
    given: Circumstances,
    tell: Tell,
    progress: Callable[[int], None],
) -> None:
    """Tells all that is wrong with it. Raises `OSError` when a file cannot be read, or is gone meanwhile."""
    _check_metadata(partition, path, tell)
    _check_metadata_snapshots(partition, path, tell, progress)
    epochs = _read_epochs(partition, path, tell)
    segments = [base_offset for base_offset, _ in segments_of(path)]
    if not segments:
        tell(Problem(NOTE, partition, path, -1, -1, "it has no segment", BY_ITSELF))
        return
    order = BatchOrder(segments[0], holes_before=checkpoints.first_dirty_offset or 0)
    for number, base_offset in enumerate(segments):
        next_base = segments[number + 1] if number + 1 < len(segments) else None
        # What was not synced when the node died, recovery looks at again.
        is_recovered = next_base is None or next_base > (checkpoints.recovery_point or 0)
        segment = Segment(
            partition,
            f"{path}/{file_names.file_name(base_offset, file_names.LOG)}",
            base_offset,
            next_base,
            may_be_torn=not given.was_closed and not given.is_live and is_recovered,
            is_live=given.is_live,
        )
        check_segment(
            segment,
            order,
            tell,
            progress,
            deep=given.deep,
            epoch_at=lambda header: _wrong_epoch(epochs, header, given),
        )
    _check_indexes_without_log(partition, path, set(segments), tell, given)
    end_offset = max(order.next_offset or 0, segments[-1])
    if (order.next_offset or 0) < segments[-1] and (order.next_offset or 0) >= order.holes_before:
        file = f"{path}/{file_names.file_name(segments[-1], file_names.LOG)}"
        what = f"offsets {order.next_offset} to {segments[-1] - 1} before it are missing, and no cleaner was there"
        tell(Problem(DAMAGE, partition, file, 0, segments[-1], what, RESTORE))
    _check_epochs(partition, path, epochs, end_offset, tell, given)
    _check_snapshots(partition, path, end_offset, tell, given)
    _check_checkpoints(partition, path, checkpoints, segments[0], end_offset, tell, given)


def _check_indexes_without_log(partition: str, path: str, segments: set[int], tell: Tell, given: Circumstances) -> None:
    """A first segment whose log is missing leaves no other trace: a log may begin anywhere."""
    if given.is_live:
        return
    with os.scandir(path) as entries:
        found = sorted(entry.name for entry in entries)
    for name in found:
        for suffix in (file_names.INDEX, file_names.TIME_INDEX, file_names.TRANSACTION_INDEX):
            offset = file_names.offset_of(name, suffix)
            if offset is not None and offset not in segments:
                what = "its segment has no log: records may be missing"
                # One that crashed may have been deleting the segment.
                level, advice = (DAMAGE, RESTORE) if given.was_closed else (NOTE, BY_ITSELF)
                tell(Problem(level, partition, f"{path}/{name}", -1, offset, what, advice))


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _check_metadata(partition: str, path: str, tell: Tell) -> None:
    file = f"{path}/{file_names.PARTITION_METADATA}"
    content = _read(file)
    if content is not None:
        try:
            parse_partition_metadata(content, file)
        except CorruptFile as problem:
            what = str(problem).removeprefix(f"{file}: ")
            advice = "Write it again: `version: 0`, and `topic_id: ` with the id that `kafka-topics --describe` shows."
            tell(Problem(DAMAGE, partition, file, -1, -1, what, advice))


def _check_metadata_snapshots(partition: str, path: str, tell: Tell, progress: Callable[[int], None]) -> None:
    """Of the metadata log: batches like those of a segment, from which the node builds its image."""
    with os.scandir(path) as entries:
        found = sorted(entry.path for entry in entries if entry.name.endswith(_METADATA_SNAPSHOT))
    for name in found:
        position = 0
        try:
            with closing(ReadOnlyDisk().open(name)) as file:
                for position, header, batch in scan_batches(file, 0, file.size()):
                    progress(header.size)
                    if not checksum_matches(batch, 0, header):
                        tell(Problem(DAMAGE, partition, name, position, -1, "the checksum does not match", _OLDER))
        except FileNotFoundError:
            continue  # a running node has removed it
        except CorruptBatch as problem:
            tell(Problem(DAMAGE, partition, name, position, -1, f"there is no batch: {problem}", _OLDER))


# Leader epochs


def _read_epochs(partition: str, path: str, tell: Tell) -> list[tuple[int, int]]:
    file = f"{path}/{file_names.LEADER_EPOCHS}"
    content = _read(file)
    if content is None:
        return []
    try:
        return parse_leader_epochs(content, file)
    except CorruptFile as problem:
        what = str(problem).removeprefix(f"{file}: ")
        tell(Problem(DAMAGE, partition, file, -1, -1, what, FORGET))
        return []


def _wrong_epoch(epochs: list[tuple[int, int]], header: BatchHeader, given: Circumstances) -> str | None:
    """What a batch's epoch has against the checkpoint. Only a log that was closed has all of its epochs in there."""
    epoch = header.partition_leader_epoch
    if header.magic < 2 or epoch < 0 or not epochs or header.base_offset < epochs[0][1]:
        return None
    slot = bisect_right(epochs, header.base_offset, key=lambda entry: entry[1]) - 1
    known = epochs[slot][0]
    is_new = slot == len(epochs) - 1 and epoch > known and not given.was_closed
    if epoch == known or is_new:
        return None
    return f"its leader epoch is {epoch}, and by leader-epoch-checkpoint it is {known} from offset {epochs[slot][1]} on"


def _check_epochs(
    partition: str, path: str, epochs: list[tuple[int, int]], end_offset: int, tell: Tell, given: Circumstances
) -> None:
    file = f"{path}/{file_names.LEADER_EPOCHS}"
    for (epoch, start), (next_epoch, next_start) in pairwise(epochs):
        if next_epoch <= epoch or next_start < start:
            what = f"epoch {next_epoch} from offset {next_start} comes after epoch {epoch} from offset {start}"
            tell(Problem(DAMAGE, partition, file, -1, next_start, what, FORGET))
    if epochs and epochs[-1][1] > end_offset and not given.is_live:
        what = f"epoch {epochs[-1][0]} begins at offset {epochs[-1][1]}, and the log ends at {end_offset}"
        level, advice = (DAMAGE, FORGET) if given.was_closed else (NOTE, BY_ITSELF)
        tell(Problem(level, partition, file, -1, epochs[-1][1], what, advice))


# Producers


def _check_snapshots(partition: str, path: str, end_offset: int, tell: Tell, given: Circumstances) -> None:
    with os.scandir(path) as entries:
        found = sorted(entry.name for entry in entries if entry.name.endswith(file_names.PRODUCER_SNAPSHOT))
    for name in found:
        offset = file_names.offset_of(name, file_names.PRODUCER_SNAPSHOT)
        if offset is None:
            continue
        file = f"{path}/{name}"
        content = _read(file)
        if content is None:
            continue  # a running node has removed it
        # A node throws away what it cannot read, and reads the log from the snapshot before it.
        try:
            for producer in parse_snapshot(content, file):
                if producer.last_offset >= offset:
                    what = (
                        f"producer {producer.producer_id} has written offset {producer.last_offset}, after the snapshot"
                    )
                    tell(Problem(DAMAGE, partition, file, -1, producer.last_offset, what, FORGET))
        except CorruptFile as problem:
            what = str(problem).removeprefix(f"{file}: ")
            level, advice = (DAMAGE, FORGET) if given.was_closed or given.is_live else (NOTE, BY_ITSELF)
            tell(Problem(level, partition, file, -1, offset, what, advice))
        if offset > end_offset and not given.is_live:
            what = f"it is of offset {offset}, and the log ends at {end_offset}"
            level, advice = (DAMAGE, FORGET) if given.was_closed else (NOTE, BY_ITSELF)
            tell(Problem(level, partition, file, -1, offset, what, advice))


# The directory's checkpoints


def _check_checkpoints(
    partition: str,
    path: str,
    checkpoints: Checkpoints,
    first_offset: int,
    end_offset: int,
    tell: Tell,
    given: Circumstances,
) -> None:
    parent = os.path.dirname(path)
    rows = (
        (file_names.RECOVERY_POINTS, checkpoints.recovery_point, "the recovery point"),
        (file_names.HIGH_WATERMARKS, checkpoints.high_watermark, "the high watermark"),
        (file_names.LOG_START_OFFSETS, checkpoints.log_start_offset, "the log's start"),
        (file_names.CLEANER_OFFSETS, checkpoints.first_dirty_offset, "what the cleaner has not seen"),
    )
    for name, offset, of_what in rows:
        if offset is not None and offset > end_offset:
            what = f"{of_what} is offset {offset}, and the log ends at {end_offset}: records may be missing at its end"
            advice = "Compare with another replica; a node that starts here lowers it to the log's end."
            # A machine that lost its power may have lost what was not synced: all but what the recovery point covers.
            is_of_a_crash = name == file_names.HIGH_WATERMARKS and not given.was_closed and not given.is_live
            level = NOTE if is_of_a_crash else DAMAGE
            tell(Problem(level, partition, f"{parent}/{name}", -1, offset, what, advice))
    start = checkpoints.log_start_offset
    if start is not None and start < first_offset and checkpoints.high_watermark is not None and start > 0:
        what = f"the log's start is offset {start}, and its first segment begins at {first_offset}"
        tell(Problem(NOTE, partition, f"{parent}/{file_names.LOG_START_OFFSETS}", -1, start, what, BY_ITSELF))
