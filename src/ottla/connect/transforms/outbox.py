"""Debezium's EventRouter: rows that were inserted into an outbox table become events, each in the topic that it names.

What is made of an event hangs on the row: its topic, the version of its schema, whether its payload is empty, what its
JSON looks like. A batch is split by these, and each part is whole columns again.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import OneOf
from ottla.config.parse import Values
from ottla.config.setting import ANY, LOW, MEDIUM, Flag, List, Setting, Text
from ottla.connect.data.columns import AnyColumn, Column, nothing, struct_column
from ottla.connect.data.records import Header, Records
from ottla.connect.data.rows import column_of, field_value, rows_of
from ottla.connect.data.schema import Field, Schema, Type, array, struct
from ottla.connect.errors import DataError
from ottla.connect.java_text import trimmed
from ottla.connect.options import invalid
from ottla.connect.transforms.envelopes import child, is_envelope, place_of, texts_of
from ottla.connect.transforms.java_patterns import option, replaced_first
from ottla.connect.transforms.transform import in_parts

_TIMES: Final = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1_000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}
_PLACEMENTS: Final = ("header", "envelope", "partition")


class _Additional(NamedTuple):
    field: str
    placement: str
    alias: str


class EventRouter:
    """Rows of an outbox table as events, each in the topic that it names."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text(
            "table.field.event.id", "id", ANY, LOW, "The field with the event's id, for the header `id`.", acted_on=True
        ),
        Text("table.field.event.key", "aggregateid", ANY, LOW, "The field with the record's key.", acted_on=True),
        Text(
            "table.field.event.type",
            "type",
            ANY,
            LOW,
            "Accepted, as in Debezium; nothing is read from it.",
            acted_on=True,
        ),
        Text("table.field.event.payload", "payload", ANY, LOW, "The field with the payload.", acted_on=True),
        Text("table.field.event.timestamp", None, ANY, MEDIUM, "The field with the record's timestamp.", acted_on=True),
        Text(
            "table.field.event.schema.version",
            None,
            ANY,
            LOW,
            "The field with the version of the schema.",
            acted_on=True,
        ),
        List(
            "table.fields.additional.placement",
            (),
            ANY,
            MEDIUM,
            "More fields, and where they go: `field:header`, `field:envelope:alias`, `field:partition`.",
            acted_on=True,
        ),
        Text(
            "table.field.additional.missing",
            "error",
            OneOf(("error", "ignore"), any_case=True),
            MEDIUM,
            "What happens when such a field is not there.",
            acted_on=True,
        ),
        Text(
            "table.op.invalid.behavior",
            "warn",
            OneOf(("warn", "error", "fatal"), any_case=True),
            MEDIUM,
            "What happens when a row was updated: the record is dropped, or all fails (`fatal`).",
            acted_on=True,
        ),
        Text("route.by.field", "aggregatetype", ANY, LOW, "The field that says the topic.", acted_on=True),
        Text("route.topic.regex", "(?<routedByValue>.*)", ANY, LOW, "What it must match.", acted_on=True),
        Text("route.topic.replacement", "outbox.event.${routedByValue}", ANY, LOW, "The topic.", acted_on=True),
        Flag("route.tombstone.on.empty.payload", False, ANY, LOW, "Whether no payload is a tombstone.", acted_on=True),
        Flag(
            "table.expand.json.payload", False, ANY, LOW, "Whether a payload of JSON becomes a struct.", acted_on=True
        ),
        Text(
            "table.json.payload.null.behavior",
            "ignore",
            OneOf(("ignore", "optional_bytes"), any_case=True),
            LOW,
            "Whether a null in that JSON is left out, or bytes that are null.",
            acted_on=True,
        ),
    )

    def __init__(self, options: Values) -> None:
        self._id = options.text("table.field.event.id")
        self._key = options.optional_text("table.field.event.key")
        self._payload = options.text("table.field.event.payload")
        self._timestamp = options.optional_text("table.field.event.timestamp")
        self._version = options.optional_text("table.field.event.schema.version")
        self._may_miss = options.text("table.field.additional.missing").lower() == "ignore"
        self._updates_fail = options.text("table.op.invalid.behavior").lower() == "fatal"
        self._route = options.text("route.by.field")
        self._regex = option("route.topic.regex", options.text("route.topic.regex"))
        self._replacement = options.text("route.topic.replacement")
        self._tombstones = options.flag("route.tombstone.on.empty.payload")
        self._expands = options.flag("table.expand.json.payload")
        self._null_bytes = options.text("table.json.payload.null.behavior").lower() == "optional_bytes"
        self._additional = _additional(options.list("table.fields.additional.placement"))
        self._has_envelope = any(one.placement == "envelope" for one in self._additional)

    def apply(self, records: Records) -> list[Records]:
        missing = records.value.is_null().to_pylist()
        return in_parts(records, [None if gone else "event" for gone in missing], lambda _, part: self._events(part))

    def _events(self, records: Records) -> list[Records]:
        envelope = records.value
        if not is_envelope(envelope):
            return [records]
        assert isinstance(envelope, Column)
        operations = texts_of(envelope, "op")
        if self._updates_fail and "u" in operations:
            row = operations.index("u")
            raise DataError("Unexpected update message received, fail.", row)
        kinds = [None if operation in ("d", "u") else "insert" for operation in operations]
        return in_parts(records, kinds, lambda _, part: self._inserts(part))

    def _inserts(self, records: Records) -> list[Records]:
        envelope = records.value
        assert isinstance(envelope, Column)
        event = child(envelope, "after")
        row = event.is_null().index(True).as_py()
        if row >= 0:
            raise DataError("Only Struct objects supported for [Read Outbox Event], found: null", row)
        if place_of(event.schema, self._payload) is None:
            raise DataError(f"Unable to find payload field {self._payload} in event", 0)
        timestamps = self._timestamps(envelope, event)
        key = nothing(len(records)) if self._key is None else _field(event, self._key)
        identity = _field(event, self._id)
        headers = [*records.headers, Header("id", identity)]
        partition = pa.nulls(len(records), pa.int32())
        for one in self._additional:
            if one.placement == "envelope" or (place_of(event.schema, one.field) is None and self._may_miss):
                continue
            found = _field(event, one.field)
            if one.placement == "header":
                headers.append(Header(one.alias, found))
            elif found.schema.type is not Type.INT32:
                raise DataError(f"Field '{one.field}' is not of type INT32", 0)
            else:
                partition = found.array
        routes = texts_of(event, self._route)
        if None in routes:
            raise DataError(f"the field {self._route}, which says the topic, is null", routes.index(None))
        # A key of no configured field has a schema in Debezium, of a text, with a null: it is the same here.
        keys: AnyColumn = Column(Schema(Type.STRING), pa.nulls(len(records), pa.string())) if self._key is None else key
        made = records.but(key=keys, value=event, timestamp=timestamps, partition=partition, headers=tuple(headers))
        return in_parts(made, list(zip(routes, self._versions(event), strict=True)), self._routed)

    def _timestamps(self, envelope: Column, event: Column) -> Any:
        of_change = _field(envelope, "ts_ms")
        if of_change.schema.type is not Type.INT64:
            raise DataError("Field 'ts_ms' is not of type INT64", 0)
        if self._timestamp is None:
            return of_change.array
        place = place_of(event.schema, self._timestamp)
        if place is None:
            raise DataError(f"Unable to find timestamp field {self._timestamp} in event", 0)
        found = field_value(event, place)
        if found.schema.type is not Type.INT64:
            raise DataError(f"Field '{self._timestamp}' is not of type INT64", 0)
        row = found.array.is_valid().index(True).as_py()
        if row < 0:
            return of_change.array
        if found.schema.name is None:
            raise DataError("Unsupported field type INT64 (without logical schema name) for event timestamp", row)
        if found.schema.name not in _TIMES:
            raise DataError(f"Unsupported field type {found.schema.name} for event timestamp", row)
        return pc.coalesce(pc.divide(found.array, _TIMES[found.schema.name]), of_change.array)

    def _versions(self, event: Column) -> Sequence[int | None]:
        if self._version is None or not self._has_envelope:
            return [None] * len(event)
        found = _field(event, self._version)
        if found.schema.type is not Type.INT32:
            raise DataError(f"Field '{self._version}' is not of type INT32", 0)
        return rows_of(found)

    def _routed(self, kind: tuple[str | None, int | None], records: Records) -> list[Records]:
        route, version = kind
        assert route is not None
        topic = route
        if self._regex.fullmatch(route) is not None:
            try:
                topic = replaced_first(self._regex, route, self._replacement)
            except ValueError as error:
                raise DataError(f"the replacement {self._replacement}: {error}") from None
        event = records.value
        assert isinstance(event, Column)
        payload = _field(event, self._payload)
        made = records.but(topic=topic)
        if not self._expands or payload.schema.type is not Type.STRING:
            return self._with_payload(made, payload, route, version)
        schemas, values = self._expanded(payload)
        parts: dict[Schema, list[int]] = {}
        for row, schema in enumerate(schemas):
            parts.setdefault(schema, []).append(row)
        done: list[Records] = []
        for schema, rows in parts.items():
            column = (
                payload.take(pa.array(rows))
                if schema == payload.schema
                else column_of(schema, [values[one] for one in rows])
            )
            done += self._with_payload(made.take(pa.array(rows, pa.int64())), column, route, version)
        return done

    def _expanded(self, payload: Column) -> tuple[list[Schema], list[Any]]:
        """Schema and value of each payload; what is no JSON object stays the text that it is."""
        schemas: list[Schema] = []
        values: list[Any] = []
        for text in rows_of(payload):
            schema, value = payload.schema, text
            if text is not None and text.startswith("{"):
                try:
                    parsed = json.loads(text, parse_int=_integer)
                    schema = _schema_of_json(self._payload, parsed, self._null_bytes) or payload.schema
                    value = text if schema == payload.schema else _value_of_json(schema, parsed)
                    column_of(schema, [value])
                except (ValueError, DataError, RecursionError):
                    schema, value = payload.schema, text
            schemas.append(schema)
            values.append(value)
        return schemas, values

    def _with_payload(self, records: Records, payload: Column, route: str, version: int | None) -> list[Records]:
        event = records.value
        assert isinstance(event, Column)
        value: Column = payload
        if self._has_envelope:
            fields = [("payload", payload.schema)]
            columns = [payload]
            for one in self._additional:
                if one.placement != "envelope":
                    continue
                if place_of(event.schema, one.field) is None:
                    if self._may_miss:
                        continue
                    raise DataError(f"Unable to find field {one.field} in event", 0)
                columns.append(_field(event, one.field))
                fields.append((one.alias, columns[-1].schema))
            schema = struct(fields, name=_schema_name(event.schema.name, route), version=version)
            value = struct_column(schema, columns, len(records))
        made = records.but(value=value)
        if not self._tombstones:
            return [made]
        is_empty = payload.is_null().to_pylist()
        if payload.schema.type is Type.STRING:
            is_empty = [text is None or not trimmed(text) for text in payload.array.to_pylist()]
        empty, full = made.split(pa.array(is_empty, pa.bool_()))
        gone = [] if empty is None else [empty.but(value=nothing(len(empty)))]
        return gone + ([] if full is None else [full])


def _additional(texts: tuple[str, ...]) -> list[_Additional]:
    made: list[_Additional] = []
    for text in texts:
        parts = [part.strip() for part in text.split(":")]
        if len(parts) not in (2, 3):
            name = "table.fields.additional.placement"
            raise invalid(
                name, texts, f"A comma-separated list of valid String pairs or trios is expected but got: {text}"
            )
        if parts[1].lower() not in _PLACEMENTS:
            name = "table.fields.additional.placement"
            raise invalid(name, texts, f"{parts[1]} is none of {', '.join(_PLACEMENTS)}")
        made.append(_Additional(parts[0], parts[1].lower(), parts[-1] if len(parts) == 3 else parts[0]))
    return made


def _field(column: Column, name: str) -> Column:
    """A field with its default where it has no value."""
    place = place_of(column.schema, name)
    if place is None:
        raise DataError(f"{name} is not a valid field name", 0)
    return field_value(column, place)


def _schema_name(name: str | None, route: str) -> str:
    if name is None:
        return route
    before, dot, last = name.rpartition(".")
    return f"{before}{dot}{route}.{last}"


# Payloads of JSON.


class _Long(int):
    """A whole number that needs more than 32 bits."""


def _integer(text: str) -> int | float:
    number = int(text) if len(text) < 25 else 1 << 64
    if -(1 << 31) <= number < 1 << 31:
        return number
    return _Long(number) if -(1 << 63) <= number < 1 << 63 else float(text)


def _schema_of_json(name: str | None, value: Any, null_bytes: bool) -> Schema | None:
    """None where nothing tells: a null, an empty array. Raises `DataError` for arrays of several kinds."""
    match value:
        case None:
            return Schema(Type.BYTES, True) if null_bytes else None
        case bool():
            return Schema(Type.BOOLEAN, True)
        case str():
            return Schema(Type.STRING, True)
        case _Long():
            return Schema(Type.INT64, True)
        case int():
            return Schema(Type.INT32, True)
        case float():
            return Schema(Type.FLOAT64, True)
        case list():
            return array(_item_schema(name, value, null_bytes), optional=True) if value else None
    fields: list[tuple[str, Schema]] = []
    for key, item in value.items():
        schema = _schema_of_json(f"{name}.{key}" if name and name.strip() else key, item, null_bytes)
        if schema is not None:
            fields.append((key, schema))
    return struct(fields, name=name, optional=True)


def _item_schema(name: str | None, items: list[Any], null_bytes: bool) -> Schema:
    present = [item for item in items if item is not None]
    if present and all(isinstance(item, dict) for item in present):
        merged: dict[str, Schema] = {}
        for item in present:
            schema = _schema_of_json(name, item, null_bytes)
            assert schema is not None
            for field in schema.fields:
                known = merged.get(field.name)
                if known is None or (known.type is Type.BYTES and field.schema.type is not Type.BYTES):
                    merged[field.name] = field.schema
        return Schema(
            Type.STRUCT, True, name=name, fields=tuple(Field(field, schema) for field, schema in merged.items())
        )
    kinds = {float if isinstance(item, float) else type(item) for item in present}
    if len(kinds) > 1:
        raise DataError("Field is not a homogenous array")
    schema = _schema_of_json(None, present[0] if present else None, null_bytes)
    if schema is None:
        raise DataError("an array has no schema that its entries tell")
    return schema


def _value_of_json(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        return {field.name: _value_of_json(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return [_value_of_json(schema.items, item) for item in value]
    return value
