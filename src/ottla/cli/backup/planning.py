"""Where a run begins with a partition: behind what the back-up has, as far as that still is what the cluster has.

| what the back-up has                                      | what is done                                            |
| --------------------------------------------------------- | ------------------------------------------------------- |
| nothing of this topic, or with another isolation          | all of it is saved                                      |
| up to an offset that is in the log                        | the run continues there                                 |
| up to an offset that the log begins behind                | the run continues with the first record, and says so    |
| an end that the log does not have (unclean election)      | it is cut off, and the run continues there              |
| a compacted topic, saved longer ago than its tombstones stay | all of it is saved again: one may have come and gone |
| blocks that are damaged (with `--repair`)                 | it is cut off there, and read anew                    |
| files of a run that did not finish                        | the run continues with them                             |
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.cli.backup.block_files import (
    BlockReader,
    BlockWriter,
    Damaged,
    DamagedBlock,
    blocks_between,
    read_index,
)
from ottla.cli.backup.runs import BackupDirectory, Chain, PartitionKey, SavedFile, SavedPartition, totals

DELETED: Final = "deleted before they were saved"
Say = Callable[[str], None]


@dataclass(slots=True)
class PartitionPlan:
    """One partition of a run. `begin` moves on as it is saved."""

    key: PartitionKey
    saved: SavedPartition
    begin: int
    end: int
    epoch: int = -1
    """Leader epoch of the batch before `begin`, if it is known."""
    writers: list[BlockWriter] = field(default_factory=list)
    """Its files of this run."""
    records: int = 0
    raw_bytes: int = 0
    """Saved by this run."""

    @property
    def at(self) -> TopicPartition:
        return TopicPartition(self.key.topic, self.key.partition)

    def finish(self, directory: BackupDirectory) -> None:
        """What the run's list has to say."""
        self.saved.end = self.begin
        self.saved.leader_epoch = self.epoch
        for writer in self.writers:
            records, raw_bytes, stored_bytes = totals(writer.blocks)
            self.saved.files.append(
                SavedFile(
                    directory.relative(writer.stem),
                    writer.head.compression,
                    writer.blocks[0].begin,
                    writer.blocks[-1].end,
                    len(writer.blocks),
                    records,
                    raw_bytes,
                    stored_bytes,
                )
            )

    def close(self) -> None:
        for writer in self.writers:
            writer.close()


def make_plan(
    directory: BackupDirectory,
    number: int,
    key: PartitionKey,
    chain: Chain | None,
    log_start: int,
    end: int,
    now_ms: int,
    say: Say,
    *,
    is_repair: bool,
    isolation: str,
    compression: str,
) -> PartitionPlan:
    """`chain` is what this run can continue with; None if it begins anew."""
    saved = SavedPartition(key.partition, log_start, end, -1, chain is None, read_ms=now_ms)
    plan = PartitionPlan(key, saved, log_start, end)
    if chain is not None:
        plan.begin, plan.epoch = chain.end, chain.leader_epoch
        damaged = (
            next((begin for begin, last, _ in damages(directory, chain) if last > log_start), None)
            if is_repair
            else None
        )
        if damaged is not None:
            plan.begin, plan.epoch, saved.cut = damaged, -1, damaged
            say(f"{key}: read again from offset {max(damaged, log_start)} on")
    is_resumed = _resume(directory, number, plan, isolation, compression, is_anew=chain is None)
    skip_deleted(plan, say if chain is not None or is_resumed else None)
    return plan


def _resume(
    directory: BackupDirectory, number: int, plan: PartitionPlan, isolation: str, compression: str, *, is_anew: bool
) -> bool:
    """Takes up the files of a run that did not finish, as far as they continue from where this one begins."""
    for stem in directory.stems_of(plan.key, number):
        try:
            writer = BlockWriter.resume(directory.disk, directory.absolute(stem))
        except (Damaged, FileNotFoundError):
            break
        head, blocks = writer.head, writer.blocks
        is_like_this = (head.isolation, head.compression) == (isolation, compression)
        if is_like_this and blocks and (blocks[0].begin == plan.begin or (is_anew and not plan.writers)):
            plan.writers.append(writer)
            plan.saved.read_ms = min(plan.saved.read_ms, head.began_ms)
            plan.begin = blocks[-1].end
            plan.epoch = next((one.leader_epoch for one in reversed(blocks) if one.leader_epoch >= 0), plan.epoch)
        else:
            writer.close()
            break
    return bool(plan.writers)


def skip_deleted(plan: PartitionPlan, say: Say | None) -> None:
    """Goes on with the first record that is there. `say` is None if nothing is missing by that."""
    log_start = plan.saved.log_start
    if plan.begin < log_start:
        if say is not None:
            plan.saved.missing.append((plan.begin, log_start, DELETED))
            say(f"{plan.key}: offsets {plan.begin} to {log_start - 1} were {DELETED}")
        plan.begin, plan.epoch = log_start, -1


def cut_to(plan: PartitionPlan, diverging: int, say: Say) -> None:
    """The log was truncated to an offset before `begin`."""
    say(
        f"{plan.at}: the log was truncated to offset {diverging} since it was saved up to {plan.begin}; it is read "
        "anew from there"
    )
    plan.close()
    plan.writers.clear()
    plan.saved.missing.clear()
    if not plan.saved.begins:
        plan.saved.cut = diverging
    plan.begin, plan.epoch = diverging, -1
    skip_deleted(plan, None)


def damages(directory: BackupDirectory, chain: Chain) -> Iterator[tuple[int, int, str]]:
    """Offsets from, up to, and what is wrong, of every block of a partition that is not as it was written."""
    for link in chain.links:
        stem = directory.absolute(link.file.stem)
        try:
            index = read_index(directory.disk, stem)
            reader = BlockReader(directory.disk, stem, link.file.compression)
        except (Damaged, OSError) as problem:
            yield link.file.begin, link.end, str(problem)
            continue
        end = link.file.begin
        try:
            for block in blocks_between(index.blocks, link.end):
                end = block.end
                try:
                    reader.read(block)
                except (DamagedBlock, OSError) as problem:
                    yield block.begin, block.end, str(problem)
        finally:
            reader.close()
        if end < link.end:
            yield end, link.end, f"{stem}.blocks: lines are damaged or missing"
