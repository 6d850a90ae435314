"""Consumers that read from a follower near them (KIP-392)."""

import pytest

from ottla.broker.data.replica_selector import RACK_AWARE
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import batch, fetch_request, only, produce_request, values_in
from tests.unit.broker.replicating_nodes import Cluster


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(3, replica_selector_class=RACK_AWARE)
    cluster.create_topic()
    cluster[1].ask(produce_request(batch(b"a")), 12)
    cluster.advance(1000)
    return cluster


def fetch(cluster: Cluster, node_id: int, offset: int = 0, version: int = 12, **fields):
    return only(cluster[node_id].send(fetch_request(offset, **fields), version))


def test_a_consumer_is_sent_to_the_follower_in_its_rack(cluster):
    answer = fetch(cluster, 1, rack_id="rack-3")
    assert (answer.preferred_read_replica, answer.error_code, bytes(answer.records)) == (3, ErrorCode.NONE, b"")
    assert values_in(fetch(cluster, 3, rack_id="rack-3")) == [b"a"]


@pytest.mark.parametrize("rack", ["", "rack-1", "elsewhere"])
def test_other_consumers_read_from_the_leader(cluster, rack):
    answer = fetch(cluster, 1, rack_id=rack)
    assert (answer.preferred_read_replica, values_in(answer)) == (-1, [b"a"])


def test_a_consumer_that_is_sent_elsewhere_does_not_wait(cluster):
    assert fetch(cluster, 1, 1, rack_id="rack-3", max_wait_ms=500).preferred_read_replica == 3


def test_a_follower_out_of_sync_or_fenced_is_not_chosen(cluster):
    cluster.kill(3)
    assert values_in(fetch(cluster, 1, rack_id="rack-3")) == [b"a"]


def test_a_follower_that_is_not_in_the_isr_is_not_chosen_though_it_has_the_record(cluster):
    state = cluster[1].partition().state
    assert state.followers[3].end_offset == 1
    state.isr = (1, 2)
    assert values_in(fetch(cluster, 1, rack_id="rack-3")) == [b"a"]


def test_a_follower_shows_what_it_knows_to_be_committed_and_no_more(cluster):
    cluster.down.add(2)
    cluster[1].produce(batch(b"b"), acks=1)
    cluster.run()
    assert cluster[3].partition().log.log_end_offset == 2
    assert values_in(fetch(cluster, 3)) == [b"a"]
    waiting = cluster[3].ask(fetch_request(1, max_wait_ms=20_000), 12)
    assert not waiting.is_here
    cluster.advance(8000)  # node 2 has left the ISR by now
    assert values_in(only(waiting.message)) == [b"b"]


def test_clients_from_before_that_read_from_leaders_alone(cluster):
    assert fetch(cluster, 3, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_knows_its_leader_epoch(cluster):
    assert fetch(cluster, 3, current_leader_epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert values_in(fetch(cluster, 3, current_leader_epoch=0)) == [b"a"]


def test_followers_that_serve_consumers_hear_of_the_high_watermark_at_once(cluster):
    waiting = cluster[3].ask(fetch_request(1, max_wait_ms=20_000), 12)
    cluster[1].ask(produce_request(batch(b"b")), 12)
    cluster.run()
    assert values_in(only(waiting.message)) == [b"b"], "and no time has passed"
