"""Columns to JSON, as Kafka's JsonConverter writes it: whole columns of texts, put together by Arrow.

A struct is the texts of its fields with the names between them; an array is the texts of its items, joined. Only what
Arrow has no function for goes row by row: base64, strings with characters that JSON escapes, decimals as numbers, and
floating-point numbers that Java writes with an exponent.
"""

import base64
import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.columns import Column
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import DECIMAL, Schema, Type, scale_of
from ottla.connect.errors import DataError
from ottla.schemas.json_text import java_double, java_float, json_string

_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_TO_ESCAPE: Final = r'["\\\x00-\x1f\x{10000}-\x{10FFFF}]'


class JsonWriter:
    """Texts of columns. `numeric` writes decimals as numbers, else as base64 of their bytes; `defaults` puts a
    schema's default for a null."""

    def __init__(self, *, numeric: bool, defaults: bool) -> None:
        self._numeric = numeric
        self._defaults = defaults

    def texts(self, column: Column) -> Any:
        """A text of JSON for each row, as an array without nulls. Raises `DataError`."""
        return self._texts(column.schema, column.array)

    def value_text(self, schema: Schema, value: Any) -> str:
        """The text of one value."""
        text: str = self._texts(schema, column_of(schema, [value]).array)[0].as_py()
        return text

    def _texts(self, schema: Schema, array: Any) -> Any:
        if not array.null_count:
            return self._values(schema, array)
        if schema.default is not None and self._defaults:
            instead = self.value_text(schema, schema.default)
        elif schema.optional:
            instead = "null"
        else:
            raise DataError("Conversion error: null value for field that is required and has no default value")
        present = array.is_valid()
        texts = self._values(schema, array.filter(present))
        return _spread(texts, present, instead)

    def _values(self, schema: Schema, array: Any) -> Any:
        """Of values that are all there."""
        if schema.logical == DECIMAL:
            scale_of(schema)
            if self._numeric:
                return pa.array(map(str, rows_of(Column(schema, array))), pa.string())
        match schema.type:
            case Type.STRING:
                return string_texts(array)
            case Type.BYTES:
                return pa.array([f'"{base64.b64encode(one).decode()}"' for one in array.to_pylist()], pa.string())
            case Type.BOOLEAN:
                return pc.if_else(array, "true", "false")
            case Type.FLOAT32:
                return _float_texts(array, java_float)
            case Type.FLOAT64:
                return _float_texts(array, java_double)
            case Type.ARRAY:
                return self._lists(schema, array)
            case Type.MAP:
                return self._maps(schema, array)
            case Type.STRUCT:
                return self._structs(schema, array)
        assert schema.type in _INTEGERS
        return array.cast(pa.string())

    def _structs(self, schema: Schema, array: Any) -> Any:
        if not schema.fields:
            return _repeated("{}", len(array))
        pieces: list[Any] = []
        before = "{"
        for place, field in enumerate(schema.fields):
            pieces.append(f"{before}{string_text(field.name)}:")
            pieces.append(
                self._texts(field.schema, pc.struct_field(array, [place]) if len(array) else array.field(place))
            )
            before = ","
        return _joined([*pieces, "}"])

    def _lists(self, schema: Schema, array: Any) -> Any:
        assert schema.items is not None
        return _bracketed("[", _grouped(array, self._texts(schema.items, array.flatten())), "]")

    def _maps(self, schema: Schema, array: Any) -> Any:
        assert schema.keys is not None and schema.items is not None
        first, last = _extent(array)
        keys, items = array.keys.slice(first, last - first), array.items.slice(first, last - first)
        texts = self._texts(schema.items, items)
        if schema.keys.type is Type.STRING:
            return _bracketed("{", _grouped(array, _joined([string_texts(keys), ":", texts])), "}")
        pairs = _joined(["[", self._texts(schema.keys, keys), ",", texts, "]"])
        return _bracketed("[", _grouped(array, pairs), "]")


def string_text(text: str) -> str:
    """A string in quotes, as Jackson writes it into bytes: a character of two surrogates is escaped as two."""
    quoted = json_string(text)
    return quoted if quoted.isascii() else _BEYOND.sub(_surrogates, quoted)


_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")


def _surrogates(found: re.Match[str]) -> str:
    high, low = divmod(ord(found[0]) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"


def string_texts(array: Any) -> Any:
    """Strings in quotes, as Jackson escapes them."""
    quoted = _joined(['"', array, '"'])
    special = pc.match_substring_regex(array, _TO_ESCAPE)
    if not pc.any(special).as_py():
        return quoted
    escaped = pa.array([string_text(text) for text in array.filter(special).to_pylist()], pa.string())
    return pc.replace_with_mask(quoted, special, escaped)


def _float_texts(array: Any, written: Callable[[float], str]) -> Any:
    """Where Java writes no exponent, Arrow's shortest digits are Java's, but for the point of a whole number."""
    size = pc.abs(array)
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0))
    texts = array.cast(pa.string())
    whole = pc.equal(pc.find_substring(texts, "."), -1)
    texts = pc.if_else(whole, _joined([texts, ".0"]), texts)
    if pc.all(plain).as_py() is not False:
        return texts
    others = pc.invert(plain)
    return pc.replace_with_mask(
        texts, others, pa.array([written(one) for one in array.filter(others).to_pylist()], pa.string())
    )


def _joined(pieces: list[Any]) -> Any:
    return pc.binary_join_element_wise(*(pa.scalar(one) if isinstance(one, str) else one for one in pieces), "")


def _bracketed(before: str, texts: Any, after: str) -> Any:
    return _joined([before, texts, after])


def _repeated(text: str, length: int) -> Any:
    return pa.array([text] * length, pa.string())


def _extent(array: Any) -> tuple[int, int]:
    """Where the items of all its lists begin and end."""
    if not len(array):
        return 0, 0
    return array.offsets[0].as_py(), array.offsets[-1].as_py()


def _grouped(array: Any, texts: Any) -> Any:
    """The texts of each list's items, joined by commas."""
    if not len(array):
        return pa.array([], pa.string())
    bounds = pc.subtract(array.offsets, array.offsets[0])
    return pc.binary_join(pa.ListArray.from_arrays(bounds, texts), ",")


def _spread(texts: Any, present: Any, instead: str) -> Any:
    """The texts in the rows that are present, and `instead` in the others."""
    gone = len(texts)
    rows = pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1)
    rows = pc.if_else(present, rows, pa.scalar(gone, pa.int64()))
    return pa.concat_arrays([texts, pa.array([instead], pa.string())]).take(rows)
