"""JSON to columns: the types that a JSON Schema tells, rows that are missing or wrong, and values made to mislead."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from ottla.schemas.faults import CannotDecode
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.schema import parse

pa = pytest.importorskip("pyarrow")
from ottla.schemas.json_schema.arrow import ArrowDecoder, NoColumns  # noqa: E402  # it needs pyarrow

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "paid": {"type": ["boolean", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
    },
    "definitions": {"Line": {"properties": {"sku": {"type": "string"}}}},
}


def decoder(tree: Any) -> ArrowDecoder:
    schema = parse("JSON", json.dumps(tree))
    assert isinstance(schema, JsonSchema)
    return ArrowDecoder(schema)


def test_columns_are_those_of_the_schema() -> None:
    columns = decoder(ORDER)
    assert columns.schema == pa.schema(
        [
            ("id", pa.int64()), ("price", pa.float64()), ("note", pa.string()), ("paid", pa.bool_()),
            ("at", pa.timestamp("us", tz="UTC")), ("day", pa.date32()),
            ("lines", pa.list_(pa.struct([("sku", pa.string())]))),
        ]
    )  # fmt: skip
    columns.append(
        b'\0\0\0\0\7{"id":9007199254740993,"price":1,"note":"\xc3\x86","paid":true,"at":"2026-01-02T03:04:05Z",'
        b'"day":"2026-01-02","lines":[{"sku":"s"}],"more":{"a":[1]}}',
        5,
    )
    columns.append_null()
    columns.append(b'{"note":null}')
    assert len(columns) == 3
    batch = columns.finish()
    first, second, third = batch.to_pylist()
    assert first == {
        "id": 9007199254740993,
        "price": 1.0,
        "note": "Æ",
        "paid": True,
        "at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "lines": [{"sku": "s"}],
    }
    assert set(second.values()) == set(third.values()) == {None}
    assert columns.finish().num_rows == 0, "it begins anew"


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{", b'{"id":"x"}', b'{"id":1}{"id":2}', b'{"id":1}]},{"x":[1', b"[]", b"\xff", b'{"id":1},{"id":2}'],
)
def test_a_wrong_row_is_named_or_null_and_moves_no_other(wrong: bytes) -> None:
    columns = decoder({"type": "object", "properties": {"id": {"type": "integer"}}})
    rows = [b'{"id":%d}' % number for number in range(20)]
    rows[13] = wrong
    for on_error in ("raise", "null"):
        for row in rows:
            columns.append(row)
        if on_error == "raise":
            with pytest.raises(CannotDecode, match="row 13 is none"):
                columns.finish()
            continue
        found = columns.finish("null").column("id").to_pylist()
        assert found == [*range(13), None, *range(14, 20)]


def test_what_is_no_object_is_one_column() -> None:
    columns = decoder({"type": "array", "items": {"type": "integer"}})
    columns.append(b"[1,2]")
    columns.append_null()
    assert columns.finish().to_pydict() == {"value": [[1, 2], None]}


@pytest.mark.parametrize(
    "tree",
    [{}, True, {"type": "object"}, {"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"$ref": "#"}, {"$ref": "#/x"},
     {"properties": {"a": {"$ref": "#/properties/a"}}}],
)  # fmt: skip
def test_a_schema_that_leaves_values_open_has_no_columns(tree: Any) -> None:
    with pytest.raises(NoColumns):
        decoder(tree)
