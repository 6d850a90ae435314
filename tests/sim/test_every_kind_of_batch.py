"""The workload of `tests/integrity`, on a simulated node: the same programs and the same judge, in one thread.

Lanes that are drawn to be encrypted are, and so is every second reader.
"""

from collections.abc import Collection

import pytest

from ottla.security.tls.contexts import client_context
from ottla.testing.sim.cluster.encryption import SSL_SETTINGS
from ottla.testing.sim.simulated_client import SimulatedClient
from ottla.testing.sim.simulated_node import SimulatedNode
from ottla.testing.sim.simulation import Simulation
from ottla.testing.workload.conversations import METADATA_VERSION, Routes, metadata_request, routes_of, talk
from ottla.testing.workload.drawing import MAX_MESSAGE_BYTES, draw_program
from ottla.testing.workload.ledger import Ledger
from ottla.testing.workload.plans import Program
from ottla.testing.workload.reading import read_partition, stored_batches, stored_records
from ottla.testing.workload.simulated_lanes import run_lanes
from tests.sim.simulated_cluster import create_topics, node_maker

HOURS_MS = 3_600_000
PLAIN_PORT, TLS_PORT = 9092, 9094
LISTENERS = f"PLAINTEXT://127.0.0.1:{PLAIN_PORT},SSL://127.0.0.1:{TLS_PORT},CONTROLLER://127.0.0.1:9093"
make_node = node_maker(
    listeners=LISTENERS,
    listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
    ssl_client_auth="required",
    **{key.replace(".", "_"): value for key, value in SSL_SETTINGS.items()},
    message_max_bytes=str(MAX_MESSAGE_BYTES),
    offsets_topic_num_partitions="3",
    transaction_state_log_num_partitions="3",
    log_cleaner_backoff_ms="1000",
)


def connector(node: SimulatedNode, encrypted: Collection[str] = ()):
    """`encrypted` are the names of those that use TLS."""
    context = client_context(SSL_SETTINGS)

    def connect(name: str, _number: int) -> SimulatedClient:
        if name in encrypted:
            return node.connect(port=TLS_PORT, name=name, tls=context)
        return node.connect(name=name)

    return connect


def read_all(simulation: Simulation, node: SimulatedNode, program: Program, routes: Routes, ledger: Ledger, when: str):
    for place in program.places:
        for is_committed in (False, True):
            conversation = read_partition(
                place, 1, routes, committed_only=is_committed, version=12, fetch_bytes=1 << 20
            )
            connect = connector(node, ("reader",) if is_committed else ())
            read = run_lanes(simulation, connect, {"reader": conversation})["reader"]
            ledger.compare(f"Fetch {when}", place, read.records, committed_only=is_committed)
            if not is_committed and not program.topic(place.topic).is_compacted:
                ledger.check_gaps(place, [record.offset for record in read.records], read.high_watermark)


def run(seed: int, budget_bytes: int = 3 << 20, simulation: Simulation | None = None) -> Ledger:
    simulation = simulation or Simulation(seed)
    node = simulation.start(make_node)
    start_ms = simulation.clock.now_ms() - 6 * HOURS_MS
    program = draw_program(seed, start_ms, budget_bytes=budget_bytes, most_rounds=4)
    admin = node.connect(name="admin")
    for topic in program.topics:
        settings = {name.replace(".", "_"): value for name, value in topic.settings.items()}
        create_topics(admin, topic.name, partitions=topic.partitions, **settings)
    names = [topic.name for topic in program.topics]
    routes = routes_of(admin.ask(metadata_request(names), METADATA_VERSION))
    ledger = Ledger()
    lanes = [lane for lane in program.lanes if lane.client_codec is None]
    encrypted = [lane.name for lane in lanes if lane.is_encrypted]
    run_lanes(simulation, connector(node, encrypted), {lane.name: talk(lane, routes, ledger) for lane in lanes})
    read_all(simulation, node, program, routes, ledger, "before a kill")
    disk = node.kill()
    for place in program.places:
        directory = f"/data/{place}"
        files = sorted(name for name in disk.list_dir(directory) if name.endswith(".log"))
        data = [disk.open(f"{directory}/{name}").read_at(0, disk.size(f"{directory}/{name}")) for name in files]
        batches = list(stored_batches(data))
        assert all(batch.is_sound for batch in batches), place
        ledger.compare("the files", place, stored_records(batches), committed_only=False)
    again = simulation.start(make_node, disk)
    read_all(simulation, again, program, routes, ledger, "after a kill")
    ledger.check_orders()
    return ledger


@pytest.mark.parametrize("seed", [1, 2])
def test_every_record_is_read_as_it_was_sent(seed: int) -> None:
    ledger = run(seed)
    assert not ledger.differences, "\n".join(ledger.differences)
    counts = ledger.counts()
    assert counts["batches transactions_2"]
    assert counts["batches acknowledged"] > 40


def test_encrypted_lanes_are_the_same_again() -> None:
    """What clients and the node have sent, and when; of what went over the network, how much."""
    first, second = Simulation(1), Simulation(1)
    program = draw_program(1, 0, most_rounds=4)
    assert {lane.is_encrypted for lane in program.lanes if lane.client_codec is None} == {False, True}
    run(1, 1 << 20, first)
    run(1, 1 << 20, second)
    assert first.transcript.lines == second.transcript.lines
    assert first.trace_hash() == second.trace_hash()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_more_seeds(seed: int) -> None:
    ledger = run(seed, budget_bytes=12 << 20)
    assert not ledger.differences, "\n".join(ledger.differences)
