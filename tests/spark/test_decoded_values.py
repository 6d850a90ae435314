"""`value.format`: values that are decoded on the executors, and those that cannot be."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from ottla import Producer
from ottla.schemas.json_schema.arrow import JsonValues
from tests.spark import backwards

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = Callable[..., Any]


@pytest.fixture
def send(producer: Producer, ottla_topic: str) -> Callable[..., None]:
    def send(*values: bytes | None) -> None:
        for value in values:
            producer.send(ottla_topic, value, key=b"k", headers=[("of", b"test")])
        producer.flush()

    return send


Send = Callable[..., None]


def test_values_are_text(read: Read, send: Send) -> None:
    send(b"one", None, "zwölf".encode())
    frame = read(**{"value.format": "string"}).load()
    assert frame.schema["value"].dataType.simpleString() == "string"
    assert [row.value for row in frame.orderBy("offset").collect()] == ["one", None, "zwölf"]


def test_values_are_json_of_a_schema(read: Read, send: Send) -> None:
    send(
        b'{"id": 1, "name": "a", "tags": ["x", "y"], "at": {"time": "2024-02-03T04:05:06Z", "day": "2024-02-03"}}',
        None,
        b'{"id": 2, "more": [1, {}]}',
    )
    schema = "id BIGINT, name STRING, tags ARRAY<STRING>, at STRUCT<time: TIMESTAMP, day: DATE>"
    frame = read(**{"value.format": "json", "value.schema": schema}).load()
    rows = (
        frame.selectExpr("value.*", "value is null missing", "string(value.at.time) time").orderBy("offset").collect()
    )
    assert [(row.id, row.name, row.tags, row.missing) for row in rows] == [
        (1, "a", ["x", "y"], False),
        (None, None, None, True),
        (2, None, None, False),
    ]
    assert rows[0].time == "2024-02-03 04:05:06"
    assert str(rows[0].at.day) == "2024-02-03"


def test_a_decoder_of_the_users_own(spark: "SparkSession", read: Read, send: Send) -> None:
    spark.sparkContext.addPyFile(backwards.__file__)
    send(b"abc", b"xyz")
    options = {"value.format": "backwards:Backwards", "value.decoder.end": "!"}
    rows = read(**options).load().selectExpr("value.text").orderBy("offset").collect()
    assert [row.text for row in rows] == ["cba!", "zyx!"]


def test_a_bad_value_fails_the_job_and_says_which(read: Read, send: Send, ottla_topic: str) -> None:
    send(b'{"id": 1}', b"{nonsense", b'{"id": 3}')
    frame = read(**{"value.format": "json", "value.schema": "id BIGINT"}).load()
    with pytest.raises(Exception, match="cannot be decoded") as raised:
        frame.collect()
    assert f"{ottla_topic}-0 at offset 1" in str(raised.value)
    assert "value.onError" in str(raised.value)


def test_bad_values_are_dropped(read: Read, send: Send) -> None:
    send(*(b'{"id": %d}' % number if number % 7 else b"\xff" for number in range(50)))
    frame = read(**{"value.format": "json", "value.schema": "id BIGINT", "value.onError": "drop"}).load()
    found = sorted((row.offset, row.value.id) for row in frame.select("offset", "value").collect())
    assert found == [(number, number) for number in range(50) if number % 7]


@pytest.mark.parametrize(
    "values",
    [
        [b'{"id":1}', b'{"id":2}{"id":3}'],
        [b'{"id":1},{"id":2}', b""],
        [b'{"id":1}{"id":2}', b'{"id":', b"3}"],
        [b'{"id":1', b'}{"id":2}'],
        [b'{"name":"', b'"}'],
        [b'{"id":1},"id":{}', b'{"id":2}'],
        [b'{"id":1]},{"id":[2}'],
        [b"   "],
        [b"[]"],
        [b'{"id":"1"}'],
        [b'{"id":1.5}'],
        [b'"text"'],
    ],
)
def test_what_is_no_document_is_found_even_if_others_make_up_for_it(values: list[bytes]) -> None:
    decoder = JsonValues(pa.struct([pa.field("id", pa.int64()), pa.field("name", pa.string())]))
    with pytest.raises(ValueError, match="e"):
        decoder.decode(pa.array(values, pa.binary()))


def test_a_slice_of_values_is_decoded_as_the_whole() -> None:
    decoder = JsonValues(pa.struct([pa.field("id", pa.int64())]))
    values = pa.array([b'{"id":%d}' % number for number in range(10)] + [None], pa.binary())
    assert decoder.decode(values.slice(4, 3)).to_pylist() == [{"id": 4}, {"id": 5}, {"id": 6}]
    assert decoder.decode(values.slice(9, 2)).to_pylist() == [{"id": 9}, None]
    assert decoder.decode(values.slice(10, 1)).to_pylist() == [None]
