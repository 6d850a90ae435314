"""What a replica keeps beside its batches follows from them: producers, aborted transactions, leader epochs.

Every replica's is held against what its own log says from the first batch on. So replicas with the same log have the
same, and a leader that takes over knows what the one before it knew. Logs that have forgotten something are left out.
"""

from ottla.log.leader_epochs import UNDEFINED_EPOCH
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import ProducerState
from ottla.records.control import parse_end_transaction_marker
from ottla.records.header import CorruptBatch
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.invariants.replicas import Replica, batches_of, replicas_of
from ottla.testing.sim.workloads.final_reader import FinalRead


class DerivedState(PeriodicInvariant):
    name = "what a replica knows of its log follows from it"
    every_us = 7_000_000

    def at_end(self, found: FinalRead) -> None:
        self.look()

    def look(self) -> None:
        for replica in replicas_of(self.cluster):
            log = replica.partition.log
            if log.log_start_offset == 0 and not log.segments[0].base_offset and not log.config.is_compacted:
                try:
                    self._look_at(replica, log)
                except CorruptBatch:
                    return  # `BatchesAreSound` tells.

    def _look_at(self, replica: Replica, log: PartitionLog) -> None:
        where = f"{replica.partition.name} of node {replica.machine.node_id}"
        may_lack_epochs = replica.machine.has_lost_files  # That of the epochs among them.
        state = ProducerState()
        aborted: list[tuple[int, int, int]] = []
        end_offset = 0
        for header, data, _ in batches_of(replica.machine, log):
            end_offset = header.next_offset
            if header.producer_id >= 0 and not header.is_control:
                state.note(header)
            elif header.is_control and (marker := parse_end_transaction_marker(data)) is not None:
                completed = state.note_marker(header, marker)
                if completed is not None and completed.aborted:
                    aborted.append((completed.producer_id, completed.first_offset, completed.last_offset))
            epoch = log.epochs.epoch_at(header.base_offset)
            if epoch != header.partition_leader_epoch and not (epoch == UNDEFINED_EPOCH and may_lack_epochs):
                of_batch = header.partition_leader_epoch
                self.violated(f"{where} at {header.base_offset}: epoch {epoch} for a batch of epoch {of_batch}")
                return
        if end_offset != log.log_end_offset:
            self.violated(f"{where} ends at {end_offset}, and says {log.log_end_offset}")
            return
        self._compare(where, "producers", _producers(state), _producers(log.producers))
        known = [
            (one.producer_id, one.first_offset, one.last_offset)
            for segment in log.segments
            for one in segment.transaction_index.entries()
        ]
        self._compare(where, "aborted transactions", dict.fromkeys(aborted), dict.fromkeys(known))

    def _compare(self, where: str, what: str, said: dict[object, object], known: dict[object, object]) -> None:
        if said == known:
            return
        differences = [
            f"{key}: {said.get(key)} by the log, {known.get(key)} by the node"
            for key in sorted(said.keys() | known.keys(), key=repr)
            if said.get(key, "-") != known.get(key, "-")
        ]
        self.violated(f"{what} of {where}: {'; '.join(differences[:3])}")


def _producers(state: ProducerState) -> dict[object, object]:
    return {
        one.producer_id: (one.epoch, one.last_sequence, one.current_txn_first_offset, one.coordinator_epoch)
        for one in state
    }
