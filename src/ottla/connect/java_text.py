"""What Java's `toString` says of a value: StringConverter writes it, and Cast makes strings with it."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from ottla.connect.data.rows import Float32, Moment, java_class
from ottla.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from ottla.connect.errors import DataError
from ottla.schemas.json_text import java_double, java_float

_EPOCH: Final = datetime(1970, 1, 1)
_TRIMMED: Final = "".join(map(chr, range(33)))
_DAY_MS: Final = 86_400_000
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def java_text(schema: Schema | None, value: Any) -> str:
    """As Java says it, in UTC. Bytes have no text there but the number of an object; they are refused."""
    if value is None:
        return "null"
    if schema is not None and schema.logical is not None:
        return str(value) if schema.logical == DECIMAL else moment_text(milliseconds(schema, value))
    if isinstance(value, Moment):
        return moment_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        single = schema.type is Type.FLOAT32 if schema is not None else isinstance(value, Float32)
        return (java_float(value) if single else java_double(value)).strip('"')
    if isinstance(value, int | Decimal):
        return str(int(value)) if isinstance(value, int) else str(value)
    if schema is None and isinstance(value, dict):
        return "{" + ", ".join(f"{key}={java_text(None, item)}" for key, item in value.items()) + "}"
    if schema is None and isinstance(value, list):
        return "[" + ", ".join(java_text(None, item) for item in value) + "]"
    if schema is not None and schema.type is Type.ARRAY:
        return "[" + ", ".join(java_text(schema.items, item) for item in value) + "]"
    if schema is not None and schema.type is Type.MAP:
        pairs = (f"{java_text(schema.keys, key)}={java_text(schema.items, item)}" for key, item in value)
        return "{" + ", ".join(pairs) + "}"
    if schema is not None and schema.type is Type.STRUCT:
        said = (
            f"{field.name}={java_text(field.schema, value[field.name])}"
            for field in schema.fields
            if value[field.name] is not None
        )
        return "Struct{" + ",".join(said) + "}"
    raise DataError(f"{java_class(value, schema)} has no text")


def trimmed(text: str) -> str:
    """As `String.trim` does it: without spaces and control characters at both ends."""
    return text.strip(_TRIMMED)


def milliseconds(schema: Schema, value: int) -> int:
    """The moment of a Date, a Time or a Timestamp, as Java has it."""
    assert schema.logical in (DATE, TIME, TIMESTAMP)
    return value * _DAY_MS if schema.logical == DATE else value


def moment_text(ms: int) -> str:
    """As `java.util.Date` says itself, in UTC."""
    try:
        when = _EPOCH + timedelta(milliseconds=int(ms))
    except OverflowError:
        raise DataError(f"{ms} milliseconds are not within the years 1 to 9999") from None
    day, month = _DAYS[when.weekday()], _MONTHS[when.month - 1]
    return f"{day} {month} {when.day:02} {when:%H:%M:%S} UTC {when.year:04}"
