"""Records to rows and back; records that are refused."""

import logging
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ottla.connect.data.columns import Column, Schemaless, nothing
from ottla.connect.data.records import records_of
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.engine.conversion import ROWS, SimpleHeaders, SinkConversion, SourceConversion
from ottla.connect.engine.data_source import ROWS_DDL
from ottla.connect.engine.tolerance import Origin, RecordRefused, Tolerance
from ottla.connect.errors import DataError

WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
STRING = Schema(Type.STRING, optional=True)


def source(**config: str) -> SourceConversion:
    given = {key.replace("__", "."): value for key, value in config.items()}
    return SourceConversion(given, WORKER, Tolerance("c", given, logging.getLogger("ottla.connect.c")))


def sink(**config: str) -> SinkConversion:
    given = {key.replace("__", "."): value for key, value in config.items()}
    return SinkConversion(given, WORKER, Tolerance("c", given, logging.getLogger("ottla.connect.c")))


def rows(batches: list[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_headers_are_laid_out_row_by_row_and_only_where_they_are() -> None:
    headers = [
        [("a", STRING, "1"), ("b", Schema(Type.INT32), 7)],
        [],
        [("b", Schema(Type.INT32), 8), ("b", Schema(Type.INT32), 9)],
    ]
    records = records_of("t", nothing(3), Schemaless((1, 2, 3)), headers=headers)
    found = [[(one["key"], one["value"]) for one in row["headers"]] for row in rows(source().rows(records))]
    assert found == [[("a", b"1"), ("b", b"7")], [], [("b", b"8"), ("b", b"9")]]


def test_order_is_kept_when_a_predicate_divides_a_batch() -> None:
    conversion = source(
        transforms="route",
        transforms__route__type="org.apache.kafka.connect.transforms.HoistField$Value",
        transforms__route__field="f",
        transforms__route__predicate="gone",
        transforms__route__negate="true",
        predicates="gone",
        predicates__gone__type="org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    )
    made = conversion.rows(records_of("t", nothing(4), Schemaless((1, None, 2, None))))
    assert [row["value"] for row in rows(made)] == [b'{"f":1}', None, b'{"f":2}', None]


def test_a_refused_record_fails_the_batch_unless_it_is_tolerated() -> None:
    values = Schemaless(({"a": 1}, "no map", {"a": 2}))
    way = {"transforms": "x", "transforms__x__type": "ExtractField$Value", "transforms__x__field": "a"}
    with pytest.raises(RecordRefused, match="Only Map objects"):
        source(**way).rows(records_of("t", nothing(3), values))
    tolerant = source(**way, errors__tolerance="all", errors__deadletterqueue__topic__name="dead")
    made = rows(tolerant.rows(records_of("t", nothing(3), values)))
    assert [(row["topic"], row["value"]) for row in made] == [("t", b"1"), ("t", b"2"), ("dead", b'"no map"')]
    assert tolerant.tolerance.skipped == 1


def test_many_refused_records_are_found_by_halves() -> None:
    values = Schemaless(tuple({"a": number} if number % 3 else number for number in range(300)))
    conversion = source(
        transforms="x",
        transforms__x__type="ExtractField$Value",
        transforms__x__field="a",
        errors__tolerance="all",
    )
    made = rows(conversion.rows(records_of("t", nothing(300), values)))
    assert [int(row["value"]) for row in made] == [number for number in range(300) if number % 3]
    assert conversion.tolerance.skipped == 100


def raw(topics: list[str], values: list[bytes | None]) -> pa.Table:
    count = len(values)
    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.table(
        {
            "key": pa.array([b"k"] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(topics),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(100, 100 + count), pa.int64()),
            "timestamp": pa.array([5_000_000] * count, pa.timestamp("us", "UTC")),
            "headers": pa.array([[{"key": "h", "value": b"v"}]] * count, pa.list_(pa.field("element", header))),
        }
    )


def test_rows_of_several_topics_and_schemas_become_a_batch_for_each() -> None:
    config = {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
    }
    conversion = SinkConversion(config, WORKER, Tolerance("c", config, logging.getLogger("c")))
    number = b'{"schema":{"type":"int64","optional":false},"payload":%d}'
    text = b'{"schema":{"type":"string","optional":false},"payload":"%d"}'
    made = conversion.records(raw(["t", "u", "t", "t"], [number % 1, number % 2, text % 3, None]))
    found = sorted(
        (position, one.topic, None if value is None else value, offset)
        for one in made
        for position, value, offset in zip(
            one.position.to_pylist(),
            rows_of(one.value) if isinstance(one.value, Column) else one.value.values,
            one.offset.to_pylist(),
            strict=True,
        )
    )
    assert found == [(0, "t", 1, 100), (1, "u", 2, 101), (2, "t", "3", 102), (3, "t", None, 103)]
    assert {header.key for one in made for header in one.headers} == {"h"}
    assert {moment for one in made for moment in one.timestamp.to_pylist()} == {5_000}


def test_a_dead_letter_of_a_sink_is_the_record_as_it_was() -> None:
    conversion = sink(
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="dead",
        errors__deadletterqueue__context__headers__enable="true",
    )
    made = conversion.records(raw(["t", "t", "t"], [b"1", b"{", b"2"]))
    assert [value for one in made for value in one.value.values] == [1, 2]
    (letter,) = conversion.tolerance.take_letters()
    assert (letter.topic, letter.key, letter.value) == ("dead", b"k", b"{")
    said = dict(letter.headers)
    assert said["h"] == b"v"
    assert said["__connect.errors.offset"] == b"101"
    assert said["__connect.errors.exception.class.name"] == b"org.apache.kafka.connect.errors.DataException"
    assert conversion.tolerance.take_letters() == []


def test_refused_records_are_logged_if_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("ottla.connect").propagate = True
    conversion = sink(errors__tolerance="all", errors__log__enable="true", errors__log__include__messages="true")
    conversion.records(raw(["t"], [b"{"]))
    assert "error in VALUE_CONVERTER" in caplog.text
    assert "t-0 at offset 100" in caplog.text


def test_unused_columns_of_a_struct_schema_survive() -> None:
    records = records_of("t", column_of(STRING, ["k"]), Schemaless(({"a": [1, {"b": None}]},)), timestamps=[17])
    (row,) = rows(source().rows(records))
    assert (row["key"], row["value"], row["timestamp"]) == (b"k", b'{"a":[1,{"b":null}]}', 17)


def test_headers_that_a_sink_reads_are_what_their_text_looks_like() -> None:
    content = pa.array([b"42", b"it is", None, b"true", b"7"], pa.binary())
    parts = SimpleHeaders().from_bytes("t", content)
    read = {
        row: value for part in parts for row, value in zip(part.rows.to_pylist(), rows_of(part.column), strict=True)
    }
    assert read == {0: 42, 1: "it is", 2: None, 3: True, 4: 7}
    assert [part.column.schema.type for part in parts] == [Type.INT8, Type.STRING, Type.STRING, Type.BOOLEAN]


def test_rows_are_what_spark_is_told_they_are(spark: SparkSession) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import _parse_datatype_string

    told = to_arrow_schema(_parse_datatype_string(ROWS_DDL))
    assert [field.name for field in told] == ROWS.names
    assert [field.type for field in told] == ROWS.types


def test_a_message_with_half_of_a_surrogate_pair_becomes_a_dead_letter_too() -> None:
    config = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    tolerance = Tolerance("c", config, logging.getLogger("c"))
    refused = RecordRefused(DataError("no \ud800"), 0, "VALUE_CONVERTER", "x")
    tolerance.refuse(refused, lambda _: Origin("t", 0, 7, b"k", b"v"))
    (letter,) = tolerance.take_letters()
    assert dict(letter.headers)["__connect.errors.exception.message"] == b"no \\ud800"
