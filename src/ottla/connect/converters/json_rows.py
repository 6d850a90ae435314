"""JSON to rows, by a schema or without one: row by row, since each may be anything.

Kafka takes nearly any JSON for a value of a schema: a string for a number is 0, a number for a string is null, and a
number that is too large loses its upper bits, without a word. Here such a value is refused, with the way to it.
"""

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from json import JSONDecoder
from struct import Struct
from typing import Any, Final

from ottla.connect.data.rows import decimal_of, unscaled
from ottla.connect.data.schema import DECIMAL, TIME, Schema, Type, scale_of
from ottla.connect.errors import DataError

Reader = Callable[[Any], Any]

LONGEST_NUMBER: Final = 1_000
"""Digits, as in Jackson."""
_SINGLE: Final = Struct("<f")
_DAY_MS: Final = 86_400_000
_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_NODES: Final = {
    bool: "BOOLEAN",
    int: "NUMBER",
    float: "NUMBER",
    Decimal: "NUMBER",
    str: "STRING",
    list: "ARRAY",
    dict: "OBJECT",
}


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has more than {LONGEST_NUMBER} digits")
    return int(digits)


def _fraction(digits: str) -> Decimal:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number has more than {LONGEST_NUMBER} digits")
    return Decimal(digits)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


DECODER: Final = JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_no_constant, strict=True)


def read_json(text: str) -> Any:
    """The first value of a text, as Jackson takes it: what comes behind it is not looked at, unless it may belong to a
    number. Fractions are Decimal. Raises `ValueError`."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    try:
        value, end = DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    except ArithmeticError:
        raise ValueError("a number has too large an exponent") from None
    if isinstance(value, int | Decimal) and end < len(text) and text[end] not in " \t\r\n":
        raise ValueError(f"a number ends with {text[end]!r}")
    return value


def schemaless(value: Any) -> Any:
    """A value of JSON without a schema, as Connect has it: numbers are Long or Double."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: schemaless(item) for name, item in value.items()}
    if isinstance(value, list):
        return [schemaless(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        raise DataError(f"{value} has more than 64 bits, and there is no schema that says how to keep it")
    return value


@lru_cache(maxsize=1_000)
def reader(schema: Schema, defaults: bool) -> Reader:
    """What reads values of a schema; `defaults` puts its default for null. It raises `DataError`."""
    read = _reader(schema, defaults)
    default = schema.default if defaults else None

    def read_or_null(value: Any) -> Any:
        if value is not None:
            return read(value)
        if default is not None or schema.optional:
            return default
        raise DataError(f"Invalid null value for required {schema.type.name} field")

    return read_or_null


def _reader(schema: Schema, defaults: bool) -> Reader:
    if schema.logical == DECIMAL:
        return lambda value: _decimal(schema, value)
    match schema.type:
        case Type.ARRAY:
            assert schema.items is not None
            return _list_reader(reader(schema.items, defaults))
        case Type.MAP:
            return _map_reader(schema, defaults)
        case Type.STRUCT:
            return _struct_reader(schema, defaults)
        case Type.STRING:
            return _kind_reader(str, schema)
        case Type.BOOLEAN:
            return _kind_reader(bool, schema)
        case Type.BYTES:
            return _bytes
        case Type.FLOAT32 | Type.FLOAT64:
            return lambda value: _float(schema, value)
    return _integer_reader(schema)


def node(value: Any) -> str:
    """What Jackson calls a value of JSON."""
    return "NULL" if value is None else _NODES[type(value)]


def _wrong(value: Any, schema: Schema) -> DataError:
    return DataError(f"a JSON {node(value)} is no {schema.name or schema.type.name}")


def _kind_reader(kind: type, schema: Schema) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise _wrong(value, schema)
        return value

    return read


def _integer_reader(schema: Schema) -> Reader:
    bound = 1 << (_BITS[schema.type] - 1)
    is_time = schema.logical == TIME

    def read(value: Any) -> Any:
        if type(value) is Decimal and value == value.to_integral_value() and abs(value) < 1 << 64:
            value = int(value)
        if type(value) is not int:
            raise _wrong(value, schema)
        if not -bound <= value < bound:
            raise DataError(f"{value} is out of the range of {schema.type.name}")
        if is_time and not 0 <= value <= _DAY_MS:
            raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
        return value

    return read


def _float(schema: Schema, value: Any) -> Any:
    if type(value) in (int, Decimal):
        try:
            return float(value) if schema.type is Type.FLOAT64 else _SINGLE.unpack(_SINGLE.pack(float(value)))[0]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if value in ("NaN", "Infinity", "-Infinity"):  # what is written for them
        return float(value)
    raise _wrong(value, schema)


def _bytes(value: Any) -> bytes:
    if type(value) is not str:
        raise DataError(f"Invalid bytes field: a JSON {node(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise DataError("Invalid bytes field") from None


def _decimal(schema: Schema, value: Any) -> Decimal:
    if type(value) in (int, Decimal):
        return decimal_of(unscaled(schema, Decimal(value)), scale_of(schema))
    if type(value) is str:
        try:
            content = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            content = b""
        if not content:
            raise DataError("Invalid bytes for Decimal field")
        return decimal_of(int.from_bytes(content, "big", signed=True), scale_of(schema))
    raise DataError(
        f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {node(value)}"
    )


def _list_reader(item: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise DataError(f"Arrays should be encoded as JSON arrays, but found {node(value)}")
        return [item(one) for one in value]

    return read


def _map_reader(schema: Schema, defaults: bool) -> Reader:
    assert schema.keys is not None and schema.items is not None
    item = reader(schema.items, defaults)
    key = reader(schema.keys, defaults)
    has_names = schema.keys.type is Type.STRING

    def read(value: Any) -> Any:
        if has_names:
            if type(value) is not dict:
                raise DataError(f"Maps with string fields should be encoded as JSON objects, but found {node(value)}")
            return [(name, item(one)) for name, one in value.items()]
        if type(value) is not list:
            raise DataError(
                f"Maps with non-string fields should be encoded as JSON array of tuples, but found {node(value)}"
            )
        pairs: list[tuple[Any, Any]] = []
        for pair in value:
            if type(pair) is not list:
                raise DataError(f"Found invalid map entry instead of array tuple: {node(pair)}")
            if len(pair) != 2:
                raise DataError(f"Found invalid map entry, expected length 2 but found :{len(pair)}")
            pairs.append((key(pair[0]), item(pair[1])))
        return pairs

    return read


def _struct_reader(schema: Schema, defaults: bool) -> Reader:
    fields = [(field.name, reader(field.schema, defaults)) for field in schema.fields]

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise DataError(f"Structs should be encoded as JSON objects, but found {node(value)}")
        made: dict[str, Any] = {}
        for name, of_field in fields:
            try:
                made[name] = of_field(value.get(name))
            except DataError as error:
                raise DataError(f'field "{name}": {error}') from None
        return made

    return read
