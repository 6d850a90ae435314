"""Whether an acknowledged record is there: retention may have deleted it before its producer is told, and a producer
may be told that it is there and not where."""

import pytest

from ottla.testing.sim import ClusterSettings, Fate, History, NewTopic, SimulatedCluster, SimulatedProducer, spawn
from ottla.testing.sim import TopicPartition as Place
from ottla.testing.sim.invariants.acknowledged_is_there import AcknowledgedIsThere
from ottla.testing.sim.invariants.enough_replicas_have_it import EnoughReplicasHaveIt
from ottla.testing.sim.workloads.final_reader import FinalRead

PLACE = Place("trails", 0)
LOOKED_INTO = 8
LATER_MS = 60_000


@pytest.mark.parametrize("deleted_before", [0, 1], ids=["is there", "is deleted"])
def test_a_record_that_was_deleted_since_is_not_missed(deleted_before: int) -> None:
    cluster = SimulatedCluster(1, ClusterSettings(nodes=1))
    cluster.start()
    cluster.create_topics(NewTopic("trails", 1))
    history = History()
    writer = SimulatedProducer(cluster.client("writer"), history, {"bootstrap.servers": cluster.bootstrap})
    record = history.send("writer", 1, PLACE)
    spawn(writer.send(record))
    cluster.simulation.run_until(lambda: record.fate is Fate.ACKNOWLEDGED)
    node = cluster.machines[1].node
    assert node is not None
    assert node.broker is not None
    log = node.broker.partitions[PLACE].log
    log.advance_log_start_offset(deleted_before)
    log.roll()
    log.apply_retention()

    invariant = EnoughReplicasHaveIt(cluster, history)
    invariant.look()
    cluster.simulation.clock.advance(LATER_MS)
    history.acknowledged = LOOKED_INTO  # so that its bytes are looked for
    invariant.on_acknowledged(record)
    assert history.violations == []

    record.value = b"another"
    invariant.on_acknowledged(record)
    assert bool(history.violations) is not bool(deleted_before), "what is there is compared"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_record_whose_offset_nobody_tells_is_looked_for_in_the_end(is_there: bool) -> None:
    """A batch that was written and not acknowledged in time may be too old for its broker to know it again."""
    history = History()
    record = history.send("writer", 1, Place("orders", 0))
    history.acknowledge(record, None)
    found = {record.partition: [(7, record.value)] if is_there else []}
    AcknowledgedIsThere(SimulatedCluster(), history).at_end(FinalRead(found, found))
    assert bool(history.violations) is not is_there
