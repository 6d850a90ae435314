"""`kafka-server-start -daemon`: a node in the background, and whether it came up.

The process that was started waits for the node to be ready, and ends with 0; or with 1 and the reason, when the node
has ended. A node that waits for others, a majority of controllers for instance, may take long: after ten seconds its
process is left to itself, with a word on where its log is. As in Kafka, the log is `$LOG_DIR/server.log` (`./logs`),
and what the process prints `kafkaServer.out` beside it.
"""

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Final

_PATIENCE_S: Final = 10.0
_PRINTED: Final = "kafkaServer.out"

_parent: int | None = None
"""In the process of the node: where to tell what became of it, until that is reported."""


def run_detached(run: Callable[[list[str]], int], arguments: list[str], log_file: str | None) -> int:
    """Runs it with these arguments and a log file, detached from the terminal. Returns this process's exit status."""
    path = log_file or os.path.join(os.environ.get("LOG_DIR") or "logs", "server.log")
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        printed = os.open(os.path.join(os.path.dirname(path), _PRINTED), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as problem:
        print(f"kafka-server-start: {problem.filename}: {problem.strerror}", file=sys.stderr)
        return 1
    reading, writing = os.pipe()
    between = os.fork()
    if between:
        os.close(writing)
        os.waitpid(between, 0)
        return _outcome(reading, path)
    os.close(reading)
    _run(run, arguments if log_file is not None else [*arguments, "--log-file", path], printed, writing)
    return 0


def _run(run: Callable[[list[str]], int], arguments: list[str], printed: int, writing: int) -> None:
    """In the process in between, which ends at once, and in that of the node, which ends here."""
    global _parent
    os.setsid()
    if os.fork():
        os._exit(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for fd in (1, 2):
        os.dup2(printed, fd)
    _parent = writing
    _tell(f"pid {os.getpid()}")
    status = 1
    try:
        status = run(arguments)
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def tell_ready(summary: dict[str, str]) -> None:
    global _parent
    _tell(f"ready node {summary['node']} is ready at {summary['address']}")
    if _parent is not None:
        os.close(_parent)
        _parent = None


def tell_failed(reason: str) -> None:
    _tell("failed " + reason.replace("\n", "; "))


def _tell(line: str) -> None:
    if _parent is not None:
        with suppress(OSError):  # nobody waits any more
            os.write(_parent, f"{line}\n".encode())


def _outcome(reading: int, path: str) -> int:
    """Prints it. The pipe ends with the process."""
    said, deadline_s, is_open = b"", monotonic() + _PATIENCE_S, True
    while is_open and (left_s := deadline_s - monotonic()) > 0:
        if select.select([reading], [], [], left_s)[0]:
            came = os.read(reading, 65536)
            said, is_open = said + came, bool(came)
    lines = dict(line.split(" ", 1) for line in said.decode(errors="replace").splitlines() if " " in line)
    pid = lines.get("pid", "?")
    if "ready" in lines:
        print(f"{lines['ready']}; process {pid}, log {path}")
        return 0
    if is_open:
        print(f"process {pid} runs and is not ready yet: it may wait for other nodes; log {path}")
        return 0
    print(f"kafka-server-start: {lines.get('failed', 'the node has ended')}; log {path}", file=sys.stderr)
    return 1
