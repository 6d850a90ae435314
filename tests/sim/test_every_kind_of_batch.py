"""The workload of `tests/integrity`, on a simulated node: the same programs and the same judge, in one thread."""

import pytest

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
make_node = node_maker(
    message_max_bytes=str(MAX_MESSAGE_BYTES),
    offsets_topic_num_partitions="3",
    transaction_state_log_num_partitions="3",
    log_cleaner_backoff_ms="1000",
)


def connector(node: SimulatedNode):
    def connect(name: str, _number: int) -> SimulatedClient:
        return node.connect(name=name)

    return connect


def read_all(simulation: Simulation, node: SimulatedNode, program: Program, routes: Routes, ledger: Ledger, when: str):
    for place in program.places:
        for is_committed in (False, True):
            conversation = read_partition(
                place, 1, routes, committed_only=is_committed, version=12, fetch_bytes=1 << 20
            )
            read = run_lanes(simulation, connector(node), {"reader": conversation})["reader"]
            ledger.compare(f"Fetch {when}", place, read.records, committed_only=is_committed)
            if not is_committed and not program.topic(place.topic).is_compacted:
                ledger.check_gaps(place, [record.offset for record in read.records], read.high_watermark)


def run(seed: int, budget_bytes: int = 3 << 20) -> Ledger:
    simulation = Simulation(seed)
    node = simulation.start(make_node)
    start_ms = simulation.clock.now_ms() - 6 * HOURS_MS
    program = draw_program(seed, start_ms, budget_bytes=budget_bytes, most_rounds=4, with_tls=False)
    admin = node.connect(name="admin")
    for topic in program.topics:
        settings = {name.replace(".", "_"): value for name, value in topic.settings.items()}
        create_topics(admin, topic.name, partitions=topic.partitions, **settings)
    names = [topic.name for topic in program.topics]
    routes = routes_of(admin.ask(metadata_request(names), METADATA_VERSION))
    ledger = Ledger()
    lanes = [lane for lane in program.lanes if lane.client_codec is None]
    run_lanes(simulation, connector(node), {lane.name: talk(lane, routes, ledger) for lane in lanes})
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


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1040))
def test_more_seeds(seed: int) -> None:
    ledger = run(seed, budget_bytes=12 << 20)
    assert not ledger.differences, "\n".join(ledger.differences)
