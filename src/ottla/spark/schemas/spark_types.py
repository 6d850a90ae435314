"""Arrow's types in Spark's words, and columns as Spark takes them.

| Arrow | Spark |
| --- | --- |
| times of day | INT of milliseconds, BIGINT of microseconds |
| moments with a zone, without | TIMESTAMP, TIMESTAMP_NTZ; nanoseconds are cut off |
| decimals up to 38 digits, beyond | DECIMAL, STRING |
| unsigned numbers | the next larger type; of 64 bits DECIMAL(20, 0) |
| durations | BIGINT |
| others | the type of the same name |
"""

from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyarrow import compute

from ottla.schemas.json_schema.arrow import NoColumns, column_type
from ottla.spark.options import OptionError

_MOST_DIGITS: Final = 38
_SIMPLE: Final = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_int8, "TINYINT"),
    (pa.types.is_int16, "SMALLINT"),
    (pa.types.is_uint8, "SMALLINT"),
    (pa.types.is_int32, "INT"),
    (pa.types.is_uint16, "INT"),
    (pa.types.is_int64, "BIGINT"),
    (pa.types.is_uint32, "BIGINT"),
    (pa.types.is_uint64, "DECIMAL(20, 0)"),
    (pa.types.is_float32, "FLOAT"),
    (pa.types.is_float64, "DOUBLE"),
    (pa.types.is_string, "STRING"),
    (pa.types.is_large_string, "STRING"),
    (pa.types.is_binary, "BINARY"),
    (pa.types.is_large_binary, "BINARY"),
    (pa.types.is_fixed_size_binary, "BINARY"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_time32, "INT"),
    (pa.types.is_time64, "BIGINT"),
    (pa.types.is_duration, "BIGINT"),
    (pa.types.is_null, "VOID"),
)


def spark_ddl(type_: Any) -> str:
    """Raises `OptionError` for a type that Spark has nothing for."""
    for is_such, name in _SIMPLE:
        if is_such(type_):
            return name
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP" if type_.tz is not None else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(type_):
        if type_.precision > _MOST_DIGITS or type_.scale > type_.precision:
            return "STRING"
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if pa.types.is_map(type_):
        return f"MAP<{spark_ddl(type_.key_type)}, {spark_ddl(type_.item_type)}>"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"ARRAY<{spark_ddl(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return struct_ddl((field.name, field.type) for field in type_)
    raise OptionError(f"Spark has no type for {type_}: read the values with value.format=raw")


def struct_ddl(fields: Any) -> str:
    inner = ", ".join(f"`{name.replace('`', '``')}`: {spark_ddl(type_)}" for name, type_ in fields)
    return f"STRUCT<{inner}>"


def as_sparks(column: Any, type_: Any) -> Any:
    """The column in the type that Spark has for it."""
    if column.type == type_:
        return column
    return compute.cast(column, options=compute.CastOptions(type_, allow_time_truncate=True))


def json_schema_ddl(tree: Any) -> str:
    """The type of values of a JSON Schema. Raises `OptionError` for one that says too little, or too much."""
    try:
        return spark_ddl(column_type(tree))
    except NoColumns as problem:
        raise OptionError(
            f"the JSON Schema does not tell the columns ({problem}): say them with option value.schema"
        ) from None
