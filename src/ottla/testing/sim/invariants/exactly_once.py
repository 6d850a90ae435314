"""Of every record that was consumed, transformed and produced exactly one outcome is seen, and of none more."""

from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.topics import CLICKS, OUTCOMES
from ottla.testing.sim.workloads.transformer import Transformed


class ExactlyOnce(Invariant):
    name = "what is consumed, transformed and produced is there exactly once"

    def __init__(self, cluster: SimulatedCluster, history: History, transformed: Transformed | None) -> None:
        super().__init__(cluster, history)
        self._transformed = transformed

    def at_end(self, found: FinalRead) -> None:
        if self._transformed is None:
            return
        visible = {
            value
            for partition, records in found.committed.items()
            if partition.topic == OUTCOMES
            for _, value in records
        }
        for partition, records in found.committed.items():
            for offset, _ in records if partition.topic == CLICKS else ():
                outcomes = self._transformed.outcomes.get((partition, offset), ())
                seen = [one for one in outcomes if one.value in visible]
                if len(seen) != 1:
                    self.violated(f"of {len(outcomes)} outcomes of {offset} in {partition} one sees {seen}")
