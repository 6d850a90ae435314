"""The pipeline's process as the demo sees it: started, killed with everything it has started, and listened to."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from ottla.spark.demo.failures import without_java

STOP_TIMEOUT_S = 30.0
MOST_STARTS = 5
TOO_BUSY = "Python worker failed to connect back"


class Job:
    """At most one process at a time. What it tells is kept by a thread, and may be looked at any time."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None
        self.log = directory / "pipeline.log"
        self.state = "not started"
        self.rows: dict[str, int] = {}
        self.best_rate: dict[str, float] = {}
        self.batches = 0
        self.failure: str | None = None
        self._left_starts = MOST_STARTS

    def start(self) -> None:
        """Returns at once; the pipeline needs some seconds until it runs."""
        self.failure = None
        self._left_starts -= 1
        # What Spark leaves behind when it is killed goes with the directory.
        scratch = self._directory / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        self.state = "starting"
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ottla.spark.demo.pipeline", self._bootstrap, str(self._directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "TMPDIR": str(scratch)},
                text=True,
                start_new_session=True,  # Java and the workers are in its group, and end with it
            )
        assert self._process.stdout is not None
        threading.Thread(target=self._listen, args=(self._process, self._process.stdout), daemon=True).start()

    def kill(self) -> None:
        """As a machine's end would: driver, Java and workers at once, in the middle of whatever they do."""
        self._end(signal.SIGKILL)
        self.state = "killed"

    def start_again_if_the_machine_was_too_busy(self) -> bool:
        """Spark waits ten seconds for a Python process, however busy the machine is. That is forgiven a few times."""
        is_due = self.failure is not None and TOO_BUSY in self.failure and self._left_starts > 0
        if is_due:
            self.kill()
            self.start()
        return is_due

    def stop(self) -> None:
        """Lets it finish its micro-batch; kills it if that takes too long. Nothing of it is left."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT_S)
        self._end(signal.SIGKILL)
        self.state = "stopped"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def end_of_log(self) -> str:
        """Its last lines; what Java's stack was at the time helps nobody here."""
        return "\n".join(without_java(self.log.read_text(errors="replace"))[-20:]) if self.log.exists() else ""

    def _end(self, how: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        process.wait(STOP_TIMEOUT_S)

    def _listen(self, process: "subprocess.Popen[str]", output: IO[str]) -> None:
        for line in output:
            if process is not self._process:
                return
            try:
                fact = json.loads(line)
            except ValueError:
                continue  # something that Spark has to say
            if fact.get("state") == "failed":
                self.failure = fact["why"]
            elif fact.get("state") == "ready":
                self.state = "ready"
            elif "rows" in fact:
                query = fact["query"]
                self.batches += 1
                self.rows[query] = self.rows.get(query, 0) + fact["rows"]
                self.best_rate[query] = max(self.best_rate.get(query, 0.0), fact["rate"] or 0.0)
                if fact["rows"]:
                    self.state = "running"
