"""The programs of a run, by name: which a seed has, what each is, and what the cluster needs for them."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from ottla.client.admin.topics import NewTopic
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.group_reader import STRATEGIES, GroupReader
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.housekeeper import Housekeeper
from ottla.testing.sim.workloads.idempotent_writer import IdempotentWriter
from ottla.testing.sim.workloads.mixed_writer import MixedWriter
from ottla.testing.sim.workloads.operator import LeaderElector, LevelChanger, Operator
from ottla.testing.sim.workloads.replica_mover import ReplicaMover
from ottla.testing.sim.workloads.topic_changer import TopicChanger
from ottla.testing.sim.workloads.topics import KEPT, OUTCOMES, RINGS, STATES, TRAILS, partitions_of, topics_of
from ottla.testing.sim.workloads.transactional_writer import TransactionalWriter
from ottla.testing.sim.workloads.transformer import Transformed, Transformer
from ottla.testing.sim.workloads.voter_changer import VoterChanger

ALWAYS: Final = ("writer-1", "transactions-1", "reader-1", "reader-2", "topics-1")
_OFTEN: Final = {
    "writer-2": 0.5,
    "transactions-2": 0.5,
    "reader-3": 0.5,
    "mix-1": 0.8,
    "mix-2": 0.5,
    "transformer-1": 0.5,
    "transformer-2": 0.3,
    "housekeeper-1": 0.5,
    "operator-1": 0.5,
}
"""How many of the seeds have them."""

PROGRAMS: Final = (*ALWAYS, *_OFTEN)

SETTINGS: Final[Mapping[str, str]] = {
    "log.cleaner.backoff.ms": "1000",
    "log.retention.check.interval.ms": "2000",
    "max.incremental.fetch.session.cache.slots": "4",
}
"""Of every node: what these programs want to see happens within seconds."""

_NEEDED: Final = {"transformer": {OUTCOMES}, "housekeeper": {RINGS, TRAILS, STATES}}


def draw_programs(chance: Random) -> tuple[str, ...]:
    return (*ALWAYS, *(name for name, share in _OFTEN.items() if chance.random() < share))


def topics_for(names: Sequence[str]) -> list[NewTopic]:
    """The topics that these programs use."""
    needed = [_NEEDED.get(name.partition("-")[0], set()) for name in names]
    return topics_of(set[str]().union(*needed))


def make_programs(cluster: SimulatedCluster, history: History, names: Sequence[str]) -> list[Actor]:
    transformed = Transformed()
    return [_make(cluster, history, name, transformed) for name in names]


def _make(cluster: SimulatedCluster, history: History, name: str, transformed: Transformed) -> Actor:
    partitions = partitions_of(*KEPT)
    match name.partition("-")[0]:
        case "writer":
            return IdempotentWriter(cluster, history, name, partitions)
        case "transactions":
            return TransactionalWriter(cluster, history, name, partitions)
        case "mix":
            return MixedWriter(cluster, history, name, partitions)
        case "reader":
            strategy = cluster.simulation.chance("strategy").choice(STRATEGIES)
            return GroupReader(cluster, history, name, "readers", strategy, tuple(KEPT))
        case "transformer":
            return Transformer(cluster, history, name, transformed)
        case "housekeeper":
            return Housekeeper(cluster, history, name)
        case "topics":
            return TopicChanger(cluster, history, name)
        case "operator":
            return Operator(cluster, history, name, partitions)
        case "levels":
            return LevelChanger(cluster, history, name, partitions)
        case "elector":
            return LeaderElector(cluster, history, name, partitions)
        case "voters":
            return VoterChanger(cluster, history, name)
        case "moves":
            return ReplicaMover(cluster, history, name, partitions)
    raise ValueError(f"there is no actor {name!r}")
