"""One run of a plan: a cluster comes up, is used while faults happen, and then has to get well.

Theory of operation. In the safety phase anything may fail, but nothing false may be seen. Then faults end, and in the
liveness phase each step has a bound in simulated time: everything is up, led and in sync; the programs settle what they
have begun; with half of the seeds, a minority of the nodes is taken away again, and the others serve; everything can be
read, with no transaction open; every group has read everything. Last, what was found is held against what was promised.
"""

from collections.abc import Callable
from time import process_time
from traceback import extract_tb
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.testing.sim.cluster.cluster_health import is_whole, what_is_amiss
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.faults.fault import BEFORE_ALL
from ottla.testing.sim.faults.nemesis import Nemesis
from ottla.testing.sim.invariants.all_invariants import make_invariants
from ottla.testing.sim.invariants.groups_continue import GroupsContinue
from ottla.testing.sim.invariants.invariant import Invariant, on_steps
from ottla.testing.sim.marks import watching
from ottla.testing.sim.network.plaintext import plaintext_is_traced
from ottla.testing.sim.node_log import NodeLog
from ottla.testing.sim.run_plan import RunPlan
from ottla.testing.sim.workloads.actor import Settles
from ottla.testing.sim.workloads.final_reader import FinalRead, read_everything
from ottla.testing.sim.workloads.group_reader import GroupReader
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.majority import SERVED_WITHIN_MS, Majority
from ottla.testing.sim.workloads.programs import make_programs, topics_for
from ottla.testing.sim.workloads.topics import KEPT

WHOLE_WITHIN_MS: Final = 60_000
SETTLED_WITHIN_MS: Final = 60_000
CAUGHT_UP_WITHIN_MS: Final = 60_000


class Outcome(NamedTuple):
    """`violations` is empty if all is well."""

    plan: RunPlan
    violations: tuple[str, ...]
    log: tuple[str, ...]
    trace_hash: str
    simulated_s: float
    cpu_s: float
    steps: int
    sent: int
    acknowledged: int
    read: int
    transactions: int
    marks: frozenset[str] = frozenset()
    """Which paths it has reached: see `marks`."""

    @property
    def is_good(self) -> bool:
        return not self.violations


class _Over(Exception):
    """Something was violated: there is no point in going on."""


class SimulatedRun:
    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.history = History()
        self.cluster = SimulatedCluster(plan.seed, plan.settings, plan.weather)
        self.actors = make_programs(self.cluster, self.history, plan.actors)
        self.topics = topics_for(plan.actors)
        self.nemesis = Nemesis(self.cluster, self.history, self.actors)
        self.majority = Majority(self.nemesis, self.history)
        self.reached: set[str] = set()
        self.history.invariants = make_invariants(self.cluster, self.history, self.actors)

    def run(self) -> Outcome:
        began_s = process_time()
        log = NodeLog(self.history, self.nemesis.note)
        with log, self.plan.sizes.in_force(), watching(self.reached), plaintext_is_traced():
            try:
                self._play()
            except _Over:
                pass
            except TimeoutError as problem:
                self.history.violated("what is asked comes to an end", f"{self._phase}: {problem}")
            except AssertionError as problem:
                self.history.violated("no assertion fails", f"{problem!r} {_where(problem)}")
            except Exception as problem:  # Of a node's, a client's, or the simulation's own step.
                self.history.violated("no step raises", f"{problem!r} {_where(problem)}")
        for machine in self.cluster.machines.values():
            if machine.life is not None:
                machine.life.abandon_jobs()
        simulation = self.cluster.simulation
        return Outcome(
            self.plan,
            tuple(self.history.violations),
            tuple(self.nemesis.log),
            simulation.trace_hash(),
            simulation.clock.elapsed_us() / 1_000_000,
            process_time() - began_s,
            simulation.steps,
            len(self.history.sent),
            self.history.acknowledged,
            self.history.read,
            len(self.history.transactions),
            frozenset(self.reached),
        )

    def _play(self) -> None:
        simulation = self.cluster.simulation
        self._phase = "starting"
        self.nemesis.plan([fault for fault in self.plan.faults if fault.at_ms == BEFORE_ALL])
        self.cluster.start()
        self.cluster.create_topics(*self.topics)
        self._on_step = on_steps(self.history.invariants, simulation.clock)
        simulation.after_step = self._look
        self._phase = "under faults"
        self.nemesis.note("the cluster is up")
        for actor in self.actors:
            actor.begin()
        self.nemesis.plan([fault for fault in self.plan.faults if fault.at_ms != BEFORE_ALL])
        simulation.run_for(self.plan.duration_ms)
        self.nemesis.note("the faults are over")
        self.nemesis.end_all()
        self._become_whole()
        self._settle(Settles.FIRST)
        self._continue_without_some()
        self._settle(Settles.WHEN_ALL_IS_WRITTEN)
        found = self._read_all()
        self._check_end(found)

    def _become_whole(self) -> None:
        self._phase = "becoming whole"
        self._within(WHOLE_WITHIN_MS, lambda: is_whole(self.cluster), lambda: what_is_amiss(self.cluster))

    def _continue_without_some(self) -> None:
        """The cluster serves while only a majority is well."""
        if not self.majority.is_drawn():
            return
        self._phase = "serving with a majority"
        self.majority.begin()
        self._within(SERVED_WITHIN_MS, lambda: not self.majority.missing(), self.majority.missing)
        self.majority.end()
        self._become_whole()

    def _settle(self, when: Settles) -> None:
        self._phase = "settling"
        actors = [actor for actor in self.actors if actor.settles is when]
        for actor in actors:
            actor.finish()
        self._within(
            SETTLED_WITHIN_MS,
            lambda: all(actor.is_settled for actor in actors),
            lambda: ", ".join(f"{actor.name} is not done" for actor in actors if not actor.is_settled),
        )

    def _read_all(self) -> FinalRead:
        self._phase = "reading everything"
        partitions = [TopicPartition(name, number) for name, count, *_ in self.topics for number in range(count or 0)]
        return FinalRead(
            read_everything(self.cluster, partitions, "read_uncommitted"),
            read_everything(self.cluster, partitions, "read_committed"),
        )

    def _check_end(self, found: FinalRead) -> None:
        self._phase = "catching up"
        of_topics = [records for partition, records in found.committed.items() if partition.topic in KEPT]
        committed = len({value for records in of_topics for _, value in records})
        groups = {actor.group for actor in self.actors if isinstance(actor, GroupReader)}
        of_groups = next(one for one in self.history.invariants if isinstance(one, GroupsContinue))
        self._within(
            CAUGHT_UP_WITHIN_MS,
            lambda: all(of_groups.count_read(group) >= committed for group in groups),
            lambda: ", ".join(f"{group} has read {of_groups.count_read(group)} of {committed}" for group in groups),
        )
        self._settle(Settles.WHEN_ALL_IS_READ)
        self._learn_of_all()
        self._come_to_an_end()
        for invariant in self.history.invariants:
            invariant.at_end(found)

    def _learn_of_all(self) -> None:
        """A node that was just cut off may be whole by what it knows, and not have heard of the last changes yet."""
        self._phase = "learning of all changes"
        machines = self.cluster.machines

        def known() -> dict[int, int]:
            logs = {id: machine.metadata for id, machine in machines.items()}
            return {id: -1 if log is None else log.committed_offset for id, log in logs.items()}

        end_offset = max(known().values())

        def behind() -> list[int]:
            return [id for id, offset in known().items() if offset < end_offset]

        self._within(CAUGHT_UP_WITHIN_MS, lambda: not behind(), lambda: f"nodes {behind()} are not at {end_offset}")

    def _come_to_an_end(self) -> None:
        """What was begun and needs no client: moves, what has to go into the metadata."""
        self._phase = "coming to an end"
        pending = [one.pending for one in self.history.invariants if type(one).pending is not Invariant.pending]
        self._within(
            CAUGHT_UP_WITHIN_MS,
            lambda: not any(one() for one in pending),
            lambda: "; ".join(what for one in pending if (what := one())),
        )

    def _within(self, most_ms: int, is_so: Callable[[], bool], what_is_missing: Callable[[], str]) -> None:
        try:
            self.cluster.simulation.run_until(is_so, most_ms)
        except TimeoutError:
            self.history.violated(f"{self._phase} takes at most {most_ms // 1000} s", what_is_missing())
            raise _Over from None

    def _look(self) -> None:
        for on_step in self._on_step:
            on_step()
        if self.history.violations:
            self.cluster.simulation.after_step = None
            raise _Over


def _where(problem: Exception) -> str:
    """The line that raised it."""
    *_, last = extract_tb(problem.__traceback__)
    return f"in {last.filename}:{last.lineno}"
