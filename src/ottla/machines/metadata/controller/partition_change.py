"""How one partition follows a change of its ISR, replicas or brokers: who leads now, and the record that says so.

Theory of operation. A decision that changes a partition states the ISR and replicas it should have; what follows from
that is worked out here, always in this order: a reassignment whose new replicas are all in sync is completed; replicas
that leave the ISR are kept as eligible leaders (KIP-966) while fewer than `min.insync.replicas` are left; a leader is
elected. A record is made only of what is different then.

Elections, from safe to unsafe: from the ISR; if that is empty, from the eligible leader replicas; if those are empty
too, the last known leader, alone; and with unclean election allowed, any replica that is alive. The last two lose
records, so the new leader starts with an ISR of itself and is marked as recovering.
"""

from collections.abc import Callable, Sequence
from enum import Enum

from ottla.base.ids import Uuid
from ottla.machines.metadata.image import features
from ottla.machines.metadata.image.partition_image import (
    LEADER_UNCHANGED,
    NO_LEADER,
    RECOVERING,
    RECOVERY_UNCHANGED,
    PartitionImage,
)
from ottla.wire.messages import PartitionChangeRecord


class Election(Enum):
    PREFERRED = "the first replica if it can, and else as before"
    ONLINE = "as before if it can, and else the first that can"
    UNCLEAN = "and if nobody can, the first that is alive"


class PartitionChange:
    """One change in the making: set what should be, then ask for the `record`."""

    def __init__(
        self,
        partition: PartitionImage,
        topic_id: Uuid,
        partition_id: int,
        can_lead: Callable[[int], bool],
        default_directory: Callable[[int], Uuid],
        metadata_version: int,
        min_insync_replicas: int,
        with_elr: bool,
        election: Election = Election.ONLINE,
    ) -> None:
        self.partition = now = partition
        self.topic_id = topic_id
        self.partition_id = partition_id
        self.can_lead = can_lead
        self.default_directory = default_directory
        self.metadata_version = metadata_version
        self.min_insync_replicas = min_insync_replicas
        self.with_elr = with_elr
        self.election = election
        self.isr, self.replicas, self.elr = now.isr, now.replicas, now.eligible_leader_replicas
        self.removing, self.adding = now.removing_replicas, now.adding_replicas
        self.leader_recovery_state = now.leader_recovery_state
        self.directories: dict[int, Uuid] = dict(zip(now.replicas, now.directories, strict=True))
        """By replica; those that are not in it get their broker's default."""
        self.unclean_shutdown = NO_LEADER
        """A broker that may have lost what it had."""

    def record(self) -> PartitionChangeRecord | None:
        """The record that makes the change; None if all is as it should be."""
        record = PartitionChangeRecord(topic_id=self.topic_id, partition_id=self.partition_id)
        self._complete_reassignment()
        self._keep_eligible_leaders()
        is_clean = self._elect(record)
        self._bump_leader_epoch_for_removed_replicas(record)
        if not is_clean or not self.with_elr:
            self.elr = ()
        if set(self.elr) != set(self.partition.eligible_leader_replicas):
            record.eligible_leader_replicas = self.elr
        if is_clean and self.isr != self.partition.isr and (self.isr or self.with_elr):
            record.isr = self.isr
        self._bump_leader_epoch_for_shrunk_isr(record)
        self._remember_last_leader(record)
        self._note_assignment(record)
        if self.leader_recovery_state != self.partition.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        return None if _says_nothing(record) else record

    def _complete_reassignment(self) -> None:
        if not self.removing and not self.adding:
            return
        isr = without(self.isr, self.removing)
        replicas = without(self.replicas, self.removing)
        if not isr or not replicas or not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return  # fewer replicas than before: all that stay must have everything
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _keep_eligible_leaders(self) -> None:
        if not self.with_elr:
            return
        if len(self.isr) >= self.min_insync_replicas:
            self.elr = ()  # the leader acknowledges without them
            return
        # A replica that a reassignment has taken away is nobody to elect.
        candidates = ({*self.elr, *self.partition.isr} - {self.unclean_shutdown}) & set(self.replicas)
        self.elr = tuple(sorted(candidates - set(self.isr)))

    def _elect(self, record: PartitionChangeRecord) -> bool:
        """Names a leader in the record if it is to be another; False if the election loses records."""
        leader, is_clean = self._winner()
        if leader == self.partition.leader:
            return True
        record.leader = leader
        if leader in self.elr:
            self.isr, self.elr = (leader,), without(self.elr, (leader,))
            self._keep_eligible_leaders()
        if is_clean:
            return True
        record.isr = (leader,)
        if self.partition.leader_recovery_state != RECOVERING:
            self.leader_recovery_state = RECOVERING
        return False

    def _winner(self) -> tuple[int, bool]:
        before = self.partition.leader
        preferred = self.replicas[:1] if self.election is Election.PREFERRED else ()
        for candidate in (*preferred, before, *self.replicas):
            if self._is_eligible(candidate):
                return candidate, True
        last_known = self.partition.last_known_elr
        if self.with_elr and not self.isr and not self.elr and len(last_known) == 1 and self.can_lead(last_known[0]):
            return last_known[0], False
        if self.election is Election.UNCLEAN:
            for candidate in self.replicas:
                if self.can_lead(candidate):
                    return candidate, False
        return NO_LEADER, True

    def _is_eligible(self, broker_id: int) -> bool:
        return broker_id in (self.isr or self.elr) and self.can_lead(broker_id)

    def _bump_leader_epoch_for_removed_replicas(self, record: PartitionChangeRecord) -> None:
        """A replica that was removed must not be counted by the leader any more: a new epoch makes sure of it."""
        if record.leader == LEADER_UNCHANGED and not set(self.partition.replicas) <= set(self.replicas):
            record.leader = self.partition.leader

    def _bump_leader_epoch_for_shrunk_isr(self, record: PartitionChangeRecord) -> None:
        """Leaders before 3.6 (KAFKA-15021) do not notice a smaller ISR without a new epoch."""
        if self.metadata_version >= features.NO_EPOCH_BUMP_ON_SHRINK or record.leader != LEADER_UNCHANGED:
            return
        if record.isr is not None and not set(self.partition.isr) <= set(record.isr):
            record.leader = self.partition.leader

    def _remember_last_leader(self, record: PartitionChangeRecord) -> None:
        if not self.with_elr:
            return
        if record.leader == NO_LEADER and not self.partition.last_known_elr:
            record.last_known_elr = (self.partition.leader,)
        elif self._loses_the_last_in_sync() and not self.partition.last_known_elr:
            # It had no leader when leaders began to be remembered: without this nobody would lead again.
            record.last_known_elr = self.partition.isr[:1]
        elif record.leader >= 0 and self.partition.last_known_elr:
            record.last_known_elr = ()

    def _loses_the_last_in_sync(self) -> bool:
        partition = self.partition
        return partition.leader == NO_LEADER and bool(partition.isr) and not self.isr and not self.elr

    def _note_assignment(self, record: PartitionChangeRecord) -> None:
        if self.replicas and features.has_directory_assignment(self.metadata_version):
            directories = tuple(self._directory(replica) for replica in self.replicas)
            if directories != self.partition.directories:
                record.directories = directories
        if self.replicas and self.replicas != self.partition.replicas:
            record.replicas = self.replicas
        if self.removing != self.partition.removing_replicas:
            record.removing_replicas = self.removing
        if self.adding != self.partition.adding_replicas:
            record.adding_replicas = self.adding

    def _directory(self, replica: int) -> Uuid:
        return self.directories[replica] if replica in self.directories else self.default_directory(replica)


def _says_nothing(record: PartitionChangeRecord) -> bool:
    lists = record.isr, record.eligible_leader_replicas, record.last_known_elr, record.replicas
    more = record.removing_replicas, record.adding_replicas, record.directories
    return (
        record.leader == LEADER_UNCHANGED
        and record.leader_recovery_state == RECOVERY_UNCHANGED
        and all(field is None for field in (*lists, *more))
    )


def without(items: Sequence[int], removed: Sequence[int]) -> tuple[int, ...]:
    return tuple(item for item in items if item not in removed)
