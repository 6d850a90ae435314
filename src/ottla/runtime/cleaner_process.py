"""Cleaning in another process, so that the loop does not feel it.

The process is started with the first job and ended by `stop`; between jobs it waits. Both pipes are read and written
when they are ready, never waited for. A process that ends in the middle of a job fails the job.
"""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import ottla
from ottla.log.cleaning.job import CleanedSegment, CleaningFailed, CleaningJob, CleaningStep, step_of_json
from ottla.log.cleaning.runner import OnStep
from ottla.runtime.loop import Loop

if TYPE_CHECKING:
    import subprocess

_READ_BYTES = 65536


class CleanerProcess:
    """A `Runner` that is a process."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._process: subprocess.Popen[bytes] | None = None
        self._stdin = self._stdout = -1
        self._to_write = b""
        self._read = b""
        self._on_step: OnStep | None = None

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process else None

    def run(self, job: CleaningJob, on_step: OnStep) -> None:
        assert self._on_step is None, "one job at a time"
        if self._process is None:
            try:
                self._start()
            except OSError as problem:
                # The system has no process, descriptor or memory to give. That is no word about the log: it is given
                # up for now, and tried again with the next look.
                failed = CleaningFailed(f"its process could not be started: {problem}", is_put_off=True)
                self._loop.call_soon(on_step, failed)
                return
        self._on_step = on_step
        self._to_write = job.to_json().encode() + b"\n"
        self._loop.add_writer(self._stdin, self._write)

    def stop(self) -> None:
        self._on_step = None
        if self._process is not None:
            process, self._process = self._process, None
            self._loop.remove_reader(self._stdout)
            self._loop.remove_writer(self._stdin)
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            process.wait()
            self._to_write = self._read = b""

    def _start(self) -> None:
        import subprocess

        self._process = subprocess.Popen(
            [sys.executable, "-m", "ottla.runtime.cleaner_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=_environment(os.environ),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._loop.add_reader(self._stdout, self._on_readable)

    def _write(self) -> None:
        try:
            written = os.write(self._stdin, self._to_write)
        except BlockingIOError:
            return
        except OSError:
            written = len(self._to_write)  # It has ended, as its other pipe is about to tell.
        self._to_write = self._to_write[written:]
        if not self._to_write:
            self._loop.remove_writer(self._stdin)

    def _on_readable(self) -> None:
        try:
            data = os.read(self._stdout, _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._on_end()
            return
        *lines, self._read = (self._read + data).split(b"\n")
        for line in lines:
            self._tell(step_of_json(line.decode()))

    def _tell(self, step: CleaningStep) -> None:
        on_step = self._on_step
        if on_step is None:
            return  # Stopped by what it reported just before.
        if not isinstance(step, CleanedSegment):
            self._on_step = None
        on_step(step)

    def _on_end(self) -> None:
        assert self._process is not None
        process, on_step = self._process, self._on_step
        self.stop()
        if on_step is not None:
            on_step(CleaningFailed(f"its process ended with {process.returncode}", is_crash=True))


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The process finds this package where this one found it."""
    paths = [os.path.dirname(ottla.__path__[0]), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}
