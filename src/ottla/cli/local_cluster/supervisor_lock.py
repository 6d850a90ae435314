"""Who watches over the nodes of a directory: one process, which is named in `supervisor.pid` and holds a lock on it.

The system takes the lock away from a process that is gone, so that a name which was left behind is not believed.
"""

import fcntl
import os
from pathlib import Path
from typing import TextIO

from ottla.base.errors import StorageError


class HasSupervisor(StorageError):
    """Another process watches over the nodes."""


class SupervisorLock:
    """Held from `acquire` to `release`, or until the process is gone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: TextIO | None = None

    def acquire(self) -> None:
        """Raises `HasSupervisor`."""
        file = _path(self._directory).open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            pid = supervisor_pid(self._directory)
            raise HasSupervisor(f"the nodes in {self._directory} are run by process {pid} already") from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            _path(self._directory).unlink(missing_ok=True)
            self._file.close()
            self._file = None


def supervisor_pid(directory: Path) -> int | None:
    """The process that watches over the nodes, if there is one."""
    try:
        with _path(directory).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return int(file.read() or 0) or None
    except FileNotFoundError:
        pass
    return None


def _path(directory: Path) -> Path:
    return directory / "supervisor.pid"
