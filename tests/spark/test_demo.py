"""A short run of `ottla demo`, as somebody sees it whose terminal is a pipe; and whether its check can fail."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import pytest

import ottla
from ottla.spark.demo.answers import Answers, Bids
from ottla.spark.demo.expected import differences, expected
from ottla.spark.demo.failures import reason, without_java
from ottla.spark.demo.job import MOST_STARTS, TOO_BUSY, Job
from ottla.spark.demo.settings import BIDDERS, PRICES, DemoSettings

PATIENCE_S = 120.0
SHORT = DemoSettings(events=10_000, rate=1_000.0)


def test_the_results_are_right_over_a_kill_of_the_pipeline_and_all_is_kept_as_long_as_one_likes() -> None:
    command = [sys.executable, "-m", "ottla.cli.main", "demo", "--events", "10000", "--rate", "1000", "--keep"]
    demo = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    too_long = Timer(600, lambda: os.killpg(demo.pid, signal.SIGKILL))
    too_long.start()
    try:
        assert demo.stdout is not None
        told = ""
        for line in demo.stdout:
            told += line
            if "Ctrl-C ends both" in line:
                break
        assert "killed with kill -9" in told
        assert "the same as computed directly from the events, and nothing twice" in told
        assert "Throughput:" in told
        with ottla.Admin(bootstrap_servers=told.partition("the node at ")[2].split()[0]) as admin:
            assert PRICES in {topic.name for topic in admin.list_topics()}
        os.killpg(demo.pid, signal.SIGINT)
        rest, _ = demo.communicate()
    finally:
        too_long.cancel()
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            demo.wait()
    assert (demo.returncode, "Traceback" in rest) == (0, False), rest


def test_an_interrupted_demo_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    """Ctrl-C in a terminal: every process of the foreground gets the signal, the node too."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "ottla.cli.main", "demo"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        deadline_s = time.monotonic() + PATIENCE_S
        while not any("ottla.spark.demo.pipeline" in line for line in started_in(tmp_path)):
            assert demo.poll() is None, demo.communicate()
            assert time.monotonic() < deadline_s, "the pipeline was not started"
            time.sleep(0.05)
        os.killpg(demo.pid, signal.SIGINT)
        told, _ = demo.communicate(timeout=PATIENCE_S)
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGKILL)
            demo.wait()
    assert demo.returncode == 130, told
    assert "Traceback" not in told
    assert started_in(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def started_in(directory: Path) -> list[str]:
    """The command lines of processes that were started with something in a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):  # it has just ended
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if str(directory) in line]


class Record(NamedTuple):
    topic: str
    key: bytes
    value: bytes


class Consumer:
    def assign(self, partitions: object) -> None:
        pass


def told() -> tuple[Answers, list[Record]]:
    """All that must be told, as the pipeline writes it."""
    prices, bidders = expected(SHORT, 1_700_000_000_000)
    records = [
        Record(PRICES, json.dumps({"start": start, "category": category}).encode(), value(bids))
        for (start, category), bids in prices.items()
    ] + [Record(BIDDERS, bidder.encode(), value(bids)) for bidder, bids in bidders.items()]
    return Answers(Consumer()), records  # type: ignore[arg-type]


def value(bids: Bids) -> bytes:
    return json.dumps({"count": bids.number, "total": bids.total}).encode()


def problems(answers: Answers, records: list[Record]) -> list[str]:
    for record in records:
        answers.take_one(record)  # type: ignore[arg-type]
    return differences(answers, *expected(SHORT, 1_700_000_000_000))


def test_what_is_missing_wrong_or_there_twice_is_noticed() -> None:
    assert problems(*told()) == []
    answers, records = told()
    assert "windows" in problems(answers, records[1:])[0]
    answers, records = told()
    assert "1 results were written twice" in problems(answers, [*records, records[0]])
    answers, records = told()
    assert "bidders" in problems(answers, [*records, records[-1]._replace(value=value(Bids(1, 1)))])[0]


JAVA = "\tat org.apache.spark.Somewhere.run(Somewhere.scala:1)\n\tat java.base/java.lang.Thread.run(Thread.java:1)\n"
FAILED = (
    "org.apache.spark.SparkException: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data "
    "source perform commit: Traceback (most recent call last):\n"
    '  File "producer.py", line 1, in send\n    raise InvalidProducerEpoch\n'
    "InvalidProducerEpoch: ended by the coordinator\n\n"
    "During handling of the above exception, another exception occurred:\n\n"
    "Traceback (most recent call last):\n"
    '  File "committer.py", line 1, in commit\n    raise NewerDriver\n'
    "ottla.spark.sink.committer.NewerDriver: query 1, batch 3\n\n" + JAVA
)


def test_a_failure_is_told_with_the_error_of_python_and_without_javas_stack() -> None:
    assert reason(FAILED) == "ottla.spark.sink.committer.NewerDriver: query 1, batch 3"
    assert not any("Thread.java" in line for line in without_java(FAILED))
    assert reason(f"java.lang.OutOfMemoryError: heap\n{JAVA}") == "java.lang.OutOfMemoryError: heap"
    assert reason("") == "Spark does not say why"


def test_a_pipeline_that_a_busy_machine_has_ended_is_started_again_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    job = Job("nowhere:1", tmp_path)
    job.start()
    job.failure = "ottla.client.errors.RequestTimedOut: no answer"
    assert not job.start_again_if_the_machine_was_too_busy(), "that is for the user to see"
    starts = 1
    while True:
        job.failure = f"org.apache.spark.SparkException: {TOO_BUSY}."
        if not job.start_again_if_the_machine_was_too_busy():
            break
        assert job.failure is None
        starts += 1
    assert starts == MOST_STARTS
    job.kill()
