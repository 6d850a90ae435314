"""The invariants of a run."""

from collections.abc import Sequence

from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.invariants.acknowledged_is_there import AcknowledgedIsThere
from ottla.testing.sim.invariants.batches_are_sound import BatchesAreSound
from ottla.testing.sim.invariants.changes_end import ChangesEnd
from ottla.testing.sim.invariants.changes_last import ChangesLast
from ottla.testing.sim.invariants.coordinators_match_logs import ClosedCoordinatorsStayClosed, CoordinatorsMatchLogs
from ottla.testing.sim.invariants.derived_state import DerivedState
from ottla.testing.sim.invariants.directories_are_known import DirectoriesAreKnown, DirectoriesAreToldInOrder
from ottla.testing.sim.invariants.electable_replicas_are_complete import LeadersToBeHaveAll
from ottla.testing.sim.invariants.enough_replicas_have_it import EnoughReplicasHaveIt
from ottla.testing.sim.invariants.exactly_once import ExactlyOnce
from ottla.testing.sim.invariants.groups_continue import GroupsContinue, OneOwner
from ottla.testing.sim.invariants.images_are_equal import ImagesAreEqual
from ottla.testing.sim.invariants.invariant import Invariant
from ottla.testing.sim.invariants.isr_follows import IsrFollows
from ottla.testing.sim.invariants.offsets_have_one_value import OffsetsHaveOneValue
from ottla.testing.sim.invariants.offsets_in_order import CommittedStays, OffsetsInOrder
from ottla.testing.sim.invariants.once_and_in_order import OnceAndInOrder
from ottla.testing.sim.invariants.one_leader import OneLeader
from ottla.testing.sim.invariants.replicas_match import ReplicasMatch
from ottla.testing.sim.invariants.transactions_are_atomic import TransactionsAreAtomic
from ottla.testing.sim.invariants.voters_are_equal import VotersAreEqual
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import History
from ottla.testing.sim.workloads.topic_changer import TopicChanger
from ottla.testing.sim.workloads.transformer import Transformer


def make_invariants(cluster: SimulatedCluster, history: History, actors: Sequence[Actor]) -> list[Invariant]:
    changers = [actor for actor in actors if isinstance(actor, TopicChanger)]
    transformers = [actor for actor in actors if isinstance(actor, Transformer)]
    return [
        OffsetsHaveOneValue(cluster, history),
        AcknowledgedIsThere(cluster, history),
        OnceAndInOrder(cluster, history),
        TransactionsAreAtomic(cluster, history),
        GroupsContinue(cluster, history),
        OneOwner(cluster, history),
        ImagesAreEqual(cluster, history),
        VotersAreEqual(cluster, history),
        OneLeader(cluster, history),
        ReplicasMatch(cluster, history),
        LeadersToBeHaveAll(cluster, history),
        IsrFollows(cluster, history),
        ChangesLast(cluster, history, changers),
        BatchesAreSound(cluster, history),
        OffsetsInOrder(cluster, history),
        CommittedStays(cluster, history),
        EnoughReplicasHaveIt(cluster, history),
        DerivedState(cluster, history),
        CoordinatorsMatchLogs(cluster, history),
        ClosedCoordinatorsStayClosed(cluster, history),
        DirectoriesAreKnown(cluster, history),
        DirectoriesAreToldInOrder(cluster, history),
        ChangesEnd(cluster, history),
        ExactlyOnce(cluster, history, transformers[0].transformed if transformers else None),
    ]
