"""The shape of an invariant. What it finds wrong it tells the history, and the run is over."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from ottla.base.ids import TopicPartition
from ottla.records.header import CorruptBatch
from ottla.testing.clock import FixedClock
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

    def pending(self) -> str:
        """What is not as it must become in the end, when all is well; empty if all of it is so."""
        return ""

    def at_end(self, found: FinalRead) -> None:
        """All faults are over, everything was settled and read."""


class PeriodicInvariant(Invariant):
    """One that costs too much to be looked into after every step: `Looks` does so when it is time."""

    every_us: ClassVar[int]

    def look(self) -> None:
        """Is it so now?"""
        raise NotImplementedError


class Looks:
    """Calls `look` of invariants, each as often as it says. Asked after every step, it mostly has nothing to do."""

    def __init__(self, clock: FixedClock, invariants: Sequence[PeriodicInvariant]) -> None:
        self._clock = clock
        self._due = dict.fromkeys(invariants, 0)
        self._next_us = 0

    def on_step(self) -> None:
        now_us = self._clock.elapsed_us()
        if now_us < self._next_us:
            return
        for invariant, due_us in self._due.items():
            if now_us >= due_us:
                self._due[invariant] = now_us + invariant.every_us
                try:
                    invariant.look()
                except CorruptBatch as problem:
                    invariant.violated(f"a log cannot be read: {problem}")
        self._next_us = min(self._due.values(), default=now_us + 1_000_000)


def on_steps(invariants: Sequence[Invariant], clock: FixedClock) -> list[Callable[[], None]]:
    """What is to be called after every step of a simulation."""
    looks = Looks(clock, [one for one in invariants if isinstance(one, PeriodicInvariant)])
    return [looks.on_step, *(one.on_step for one in invariants if type(one).on_step is not Invariant.on_step)]
