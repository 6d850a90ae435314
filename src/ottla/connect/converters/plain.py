"""Converters without structure: strings, bytes, booleans and numbers."""

import codecs
import sys
from array import array as machine_array
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, Setting, Text
from ottla.connect.converters.converter import Part, all_rows, naming_the_row
from ottla.connect.data.columns import AnyColumn, Column
from ottla.connect.data.rows import java_class, rows_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import DataError
from ottla.connect.java_text import java_text
from ottla.connect.options import invalid

STRING_OPTIONS: Final[tuple[Setting, ...]] = (
    Text("converter.encoding", "UTF-8", ANY, HIGH, "The character set of the bytes.", acted_on=True),
)
_TEXTUAL: Final = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING, Type.BOOLEAN})


class StringConverter:
    """Strings; anything else is written as Java's `toString` says it. What it reads is always an optional string."""

    def __init__(self, options: Values) -> None:
        name = options.text("converter.encoding")
        try:
            self._codec = codecs.lookup(name)
            "".encode(self._codec.name)
        except LookupError:
            raise invalid("converter.encoding", name, "there is no such character set") from None
        self._is_utf_8 = self._codec.name == "utf-8"

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        if self._is_utf_8:
            try:
                texts = content.cast(pa.string())  # it checks the bytes
            except pa.ArrowInvalid:
                texts = self._read_rows(content)
        else:
            texts = self._read_rows(content)
        return [Part(all_rows(len(content)), Column(Schema(Type.STRING, optional=True), texts))]

    def _read_rows(self, content: Any) -> Any:
        """Row by row: Java puts U+FFFD for what is no character, and Arrow refuses it."""
        name = self._codec.name
        if name == "utf-16":  # without a mark Java takes it for big-endian
            return pa.array([None if one is None else _utf_16(one) for one in content.to_pylist()], pa.string())
        return pa.array(
            [None if one is None else one.decode(name, "replace") for one in content.to_pylist()], pa.string()
        )

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Column) and column.schema.logical is None and column.schema.type in _TEXTUAL:
            texts = column.array.cast(pa.string())  # as Java says them
            if self._is_utf_8:
                return texts.cast(pa.binary())
            return pa.array([self._encoded(text) for text in texts.to_pylist()], pa.binary())
        return naming_the_row(self._rows_to_bytes, column)

    def _rows_to_bytes(self, column: AnyColumn) -> Any:
        """Row by row: Arrow does not say structs, floats and dates as Java does."""
        values = rows_of(column) if isinstance(column, Column) else column.values
        texts = (None if value is None else java_text(column.schema, value) for value in values)
        return pa.array([self._encoded(text) for text in texts], pa.binary())

    def _encoded(self, text: str | None) -> bytes | None:
        if text is None:
            return None
        if self._codec.name == "utf-16":
            return codecs.BOM_UTF16_BE + text.encode("utf-16-be", "replace")
        return text.encode(self._codec.name, "replace")


def _utf_16(content: bytes) -> str:
    marked = content[:2] in (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)
    return content.decode("utf-16" if marked else "utf-16-be", "replace")


class ByteArrayConverter:
    """Bytes as they are."""

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        return [Part(all_rows(len(content)), Column(Schema(Type.BYTES, optional=True), content))]

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Column):
            # A Decimal is stored as bytes, and is none to Kafka.
            if column.schema.type is not Type.BYTES:
                raise DataError(f"Invalid schema type for ByteArrayConverter: {column.schema.type.name}")
            if column.schema.logical is not None and column.array.null_count < len(column):
                row = column.array.is_valid().index(True).as_py()
                raise DataError(
                    "ByteArrayConverter is not compatible with objects of type class java.math.BigDecimal", row
                )
            return column.array
        for row, value in enumerate(column.values):
            if value is not None and not isinstance(value, bytes):
                raise DataError(
                    f"ByteArrayConverter is not compatible with objects of type class {java_class(value)}", row
                )
        return pa.array(column.values, pa.binary())


class BooleanConverter:
    """One byte: 1 or 0."""

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        sized(content, 1, "boolean")
        true, false = pc.equal(content, b"\1"), pc.equal(content, b"\0")
        wrong = pc.invert(pc.or_(true, false)).fill_null(False)
        row = wrong.index(True).as_py()
        if row >= 0:
            raise DataError(f"Failed to deserialize boolean: Unexpected byte {content[row].as_py()[0]}", row)
        return [Part(all_rows(len(content)), Column(Schema(Type.BOOLEAN, optional=True), true))]

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Column):
            if column.schema.type is not Type.BOOLEAN:
                raise DataError(f"Invalid schema type for BooleanConverter: {column.schema.type.name}")
            return pc.if_else(column.array, pa.scalar(b"\1", pa.binary()), pa.scalar(b"\0", pa.binary()))
        for row, value in enumerate(column.values):
            if value is not None and not isinstance(value, bool):
                raise DataError(
                    f"BooleanConverter is not compatible with objects of type class {java_class(value)}", row
                )
        return pa.array([None if value is None else bytes([value]) for value in column.values], pa.binary())


class NumberConverter:
    """Numbers of a fixed size, big-endian, as Kafka's serializers write them."""

    def __init__(self, name: str, type: Type, code: str) -> None:
        self._name = name
        self._schema = Schema(type, optional=True)
        self._code = code
        self._size = machine_array(code).itemsize
        self._empty = Column(self._schema, pa.array([], _TYPES[type]))

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        sized(content, self._size, self._name)
        # Rows that are null get room too: then the numbers lie one behind the other.
        packed = content.fill_null(bytes(self._size)).cast(pa.binary(self._size))
        numbers = machine_array(self._code)
        if len(packed):
            numbers.frombytes(memoryview(packed.buffers()[1])[packed.offset * self._size :][: len(packed) * self._size])
        _swap(numbers)
        array = pa.Array.from_buffers(self._empty.array.type, len(content), [None, pa.py_buffer(numbers)])
        if content.null_count:
            array = pc.if_else(content.is_valid(), array, pa.scalar(None, array.type))
        return [Part(all_rows(len(content)), Column(self._schema, array))]

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Column):
            if column.schema.type is not self._schema.type or column.schema.logical is not None:
                if column.array.null_count == len(column):
                    return pa.nulls(len(column), pa.binary())
                row = column.array.is_valid().index(True).as_py()
                raise self._refused(java_class(0, column.schema), row)
            array = column.array
        else:
            for row, value in enumerate(column.values):
                if value is not None and java_class(value) != java_class(0, self._schema):
                    raise self._refused(java_class(value), row)
            array = pa.array(column.values, self._empty.array.type)
        numbers = machine_array(self._code)
        whole = array.fill_null(0) if array.null_count else array
        if len(whole):
            numbers.frombytes(memoryview(whole.buffers()[1])[whole.offset * self._size :][: len(whole) * self._size])
        _swap(numbers)
        packed = pa.Array.from_buffers(pa.binary(self._size), len(array), [None, pa.py_buffer(numbers)])
        content = packed.cast(pa.binary())
        return pc.if_else(array.is_valid(), content, pa.scalar(None, pa.binary())) if array.null_count else content

    def _refused(self, klass: str, row: int) -> DataError:
        return DataError(f"Failed to serialize to {self._name} (was class {klass}): ", row)


_TYPES: Final = {
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
}


def _swap(numbers: "machine_array[Any]") -> None:
    """Between the machine's order of bytes and that of the network."""
    if sys.byteorder == "little":
        numbers.byteswap()


def sized(content: Any, size: int, name: str) -> None:
    """Raises `DataError` unless every value has this many bytes."""
    row = pc.not_equal(pc.binary_length(content), size).fill_null(False).index(True).as_py()
    if row >= 0:
        found = len(content[row].as_py())
        raise DataError(f"Failed to deserialize {name}: it has {found} bytes, and must have {size}", row)
