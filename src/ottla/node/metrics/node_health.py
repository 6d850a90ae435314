"""Whether a node is alive: its loop turns, or nobody would answer; and its disks do.

Every few seconds a worker writes a few bytes into each log directory, to a file that has no name, and waits until they
are on the disk. How long that takes is the disk's latency. A disk that does not come back for half a minute is hung:
nothing that a node can do about it but to be started elsewhere, so `/healthz` says so. A disk that comes back with an
error answers; what becomes of the directory is the broker's to decide, and logged in the same breath.
"""

import os
from collections.abc import Iterable
from errno import EISDIR, ENOENT, EOPNOTSUPP
from functools import partial
from time import monotonic
from typing import Final, NamedTuple

from ottla.runtime.exposition import Verdict
from ottla.runtime.request_metrics import Times
from ottla.runtime.world import World

LOOK_S: Final = 5.0
HUNG_S: Final = 30.0
_CONTENT: Final = b"ottla" * 100
_NO_UNNAMED_FILES: Final = (EOPNOTSUPP, EISDIR, ENOENT)


class DiskAnswer(NamedTuple):
    took_s: float
    free_bytes: int = 0
    size_bytes: int = 0


class DiskState:
    """Of one log directory."""

    def __init__(self) -> None:
        self.asked_s: float | None = None
        """Since when an answer is waited for."""
        self.times = Times()
        self.last_s: float | None = None
        self.problem = ""
        self.free_bytes = self.size_bytes = 0

    def waited_s(self, now_s: float) -> float:
        return 0.0 if self.asked_s is None else max(now_s - self.asked_s, 0.0)


class NodeHealth:
    """See the module. `start` begins to look."""

    def __init__(self, world: World, directories: Iterable[str]) -> None:
        self._world = world
        self.disks = {path: DiskState() for path in directories}

    def start(self) -> None:
        self._world.timers.every(LOOK_S, self._look, first_s=0.0)

    def _look(self) -> None:
        now_s = self._world.timers.now_s()
        for path, disk in self.disks.items():
            if disk.asked_s is None:
                disk.asked_s = now_s
                self._world.workers.run(
                    partial(write_through, path),
                    partial(self._on_answer, disk),
                    partial(self._on_problem, disk),
                    key=("disk", path),
                )

    def _on_answer(self, disk: DiskState, answer: "DiskAnswer") -> None:
        disk.asked_s, disk.problem, disk.last_s = None, "", answer.took_s
        disk.free_bytes, disk.size_bytes = answer.free_bytes, answer.size_bytes
        disk.times.note(answer.took_s, self._world.timers.now_s())

    def _on_problem(self, disk: DiskState, problem: Exception) -> None:
        disk.asked_s = None
        disk.problem = problem.strerror or str(problem) if isinstance(problem, OSError) else str(problem)

    def verdict(self) -> Verdict:
        now_s = self._world.timers.now_s()
        lines = ["the loop turns"]
        is_well = True
        for path, disk in self.disks.items():
            waited_s = disk.waited_s(now_s)
            if waited_s > HUNG_S:
                is_well = False
                lines.append(f"{path}: the disk has not answered for {waited_s:.0f} s")
            elif disk.problem:
                lines.append(f"{path}: the disk answers with an error: {disk.problem}")
            elif disk.last_s is not None:
                lines.append(f"{path}: the disk answered within {disk.last_s * 1000:.1f} ms")
        return Verdict(is_well, "\n".join(lines))


def write_through(directory: str) -> DiskAnswer:
    """Writes a little to a file without a name, and syncs it. Raises `OSError`."""
    began_s = monotonic()
    descriptor = _unnamed_file(directory)
    try:
        os.write(descriptor, _CONTENT)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    took_s = monotonic() - began_s
    space = os.statvfs(directory)
    return DiskAnswer(took_s, space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize)


def _unnamed_file(directory: str) -> int:
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as problem:
            if problem.errno not in _NO_UNNAMED_FILES or not os.path.isdir(directory):
                raise
    path = os.path.join(directory, f".ottla-disk-check-{os.getpid()}")
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink(path)
    return descriptor
