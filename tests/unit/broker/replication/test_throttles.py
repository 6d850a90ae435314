"""Replicas that catch up no faster than they may (KIP-73)."""

import pytest

from ottla.wire.messages import ConfigRecord
from tests.unit.broker.brokers import batch, produce_request
from tests.unit.broker.replicating_nodes import Cluster

SIZE = 10_000
RATE = 20_000


def cluster_that_is_behind(side: str, rate: int = RATE, **settings: str) -> Cluster:
    """Node 2 was away for thirty records of 10 kB, and comes back."""
    cluster = Cluster(2, replica_fetch_max_bytes=str(SIZE), replica_lag_time_max_ms="600000")
    replicas = {f"{side}_replication_throttled_replicas": "0:1,0:2"}
    cluster.create_topic(replicas=(1, 2), **(settings or replicas))
    name = f"{side}.replication.throttled.rate"
    cluster.commit(ConfigRecord(resource_type=4, resource_name="", name=name, value=str(rate)))
    cluster.kill(2)
    for _ in range(30):
        cluster[1].produce(batch(bytes(SIZE)), acks=1)
    cluster.start(2)
    return cluster


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_replica_catches_up_at_the_rate_and_is_in_sync_in_the_end(side):
    cluster = cluster_that_is_behind(side)
    cluster.advance(5_000)
    log = cluster[2].partition().log
    assert 5 <= log.log_end_offset <= 15
    assert cluster.isr() == (1,)
    cluster.advance(30_000)
    assert log.log_end_offset == 30
    assert cluster.isr() == (1, 2)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_replica_gets_more_as_soon_as_it_may(side):
    """A record of 10 kB is paid for in 50 ms. The follower's request would wait for ten times as long."""
    cluster = cluster_that_is_behind(side, rate=200_000)
    cluster.advance(1_000)
    assert 18 <= cluster[2].partition().log.log_end_offset <= 22


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_other_replicas_are_not_held_up(side):
    cluster = cluster_that_is_behind(side, retention_ms="-1")
    cluster.advance(100)
    assert cluster[2].partition().log.log_end_offset == 30


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_replicas_in_sync_are_not_held_up(side):
    cluster = Cluster(2)
    cluster.create_topic(replicas=(1, 2), **{f"{side}_replication_throttled_replicas": "*"})
    name = f"{side}.replication.throttled.rate"
    cluster.commit(ConfigRecord(resource_type=4, resource_name="", name=name, value=str(RATE)))
    for _ in range(30):
        reply = cluster[1].ask(produce_request(batch(bytes(SIZE))), 12)
        cluster.run()
        assert reply.is_here, "and no time has passed"
