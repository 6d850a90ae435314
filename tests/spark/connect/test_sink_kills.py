"""Every row of the failure table for sinks in docs/decisions/0024, without Spark: rows as our Spark source has them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ottla
from ottla.base.ids import TopicPartition
from ottla.connect.connectors import file_stream
from ottla.connect.connectors.file_stream import FileStreamSink
from ottla.connect.engine import sink_writer
from ottla.connect.engine.failures import RunFailed, failure_in
from ottla.connect.engine.run import Run, new_run
from ottla.connect.engine.sink_reader import SinkReader, positions_of_target
from ottla.connect.engine.sink_writer import RowsWriter, write_rows
from ottla.testing import Broker
from tests.spark.connect.scene import STRINGS
from tests.spark.sink_scene import Where, die


class SinkScene:
    """A FileStreamSink to `out.txt`, from a topic whose record n has the value `line n`."""

    def __init__(self, broker: Broker, topic: str, directory: Path, **config: str) -> None:
        self.broker, self.topic, self.directory = broker, topic, directory
        self.file = directory / "out.txt"
        self.worker = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "workers",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "file.allowed.paths": str(directory),
            "ottla.connect.state.dir": str(directory / "state"),
        }
        self.config = {
            "name": f"sink-{topic}",
            "connector.class": "FileStreamSink",
            "file": str(self.file),
            "topics": topic,
            **config,
        }

    def new_run(self) -> Run:
        return new_run(self.config["name"], "sink", self.config, self.worker)

    def rows(self, first: int, last: int, values: Sequence[bytes | None] | None = None) -> Any:
        count = last - first + 1
        found = [f"line {number}".encode() for number in range(first, last + 1)] if values is None else list(values)
        header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        return pa.record_batch(
            {
                "key": pa.nulls(count, pa.binary()),
                "value": pa.array(found, pa.binary()),
                "topic": pa.array([self.topic] * count),
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(first, last + 1), pa.int64()),
                "timestamp": pa.array([0] * count, pa.timestamp("us", "UTC")),
                "timestampType": pa.array([0] * count, pa.int32()),
                "headers": pa.nulls(count, pa.list_(pa.field("element", header))),
            }
        )

    def positions(self) -> dict[TopicPartition, int]:
        return dict(positions_of_target(self.new_run()) or {})

    def run_and_be_killed(self, where: Any, *batches: tuple[int, int]) -> None:
        def work() -> None:
            with where.armed():
                run = self.new_run()
                for first, last in batches:
                    write_rows(run, iter([self.rows(first, last)]))
            os._exit(0)

        die(work)

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines()


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> SinkScene:
    sink_writer.kept.forget()
    return SinkScene(ottla_broker, ottla_topic, tmp_path)


POINTS = {
    "before the sink has started": Where(FileStreamSink, "start"),
    "after the positions were read": Where(FileStreamSink, "positions", after=True),
    "before the put": Where(FileStreamSink, "put"),
    "in the put, when rows are written and their positions not": Where(file_stream, "_write_note", nth=2),  # type: ignore[arg-type]
    "in the put, when the positions are written and not in their place": Where(os, "replace", nth=2),  # type: ignore[arg-type]
    "after the put": Where(FileStreamSink, "put", after=True),
    "after the batch": Where(RowsWriter, "put", after=True),
    "in the second put": Where(file_stream, "_write_note", nth=3),  # type: ignore[arg-type]
    "after the second put": Where(FileStreamSink, "put", nth=2, after=True),
}


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_or_repeated_when_a_writer_is_killed(scene: SinkScene, point: str) -> None:
    scene.run_and_be_killed(POINTS[point], (0, 2), (3, 5))
    run = scene.new_run()
    begins = scene.positions().get(TopicPartition(scene.topic, 0), 0)  # where the new start reads from
    write_rows(run, iter([scene.rows(begins, 5)] if begins < 6 else []))
    write_rows(run, iter([scene.rows(6, 7)]))
    assert scene.lines() == [f"line {number}" for number in range(8)]
    assert scene.positions() == {TopicPartition(scene.topic, 0): 8}


def test_a_task_that_spark_tries_again_passes_over_what_is_there(scene: SinkScene) -> None:
    run = scene.new_run()
    write_rows(run, iter([scene.rows(0, 4)]))
    sink_writer.kept.forget()[0].close()  # another process has the second attempt
    write_rows(run, iter([scene.rows(0, 7)]))
    assert scene.lines() == [f"line {number}" for number in range(8)]


def test_processes_that_take_turns_pass_nothing_over_and_repeat_nothing(scene: SinkScene) -> None:
    run = scene.new_run()
    write_rows(run, iter([scene.rows(0, 1)]))
    first = sink_writer.kept.forget()
    write_rows(run, iter([scene.rows(2, 3)]))
    sink_writer.kept.forget()[0].close()
    sink_writer.kept.give(run.name, *first)
    write_rows(run, iter([scene.rows(4, 5)]))
    assert scene.lines() == [f"line {number}" for number in range(6)]


def test_a_start_begins_where_the_target_is_and_not_where_the_group_is(scene: SinkScene) -> None:
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap) as producer:
        for number in range(6):
            producer.send(scene.topic, f"line {number}".encode(), partition=0)
    write_rows(scene.new_run(), iter([scene.rows(0, 3)]))
    with ottla.Admin(bootstrap_servers=scene.broker.bootstrap) as admin:
        here = TopicPartition(scene.topic, 0)
        admin.alter_consumer_group_offsets(f"connect-sink-{scene.topic}", {here: 1}).raise_first()
        reader = SinkReader(scene.new_run())
        assert reader.initialOffset()[scene.topic]["0"] == 4
        reader.stop()


def test_a_target_that_keeps_no_positions_begins_where_the_group_is(
    scene: SinkScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap) as producer:
        for number in range(6):
            producer.send(scene.topic, f"line {number}".encode(), partition=0)
    monkeypatch.setattr(FileStreamSink, "positions", lambda self: None)
    reader = SinkReader(scene.new_run())
    assert reader.initialOffset()[scene.topic]["0"] == 0  # the group knows nothing: the beginning
    reader.stop()
    with ottla.Admin(bootstrap_servers=scene.broker.bootstrap) as admin:
        here = TopicPartition(scene.topic, 0)
        admin.alter_consumer_group_offsets(f"connect-sink-{scene.topic}", {here: 2}).raise_first()
    reader = SinkReader(scene.new_run())
    assert reader.initialOffset()[scene.topic]["0"] == 2
    reader.stop()


def _produced(scene: SinkScene, count: int) -> None:
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap) as producer:
        for number in range(count):
            producer.send(scene.topic, f"line {number}".encode(), partition=0)


def test_a_topic_that_is_not_there_is_waited_for(scene: SinkScene) -> None:
    scene.config["topics"] = f"{scene.topic},none-{scene.topic}"
    with pytest.raises(RunFailed) as failed:
        SinkReader(scene.new_run()).initialOffset()
    failure = failure_in(str(failed.value))
    assert failure.retriable
    assert f"topics=none-{scene.topic}: not there yet" in failure.trace


def test_a_topic_that_was_made_anew_is_refused_and_not_passed_over(scene: SinkScene) -> None:
    _produced(scene, 2)
    write_rows(scene.new_run(), iter([scene.rows(0, 9)]))
    with pytest.raises(RunFailed) as failed:
        SinkReader(scene.new_run()).initialOffset()
    failure = failure_in(str(failed.value))
    assert not failure.retriable
    assert f"the target has {scene.topic}-0 up to offset 10, and the topic ends at 2" in failure.trace


def test_records_that_retention_took_are_passed_over_as_in_kafka(scene: SinkScene) -> None:
    _produced(scene, 6)
    with ottla.Admin(bootstrap_servers=scene.broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(scene.topic, 0): 4}).raise_first()
    write_rows(scene.new_run(), iter([scene.rows(0, 1)]))
    reader = SinkReader(scene.new_run())
    assert reader.initialOffset()[scene.topic]["0"] == 4
    reader.stop()


def test_a_wrong_target_fails_the_start_and_not_the_first_record(scene: SinkScene) -> None:
    scene.config["file"] = "/etc/passwd"
    with pytest.raises(RunFailed) as failed:
        SinkReader(scene.new_run()).initialOffset()
    assert "file.allowed.paths" in failure_in(str(failed.value)).trace
