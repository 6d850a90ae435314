"""A short run of `ottla demo`, as somebody sees it whose terminal is a pipe; and whether its check can fail."""

import json
import subprocess
import sys
from typing import NamedTuple

from ottla.spark.demo.answers import Answers, Bids
from ottla.spark.demo.expected import differences, expected
from ottla.spark.demo.failures import reason, without_java
from ottla.spark.demo.settings import BIDDERS, PRICES, DemoSettings

SHORT = DemoSettings(events=10_000, rate=1_000.0)


def test_the_results_are_right_over_a_kill_of_the_pipeline() -> None:
    command = [sys.executable, "-m", "ottla.cli.main", "demo", "--events", "10000", "--rate", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "killed with kill -9" in done.stdout
    assert "the same as computed directly from the events, and nothing twice" in done.stdout
    assert "Throughput:" in done.stdout


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
