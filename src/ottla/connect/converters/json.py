"""Kafka's JsonConverter: JSON with the schema in every record (`schemas.enable`), or without.

Writing, a schema's text is made once and stands before every payload of a column. Reading, records of one schema begin
with the same bytes: a record that begins as the one before it has that one's schema, and only its payload is parsed.
"""

import base64
from collections import OrderedDict
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import OneOf, at_least
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, Flag, Int, Setting, Text
from ottla.connect.converters.converter import Part, naming_the_row
from ottla.connect.converters.json_columns import JsonWriter, string_text
from ottla.connect.converters.json_rows import DECODER, read_json, reader, schemaless
from ottla.connect.converters.json_schemas import read_schema, schema_text
from ottla.connect.data.columns import AnyColumn, Column, Schemaless
from ottla.connect.data.rows import Float32, column_of_checked, java_class, type_of
from ottla.connect.data.schema import Schema
from ottla.connect.errors import DataError
from ottla.connect.options import invalid
from ottla.schemas.json_text import java_double, java_float

OPTIONS: Final[tuple[Setting, ...]] = (
    Flag("schemas.enable", True, ANY, HIGH, "Whether every key and value has its schema with it.", acted_on=True),
    Int("schemas.cache.size", 1000, at_least(0), HIGH, "How many schemas are kept, to know them again.", acted_on=True),
    Text(
        "schema.content",
        None,
        ANY,
        HIGH,
        "For sinks: the schema of all records, as JSON. Those in the records are then not looked for.",
        acted_on=True,
    ),
    Text(
        "decimal.format",
        "BASE64",
        OneOf(("NUMERIC", "BASE64"), any_case=True),
        LOW,
        "How decimals are written: BASE64 of their unscaled number, or NUMERIC. Both are read.",
        acted_on=True,
    ),
    Flag(
        "replace.null.with.default",
        True,
        ANY,
        LOW,
        "Whether a schema's default is put where there is no value.",
        acted_on=True,
    ),
)
_START: Final = '{"schema":'
_MIDDLE: Final = ',"payload":'
_NEEDS_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)


class JsonConverter:
    def __init__(self, options: Values) -> None:
        self._has_schemas = options.flag("schemas.enable")
        self._defaults = options.flag("replace.null.with.default")
        numeric = options.text("decimal.format").upper() == "NUMERIC"
        self._writer = JsonWriter(numeric=numeric, defaults=self._defaults)
        self._texts: _Recent[Schema, str] = _Recent(options.integer("schemas.cache.size"))
        self._schemas: _Recent[str, Schema] = _Recent(options.integer("schemas.cache.size"))
        self._given: Schema | None = None
        content = options.optional_text("schema.content")
        if content:
            try:
                self._given = self._schema(read_json(content))
            except (ValueError, DataError) as error:
                raise invalid("schema.content", content, str(error)) from None

    # Writing.

    def to_bytes(self, topic: str, column: AnyColumn) -> Any:
        if isinstance(column, Column):
            return naming_the_row(self._columns_to_bytes, column)
        before, after = ('{"schema":null,"payload":', "}") if self._has_schemas else ("", "")
        made: list[bytes | None] = []
        for row, value in enumerate(column.values):
            try:
                text = None if value is None else f"{before}{_written(value)}{after}"
                made.append(None if text is None else text.encode())
            except UnicodeEncodeError:
                raise DataError("a string has half of a surrogate pair, which UTF-8 cannot encode", row) from None
            except RecursionError:
                raise DataError("the value is nested too deep", row) from None
            except DataError as error:
                raise error.at(row) from None
        return pa.array(made, pa.binary())

    def _columns_to_bytes(self, column: Column) -> Any:
        texts = self._writer.texts(column)
        if self._has_schemas:
            said = self._texts.get(column.schema)
            if said is None:
                said = self._texts.put(column.schema, schema_text(column.schema, self._writer))
            texts = pc.binary_join_element_wise(f"{_START}{said}{_MIDDLE}", texts, "}", "")
        return texts.cast(pa.binary())

    # Reading.

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        parts: dict[Schema | None, tuple[list[int], list[Any]]] = {}
        known: tuple[str, Schema | None] = ("", None)
        for row, one in enumerate(content.to_pylist()):
            try:
                schema, value, known = (None, None, known) if one is None else self._read(_decoded(one), known)
            except DataError as error:
                raise error.at(row) from None
            except RecursionError:
                raise DataError("the JSON is nested too deep", row) from None
            rows, values = parts.setdefault(schema, ([], []))
            rows.append(row)
            values.append(value)
        return [
            Part(
                pa.array(rows, pa.int64()),
                Schemaless(tuple(values)) if schema is None else _column(schema, values, rows),
            )
            for schema, (rows, values) in parts.items()
        ]

    def _read(
        self, text: str, known: tuple[str, Schema | None]
    ) -> tuple[Schema | None, Any, tuple[str, Schema | None]]:
        """Schema and value of a record, and how records of its schema begin. `known` is that of the record before."""
        prefix, schema = known
        if prefix and text.startswith(prefix) and text[-1:] == "}":
            payload = _whole(text, len(prefix))
            if payload is not _NOTHING:
                return schema, self._value(schema, payload), known
        try:
            said = read_json(text) if text.strip(" \t\r\n") else None
        except ValueError as error:
            raise DataError(
                f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}"
            ) from None
        if not self._has_schemas:
            return None, schemaless(said), known
        if self._given is not None:
            return self._given, self._value(self._given, said), known
        if not isinstance(said, dict) or said.keys() != {"schema", "payload"}:
            raise DataError(_NEEDS_ENVELOPE)
        prefix = _beginning(text)
        schema = self._schemas.get(prefix) if prefix else None
        if schema is None:
            schema = self._schema(said["schema"])
            if prefix and schema is not None:
                self._schemas.put(prefix, schema)
        return schema, self._value(schema, said["payload"]), (prefix, schema)

    def _schema(self, said: Any) -> Schema | None:
        return read_schema(said, lambda schema, value: reader(schema, self._defaults)(value))

    def _value(self, schema: Schema | None, payload: Any) -> Any:
        return schemaless(payload) if schema is None else reader(schema, self._defaults)(payload)


def _column(schema: Schema, values: list[Any], rows: list[int]) -> Column:
    try:
        return column_of_checked(schema, values)
    except DataError as error:  # half of a surrogate pair, which only Arrow sees
        for row, value in zip(rows, values, strict=True):
            try:
                column_of_checked(schema, [value])
            except DataError:
                raise DataError(str(error), row) from None
        raise


def _beginning(text: str) -> str:
    """All before the payload, if the text has the form that this converter and Kafka's write."""
    if not text.startswith(_START) or text[len(_START)].isspace():  # the decoder below skips no spaces
        return ""
    _, end = DECODER.raw_decode(text, len(_START))
    return text[: end + len(_MIDDLE)] if text.startswith(_MIDDLE, end) else ""


_NOTHING: Final = object()


def _whole(text: str, start: int) -> Any:
    """The value between `start` and the last character, if that is all there is."""
    try:
        value, end = DECODER.raw_decode(text, start)
    except (ValueError, ArithmeticError, RecursionError):
        return _NOTHING
    return value if end == len(text) - 1 else _NOTHING


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}") from None


def _written(value: Any) -> str:
    """JSON of a value without a schema."""
    if value is None:
        return "null"
    if type_of(value) is None:
        raise DataError(f"Java class class {java_class(value)} does not have corresponding schema type.")
    if isinstance(value, str):
        return string_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_float(value) if isinstance(value, Float32) else java_double(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return "{" + ",".join(f"{string_text(name)}:{_written(item)}" for name, item in value.items()) + "}"


Key = TypeVar("Key")
Kept = TypeVar("Kept")


class _Recent(Generic[Key, Kept]):
    """The last few that were used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Key, Kept] = OrderedDict()

    def get(self, key: Key) -> Kept | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def put(self, key: Key, kept: Kept) -> Kept:
        self._kept[key] = kept
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return kept
