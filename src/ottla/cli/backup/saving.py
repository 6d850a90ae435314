"""One run of `ottla backup`: what the cluster has is asked, and what the back-up does not have yet is read and kept.

Theory of operation. Groups are asked first, and then where each partition ends: so no committed offset is beyond what
is saved. The end is fixed there, for read committed at the last stable offset, and every partition is saved up to it:
each one is as it was at one moment. Where a run begins with a partition, `planning` says.

One thread fetches. Others check the batches, compress and write them; a partition's are written by one of them, in
order. What they have to do is bounded, and so is memory. At last all files are synced, and the run's list is written.
"""

from collections.abc import Callable
from queue import Queue
from threading import Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import TopicPartition, uuid_text
from ottla.base.ports import Disk
from ottla.cli.backup import cluster_state
from ottla.cli.backup.block_files import ZSTD, BlockWriter, FileHead
from ottla.cli.backup.kept_batches import kept_batches
from ottla.cli.backup.planning import DELETED, PartitionPlan, cut_to, make_plan
from ottla.cli.backup.runs import (
    NO_TOPIC_ID,
    BackupDirectory,
    Chain,
    PartitionKey,
    Run,
    SavedPartition,
    SavedTopic,
)
from ottla.cli.bars import ProgressBar

if TYPE_CHECKING:
    from ottla.cli.records.connecting import Cluster
    from ottla.client.blocking.admin import Admin
    from ottla.client.blocking.batch_reader import BatchReader, FailedRange, FetchedBatches

READ_COMMITTED: Final = "read_committed"
RAW: Final = "raw"
_FILE_BYTES: Final = 1 << 30
_FETCH_BYTES: Final = 4 << 20
"""Of one partition: a block is about as large."""
_FETCH_ALL_BYTES: Final = 16 << 20
_WAITING_PIECES: Final = 3
"""Of each thread that writes."""
_LOOK_S: Final = 2.0
_PATIENCE_S: Final = 60.0
_DAMAGED: Final = "damaged at the broker"


class Wish(NamedTuple):
    """What is to be saved, and how."""

    is_chosen: Callable[[str], bool]
    isolation: str = READ_COMMITTED
    compression: str = ZSTD
    is_full: bool = False
    """Whether all partitions begin anew."""
    is_repair: bool = False
    """Whether what is damaged in the back-up is read anew, if the cluster still has it."""
    writers: int = 1
    """Threads; with 0, the one that fetches writes."""
    file_bytes: int = _FILE_BYTES
    fetch_bytes: int = _FETCH_BYTES


class Saved(NamedTuple):
    """What a run has saved."""

    run: Run
    records: int
    raw_bytes: int
    stored_bytes: int
    took_s: float


class Saving:
    """Used once. Problems are reported, and are in the run's list."""

    def __init__(self, cluster: "Cluster", disk: Disk, path: str, wish: Wish, bar: ProgressBar) -> None:
        self._cluster = cluster
        self._disk = disk
        self._path = path
        self._wish = wish
        self._bar = bar
        self._problems: list[str] = []
        self._plans: dict[TopicPartition, PartitionPlan] = {}

    def run(self) -> Saved:
        with self._cluster.admin() as admin:
            cluster_id = admin.describe_cluster().cluster_id
            directory = BackupDirectory.make(self._disk, self._path, cluster_id)
            try:
                return self._run(admin, directory, cluster_id)
            finally:
                for plan in self._plans.values():
                    plan.close()
                directory.close()

    def _run(self, admin: "Admin", directory: BackupDirectory, cluster_id: str) -> Saved:
        began_s, began_ms = monotonic(), int(time() * 1000)
        runs = directory.runs()
        for number, why in runs.damaged.items():
            self._say(f"run {number}: {why}; what it saved is found by its files")
        number = runs.next_number
        is_chosen = self._wish.is_chosen
        groups = cluster_state.groups(admin, self._problem)
        for group in groups:
            group["offsets"] = [one for one in group["offsets"] if is_chosen(one[0])]
        listed = [one.name for one in admin.list_topics() if is_chosen(one.name)]
        described = cluster_state.described_topics(admin, listed, self._problem)
        topics, settings = cluster_state.saved_topics(admin, described, self._problem)
        others = cluster_state.access(admin, self._problem)
        with self._reader() as reader:
            counts = {one.name: len(one.partitions) for one in described}
            self._make_plans(admin, directory, number, topics, counts, settings, began_ms)
            self._hold_against_epochs(reader)
            self._read(reader, directory, number, began_ms)
        plans = self._plans.values()
        for plan in plans:
            plan.finish(directory)
        kept = {file.stem for plan in plans for file in plan.saved.files}
        directory.remove_leftovers(number, [plan.key for plan in plans], kept)
        run = Run(
            number,
            cluster_id,
            began_ms,
            int(time() * 1000),
            self._wish.isolation,
            self._wish.compression,
            topics,
            {"groups": groups, **others},
            self._problems,
        )
        directory.save_run(run, [path for plan in plans for writer in plan.writers for path in writer.paths])
        return Saved(
            run,
            sum(plan.records for plan in plans),
            sum(plan.raw_bytes for plan in plans),
            sum(file.stored_bytes for plan in plans for file in plan.saved.files),
            monotonic() - began_s,
        )

    def _reader(self) -> "BatchReader":
        from ottla.client.blocking.batch_reader import BatchReader

        wanted = self._cluster.consumer_settings(
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_uncommitted" if self._wish.isolation == RAW else "read_committed",
            client_id="ottla-backup",
            check_crcs=False,  # they are checked where they are written
            max_partition_fetch_bytes=self._wish.fetch_bytes,
            fetch_max_bytes=max(_FETCH_ALL_BYTES, 2 * self._wish.fetch_bytes),
        )
        return BatchReader(wanted)

    def _say(self, text: str) -> None:
        self._bar.say(f"ottla backup: {text}")

    def _problem(self, text: str) -> None:
        self._problems.append(text)
        self._say(text)

    # --- what is to be read ---

    def _make_plans(
        self,
        admin: "Admin",
        directory: BackupDirectory,
        number: int,
        topics: list[SavedTopic],
        counts: dict[str, int],
        settings: dict[str, dict[str, str]],
        now_ms: int,
    ) -> None:
        from ottla.client.admin.records import IsolationLevel, OffsetSpec

        partitions = [TopicPartition(topic.name, one) for topic in topics for one in range(counts[topic.name])]
        if not partitions:
            return
        first = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        latest = ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
        if self._wish.isolation != RAW:
            # Asked for after that: what is written in between must not look as if a transaction held it back.
            ends = admin.list_offsets(
                dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=IsolationLevel.READ_COMMITTED
            )
        unknown = {**latest.errors, **first.errors, **ends.errors}
        chains = {} if self._wish.is_full else directory.chains(number - 1)
        for topic in topics:
            for one in range(counts[topic.name]):
                at = TopicPartition(topic.name, one)
                key = PartitionKey(topic.name, topic.topic_id, one)
                chain = self._usable(key, chains.get(key), topic, settings[topic.name], now_ms)
                if at in unknown:
                    self._problem(f"{at}: {unknown[at]}")
                    topic.partitions.append(_as_before(one, chain))
                    continue
                end = ends[at].offset or 0
                held_back = (latest[at].offset or 0) - end
                if held_back > 0:
                    self._say(
                        f"{at}: a transaction is open, and {held_back} offsets from {end} on are left to the next run"
                    )
                plan = make_plan(
                    directory,
                    number,
                    key,
                    chain,
                    first[at].offset or 0,
                    end,
                    now_ms,
                    self._say,
                    is_repair=self._wish.is_repair,
                    isolation=self._wish.isolation,
                    compression=self._wish.compression,
                )
                topic.partitions.append(plan.saved)
                self._plans[at] = plan

    def _usable(
        self, key: PartitionKey, chain: Chain | None, topic: SavedTopic, settings: dict[str, str], now_ms: int
    ) -> Chain | None:
        """What runs before have saved, if this run can continue with it."""
        if chain is None or chain.isolation != self._wish.isolation:
            return None
        if topic.is_compacted:
            # A tombstone stays for so long after it was written; one that went in between would never be seen.
            stays_ms = int(settings.get("delete.retention.ms", 0))
            if now_ms - chain.read_ms >= stays_ms:
                self._say(
                    f"{key}: saved in full again: the last run was longer ago than delete.retention.ms={stays_ms}, and "
                    "tombstones may have come and gone"
                )
                return None
        return chain

    def _hold_against_epochs(self, reader: "BatchReader") -> None:
        """Where logs were truncated after an unclean election, what was saved of their lost ends is cut off."""
        epochs = {at: plan.epoch for at, plan in self._plans.items() if plan.epoch >= 0}
        ends = reader.ends_of_epochs(epochs) if epochs else {}
        for at, plan in self._plans.items():
            diverging = min(plan.begin, ends.get(at, plan.begin), max(plan.end, plan.saved.log_start))
            if diverging < plan.begin:
                cut_to(plan, diverging, self._say)

    # --- reading ---

    def _read(self, reader: "BatchReader", directory: BackupDirectory, number: int, now_ms: int) -> None:
        from ottla.client.blocking.batch_reader import BatchRange, FailedRange

        def write(plan: PartitionPlan, fetched: "FetchedBatches") -> None:
            self._write(directory, number, now_ms, plan, fetched)

        bar = self._bar
        for at, plan in self._plans.items():
            reader.add(BatchRange(at, plan.begin, plan.end, plan.epoch))
            bar.total += max(plan.end - plan.begin, 0)
        writing = _Writing(self._wish.writers, write)
        last_s = monotonic()
        try:
            while reader.is_left:
                fetched = reader.next_batches(_LOOK_S)
                bar.show()
                if fetched is None:
                    self._look(reader, is_in_vain=monotonic() - last_s > _PATIENCE_S)
                    continue
                last_s = monotonic()
                if isinstance(fetched, FailedRange):
                    writing.drain()
                    self._on_failed(reader, fetched)
                else:
                    writing.add(self._plans[fetched.partition], fetched)
            writing.drain()
        finally:
            writing.end()

    def _write(
        self, directory: BackupDirectory, number: int, now_ms: int, plan: PartitionPlan, fetched: "FetchedBatches"
    ) -> None:
        """On a thread that writes."""
        wish = self._wish
        batches, damaged = kept_batches(
            fetched.data, fetched.begin, fetched.end, plan.end, fetched.aborted, is_raw=wish.isolation == RAW
        )
        if not plan.writers or plan.writers[-1].size >= wish.file_bytes:
            head = FileHead(*plan.key, number, wish.isolation, wish.compression, now_ms)
            directory.make_partition(plan.key)
            stem = directory.absolute(directory.stem(plan.key, number, batches.begin))
            plan.writers.append(BlockWriter(self._disk, stem, head))
        plan.writers[-1].append(batches)
        for begin, end in damaged:
            plan.saved.missing.append((begin, end, _DAMAGED))
            self._problem(
                f"{plan.at}: offsets {begin} to {end - 1} are {_DAMAGED}, and left out; `ottla verify` tells more"
            )
        plan.records += batches.records
        plan.raw_bytes += batches.raw_bytes
        plan.begin = batches.end
        if batches.leader_epoch >= 0:
            plan.epoch = batches.leader_epoch
        self._bar.done += batches.end - batches.begin
        self._bar.size_bytes += batches.raw_bytes

    def _on_failed(self, reader: "BatchReader", failed: "FailedRange") -> None:
        from ottla.client.blocking.batch_reader import BatchRange
        from ottla.client.errors import OffsetOutOfRange

        plan = self._plans[failed.range.partition]
        if not isinstance(failed.error, OffsetOutOfRange):
            self._problem(f"{plan.at}: saved up to offset {plan.begin}: {failed.error}")
            return
        [first] = reader.beginning_offsets([plan.at]).values()
        if first <= plan.begin:
            self._problem(f"{plan.at}: saved up to offset {plan.begin}: {failed.error}")
            return
        plan.saved.missing.append((plan.begin, first, DELETED))
        self._say(f"{plan.at}: offsets {plan.begin} to {first - 1} were {DELETED}")
        self._bar.done += first - plan.begin
        plan.begin, plan.epoch = first, -1
        plan.saved.log_start = max(plan.saved.log_start, first)
        reader.add(BatchRange(plan.at, first, plan.end))

    def _look(self, reader: "BatchReader", *, is_in_vain: bool) -> None:
        """Nothing came for a while. Topics that are gone are given up, and all that is waited for in vain."""
        under_way = reader.under_way
        there = reader.existing_topics({one.partition.topic for one in under_way})
        for one in under_way:
            plan = self._plans[one.partition]
            found = there.get(one.partition.topic)
            is_there = found is not None and plan.key.topic_id in (NO_TOPIC_ID, uuid_text(found.topic_id))
            if is_there and not is_in_vain:
                continue
            why = f"nothing came for {_PATIENCE_S:g} s" if is_there else "the topic was deleted"
            self._problem(f"{one.partition}: saved up to offset {plan.begin}: {why}")
            reader.drop(one.partition)


def _as_before(partition: int, chain: Chain | None) -> SavedPartition:
    """Of a partition that cannot be asked: what runs before have saved counts."""
    if chain is None:
        return SavedPartition(partition, 0, 0, -1, True)
    return SavedPartition(partition, chain.log_start, chain.end, chain.leader_epoch, False, read_ms=chain.read_ms)


class _Writing:
    """Threads that write. What goes wrong on one of them is raised by the next call."""

    def __init__(self, threads: int, write: "Callable[[PartitionPlan, FetchedBatches], None]") -> None:
        self._write_to = write
        self._failure: BaseException | None = None
        self._queues: list[Queue[tuple[PartitionPlan, FetchedBatches] | None]] = [
            Queue(_WAITING_PIECES) for _ in range(threads)
        ]
        self._threads = [Thread(target=self._work, args=(queue,), daemon=True) for queue in self._queues]
        self._of: dict[PartitionKey, int] = {}
        for thread in self._threads:
            thread.start()

    def add(self, plan: PartitionPlan, fetched: "FetchedBatches") -> None:
        """Waits while there is too much to do."""
        self._check()
        if not self._queues:
            self._one(plan, fetched)
            return
        turn = self._of.setdefault(plan.key, len(self._of) % len(self._queues))
        self._queues[turn].put((plan, fetched))

    def drain(self) -> None:
        """Returns when all that was added is written."""
        for queue in self._queues:
            queue.join()
        self._check()

    def end(self) -> None:
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _work(self, queue: "Queue[tuple[PartitionPlan, FetchedBatches] | None]") -> None:
        while (item := queue.get()) is not None:
            try:
                if self._failure is None:
                    self._one(*item)
            except BaseException as problem:  # an interrupt, too, is the caller's to see
                self._failure = problem
            finally:
                del item
                queue.task_done()

    def _one(self, plan: PartitionPlan, fetched: "FetchedBatches") -> None:
        try:
            self._write_to(plan, fetched)
        finally:
            fetched.give_back()
