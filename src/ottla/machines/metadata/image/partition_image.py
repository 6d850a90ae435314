"""One partition as the metadata log has it: where it lives, who leads, who is in sync.

A `PartitionImage` never changes, so that images, deltas and brokers share it; a change record makes the next one.
Two epochs count its changes: `leader_epoch` goes up with every record that names a leader, even the same one, and
`partition_epoch` with every record. Followers and clients are fenced by the first, ISR updates by the second.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.directory_ids import MIGRATING
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError
from ottla.wire.messages import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
LEADER_UNCHANGED = -2
"""In a change record: the leader, and with it the leader epoch, stays."""

RECOVERED = 0
RECOVERING = 1
"""The leader was elected uncleanly and has not yet truncated its state to what it has (KIP-704)."""
RECOVERY_UNCHANGED = -1

Share = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""Gives back an equal tuple that others hold already: ten thousand partitions have few different replica lists."""


class PartitionImage(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = RECOVERED
    directories: tuple[Uuid, ...] = ()
    """For each replica, the id of the log directory that holds it."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    """Out of the ISR, and yet known to have everything up to the high watermark (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER

    def directory(self, replica: int) -> Uuid | None:
        """Where a replica lives; None for a broker that has none."""
        return self.directories[self.replicas.index(replica)] if replica in self.replicas else None

    def merge(self, change: PartitionChangeRecord, share: Share = tuple) -> "PartitionImage":
        """The partition after a change record, whose null fields mean "as before"."""

        def changed(after: Sequence[int] | None, before: tuple[int, ...]) -> tuple[int, ...]:
            return before if after is None else share(tuple(after))

        replicas = changed(change.replicas, self.replicas)
        named_leader = change.leader != LEADER_UNCHANGED
        recovery = change.leader_recovery_state
        return PartitionImage(
            replicas,
            changed(change.isr, self.isr),
            change.leader if named_leader else self.leader,
            self.leader_epoch + named_leader,
            self.partition_epoch + 1,
            self.leader_recovery_state if recovery == RECOVERY_UNCHANGED else recovery,
            share(_directories(self.directories if change.directories is None else change.directories, len(replicas))),
            changed(change.removing_replicas, self.removing_replicas),
            changed(change.adding_replicas, self.adding_replicas),
            changed(change.eligible_leader_replicas, self.eligible_leader_replicas),
            changed(change.last_known_elr, self.last_known_elr),
        )

    def without_elr(self) -> "PartitionImage":
        """After a ClearElrRecord: a change like any other, if there was something to clear."""
        if not self.eligible_leader_replicas and not self.last_known_elr:
            return self
        return self.merge(PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=()))

    def record(self, topic_id: Uuid, partition_id: int) -> PartitionRecord:
        """The record that makes this partition. Tagged fields stay null where there is nothing to say."""
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=self.replicas,
            isr=self.isr,
            removing_replicas=self.removing_replicas,
            adding_replicas=self.adding_replicas,
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=self.directories,
            eligible_leader_replicas=self.eligible_leader_replicas or None,
            last_known_elr=self.last_known_elr or None,
        )


def partition_image(record: PartitionRecord, share: Share = tuple) -> PartitionImage:
    replicas = share(tuple(record.replicas))
    return PartitionImage(
        replicas,
        share(tuple(record.isr)),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.leader_recovery_state,
        share(_directories(record.directories, len(replicas))),
        # Nearly always empty, and this is done for every partition when a node starts.
        share(tuple(record.removing_replicas)) if record.removing_replicas else (),
        share(tuple(record.adding_replicas)) if record.adding_replicas else (),
        share(tuple(record.eligible_leader_replicas)) if record.eligible_leader_replicas else (),
        share(tuple(record.last_known_elr)) if record.last_known_elr else (),
    )


def _directories(directories: Sequence[Uuid], replica_count: int) -> tuple[Uuid, ...]:
    """One id a replica; records older than KIP-858 have none."""
    if not directories or (MIGRATING in directories and set(directories) == {MIGRATING}):
        return (MIGRATING,) * replica_count
    if len(directories) != replica_count:
        raise CorruptMetadataError(f"{replica_count} replicas in {len(directories)} log directories")
    return tuple(directories)
