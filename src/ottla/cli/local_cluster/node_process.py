"""One node's process. Which one it is, is in the node's `pid` file; a process that is not this node's is left alone."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from ottla.base.errors import StorageError
from ottla.cli.local_cluster.cluster_layout import NodeFiles, arguments_path

READY: Final = b"is ready at"
_METRICS: Final = re.compile(rb'^  metrics  (\S+)$|"metrics": "([^"]+)"', re.MULTILINE)
_POLL_S: Final = 0.02


class NodeProblem(StorageError):
    """A node did not come up, or did not go down."""


def running_pid(node: NodeFiles) -> int | None:
    """The node's process, if it runs."""
    try:
        pid = int(node.pid.read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid if _is_of(pid, node.properties) else None


def _is_of(pid: int, properties: Path) -> bool:
    """Numbers of processes are used again. Where the system does not tell, the number is believed."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self").exists()
    # A process has no words yet for a moment after it was started: Linux lets its parent continue before it sets them.
    return status != "Z" and (not words or str(properties).encode() in words)


def start_process(node: NodeFiles) -> subprocess.Popen[bytes]:
    """Returns at once; the node is ready when its log says so."""
    with suppress(FileNotFoundError):
        node.log.replace(node.log.with_suffix(".log.old"))  # where the last words of one that crashed are
    with node.log.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla.cli.main", "start", "--config", str(node.properties), *_arguments(node)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    node.pid.write_text(str(process.pid))
    node.down.unlink(missing_ok=True)  # Last: a node that neither runs nor is to be down is started by the supervisor.
    return process


def _arguments(node: NodeFiles) -> list[str]:
    try:
        words = arguments_path(node.directory.parent).read_text().splitlines()
    except FileNotFoundError:
        return []
    if "--metrics" in words:
        place = words.index("--metrics") + 1
        words[place] = metrics_of(node, words[place])
    return words


def metrics_of(node: NodeFiles, first: str) -> str:
    """The address of a node's metrics page: that of the first node, with a port that is further by as many nodes."""
    host, colon, port = first.rpartition(":")
    return f"{host}{colon}{int(port) + max(node.node_id - 1, 0)}" if int(port) else first


def metrics_url(node: NodeFiles) -> str | None:
    """Where the page of a node is that has started, as its log says."""
    found = _METRICS.search(node.log.read_bytes()) if node.log.exists() else None
    return (found[1] or found[2]).decode() if found else None


def is_ready(node: NodeFiles) -> bool:
    return node.log.exists() and READY in node.log.read_bytes()


def wait_until_ready(nodes: list[NodeFiles], timeout_s: float) -> None:
    """Raises `NodeProblem` with the end of the log of one that has ended, or takes too long."""
    ends_s = time.monotonic() + timeout_s
    for node in nodes:
        while not is_ready(node):
            if running_pid(node) is None:
                raise NodeProblem(f"node {node.node_id} has ended:\n{end_of(node.log)}")
            if time.monotonic() > ends_s:
                raise NodeProblem(f"node {node.node_id} is not ready after {timeout_s:.0f} s:\n{end_of(node.log)}")
            time.sleep(_POLL_S)


def send_signal(node: NodeFiles, number: signal.Signals) -> bool:
    """False if the node does not run."""
    pid = running_pid(node)
    if pid is None:
        return False
    os.kill(pid, number)
    return True


def wait_until_gone(nodes: list[NodeFiles], timeout_s: float) -> list[NodeFiles]:
    """Those that still run after that time."""
    ends_s = time.monotonic() + timeout_s
    left = list(nodes)
    while left and time.monotonic() < ends_s:
        left = [node for node in left if running_pid(node) is not None]
        if left:
            time.sleep(_POLL_S)
    return left


def end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:] if log.exists() else ""
