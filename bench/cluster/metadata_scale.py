"""Three controllers and the metadata of very many partitions: starting, memory, one topic more, a snapshot, a failover.

Both kinds start from the same snapshot. Brokers are in it and not there. A controller counts as active once it has
created a topic; that is also what a failover is measured by, from `kill -9` of the active one.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from statistics import median

from clusters import format_directory, free_ports, node_command, rss_mb_of
from metadata_records import BROKER_IDS, write_metadata
from report import Row, compared
from wire_client import WireClient

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest

NODE_IDS = (1, 2, 3)
WAIT_S = 1500.0  # a controller of Kafka with a million partitions takes minutes
HEAP_MB = 4096
CREATED = 5
QUIET_S = 15.0
_numbers = count()


class Controllers:
    """Three controllers of one kind, over metadata with so many partitions."""

    def __init__(self, name: str, partitions: int) -> None:
        self.name = name
        self.directory = Path(tempfile.mkdtemp(prefix=f"ottla-bench-{name}-"))
        ports = free_ports(len(NODE_IDS))
        self.addresses = {node_id: f"127.0.0.1:{port}" for node_id, port in zip(NODE_IDS, ports, strict=True)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        made: Path | None = None
        for node_id in NODE_IDS:
            settings = {
                "process.roles": "controller",
                "node.id": node_id,
                "listeners": f"CONTROLLER://{self.addresses[node_id]}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(f"{one}@{address}" for one, address in self.addresses.items()),
                "log.dirs": self._data(node_id),
                "broker.session.timeout.ms": 3_600_000,  # nobody beats for the brokers
                "leader.imbalance.check.interval.seconds": 3600,
                "metadata.log.max.snapshot.interval.ms": 0,
                "metadata.log.max.record.bytes.between.snapshots": 1_000_000,
            }
            self._file(node_id).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            format_directory(self._file(node_id))
            metadata = self._data(node_id) / "__cluster_metadata-0"
            if made is None:
                made = write_metadata(metadata, partitions, [*NODE_IDS])
            else:
                shutil.copytree(made.parent, metadata)

    def _data(self, node_id: int) -> Path:
        return self.directory / f"data-{node_id}"

    def _file(self, node_id: int) -> Path:
        return self.directory / f"{node_id}.properties"

    def start(self, *node_ids: int) -> None:
        for node_id in node_ids:
            command = node_command(self.name, self._file(node_id))
            heap = [f"-Xmx{HEAP_MB}m" if word == "-Xmx1G" else word for word in command if word != "-Xms1G"]
            with self._file(node_id).with_suffix(".log").open("ab") as log:
                self._processes[node_id] = subprocess.Popen(heap, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.kill()
        process.wait()

    def close(self) -> None:
        for node_id in [*self._processes]:
            self.kill(node_id)
        shutil.rmtree(self.directory, ignore_errors=True)

    def rss_mb(self) -> float:
        return sum(rss_mb_of(process.pid) for process in self._processes.values())

    def create_topic(self, partitions: int = 1) -> int:
        """At whichever controller is active, which is told; asks until one is."""
        ends_s = time.monotonic() + WAIT_S
        name = f"new-{next(_numbers)}"
        assignments = [
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=[*BROKER_IDS])
            for index in range(partitions)
        ]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        while time.monotonic() < ends_s:
            for node_id in self._processes:
                with suppress(OSError), WireClient(self.addresses[node_id]) as client:
                    (made,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7).topics
                    if made.error_code in (
                        ErrorCode.NONE,
                        ErrorCode.TOPIC_ALREADY_EXISTS,
                    ):  # made before, and not told in time
                        return node_id
            time.sleep(0.01)
        raise RuntimeError(f"no controller of {self.name} creates a topic within {WAIT_S:.0f} s")

    def snapshots(self) -> set[Path]:
        return {path for node_id in self._processes for path in self._data(node_id).glob("*/*.checkpoint")}


def measure_metadata(names: list[str], partitions: int) -> list[Row]:
    """One after the other: the controllers of both kinds together would not fit into a small machine's memory."""
    found: dict[str, dict[str, list[float]]] = {}
    for name in names:
        controllers = Controllers(name, partitions)
        try:
            for what, value in _measured(controllers).items():
                found.setdefault(what, {}).setdefault(name, []).append(value)
        finally:
            controllers.close()
    shows: dict[str, Callable[[float], str]] = {"MB": lambda mb: f"{mb:.0f} MB", "s": lambda s: f"{s:.3f} s"}
    return [compared(what, values, shows[what.rpartition(", ")[2]], at_most=1.0) for what, values in found.items()]


def _measured(controllers: Controllers) -> dict[str, float]:
    began_s = time.monotonic()
    controllers.start(*NODE_IDS)
    active = controllers.create_topic()
    started_s = time.monotonic() - began_s
    idle_mb = controllers.rss_mb()
    creations_s = []
    for _ in range(CREATED):
        began_s = time.monotonic()
        active = controllers.create_topic()
        creations_s.append(time.monotonic() - began_s)
    began_s = time.monotonic()
    controllers.kill(active)
    controllers.create_topic()
    failed_over_s = time.monotonic() - began_s
    controllers.start(active)
    snapshot_s = _snapshot_s(controllers)
    return {
        "start, with the snapshot loaded, to the first topic, s": started_s,
        "memory of three controllers, MB": idle_mb,
        "one topic more, s": median(creations_s),
        "kill -9 of the active controller to a topic created, s": failed_over_s,
        "a snapshot, from the record that makes it due, s": snapshot_s,
        "memory of three controllers after all that, MB": controllers.rss_mb(),
    }


def _snapshot_s(controllers: Controllers) -> float:
    """Until one of the controllers has written it: about a megabyte of records makes it due.

    A controller that has just started, or become active, may be writing one of its own accord: that one is waited for.
    """
    quiet_since_s = time.monotonic()
    before = controllers.snapshots()
    while time.monotonic() < quiet_since_s + QUIET_S:
        if _is_writing(controllers) or controllers.snapshots() != before:
            quiet_since_s = time.monotonic()
            before = controllers.snapshots()
        time.sleep(0.05)
    while True:
        began_s = time.monotonic()
        controllers.create_topic(2000)
        ends_s = time.monotonic() + 0.2
        while time.monotonic() < ends_s or _is_writing(controllers):
            if controllers.snapshots() - before:
                return time.monotonic() - began_s
            time.sleep(0.01)


def _is_writing(controllers: Controllers) -> bool:
    return any(controllers.directory.glob("data-*/*/*.part"))
