"""The shape of an invariant. What it finds wrong it tells the history, and the run is over."""

from collections.abc import Sequence
from typing import ClassVar

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.final_reader import FinalRead
from ottla.testing.sim.workloads.history import History, SentRecord


class Invariant:
    """Each listens to what it needs, and leaves the rest."""

    name: ClassVar[str]

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        self.cluster = cluster
        self.history = history

    def violated(self, what: str) -> None:
        self.history.violated(self.name, what)

    def on_step(self) -> None:
        """Something has happened. Called very often."""

    def on_acknowledged(self, record: SentRecord) -> None: ...

    def on_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None: ...

    def on_assigned(self, group: str, reader: str, generation: int, partitions: Sequence[TopicPartition]) -> None: ...

    def on_commit_sent(self, group: str, partition: TopicPartition, offset: int) -> None: ...

    def on_committed(self, group: str, partition: TopicPartition, offset: int) -> None: ...

    def at_end(self, found: FinalRead) -> None:
        """All faults are over, everything was settled and read."""


class PeriodicInvariant(Invariant):
    """One that costs too much to be looked into after every step."""

    every_us: ClassVar[int]

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster, history)
        self._due_us = 0

    def on_step(self) -> None:
        now_us = self.cluster.simulation.clock.elapsed_us()
        if now_us >= self._due_us:
            self._due_us = now_us + self.every_us
            self.look()

    def look(self) -> None:
        """Is it so now?"""
        raise NotImplementedError
