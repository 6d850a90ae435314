"""Transforms of fields. Structs are taken apart and put together in columns; maps without a schema row by row."""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import Items, NotEmpty, OneOf
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, List, Setting, Text
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Column, Schemaless, struct_column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import Float32, Int8, Int16, Int32, constant, java_class
from ottla.connect.data.schema import DECIMAL, Schema, Type, scale_of, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption, invalid
from ottla.connect.transforms.field_paths import column_at, schema_at, steps_of, value_at
from ottla.connect.transforms.transform import (
    Place,
    apart_from_nulls,
    at,
    bare,
    fields_of,
    maps_of,
    no_nulls,
    put,
    struct_of,
)

DEFAULTS: Final = Flag(
    "replace.null.with.default",
    True,
    ANY,
    MEDIUM,
    "Whether a field's default is put where it has no value.",
    acted_on=True,
)
SYNTAX: Final = Text(
    "field.syntax.version",
    "V1",
    OneOf(("V1", "V2"), any_case=True),
    HIGH,
    "V1: a field's name. V2: a way to a nested field, `a.b`, with backticks around names that have dots.",
    acted_on=True,
)


class ExtractField:
    """One field instead of the whole."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("field", REQUIRED, ANY, MEDIUM, "The field.", acted_on=True),
        SYNTAX,
        DEFAULTS,
    )
    _PURPOSE: Final = "field extraction"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._text = options.text("field")
        self._steps = steps_of(self._text, nested=options.text("field.syntax.version").upper() == "V2")
        self._defaults = options.flag("replace.null.with.default")

    def apply(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            values: list[Any] = []
            for row, value in enumerate(column.values):
                if value is not None:
                    maps_of(Schemaless((value,)), self._PURPOSE)
                try:
                    values.append(None if value is None else value_at(value, self._steps))
                except DataError as error:
                    raise error.at(row) from None
            return [put(records, self._place, Schemaless(tuple(values)))]
        struct_of(column, self._PURPOSE)
        if schema_at(column.schema, self._steps) is None:
            raise DataError(f"Unknown field: {self._text}")
        return [put(records, self._place, column_at(column, self._steps, defaults=self._defaults))]


class HoistField:
    """A struct around the whole, with one field."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("field", REQUIRED, ANY, MEDIUM, "The name of the field.", acted_on=True),
    )

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._name = options.text("field")

    def apply(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            made = Schemaless(tuple({self._name: value} for value in column.values))
            return [put(records, self._place, made)]
        schema = struct([(self._name, column.schema)])
        return [put(records, self._place, struct_column(schema, [column], len(column)))]


class _Insertion(NamedTuple):
    name: str
    optional: bool


def _insertion(text: str | None) -> _Insertion | None:
    """`name` or `name?` for a field that may be null, `name!` for one that may not."""
    if text is None:
        return None
    return _Insertion(text[:-1] if text[-1:] in ("?", "!") else text, not text.endswith("!"))


class InsertField:
    """More fields: from what is known of the record, or the same for all."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("topic.field", None, ANY, MEDIUM, "Field for the topic. `!` behind it: may not be null.", acted_on=True),
        Text("partition.field", None, ANY, MEDIUM, "Field for the partition.", acted_on=True),
        Text("offset.field", None, ANY, MEDIUM, "Field for the offset; for sinks only.", acted_on=True),
        Text("timestamp.field", None, ANY, MEDIUM, "Field for the record's timestamp.", acted_on=True),
        Text("static.field", None, ANY, MEDIUM, "Field for `static.value`.", acted_on=True),
        Text("static.value", None, ANY, MEDIUM, "What is put into `static.field`.", acted_on=True),
        DEFAULTS,
    )
    _PURPOSE: Final = "field insertion"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        names = ("topic", "partition", "offset", "timestamp", "static")
        self._wanted = {name: _insertion(options.optional_text(f"{name}.field")) for name in names}
        self._static = options.optional_text("static.value")
        self._defaults = options.flag("replace.null.with.default")
        if not any(self._wanted.values()):
            raise InvalidOption("No field insertion configured")
        if self._wanted["static"] is not None and self._static is None:
            field = self._wanted["static"].name
            raise invalid("static.value", None, f"No value specified for static field: {field}")

    def apply(self, records: Records) -> list[Records]:
        return apart_from_nulls(records, self._place, self._applied)

    def _applied(self, records: Records) -> list[Records]:
        if self._wanted["offset"] is not None and records.offset is None:
            raise DataError(
                f"Only SinkRecord supported for [{self._PURPOSE}], found: org.apache.kafka.connect.source.SourceRecord"
            )
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            return [put(records, self._place, self._with_maps(records, column))]
        struct_of(column, self._PURPOSE)
        added = self._columns(records)
        fields = [(field.name, field.schema) for field in column.schema.fields]
        fields += [(name, one.schema) for name, one in added]
        columns = fields_of(column, self._defaults) + [one for _, one in added]
        made = struct_column(bare(column.schema, fields), columns, len(records))
        return [put(records, self._place, made)]

    def _columns(self, records: Records) -> list[tuple[str, Column]]:
        made: list[tuple[str, Column]] = []
        length = len(records)
        for kind, wanted in self._wanted.items():
            if wanted is None:
                continue
            text = Schema(Type.STRING, wanted.optional)
            match kind:
                case "topic":
                    column = constant(text, records.topic, length)
                case "partition":
                    column = Column(Schema(Type.INT32, wanted.optional), records.partition)
                case "offset":
                    column = Column(Schema(Type.INT64, wanted.optional), records.offset)
                case "timestamp":
                    column = Column(schemas.timestamp(optional=wanted.optional), records.timestamp)
                case _:
                    column = constant(text, self._static, length)
            made.append((wanted.name, column))
        return made

    def _with_maps(self, records: Records, column: Schemaless) -> Schemaless:
        made = [dict(value) for value in maps_of(column, self._PURPOSE)]
        for kind, wanted in self._wanted.items():
            if wanted is None:
                continue
            values: list[Any]
            match kind:
                case "topic":
                    values = [records.topic] * len(made)
                case "partition":
                    values = [None if one is None else Int32(one) for one in records.partition.to_pylist()]
                case "offset":
                    values = records.offset.to_pylist()
                case "timestamp":
                    values = records.timestamp.to_pylist()
                case _:
                    values = [self._static] * len(made)
            for row, value in zip(made, values, strict=True):
                if value is not None:
                    row[wanted.name] = value
        return Schemaless(tuple(made))


class ReplaceField:
    """Fewer fields, or other names for them."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        List("exclude", (), Items(), MEDIUM, "Fields to leave out, `include` or not.", acted_on=True),
        List("include", (), Items(), MEDIUM, "The fields to keep, if any are named.", acted_on=True),
        List("renames", (), ANY, MEDIUM, "Names and new names: `old:new,…`.", acted_on=True),
        DEFAULTS,
    )
    _PURPOSE: Final = "field replacement"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._exclude = frozenset(options.list("exclude"))
        self._include = frozenset(options.list("include"))
        self._defaults = options.flag("replace.null.with.default")
        self._renames: dict[str, str] = {}
        for mapping in options.list("renames"):
            parts = mapping.split(":")
            while parts and not parts[-1]:  # as Java splits
                parts.pop()
            if len(parts) != 2:
                raise invalid("renames", options.list("renames"), f"Invalid rename mapping: {mapping}")
            self._renames[parts[0]] = parts[1]

    def _keeps(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def apply(self, records: Records) -> list[Records]:
        return apart_from_nulls(records, self._place, self._applied)

    def _applied(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        renamed = self._renames.get
        if isinstance(column, Schemaless):
            found: list[dict[str, Any]] = []
            for row, value in enumerate(maps_of(column, self._PURPOSE)):
                made: dict[str, Any] = {}
                for name, item in value.items():
                    if self._keeps(name):
                        if renamed(name, name) in made:  # one of the two would be lost
                            new = renamed(name, name)
                            raise DataError(f"Cannot create field because of field name duplication {new}", row)
                        made[renamed(name, name)] = item
                found.append(made)
            return [put(records, self._place, Schemaless(tuple(found)))]
        struct_of(column, self._PURPOSE)
        kept = [
            (field, child)
            for field, child in zip(column.schema.fields, fields_of(column, self._defaults), strict=True)
            if self._keeps(field.name)
        ]
        schema = bare(column.schema, [(renamed(field.name, field.name), field.schema) for field, _ in kept])
        return [put(records, self._place, struct_column(schema, [child for _, child in kept], len(records)))]


class ValueToKey:
    """A key of some fields of the value."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        List("fields", REQUIRED, Items(may_be_empty=False), HIGH, "The fields.", acted_on=True),
        DEFAULTS,
    )
    _PURPOSE: Final = "copying fields from value to key"

    def __init__(self, options: Values) -> None:
        self._fields = options.list("fields")
        self._defaults = options.flag("replace.null.with.default")

    def apply(self, records: Records) -> list[Records]:
        column = records.value
        no_nulls(column, self._PURPOSE)
        if isinstance(column, Schemaless):
            values = maps_of(column, self._PURPOSE)
            made = tuple({name: value.get(name) for name in self._fields} for value in values)
            return [records.but(key=Schemaless(made))]
        struct_of(column, self._PURPOSE)
        places = {field.name: place for place, field in enumerate(column.schema.fields)}
        for name in self._fields:
            if name not in places:
                raise DataError(f"Field does not exist: {name}")
        children = fields_of(column, self._defaults)
        columns = [children[places[name]] for name in self._fields]
        schema = struct([(name, one.schema) for name, one in zip(self._fields, columns, strict=True)])
        return [records.but(key=struct_column(schema, columns, len(records)))]


class MaskField:
    """Nothing, or the same for all, where there was a value. Unlike in Kafka a tombstone stays one, and a decimal is
    masked with the zeros of its scale."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        List("fields", REQUIRED, Items(may_be_empty=False), HIGH, "The fields.", acted_on=True),
        Text("replacement", None, NotEmpty(), LOW, "For numbers and strings: what is put instead.", acted_on=True),
        DEFAULTS,
    )
    _PURPOSE: Final = "mask fields"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._fields = options.list("fields")
        self._replacement = options.optional_text("replacement")
        self._defaults = options.flag("replace.null.with.default")

    def apply(self, records: Records) -> list[Records]:
        return apart_from_nulls(records, self._place, self._applied)

    def _applied(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            return [put(records, self._place, self._with_maps(column))]
        struct_of(column, self._PURPOSE)
        columns = [
            self._masked(child) if field.name in self._fields else child
            for field, child in zip(column.schema.fields, fields_of(column, self._defaults), strict=True)
        ]
        return [put(records, self._place, struct_column(column.schema, columns, len(records)))]

    def _masked(self, column: Column) -> Column:
        if column.array.null_count == len(column):
            return column
        schema = column.schema
        masked = self._mask(schema.type, java_class(0, schema), scale_of(schema) if schema.logical == DECIMAL else None)
        if not column.array.null_count:
            return constant(schema, masked, len(column))
        one = constant(schema, masked, 1).array
        rows = pc.if_else(column.array.is_valid(), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
        return Column(schema, one.take(rows))

    def _with_maps(self, column: Schemaless) -> Schemaless:
        made = [dict(value) for value in maps_of(column, self._PURPOSE)]
        for row, value in enumerate(made):
            for name in self._fields:
                value[name] = self._masked_value(value.get(name), row)
        return Schemaless(tuple(made))

    def _masked_value(self, value: Any, row: int) -> Any:
        if value is None:
            return None
        if isinstance(value, dict) and self._replacement is None:
            return {}
        kind = _TYPES.get(type(value))
        try:
            masked = self._mask(kind, java_class(value), 0 if isinstance(value, Decimal) else None)
        except DataError as error:
            raise error.at(row) from None
        return type(value)(masked)

    def _mask(self, kind: Type | None, klass: str, scale: int | None) -> Any:
        if self._replacement is None:
            if scale is not None:
                return Decimal(0)
            if kind is None or kind not in _NOTHING or klass == "[B":
                raise DataError(f"Cannot mask value of type: class {klass}")
            return _NOTHING[kind]
        if klass == "java.lang.String":
            return self._replacement
        if scale is None and (kind not in _NUMBERS or klass == "java.util.Date"):
            raise DataError(f"Cannot mask value of type class {klass} with custom replacement.")
        try:
            number = Decimal(self._replacement)
            if not number.is_finite() or number.adjusted() > 1_000:
                raise InvalidOperation
        except InvalidOperation:
            raise DataError(f"Unable to convert {self._replacement} (class java.lang.String) to a number") from None
        return number if scale is not None else _NUMBERS[kind](number)


def _wrapped(bits: int) -> Callable[[Decimal], int]:
    """As Java makes a number of so many bits of any other: the lower bits are kept."""
    return lambda number: ((int(number) + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1)


_NUMBERS: Final[dict[Type | None, Callable[[Decimal], Any]]] = {
    Type.INT8: _wrapped(8),
    Type.INT16: _wrapped(16),
    Type.INT32: _wrapped(32),
    Type.INT64: _wrapped(64),
    Type.FLOAT32: float,
    Type.FLOAT64: float,
}
_NOTHING: Final[dict[Type, Any]] = {
    **dict.fromkeys((Type.INT8, Type.INT16, Type.INT32, Type.INT64), 0),
    Type.FLOAT32: 0.0,
    Type.FLOAT64: 0.0,
    Type.BOOLEAN: False,
    Type.STRING: "",
    Type.ARRAY: [],
    Type.MAP: [],
}
_TYPES: Final[dict[type, Type]] = {
    int: Type.INT64,
    Int8: Type.INT8,
    Int16: Type.INT16,
    Int32: Type.INT32,
    float: Type.FLOAT64,
    Float32: Type.FLOAT32,
    bool: Type.BOOLEAN,
    str: Type.STRING,
    list: Type.ARRAY,
}
