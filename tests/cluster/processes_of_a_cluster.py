"""A cluster of real processes for tests, in a directory of its own, and gone at the end."""

import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ottla.cli.local_cluster.cluster_layout import NodeFiles, make_cluster
from ottla.cli.local_cluster.node_process import (
    running_pid,
    send_signal,
    start_process,
    wait_until_gone,
    wait_until_ready,
)

WAIT_S = 60.0


class ClusterOfProcesses:
    """Started when it is entered; every process is killed at the end."""

    def __init__(self, directory: Path, count: int = 3, settings: str = "") -> None:
        self.nodes = {node.node_id: node for node in make_cluster(directory, count, port=0)}
        for node in self.nodes.values():
            with node.properties.open("a") as file:
                file.write(settings)
        self._children = []

    @staticmethod
    def free_ports(count: int) -> list[int]:
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        return ports

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    def running(self) -> list[NodeFiles]:
        return [node for node in self.nodes.values() if running_pid(node) is not None]

    def __enter__(self) -> "ClusterOfProcesses":
        try:
            self.start(*self.nodes)
        except BaseException:
            self.close()
            raise
        return self

    def start(self, *node_ids: int) -> None:
        self._children += [start_process(self.nodes[node_id]) for node_id in node_ids]
        wait_until_ready([self.nodes[node_id] for node_id in node_ids], WAIT_S)

    def kill(self, node_id: int) -> None:
        assert send_signal(self.nodes[node_id], signal.SIGKILL)
        self._wait_until_gone([self.nodes[node_id]])

    def stop(self, node_id: int) -> None:
        assert send_signal(self.nodes[node_id], signal.SIGTERM)
        self._wait_until_gone([self.nodes[node_id]])

    def _wait_until_gone(self, nodes: list[NodeFiles]) -> None:
        assert not wait_until_gone(nodes, WAIT_S), "nodes that do not end"

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def eventually(look: Callable[[], bool], what: str) -> None:
    ends_s = time.monotonic() + WAIT_S
    while not look():
        assert time.monotonic() < ends_s, f"{what}: not after {WAIT_S:.0f} s"
        time.sleep(0.05)
