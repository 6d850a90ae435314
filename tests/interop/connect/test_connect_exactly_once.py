"""Kafka Connect on nodes of ours: lines of files through a topic to files, with workers that are killed.

The source connector writes exactly once (KIP-618): the lines of a poll and the place after them are one transaction,
and a worker that takes a task over fences the one before it. The sink is at least once, as Connect has it. Meanwhile
other clients use the nodes.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla import Admin, Consumer, NewTopic, TopicPartition
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses
from tests.interop.connect.kafka_connect import FILE_SINK, FILE_SOURCE, ConnectCluster
from tests.interop.connect.steady_traffic import SteadyTraffic

pytestmark = pytest.mark.interop

LINES = 200_000
LINES_AGAIN = 2_000
PARTITIONS = 4


@pytest.fixture(params=[1, 3])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterOfProcesses]:
    with ClusterOfProcesses(tmp_path / "nodes", request.param) as cluster:
        yield cluster


def test_lines_come_through_exactly_once_while_workers_are_killed(cluster: ClusterOfProcesses, tmp_path: Path) -> None:
    replicas = len(cluster.nodes)
    wanted = [f"line {number} of {LINES}" for number in range(LINES)]
    lines, copy = tmp_path / "lines", tmp_path / "copy"
    lines.write_text("".join(f"{line}\n" for line in wanted))
    with ExitStack() as stack:
        admin = stack.enter_context(Admin(bootstrap_servers=cluster.bootstrap))
        admin.create_topics(NewTopic("lines", PARTITIONS, replicas))
        stack.enter_context(SteadyTraffic(cluster.bootstrap, replicas))
        connect = stack.enter_context(ConnectCluster(tmp_path, cluster.bootstrap, workers=2, replicas=replicas))
        connect.create("sink", {"connector.class": FILE_SINK, "topics": "lines", "file": copy, "tasks.max": 1})
        connect.create("source", {"connector.class": FILE_SOURCE, "file": lines, "topic": "lines", "batch.size": 250})

        def written() -> int:
            return sum(ends(cluster, "lines").values())

        begun_s = time.monotonic()
        for part, name in enumerate(("source", "sink", "source"), 1):
            connect.wait(lambda part=part: written() > part * LINES // 5, f"part {part} of the lines is written")
            worker = connect.number_of(connect.worker_of(name))
            assert written() < LINES, "the source is through before a worker is killed"
            print(f"worker {worker} is killed, which runs the {name}, at offset {written()}")
            connect.kill(worker)
            connect.start(worker)
            # With both of them there again the tasks are spread anew.
            connect.wait(lambda: connect.worker_of("source") != connect.worker_of("sink"), "the tasks are spread")

        def place() -> object:
            return [one["offset"]["position"] for one in connect.offsets_of("source")]

        connect.wait(lambda: place() == [lines.stat().st_size], "the source is through")
        records = committed(cluster, "lines")
        assert Counter(record.value for record in records) == Counter(wanted)
        after_last = {record.partition: record.offset + 1 for record in records}

        def sink_places() -> dict[int, int]:
            found = connect.offsets_of("sink")
            return {one["partition"]["kafka_partition"]: one["offset"]["kafka_offset"] for one in found}

        connect.wait(lambda: sink_places() == after_last, "the sink is through")
        there = Counter(copy.read_text().splitlines())
        assert set(there) == set(wanted)
        print(
            f"{len(wanted):,} lines of the source in {time.monotonic() - begun_s:.0f} s, each once; "
            f"the sink wrote {there.total() - len(there)} again"
        )

        # Offsets that are taken back: the same file once more, and a task that begins at its start.
        connect.ask("PUT", "/connectors/source/stop")
        connect.wait(lambda: state_of(connect, "source") == "STOPPED", "the source is stopped")
        lines.write_text("".join(f"{line}\n" for line in wanted[:LINES_AGAIN]))
        connect.wait(lambda: connect.ask("DELETE", "/connectors/source/offsets"), "the place is forgotten")
        assert connect.offsets_of("source") == []
        connect.ask("PUT", "/connectors/source/resume")
        connect.wait(lambda: place() == [lines.stat().st_size], "the source is through again")
        again = Counter(record.value for record in committed(cluster, "lines"))
        assert again == Counter(wanted) + Counter(wanted[:LINES_AGAIN])


def state_of(connect: ConnectCluster, name: str) -> str:
    status = connect.ask("GET", f"/connectors/{name}/status")
    return status["connector"]["state"] if status and not status["tasks"] else ""


def ends(cluster: ClusterOfProcesses, topic: str) -> dict[int, int]:
    """Where each partition ends for a reader of what is committed."""
    with Consumer(bootstrap_servers=cluster.bootstrap, isolation_level="read_committed") as consumer:
        found = consumer.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)])
    return {partition.partition: end for partition, end in found.items()}


class Line(NamedTuple):
    partition: int
    offset: int
    value: str


def committed(cluster: ClusterOfProcesses, topic: str) -> list[Line]:
    """All that is committed, each partition in its order."""
    found: list[Line] = []
    with Consumer(bootstrap_servers=cluster.bootstrap, isolation_level="read_committed") as consumer:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        until = consumer.end_offsets(partitions)
        while any(consumer.position(partition) < end for partition, end in until.items()):
            for record in consumer.poll(1.0):
                assert record.value is not None
                found.append(Line(record.partition, record.offset, record.value.decode()))
    return found
