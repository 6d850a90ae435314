"""When a record is acknowledged, the logs of `min.insync.replicas` nodes hold it, and hold the same.

Looked at when the client hears of it. Nodes that have ended a short while before count as if they had it, and so do
those that have just left the partition: what they have, or had, cannot be seen any more.
"""

from collections import deque
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.log.partition_log import PartitionLog
from ottla.records.header import CorruptBatch
from ottla.records.reader import read_records
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import PeriodicInvariant
from ottla.testing.sim.invariants.replicas import batches_of
from ottla.testing.sim.workloads.history import History, SentRecord

_SHORT_WHILE_US: Final = 30_000_000
"""As long as a reply may be on its way, and more."""
_LOOKED_INTO: Final = 8
"""One in so many is looked for in the bytes; for the others, that the log is as long will do."""


class EnoughReplicasHaveIt(PeriodicInvariant):
    name = "an acknowledged record is on min.insync.replicas logs"
    every_us = 20_000

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._lives: dict[int, tuple[object, int]] = {}
        self._held: dict[tuple[int, TopicPartition], int] = {}
        """When a node was last seen to have a log of a partition."""
        self._required: dict[str, deque[tuple[int, int]]] = {}
        """What `min.insync.replicas` of a topic was, and since when."""

    def look(self) -> None:
        now_us = self.cluster.simulation.clock.elapsed_us()
        for machine in self.cluster.machines.values():
            if self._lives.get(machine.node_id, (None, 0))[0] is not machine.life or not machine.is_serving:
                self._lives[machine.node_id] = machine.life, now_us
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            for partition in broker.partitions.values() if broker is not None else ():
                self._held[machine.node_id, partition.name] = now_us
                self._note_setting(partition.name.topic, partition.settings.min_insync_replicas, now_us)

    def _note_setting(self, topic: str, required: int, now_us: int) -> None:
        known = self._required.setdefault(topic, deque())
        if not known or known[-1][1] != required:
            known.append((now_us, required))
        while len(known) > 1 and known[1][0] < now_us - _SHORT_WHILE_US:
            known.popleft()

    def on_acknowledged(self, record: SentRecord) -> None:
        now_us = self.cluster.simulation.clock.elapsed_us()
        required = min((one for _, one in self._required.get(record.partition.topic, ())), default=1)
        have: list[tuple[Machine, PartitionLog]] = []
        unknown = 0
        for machine in self.cluster.machines.values():
            since_us = self._lives.get(machine.node_id, (None, 0))[1]
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            partition = broker.partitions.get(record.partition) if broker is not None else None
            held_us = self._held.get((machine.node_id, record.partition))
            if partition is not None and partition.log.log_end_offset > record.offset:
                have.append((machine, partition.log))
            else:
                just_held = partition is None and held_us is not None and now_us - held_us < _SHORT_WHILE_US
                just_began = now_us - since_us < _SHORT_WHILE_US
                unknown += just_held or just_began or machine.may_fail or bool(machine.failed_directories)
        if self.history.acknowledged % _LOOKED_INTO == 0:
            have = [one for one in have if self._has(record, *one)]
        if len(have) + unknown < min(required, self._replicas_of(record.partition)):
            nodes = [machine.node_id for machine, _ in have]
            self.violated(f"{record} at {record.offset} is on nodes {nodes}, and {required} were to have it")

    def _replicas_of(self, name: TopicPartition) -> int:
        """As few as some node knows of: a reassignment may be on its way."""
        counts = [len(self.cluster.machines)]
        for machine in self.cluster.machines.values():
            topic = machine.metadata.image.topics.by_name.get(name.topic) if machine.metadata is not None else None
            partition = topic.partitions.get(name.partition) if topic is not None else None
            if partition is not None:
                counts.append(len(set(partition.replicas) - set(partition.removing_replicas)))
        return min(counts)

    def _has(self, record: SentRecord, machine: Machine, log: PartitionLog) -> bool:
        """Whether it is this record that is there. A replica that was out of sync may have another one for a while."""
        if machine.may_fail or machine.failed_directories or log.config.is_compacted:
            return True
        if record.offset < log.log_start_offset:
            return True  # deleted, by retention or by request, before its producer could get the reply
        first = max((one.base_offset for one in log.segments if one.base_offset <= record.offset), default=0)
        try:
            for batch in batches_of(machine, log, first):
                if batch.header.base_offset <= record.offset <= batch.header.last_offset:
                    found = {one.offset: one.value for one in read_records(batch.data, 0, batch.header)}
                    return bytes(found.get(record.offset) or b"") == record.value
        except CorruptBatch:
            return False
        return False
