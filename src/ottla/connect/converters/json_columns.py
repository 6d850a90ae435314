"""Columns to JSON, as Kafka's JsonConverter writes it: whole columns of texts, put together by Arrow.

A struct is the texts of its fields with the names between them; an array is the texts of its items, joined. A column
that has the same value in every row is one text, which stands for all of them until it is joined with others: most of
what a change event says of its source is such. Only what Arrow has no function for goes row by row: strings with rare
characters that JSON escapes, decimals as numbers, and floating-point numbers that Java writes with an exponent.
"""

import base64
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.data.columns import Column
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import DECIMAL, Schema, Type, scale_of
from ottla.connect.errors import DataError
from ottla.schemas.json_text import java_double, java_float, json_string

_COMPARED: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING, Type.BYTES)
"""Types of which equal values have equal texts: 0.0 and -0.0 are equal, and have not."""
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


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
        found = self._piece(schema, array)
        return _repeated(found, len(array)) if isinstance(found, str) else found

    def _piece(self, schema: Schema, array: Any) -> Any:
        """The texts; one that all rows have as a str."""
        if not array.null_count:
            return self._present(schema, array)
        if schema.default is not None and self._defaults:
            instead = self.value_text(schema, schema.default)
        elif schema.optional:
            instead = "null"
        else:
            raise DataError("Conversion error: null value for field that is required and has no default value")
        if array.null_count == len(array):
            return instead
        present = array.is_valid()
        return _spread(self._values(schema, array.filter(present)), present, instead)

    def _present(self, schema: Schema, array: Any) -> Any:
        """Of values that are all there."""
        if schema.type is Type.STRUCT:
            return self._structs(schema, array)
        if len(array) > 1 and schema.type in _COMPARED and _is_constant(array):
            text: str = self._values(schema, array[:1])[0].as_py()
            return text
        return self._values(schema, array)

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
                return _joined(['"', base64_texts(array), '"'])
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
                made = self._structs(schema, array)
                return _repeated(made, len(array)) if isinstance(made, str) else made
        assert schema.type in _INTEGERS
        return array.cast(pa.string())

    def _structs(self, schema: Schema, array: Any) -> Any:
        pieces: list[Any] = ["{"]
        for place, field in enumerate(schema.fields):
            name = f"{',' if place else ''}{string_text(field.name)}:"
            piece = self._piece(field.schema, pc.struct_field(array, [place]) if len(array) else array.field(place))
            pieces[-1] += name
            if isinstance(piece, str):
                pieces[-1] += piece
            else:
                pieces += [piece, ""]
        pieces[-1] += "}"
        return pieces[0] if len(pieces) == 1 else _joined(pieces)

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

    def _entries(self, schema: Schema, array: Any) -> Any:
        """A map as a list of objects, as JsonSchemaConverter has it."""
        assert schema.keys is not None and schema.items is not None
        first, last = _extent(array)
        keys, items = array.keys.slice(first, last - first), array.items.slice(first, last - first)
        entries = _joined(
            ['{"key":', self._texts(schema.keys, keys), ',"value":', self._texts(schema.items, items), "}"]
        )
        return _bracketed("[", _grouped(array, entries), "]")


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
    content, offsets = _content(array)
    special = np.flatnonzero(_ESCAPED[content])
    if not len(special):
        return _joined(['"', array, '"'])
    if (_QUOTED[content[special]]).all():
        escaped = pc.replace_substring(pc.replace_substring(array, "\\", "\\\\"), '"', '\\"')
        return _joined(['"', escaped, '"'])
    chosen = np.zeros(len(array), bool)
    chosen[np.searchsorted(offsets, special, side="right") - 1] = True
    rows = pa.array(chosen)
    escaped = pa.array([string_text(text) for text in array.filter(rows).to_pylist()], pa.string())
    return pc.replace_with_mask(_joined(['"', array, '"']), rows, escaped)


def _content(array: Any) -> tuple[Any, Any]:
    """The bytes of all values, end to end, and where each begins and ends among them."""
    _, places, data = array.buffers()
    offsets = (
        np.frombuffer(places, np.int32)[array.offset : array.offset + len(array) + 1] if places else np.zeros(1, int)
    )
    content = np.frombuffer(data or b"", np.uint8)
    return content[offsets[0] : offsets[-1]], offsets - offsets[0]


_QUOTED: Final = np.zeros(256, bool)
_QUOTED[list(b'"\\')] = True
_ESCAPED: Final = _QUOTED.copy()
_ESCAPED[:32] = True
_ESCAPED[0xF0:] = True  # the first byte of characters beyond 16 bits


def base64_texts(array: Any) -> Any:
    """Bytes that are all there, in base64, all at once: each value with zeros up to a multiple of three."""
    content, offsets = _content(array)
    sizes = np.diff(offsets)
    groups = -(-sizes // 3)
    if int(groups.sum()) * 4 > _MOST_BYTES:
        return pa.array([base64.b64encode(one).decode() for one in array.to_pylist()], pa.string())
    starts = np.cumsum(groups) - groups
    padded = np.zeros(int(groups.sum()) * 3, np.uint8)
    padded[np.arange(len(content)) + np.repeat(starts * 3 - offsets[:-1], sizes)] = content
    text = np.frombuffer(bytearray(base64.b64encode(padded.tobytes())), np.uint8)
    ends = (starts + groups) * 4
    for rest, marks in ((1, (1, 2)), (2, (1,))):
        for back in marks:
            text[ends[sizes % 3 == rest] - back] = ord("=")
    bounds = np.concatenate([[0], ends]).astype(np.int32)
    return pa.StringArray.from_buffers(len(array), pa.py_buffer(bounds), pa.py_buffer(text))


_MOST_BYTES: Final = (1 << 31) - 1


def _is_constant(array: Any) -> bool:
    """Whether all values are the same; most arrays whose values are not say so at their ends."""
    first = array[0]
    if first != array[-1] or first != array[len(array) // 2]:
        return False
    return pc.all(pc.equal(array, first)).as_py() is True


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
