"""A process of its own for each test: the collector's state is the whole process'."""

import subprocess
import sys
from pathlib import Path

from ottla import Producer
from ottla.testing import Broker


def test_the_collector_passes_over_what_the_first_task_loaded() -> None:
    assert _told("task('sink'); told(); task('sink'); told()") == [False, True]


def test_each_kind_of_task_loads_modules_of_its_own() -> None:
    ran = "task('source'); task('source'); gc.unfreeze(); task('sink'); told(); task('sink'); told()"
    assert _told(ran) == [False, True]


def test_what_later_tasks_leave_behind_is_collected() -> None:
    leaves = "task('sink'); task('sink'); a = []; a.append(a); del a; task('sink'); "
    assert _told(leaves + "print(gc.collect() > 0)") == [True]


def _told(statements: str) -> list[bool]:
    prelude = (
        "import gc; from ottla.spark.worker_process import begin_task as task; gc.collect(); gc.disable()\n"
        "def told(): print(gc.get_freeze_count() > 1000)\n"
    )
    command = [sys.executable, "-c", prelude + statements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return [line == "True" for line in done.stdout.split()]


LOOKS = """
import sys, ottla.spark
spark = ottla.spark.session("looks", master="local[1]", **{"spark.ui.enabled": "false"})
rows = spark.read.format("ottla").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "many").load()
print(len(rows.limit(3).collect()), rows.select("offset").take(1))
spark.stop()
"""


def test_a_job_that_takes_some_rows_and_leaves_prints_no_error(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic("many")
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for _ in range(100_000):
                producer.send("many", bytes(100))
        command = [sys.executable, "-c", LOOKS, broker.bootstrap]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.split(maxsplit=1)[0]) == (0, "3"), done.stderr
    assert "BrokenPipe" not in done.stderr
    assert "Traceback" not in done.stderr


IDLE = """
import importlib, socket, sys
sys.argv = ["daemon", "pyspark.sql.worker.plan_data_source_read"]
import pyspark.daemon
importlib.import_module(sys.argv[1])
import ottla.spark.data_source
ours, javas = socket.socketpair()
if {closes}:
    javas.close()
else:
    javas.sendall((10_000).to_bytes(4, "big") + bytes(10_000))
print(pyspark.daemon.worker(ours, True), flush=True)
ours.close()
javas.settimeout(2)
try:
    while received := javas.recv(10_000):
        print(received)
except TimeoutError:
    pass
"""


def _worker(*, closes: bool) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", IDLE.format(closes=closes)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_worker_that_waits_for_a_task_ends_without_a_word_when_java_leaves() -> None:
    done = _worker(closes=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_task_that_fails_is_told_to_java() -> None:
    done = _worker(closes=False)
    assert "PySparkRuntimeError" in done.stdout, done.stderr  # with its traceback, unless a session of ours hides them
