"""One run of a plan: a cluster comes up, is used while faults happen, and then has to get well.

Theory of operation. In the safety phase anything may fail, but nothing false may be seen. Then faults end, and in the
liveness phase each step has a bound in simulated time: everything is up, led and in sync; the programs settle what they
have begun; everything can be read, with no transaction open; every group has read everything. Last, what was found is
held against what was promised.
"""

from collections.abc import Callable
from time import process_time
from traceback import extract_tb
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.topics import NewTopic
from ottla.testing.sim.cluster.cluster_health import is_whole, what_is_amiss
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.faults.nemesis import Nemesis
from ottla.testing.sim.invariants.acknowledged_is_there import AcknowledgedIsThere
from ottla.testing.sim.invariants.changes_last import ChangesLast
from ottla.testing.sim.invariants.groups_go_on import GroupsGoOn, OneOwner
from ottla.testing.sim.invariants.images_are_equal import ImagesAreEqual
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.invariants.leaders_to_be_have_all import LeadersToBeHaveAll
from ottla.testing.sim.invariants.offsets_have_one_value import OffsetsHaveOneValue
from ottla.testing.sim.invariants.once_and_in_order import OnceAndInOrder
from ottla.testing.sim.invariants.one_leader import OneLeader
from ottla.testing.sim.invariants.replicas_match import ReplicasMatch
from ottla.testing.sim.invariants.transactions_are_atomic import TransactionsAreAtomic
from ottla.testing.sim.invariants.voters_are_equal import VotersAreEqual
from ottla.testing.sim.node_log import NodeLog
from ottla.testing.sim.run_plan import RunPlan
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.final_reader import FinalRead, read_everything
from ottla.testing.sim.workloads.group_reader import STRATEGIES, GroupReader
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.idempotent_writer import IdempotentWriter
from ottla.testing.sim.workloads.replica_mover import ReplicaMover
from ottla.testing.sim.workloads.topic_changer import TopicChanger
from ottla.testing.sim.workloads.transactional_writer import TransactionalWriter
from ottla.testing.sim.workloads.voter_changer import VoterChanger

WHOLE_WITHIN_MS: Final = 60_000
SETTLED_WITHIN_MS: Final = 60_000
CAUGHT_UP_WITHIN_MS: Final = 60_000
_TOPICS: Final = {"orders": 3, "clicks": 2}
_PARTITIONS: Final = [TopicPartition(topic, number) for topic, count in _TOPICS.items() for number in range(count)]


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
        self.actors = [self._make_actor(name) for name in plan.actors]
        self.nemesis = Nemesis(self.cluster, self.history, self.actors)
        changers = [actor for actor in self.actors if isinstance(actor, TopicChanger)]
        self.history.invariants = [
            OffsetsHaveOneValue(self.cluster, self.history),
            AcknowledgedIsThere(self.cluster, self.history),
            OnceAndInOrder(self.cluster, self.history),
            TransactionsAreAtomic(self.cluster, self.history),
            GroupsGoOn(self.cluster, self.history),
            OneOwner(self.cluster, self.history),
            ImagesAreEqual(self.cluster, self.history),
            VotersAreEqual(self.cluster, self.history),
            OneLeader(self.cluster, self.history),
            ReplicasMatch(self.cluster, self.history),
            LeadersToBeHaveAll(self.cluster, self.history),
            ChangesLast(self.cluster, self.history, changers),
        ]

    def run(self) -> Outcome:
        began_s = process_time()
        with NodeLog(self.history, self.nemesis.note), self.plan.sizes.in_force():
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
        )

    def _play(self) -> None:
        simulation = self.cluster.simulation
        self._phase = "starting"
        self.cluster.start()
        self.cluster.create_topics(*(NewTopic(name, count) for name, count in _TOPICS.items()))
        self._on_step = [one.on_step for one in self.history.invariants if type(one).on_step is not Invariant.on_step]
        simulation.after_step = self._look
        self._phase = "under faults"
        self.nemesis.note("the cluster is up")
        for actor in self.actors:
            actor.begin()
        self.nemesis.plan(self.plan.faults)
        simulation.run_for(self.plan.duration_ms)
        self.nemesis.note("the faults are over")
        self.nemesis.end_all()
        self._become_whole()
        self._settle([actor for actor in self.actors if not isinstance(actor, GroupReader)])
        found = self._read_all()
        self._check_end(found)

    def _become_whole(self) -> None:
        self._phase = "becoming whole"
        self._within(WHOLE_WITHIN_MS, lambda: is_whole(self.cluster), lambda: what_is_amiss(self.cluster))

    def _settle(self, actors: list[Actor]) -> None:
        self._phase = "settling"
        for actor in actors:
            actor.finish()
        self._within(
            SETTLED_WITHIN_MS,
            lambda: all(actor.is_settled for actor in actors),
            lambda: ", ".join(f"{actor.name} is not done" for actor in actors if not actor.is_settled),
        )

    def _read_all(self) -> FinalRead:
        self._phase = "reading everything"
        return FinalRead(
            read_everything(self.cluster, _PARTITIONS, "read_uncommitted"),
            read_everything(self.cluster, _PARTITIONS, "read_committed"),
        )

    def _check_end(self, found: FinalRead) -> None:
        self._phase = "catching up"
        readers: list[Actor] = [actor for actor in self.actors if isinstance(actor, GroupReader)]
        committed = len({value for records in found.committed.values() for _, value in records})
        groups = {actor.group for actor in readers if isinstance(actor, GroupReader)}
        of_groups = next(one for one in self.history.invariants if isinstance(one, GroupsGoOn))
        self._within(
            CAUGHT_UP_WITHIN_MS,
            lambda: all(of_groups.count_read(group) >= committed for group in groups),
            lambda: ", ".join(f"{group} has read {of_groups.count_read(group)} of {committed}" for group in groups),
        )
        self._settle(readers)
        self._learn_of_all()
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

    def _make_actor(self, name: str) -> Actor:
        match name.split("-"):
            case ["writer", _]:
                return IdempotentWriter(self.cluster, self.history, name, _PARTITIONS)
            case ["transactions", _]:
                return TransactionalWriter(self.cluster, self.history, name, _PARTITIONS)
            case ["reader", _]:
                chance = self.cluster.simulation.chance("strategy")
                return GroupReader(
                    self.cluster, self.history, name, "readers", chance.choice(STRATEGIES), tuple(_TOPICS)
                )
            case ["topics", _]:
                return TopicChanger(self.cluster, self.history, name)
            case ["voters", _]:
                return VoterChanger(self.cluster, self.history, name)
            case ["moves", _]:
                return ReplicaMover(self.cluster, self.history, name, _PARTITIONS)
        raise ValueError(f"there is no actor {name!r}")


def _where(problem: Exception) -> str:
    """The line that raised it."""
    *_, last = extract_tb(problem.__traceback__)
    return f"in {last.filename}:{last.lineno}"
