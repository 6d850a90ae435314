"""When a snapshot of the committed metadata is written, and how: beside everything else, on a worker."""

from collections.abc import Callable
from dataclasses import dataclass
from errno import EMFILE, ENFILE, ENOMEM

from ottla.base.ports import Clock, Workers
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.machine import Raft
from ottla.runtime.metadata.metadata_batches import MetadataBatch
from ottla.runtime.metadata.snapshots import SnapshotId, snapshot_batches
from ottla.runtime.metadata.store import MetadataStore

_PASSING = frozenset({EMFILE, ENFILE, ENOMEM})


def is_passing(problem: Exception) -> bool:
    """Whether the node, and not its disk, lacks something for now: descriptors or memory."""
    return isinstance(problem, MemoryError) or (isinstance(problem, OSError) and problem.errno in _PASSING)


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """`metadata.log.max.record.bytes.between.snapshots` and `metadata.log.max.snapshot.interval.ms`."""

    max_bytes: int = 20_971_520
    max_interval_ms: int = 3_600_000


class Snapshotter:
    """Counts what is committed since the last snapshot. `finished` hears of each that it writes, or of the problem."""

    def __init__(
        self,
        store: MetadataStore,
        config: SnapshotConfig,
        workers: Workers,
        clock: Clock,
        finished: Callable[[Exception | None], None],
    ) -> None:
        self.is_writing = False
        self.last_timestamp_ms = -1
        """When the last batch that is committed was written."""
        self._store = store
        self._config = config
        self._workers = workers
        self._clock = clock
        self._finished = finished
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

    @property
    def is_due(self) -> bool:
        if self._bytes >= self._config.max_bytes:
            return True
        if self._uncovered_since_ms is None or self._config.max_interval_ms == 0:
            return False
        return self._clock.now_ms() - self._uncovered_since_ms >= self._config.max_interval_ms

    def take(self, image: MetadataImage, raft: Raft, end_offset: int) -> None:
        """Writes a snapshot of `image`, which is everything before `end_offset`, unless there is one or it must wait.

        The records are gathered here, because the image goes on changing; they are encoded and written on a worker.
        """
        if self.is_writing or image.in_transaction:
            return
        snapshot = SnapshotId(end_offset, self._store.log.epochs.epoch_at(end_offset - 1))
        self._bytes, self._uncovered_since_ms = 0, None
        if snapshot in self._store.snapshots:
            return
        self.is_writing = True
        kraft_version, voters = raft.history.before(end_offset)
        batches = snapshot_batches(
            list(image.snapshot_records()),
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
        self._finished(None)

    def _on_failed(self, problem: Exception) -> None:
        self.is_writing = False
        self._finished(problem)
