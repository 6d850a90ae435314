"""The two nodes that are compared, with Apache Kafka's own defaults but for what a benchmark of one node needs."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "bench"), str(ROOT / "src")]

from tests.interop.apache_kafka import ApacheKafka  # noqa: E402  (it lives beside the tests)
from wire_client import WireClient  # noqa: E402

from ottla.testing.free_ports import free_ports  # noqa: E402
from ottla.testing.node import RunningNode  # noqa: E402

SETTINGS = {
    "log.retention.check.interval.ms": 1000,
    "log.segment.delete.delay.ms": 500,  # what a round wrote does not lie about in the next
    "log.cleaner.enable": "false",
    "socket.listen.backlog.size": 1000,  # for the part that opens ten thousand connections at once
}
# As Kafka's start script has them.
JAVA_OPTIONS = ("-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")


@dataclass(slots=True)
class Contender:
    name: str
    node: ApacheKafka | RunningNode

    @property
    def bootstrap(self) -> str:
        return self.node.bootstrap

    @property
    def data(self) -> Path:
        return self.node.data

    def start_timed(self) -> float:
        """Starts the node; seconds from the process's start to its first answer to a Metadata request."""
        started = time.perf_counter()
        self.node.start()
        with WireClient(self.bootstrap) as client:
            client.metadata([])
        return time.perf_counter() - started

    def cpu_s(self) -> float:
        """Processor time that the node has used so far, of the user and of the kernel."""
        fields = Path(f"/proc/{self.node.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self) -> float:
        return self._memory_mb("VmRSS")

    def peak_rss_mb(self) -> float:
        return self._memory_mb("VmHWM")

    def _memory_mb(self, field: str) -> float:
        status = Path(f"/proc/{self.node.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field)) / 1024


@contextmanager
def contenders(names: list[str], config: Mapping[str, object] | None = None) -> Iterator[list[Contender]]:
    """Formatted, not started."""
    made = [MAKERS[name]({**SETTINGS, **(config or {})}) for name in names]
    try:
        yield made
    finally:
        for contender in made:
            contender.node.close()


def _kafka(config: Mapping[str, object]) -> Contender:
    node = ApacheKafka(config=config, java_options=JAVA_OPTIONS)
    node.format()
    return Contender("kafka", node)


def _ottla(config: Mapping[str, object]) -> Contender:
    # As it is installed, with its bytecode beside it, as Kafka has its classes compiled; the first start may write it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    (port,) = free_ports(1)
    return Contender("ottla", RunningNode(config=config, port=port))


MAKERS: dict[str, Callable[[Mapping[str, object]], Contender]] = {"kafka": _kafka, "ottla": _ottla}


def scratch_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ottla-bench-")
