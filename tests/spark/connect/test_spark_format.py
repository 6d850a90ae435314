"""`connector.class=spark`: any format of Spark's, both ways, with the checkpoint that is kept."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ottla
from ottla.connect.connectors.spark_format import SparkSink, check_path, format_of, numbered
from ottla.connect.engine import SparkEngine, source_writer
from ottla.connect.engine.failures import TakenOver
from ottla.connect.engine.run import Run, new_run
from ottla.connect.engine.session import activate
from ottla.connect.engine.spark_formats import (
    FormatWriter,
    KeptCheckpoint,
    _reads_of,
    partition_of,
    stored_offset,
    write_frame,
)
from ottla.connect.engine_port import ConnectorSpec
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption
from ottla.testing import Broker
from tests.spark.connect.scene import Listener, make_topic
from tests.spark.connect.test_sink_kills import SinkScene
from tests.spark.sink_scene import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def engine(spark: "SparkSession") -> Iterator[SparkEngine]:
    made = SparkEngine({})
    yield made
    made.close()
    activate(spark)
    assert spark.conf.get("spark.sql.streaming.numRecentProgressUpdates") == "100", "connectors have their own settings"


class Scene:
    """JSON files to a topic, as Spark's own format `json` reads them; and the topic to Parquet."""

    def __init__(self, broker: Broker, topic: str, directory: Path) -> None:
        self.broker, self.topic, self.directory = broker, topic, directory
        self.worker = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "workers",
            "offset.storage.topic": f"offsets-{topic}",
            "offset.storage.partitions": "1",
            "key.converter": "StringConverter",
            "value.converter": "JsonConverter",
            "file.allowed.paths": str(directory),
            "ottla.connect.state.dir": str(directory / "state"),
        }
        (directory / "in").mkdir()
        self.source = {
            "connector.class": "spark",
            "spark.format": "json",
            "spark.schema": "id BIGINT, name STRING",
            "spark.option.path": str(directory / "in"),
            "topic": topic,
            "spark.key": "name",
        }
        self.sink = {
            "connector.class": "spark",
            "spark.format": "parquet",
            "spark.mode": "overwrite",
            "spark.option.path": str(directory / "out" / "query=${query}" / "batch=${batch}"),
            "topics": topic,
        }

    def add(self, name: str, *ids: int) -> None:
        hidden = self.directory / f".{name}"
        hidden.write_text("".join(json.dumps({"id": number, "name": f"n{number}"}) + "\n" for number in ids))
        hidden.rename(self.directory / "in" / name)

    def spec(self, name: str, config: dict[str, str]) -> ConnectorSpec:
        return ConnectorSpec(name, {**config, "name": name}, self.worker, 1)

    def ids(self) -> list[int]:
        return [json.loads(record.value)["payload"]["id"] for record in records(self.broker, self.topic)]

    def written(self) -> list[int]:
        """In the batches that Spark has finished."""
        done = [mark.parent for mark in (self.directory / "out").rglob("_SUCCESS")]
        found = (path for batch in done for path in batch.glob("*.parquet"))
        return sorted(one for path in found for one in parquet.ParquetFile(path).read()["id"].to_pylist())

    def run(self, name: str = "by-hand") -> Run:
        return new_run(name, "source", self.source, self.worker)


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> Scene:
    source_writer.kept.forget()
    return Scene(ottla_broker, ottla_topic, tmp_path)


def until(done: Any, *listeners: Listener, timeout_s: float = 300) -> None:
    """Also through starts that Spark had no time for: a busy machine's Python processes may come too late."""
    deadline_s = time.monotonic() + timeout_s
    while not done():
        said = [trace for one in listeners for trace in one.traces]
        assert not any("failed" in one.events for one in listeners), said
        assert time.monotonic() < deadline_s, said
        time.sleep(0.1)


def test_files_reach_a_topic_once_through_stops_and_a_lost_checkpoint(engine: SparkEngine, scene: Scene) -> None:
    first = Listener()
    name = f"source-{scene.topic}"
    scene.add("a", 1, 2, 3)
    engine.start(scene.spec(name, scene.source), first)
    until(lambda: scene.ids() == [1, 2, 3], first)
    assert [record.key for record in records(scene.broker, scene.topic)] == [b"n1", b"n2", b"n3"]
    engine.stop(name)
    first.wait_for("stopped")
    scene.add("b", 4)
    again = Listener()
    engine.start(scene.spec(name, scene.source), again)  # another start, with the checkpoint of the first
    until(lambda: scene.ids() == [1, 2, 3, 4], again)
    engine.stop(name)
    again.wait_for("stopped")
    # A checkpoint that is lost is named; nothing is read from the beginning by itself.
    (kept,) = scene.directory.glob("state/checkpoint-*")
    shutil.rmtree(kept)
    lost = Listener()
    engine.start(scene.spec(name, scene.source), lost)
    until(lambda: bool(lost.events))
    assert lost.events == ["failed"], lost.traces
    assert "spark.checkpoint" in lost.traces[0]
    engine.stop(name)
    lost.wait_for("stopped")
    # The same files read whole, once.
    whole = {**scene.source, "spark.read": "batch", "topic": f"{scene.topic}-whole"}
    make_topic(scene.broker, f"{scene.topic}-whole")
    batch = Listener()
    engine.start(scene.spec(f"{name}-whole", whole), batch)
    until(lambda: len(records(scene.broker, f"{scene.topic}-whole")) == 4, batch)
    engine.stop(f"{name}-whole")
    batch.wait_for("stopped")
    assert scene.ids() == [1, 2, 3, 4]


def test_a_batch_that_comes_again_is_in_the_format_once(spark: "SparkSession", scene: Scene) -> None:
    """What foreachBatch calls, by hand: another process of the connector has the same batch again."""
    schema = '{"type":"struct","fields":[{"type":"int64","field":"id"}],"optional":false}'
    values = [f'{{"schema":{schema},"payload":{{"id":{number}}}}}'.encode() for number in range(4)]
    sink = SinkScene(scene.broker, scene.topic, scene.directory)
    for batch, first, last in ((0, 0, 1), (0, 0, 1), (1, 2, 3)):
        config = {**scene.sink, "spark.place.columns": "true"}
        write = FormatWriter(new_run("by-hand", "sink", config, scene.worker))
        write.query = "q"
        write.is_known.set()
        rows = pa.Table.from_batches([sink.rows(first, last, values[first : last + 1])])
        write(spark.createDataFrame(rows.drop_columns(["headers", "timestamp"])).selectExpr("*", *_MISSING), batch)
    assert scene.written() == [0, 1, 2, 3]
    assert {path.name for path in (scene.directory / "out" / "query=q").iterdir()} == {"batch=0", "batch=1"}


_MISSING = (
    "timestamp_millis(0) AS timestamp",
    "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
)


@pytest.mark.slow
def test_a_topic_reaches_files_by_a_query(engine: SparkEngine, scene: Scene) -> None:
    sink, name = Listener(), f"sink-{scene.topic}"
    schema = '{"type":"struct","fields":[{"type":"int64","field":"id"}],"optional":false}'
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap) as producer:
        for number in range(3):
            producer.send(scene.topic, f'{{"schema":{schema},"payload":{{"id":{number}}}}}'.encode())
    engine.start(scene.spec(name, scene.sink), sink)
    until(lambda: scene.written() == [0, 1, 2], sink)
    engine.stop(name)
    sink.wait_for("stopped")


def rows(*ids: int) -> list[Any]:
    return [pa.record_batch({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{one}" for one in ids])})]


def test_a_batch_that_spark_runs_again_is_written_once(scene: Scene) -> None:
    run = scene.run()
    assert stored_offset(run) is None
    write_frame(run, "c", 0, rows(1, 2))
    source_writer.kept.forget()[0].close()  # another process has the next try, and the next batch
    write_frame(run, "c", 0, rows(1, 2))
    write_frame(run, "c", 1, rows(3))
    write_frame(run, "c", 3, rows(4))  # a batch without rows has no task
    assert scene.ids() == [1, 2, 3, 4]
    assert stored_offset(run) == {"checkpoint": "c", "batch": 3}
    assert partition_of(run) == {"spark": "json"}


def test_an_old_copy_of_a_checkpoint_and_another_ones_batch_write_nothing(scene: Scene) -> None:
    run = scene.run()
    stored_offset(run)
    write_frame(run, "c", 5, rows(1))
    for checkpoint, batch, error, said in (("c", 4, ConnectError, "old copy"), ("d", 6, TakenOver, "begun anew")):
        source_writer.kept.forget()
        with pytest.raises(error, match=said):
            write_frame(run, checkpoint, batch, rows(2))
    assert scene.ids() == [1]


def test_formats_and_paths_are_those_that_the_worker_allows(tmp_path: Path) -> None:
    worker = {"file.allowed.paths": str(tmp_path)}
    inside = {"spark.format": "parquet", "spark.option.path": str(tmp_path / "x"), "spark.option.mergeSchema": "true"}
    assert format_of(inside, worker).options["mergeSchema"] == "true"
    for path in (
        "/etc",
        "file:/etc",
        "file:///etc",
        f"{tmp_path}/../x",
        f"{tmp_path}/{{a,../../etc}}",
        f"file:{tmp_path}/%2e%2e/x",
    ):
        with pytest.raises(ConnectError, match=r"file\.allowed\.paths"):
            format_of({"spark.format": "text", "spark.option.PATH": path}, worker)
    check_path("s3a://bucket/orders", worker, "spark.option.path")
    with pytest.raises(ConnectError, match=r"ottla\.connect\.spark\.formats"):
        format_of({"spark.format": "jdbc"}, worker)
    assert (
        format_of({"spark.format": "jdbc"}, {**worker, "ottla.connect.spark.formats": "parquet, JDBC"}).format == "jdbc"
    )
    with pytest.raises(InvalidOption, match="name one directory"):
        format_of({"spark.format": "text", "spark.option.paths": '["/etc/passwd"]'}, worker)


def test_a_new_beginning_deletes_a_checkpoint_and_nothing_else(spark: "SparkSession", tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    worker = {"file.allowed.paths": str(tmp_path), "ottla.connect.state.dir": str(tmp_path / "state")}
    run = new_run("by-hand", "source", {"spark.format": "json", "spark.checkpoint": str(kept)}, worker)
    for content in ("metadata", "orders.csv"):
        kept.mkdir()
        (kept / content).write_text('{"id": "0f2c"}')
        if content == "metadata":
            KeptCheckpoint(spark, run).forget()
            assert not kept.exists()
        else:
            with pytest.raises(ConnectError, match=r"spark\.checkpoint=.*it is no checkpoint of Spark's"):
                KeptCheckpoint(spark, run).forget()
            assert (kept / content).exists()


def test_the_number_of_a_streams_batch_is_no_count_of_reads() -> None:
    assert _reads_of({"checkpoint": "reads", "batch": 3}) == 3
    with pytest.raises(ConnectError, match=r"spark\.read=batch: .* those of spark.read=stream"):
        _reads_of({"checkpoint": "0f2c", "batch": 3})


@pytest.mark.parametrize(
    "option",
    [
        {"path": "file://{}/#/../../etc/passwd"},
        {"path": "file://{}/?x/../../etc/passwd"},
        {"path": "{}/\\.\\./\\.\\./etc/passwd"},
        {"path": "file:{}/%2e%2e/etc/passwd"},
        {"path": "viewfs://x/a/passwd"},
        {"path": "{}/in", "fs.defaultFS": "viewfs://x/"},
        {"path": "s3a://b/in", "fs.viewfs.mounttable.x.link./a": "file:///etc"},
        {"path": "s3a://b/in", "fs.s3a.IMPL": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"},
        {"path": "{}/in", "cleanSource": "archive", "sourceArchiveDir": "/etc"},
        {"path": "{}/in", "rowValidationXSDPath": "/etc/passwd"},
    ],
)
def test_no_way_of_writing_a_path_leads_out_of_what_is_allowed(tmp_path: Path, option: dict[str, str]) -> None:
    config = {f"spark.option.{key}": value.replace("{}", str(tmp_path)) for key, value in option.items()}
    worker = {"file.allowed.paths": str(tmp_path)}
    with pytest.raises(ConnectError, match=r"spark\.option\."):
        format_of({"spark.format": "text", **config}, worker)
    fine = {"spark.option.path": f"file://{tmp_path}/in", "spark.option.fs.s3a.endpoint": "http://s3"}
    assert format_of({"spark.format": "text", **fine}, worker).format == "text"


def test_a_batchs_number_goes_with_its_checkpoints_id() -> None:
    base = {"spark.format": "delta", "topics": "t"}
    assert not numbered(base)
    assert numbered({**base, "spark.option.txnVersion": "${batch}", "spark.option.txnAppId": "${query}"})
    with pytest.raises(InvalidOption, match="query"):
        numbered({**base, "spark.option.txnVersion": "${batch}"})
    with pytest.raises(InvalidOption, match="overwrite"):
        numbered({**base, "spark.mode": "overwrite", "spark.option.path": "/x"})
    assert SparkSink.validate({**base, "spark.formt": "x"})[0][0] == "spark.format"
