"""The nodes of a cluster together: started, watched, started again when they end by themselves, and stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ottla.cli.local_cluster.cluster_layout import NodeFiles
from ottla.cli.local_cluster.node_process import (
    running_pid,
    send_signal,
    start_process,
    wait_until_gone,
    wait_until_ready,
)

START_S: Final = 60.0
STOP_S: Final = 60.0
_LOOK_S: Final = 0.2
_SHOW_S: Final = 1.0
_AGAIN_S: Final = 2.0
"""How long a node that ended by itself is left down."""


def supervisor_path(directory: Path) -> Path:
    return directory / "supervisor.pid"


class Supervisor:
    """Of the clusters's nodes, in the process of `ottla cluster start`."""

    def __init__(self, directory: Path, nodes: list[NodeFiles]) -> None:
        self._directory = directory
        self._nodes = nodes
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._ended_s: dict[int, float] = {}

    def start(self) -> None:
        """Returns when all nodes are ready. Raises `NodeProblem`, and then none runs."""
        supervisor_path(self._directory).write_text(str(os.getpid()))
        for node in self._nodes:
            if running_pid(node) is None:
                self._children[node.node_id] = start_process(node)
        try:
            wait_until_ready(self._nodes, START_S)
        except BaseException:
            self.stop()
            raise

    def watch(self, show: Callable[[], None]) -> None:
        """Until it is interrupted."""
        shown_s = 0.0
        while True:
            self._look()
            if time.monotonic() - shown_s >= _SHOW_S:
                show()
                shown_s = time.monotonic()
            time.sleep(_LOOK_S)

    def _look(self) -> None:
        for node in self._nodes:
            child = self._children.get(node.node_id)
            if child is not None:
                child.poll()  # so that one that has ended is no zombie
            if running_pid(node) is not None or node.down.exists():
                self._ended_s.pop(node.node_id, None)
            elif time.monotonic() - self._ended_s.setdefault(node.node_id, time.monotonic()) >= _AGAIN_S:
                print(f"\rnode {node.node_id} has ended, and is started again", file=sys.stderr)
                self._ended_s.pop(node.node_id)
                self._children[node.node_id] = start_process(node)

    def stop(self) -> None:
        stop_nodes(self._nodes)
        supervisor_path(self._directory).unlink(missing_ok=True)


def stop_nodes(nodes: list[NodeFiles]) -> None:
    """In good order: brokers alone first, then one controller after the other, the last one as there is nobody left.

    So each of them hands over what it leads while there is a quorum that can decide on it.
    """
    for node in nodes:
        if running_pid(node) is not None:
            node.down.touch()
    for node in sorted(nodes, key=lambda node: node.node_id, reverse=True):
        if send_signal(node, signal.SIGTERM) and wait_until_gone([node], STOP_S):
            send_signal(node, signal.SIGKILL)
    wait_until_gone(nodes, STOP_S)
