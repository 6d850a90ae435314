"""`Cluster`: several brokers that replicate, each in a process of its own, gone at the end.

    from ottla.testing import Cluster

    with Cluster(3) as cluster:
        cluster.create_topic("orders")
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        cluster.leader_of("orders").kill()
        ...

Each of them is a `Broker`, with everything that one can be asked for, and a controller as well: two of three are enough
for the cluster to continue. Topics have three replicas, or as many as there are brokers.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_bytes
from types import TracebackType
from typing import Final, Self

from ottla.base.errors import OttlaError
from ottla.base.ids import Uuid, random_uuid, uuid_text
from ottla.testing.broker.own_broker import Broker
from ottla.testing.broker.secured_listener import SecuredListeners
from ottla.testing.broker.topics import ask, create_topic, wait_for_partitions
from ottla.testing.free_ports import free_ports
from ottla.wire.messages import MetadataRequest

_METADATA_VERSION: Final = 7
_MOST_REPLICAS: Final = 3
_HAS_LEADER_WITHIN_S: Final = 30.0
_POLL_S: Final = 0.02


class NoLeader(OttlaError):
    """A partition has no leader, and did not get one in time."""


class Cluster:
    """Brokers 1 to `count`; `cluster[2]` is one of them. `settings` are for each, under Kafka's names.

    A `directory` that is given outlives the cluster. `security` is the protocol that clients have to speak: SSL,
    SASL_PLAINTEXT or SASL_SSL.
    """

    def __init__(
        self,
        count: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        directory: Path | None = None,
        faults: bool = True,
        security: str | None = None,
    ) -> None:
        self._is_temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-cluster-")) if directory is None else directory
        ports = free_ports(2 * count)
        self._ports = dict(enumerate(ports[:count], 1))
        controllers = dict(enumerate(ports[count:], 1))
        self.secured = None if security is None else SecuredListeners(security, count)
        common = {**_common(controllers), **(settings or {})}
        self._brokers = {
            number: Broker(
                {**common, **_own(number, port, controllers[number], self.secured)},
                directory=self.directory / f"node-{number}",
                faults=faults,
                port=port,
            )
            for number, port in self._ports.items()
        }

    @property
    def bootstrap(self) -> str:
        """What clients call `bootstrap.servers`: all brokers, whether they run or not."""
        if self.secured is not None:
            return self.secured.bootstrap
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    @property
    def client_settings(self) -> dict[str, str]:
        """What a client needs to connect, under Kafka's names; with `security`, certificates and a login, too."""
        return {"bootstrap.servers": self.bootstrap} if self.secured is None else dict(self.secured.client)

    def __getitem__(self, number: int) -> Broker:
        return self._brokers[number]

    def __iter__(self) -> Iterator[Broker]:
        return iter(self._brokers.values())

    def __len__(self) -> int:
        return len(self._brokers)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Starts the brokers that do not run: at once, because one alone waits for a majority."""
        _format(self.directory, self._brokers)
        down = [broker for broker in self if not broker.is_running]
        with ThreadPoolExecutor(max(len(down), 1)) as threads:
            list(threads.map(Broker.start, down))

    def close(self) -> None:
        for broker in self:
            broker.close()
        if self._is_temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def create_topic(self, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None) -> None:
        """Comes back when the topic can be used at every broker. Raises `TopicRefused` when the cluster says no."""
        addresses = self._addresses()
        create_topic(addresses[0], name, partitions=partitions, settings=settings)
        for address in addresses:
            wait_for_partitions(address, name, partitions)
        for partition in range(partitions):
            self.leader_of(name, partition)

    def leader_of(self, topic: str, partition: int = 0) -> Broker:
        """The broker that leads a partition, waited for while there is none. Raises `NoLeader`."""
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        deadline_s = time.monotonic() + _HAS_LEADER_WITHIN_S
        while time.monotonic() < deadline_s:
            (found,) = ask(self._addresses()[0], asked, _METADATA_VERSION).topics
            leader = {one.partition_index: one.leader_id for one in found.partitions}.get(partition, -1)
            if leader in self._brokers and self[leader].is_running:
                return self[leader]
            time.sleep(_POLL_S)
        raise NoLeader(f"{topic}-{partition} has no leader that runs after {_HAS_LEADER_WITHIN_S:.0f} s")

    def _addresses(self) -> list[tuple[str, int]]:
        running = [("127.0.0.1", port) for number, port in self._ports.items() if self[number].is_running]
        if not running:
            raise NoLeader("no broker of the cluster runs")
        return running


def _common(controllers: Mapping[int, int]) -> dict[str, object]:
    copies = min(len(controllers), _MOST_REPLICAS)
    in_sync = max(copies - 1, 1)
    return {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{number}@127.0.0.1:{port}" for number, port in controllers.items()),
        "default.replication.factor": copies,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 5,
        # So that a broker which is cut off and still alive is noticed within a test's patience.
        "broker.session.timeout.ms": 2000,
        "broker.heartbeat.interval.ms": 400,
    }


def _own(number: int, port: int, controller_port: int, secured: SecuredListeners | None) -> dict[str, object]:
    listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
    of_listeners = {"listeners": listeners} if secured is None else secured.broker(listeners, number - 1)
    return {"node.id": number, **of_listeners}


def _format(directory: Path, numbers: Mapping[int, Broker]) -> None:
    """Directories of one cluster, unless they are that already."""
    from ottla.log.disk import OsDisk
    from ottla.node.clock import SystemClock, java_date
    from ottla.node.storage.formatting import FormatPlan, Surroundings, format_storage

    def new_uuid() -> Uuid:
        return random_uuid(token_bytes)

    world = Surroundings(
        OsDisk(), SystemClock(), java_date(time.time_ns() // 1_000_000), new_uuid, lambda: token_bytes(20)
    )
    cluster_id = uuid_text(new_uuid())
    for number in numbers:
        data = directory / f"node-{number}" / "data"
        if not (data / "meta.properties").exists():
            data.mkdir(parents=True, exist_ok=True)
            format_storage(FormatPlan(cluster_id, number, (str(data),), str(data)), world, lambda _line: None)
