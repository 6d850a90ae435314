"""What the rows of the source are like: the columns of Spark's Kafka connector, in Spark's types and in Arrow's."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.options import OptionError

HEADERS: Final = "headers"
DEAD_LETTER: Final = "deadLetter"
"""There with `value.onError=deadLetter`: what belongs into the topic of dead letters; null where the value is good."""
_HEADER: Final = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    HEADERS: ArrayType(_HEADER),
    DEAD_LETTER: StructType(
        [
            StructField("topic", StringType()),
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField(HEADERS, ArrayType(_HEADER)),
            StructField("reason", StringType()),
        ]
    ),
}
_ARROW_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_ARROW_HEADERS: Final = pa.list_(pa.field("element", _ARROW_HEADER))
ARROW_DEAD_LETTER: Final = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field(HEADERS, _ARROW_HEADERS),
        pa.field("reason", pa.string()),
    ]
)


def column_names(*, includes_headers: bool, columns: Sequence[str] | None, has_dead_letters: bool = False) -> list[str]:
    """Which columns there are. Raises `OptionError` for one that there is not."""
    dead_letters = [DEAD_LETTER] if has_dead_letters else []
    available = [name for name in _TYPES if name not in (HEADERS, DEAD_LETTER)]
    if columns is None:
        return [*available, *([HEADERS] if includes_headers else []), *dead_letters]
    if not columns:
        raise OptionError("option columns names no column")
    by_key = {name.lower(): name for name in [*available, HEADERS, *dead_letters]}
    for name in columns:
        if name.lower() not in by_key:
            raise OptionError(f"option columns names {name!r}, and must be some of: {', '.join(by_key.values())}")
    names = [by_key[name.lower()] for name in columns]
    if has_dead_letters and "value" not in names:
        raise OptionError("option columns does not name value, and value.onError=deadLetter needs it")
    # Always there: a job that did not see it would take its rows for records without a value.
    return names if DEAD_LETTER in names else [*names, *dead_letters]


def schema_ddl(names: Sequence[str], value_type: str) -> str:
    """In Spark's words: only Spark can read the type of values that a user writes."""
    return ", ".join(f"`{name}` {value_type if name == 'value' else _TYPES[name].simpleString()}" for name in names)


def other_columns(names: Sequence[str]) -> list[tuple[str, DataType]]:
    """All but `value`, whose type is the job's to choose."""
    return [(name, _TYPES[name]) for name in names if name != "value"]


def chosen(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Those columns, as Spark wants them. Nothing is copied."""
    columns = []
    fields = []
    for name in names:
        column = batch.column(name)
        if name == HEADERS:
            column = _as_sparks(column)
        columns.append(column)
        fields.append(pa.field(name, column.type))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _as_sparks(headers: pa.Array) -> pa.Array:
    """The same buffers under another name: Spark calls an element `element`, and lets a header's key be null.

    A record without headers has null, as in Spark's connector.
    """
    values = headers.values
    from pyarrow import compute

    has_none = compute.equal(headers.value_lengths(), 0)
    struct = pa.StructArray.from_arrays(
        [values.field("key"), values.field("value")], fields=[_ARROW_HEADER.field(0), _ARROW_HEADER.field(1)]
    )
    return pa.ListArray.from_arrays(headers.offsets, struct, type=_ARROW_HEADERS, mask=has_none)
