"""Records of a source to rows of bytes, and rows of bytes to records for a sink: transforms and converters, on Arrow.

Rows are what Spark carries. A source's have the columns of `ROWS`; a sink's are those of the Spark source of ours.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.converters.by_name import make_converter
from ottla.connect.converters.converter import Converter, Part
from ottla.connect.data.columns import AnyColumn, Column
from ottla.connect.data.records import Header, Records, header_columns
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.engine.tolerance import DeadLetter, Origin, RecordRefused, Tolerance
from ottla.connect.errors import DataError
from ottla.connect.java_text import java_text
from ottla.connect.literals import Literal, parse_literal
from ottla.connect.transforms.chain import TransformFailed, make_chain

if TYPE_CHECKING:
    from ottla.client.blocking.schema_registry import SchemaRegistryClient
    from ottla.connect.converters.registered import RegistryMaker

HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
HEADERS_TYPE: Final = pa.list_(pa.field("element", HEADER_TYPE))
ROWS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("timestamp", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE),
    ]
)
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_NO_HEADER: Final = Schema(Type.STRING, optional=True)
_SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


def part_converter(
    part: str, config: Mapping[str, str], worker: Mapping[str, str], registry: "RegistryMaker"
) -> tuple[str, Converter]:
    """The class name and the converter of keys or values: the connector's if it names one, else the worker's."""
    setting = f"{part}.converter"
    given = config if config.get(setting) else worker
    name = (given.get(setting) or _JSON).strip()
    prefix = f"{setting}."
    options: dict[str, str | None] = {
        key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)
    }
    return name, make_converter(name, options, is_key=part == "key", registry=registry)


class SimpleHeaders:
    """Kafka's SimpleHeaderConverter: strings as they are, other values as text, which is read as what it looks like."""

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        schema = column.schema
        if isinstance(column, Column) and column.schema.type is Type.STRING:
            return column.array.cast(pa.binary())
        values = rows_of(column) if isinstance(column, Column) else column.values
        return pa.array([None if one is None else _header_text(schema, one).encode() for one in values], pa.binary())

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        found: dict[Schema, tuple[list[int], list[Any]]] = {}
        for row, one in enumerate(content.to_pylist()):
            read = Literal(None, None) if one is None else parse_literal(one.decode("utf-8", "replace"))
            rows, values = found.setdefault(read.schema or _NO_HEADER, ([], []))
            rows.append(row)
            values.append(read.value)
        return [Part(pa.array(rows, pa.int64()), column_of(schema, values)) for schema, (rows, values) in found.items()]


def _header_text(schema: Schema | None, value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else java_text(schema, value)


def header_converter(
    config: Mapping[str, str], worker: Mapping[str, str], registry: "RegistryMaker"
) -> tuple[str, Converter]:
    name = (config.get("header.converter") or worker.get("header.converter") or _SIMPLE_HEADERS).strip()
    if name.rpartition(".")[2] in ("SimpleHeaderConverter", "Simple"):
        return name, SimpleHeaders()
    return part_converter("header", config, worker, registry)


def _refusing(stage: str, class_name: str, convert: Callable[[], Any], positions: Any) -> Any:
    """What `convert` makes; what it refuses, with the number of the record."""
    try:
        return convert()
    except DataError as error:
        record = None if error.row is None else positions[error.row].as_py()
        raise RecordRefused(error, record, stage, class_name) from error


class _Conversion:
    """Whoever makes one closes it."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str], tolerance: Tolerance) -> None:
        self._clients: list[SchemaRegistryClient] = []
        self.tolerance = tolerance
        self._chain = make_chain(dict(config))
        try:
            self._key_name, self._key = part_converter("key", config, worker, self._registry)
            self._value_name, self._value = part_converter("value", config, worker, self._registry)
            self._header_name, self._header = header_converter(config, worker, self._registry)
        except BaseException:
            self.close()
            raise

    def _registry(self, options: Mapping[str, str | None]) -> "SchemaRegistryClient":
        from ottla.connect.schema_registry import registry_client

        client = registry_client(options)
        self._clients.append(client)
        return client

    def close(self) -> None:
        """Closes the clients of the schema registry that its converters have."""
        while self._clients:
            self._clients.pop().close()

    def _transformed(self, batches: list[Records]) -> list[Records]:
        try:
            return self._chain.apply(batches)
        except TransformFailed as error:
            raise RecordRefused(error, error.position, "TRANSFORMATION", "transforms") from error


class SourceConversion(_Conversion):
    """A source's records to rows."""

    def rows(self, records: Records) -> list[Any]:
        """Record batches of `ROWS`, in the order of the records; dead letters behind them."""
        if not len(records):
            return []
        records = records.but(position=pa.array(range(len(records)), pa.int64()))

        def attempt(numbers: Any) -> list[tuple[Any, Any]]:
            chosen = records if len(numbers) == len(records) else records.take(numbers)
            return [(self._rows_of(made), made.position) for made in self._transformed([chosen]) if len(made)]

        made = self.tolerance.through(len(records), attempt, lambda row: _origin(records, row))
        batches = [batch for batch, _ in made]
        if len(batches) > 1:
            together = pa.Table.from_batches(batches).combine_chunks()
            order = pc.sort_indices(pa.concat_arrays([positions for _, positions in made]))
            batches = together.take(order).combine_chunks().to_batches()
        letters = self.tolerance.take_letters()
        return batches + ([letter_rows(letters)] if letters else [])

    def _rows_of(self, records: Records) -> Any:
        topic, positions = records.topic, records.position
        key = _refusing("KEY_CONVERTER", self._key_name, lambda: self._key.to_bytes(topic, records.key), positions)
        value = _refusing(
            "VALUE_CONVERTER", self._value_name, lambda: self._value.to_bytes(topic, records.value), positions
        )
        headers = _refusing("HEADER_CONVERTER", self._header_name, lambda: self._headers(topic, records), positions)
        columns = [
            pa.repeat(pa.scalar(topic, pa.string()), len(records)),
            _plain(records.partition).cast(pa.int32()),
            _plain(records.timestamp).cast(pa.int64()),
            _plain(key),
            _plain(value),
            headers,
        ]
        return pa.RecordBatch.from_arrays(columns, schema=ROWS)

    def _headers(self, topic: str, records: Records) -> Any:
        """A list for each row. Each of the batch's headers is a column; they are laid out row by row."""
        rows, count = len(records), len(records.headers)
        if not count:
            offsets = pa.array(np.zeros(rows + 1, np.int32))
            return pa.ListArray.from_arrays(offsets, pa.array([], HEADER_TYPE), type=HEADERS_TYPE)
        columns = [_plain(self._header.to_bytes(topic, header.column)) for header in records.headers]
        keys = pa.array([header.key for header in records.headers], pa.string())
        layout = np.arange(rows)[:, None] + rows * np.arange(count)[None, :]
        names = np.tile(np.arange(count), (rows, 1))
        ends = np.arange(rows + 1, dtype=np.int32) * count
        if any(header.present is not None for header in records.headers):
            present = np.stack([_present(header, rows) for header in records.headers], axis=1)
            layout, names = layout[present], names[present]
            ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
        values = pa.concat_arrays(columns).take(pa.array(layout.ravel()))
        entries = pa.StructArray.from_arrays([keys.take(pa.array(names.ravel())), values], fields=list(HEADER_TYPE))
        return pa.ListArray.from_arrays(pa.array(ends), entries, type=HEADERS_TYPE)


def _present(header: Header, rows: int) -> Any:
    if header.present is None:
        return np.ones(rows, bool)
    return np.array(header.present.to_pylist(), bool)


def _plain(array: Any) -> Any:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _origin(records: Records, row: int) -> Origin:
    """A source's record has no bytes yet: its dead letter has JSON."""
    one = records.take(pa.array([row], pa.int64()))
    return Origin(records.topic, None, None, _as_json(one.key), _as_json(one.value))


def _as_json(column: AnyColumn) -> bytes | None:
    try:
        made: bytes | None = make_converter(_JSON, {"schemas.enable": "false"}).to_bytes("", column)[0].as_py()
    except DataError:
        values = rows_of(column) if isinstance(column, Column) else column.values
        made = None if values[0] is None else repr(values[0]).encode()
    return made


def letter_rows(letters: list[DeadLetter]) -> Any:
    """Dead letters as rows."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([letter.topic for letter in letters], pa.string()),
            pa.nulls(len(letters), pa.int32()),
            pa.nulls(len(letters), pa.int64()),
            pa.array([letter.key for letter in letters], pa.binary()),
            pa.array([letter.value for letter in letters], pa.binary()),
            pa.array(
                [[{"key": key, "value": value} for key, value in letter.headers] for letter in letters], HEADERS_TYPE
            ),
        ],
        schema=ROWS,
    )


class SinkConversion(_Conversion):
    """Rows of our Spark source to records for a sink."""

    def records(self, rows: Any) -> list[Records]:
        """The records of a table of rows, transformed. `position` counts the table's rows."""

        def attempt(numbers: Any) -> list[Records]:
            chosen = rows if len(numbers) == rows.num_rows else rows.take(numbers)
            return self._transformed(list(self._records(chosen, numbers)))

        return self.tolerance.through(rows.num_rows, attempt, lambda row: raw_origin(rows, row))

    def _records(self, rows: Any, positions: Any) -> Iterator[Records]:
        topics = _plain(rows.column("topic"))
        for topic in topics.unique().to_pylist():
            if pc.all(pc.equal(topics, topic)).as_py():
                yield from self._of_topic(topic, rows, positions)
            else:
                chosen = pc.indices_nonzero(pc.equal(topics, topic)).cast(pa.int64())
                yield from self._of_topic(topic, rows.take(chosen), positions.take(chosen))

    def _of_topic(self, topic: str, rows: Any, positions: Any) -> Iterator[Records]:
        keys = _binary(rows.column("key"))
        values = _binary(rows.column("value"))
        key_parts = _refusing("KEY_CONVERTER", self._key_name, lambda: self._key.from_bytes(topic, keys), positions)
        value_parts = _refusing(
            "VALUE_CONVERTER", self._value_name, lambda: self._value.from_bytes(topic, values), positions
        )
        headers = self._header_columns(topic, rows, positions)
        timestamps = _plain(rows.column("timestamp")).cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        partitions = _plain(rows.column("partition")).cast(pa.int32())
        offsets = _plain(rows.column("offset")).cast(pa.int64())
        for key, value, chosen in _pairs(key_parts, value_parts, rows.num_rows):
            whole = chosen is None
            yield Records(
                topic,
                key,
                value,
                positions if whole else positions.take(chosen),
                timestamps if whole else timestamps.take(chosen),
                partitions if whole else partitions.take(chosen),
                headers if whole else tuple(header.take(chosen) for header in headers),
                offset=offsets if whole else offsets.take(chosen),
            )

    def _header_columns(self, topic: str, rows: Any, positions: Any) -> tuple[Header, ...]:
        column = _plain(rows.column("headers"))
        if not len(column.flatten()):
            return ()
        found: list[list[tuple[str, Schema | None, Any]]] = []
        for row, headers in enumerate(column.to_pylist()):
            of_row: list[tuple[str, Schema | None, Any]] = []
            for header in headers or ():
                content = pa.array([header["value"]], pa.binary())
                part = _refusing(
                    "HEADER_CONVERTER",
                    self._header_name,
                    lambda content=content: self._header.from_bytes(topic, content)[0],  # type: ignore[misc]
                    positions.slice(row, 1),
                )
                value = rows_of(part.column)[0] if isinstance(part.column, Column) else part.column.values[0]
                of_row.append((header["key"], part.column.schema, value))
            found.append(of_row)
        return header_columns(found)


def _pairs(keys: list[Part], values: list[Part], length: int) -> Iterator[tuple[AnyColumn, AnyColumn, Any]]:
    """Rows whose keys have one schema and whose values have one; None for all rows."""
    if len(keys) == len(values) == 1:
        yield keys[0].column, values[0].column, None
        return
    key_part, key_at = _places(keys, length)
    value_part, value_at = _places(values, length)
    for i, key in enumerate(keys):
        for j, value in enumerate(values):
            chosen = np.nonzero((key_part == i) & (value_part == j))[0]
            if len(chosen):
                yield (
                    key.column.take(pa.array(key_at[chosen])),
                    value.column.take(pa.array(value_at[chosen])),
                    pa.array(chosen, pa.int64()),
                )


def _places(parts: list[Part], length: int) -> tuple[Any, Any]:
    """Of each row, which part it is in, and where in it."""
    part, at = np.empty(length, np.int64), np.empty(length, np.int64)
    for number, one in enumerate(parts):
        rows = np.asarray(one.rows)
        part[rows] = number
        at[rows] = np.arange(len(rows))
    return part, at


def _binary(column: Any) -> Any:
    return _plain(column).cast(pa.binary())


def raw_origin(rows: Any, row: int) -> Origin:
    """Where a row of our Spark source came from."""
    found = rows.slice(row, 1).to_pylist()[0]
    headers = tuple((header["key"], header["value"]) for header in found["headers"] or ())
    return Origin(found["topic"], found["partition"], found["offset"], found["key"], found["value"], headers)
