"""Connectors whose other end is a format of Spark's (`connector.class=spark`), docs/decisions/0024.

Theory of operation. Elsewhere the offsets topic is the truth, and each start deletes Spark's checkpoint. Here only
Spark understands the source's offsets, and some sources keep more than those in the checkpoint (which files were read).
So the checkpoint is kept, and what the offsets topic says is which of its batches is written:

    {"checkpoint": "0f2c…", "batch": 17}      the id that Spark gave the checkpoint, and the last batch of it

A batch is one transaction of one task, as every source's. Spark plans a batch, writes the plan to its checkpoint, and
runs it until it is done; after a crash it runs the same plan again. The writer that takes over asks the topic:

    a batch before this one, or nothing      this one is written
    this batch                               it was written already, and Spark did not hear of it
    a later one                              the checkpoint is an old copy: the connector fails

A start asks first: no offset means a new beginning, and an old checkpoint goes; an offset without its checkpoint is
refused, since reading from the beginning would repeat everything.

`spark.read=batch` has no checkpoint: the offset counts how often everything was read.

A sink's batch is converted in a task, and handed to Spark's own writer by the driver. Whether a batch that is written
twice is there twice is the format's to say: it is told `${query}` and `${batch}`, which are the same both times.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from ottla.connect.arrow_tables import records_from_table, table_of
from ottla.connect.connectors.spark_format import CHECKPOINT, SparkSink, SparkSource, check_path, filled, format_of
from ottla.connect.connectors.spark_format import numbered as is_numbered
from ottla.connect.engine.conversion import SourceConversion
from ottla.connect.engine.data_source import NAME, START, TYPE
from ottla.connect.engine.failures import TakenOver, packed, packs_failures
from ottla.connect.engine.offsets_log import OffsetsLog, OffsetStep, compact, offsets_topic
from ottla.connect.engine.run import Run, log_to_stderr
from ottla.connect.engine.session import activate
from ottla.connect.engine.sink_writer import RowsWriter
from ottla.connect.engine.source_reader import Control, fence
from ottla.connect.engine.source_writer import BatchWriter, Written, keep_writer, kept_writer
from ottla.connect.engine.tolerance import Tolerance
from ottla.connect.engine.topics import create_if_missing
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.options import read_options
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.worker_process import begin_task

_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"
_READS: Final = "reads"
"""In the place of a checkpoint's id, of a source that is read whole."""
READ: Final = "read"
_ROWS_AT_ONCE: Final = 20_000


def partition_of(run: Run) -> dict[str, str]:
    return {"spark": run.config.get("spark.format", "").strip()}


# --- what a start knows ---


def stored_offset(run: Run) -> dict[str, Any] | None:
    """Fences older starts, and asks the offsets topic where the connector is."""
    with ClusterAccess({**run.producer_settings(), **run.worker_settings()}) as access:
        create_if_missing(access, offsets_topic(run))
        fence(run)
        log = OffsetsLog(access, run.offsets_topic, run.name)
        log.catch_up()
        stored = log.get(partition_of(run))
    return None if stored is None else stored.offset


class KeptCheckpoint:
    """Spark's checkpoint of a connector, wherever Spark can keep one."""

    def __init__(self, spark: Any, run: Run) -> None:
        given = run.config.get(CHECKPOINT)
        if given is not None:
            check_path(given, run.worker, CHECKPOINT)
        self._is_given = given is not None
        self.place = given or run.kept_checkpoint
        self._java = spark._jvm
        path = self._java.org.apache.hadoop.fs.Path(self.place)
        self._path, self._files = path, path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def id(self) -> str | None:
        """What Spark called it; None if there is none."""
        metadata = self._java.org.apache.hadoop.fs.Path(self._path, "metadata")
        if not self._files.exists(metadata):
            return None
        stream = self._files.open(metadata)
        try:
            return str(json.loads(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))["id"])
        finally:
            stream.close()

    def forget(self) -> None:
        """Raises `ConnectError` for a directory that has other things in it: they are not ours to delete."""
        is_there = self._is_given and self._files.exists(self._path)
        if is_there and self.id() is None and len(self._files.listStatus(self._path)):
            raise ConnectError(
                f"{CHECKPOINT}={self.place}: it is no checkpoint of Spark's, and is not empty; a new beginning would "
                "delete it: name a directory that is empty, or is not there yet"
            )
        self._files.delete(self._path, True)


def checked_checkpoint(spark: Any, run: Run) -> KeptCheckpoint:
    """The checkpoint that the offsets topic speaks of; an empty one for a new beginning. Raises `ConnectError`."""
    kept, stored = KeptCheckpoint(spark, run), stored_offset(run)
    if stored is None:
        kept.forget()
        return kept
    there = kept.id()
    if there != stored.get("checkpoint"):
        raise ConnectError(
            f"the checkpoint {stored.get('checkpoint')} of this connector is not at {kept.place} "
            f"({'nothing is there' if there is None else f'{there} is'}): bring it back, or set {CHECKPOINT} to where "
            "it is; or delete the connector's offsets, to read its source again from the beginning"
        )
    return kept


# --- sources ---


def start_source(spark: Any, run: Run) -> Any:
    """A query, or what stands in for one, that reads with Spark and writes batches."""
    options = read_options(SparkSource.settings, run.config)
    chosen = format_of(run.config, run.worker)
    schema = options.optional_text("spark.schema")

    def frame(reader: Any) -> Any:
        reader = reader.format(chosen.format).options(**chosen.options)
        return (reader if schema is None else reader.schema(schema)).load().coalesce(1)

    if options.text("spark.read") == "batch":
        stored = stored_offset(run)
        done = -1 if stored is None else _reads_of(stored)

        def read(number: int) -> None:
            writer = frame(spark.read).write.format(NAME).mode("append")
            writer.option(START, str(run.spec_path)).option(TYPE, "spark").option(READ, str(number)).save()

        return RepeatedReads(spark, run, read, done + 1, options.integer("spark.interval.ms") / 1000)
    kept = checked_checkpoint(spark, run)
    query = (
        frame(spark.readStream)
        .writeStream.format(NAME)
        .option(START, str(run.spec_path))
        .option(TYPE, "spark")
        .option("checkpointLocation", kept.place)
        .queryName(f"{run.name} {run.id}")
        .start()
    )
    run.mark_running()
    return query


def _reads_of(stored: Mapping[str, Any]) -> int:
    """Raises `ConnectError` for an offset of a stream's, whose number counts something else."""
    if stored.get("checkpoint") != _READS:
        raise ConnectError(
            "spark.read=batch: the connector's offsets are those of spark.read=stream; set that again, or delete the "
            "offsets, to read everything"
        )
    return int(stored["batch"])


class RepeatedReads:
    """Reads everything, once or after each pause. For the engine it is a query."""

    def __init__(self, spark: Any, run: Run, read: Callable[[int], None], first: int, pause_s: float) -> None:
        self._spark, self._context, self._run, self._read = spark, spark.sparkContext, run, read
        self._number, self._pause_s = first, pause_s
        self._ends = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name=f"reads {run.name}", daemon=True)
        run.mark_running()
        self._thread.start()

    def _work(self) -> None:
        try:
            activate(self._spark)
            self._context.setJobGroup(self._run.id, f"connector {self._run.name}", interruptOnCancel=True)
            while not self._ends.is_set():
                if self._number == 0 or self._pause_s >= 0:
                    self._read(self._number)
                    self._number += 1
                self._ends.wait(self._pause_s if self._pause_s >= 0 else None)
        except Exception as error:
            if not self._ends.is_set():
                self._failure = error

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802  # as a query has it
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._ends.set()
        self._context.cancelJobGroup(self._run.id)
        self._thread.join(60)


class SparkRowsWriter(DataSourceStreamArrowWriter):
    """Rows of Spark's to a topic, in one task."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @packs_failures
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        begin_task("connector's batch")
        log_to_stderr()
        context = TaskContext.get()
        assert context is not None, "Spark calls write in a task"
        checkpoint, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        assert checkpoint is not None and batch is not None, "it is a streaming query"
        write_frame(self.run, checkpoint, int(batch), iterator)
        return Written()

    def commit(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803  # Spark's name
        """The task has committed."""

    def abort(self, messages: Sequence[Any], batchId: int) -> None:  # noqa: N803
        """What a task leaves open the next start ends."""


class SparkReadWriter(DataSourceArrowWriter):
    """The same for a source that is read whole, for the `number`-th time."""

    def __init__(self, run: Run, number: int) -> None:
        self.run, self._number = run, number

    @packs_failures
    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        begin_task("connector's batch")
        log_to_stderr()
        write_frame(self.run, _READS, self._number, iterator)
        return Written()

    def commit(self, messages: Sequence[Any]) -> None:
        """The task has committed."""


def write_frame(run: Run, checkpoint: str, batch: int, rows: Iterable[Any]) -> None:
    """Writes a batch once, whoever tries, and however often. Raises `TakenOver`, or what the cluster says."""
    partition, after = partition_of(run), {"checkpoint": checkpoint, "batch": batch}
    step = OffsetStep(partition, compact([run.name, partition]), None, None, after)
    control = Control(batch + 1, {}, [step])
    writer = kept_writer(run, control)
    try:
        if writer is None:
            writer = BatchWriter(run)
            stored = writer.takes_over_from(partition)
            if stored is not None:
                control.steps = [step._replace(key=stored.key)]
                if stored.offset is not None and _is_written(stored.offset, checkpoint, batch):
                    writer.batch = control.batch
                    keep_writer(writer)
                    return
        writer.write(control, _converted(run, rows))
    except BaseException:
        if writer is not None:
            writer.close()
        raise
    keep_writer(writer)


def _is_written(stored: Mapping[str, Any], checkpoint: str, batch: int) -> bool:
    if stored.get("checkpoint") != checkpoint:
        raise TakenOver("another start of the connector has begun anew meanwhile, and this one ends")
    if int(stored["batch"]) > batch:
        raise ConnectError(
            f"batch {stored['batch']} of checkpoint {checkpoint} is written, and Spark plans batch {batch}: the "
            "checkpoint is an old copy; bring the newest back, or delete the connector's offsets to begin anew"
        )
    return bool(stored["batch"] == batch)


def _converted(run: Run, rows: Iterable[Any]) -> Iterator[Any]:
    """Rows of bytes, with the topics noted."""
    options = read_options(SparkSource.settings, run.config)
    topic, key = options.text("topic"), options.optional_text("spark.key")
    conversion = SourceConversion(run.config, run.worker, Tolerance(run.name, run.config, run.log()))
    topics: set[str] = set()
    for batch in rows:
        for begin in range(0, batch.num_rows, _ROWS_AT_ONCE):
            part = batch.slice(begin, _ROWS_AT_ONCE)
            if key is not None and key not in part.schema.names:
                raise ConnectError(f"spark.key={key}: the format's columns are {', '.join(part.schema.names)}")
            try:
                records = records_from_table(topic, part, key=key)
            except DataError as error:
                raise ConnectError(
                    f"a row of spark.format={partition_of(run)['spark']} is no record: {error}"
                ) from None
            for made in conversion.rows(records):
                new = set(made.column("topic").unique().to_pylist()) - topics
                if new:
                    topics |= new
                    run.note_topics(topics)
                yield made


# --- sinks ---


def start_sink(spark: Any, run: Run) -> Any:
    """A query from our Spark source to a format of Spark's."""
    format_of(run.config, run.worker)
    rows = spark.readStream.format(NAME).option(START, str(run.spec_path)).option(TYPE, run.type).load()
    place = KeptCheckpoint(spark, run).place if is_numbered(run.config) else run.checkpoint
    write = FormatWriter(run)
    query = (
        rows.coalesce(1)
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", place)
        .queryName(f"{run.name} {run.id}")
        .start()
    )
    write.query = str(query.id)
    write.is_known.set()
    run.mark_running()
    return query


class FormatWriter:
    """What the driver does with a batch: a task converts it, and the format's writer writes it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.query = ""
        self.is_known = threading.Event()

    def __call__(self, rows: Any, batch: int) -> None:
        self.is_known.wait()
        run = self._run
        parts = rows.mapInArrow(Converting(run), "part BINARY").collect()
        tables = [pa.ipc.open_stream(bytes(part.part)).read_all() for part in parts]
        if not tables:
            return
        try:
            schema = pa.unify_schemas([table.schema for table in tables], promote_options="permissive")
            table = pa.concat_tables([_with_columns(one, schema) for one in tables])
        except pa.ArrowException as error:
            raise packed(
                ConnectError(f"records of one batch have schemas that do not go together: {error}"), run
            ) from None
        options = read_options(SparkSink.settings, run.config)
        chosen = format_of(run.config, run.worker)
        frame = rows.sparkSession.createDataFrame(table)
        writer = frame.write.format(chosen.format).options(**filled(chosen.options, self.query, batch))
        writer = writer.mode(options.text("spark.mode"))
        name = options.optional_text("spark.table")
        if name is None:
            writer.save()
        else:
            writer.saveAsTable(name)


class Converting:
    """In a task: rows of bytes to tables, each as one row of Arrow's own bytes. Refused records are left out here."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @packs_failures
    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        begin_task("connector's batch")
        log_to_stderr()
        found = [batch for batch in batches if batch.num_rows]
        if not found:
            return iter(())
        has_places = read_options(SparkSink.settings, self.run.config).flag("spark.place.columns")
        writer = RowsWriter(self.run)
        try:
            parts = [_table(records, has_places) for records in writer.converted(pa.Table.from_batches(found))]
        finally:
            writer.close()
        return iter(
            [pa.RecordBatch.from_arrays([pa.array(map(_bytes, parts), pa.binary())], ["part"])] if parts else []
        )


def _table(records: Any, has_places: bool) -> Any:
    try:
        table = table_of(records)
    except DataError as error:
        raise ConnectError(f"{records.where(error.row or 0)}: {error}") from None
    if has_places:
        topics = pa.array([records.topic] * len(records), pa.string())
        for name, column in zip(_PLACES, (topics, records.partition, records.offset), strict=True):
            table = table.append_column(name, column)
    return table.replace_schema_metadata(None)


_PLACES: Final = ("kafka_topic", "kafka_partition", "kafka_offset")


def _bytes(table: Any) -> bytes:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return bytes(stream.getvalue())


def _with_columns(table: Any, schema: Any) -> Any:
    count = table.num_rows
    columns = [
        table.column(field.name) if field.name in table.schema.names else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(columns, names=schema.names).cast(schema)
