"""Our converters beside Kafka Connect's: random schemas and values, the same bytes and the same refusals."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.converters.by_name import KINDS, make_converter
from ottla.connect.data.columns import AnyColumn, Column, Schemaless
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import ConnectError, DataError
from tests.interop.connect.connect_oracle import RandomData, asked, carried, in_base64, plain_fractions, unpacked

pytestmark = pytest.mark.interop

SEED = 20261117
CASES = 600
JSON_CLASS = "org.apache.kafka.connect.json.JsonConverter"
VARIANTS: list[dict[str, str]] = [
    {},
    {"schemas.enable": "false"},
    {"decimal.format": "numeric"},
    {"schemas.enable": "false", "decimal.format": "NUMERIC", "replace.null.with.default": "false"},
]


def tried(do: Callable[[], Any]) -> tuple[Any, str | None]:
    """What comes of it, and how it was refused."""
    try:
        return do(), None
    except DataError as error:
        return None, str(error)


def random_columns(seed: int, number: int) -> list[Column]:
    data = RandomData(seed)
    made: list[Column] = []
    while len(made) < number:
        schema = data.schema()
        made.append(column_of(schema, [data.value(schema)]))
    return made


@pytest.mark.parametrize("options", VARIANTS, ids=json.dumps)
def test_json_is_written_as_kafka_writes_it(options: dict[str, str]) -> None:
    columns = random_columns(SEED, CASES)
    questions = [
        {"do": "write", "class": JSON_CLASS, "options": options, "value": carried(column)[0]} for column in columns
    ]
    converter = make_converter(JSON_CLASS, options)
    for number, (column, answer) in enumerate(zip(columns, asked(questions), strict=True)):
        ours, refusal = tried(lambda column=column: converter.to_bytes("topic", column)[0].as_py())
        assert refusal == answer.get("message"), f"case {number}"
        if refusal is not None:
            continue
        assert (None if ours is None else plain_fractions(ours)) == unpacked(answer["out"]), f"case {number}"


@pytest.mark.parametrize("options", VARIANTS, ids=json.dumps)
def test_json_of_kafkas_is_read_as_kafka_reads_it(options: dict[str, str]) -> None:
    columns = random_columns(SEED + 1, CASES)
    writes = [
        {"do": "write", "class": JSON_CLASS, "options": options, "value": carried(column)[0]} for column in columns
    ]
    written = [answer["out"] for answer in asked(writes) if answer.get("out") is not None]
    assert len(written) > CASES // 2
    converter = make_converter(JSON_CLASS, options)
    reads = [{"do": "read", "class": JSON_CLASS, "options": options, "bytes": content} for content in written]
    for number, (content, answer) in enumerate(zip(written, asked(reads), strict=True)):
        if answer.get("error") == "DataException" and "mismatching scale" in answer["message"]:
            continue  # only Kafka refuses a number with fewer digits than its scale, once it has read it
        held = pa.array([base64.b64decode(content)], pa.binary())
        parts, refusal = tried(lambda held=held: converter.from_bytes("topic", held))
        if refusal is not None and "has more than 64 bits" in refusal:
            continue  # Kafka drops the upper ones
        assert (refusal is None) == ("error" not in answer), f"case {number}: {refusal}, Kafka: {answer}"
        if refusal is not None:
            continue
        (part,) = parts
        (ours,) = carried(part.column)
        if options.get("schemas.enable") == "false":  # Java's maps have an order of their own
            assert _parsed(unpacked(ours)) == _parsed(unpacked(answer["out"])), f"case {number}"
        else:
            assert unpacked(ours) == unpacked(answer["out"]), f"case {number}"


def _parsed(content: bytes | None) -> Any:
    return None if content is None else json.loads(content)


PLAIN = [
    kind.class_name
    for kind in KINDS
    if kind.class_name.startswith("org.apache.") and not kind.class_name.endswith("JsonConverter")
]


@pytest.mark.parametrize("class_name", PLAIN)
def test_plain_converters_write_as_kafkas(class_name: str) -> None:
    data = RandomData(SEED + 2)
    columns: list[AnyColumn] = []
    for _ in range(CASES // 3):
        schema = data.schema(depth=1 if class_name.endswith("StringConverter") else 0)
        columns.append(column_of(schema, [data.value(schema)]))
    columns += [Schemaless((value,)) for value in (None, True, 5, "text", [1, "a"], {"a": None})]
    questions = [{"do": "write", "class": class_name, "options": {}, "value": carried(column)[0]} for column in columns]
    converter = make_converter(class_name, {})
    refused = 0
    for number, (column, answer) in enumerate(zip(columns, asked(questions), strict=True)):
        if class_name.endswith("StringConverter") and _has_bytes(column.schema):
            continue  # Java says the number of an object
        ours, refusal = tried(lambda column=column: converter.to_bytes("topic", column)[0].as_py())
        assert refusal == answer.get("message"), f"case {number}"
        if refusal is not None:
            refused += 1
            continue
        assert (None if ours is None else plain_fractions(ours)) == unpacked(answer["out"]), f"case {number}"
    assert class_name.endswith("StringConverter") or refused > 50


def _has_bytes(schema: Schema | None) -> bool:
    if schema is None:
        return False
    inner = [field.schema for field in schema.fields] + [one for one in (schema.keys, schema.items) if one]
    return (schema.type is Type.BYTES and schema.logical is None) or any(map(_has_bytes, inner))


@pytest.mark.parametrize("class_name", PLAIN)
def test_plain_converters_read_as_kafkas(class_name: str) -> None:
    random = RandomData(SEED + 3).random
    contents: list[bytes | None] = [None, b"", b"\0", b"\1", b"\2", b"\xff\xfe", "é".encode()]
    contents += [random.randbytes(random.choice([1, 2, 4, 8])) for _ in range(200)]
    questions = [
        {"do": "read", "class": class_name, "options": {}, "bytes": in_base64(content)} for content in contents
    ]
    converter = make_converter(class_name, {})
    for content, answer in zip(contents, asked(questions), strict=True):
        held = pa.array([content], pa.binary())
        parts, refusal = tried(lambda held=held: converter.from_bytes("topic", held))
        assert (refusal is None) == ("error" not in answer), f"{content!r}: {refusal}, Kafka: {answer}"
        if refusal is not None:
            assert refusal.startswith(answer["message"])
            continue
        (part,) = parts
        if class_name.endswith(("FloatConverter", "StringConverter")):
            continue  # digits of a float, and how many U+FFFD: compared in unit tests
        assert unpacked(carried(part.column)[0]) == unpacked(answer["out"]), content


@pytest.mark.parametrize(
    "options",
    [
        {"schemas.enable": "yes"},
        {"schemas.cache.size": "many"},
        {"decimal.format": "HEX"},
        {"replace.null.with.default": ""},
    ],
    ids=json.dumps,
)
def test_wrong_options_are_refused_in_kafkas_words(options: dict[str, str]) -> None:
    (answer,) = asked([{"do": "write", "class": JSON_CLASS, "options": options, "value": None}])
    with pytest.raises(ConnectError) as refused:
        make_converter(JSON_CLASS, options)
    assert (answer["error"], str(refused.value)) == ("ConfigException", answer["message"])
