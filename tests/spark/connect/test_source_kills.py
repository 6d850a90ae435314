"""Every row of the failure table for sources in docs/decisions/0024. Each start is a process that is killed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

import ottla
from ottla.client.blocking.producer import Producer
from ottla.client.errors import KafkaError
from ottla.connect.connectors import file_stream
from ottla.connect.connectors.file_stream import FileStreamSource
from ottla.connect.engine import source_reader, source_writer
from ottla.connect.engine.failures import RunFailed, TakenOver, failure_in
from ottla.connect.engine.offsets_log import OffsetsLog, end_transaction
from ottla.connect.engine.source_reader import SourceReader
from ottla.connect.engine.source_writer import BatchWriter, write_batch
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.testing import Broker
from tests.spark.connect.scene import SourceScene, commit_late
from tests.spark.sink_scene import Where


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> SourceScene:
    source_writer.kept.forget()
    return SourceScene(ottla_broker, ottla_topic, tmp_path)


POINTS = {
    "before it has fenced": Where(source_reader, "fence"),  # type: ignore[arg-type]
    "after it has fenced": Where(source_reader, "fence", after=True),  # type: ignore[arg-type]
    "after the offsets were read": Where(OffsetsLog, "catch_up", after=True),
    "after it has read from the source": Where(FileStreamSource, "poll", after=True),
    "before a batch is planned": Where(SourceReader, "_steps"),
    "before the writer takes over": Where(BatchWriter, "takes_over"),
    "after the writer has fenced": Where(Producer, "init_transactions", nth=2, after=True),
    "after the writer took over": Where(BatchWriter, "takes_over", after=True),
    "after the rows are sent": Where(BatchWriter, "_send", after=True),
    "after the offsets are sent": Where(BatchWriter, "_send_offsets", after=True),
    "before the commit is sent": Where(Producer, "commit"),
    "after the commit": Where(Producer, "commit", after=True),
    "after the batch is written": Where(BatchWriter, "write", after=True),
    "before the second batch is planned": Where(SourceReader, "_steps", nth=2),
    "after the rows of the second batch are sent": Where(BatchWriter, "_send", nth=2, after=True),
    "after the second commit": Where(Producer, "commit", nth=2, after=True),
}


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_or_repeated_when_a_start_is_killed(scene: SourceScene, point: str) -> None:
    scene.append(*(f"before {number}" for number in range(3)))
    with Slow.armed():
        scene.run_and_be_killed(POINTS[point])
    scene.append("after")
    start = scene.start().all()
    start.stop()
    assert scene.lines() == ["before 0", "before 1", "before 2", "after"]
    assert scene.offsets() == {"position": scene.file.stat().st_size}


@pytest.mark.parametrize("point", POINTS)
def test_the_same_holds_where_the_reader_writes_itself(scene: SourceScene, point: str) -> None:
    scene.append(*(f"before {number}" for number in range(3)))
    with Slow.armed():
        scene.run_and_be_killed(POINTS[point], scene.start_direct)
    scene.append("after")
    scene.start_direct().all().stop()
    assert scene.lines() == ["before 0", "before 1", "before 2", "after"]
    assert scene.offsets() == {"position": scene.file.stat().st_size}


class Slow:
    """The file source, two lines at a time, and each poll a batch: then there are several."""

    @staticmethod
    @contextmanager
    def armed() -> Iterator[None]:
        real, gathered = file_stream._complete_lines, source_reader._Gathered.add

        def few(content: bytes) -> tuple[list[bytes], int]:
            lines, _ = real(content)
            return lines[:2], sum(len(line) + 1 for line in lines[:2])

        def full(self: Any, polled: Any, rows: Any) -> None:
            gathered(self, polled, rows)
            self.size += 1 << 30

        with patch.object(file_stream, "_complete_lines", few), patch.object(source_reader._Gathered, "add", full):
            yield


def test_a_task_that_spark_tries_again_writes_nothing_if_the_batch_is_there(scene: SourceScene) -> None:
    scene.append("one", "two")
    start = scene.start()
    planned = start.plan()
    assert planned is not None
    write_batch(start.run, *planned)
    source_writer.kept.forget()[0].close()  # another process has the second attempt
    write_batch(start.run, *planned)
    scene.append("three")
    start.all().stop()
    assert scene.lines() == ["one", "two", "three"]


def test_a_second_attempt_fences_the_first_which_cannot_commit(scene: SourceScene) -> None:
    scene.append("one")
    start = scene.start()
    planned = start.plan()
    assert planned is not None
    control, rows = planned
    first = BatchWriter(start.run)
    assert first.takes_over(control) is False
    first._producer.begin()
    first._send(rows)
    first._producer.flush()
    write_batch(start.run, control, rows)
    with pytest.raises(KafkaError):
        commit_late(first, control)
    first.close()
    start.stop()
    assert scene.lines() == ["one"]


def test_an_older_start_that_lives_on_cannot_write(scene: SourceScene) -> None:
    scene.append("one")
    older = scene.start()
    assert older.batch()
    scene.append("two")
    writers = source_writer.kept.forget()
    planned = older.plan()
    assert planned is not None
    newer = scene.start().all()
    source_writer.kept.forget()
    source_writer.kept.give(older.run.name, *writers)
    with pytest.raises(KafkaError) as fenced:
        write_batch(older.run, *planned)
    assert "newer producer" in str(fenced.value) or "took over" in str(fenced.value)
    older.stop()
    newer.stop()
    assert scene.lines() == ["one", "two"]


def test_an_older_starts_task_that_begins_late_finds_that_it_was_overtaken(scene: SourceScene) -> None:
    scene.append("one")
    older = scene.start()
    planned = older.plan()
    assert planned is not None
    newer = scene.start().all()
    source_writer.kept.forget()
    scene.append("two")
    newer_planned = newer.plan()
    assert newer_planned is not None
    write_batch(newer.run, *newer_planned)
    source_writer.kept.forget()
    with pytest.raises(TakenOver, match="another start of the connector has written"):
        write_batch(older.run, *planned)
    older.stop()
    newer.stop()
    assert scene.lines() == ["one", "two"]


def test_an_older_starts_task_that_comes_first_counts_and_the_newer_start_begins_anew(scene: SourceScene) -> None:
    scene.append("one")
    older = scene.start()
    planned = older.plan()
    assert planned is not None
    scene.append("two")
    newer = scene.start()  # it has read the offsets topic before the older one's task began
    newer_planned = newer.plan()
    assert newer_planned is not None
    write_batch(older.run, *planned)
    source_writer.kept.forget()
    with pytest.raises(TakenOver):
        write_batch(newer.run, *newer_planned)
    older.stop()
    newer.stop()
    scene.start().all().stop()
    assert scene.lines() == ["one", "two"]


def test_a_transaction_that_timed_out_is_written_by_the_next_start(scene: SourceScene) -> None:
    scene.config["producer.override.transaction.timeout.ms"] = "1000"
    scene.append("one")
    start = scene.start()
    planned = start.plan()
    assert planned is not None
    control, rows = planned
    writer = BatchWriter(start.run)
    writer.takes_over(control)
    writer._producer.begin()
    writer._send(rows)
    writer._producer.flush()
    with ClusterAccess({"bootstrap.servers": scene.broker.bootstrap}) as access:
        deadline_s = time.monotonic() + 60
        name = start.run.transactional_id
        while access.describe_transactions([name])[name].state.name == "ONGOING":
            assert time.monotonic() < deadline_s, "the coordinator does not end it"
            time.sleep(0.05)
    with pytest.raises(KafkaError):
        commit_late(writer, control)
    writer.close()
    start.stop()
    scene.start().all().stop()
    assert scene.lines() == ["one"]


def test_what_a_stopped_start_leaves_open_is_aborted_at_once(scene: SourceScene) -> None:
    scene.append("one")
    start = scene.start()
    planned = start.plan()
    assert planned is not None
    control, rows = planned
    writer = BatchWriter(start.run)
    writer.takes_over(control)
    writer._producer.begin()
    writer._send(rows)
    writer._producer.flush()
    start.stop()
    name = start.run.transactional_id
    with ClusterAccess({"bootstrap.servers": scene.broker.bootstrap}) as access:
        assert access.describe_transactions([name])[name].state.name == "ONGOING"
        end_transaction(start.run)
        assert access.describe_transactions([name])[name].state.name != "ONGOING"
    writer.close()
    assert scene.lines() == []


def test_another_connectors_hanging_transaction_hides_no_offsets(scene: SourceScene) -> None:
    scene.append("one")
    scene.start().stop()  # makes the topic
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap, transactional_id=f"hangs-{scene.topic}") as other:
        other.begin()
        for partition in range(3):
            other.send(scene.worker["offset.storage.topic"], b"{}", key=b'["other",{}]', partition=partition)
        other.flush()
        source_writer.kept.forget()
        scene.start().all().stop()
        source_writer.kept.forget()
        scene.append("two")
        scene.start().all().stop()
        other.abort()
    assert scene.lines() == ["one", "two"]


def test_the_state_directory_may_be_lost(scene: SourceScene) -> None:
    import shutil

    scene.append("one")
    scene.start().all().stop()
    source_writer.kept.forget()
    shutil.rmtree(scene.directory / "state")
    scene.append("two")
    scene.start().all().stop()
    assert scene.lines() == ["one", "two"]


def test_what_a_java_worker_left_is_continued_whatever_the_order_of_its_members(scene: SourceScene) -> None:
    scene.append("one", "two")
    scene.start().stop()  # makes the topic
    key = f'["{scene.name}",{{"filename":"{scene.file}"}}]'.replace(",{", " , {").encode()
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap) as producer:
        producer.send(scene.worker["offset.storage.topic"], b'{"position": 4}', key=key).result()
    scene.start().all().stop()
    assert scene.lines() == ["two"]
    assert scene.offsets() == {"position": 8}


def test_a_source_that_fails_after_good_records_loses_none_of_them(scene: SourceScene) -> None:
    scene.append("one")
    start = scene.start()
    assert start.batch()
    scene.file.unlink()
    scene.file.mkdir()  # cannot be opened
    with pytest.raises(RunFailed) as failed:
        start.end()
    assert not failure_in(str(failed.value)).retriable
    start.stop()
    assert scene.lines() == ["one"]


def test_a_source_is_started_once_however_often_spark_asks_where_it_begins(scene: SourceScene) -> None:
    from ottla.connect.engine.data_source import LateReader

    scene.append("one")
    starts = []
    real = FileStreamSource.start

    def counted(self: FileStreamSource) -> None:
        starts.append(self)
        real(self)

    with patch.object(FileStreamSource, "start", counted):
        reader = LateReader(str(scene.new_run().spec_path))
        offset = reader.initialOffset()
        assert reader.initialOffset() == offset
        with patch.object(source_reader, "_WAIT_S", 0.5):
            while not scene.lines():
                assert reader.latestOffset(offset, None) == offset
        assert reader.reportLatestOffset() == {"batches": 1, "records": 1}
        assert list(reader.partitions(offset, offset)) == []
        reader.stop()
    assert len(starts) == 1
    assert scene.lines() == ["one"]
