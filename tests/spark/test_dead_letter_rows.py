"""`value.onError=deadLetter`: what cannot be decoded is a row for another topic, in the transaction of the others."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
import ottla.spark
from ottla import Producer
from ottla.spark.options import OptionError
from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Read = Callable[..., Any]
PATIENCE_S = 120


@pytest.fixture
def dead(ottla_broker: Broker, ottla_topic: str) -> str:
    ottla_broker.create_topic(ottla_topic + "-dead")
    ottla_broker.create_topic(ottla_topic + "-good")
    return ottla_topic + "-dead"


@pytest.fixture
def send(producer: Producer, ottla_topic: str) -> Callable[..., None]:
    def send(*values: bytes | None) -> None:
        for value in values:
            producer.send(ottla_topic, value, key=b"k", headers=[("of", b"test")])
        producer.flush()

    return send


Send = Callable[..., None]


def options(dead: str, **more: str) -> dict[str, str]:
    return {"value.format": "string", "value.onError": "deadLetter", "value.deadLetterTopic": dead, **more}


def records_of(broker: Broker, topic: str) -> list[Any]:
    with ottla.Consumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed") as consumer:
        partition = ottla.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end, found = consumer.end_offsets([partition])[partition], []
        while consumer.position(partition) < end:
            found += consumer.poll(timeout=5)
    return found


def test_a_bad_value_is_a_row_with_the_record_for_the_other_topic(
    read: Read, send: Send, dead: str, ottla_topic: str
) -> None:
    send(b"good", b"\xff\xfe", None)
    frame = read(**options(dead)).load()
    good, bad, tombstone = frame.orderBy("offset").collect()
    assert (good.value, good.deadLetter) == ("good", None)
    assert (tombstone.value, tombstone.deadLetter) == (None, None)
    letter = bad.deadLetter
    assert (bad.value, letter.topic, bytes(letter.key), bytes(letter.value)) == (None, dead, b"k", b"\xff\xfe")
    headers = {header.key: bytes(header.value) for header in letter.headers}
    assert headers["of"] == b"test"
    assert (headers["dead-letter.topic"], headers["dead-letter.offset"]) == (ottla_topic.encode(), b"1")
    assert headers["dead-letter.message"].decode() == letter.reason


def test_all_values_may_be_bad_and_columns_may_be_chosen(read: Read, send: Send, dead: str) -> None:
    send(b"\xff", b"\xfe")
    frame = read(**options(dead, columns="offset,value")).load()
    assert frame.columns == ["offset", "value", "deadLetter"]
    good, letters = ottla.spark.split_dead_letters(frame)
    assert good.columns == ["offset", "value"]
    assert (good.count(), letters.columns, letters.count()) == (0, ["topic", "key", "value", "headers"], 2)


def test_looking_at_rows_and_reading_them_in_two_queries_sends_nothing(
    spark: "SparkSession", send: Send, dead: str, ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    send(*(b"\xff%d" % number if number % 3 == 0 else b"%d" % number for number in range(60)))
    frame = stream(spark, ottla_broker, ottla_topic, dead)
    good, letters = ottla.spark.split_dead_letters(frame)
    files, topic = tmp_path / "files", ottla_topic + "-good"
    queries = [
        good.writeStream.format("parquet").option("path", str(files)),
        good.selectExpr("value", f"'{topic}' topic").writeStream.format("ottla"),
        letters.writeStream.format("ottla"),
    ]
    run(ottla_broker, tmp_path, *queries)
    assert records_of(ottla_broker, dead)
    run(ottla_broker, tmp_path, *queries)  # again, with the checkpoints: there is nothing new
    expected = [b"\xff%d" % number for number in range(60) if number % 3 == 0]
    assert [record.value for record in records_of(ottla_broker, dead)] == expected
    assert len(records_of(ottla_broker, topic)) == spark.read.parquet(str(files)).count() == 40


def test_rows_and_dead_letters_are_in_one_transaction(
    spark: "SparkSession", send: Send, ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    """The topic of dead letters refuses one, so none of the rows is there either; then it takes it, and all are."""
    dead, good = ottla_topic + "-small", ottla_topic + "-good"
    ottla_broker.create_topic(dead, settings={"max.message.bytes": 1000})
    ottla_broker.create_topic(good)
    send(b"one", b"\xff" * 2000, b"two", b"left out")
    frame = ottla.spark.records_and_dead_letters(
        stream(spark, ottla_broker, ottla_topic, dead),
        topic=good,
        key="concat('key of ', value)",
        value="value",
        where="value != 'left out'",
    )
    with pytest.raises(Exception, match=r"MessageTooLarge"):
        run(ottla_broker, tmp_path, frame.writeStream.format("ottla"))
    assert records_of(ottla_broker, good) == records_of(ottla_broker, dead) == []
    change_limit(ottla_broker, dead)
    run(ottla_broker, tmp_path, frame.writeStream.format("ottla"))
    assert [(record.key, record.value) for record in records_of(ottla_broker, good)] == [
        (b"key of one", b"one"),
        (b"key of two", b"two"),
    ]
    [letter] = records_of(ottla_broker, dead)
    assert (letter.key, letter.value, dict(letter.headers)["of"]) == (b"k", b"\xff" * 2000, b"test")


def test_a_frame_without_dead_letters_is_refused_with_the_options_to_give(read: Read) -> None:
    with pytest.raises(OptionError, match=r"value\.onError=deadLetter"):
        ottla.spark.split_dead_letters(read().load())


def test_columns_must_have_the_value(read: Read, dead: str) -> None:
    with pytest.raises(Exception, match="does not name value"):
        read(**options(dead, columns="offset")).load()


def test_an_option_error_has_no_traceback_above_it(
    spark: "SparkSession", read: Read, ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    server = {"kafka.bootstrap.servers": ottla_broker.bootstrap}
    stream = spark.readStream.format("ottla").options(**server, subscribe=ottla_topic)
    rows = stream.load()
    told = []
    for wrong in (
        lambda: read(startingOffsets="erliest").load(),
        lambda: stream.option("startingOffsets", "erliest").load(),
        lambda: read(maxBytesPerTrigger=5).load().collect(),
        lambda: read(subscribe=ottla_topic + "-none").load().collect(),
        lambda: read().load().write.format("ottla").mode("append").options(**server, topic="a", delivery="once").save(),
        lambda: (
            rows.writeStream.format("ottla")
            .options(**server, topic="a", delivery="once", checkpointLocation=str(tmp_path / "a"))
            .start()
            .awaitTermination(PATIENCE_S)
        ),
    ):
        with pytest.raises(Exception, match=r"option|topic") as raised:
            wrong()
        told.append(str(raised.value).split("JVM stacktrace")[0])
    assert [text for text in told if "Traceback" in text] == []


def test_what_queries_do_is_reported(
    spark: "SparkSession",
    send: Send,
    ottla_broker: Broker,
    ottla_topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import json

    from ottla.cli.main import main

    send(b"1", b"2", b"3")
    reports = ottla_topic + "-reports"
    listener = ottla.spark.report_pipelines(spark, ottla_broker.bootstrap, topic=reports)
    try:
        frame = spark.readStream.format("ottla").options(
            **{
                "kafka.bootstrap.servers": ottla_broker.bootstrap,
                "subscribe": ottla_topic,
                "startingOffsets": "earliest",
            }
        )
        counted = frame.load().withWatermark("timestamp", "1 second").groupBy("key").count()
        run(ottla_broker, tmp_path, counted.writeStream.queryName("counts").outputMode("update").format("noop"))
        failing = frame.load().selectExpr("raise_error('as wanted') value").writeStream.queryName("fails")
        with pytest.raises(Exception, match="as wanted"):
            run(ottla_broker, tmp_path / "other", failing.format("noop"))
        wait_for_reports(ottla_broker, reports, 2)
    finally:
        spark.streams.removeListener(listener)
        listener.close()
    capsys.readouterr()
    command = ["pipelines", "-b", ottla_broker.bootstrap, "--reports-topic", reports, "--all"]
    assert main([*command, "--json"]) == 0
    found = {one["name"]: one for one in map(json.loads, capsys.readouterr().out.splitlines())}
    counts, fails = found["counts"], found["fails"]
    assert (counts["state"], counts["batch"] >= 0, counts["state_rows"]) == ("ended", True, 1)
    assert counts["offsets"] == {ottla_topic: {"0": 3}}
    assert counts["watermark"]
    assert fails["state"] == "failed"
    assert "as wanted" in fails["error"]
    assert main(command) == 0
    assert "as wanted" in capsys.readouterr().out


def stream(spark: "SparkSession", broker: Broker, topic: str, dead: str) -> "DataFrame":
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return spark.readStream.format("ottla").options(**given, **options(dead)).load()


def run(broker: Broker, directory: Path, *writers: Any) -> None:
    """One after the other, each with a checkpoint of its own, until all is read that is there."""
    for number, writer in enumerate(writers):
        checkpoint = str(directory / f"checkpoint-{number}")
        given = writer.option("checkpointLocation", checkpoint).option("kafka.bootstrap.servers", broker.bootstrap)
        assert given.trigger(availableNow=True).start().awaitTermination(PATIENCE_S)


def wait_for_reports(broker: Broker, topic: str, ended: int) -> None:
    """Spark calls listeners when it comes to it."""
    from time import monotonic, sleep

    from ottla.spark.pipeline_reports import LIVE, PipelineReport

    deadline_s = monotonic() + PATIENCE_S
    while monotonic() < deadline_s:
        last = {record.key: PipelineReport.decode(record.value) for record in records_of(broker, topic)}
        if Counter(report.state in LIVE for report in last.values())[False] == ended:
            return
        sleep(0.1)
    raise AssertionError("the reports did not come")


def change_limit(broker: Broker, topic: str) -> None:
    from ottla.cli.main import main

    assert main(["config", "set", "topic", topic, "max.message.bytes=1000000", "-b", broker.bootstrap]) == 0
