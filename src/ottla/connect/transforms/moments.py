"""Transforms of times: TimestampConverter, TimestampRouter."""

from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import OneOf
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Setting, Text
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column, Schemaless, struct_column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import Moment, java_class, rows_of
from ottla.connect.data.schema import DATE, TIME, TIMESTAMP, Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.java_dates import DAY_MS, DateFormat
from ottla.connect.options import InvalidOption, invalid
from ottla.connect.transforms.fields import DEFAULTS
from ottla.connect.transforms.transform import Place, at, fields_of, maps_of, put, struct_of

_LONG: Final = (-(1 << 63), (1 << 63) - 1)
_UNITS: Final = {
    "seconds": (1_000, 1),
    "milliseconds": (1, 1),
    "microseconds": (1, 1_000),
    "nanoseconds": (1, 1_000_000),
}
"""How many milliseconds one is, and how many of them are a millisecond."""
_LOGICAL: Final = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}
_INT32: Final = 1 << 31


def _toward_zero(number: int, by: int) -> int:
    return number // by if number >= 0 else -(-number // by)


def _saturated(number: int) -> int:
    return min(max(number, _LONG[0]), _LONG[1])


class TimestampConverter:
    """Times from one form into another: text, a number since 1970, or Connect's Date, Time and Timestamp."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("field", "", ANY, HIGH, "The field with the time; empty if it is the whole.", acted_on=True),
        Text(
            "target.type",
            REQUIRED,
            OneOf(("string", "unix", "Date", "Time", "Timestamp")),
            HIGH,
            "What it becomes.",
            acted_on=True,
        ),
        Text(
            "format",
            "",
            ANY,
            MEDIUM,
            "How times are written as text, and read, in the letters of Java's SimpleDateFormat.",
            acted_on=True,
        ),
        Text(
            "unix.precision",
            "milliseconds",
            OneOf(("nanoseconds", "microseconds", "milliseconds", "seconds")),
            LOW,
            "What numbers count. Digits below milliseconds are lost.",
            acted_on=True,
        ),
        DEFAULTS,
    )
    _PURPOSE: Final = "converting timestamp formats"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._field = options.text("field")
        self._target = options.text("target.type")
        self._unit, self._parts = _UNITS[options.text("unix.precision")]
        self._defaults = options.flag("replace.null.with.default")
        pattern = options.text("format")
        if self._target == "string" and not pattern.strip():
            raise InvalidOption(
                "TimestampConverter requires format option to be specified when using string timestamps"
            )
        self._dates: DateFormat | None = None
        if pattern.strip():
            try:
                self._dates = DateFormat(pattern)
            except ValueError as error:
                raise InvalidOption(
                    "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: "
                    f"{pattern}: {error}"
                ) from None

    def apply(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            return [put(records, self._place, self._without_schema(column))]
        if not self._field:
            return [put(records, self._place, self._converted(column))]
        struct_of(column, self._PURPOSE)
        if column.schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type", 0)
        columns = fields_of(column, self._defaults)
        missing = column.is_null() if column.array.null_count else None
        for place, field in enumerate(column.schema.fields):
            if field.name == self._field:
                all_missing = column.array.null_count == len(column)
                columns[place] = self._converted(columns[place], is_unused=all_missing)
        schema = self._struct_schema(column.schema, [one.schema for one in columns])
        return [put(records, self._place, struct_column(schema, columns, len(records), missing))]

    def _struct_schema(self, schema: Schema, fields: list[Schema]) -> Schema:
        default = schema.default
        if default is not None:
            default = dict(default)
            for field in schema.fields:
                value = default.get(field.name)
                if value is None and self._defaults:
                    value = field.schema.default
                if field.name == self._field and value is not None:
                    value = self._made(self._read(_source(field.schema), _object(field.schema, value)))
                default[field.name] = value
        return struct(
            [(field.name, made) for field, made in zip(schema.fields, fields, strict=True)],
            name=schema.name,
            version=schema.version,
            optional=schema.optional,
            default=default,
            doc=schema.doc,
            parameters=schema.parameters,
        )

    def _target_schema(self, optional: bool) -> Schema:
        match self._target:
            case "string":
                return Schema(Type.STRING, optional)
            case "unix":
                return Schema(Type.INT64, optional)
            case "Date":
                return schemas.date(optional=optional)
            case "Time":
                return schemas.time(optional=optional)
        return schemas.timestamp(optional=optional)

    def _converted(self, column: Column, *, is_unused: bool = False) -> Column:
        schema = self._target_schema(column.schema.optional)
        kind = pa.string() if self._target == "string" else pa.int32() if schema.type is Type.INT32 else pa.int64()
        if is_unused:
            return Column(schema, pa.nulls(len(column), kind))
        source = _source(column.schema)
        array = self._in_columns(source, column.array)
        if array is not None:
            return Column(schema, array)
        made: list[Any] = []
        known: dict[Any, Any] = {}
        for row, value in enumerate(rows_of(column)):
            try:
                if value not in known:
                    known[value] = None if value is None else self._stored(source, column.schema, value)
            except DataError as error:
                raise error.at(row) from None
            made.append(known[value])
        return Column(schema, pa.array(made, kind))

    def _stored(self, source: str, schema: Schema, value: Any) -> Any:
        made = self._made(self._read(source, _object(schema, value)))
        return _within(made // DAY_MS) if self._target == "Date" else made

    def _in_columns(self, source: str, array: Any) -> Any:
        """The whole column, where neither texts nor numbers out of range can be in the way; None otherwise."""
        if source == "string" or self._target == "string" or (source == "unix" and self._unit != 1):
            return None
        ms = array.cast(pa.int64())
        if source == "Date":
            ms = pc.multiply(ms, DAY_MS)
        elif source == "unix":
            ms = pc.divide(ms, self._parts)
        if self._target == "Timestamp":
            return ms
        if self._target == "unix":
            try:
                return pc.divide(pc.multiply_checked(ms, self._parts), self._unit)
            except pa.ArrowInvalid:
                return None
        floor = pc.floor(pc.divide(ms.cast(pa.float64(), safe=False), float(DAY_MS))).cast(pa.int64())
        bounds = pc.min_max(ms)
        if bounds["max"].as_py() is not None and max(-bounds["min"].as_py(), bounds["max"].as_py()) > 1 << 51:
            return None
        if self._target == "Time":
            return pc.subtract(ms, pc.multiply(floor, DAY_MS)).cast(pa.int32())
        return floor.cast(pa.int32())

    def _without_schema(self, column: Schemaless) -> Schemaless:
        made: list[Any] = []
        for row, value in enumerate(column.values):
            try:
                if value is None or not self._field:
                    made.append(self._object_of(value))
                else:
                    (whole,) = maps_of(Schemaless((value,)), self._PURPOSE)
                    made.append({**whole, self._field: self._object_of(whole.get(self._field))})
            except DataError as error:
                raise DataError(str(error), row) from None
        return Schemaless(tuple(made))

    def _object_of(self, value: Any) -> Any:
        if value is None:
            return None
        source = {Moment: "Timestamp", int: "unix", str: "string"}.get(type(value))
        if source is None:
            raise DataError(f"TimestampConverter does not support class {java_class(value)} objects as timestamps")
        made = self._made(self._read(source, value))
        return Moment(made) if self._target in ("Date", "Time", "Timestamp") else made

    def _read(self, source: str, value: Any) -> int:
        """Milliseconds since 1970."""
        if source == "unix":
            return _toward_zero(_saturated(value * self._unit), self._parts)
        if source != "string":
            return int(value)
        if self._dates is None:
            raise DataError(
                f"Could not parse timestamp: value ({value}): set the option format to the pattern of these texts"
            )
        try:
            return self._dates.moment(value)
        except ValueError:
            raise DataError(
                f"Could not parse timestamp: value ({value}) does not match pattern ({self._dates.pattern})"
            ) from None

    def _made(self, ms: int) -> Any:
        match self._target:
            case "string":
                assert self._dates is not None
                return self._dates.text(ms)
            case "unix":
                return _toward_zero(_saturated(ms * self._parts), self._unit)
            case "Date":
                return ms - ms % DAY_MS
            case "Time":
                return ms % DAY_MS
        return ms


def _within(days: int) -> int:
    if not -_INT32 <= days < _INT32:
        raise DataError(f"{days} days are too many for a Date")
    return days


def _source(schema: Schema) -> str:
    if schema.name in _LOGICAL and schema.logical is not None:
        return _LOGICAL[schema.name]
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    raise DataError(f"Schema {schema} does not correspond to a known timestamp type format", 0)


def _object(schema: Schema, value: Any) -> Any:
    return value * DAY_MS if schema.logical == DATE else value


class TimestampRouter:
    """Another topic, with the record's timestamp in its name."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text(
            "topic.format",
            "${topic}-${timestamp}",
            ANY,
            HIGH,
            "The new topic, with `${topic}` for the old one and `${timestamp}`.",
            acted_on=True,
        ),
        Text(
            "timestamp.format",
            "yyyyMMdd",
            ANY,
            HIGH,
            "How the timestamp is written, in UTC, in the letters of Java's SimpleDateFormat.",
            acted_on=True,
        ),
    )

    def __init__(self, options: Values) -> None:
        self._topic = options.text("topic.format")
        pattern = options.text("timestamp.format")
        try:
            self._dates = DateFormat(pattern)
        except ValueError as error:
            raise invalid("timestamp.format", pattern, str(error)) from None

    def apply(self, records: Records) -> list[Records]:
        row = records.timestamp.is_null().index(True).as_py()
        if row >= 0:
            raise DataError("Timestamp missing on record", row)
        finest = self._dates.finest_ms
        slots = [one // finest for one in records.timestamp.to_pylist()]
        names = {slot: self._named(records.topic, slot * finest) for slot in set(slots)}
        by_name = records.by(pa.array([names[slot] for slot in slots], pa.string()))
        return [batch.but(topic=topic) for topic, batch in by_name]

    def _named(self, topic: str, ms: int) -> str:
        return self._topic.replace("${topic}", topic).replace("${timestamp}", self._dates.text(ms))
