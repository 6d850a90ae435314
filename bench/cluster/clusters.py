"""The two clusters that are compared: three nodes each, broker and controller in one, with Apache Kafka's defaults.

Their settings are the same file but for ports and directories. Both are formatted with our `kafka-storage`, whose
directories Kafka takes as its own.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "broker")]

from contenders import JAVA_OPTIONS, SETTINGS  # noqa: E402  (what is shared lies beside)
from wire_client import WireClient  # noqa: E402

sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

from tests.chaos.chaos_cluster import free_ports  # noqa: E402
from tests.interop.apache_kafka import libraries  # noqa: E402

from ottla import Admin, NewTopic  # noqa: E402
from ottla.admin import ElectionType, TopicDescription  # noqa: E402
from ottla.errors import KafkaError  # noqa: E402

CLUSTER_ID = "b3R0bGEtLWJlbmNoLS0wMQ"
NODE_IDS = (1, 2, 3)
WAIT_S = 180.0
REPLICATED = {
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "group.initial.rebalance.delay.ms": 0,
}


class Cluster:
    """Formatted, not started. A node is a process; `kill` and `stop` wait for its end."""

    def __init__(self, name: str, config: Mapping[str, object] | None = None) -> None:
        self.name = name
        self.directory = Path(tempfile.mkdtemp(prefix=f"ottla-bench-{name}-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        ports = free_ports(2 * len(NODE_IDS))
        self.addresses = {node_id: f"127.0.0.1:{ports[place]}" for place, node_id in enumerate(NODE_IDS)}
        voters = {node_id: f"127.0.0.1:{ports[len(NODE_IDS) + place]}" for place, node_id in enumerate(NODE_IDS)}
        for node_id in NODE_IDS:
            settings = {
                "process.roles": "broker,controller",
                "node.id": node_id,
                "listeners": f"PLAINTEXT://{self.addresses[node_id]},CONTROLLER://{voters[node_id]}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": ",".join(f"{one}@{address}" for one, address in voters.items()),
                "log.dirs": self.data(node_id),
                **REPLICATED,
                **SETTINGS,
                **(config or {}),
            }
            self._file(node_id).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            format_directory(self._file(node_id))

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    def data(self, node_id: int) -> Path:
        return self.directory / f"data-{node_id}"

    def _file(self, node_id: int) -> Path:
        return self.directory / f"{node_id}.properties"

    # Nodes

    def start(self, *node_ids: int) -> None:
        """Returns once the nodes are brokers of the cluster."""
        for node_id in node_ids:
            with self._file(node_id).with_suffix(".log").open("ab") as log:
                self._processes[node_id] = subprocess.Popen(
                    node_command(self.name, self._file(node_id)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            until(
                lambda: {*node_ids} <= {node.id for node in admin.describe_cluster().nodes}, f"{self.name} is started"
            )

    def kill(self, node_id: int) -> None:
        self._end(node_id, signal.SIGKILL)

    def stop(self, node_id: int) -> None:
        self._end(node_id, signal.SIGTERM)

    def _end(self, node_id: int, how: signal.Signals) -> None:
        process = self._processes.pop(node_id)
        process.send_signal(how)
        process.wait(WAIT_S)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    # What it costs

    def cpu_s(self) -> float:
        """Processor time of all nodes that run, of the user and of the kernel."""
        return sum(cpu_s_of(process.pid) for process in self._processes.values())

    def rss_mb(self) -> float:
        return sum(rss_mb_of(process.pid) for process in self._processes.values())

    # Topics

    def create_topic(self, name: str, partitions: int, replicas: Mapping[int, list[int]] | None = None) -> None:
        """Returns once every partition has its leader, and all replicas are in sync."""
        topic = NewTopic(name, assignment=replicas) if replicas else NewTopic(name, partitions, len(NODE_IDS))
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topics([topic]).raise_first()
        self.wait_until_in_sync(name)

    def delete_topic(self, name: str) -> None:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.delete_topics([name]).raise_first()

    def described(self, topic: str) -> TopicDescription:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            return admin.describe_topics([topic])[topic]

    def wait_until_in_sync(self, topic: str) -> None:
        def is_in_sync() -> bool:
            return all(
                one.leader is not None and len(one.in_sync_replicas) == len(one.replicas)
                for one in admin.describe_topics([topic])[topic].partitions
            )

        with Admin(bootstrap_servers=self.bootstrap) as admin:
            until(is_in_sync, f"{topic} of {self.name} is in sync")

    def leaders_that_answer(self, topic: str) -> list[int]:
        """By partition. A broker hears that it leads a little later than others may be told so."""
        leaders: list[int] = []

        def do_all_answer() -> bool:
            leaders[:] = [one.leader for one in self.described(topic).partitions if one.leader is not None]
            for index, leader in enumerate(leaders):
                with WireClient(self.addresses[leader]) as client:
                    try:
                        client.end_offset(topic, index)
                    except RuntimeError:
                        return False
            return True

        until(do_all_answer, f"the leaders of {topic} answer")
        return leaders

    def lead_by_preference(self) -> None:
        """Every partition is led by the first of its replicas again."""
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.elect_leaders(ElectionType.PREFERRED).raise_first()
            until(
                lambda: all(
                    one.leader == one.replicas[0]
                    for topic in admin.describe_topics([topic.name for topic in admin.list_topics()]).values()
                    for one in topic.partitions
                ),
                f"the preferred replicas of {self.name} lead",
            )

    def active_controller(self) -> int:
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            return admin.describe_metadata_quorum().leader_id


def node_command(name: str, properties: Path) -> list[str]:
    if name == "kafka":
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *JAVA_OPTIONS, quiet, "-cp", f"{libraries()}/*", "kafka.Kafka", str(properties)]
    return [sys.executable, "-m", "ottla.cli.main", "start", "--config", str(properties)]


def format_directory(properties: Path) -> None:
    call = "import sys; from ottla.cli.storage import main; sys.exit(main())"
    words = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
    subprocess.run([sys.executable, "-c", call, *words], check=True, capture_output=True, timeout=WAIT_S)


@contextmanager
def clusters(names: list[str], config: Mapping[str, object] | None = None) -> Iterator[list[Cluster]]:
    """Started."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # ours has its bytecode beside it, as Kafka its classes
    made: list[Cluster] = []
    try:
        for name in names:
            made.append(Cluster(name, config))
            made[-1].start(*NODE_IDS)
        yield made
    finally:
        for cluster in made:
            cluster.close()


def cpu_s_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb_of(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def until(is_so: Callable[[], bool], what: str, every_s: float = 0.1) -> None:
    ends_s = time.monotonic() + WAIT_S
    while True:
        try:
            if is_so():
                return
        except KafkaError:
            pass
        if time.monotonic() > ends_s:
            raise RuntimeError(f"not after {WAIT_S:.0f} s: {what}")
        time.sleep(every_s)
