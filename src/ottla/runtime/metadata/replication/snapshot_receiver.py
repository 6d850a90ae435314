"""A snapshot that the leader sends in parts, because it has no such old records any more (KIP-630)."""

import logging
from collections.abc import Callable
from typing import Protocol

from ottla.base.ports import Workers
from ottla.log.errors import CorruptFile
from ottla.machines.raft.machine import Raft
from ottla.runtime.metadata.storage.snapshots import Snapshot, SnapshotId
from ottla.runtime.metadata.storage.store import MetadataStore

_log = logging.getLogger(__name__)


class ReplacedLog(Protocol):
    """The log that begins anew after a snapshot."""

    @property
    def raft(self) -> Raft: ...

    def begin_after(self, snapshot: SnapshotId, read: Snapshot) -> bool:
        """False if that failed, and this log with it."""

    def on_idle(self) -> None:
        """A worker has come back."""

    def fail(self, problem: Exception) -> None: ...


class SnapshotReceiver:
    """One part at a time is written, on a worker. A crash leaves a file that the next start removes."""

    def __init__(self, owner: ReplacedLog, store: MetadataStore, workers: Workers) -> None:
        self.is_receiving = False
        self._owner = owner
        self._store = store
        self._workers = workers

    def receive(
        self,
        snapshot: SnapshotId,
        position: int,
        data: bytes,
        size: int,
        then: Callable[[bool], None],
        refused: Callable[[], None],
    ) -> None:
        """`then` hears whether the snapshot is whole, and the log begins after it.

        `refused` is called for one that is damaged, on the leader's disk or on the way: nothing here has changed.

        One that is whole only after its epoch is over replaces nothing: the next leader may have older records, which
        this log may have got since.
        """
        assert not self.is_receiving, "two parts of a snapshot at once"
        self.is_receiving = True
        epoch = self._owner.raft.epoch

        def kept(read: Snapshot | None) -> None:
            self.is_receiving = False
            if self._owner.raft.epoch != epoch:
                read = None
            if read is not None and not self._owner.begin_after(snapshot, read):
                return
            then(read is not None)
            self._owner.on_idle()

        def failed(problem: Exception) -> None:
            self.is_receiving = False
            if not isinstance(problem, CorruptFile):
                self._owner.fail(problem)
                return
            leader_id = self._owner.raft.leader_id
            _log.warning("the snapshot %s of the leader %d is damaged: %s", snapshot.name, leader_id, problem)
            refused()
            self._owner.on_idle()

        self._workers.run(lambda: self._store.keep_snapshot_part(snapshot, position, data, size), kept, failed)
