"""The nodes of a cluster together: started, watched, started again when they end by themselves, and stopped."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ottla.cli.local_cluster.cluster_layout import NodeFiles, arguments_path, open_cluster
from ottla.cli.local_cluster.node_process import (
    NodeProblem,
    end_of,
    is_ready,
    running_pid,
    send_signal,
    start_process,
    wait_until_gone,
    wait_until_ready,
)
from ottla.cli.local_cluster.supervisor_lock import SupervisorLock
from ottla.cli.stopping import interrupts_held

START_S: Final = 60.0
STOP_S: Final = 60.0
_LOOK_S: Final = 0.2
_SHOW_S: Final = 1.0
_AGAIN_S: Final = 2.0
_MOST_AGAIN_S: Final = 32.0
"""How long a node that ended by itself is left down: twice as long each time that it did not come up."""


class Supervisor:
    """Of a cluster's nodes, in the process of `ottla cluster start` or `ottla start --cores`.

    A node that ended by itself is started again. One that somebody stopped in good order stays down, and when that is
    so for all, the supervisor's work is done. With `needs_all` a node that ends again before it is ready ends the
    whole: its partitions have no other replica. Nodes that were added to the directory are watched too.
    """

    def __init__(
        self, directory: Path, nodes: list[NodeFiles], *, arguments: Sequence[str] = (), needs_all: bool = False
    ) -> None:
        self._directory = directory
        self._lock = SupervisorLock(directory)
        self._nodes = nodes
        self._arguments = arguments
        self._needs_all = needs_all
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._ended_s: dict[int, float] = {}
        self._again_s: dict[int, float] = {}
        self._stopped: set[int] = set()

    def start(self) -> None:
        """Returns when all nodes are ready.

        Raises `NodeProblem`, and then none runs, or `HasSupervisor`, and then the nodes are left to the other one.
        """
        self._lock.acquire()
        arguments_path(self._directory).write_text("".join(f"{word}\n" for word in self._arguments))
        try:
            for node in self._nodes:
                if running_pid(node) is None:
                    self._start_process(node)
            wait_until_ready(self._nodes, START_S)
        except BaseException:
            self.stop()
            raise

    def watch(self, show: Callable[[list[NodeFiles]], None] | None = None) -> None:
        """Until it is interrupted, or all nodes were stopped. Raises `NodeProblem` if it cannot continue."""
        shown_s = time.monotonic()
        while len(self._stopped) < len(self._nodes):
            time.sleep(_LOOK_S)
            self._look()
            if time.monotonic() - shown_s >= _SHOW_S:
                self._nodes = open_cluster(self._directory)
                if show is not None:
                    show(self._nodes)
                shown_s = time.monotonic()

    def _look(self) -> None:
        for node in self._nodes:
            child = self._children.get(node.node_id)
            status = None if child is None else child.poll()  # This also buries one that has ended.
            is_down = node.down.exists()  # Asked first: a node that is started loses this mark once it runs.
            if running_pid(node) is not None:
                self._ended_s.pop(node.node_id, None)
                self._stopped.discard(node.node_id)
            elif status == 0:
                node.down.touch()
                self._stopped.add(node.node_id)
                del self._children[node.node_id]
            elif is_down:
                self._ended_s.pop(node.node_id, None)
            elif self._needs_all and not is_ready(node):
                raise NodeProblem(f"node {node.node_id} does not come up again:\n{end_of(node.log)}")
            else:
                self._start_again(node)

    def _start_again(self, node: NodeFiles) -> None:
        """If it was down for long enough. A node that does not come up is reported with its last words."""
        has_been_up, now_s = is_ready(node), time.monotonic()
        pause_s = _AGAIN_S if has_been_up else self._again_s.get(node.node_id, _AGAIN_S)
        if now_s - self._ended_s.setdefault(node.node_id, now_s) < pause_s:
            return
        self._again_s[node.node_id] = min(2 * pause_s, _MOST_AGAIN_S)
        what = "has ended, and is started again" if has_been_up else f"does not come up: {_last_line(node)}"
        print(f"\rnode {node.node_id} {what}", file=sys.stderr, flush=True)
        self._ended_s.pop(node.node_id)
        self._start_process(node)

    def _start_process(self, node: NodeFiles) -> None:
        """A process whose number was not written down yet could not be stopped, so an interrupt waits for that."""
        with interrupts_held():
            self._children[node.node_id] = start_process(node)

    def stop(self) -> None:
        """In good order; a second TERM or Ctrl-C ends the nodes at once."""
        try:
            stop_nodes(self._nodes)
        except KeyboardInterrupt:
            for node in self._nodes:
                send_signal(node, signal.SIGKILL)
            wait_until_gone(self._nodes, STOP_S)
        finally:
            for child in self._children.values():
                child.poll()
            arguments_path(self._directory).unlink(missing_ok=True)
            self._lock.release()


def _last_line(node: NodeFiles) -> str:
    return (end_of(node.log).splitlines() or ["it printed nothing"])[-1]


def stop_nodes(nodes: list[NodeFiles]) -> None:
    """In good order: brokers alone first and together, then one controller after the other.

    So each of them hands over what it leads while there is a quorum that can decide on it.
    """
    for node in nodes:
        if running_pid(node) is not None:
            node.down.touch()
    brokers = [node for node in nodes if not node.is_controller]
    controllers = sorted((node for node in nodes if node.is_controller), reverse=True)
    for together in (brokers, *([one] for one in controllers)):
        for node in together:
            send_signal(node, signal.SIGTERM)
        for node in wait_until_gone(together, STOP_S):
            send_signal(node, signal.SIGKILL)
    wait_until_gone(nodes, STOP_S)
