"""The sessions that are measured: ours, and one with Spark's own Kafka connector. Each is a process that does jobs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]

from tests.interop import sparks_own  # noqa: E402


class Session:
    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name = name
        self._errors = TemporaryFile("w+", errors="replace")  # noqa: SIM115 - open as long as the session
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            text=True,
        )
        assert self._answer() == {"ready": True}

    def do(self, job: str, **arguments: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": job, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._errors.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            said = [one for one in self._errors.read().splitlines() if not one.startswith("\tat ")]
            raise RuntimeError(f"the session of {self.name} has ended:\n" + "\n".join(said[-20:]))
        answer: dict[str, Any] = json.loads(line)
        return answer


def ours() -> Session:
    from ottla.spark.java import java_home
    from ottla.spark.local_session import SETTINGS

    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home(os.environ)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return Session("ottla", [sys.executable, str(HERE / "jobs.py"), "ottla", json.dumps(SETTINGS)], environment)


def sparks() -> Session:
    settings = {"spark.jars": sparks_own.jars()}
    command = [str(sparks_own.python()), str(HERE / "jobs.py"), "kafka", json.dumps(settings)]
    return Session("Spark's own", command, sparks_own.environment())
