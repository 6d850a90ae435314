"""Values on their way through a Python operator that does not look into them.

An operator that only keeps, compares and joins rows needs no columns: a row that arrives as one string costs a
fraction of a row that arrives as twenty objects, and nothing is lost between Spark's types and pandas' (which makes
floats of integers as soon as one is missing). Strings and bytes travel as they are. Everything else is packed as JSON
by the JVM, and unpacked by the JVM; timestamps keep their microseconds, decimals their digits, bytes are Base64.

`reader` is for operators that do look inside: it gives the values of a packed row to Python, with its types.
"""

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_TIMESTAMP: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
WRITTEN: Final = {
    "timeZone": "UTC",
    "timestampFormat": f"{_TIMESTAMP}XXX",
    "timestampNTZFormat": _TIMESTAMP,
    "ignoreNullFields": "false",
}
"""How JSON is written: equal values are equal bytes, in every session, so that they are the same key."""
_READ: Final = {**WRITTEN, "mode": "FAILFAST"}
_FIELD: Final = "v"


def is_plain(kind: DataType) -> bool:
    """Whether values of this type travel as they are."""
    return isinstance(kind, StringType | BinaryType)


def packed(value: Column, kind: DataType) -> Column:
    """The value as a string or bytes; null stays null."""
    if is_plain(kind):
        return value
    if isinstance(kind, StructType):
        return F.when(value.isNotNull(), F.to_json(value, WRITTEN))
    return F.when(value.isNotNull(), F.to_json(F.struct(value.alias(_FIELD)), WRITTEN))


def packed_type(kind: DataType) -> DataType:
    """The type that `packed` makes of values of a type."""
    return kind if is_plain(kind) else StringType()


def unpacked(value: Column, kind: DataType) -> Column:
    """What `packed` was given."""
    if is_plain(kind):
        return value
    if isinstance(kind, StructType):
        return F.from_json(value, kind, _READ)
    return F.from_json(value, StructType([StructField(_FIELD, kind)]), _READ)[_FIELD]


def reader(kind: StructType) -> Callable[[str], dict[str, Any]]:
    """Reads packed rows of a type in Python: instants, dates, decimals and bytes of the row itself as Python's.

    What is nested in arrays, maps and structs stays as JSON has it.
    """
    conversions = [
        (field.name, conversion)
        for field in kind.fields
        for of, conversion in _CONVERSIONS.items()
        if isinstance(field.dataType, of)
    ]

    # JSON's numbers are floats to Python, which keep 15 digits.
    has_decimals = any(isinstance(field.dataType, DecimalType) for field in kind.fields)
    parse_float = _Digits if has_decimals else None

    def read(row: str) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(row, parse_float=parse_float)
        for name, conversion in conversions:
            if (value := values[name]) is not None:
                values[name] = conversion(value)
        return values

    return read


class _Digits(float):
    """A float that remembers how it was written."""

    def __init__(self, digits: str) -> None:
        self.digits = digits


_CONVERSIONS: Final[dict[type[DataType], Callable[[Any], Any]]] = {
    TimestampType: datetime.fromisoformat,
    TimestampNTZType: datetime.fromisoformat,
    DateType: date.fromisoformat,
    BinaryType: b64decode,
    DecimalType: lambda number: Decimal(number.digits if isinstance(number, _Digits) else number),
    FloatType: float,  # NaN and the infinities are strings in Spark's JSON
    DoubleType: float,
}
