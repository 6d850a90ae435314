"""Spark's own Kafka connector beside ours, on the same topics of our node: the same rows, and each other's checkpoints.

With `OTTLA_TEST_TARGET=apache-kafka` the node is Apache Kafka's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ottla
from ottla.spark.java import java_home
from ottla.spark.local_session import SETTINGS
from tests.interop import sparks_own
from tests.interop.target import Target, a_target

pytestmark = pytest.mark.interop

JOBS = Path(__file__).with_name("spark_jobs.py")


class Session:
    """A process of Spark's."""

    def __init__(self, command: list[str], environment: dict[str, str], errors: Path) -> None:
        self._errors = errors
        with errors.open("wb") as file:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, env=environment, text=True
            )
        self._answer()

    def do(self, job: str, **arguments: object) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": job, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the session has ended: {self._errors.read_text()[-2000:]}"
        answer = json.loads(line)
        assert "problem" not in answer, answer["problem"][-3000:]
        return answer["answer"]


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    with a_target() as running:
        yield running


@pytest.fixture(scope="module")
def sparks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    command = [str(sparks_own.python()), str(JOBS), "kafka", json.dumps({"spark.jars": sparks_own.jars()})]
    session = Session(command, sparks_own.environment(), tmp_path_factory.mktemp("sparks") / "errors")
    yield session
    session.close()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    environment = {**os.environ, "JAVA_HOME": str(java_home(os.environ)), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(JOBS), "ottla", json.dumps(SETTINGS)]
    session = Session(command, environment, tmp_path_factory.mktemp("ours") / "errors")
    yield session
    session.close()


@pytest.fixture
def topic(node: Target, request: pytest.FixtureRequest) -> str:
    name = f"{request.node.name}-{os.urandom(3).hex()}".replace("[", "-").replace("]", "")
    # `send` writes records that are years old. With the default retention the node takes them at its next look, every
    # five minutes: between the two connectors' reads, for example.
    forever = {"retention.ms": "-1"}
    with ottla.Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([ottla.NewTopic(name, partitions=3, config=forever)]).raise_first()
    return name


@pytest.fixture
def options(node: Target, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}


def send(node: Target, topic: str, numbers: range) -> None:
    with ottla.Producer(bootstrap_servers=node.bootstrap, compression_type="lz4") as producer:
        for number in numbers:
            producer.send(
                topic,
                None if number % 10 == 7 else b"value %d" % number,
                key=None if number % 10 == 3 else b"key %d" % number,
                headers=[("a", b"1"), ("a", b""), ("n", None)][: number % 4],
                timestamp_ms=1_700_000_000_000 + number,
            )


def send_in_transactions(node: Target, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=node.bootstrap, transactional_id=topic) as producer:
        for number in range(6):
            with suppress(KeyError), producer.transaction():
                for one in range(5):
                    producer.send(topic, b"%d %d" % (number, one), partition=one % 3)
                producer.flush()  # what was not sent yet would not be in the log at all
                if number % 2:
                    raise KeyError("it is aborted")


def test_both_read_the_same_rows(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str]
) -> None:
    send(node, topic, range(200))
    wanted = {**options, "includeHeaders": "true"}
    assert ours.do("schema", options=wanted) == sparks.do("schema", options=wanted)
    read = ours.do("read", options=wanted)
    assert len(read) == 200
    assert read == sparks.do("read", options=wanted)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_both_read_the_same_of_transactions(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str], level: str
) -> None:
    send_in_transactions(node, topic)
    wanted = {**options, "kafka.isolation.level": level}
    read = ours.do("read", options=wanted)
    assert len(read) == (15 if level == "read_committed" else 30)
    assert read == sparks.do("read", options=wanted)


def test_options_of_offsets_and_times_mean_the_same(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str]
) -> None:
    send(node, topic, range(60))
    base = {name: value for name, value in options.items() if name != "startingOffsets"}
    every = [0, 1, 2]
    for wanted in (
        {"startingOffsets": json.dumps({topic: {"0": 5, "1": -2, "2": 3}})},
        {"endingOffsets": json.dumps({topic: {"0": 5, "1": 0, "2": -1}})},
        {"startingTimestamp": "1700000000030", "endingTimestamp": "1700000000045"},
        {"startingOffsetsByTimestamp": json.dumps({topic: {str(one): 1_700_000_000_020 + one for one in every}})},
        {"startingTimestamp": "1800000000000", "startingOffsetsByTimestampStrategy": "latest"},
        {"minPartitions": "7"},
    ):
        read = ours.do("read", options={**base, **wanted})
        assert read == sparks.do("read", options={**base, **wanted}), wanted


def test_what_sparks_connector_writes_ours_reads(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str]
) -> None:
    rows = "select cast(id as string) key, concat('value ', id) value from range(100)"
    sparks.do("write", sql=rows, options={"kafka.bootstrap.servers": node.bootstrap, "topic": topic})
    read = ours.do("read", options=options)
    assert len(read) == 100
    assert read == sparks.do("read", options=options)


def test_keys_of_both_sinks_land_in_the_same_partitions(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str]
) -> None:
    rows = "select cast(id as string) key, cast(id as string) value from range(200)"
    for session in (sparks, ours):
        session.do("write", sql=rows, options={"kafka.bootstrap.servers": node.bootstrap, "topic": topic})
    read = [json.loads(line) for line in ours.do("read", options=options)]
    partitions: dict[str, set[int]] = {}
    for row in read:
        partitions.setdefault(row["key"], set()).add(row["partition"])
    assert len(read) == 400
    assert all(len(found) == 1 for found in partitions.values())


def test_sparks_connector_streams_from_topic_to_topic_on_our_node(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str], tmp_path: Path
) -> None:
    send(node, topic, range(300))
    to = topic + "-to"
    with ottla.Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([ottla.NewTopic(to, partitions=2)])
    target = {"kafka.bootstrap.servers": node.bootstrap, "topic": to}
    sparks.do(
        "copy", options={**options, "maxOffsetsPerTrigger": "70"}, to=target, checkpoint=str(tmp_path / "checkpoint")
    )
    assert ours.do("count", options={**options, "subscribe": to}) == 300


@pytest.mark.parametrize("first", ["sparks", "ours"])
def test_a_checkpoint_is_continued_by_the_other_connector(
    node: Target, sparks: Session, ours: Session, topic: str, options: dict[str, str], tmp_path: Path, first: str
) -> None:
    one, other = (sparks, ours) if first == "sparks" else (ours, sparks)
    checkpoint = str(tmp_path / "checkpoint")
    options = {**options, "checkpointTopicIds": "false"}
    read = []
    for begin, session in ((0, one), (100, other), (200, other)):
        send(node, topic, range(begin, begin + 100))
        batches = session.do("stream", options={**options, "maxOffsetsPerTrigger": "40"}, checkpoint=checkpoint)
        rows = [json.loads(line) for batch in batches for line in batch]
        assert len(rows) == 100, session
        read += [(row["partition"], row["offset"]) for row in rows]
    assert len(read) == len(set(read)), "a row came twice"
