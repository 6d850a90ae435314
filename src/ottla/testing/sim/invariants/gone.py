"""Which acknowledged records may be gone in the end, and which must be: of topics that forget."""

from collections.abc import Iterator

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.replicas import leader_of
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History, SentRecord
from ottla.testing.sim.workloads.topics import RINGS, STATES, TRAILS


class Gone:
    def __init__(self, cluster: SimulatedCluster, history: History, found: FinalRead) -> None:
        self._history = history
        self._found = found
        self._has_crashed = any(end != "stopped" for one in cluster.machines.values() for end in one.ends)
        """Then what was deleted may be back: where a log begins is written down now and then, in Kafka too."""
        self._starts = {partition: _log_start(cluster, partition) for partition in found.everything}
        self._last_of_key: dict[tuple[TopicPartition, bytes], int] = {}
        for record in history.sent.values():
            if record.key is not None:
                key = record.partition, record.key
                self._last_of_key[key] = max(self._last_of_key.get(key, -1), record.offset)
        for partition, records in found.everything.items():
            for offset, value in records:
                found_record = history.sent.get(value)
                if found_record is not None and found_record.key is not None:
                    key = partition, found_record.key
                    self._last_of_key[key] = max(self._last_of_key.get(key, -1), offset)

    def may_lack(self, record: SentRecord) -> bool:
        """Whether it may be gone: deleted, too old, or followed by another of its key."""
        match record.partition.topic:
            case topic if topic in (RINGS, TRAILS):
                return record.offset < self._starts[record.partition]
            case topic if topic == STATES and record.key is not None:
                return record.offset < self._last_of_key[record.partition, record.key]
        return False

    def problems(self) -> Iterator[str]:
        """Of logs that begin too early or too late."""
        for partition, start in self._starts.items():
            asked = self._history.may_be_deleted.get(partition, 0)
            if partition.topic != TRAILS and start > asked:
                yield f"{partition} begins at {start}, and nobody has deleted more than what is before {asked}"
            deleted_before = self._history.is_deleted.get(partition, 0)
            first = next((offset for offset, _ in self._found.everything[partition]), deleted_before)
            if first < deleted_before and not self._has_crashed:
                yield f"{partition} has {first}, and all before {deleted_before} was said to be deleted"


def _log_start(cluster: SimulatedCluster, partition: TopicPartition) -> int:
    leader = leader_of(cluster, partition)
    return 0 if leader is None else leader.log.log_start_offset
