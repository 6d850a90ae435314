"""A standalone Spark cluster of real processes: master and workers from the PySpark package, and jobs for it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark

from ottla.spark.java import java_home

HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"spark://127\.0\.0\.1:\d+")
_PATIENCE_S = 180


class SparkProcess:
    """One program of Spark's, in a group of its own: with its children, if it is killed."""

    def __init__(self, directory: Path, name: str, *command: str) -> None:
        self.log = directory / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": str(java_home(os.environ)),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True, cwd=directory
            )

    def wait_for(self, pattern: "re.Pattern[str]") -> str:
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s:
            found = pattern.search(self.log.read_text(errors="replace"))
            if found:
                return found[0]
            assert self.is_running, f"it ended:\n{self.tail()}"
            time.sleep(0.1)
        raise AssertionError(f"{pattern.pattern} never came:\n{self.tail()}")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> None:
        assert self._process.wait(_PATIENCE_S) == 0, self.tail()

    def kill(self) -> None:
        if self.is_running:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]


class SparkCluster:
    """A master and two workers of one core each."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.processes: list[SparkProcess] = []
        listening = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = self._start("master", "spark-class", "org.apache.spark.deploy.master.Master", *listening)
        self.url = master.wait_for(_MASTER)
        self.workers = [self.add_worker(f"worker-{number}") for number in range(2)]

    def add_worker(self, name: str) -> SparkProcess:
        work = self._directory / name
        return self._start(
            name, "spark-class", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--port", "0",
            "--webui-port", "0", "--cores", "1", "--memory", "600m", "--work-dir", str(work), self.url,
        )  # fmt: skip

    def submit(self, name: str, *arguments: str) -> SparkProcess:
        return self._start(
            name, "spark-submit", "--master", self.url, "--conf", "spark.executor.memory=512m",
            "--conf", "spark.driver.memory=512m", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.driver.host=127.0.0.1", *arguments,
        )  # fmt: skip

    def _start(self, name: str, program: str, *arguments: str) -> SparkProcess:
        process = SparkProcess(self._directory, name, str(HOME / "bin" / program), *arguments)
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
