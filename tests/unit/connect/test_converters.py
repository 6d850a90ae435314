"""Converters: the bytes that Kafka Connect's write, what comes back from them, and what is refused."""

import json
import struct as packing
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.connect.converters.by_name import KINDS, aliases, make_converter
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column, Schemaless, nothing
from ottla.connect.data.rows import Float32, Int32, Moment, column_of, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from tests.unit.connect.given_registry import GivenRegistry
from tests.unit.connect.random_data import schemas_and_rows

INT32 = Schema(Type.INT32)
TEXT = Schema(Type.STRING)


def written(name: str, column: Column | Schemaless, **options: str) -> list[bytes | None]:
    made = make_converter(name, {key.replace("_", "."): value for key, value in options.items()})
    content = made.to_bytes("orders", column)
    assert content.type == pa.binary()
    return content.to_pylist()  # type: ignore[no-any-return]


def read(name: str, contents: list[bytes | None], **options: str) -> list[tuple[Schema | None, list[Any], list[int]]]:
    made = make_converter(name, {key.replace("_", "."): value for key, value in options.items()})
    parts = made.from_bytes("orders", pa.array(contents, pa.binary()))
    return [
        (
            part.column.schema,
            rows_of(part.column) if isinstance(part.column, Column) else list(part.column.values),
            part.rows.to_pylist(),
        )
        for part in parts
    ]


@settings(max_examples=80, deadline=None)
@given(schemas_and_rows(), st.sampled_from(["BASE64", "NUMERIC"]))
def test_what_json_says_comes_back(given_: tuple[Schema, list[Any]], format: str) -> None:
    schema, rows = given_
    options = {"decimal_format": format, "replace_null_with_default": "false"}
    contents = written("JsonConverter", column_of(schema, rows), **options)
    for content in contents:
        assert content is not None
        assert json.loads(content).keys() == {"schema", "payload"}
    assert repr(read("JsonConverter", contents, **options)) == repr(
        [(schema.but(parameters=schema.parameters or None), rows, list(range(len(rows))))] if rows else []
    )


def test_json_with_a_schema_is_kafkas_bytes() -> None:
    schema = struct(
        [("id", Schema(Type.INT64)), ("price", schemas.decimal(2)), ("note", TEXT.but(optional=True, doc="d"))],
        name="shop.Order",
        version=2,
    )
    column = column_of(schema, [{"id": 7, "price": Decimal("1.50"), "note": 'a"\n'}])
    assert written("Json", column) == [
        b'{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},'
        b'{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        b'"parameters":{"scale":"2"},"field":"price"},{"type":"string","optional":true,"doc":"d","field":"note"}],'
        b'"optional":false,"name":"shop.Order","version":2},"payload":{"id":7,"price":"AJY=","note":"a\\"\\n"}}'
    ]
    assert written("Json", column, schemas_enable="false", decimal_format="numeric") == [
        b'{"id":7,"price":1.50,"note":"a\\"\\n"}'
    ]


@pytest.mark.parametrize("type", [Type.FLOAT32, Type.FLOAT64])
def test_fractions_are_written_as_java_writes_them(type: Type) -> None:
    values = [0.0, -0.0, 1.0, 16384.0, 0.5, -0.25, 9999999.0, 1e7, 0.001, 0.00098, float("nan"), float("-inf")]
    said = [
        "0.0",
        "-0.0",
        "1.0",
        "16384.0",
        "0.5",
        "-0.25",
        "9999999.0",
        "1.0E7",
        "0.001",
        "9.8E-4",
        '"NaN"',
        '"-Infinity"',
    ]
    contents = written("Json", column_of(Schema(type), values), schemas_enable="false")
    assert contents == [text.encode() for text in said]


def test_a_default_of_32_bits_comes_back_as_it_was() -> None:
    schema = Schema(Type.FLOAT32, default=-5.831275809289011e16)
    assert repr(read("Json", written("Json", column_of(schema, [1.0])))[0][0]) == repr(schema)


def test_a_tombstone_is_no_bytes_and_a_null_with_a_schema_is_json() -> None:
    assert written("Json", nothing(2)) == [None, None]
    optional = column_of(INT32.but(optional=True), [None])
    assert written("Json", optional) == [b'{"schema":{"type":"int32","optional":true},"payload":null}']
    assert written("Json", optional, schemas_enable="false") == [b"null"]
    assert read("Json", [None]) == [(None, [None], [0])]


def test_records_of_different_schemas_are_read_in_parts() -> None:
    one = written("Json", column_of(INT32, [1, 2]))
    other = written("Json", column_of(TEXT, ["a"]))
    odd = b' {"payload" : 3, "schema":{"optional":false,"type":"int32"} }'
    assert read("Json", [one[0], other[0], None, one[1], odd]) == [
        (INT32, [1, 2, 3], [0, 3, 4]),
        (TEXT, ["a"], [1]),
        (None, [None], [2]),
    ]


def test_a_record_that_only_begins_like_the_one_before_is_read_by_itself() -> None:
    first = b'{"schema":{"type":"int32","optional":false},"payload":1}'
    for strange in (first[:-1] + b',"more":2}', first[:-1] + b"", first[:-2] + b"}"):
        with pytest.raises(DataError) as refused:
            read("Json", [first, strange])
        assert refused.value.row == 1
    assert read("Json", [first, first + b" }"]) == [(INT32, [1, 1], [0, 1])]


def test_a_default_is_put_for_null_unless_that_is_not_wanted() -> None:
    schema = struct([("a", INT32.but(default=5, optional=True))])
    column = column_of(schema, [{"a": None}])
    assert written("Json", column, schemas_enable="false") == [b'{"a":5}']
    assert written("Json", column, schemas_enable="false", replace_null_with_default="false") == [b'{"a":null}']
    (content,) = written("Json", column, replace_null_with_default="false")
    assert read("Json", [content])[0][1] == [{"a": 5}]
    assert read("Json", [content], replace_null_with_default="false")[0][1] == [{"a": None}]


def test_json_without_schemas_is_what_it_is() -> None:
    contents = [b'{"b":1,"a":[1.5,null,true]}', b"12", b"", b" ", b"7 and more"]
    assert read("Json", contents, schemas_enable="false") == [
        (None, [{"b": 1, "a": [1.5, None, True]}, 12, None, None, 7], [0, 1, 2, 3, 4])
    ]
    values = Schemaless(({"a": b"\0", "b": Float32(0.1), "c": Int32(3)}, None, [1e20, "é𝄞"]))
    assert written("Json", values, schemas_enable="false") == [
        b'{"a":"AA==","b":0.1,"c":3}',
        None,
        '[1.0E20,"é\\uD834\\uDD1E"]'.encode(),
    ]
    assert written("Json", Schemaless((1,))) == [b'{"schema":null,"payload":1}']


def test_a_schema_may_be_given_for_all_records() -> None:
    content = '{"type":"struct","fields":[{"type":"int64","field":"id"}]}'
    ((schema, rows, _),) = read("Json", [b'{"id":1}', b'{"id":2,"x":3}'], schema_content=content)
    assert schema == struct([("id", Schema(Type.INT64))])
    assert rows == [{"id": 1}, {"id": 2}]
    with pytest.raises(InvalidOption, match="Unknown schema type: int65"):
        make_converter("Json", {"schema.content": '{"type":"int65"}'})


def envelope(schema: str, payload: str) -> bytes:
    return f'{{"schema":{schema},"payload":{payload}}}'.encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "failed due to serialization error"),
        (b"\xff", "failed due to serialization error"),
        (b"[" * 100_000, "nested too deep"),
        (b"1" * 2_000, "more than 1000 digits"),
        (b"007", "a number ends with '0'"),
        (b'{"schema":{"type":"int32"},"payload":NaN}', "NaN is no number of JSON"),
        (b"5", 'requires "schema" and "payload" fields'),
        (b'{"schema":null,"payload":1,"more":2}', 'requires "schema" and "payload" fields'),
        (envelope("{}", "1"), "Schema must contain 'type' field"),
        (envelope('{"type":"int99"}', "1"), "Unknown schema type: int99"),
        (envelope('{"type":"array"}', "1"), "Array schema did not specify the element type"),
        (envelope('{"type":"map","values":{"type":"int8"}}', "1"), "Map schema did not specify the key type"),
        (envelope('{"type":"struct"}', "1"), '"fields" argument is not an array'),
        (envelope('{"type":"struct","fields":[{"type":"int8"}]}', "1"), "field name not specified properly"),
        (envelope('{"type":"int8","parameters":{"a":1}}', "1"), "Schema parameters must have string values"),
        (envelope('{"type":"int8","version":99999999999}', "1"), "more than 32 bits"),
        (envelope('{"type":"int8"}', "null"), "Invalid null value for required INT8 field"),
        (envelope('{"type":"int8"}', "128"), "128 is out of the range of INT8"),
        (envelope('{"type":"int32","name":"org.apache.kafka.connect.data.Time"}', "86400001"), "Time values must use"),
        (envelope('{"type":"string"}', '"\\ud800"'), "Schema{STRING}"),
        (
            envelope('{"type":"map","keys":{"type":"int8","optional":true},"values":{"type":"int8"}}', "[[null,1]]"),
            "null",
        ),
        (envelope('{"type":"int8"}', '"1"'), "a JSON STRING is no INT8"),
        (envelope('{"type":"int8"}', "1.5"), "a JSON NUMBER is no INT8"),
        (envelope('{"type":"int8"}', "true"), "a JSON BOOLEAN is no INT8"),
        (envelope('{"type":"string"}', "1"), "a JSON NUMBER is no STRING"),
        (envelope('{"type":"double"}', '"x"'), "a JSON STRING is no FLOAT64"),
        (envelope('{"type":"bytes"}', '"%"'), "Invalid bytes field"),
        (envelope('{"type":"array","items":{"type":"int8"}}', "{}"), "found OBJECT"),
        (envelope('{"type":"struct","fields":[{"type":"int8","field":"a"}]}', '{"a":"b"}'), 'field "a": a JSON STRING'),
        (
            envelope(
                '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}',
                "1e999999999",
            ),
            "more than 20000 digits",
        ),
        (envelope('{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal"}', "1"), "scale parameter not found"),
        (envelope('{"type":"array","items":' * 200 + '{"type":"int8"}' + "}" * 200, "1"), "nested deeper than 100"),
    ],
)
def test_json_that_is_wrong_is_refused_with_its_row(content: bytes, words: str) -> None:
    good = envelope('{"type":"int8"}', "1")
    with pytest.raises(DataError) as refused:
        read("Json", [good, content, good])
    assert words in str(refused.value)
    assert refused.value.row == 1


def test_a_column_that_cannot_be_written_names_the_row() -> None:
    required = Column(INT32, pa.array([1, 2, None, 4], pa.int32()))
    with pytest.raises(DataError, match="null value for field that is required and has no default value") as refused:
        written("Json", required)
    assert refused.value.row == 2
    with pytest.raises(DataError, match=r"Java class class java.util.Date does not have") as refused:
        written("Json", Schemaless((1, {"a": Moment(5)})))
    assert refused.value.row == 1
    deep: Any = []
    for _ in range(2 * sys.getrecursionlimit()):  # which a library may have raised
        deep = [deep]
    with pytest.raises(DataError, match="nested too deep"):
        written("Json", Schemaless((deep,)))


@pytest.mark.parametrize(
    ("name", "type", "code", "values"),
    [
        ("Short", Type.INT16, ">h", [1, -2]),
        ("Integer", Type.INT32, ">i", [1, -2]),
        ("Long", Type.INT64, ">q", [1, -2]),
        ("Float", Type.FLOAT32, ">f", [1.5, -2.25]),
        ("Double", Type.FLOAT64, ">d", [1.5, -2.25]),
    ],
)
def test_numbers_are_big_endian(name: str, type: Type, code: str, values: list[Any]) -> None:
    schema = Schema(type, optional=True)
    column = column_of(schema, [values[0], None, values[1]])
    contents = [packing.pack(code, values[0]), None, packing.pack(code, values[1])]
    assert written(name, column) == contents
    assert written(name, Column(schema, column.array.slice(1))) == contents[1:]
    assert read(name, contents) == [(schema, [values[0], None, values[1]], [0, 1, 2])]
    assert read(name, []) == [(schema, [], [])]
    with pytest.raises(DataError, match=f"Failed to deserialize {name.lower()}: ") as refused:
        read(name, [contents[0], b"123"])
    assert refused.value.row == 1
    with pytest.raises(DataError, match=rf"Failed to serialize to {name.lower()} \(was class java.lang.String\)"):
        written(name, column_of(TEXT, ["a"]))


def test_booleans_are_a_byte() -> None:
    schema = Schema(Type.BOOLEAN, optional=True)
    assert written("Boolean", column_of(schema, [True, None, False])) == [b"\1", None, b"\0"]
    assert written("Boolean", Schemaless((True, None))) == [b"\1", None]
    assert read("Boolean", [b"\1", None, b"\0"]) == [(schema, [True, None, False], [0, 1, 2])]
    for wrong in (b"\2", b"", b"\1\1"):
        with pytest.raises(DataError, match="Failed to deserialize boolean: "):
            read("Boolean", [wrong])
    with pytest.raises(DataError, match="Invalid schema type for BooleanConverter: INT32"):
        written("Boolean", column_of(INT32, [1]))


def test_bytes_stay_what_they_are() -> None:
    schema = Schema(Type.BYTES, optional=True)
    assert written("ByteArray", column_of(schema, [b"\xff", None])) == [b"\xff", None]
    assert read("ByteArray", [b"\xff", None]) == [(schema, [b"\xff", None], [0, 1])]
    with pytest.raises(DataError, match="Invalid schema type for ByteArrayConverter: STRING"):
        written("ByteArray", column_of(TEXT, ["a"]))
    with pytest.raises(DataError, match=r"not compatible with objects of type class java.math.BigDecimal"):
        written("ByteArray", column_of(schemas.decimal(0), [Decimal(1)]))


def test_strings_are_said_as_java_says_them() -> None:
    schema = struct([("a", INT32), ("b", TEXT.but(optional=True)), ("c", schemas.array(Schema(Type.FLOAT64)))])
    assert written("String", column_of(schema, [{"a": 1, "b": None, "c": [1.0, 1e10]}])) == [
        b"Struct{a=1,c=[1.0, 1.0E10]}"
    ]
    assert written("String", column_of(schemas.timestamp(), [0])) == [b"Thu Jan 01 00:00:00 UTC 1970"]
    assert written("String", column_of(schemas.decimal(-3), [Decimal("1e3")])) == [b"1E+3"]
    assert written("String", Schemaless(({"a": None, "b": [True]}, 5))) == [b"{a=null, b=[true]}", b"5"]
    with pytest.raises(DataError, match="has no text") as refused:
        written("String", Schemaless((1, b"a")))
    assert refused.value.row == 1


def test_strings_have_the_character_set_that_is_asked_for() -> None:
    column = column_of(TEXT, ["é€"])
    assert written("String", column, converter_encoding="ISO-8859-1") == [b"\xe9?"]
    assert written("String", column, converter_encoding="UTF-16") == ["\ufeffé€".encode("utf-16-be")]
    assert read("String", [b"\xe9"], converter_encoding="latin1")[0][1] == ["é"]
    assert read("String", ["é".encode("utf-16-be")], converter_encoding="UTF-16")[0][1] == ["é"]
    assert read("String", [b"a\xffb", None])[0][1] == ["a\ufffdb", None]
    with pytest.raises(InvalidOption, match=r"Invalid value klingon for configuration converter.encoding"):
        make_converter("String", {"converter.encoding": "klingon"})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.class_name)
def test_every_converter_has_its_names(kind: Any) -> None:
    options = {"schema.registry.url": "http://registry"} if kind.make is None else {}
    for name in (kind.class_name, *aliases(kind.class_name)):
        assert make_converter(name, options, registry=lambda _: GivenRegistry()) is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"schemas.enable": "yes"}, "Invalid value yes for configuration schemas.enable: Expected value to be either"),
        ({"schemas.cache.size": "x"}, "Invalid value x for configuration schemas.cache.size: Not a number of type INT"),
        ({"decimal.format": "HEX"}, "String must be one of (case insensitive): NUMERIC, BASE64"),
    ],
)
def test_wrong_options_are_refused_in_kafkas_words(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        make_converter("Json", options)
    assert words in str(refused.value)


def test_a_class_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(InvalidOption, match=r"Class com.example.Mine could not be found."):
        make_converter("com.example.Mine", {})


def test_schemas_beyond_the_cache_are_worked_out_again() -> None:
    converter = make_converter("Json", {"schemas.cache.size": "1"})
    for name in ("a", "b", "a"):
        column = column_of(INT32.but(name=name), [1])
        content = converter.to_bytes("t", column)
        (part,) = converter.from_bytes("t", content)
        assert part.column.schema == column.schema


def test_zeros_keep_their_signs_in_a_column_of_them() -> None:
    column = column_of(Schema(Type.FLOAT64), [0.0, -0.0, 0.0, 0.0, 0.0])
    converter = make_converter("JsonConverter", {"schemas.enable": "false"})
    assert converter.to_bytes("t", column).to_pylist() == [b"0.0", b"-0.0", b"0.0", b"0.0", b"0.0"]


@pytest.mark.parametrize("space", ["", " ", "\n  ", "\t"])
def test_json_may_have_spaces_between_a_schema_and_its_name(space: str) -> None:
    text = f'{{"schema":{space}{{"type":{space}"int32"}},{space}"payload":{space}5}}'
    assert read("Json", [text.encode()] * 2) == [(INT32, [5, 5], [0, 1])]
