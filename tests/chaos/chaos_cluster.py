"""Three nodes, each a process of its own, of ours, of ours broken on purpose, of Apache Kafka's, or some of each.

What nodes say to each other goes through `NodeLinks`; clients connect directly. A node that is down may come back as
one of the other implementation, on the same directories.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ottla import Admin
from ottla.errors import KafkaError
from ottla.testing.free_ports import free_ports
from tests.chaos.node_links import NodeLinks
from tests.chaos.node_machines import NodeMachines

NODE_IDS = (1, 2, 3)
TIMEOUT_S = 120.0
CLUSTER_ID = "b3R0bGEtLWNoYW9zLS0wMQ"
APACHE_KAFKA = "apache-kafka"
OURS = "ottla"
MIXED = "mixed"
TARGETS = {
    OURS: (OURS, OURS, OURS),
    APACHE_KAFKA: (APACHE_KAFKA, APACHE_KAFKA, APACHE_KAFKA),
    MIXED: (APACHE_KAFKA, OURS, OURS),
}
# So that a node that is gone is noticed within the time that a fault lasts.
SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "INTERNAL",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 400,
    "replica.lag.time.max.ms": 3000,
    "controller.quorum.election.timeout.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 2000,
    "min.insync.replicas": 2,
    "default.replication.factor": 3,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.num.partitions": 4,
    "transaction.state.log.min.isr": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.session.timeout.ms": 6000,
}


class ChaosCluster:
    """`target` is one of `TARGETS`. `canary` is a name of `ottla.testing.sim.canaries`: nodes of ours are broken so.

    `kinds` is what each node is, or will be when it is started next.
    """

    def __init__(self, target: str = OURS, canary: str | None = None) -> None:
        self.kinds = dict(zip(NODE_IDS, TARGETS[target], strict=True))
        self.is_mixed = target == MIXED
        self.canary = canary
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-chaos-"))
        self.machines = NodeMachines(self.directory)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.links = NodeLinks(lambda: {node_id: process.pid for node_id, process in [*self._processes.items()]})
        names = ("client", "internal", "controller", "internal_proxy", "controller_proxy")
        ports = iter(free_ports(len(names) * len(NODE_IDS)))
        self._ports = {node_id: {name: next(ports) for name in names} for node_id in NODE_IDS}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{ports['client']}" for ports in self._ports.values())

    def __enter__(self) -> "ChaosCluster":
        try:
            self.machines.make(NODE_IDS)
            for node_id, ports in self._ports.items():
                self.links.serve(node_id, ports["internal_proxy"], ports["internal"])
                self.links.serve(node_id, ports["controller_proxy"], ports["controller"])
                self._write_settings(node_id)
                self._format(node_id)
            for node_id in NODE_IDS:
                self.start(node_id)
            self.wait_until_whole()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()
        self.links.close()
        self.machines.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    # Nodes

    def start(self, node_id: int) -> None:
        with self.log(node_id).open("ab") as log:
            self._processes[node_id] = subprocess.Popen(
                self._command(node_id),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.machines.environment(node_id),
            )

    def kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.kill()
        process.wait()

    def stop(self, node_id: int) -> None:
        """A clean stop, in which the node hands over what it leads."""
        process = self._processes.pop(node_id)
        process.terminate()
        try:
            process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise SystemExit(f"node {node_id} does not stop\n{self.end_of_log(node_id)}") from None

    def swap(self, node_id: int) -> None:
        """The node, which is down, will come back as one of the other implementation."""
        assert node_id not in self._processes, "a node that runs is what it is"
        self.kinds[node_id] = APACHE_KAFKA if self.kinds[node_id] == OURS else OURS

    def pause(self, node_id: int) -> None:
        self._processes[node_id].send_signal(signal.SIGSTOP)

    def resume(self, node_id: int) -> None:
        self._processes[node_id].send_signal(signal.SIGCONT)

    def ended(self) -> list[int]:
        """Nodes that ended by themselves."""
        return [node_id for node_id, process in self._processes.items() if process.poll() is not None]

    def wait_until_whole(self) -> None:
        """All brokers are there, and every partition has its leader and all replicas in sync."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not self._is_whole():
            if time.monotonic() > deadline_s or self.ended():
                ends = [f"node {node_id}:\n{self.end_of_log(node_id)}" for node_id in self.ended() or NODE_IDS]
                raise SystemExit("the cluster is not whole, and does not become so\n" + "\n".join(ends))
            time.sleep(0.2)

    def _is_whole(self) -> bool:
        try:
            with Admin(bootstrap_servers=self.bootstrap, default_api_timeout_ms=5000) as admin:
                if len(admin.describe_cluster().nodes) < len(NODE_IDS):
                    return False
                topics = admin.describe_topics([topic.name for topic in admin.list_topics()])
                return all(
                    partition.leader is not None and len(partition.in_sync_replicas) == len(NODE_IDS)
                    for topic in topics.values()
                    for partition in topic.partitions
                )
        except (KafkaError, TimeoutError):
            return False

    # Files and commands

    def log(self, node_id: int) -> Path:
        return self.directory / f"{node_id}.log"

    def end_of_log(self, node_id: int) -> str:
        return "\n".join(self.log(node_id).read_text(errors="replace").splitlines()[-20:])

    def _file(self, node_id: int) -> str:
        return str(self.directory / f"{node_id}.properties")

    def _write_settings(self, node_id: int) -> None:
        own = self._ports[node_id]
        settings = {
            **SETTINGS,
            "node.id": node_id,
            "log.dirs": self.machines.data(node_id) / "log",
            "controller.quorum.voters": ",".join(
                f"{one}@127.0.0.1:{ports['controller_proxy']}" for one, ports in self._ports.items()
            ),
            "listeners": _listeners(own["client"], own["internal"], own["controller"]),
            "advertised.listeners": _listeners(own["client"], own["internal_proxy"], own["controller_proxy"]),
        }
        Path(self._file(node_id)).write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    def _format(self, node_id: int) -> None:
        words = ["format", "-t", CLUSTER_ID, "-c", self._file(node_id)]
        if self.kinds[node_id] == APACHE_KAFKA:
            from tests.interop.apache_kafka import java

            unserved_off = ["-f", "share.version=0", "-f", "streams.version=0"] if OURS in self.kinds.values() else []
            java("kafka.tools.StorageTool", *words, *unserved_off)
            return
        call = "import sys; from ottla.cli.storage import main; sys.exit(main())"
        done = subprocess.run([sys.executable, "-c", call, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def _command(self, node_id: int) -> list[str]:
        if self.kinds[node_id] == APACHE_KAFKA:
            from tests.interop.apache_kafka import QUICK_START, libraries

            return ["java", *QUICK_START, "-Xmx400m", "-cp", f"{libraries()}/*", "kafka.Kafka", self._file(node_id)]
        start = "from ottla.cli.start import server_start; import sys"
        call = f"{start}; sys.exit(server_start())"
        if self.canary is not None:
            broken = "from ottla.testing.sim.canaries.canaries import CANARIES"
            call = f"{start}; {broken}\nwith CANARIES[{self.canary!r}].broken(): sys.exit(server_start())"
        return [sys.executable, "-c", call, self._file(node_id)]


def _listeners(client: int, internal: int, controller: int) -> str:
    return f"CLIENT://127.0.0.1:{client},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}"
