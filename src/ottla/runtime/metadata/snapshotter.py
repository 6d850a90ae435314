"""When a snapshot of the committed metadata is written, and how: beside everything else, on a worker.

What retention no longer wants of the log and of older snapshots is removed when there is a newer one.
"""

from errno import EMFILE, ENFILE, ENOMEM
from typing import NamedTuple, Protocol

from ottla.base.ports import Clock, Workers
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.machine import Raft
from ottla.runtime.metadata.storage.metadata_batches import MetadataBatch
from ottla.runtime.metadata.storage.snapshots import SnapshotId, snapshot_batches
from ottla.runtime.metadata.storage.store import MetadataStore

_PASSING = frozenset({EMFILE, ENFILE, ENOMEM})


def _is_passing(problem: Exception) -> bool:
    """Whether the node, and not its disk, lacks something for now: descriptors or memory."""
    return isinstance(problem, MemoryError) or (isinstance(problem, OSError) and problem.errno in _PASSING)


class SnapshotConfig(NamedTuple):
    """`metadata.log.max.record.bytes.between.snapshots` and `metadata.log.max.snapshot.interval.ms`."""

    max_bytes: int = 20_971_520
    max_interval_ms: int = 3_600_000


class SnapshottedLog(Protocol):
    """The log whose snapshots these are."""

    image: MetadataImage
    raft: Raft
    committed_offset: int

    def on_idle(self) -> None:
        """A worker has come back."""

    def fail(self, problem: Exception) -> None: ...


class Snapshotter:
    """Counts what is committed since the last snapshot."""

    def __init__(
        self, log: SnapshottedLog, store: MetadataStore, config: SnapshotConfig, workers: Workers, clock: Clock
    ) -> None:
        self.is_writing = False
        self.last_timestamp_ms = -1
        """When the last batch that is committed was written."""
        self._store = store
        self._config = config
        self._workers = workers
        self._clock = clock
        self._log = log
        self._bytes = 0
        self._uncovered_since_ms: int | None = None

    def note(self, batch: MetadataBatch) -> None:
        self._bytes += batch.size
        self.last_timestamp_ms = batch.timestamp_ms
        if batch.records and self._uncovered_since_ms is None:
            self._uncovered_since_ms = self._clock.now_ms()

    def begin_after(self, last_timestamp_ms: int) -> None:
        """A snapshot of the leader's has replaced all that was counted."""
        self._bytes, self._uncovered_since_ms = 0, None
        self.last_timestamp_ms = last_timestamp_ms

    def take_if_due(self) -> None:
        if self._is_due:
            self._take()

    @property
    def _is_due(self) -> bool:
        if self._bytes >= self._config.max_bytes:
            return True
        if self._uncovered_since_ms is None or self._config.max_interval_ms == 0:
            return False
        return self._clock.now_ms() - self._uncovered_since_ms >= self._config.max_interval_ms

    def _take(self) -> None:
        """Writes a snapshot of the image, which is everything committed, unless there is one or it must wait.

        The image keeps changing, so a copy of it is what a worker makes records of, encodes and writes, one batch at
        a time. A copy of a million partitions takes a tenth of a second; their records, seconds and far more memory.
        """
        image, end_offset = self._log.image, self._log.committed_offset
        if self.is_writing or image.in_transaction:
            return
        snapshot = SnapshotId(end_offset, self._store.log.epochs.epoch_at(end_offset - 1))
        self._bytes, self._uncovered_since_ms = 0, None
        if snapshot in self._store.snapshots:
            return
        self.is_writing = True
        kraft_version, voters = self._log.raft.history.before(end_offset)
        batches = snapshot_batches(
            image.copy().snapshot_records(),
            self._clock.now_ms(),
            epoch=snapshot.epoch,
            last_contained_log_timestamp=self.last_timestamp_ms,
            kraft_version=kraft_version,
            voters=voters,
        )
        self._workers.run(
            lambda: self._store.write_snapshot(snapshot, batches),
            lambda _: self._on_written(snapshot),
            self._on_failed,
        )

    def _on_written(self, snapshot: SnapshotId) -> None:
        self.is_writing = False
        self._store.snapshot_written(snapshot)
        self.clean()
        self._log.on_idle()

    def _on_failed(self, problem: Exception) -> None:
        self.is_writing = False
        if _is_passing(problem):
            self._log.on_idle()
        else:
            self._log.fail(problem)

    def clean(self) -> None:
        """Housekeeping: what a lack of descriptors or memory keeps from being removed now is removed later."""
        try:
            self._store.clean()
        except Exception as problem:
            if not _is_passing(problem):
                self._log.fail(problem)
