"""kafka-transactions prints the same of a node of ours as of Apache Kafka, cell by cell, and does the same to both.

Each example is acted out at both nodes, in the same order, so that even producer ids are the same; only times are not.
A transaction hangs when its records are in a partition that its coordinator has not heard of. Such are made as old
clients can make them: without AddPartitionsToTxn, where `transaction.partition.verification.enable` is off.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from ottla.testing.node import RunningNode
from ottla.wire.errors import ErrorCode
from tests.interop.apache_kafka import MAIN_CLASSES, ApacheKafka, java
from tests.interop.group_scenes import Talk
from tests.interop.groups.raw_producer import OLD, RawProducer

pytestmark = pytest.mark.interop

CONFIG = {"transaction.partition.verification.enable": "false", "transaction.state.log.num.partitions": 1}
AN_HOUR_AGO_MS = int(time.time() * 1000) - 3_600_000
TIMES = re.compile(r"\d+|None")
OF_TIME = {"LastTimestamp", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "Duration(min)"}


class Printed(NamedTuple):
    """`rows` are without the heading, which is what they are named by."""

    exit_code: int
    rows: list[dict[str, str]]
    complaint: str

    def column(self, name: str) -> list[str]:
        return [row[name] for row in self.rows]


class Stage:
    """One node, and those who act there."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._talk = Talk(bootstrap)

    def tool(self, words: str, *more: str) -> Printed:
        command = ("--bootstrap-server", self.bootstrap, *words.split(), *more)
        done = java(MAIN_CLASSES["kafka-transactions"], *command, check=False)
        heading, *lines = done.stdout.splitlines() or [""]
        rows = [dict(zip(cells(heading), cells(line), strict=True)) for line in lines]
        complaint = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("["))
        return Printed(done.returncode, sorted(map(comparable, rows), key=repr), complaint)

    def create(self, topic: str, partitions: int = 2) -> None:
        self._talk.create_topics(**{topic: partitions})

    def producer(self, name: str, version: int = 2) -> RawProducer:
        producer = RawProducer(self.bootstrap, name, version)
        producer.init()
        return producer

    def close(self) -> None:
        self._talk.close()


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("\t")[:-1]]


def comparable(row: dict[str, str]) -> dict[str, str]:
    """Times as their kind, and the partitions of a transaction in order, which Kafka has in a hash set."""
    told = {name: cell for name, cell in row.items() if name not in OF_TIME}
    for name in OF_TIME & row.keys():
        assert TIMES.fullmatch(row[name]), row
        told[name] = "None" if row[name] == "None" else "<time>"
    if "TopicPartitions" in row:
        told["TopicPartitions"] = ",".join(sorted(row["TopicPartitions"].split(",")))
    return told


Scene = Callable[[Stage], list[Printed]]


@pytest.fixture(scope="module")
def stages() -> Iterator[tuple[Stage, Stage]]:
    with ApacheKafka(config=CONFIG) as kafka, RunningNode(config=CONFIG) as ours:
        both = Stage(kafka.bootstrap), Stage(ours.bootstrap)
        yield both
        for stage in both:
            stage.close()


def at_both(stages: tuple[Stage, Stage], scene: Scene) -> list[Printed]:
    kafkas, ours = (scene(stage) for stage in stages)
    assert ours == kafkas
    return ours


def test_list_and_describe(stages: tuple[Stage, Stage]) -> None:
    def scene(stage: Stage) -> list[Printed]:
        stage.create("listed")
        opened, committed = stage.producer("listed-open"), stage.producer("listed-committed", OLD)
        opened.write("listed", 0, b"one", b"two")
        opened.write("listed", 1, b"three")
        opened.commit_offset("a group", "listed", 0, 1)
        committed.write("listed", 1, b"four")
        committed.end(committed=True)
        stage.producer("listed-nothing")
        return [
            stage.tool("list --transactional-id-pattern listed-.*"),
            stage.tool("list --transactional-id-pattern listed-o.*"),
            stage.tool("list --transactional-id-pattern ("),
            stage.tool("list --transactional-id-pattern listed-.* --duration-filter 3600000"),
            stage.tool("describe --transactional-id listed-open"),
            stage.tool("describe --transactional-id listed-committed"),
            stage.tool("describe --transactional-id nobody"),
        ]

    listed, filtered, refused, long_ones, opened, committed, nobody = at_both(stages, scene)
    assert sorted(listed.column("TransactionState")) == ["CompleteCommit", "Empty", "Ongoing"]
    assert filtered.column("TransactionalId") == ["listed-open"]
    assert refused.exit_code == 1
    assert long_ones.column("TransactionalId") == ["listed-nothing"]  # It began at -1, as Kafka reckons.
    (partitions,) = opened.column("TopicPartitions")
    assert re.fullmatch(r"__consumer_offsets-\d+,listed-0,listed-1", partitions)
    assert committed.column("TopicPartitions") == [""]
    assert "could not be found" in nobody.complaint


def test_describe_producers(stages: tuple[Stage, Stage]) -> None:
    def scene(stage: Stage) -> list[Printed]:
        stage.create("described")
        opened, aborted = stage.producer("described-open"), stage.producer("described-aborted")
        opened.write("described", 0, b"one", b"two")
        aborted.write("described", 0, b"three")
        aborted.end(committed=False)
        return [
            stage.tool("describe-producers --topic described --partition 0"),
            stage.tool("describe-producers --topic described --partition 0 --broker-id 1"),
            stage.tool("describe-producers --topic described --partition 1"),
        ]

    producers, of_broker, of_nobody = at_both(stages, scene)
    assert producers == of_broker
    assert producers.column("CurrentTransactionStartOffset") == ["0", "None"]
    assert not of_nobody.rows


def test_a_hanging_transaction_is_found_and_aborted(stages: tuple[Stage, Stage]) -> None:
    def scene(stage: Stage) -> list[Printed]:
        stage.create("hung")
        fine, hangs = stage.producer("hung-fine", OLD), stage.producer("hung-hanging", OLD)
        fine.write("hung", 0, b"one", timestamp_ms=AN_HOUR_AGO_MS)
        hangs.write_unannounced("hung", 0, b"two", b"three", timestamp_ms=AN_HOUR_AGO_MS)
        find = "find-hanging --topic hung"
        told = [
            stage.tool("find-hanging --broker-id 1"),
            stage.tool(find),
            stage.tool(f"{find} --partition 1"),
            stage.tool(f"{find} --max-transaction-timeout 120"),
            stage.tool("abort --topic hung --partition 0 --start-offset 99"),
            stage.tool("abort --topic hung --partition 0 --start-offset 1"),
            stage.tool(find),
            stage.tool("describe-producers --topic hung --partition 0"),
        ]
        fine.end(committed=True)  # Nobody else's transaction was touched.
        assert hangs.end_error(committed=True) is ErrorCode.INVALID_TXN_STATE
        return told

    at_broker, of_topic, elsewhere, younger, nothing_there, aborted, afterwards, producers = at_both(stages, scene)
    assert at_broker == of_topic
    assert [(row["Partition"], row["StartOffset"]) for row in of_topic.rows] == [("0", "1")]
    assert elsewhere.rows == younger.rows == afterwards.rows == []
    assert nothing_there.exit_code == 1
    assert "Could not find any open transactions" in nothing_there.complaint
    assert aborted == Printed(0, [], "")
    assert producers.column("CurrentTransactionStartOffset") == ["0", "None"]


def test_a_hanging_transaction_is_aborted_by_its_producer(stages: tuple[Stage, Stage]) -> None:
    """The form for brokers before 3.0, which cannot say who began what where."""

    def scene(stage: Stage) -> list[Printed]:
        stage.create("older", 1)
        hangs = stage.producer("older-hanging", OLD)
        hangs.write_unannounced("older", 0, b"one", timestamp_ms=AN_HOUR_AGO_MS)
        abort = f"abort --topic older --partition 0 --producer-id {hangs.producer_id} --coordinator-epoch 0"
        return [
            stage.tool(f"{abort} --producer-epoch {hangs.epoch}"),
            stage.tool("describe-producers --topic older --partition 0"),
            stage.tool(f"{abort} --producer-epoch -5"),
        ]

    aborted, producers, _refused = at_both(stages, scene)
    assert aborted.exit_code == 0
    assert producers.column("CurrentTransactionStartOffset") == ["None"]


@pytest.mark.parametrize("version", [0, 2])
def test_force_terminate(stages: tuple[Stage, Stage], version: int) -> None:
    def scene(stage: Stage) -> list[Printed]:
        topic = f"forced-{version}"
        stage.create(topic)
        producer = stage.producer(topic, version)
        producer.write(topic, 0, b"one")
        producer.write(topic, 1, b"two")
        told = [
            stage.tool(f"forceTerminateTransaction --transactionalId {topic}"),
            stage.tool(f"describe --transactional-id {topic}"),
            stage.tool(f"describe-producers --topic {topic} --partition 1"),
            stage.tool(f"forceTerminateTransaction --transactionalId unknown-{version}"),
            stage.tool(f"describe --transactional-id unknown-{version}"),
        ]
        error = producer.end_error(committed=True)
        assert error is ErrorCode.PRODUCER_FENCED
        return told

    terminated, described, producers, _unknown, made = at_both(stages, scene)
    assert terminated == Printed(0, [], "")
    assert described.column("TransactionState") == made.column("TransactionState") == ["Empty"]
    assert producers.column("CurrentTransactionStartOffset") == ["None"]
