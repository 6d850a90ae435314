"""Debezium's transforms of change events: ExtractNewRecordState and ByLogicalTableRouter.

A change event is an envelope: `before` and `after` of a row, `op`, `source`, times, `transaction`. It is known by its
schema's name, which ends with `.Envelope`; other records pass untouched. Whole columns, as everywhere: what is made of
a record hangs on which of `before` and `after` it has, so a batch is split by that, and by topic where topics differ.
"""

from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.bounds import NotEmpty, OneOf
from ottla.config.parse import Values
from ottla.config.setting import ANY, LOW, MEDIUM, REQUIRED, Flag, Int, List, Setting, Text
from ottla.connect.data.columns import AnyColumn, Column, nothing, struct_column
from ottla.connect.data.records import Header, Records
from ottla.connect.data.rows import constant, field_value, java_class, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.java_text import trimmed
from ottla.connect.options import InvalidOption, invalid
from ottla.connect.transforms.java_patterns import option, replaced_first
from ottla.connect.transforms.transform import Place, at, bare, in_parts, put

DEBEZIUM: Final = "io.debezium.transforms."
_OF_THE_TRANSACTION: Final = ("id", "data_collection_order", "total_order")
_OF_THE_ENVELOPE: Final = ("op", "ts_ms", "ts_us", "ts_ns")


def is_envelope(column: AnyColumn) -> bool:
    schema = column.schema
    return schema is not None and schema.name is not None and schema.name.endswith(".Envelope")


def place_of(schema: Schema, name: str) -> int | None:
    return next((place for place, field in enumerate(schema.fields) if field.name == name), None)


def child(column: Column, name: str) -> Column:
    """A field of structs, without defaults. Raises `DataError` if there is none of that name."""
    place = place_of(column.schema, name)
    if place is None:
        raise DataError(f"{name} is not a valid field name", 0)
    return column.child(place)


def texts_of(column: Column, name: str) -> list[str | None]:
    """A field of texts, with its default."""
    place = place_of(column.schema, name)
    if place is None:
        raise DataError(f"{name} is not a valid field name", 0)
    field = field_value(column, place)
    if field.schema.type is not Type.STRING:
        raise DataError(f"Field '{name}' is not of type STRING", 0)
    return rows_of(field)


class _Reference(NamedTuple):
    """A field of an envelope that is added to values or headers."""

    struct: str | None
    field: str
    new_name: str

    def find(self, envelope: Column) -> Column | None:
        """The column, with the schema that it has outside of the envelope: optional, without a default."""
        parent: Column | None = envelope
        if self.struct is not None:
            place = place_of(envelope.schema, self.struct)
            parent = None if place is None else envelope.child(place)
        if parent is None or parent.schema.type is not Type.STRUCT or place_of(parent.schema, self.field) is None:
            parent = envelope
        place = place_of(parent.schema, self.field)
        if place is None:
            return None
        found = parent.child(place)
        return Column(found.schema.but(optional=True, default=None), found.array)


def _references(name: str, prefix: str, texts: tuple[str, ...]) -> list[_Reference]:
    made: list[_Reference] = []
    for text in texts:
        path, *names = text.strip().split(":")
        steps = path.split(".")
        if len(names) > 1 or not 1 <= len(steps) <= 2 or not all(steps):
            raise invalid(name, texts, f"Unexpected field name: {text}")
        field = steps[-1]
        if len(steps) == 2:
            parent: str | None = steps[0]
        elif field in _OF_THE_ENVELOPE:
            parent = None
        elif field == "updateDescription":
            parent = field
        else:
            parent = "transaction" if field in _OF_THE_TRANSACTION else "source"
        new_name = names[0] if names else "_".join(steps)
        made.append(_Reference(parent, field, prefix + new_name))
    return made


class ExtractNewRecordState:
    """The row after a change instead of the whole envelope."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text(
            "delete.tombstone.handling.mode",
            "tombstone",
            OneOf(("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"), any_case=True),
            MEDIUM,
            "What becomes of a delete and of the tombstone behind it: nothing (`drop`), one record without a value "
            "(`tombstone`; without a schema too with `delete-to-tombstone`), or the row before with `__deleted` "
            "(`rewrite`), and the tombstone (`rewrite-with-tombstone`).",
            acted_on=True,
        ),
        Text("route.by.field", "", ANY, LOW, "The field whose value is the new topic.", acted_on=True),
        Text("add.fields.prefix", "__", ANY, LOW, "What names of added fields begin with.", acted_on=True),
        List(
            "add.fields",
            (),
            ANY,
            LOW,
            "Fields of the envelope to add: `op`, `lsn` (of the source), `source.ts_ms`, or by a new name, `op:kind`.",
            acted_on=True,
        ),
        Text("add.headers.prefix", "__", ANY, LOW, "What names of added headers begin with.", acted_on=True),
        List("add.headers", (), ANY, LOW, "The same, for headers.", acted_on=True),
        Flag(
            "replace.null.with.default",
            True,
            ANY,
            LOW,
            "Whether a field's default is put where it has no value, when a record is rewritten.",
            acted_on=True,
        ),
        Text(
            "drop.fields.header.name",
            None,
            ANY,
            LOW,
            "A header with names of fields to leave out, an array of strings.",
            acted_on=True,
        ),
        Flag("drop.fields.from.key", False, ANY, LOW, "Whether these go from the key too.", acted_on=True),
        Flag("drop.fields.keep.schema.compatible", True, ANY, LOW, "Whether only optional fields go.", acted_on=True),
    )

    def __init__(self, options: Values) -> None:
        self._mode = options.text("delete.tombstone.handling.mode").lower()
        self._route = options.text("route.by.field")
        self._fields = _references("add.fields", options.text("add.fields.prefix"), options.list("add.fields"))
        self._headers = _references("add.headers", options.text("add.headers.prefix"), options.list("add.headers"))
        self._defaults = options.flag("replace.null.with.default")
        self._drop_header = (options.optional_text("drop.fields.header.name") or "").strip()
        self._drops_from_key = options.flag("drop.fields.from.key")
        self._only_optional = options.flag("drop.fields.keep.schema.compatible")

    def apply(self, records: Records) -> list[Records]:
        missing = records.value.is_null().to_pylist()
        return in_parts(records, ["tombstone" if gone else "event" for gone in missing], self._applied)

    def _applied(self, kind: str, records: Records) -> list[Records]:
        if kind == "tombstone":
            return self._tombstones(records) if self._mode == "rewrite-with-tombstone" else []
        envelope = records.value
        if not is_envelope(envelope):
            return [records]
        assert isinstance(envelope, Column)
        for name in ("after", "before"):
            if place_of(envelope.schema, name) is None:
                raise DataError(f"Unknown field: {name}", 0)
        headers = [Header(one.new_name, found) for one in self._headers if (found := one.find(envelope)) is not None]
        records = records.but(headers=records.headers + tuple(headers))
        after, before = child(envelope, "after").is_null().to_pylist(), child(envelope, "before").is_null().to_pylist()
        kinds = [
            "change" if not no_after else None if no_before else "delete"  # a truncate has neither, and is dropped
            for no_after, no_before in zip(after, before, strict=True)
        ]
        return in_parts(records, kinds, self._event)

    def _tombstones(self, records: Records) -> list[Records]:
        deleted = [
            Header(one.new_name, constant(Schema(Type.STRING), "d", len(records)))
            for one in self._headers
            if one.field == "op"
        ]
        return [records.but(headers=records.headers + tuple(deleted))]

    def _event(self, kind: str, records: Records) -> list[Records]:
        envelope = records.value
        assert isinstance(envelope, Column)
        if kind == "change":
            value = child(envelope, "after")
            if value.schema.type is not Type.STRUCT:
                raise DataError(
                    f"Only Struct objects supported for [source field insertion], found: {java_class(0, value.schema)}",
                    0,
                )
            topics = texts_of(value, self._route) if self._route else None
            rewritten = self._rewritten(value, "false") if self._mode.startswith("rewrite") else value
            made = records.but(value=self._with_fields(rewritten, envelope))
            return [done for batch in self._routed(made, topics) for done in self._without_dropped(batch)]
        if self._mode == "drop":
            return []
        topics = texts_of(child(envelope, "before"), self._route) if self._route else None
        if self._mode == "delete-to-tombstone":
            gone: AnyColumn = nothing(len(records))
        elif self._mode == "tombstone":
            gone = child(envelope, "after")
        else:
            return self._rewritten_deletes(records, envelope, topics)
        made = records.but(value=gone)
        return [done for batch in self._routed(made, topics) for done in self._without_dropped(batch)]

    def _rewritten_deletes(self, records: Records, envelope: Column, topics: list[str | None] | None) -> list[Records]:
        """Fields are left out before others are added: an added field stays."""
        rewritten = self._rewritten(child(envelope, "before"), "true")
        added = [Header(one.new_name, found) for one in self._fields if (found := one.find(envelope)) is not None]
        own = len(records.headers)
        # What is added later goes along as headers, so that it is split as the records are.
        made = records.but(value=rewritten, headers=records.headers + tuple(added))
        done = [one for batch in self._routed(made, topics) for one in self._without_dropped(batch)]
        return [one.but(value=_with_headers(one, own), headers=one.headers[:own]) for one in done]

    def _rewritten(self, value: Column, deleted: str) -> Column:
        if value.schema.type is not Type.STRUCT:
            return value
        places = range(len(value.schema.fields))
        columns = [field_value(value, place) if self._defaults else value.child(place) for place in places]
        fields = [(field.name, field.schema) for field in value.schema.fields]
        mark = constant(Schema(Type.STRING, True), deleted, len(value))
        schema = bare(value.schema, [*fields, ("__deleted", mark.schema)])
        return struct_column(schema, [*columns, mark], len(value))

    def _with_fields(self, value: Column, envelope: Column) -> Column:
        return _joined(
            value, [(one.new_name, found) for one in self._fields if (found := one.find(envelope)) is not None]
        )

    def _routed(self, records: Records, topics: list[str | None] | None) -> list[Records]:
        if topics is None:
            return [records]
        names = [topic if topic is not None and trimmed(topic) else records.topic for topic in topics]
        return [batch.but(topic=topic) for topic, batch in records.by(pa.array(names, pa.string()))]

    def _without_dropped(self, records: Records) -> list[Records]:
        header = next((one for one in records.headers if one.key == self._drop_header), None)
        if not self._drop_header or header is None:
            return [records]
        found = header.column
        values: list[Any] = rows_of(found) if isinstance(found, Column) else list(found.values)
        present = [True] * len(records) if header.present is None else header.present.to_pylist()
        dropped: list[tuple[str, ...]] = []
        for row, (value, is_there) in enumerate(zip(values, present, strict=True)):
            if is_there and value is not None and not isinstance(value, list):
                raise DataError(f"the header {self._drop_header} is no array of names", row)
            dropped.append(tuple(value) if is_there and value else ())
        return in_parts(records, dropped, self._drop)

    def _drop(self, names: tuple[str, ...], records: Records) -> list[Records]:
        for place in ("key", "value") if self._drops_from_key else ("value",):
            records = self._dropped_from(records, place, names)
        return [records]

    def _dropped_from(self, records: Records, place: Place, names: tuple[str, ...]) -> Records:
        column = at(records, place)
        if not isinstance(column, Column) or column.schema.type is not Type.STRUCT or not names:
            return records
        fields = column.schema.fields
        gone = {
            field.name for field in fields if field.name in names and (field.schema.optional or not self._only_optional)
        }
        if (self._only_optional and not gone) or column.array.null_count == len(column):
            return records
        kept = [(place_, field) for place_, field in enumerate(fields) if field.name not in gone]
        schema = bare(column.schema, [(field.name, field.schema) for _, field in kept])
        columns = [field_value(column, place_) for place_, _ in kept]
        return put(records, place, struct_column(schema, columns, len(column)))


def _with_headers(records: Records, first: int) -> Column:
    """The value with the headers from there on as fields."""
    assert isinstance(records.value, Column)
    added = [(one.key, one.column) for one in records.headers[first:]]
    return _joined(records.value, [(name, column) for name, column in added if isinstance(column, Column)])


def _joined(value: Column, added: list[tuple[str, Column]]) -> Column:
    """A struct with more fields, and neither optional nor with a default any more."""
    fields = [(field.name, field.schema) for field in value.schema.fields]
    schema = bare(value.schema, [*fields, *((name, one.schema) for name, one in added)])
    columns = [value.child(place) for place in range(len(fields))]
    return struct_column(schema, [*columns, *(one for _, one in added)], len(value))


class ByLogicalTableRouter:
    """Changes of several tables into one topic, with the table in the key."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text(
            "topic.regex",
            REQUIRED,
            ANY,
            LOW,
            "The regular expression, which the whole topic must match.",
            acted_on=True,
        ),
        Text(
            "topic.replacement",
            REQUIRED,
            NotEmpty(),
            LOW,
            "The new topic; `$1` is what a group matched.",
            acted_on=True,
        ),
        Flag("key.enforce.uniqueness", True, ANY, LOW, "Whether keys get a field that names the table.", acted_on=True),
        Text("key.field.name", "__dbz__physicalTableIdentifier", ANY, LOW, "The name of that field.", acted_on=True),
        Text(
            "key.field.regex", None, ANY, LOW, "What the topic must match for `key.field.replacement`.", acted_on=True
        ),
        Text("key.field.replacement", None, ANY, LOW, "What that field has; the topic by default.", acted_on=True),
        Text(
            "schema.name.adjustment.mode",
            "none",
            OneOf(("none", "avro", "avro_unicode"), any_case=True),
            LOW,
            "What becomes of characters of schemas' names that Avro does not allow: `_`, or `_u` and their number.",
            acted_on=True,
        ),
        Int("logical.table.cache.size", 16, ANY, LOW, "Accepted; nothing is kept between batches.", acted_on=True),
    )
    _PURPOSE: Final = "Updating schema"

    def __init__(self, options: Values) -> None:
        self._regex = option("topic.regex", options.text("topic.regex"))
        self._replacement = options.text("topic.replacement")
        self._unique = options.flag("key.enforce.uniqueness")
        self._field = options.text("key.field.name")
        pattern = (options.optional_text("key.field.regex") or "").strip()
        self._key_regex = option("key.field.regex", pattern) if pattern else None
        self._key_replacement = options.optional_text("key.field.replacement") or ""
        if pattern and not self._key_replacement.strip():
            raise InvalidOption("key.field.replacement must be non-empty if key.field.regex is set.")
        self._adjustment = options.text("schema.name.adjustment.mode").lower()

    def apply(self, records: Records) -> list[Records]:
        if self._regex.fullmatch(records.topic) is None:
            return [records]
        topic = self._replaced(self._regex, records.topic, self._replacement)
        if not topic:
            return [records]
        keys, values = records.key.is_null().to_pylist(), records.value.is_null().to_pylist()
        kinds = list(zip(keys, values, strict=True))
        return in_parts(records, kinds, lambda kind, part: [self._moved(part, topic, *kind)])

    def _replaced(self, regex: Any, topic: str, replacement: str) -> str:
        try:
            return replaced_first(regex, topic, replacement)
        except ValueError as error:
            raise DataError(f"the replacement {replacement}: {error}") from None

    def _moved(self, records: Records, topic: str, no_key: bool, no_value: bool) -> Records:
        key: AnyColumn = nothing(len(records)) if no_key else self._key(records, topic)
        value = records.value
        if not no_value and is_envelope(value):
            assert isinstance(value, Column)
            value = self._envelope(value, topic)
        return records.but(topic=topic, key=key, value=value)

    def _key(self, records: Records, topic: str) -> Column:
        column = records.key
        if not isinstance(column, Column) or column.schema.type is not Type.STRUCT:
            found = java_class(0, column.schema) if isinstance(column, Column) else java_class(column.values[0])
            raise DataError(f"Only Struct objects supported for [{self._PURPOSE}], found: {found}", 0)
        fields = [(field.name, field.schema) for field in column.schema.fields]
        columns = [column.child(place) for place in range(len(fields))]
        if self._unique:
            table = records.topic
            if self._key_regex is not None and self._key_regex.fullmatch(table):
                table = self._replaced(self._key_regex, table, self._key_replacement)
            columns.append(constant(Schema(Type.STRING), table, len(column)))
            fields.append((self._field, Schema(Type.STRING)))
        return struct_column(self._renamed(column.schema, fields, f"{topic}.Key"), columns, len(column))

    def _envelope(self, column: Column, topic: str) -> Column:
        place = place_of(column.schema, "before")
        if place is None:
            raise DataError("Unknown field: before", 0)
        row = column.schema.fields[place].schema
        new_row = self._renamed(row, [(field.name, field.schema) for field in row.fields], f"{topic}.Value")
        fields: list[tuple[str, Schema]] = []
        columns: list[Column] = []
        for number, field in enumerate(column.schema.fields):
            if field.name in ("before", "after"):
                columns.append(_fitted(column.child(number), new_row, field.name))
                fields.append((field.name, new_row))
            else:
                columns.append(field_value(column, number))
                fields.append((field.name, field.schema))
        return struct_column(self._renamed(column.schema, fields, f"{topic}.Envelope"), columns, len(column))

    def _renamed(self, schema: Schema, fields: list[tuple[str, Schema]], name: str) -> Schema:
        return struct(
            fields,
            name=adjusted(name, self._adjustment),
            version=schema.version,
            optional=schema.optional,
            doc=schema.doc,
            parameters=schema.parameters,
        )


def _fitted(column: Column, schema: Schema, name: str) -> Column:
    """`before` and `after` have one schema from here on."""
    if [field.name for field in column.schema.fields] != [field.name for field in schema.fields]:
        raise DataError(f"the fields of before and {name} differ", 0)
    try:
        return Column(schema, column.array)
    except AssertionError:
        raise DataError(f"the types of before and {name} differ", 0) from None


def adjusted(name: str, mode: str) -> str:
    """A schema's name as Avro can have it."""
    if mode == "none" or not name:
        return name
    made: list[str] = []
    for place, letter in enumerate(name):
        is_letter = (letter.isascii() and letter.isalpha()) or (letter == "_" and mode == "avro")
        is_digit = letter.isascii() and letter.isdigit()
        if is_letter or (place and (is_digit or letter == ".")):
            made.append(letter)
        elif mode == "avro":
            made.append("_" + letter if is_digit else "_")
        else:
            number = f"{ord(letter):x}"
            made.append(f"_u00{number}" if len(number) <= 2 else f"_u{number}")
    return "".join(made)
