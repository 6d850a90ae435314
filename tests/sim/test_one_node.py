"""A whole node on a simulated world: connections, metadata log, broker and disk, in one thread and from one seed."""

import errno

import pytest

from ottla.base.errors import StorageError
from ottla.testing.sim.simulated_client import HungUp
from ottla.testing.sim.simulation import Simulation
from ottla.wire.messages import MetadataRequest
from tests.sim.simulated_cluster import create_topics, fetch, node_maker, produce, produce_later


def test_what_was_acknowledged_is_there_after_a_kill() -> None:
    simulation = Simulation(seed=1)
    node = simulation.start(node_maker())
    client = node.connect()
    create_topics(client, "orders", partitions=3)
    for number in range(10):
        assert produce(client, "orders", number % 3, [b"%d" % number]) == number // 3
    assert fetch(client, "orders", 0) == [b"0", b"3", b"6", b"9"]
    again = simulation.start(node_maker(), node.kill())
    client = again.connect()
    assert [fetch(client, "orders", index) for index in range(3)] == [
        [b"0", b"3", b"6", b"9"],
        [b"1", b"4", b"7"],
        [b"2", b"5", b"8"],
    ]
    assert produce(client, "orders", 0, [b"more"]) == 4


def test_a_clean_stop_leaves_nothing_to_recover() -> None:
    simulation = Simulation(seed=2)
    node = simulation.start(node_maker())
    client = node.connect()
    create_topics(client, "orders")
    produce(client, "orders", 0, [b"a", b"b"])
    disk = node.stop()
    assert disk.exists("/data/.kafka_cleanshutdown")
    again = simulation.start(node_maker(), disk)
    assert fetch(again.connect(), "orders") == [b"a", b"b"]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_flushed_is_there_after_a_power_cut(seed: int) -> None:
    simulation = Simulation(seed)
    node = simulation.start(node_maker())
    client = node.connect()
    create_topics(client, "orders", flush_messages="1")
    values = [b"%d" % number for number in range(20)]
    for value in values:
        produce(client, "orders", 0, [value])
    again = simulation.start(node_maker(), node.cut_power())
    assert fetch(again.connect(), "orders") == values


def test_a_client_that_waits_is_told_when_there_is_something() -> None:
    simulation = Simulation(seed=3)
    node = simulation.start(node_maker())
    reader, writer = node.connect(name="reader"), node.connect(name="writer")
    create_topics(writer, "orders")
    produce(writer, "orders", 0, [b"first"])
    began_us = simulation.clock.elapsed_us()
    assert fetch(reader, "orders", offset=1, max_wait_ms=500) == []
    assert 500_000 <= simulation.clock.elapsed_us() - began_us < 510_000


def test_a_killed_node_takes_its_timers_its_jobs_and_its_links_with_it() -> None:
    simulation = Simulation(seed=4)
    node = simulation.start(node_maker())
    client = node.connect()
    create_topics(client, "orders", flush_messages="1")
    produce(client, "orders", 0, [b"first"])
    assert node.pending > 5, "the timers of a node that is up"
    produce_later(client, "orders", b"on its way")
    simulation.run_until(lambda: len(node.workers) > 0)
    disk = node.kill()
    assert node.pending == 0
    simulation.run_for(10)
    assert client.is_closed
    assert len(simulation.agenda) == 0, "nothing is left that could happen"
    files, calls = disk.files(), node.disk.calls
    with pytest.raises(ConnectionRefusedError):
        node.connect()
    simulation.agenda.run_until(simulation.clock.elapsed_us() + 3_600_000_000)
    assert (disk.files(), node.disk.calls) == (files, calls)
    with pytest.raises(HungUp):
        client.ask(MetadataRequest(topics=None), 12)


def test_a_node_that_cannot_start_says_why() -> None:
    simulation = Simulation(seed=5)
    disk = simulation.start(node_maker()).kill()
    disk.fail_read_at(disk.reads + 1, errno.EIO, times=1000)
    with pytest.raises((OSError, StorageError)):
        simulation.start(node_maker(), disk)


def test_a_new_node_may_keep_its_metadata_in_a_directory_of_its_own() -> None:
    simulation = Simulation(seed=6)
    make_node = node_maker(metadata_log_dir="/metadata")
    node = simulation.start(make_node)
    create_topics(node.connect(), "orders")
    again = simulation.start(make_node, node.kill())
    produce(again.connect(), "orders", 0, [b"first"])
    assert not again.disk.exists("/data/__cluster_metadata-0")


@pytest.mark.parametrize("seed", range(20))
def test_a_partition_that_was_announced_is_served(seed: int) -> None:
    """Its log may still be in the making: then the request waits, and the client is not told to look elsewhere."""
    simulation = Simulation(seed)
    client = simulation.start(node_maker()).connect()
    create_topics(client, "orders", partitions=5)
    assert [produce(client, "orders", index, [b"first"]) for index in range(5)] == [0] * 5
