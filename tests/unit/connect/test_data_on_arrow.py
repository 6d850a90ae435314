"""Connect's schemas and values on Arrow: nothing is lost on the way there and back, and what is wrong is refused."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from ottla.connect.data import schema as schemas
from ottla.connect.data.arrow import arrow_field, from_arrow, schema_of, to_arrow
from ottla.connect.data.columns import Column, storage_type, struct_column
from ottla.connect.data.rows import column_of, constant, decimal_of, rows_of, stored_bytes, with_default
from ottla.connect.data.schema import DATE, PRECISION, Schema, Type, struct
from ottla.connect.errors import DataError
from tests.unit.connect.random_data import any_schema, schemas_and_rows

INT32 = Schema(Type.INT32)
TEXT = Schema(Type.STRING)


def same(one: Any, other: Any) -> bool:
    """NaN is NaN here, and -0.0 is not 0.0."""
    return repr(one) == repr(other)


@settings(max_examples=60, deadline=None)
@given(schemas_and_rows())
def test_rows_come_back_from_columns(given_: tuple[Schema, list[Any]]) -> None:
    schema, rows = given_
    assert same(rows_of(column_of(schema, rows)), rows)


@settings(max_examples=60, deadline=None)
@given(any_schema())
def test_a_schema_comes_back_from_a_field_of_arrow(schema: Schema) -> None:
    field = arrow_field("it", schema)
    assert schema_of(field) == schema
    kept = pa.ipc.read_schema(pa.schema([field]).serialize())
    assert schema_of(kept.field(0)) == schema


@settings(max_examples=60, deadline=None)
@given(schemas_and_rows())
def test_columns_come_back_from_others_arrow(given_: tuple[Schema, list[Any]]) -> None:
    schema, rows = given_
    field, array = to_arrow("it", column_of(schema, rows))
    assert array.type == field.type
    array.validate(full=True)
    column = from_arrow(field, array)
    assert column.schema == schema
    assert same(rows_of(column), rows)
    half = len(rows) // 2
    assert same(rows_of(from_arrow(field, array.slice(half))), rows[half:])
    _, cut = to_arrow("it", Column(schema, column.array.slice(half)))
    assert same(rows_of(from_arrow(field, cut)), rows[half:])


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (schemas.date(), pa.date32()),
        (schemas.time(), pa.time32("ms")),
        (schemas.timestamp(), pa.timestamp("ms", "UTC")),
        (schemas.decimal(2, precision=10), pa.decimal128(10, 2)),
        (schemas.decimal(2, precision=76), pa.decimal256(76, 2)),
        (schemas.decimal(2), pa.binary()),
        (schemas.decimal(2, precision=77), pa.binary()),
        (schemas.decimal(-2, precision=7), pa.binary()),
        (Schema(Type.INT64, name="io.debezium.time.MicroTimestamp"), pa.timestamp("us")),
        (Schema(Type.STRING, name=DATE), pa.string()),
    ],
)
def test_logical_types_are_arrows_own_where_it_has_them(schema: Schema, kind: Any) -> None:
    assert arrow_field("it", schema).type == kind
    assert storage_type(schema) in (pa.int32(), pa.int64(), pa.binary(), pa.string())


@pytest.mark.parametrize(
    ("array", "type", "name", "rows"),
    [
        (pa.array([1, None], pa.uint8()), Type.INT16, None, [1, None]),
        (pa.array([1, 2], pa.uint32()), Type.INT64, None, [1, 2]),
        (pa.array(["a"], pa.large_string()), Type.STRING, None, ["a"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), Type.STRING, None, ["a", "b", "a"]),
        (pa.array([5], pa.timestamp("s")), Type.INT64, schemas.TIMESTAMP, [5000]),
        (pa.array([5], pa.timestamp("us", "UTC")), Type.INT64, "io.debezium.time.MicroTimestamp", [5]),
        (pa.array([86_400_000], pa.date64()), Type.INT32, schemas.DATE, [1]),
        (pa.array([3], pa.time32("s")), Type.INT32, schemas.TIME, [3000]),
        (pa.array([Decimal("-1.50")], pa.decimal128(9, 2)), Type.BYTES, schemas.DECIMAL, [Decimal("-1.50")]),
        (pa.array([b"ab"], pa.binary(2)), Type.BYTES, None, [b"ab"]),
        (pa.nulls(2), Type.STRING, None, [None, None]),
        (pa.array([[1, 2], None], pa.large_list(pa.uint8())), Type.ARRAY, None, [[1, 2], None]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), Type.ARRAY, None, [[1, 2]]),
    ],
)
def test_types_that_connect_does_not_have_become_the_next_larger(
    array: Any, type: Type, name: str | None, rows: list[Any]
) -> None:
    column = from_arrow(pa.field("it", array.type), array)
    assert (column.schema.type, column.schema.name, rows_of(column)) == (type, name, rows)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.duration("s"), pa.month_day_nano_interval()])
def test_types_without_a_larger_one_are_refused_by_name(kind: Any) -> None:
    with pytest.raises(DataError, match=r"field price: Connect has no type for Arrow's"):
        schema_of(pa.field("price", kind))


@pytest.mark.parametrize(
    "metadata",
    [
        {"connect.version": "one"},
        {"connect.parameters": "["},
        {"connect.default": "{"},
        {"connect.default": '"x"'},
        {"connect.default": "[" * 50_000},
    ],
)
def test_metadata_that_is_no_schema_is_refused(metadata: dict[str, str]) -> None:
    with pytest.raises(DataError):
        schema_of(pa.field("it", pa.int32(), metadata=metadata))


def test_a_null_in_a_required_column_of_others_is_refused_with_its_row() -> None:
    kind = pa.struct([pa.field("id", pa.int32(), nullable=False)])
    array = pa.array([{"id": 1}, None, {"id": None}], pa.struct([("id", pa.int32())]))
    with pytest.raises(DataError, match='null used for required field: "id", schema type: INT32'):
        from_arrow(pa.field("it", kind), array)
    assert rows_of(from_arrow(pa.field("it", kind), array.slice(0, 2))) == [{"id": 1}, None]
    with pytest.raises(DataError) as refused:
        from_arrow(pa.field("it", pa.int32(), nullable=False), pa.array([1, None]))
    assert refused.value.row == 1


def test_a_decimal_that_is_longer_than_its_precision_is_refused_at_the_door() -> None:
    schema = schemas.decimal(0, precision=3)
    column = column_of(schema, [Decimal(1000)])
    assert schema.parameters is not None
    assert schema.parameters[PRECISION] == "3"
    with pytest.raises(DataError, match="field price: "):
        to_arrow("price", column)


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (INT32, None, "Invalid value: null used for required value, schema type: INT32"),
        (INT32, "1", "Invalid Java object for schema with type INT32: class java.lang.String for value"),
        (INT32, True, "class java.lang.Boolean"),
        (INT32, 1 << 31, "2147483648 is out of the range of INT32 for value"),
        (Schema(Type.FLOAT64), True, "class java.lang.Boolean"),
        (schemas.time(), 86_400_001, "Time values must use number of milliseconds"),
        (schemas.decimal(1), Decimal("1.25"), "Schema has scale 1, value has scale 2"),
        (schemas.decimal(1), Decimal("NaN"), "BigDecimal"),
        (schemas.decimal(0), Decimal("1e30000"), "more than 20000 digits"),
        (schemas.decimal(0).but(parameters=None), Decimal(1), "scale parameter not found"),
        (schemas.decimal(0).but(parameters={"scale": "x"}), Decimal(1), "Invalid scale parameter"),
        (schemas.array(INT32), [1, None], "null used for required element of array value"),
        (schemas.map_of(TEXT, INT32), [("a", None)], "null used for required value of map value"),
        (schemas.map_of(TEXT.but(optional=True), INT32), [(None, 1)], "a map has no null keys"),
        (struct([("id", INT32)]), {}, 'null used for required field: "id"'),
        (struct([("id", INT32)]), {"id": 1, "no": 2}, "no is not a valid field name"),
        (TEXT, "\ud800", "Schema{STRING}"),
    ],
)
def test_a_value_that_is_not_of_its_schema_is_refused_in_kafkas_words(schema: Schema, value: Any, words: str) -> None:
    with pytest.raises(DataError) as refused:
        column_of(schema, [value])
    assert words in str(refused.value)


def test_the_row_that_is_wrong_is_named() -> None:
    with pytest.raises(DataError) as refused:
        column_of(INT32, [1, 2, "x"])
    assert refused.value.row == 2


def test_schemas_are_not_nested_without_end() -> None:
    schema = INT32
    for _ in range(99):
        schema = schemas.array(schema)
    assert schema.depth == 100
    with pytest.raises(DataError, match="nested deeper than 100"):
        schemas.array(schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schema(Type.ARRAY),
        lambda: Schema(Type.MAP, items=INT32),
        lambda: Schema(Type.MAP, keys=INT32),
        lambda: struct([("a", INT32), ("a", TEXT)]),
    ],
)
def test_a_schema_that_is_none_is_refused(make: Any) -> None:
    with pytest.raises(DataError):
        make()


@pytest.mark.parametrize("number", [0, 1, -1, 127, 128, -128, -129, 255, 256, 1 << 200, -(1 << 200)])
def test_decimals_are_stored_as_java_stores_them(number: int) -> None:
    stored = stored_bytes(number)
    assert int.from_bytes(stored, "big", signed=True) == number
    assert len(stored) == 1 or int.from_bytes(stored[1:], "big", signed=True) != number
    assert decimal_of(number, 2) * 100 == number or abs(number) > 1 << 64


def test_a_decimal_is_given_the_zeros_that_its_scale_wants() -> None:
    assert rows_of(column_of(schemas.decimal(3), [Decimal("1.5"), Decimal("2e2")])) == [Decimal("1.500"), Decimal(200)]
    long = Decimal("7" * 15_000)
    assert rows_of(column_of(schemas.decimal(0), [long])) == [long]


def test_a_default_stands_in_for_what_is_missing() -> None:
    schema = INT32.but(default=7)
    column = column_of(schema, [1, None, 3])
    assert rows_of(column) == [1, None, 3]
    assert rows_of(with_default(column)) == [1, 7, 3]
    nested = struct([("a", INT32)], default={"a": 4}, optional=True)
    assert rows_of(with_default(column_of(nested, [None, {"a": 1}]))) == [{"a": 4}, {"a": 1}]


def test_a_field_of_a_missing_struct_is_missing() -> None:
    schema = struct([("a", INT32)], optional=True)
    column = column_of(schema, [{"a": 1}, None])
    assert rows_of(column.child(0)) == [1, None]
    assert column_of(schema, []).child(0).array.type == pa.int32()


def test_structs_are_put_together_from_columns() -> None:
    schema = struct([("a", INT32)], optional=True)
    made = struct_column(schema, [column_of(INT32, [1, 2])], 2, missing=pa.array([False, True]))
    assert rows_of(made) == [{"a": 1}, None]
    empty = struct([], optional=True)
    assert rows_of(struct_column(empty, [], 2, missing=pa.array([False, True]))) == [{}, None]
    assert rows_of(struct_column(empty, [], 2)) == [{}, {}]


def test_a_constant_is_the_same_in_every_row() -> None:
    assert rows_of(constant(schemas.array(TEXT), ["a"], 3)) == [["a"]] * 3
    assert rows_of(constant(TEXT, "a", 0)) == []
