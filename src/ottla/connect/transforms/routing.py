"""Transforms of topics and headers, and the one that drops records."""

from typing import Any, Final

from ottla.config.bounds import Items, OneOf
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, REQUIRED, List, Setting, Text
from ottla.connect.data.columns import AnyColumn, Schemaless, nothing, struct_column
from ottla.connect.data.records import Header, Records
from ottla.connect.data.rows import constant
from ottla.connect.errors import DataError
from ottla.connect.literals import parse_literal
from ottla.connect.options import InvalidOption, invalid
from ottla.connect.transforms.fields import DEFAULTS
from ottla.connect.transforms.java_patterns import option, replaced_first
from ottla.connect.transforms.transform import Place, at, bare, fields_of, maps_of, no_nulls, put, struct_of


class DropHeaders:
    """Headers of these names go."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        List("headers", REQUIRED, Items(may_be_empty=False), HIGH, "The headers to drop.", acted_on=True),
    )

    def __init__(self, options: Values) -> None:
        self._dropped = frozenset(options.list("headers"))

    def apply(self, records: Records) -> list[Records]:
        return [records.but(headers=tuple(one for one in records.headers if one.key not in self._dropped))]


class Filter:
    """Drops every record; a predicate says which come here."""

    OPTIONS: Final[tuple[Setting, ...]] = ()

    def __init__(self, options: Values) -> None:
        pass

    def apply(self, records: Records) -> list[Records]:
        return []


class HeaderFrom:
    """Headers from fields, which stay (`copy`) or go (`move`)."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        List("fields", REQUIRED, ANY, HIGH, "The fields.", acted_on=True),
        List("headers", REQUIRED, ANY, HIGH, "The names of their headers, in the same order.", acted_on=True),
        Text("operation", REQUIRED, OneOf(("move", "copy")), HIGH, "Whether the fields go or stay.", acted_on=True),
        DEFAULTS,
    )

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._fields = options.list("fields")
        self._headers = options.list("headers")
        for name in ("fields", "headers"):
            if not options.list(name):
                raise invalid(name, (), "Empty list")
        if len(self._fields) != len(self._headers):
            raise InvalidOption("'fields' config must have the same number of elements as 'headers' config.")
        self._moves = options.text("operation") == "move"
        self._purpose = f"header {options.text('operation')}"
        self._defaults = options.flag("replace.null.with.default")

    def apply(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        no_nulls(column, self._purpose)
        found: list[AnyColumn] = []
        rest: AnyColumn
        if isinstance(column, Schemaless):
            values = maps_of(column, self._purpose)
            found += [Schemaless(tuple(value.get(name) for value in values)) for name in self._fields]
            rest = Schemaless(tuple(self._without(value) for value in values)) if self._moves else column
        else:
            struct_of(column, self._purpose)
            children = fields_of(column, self._defaults)
            places = {field.name: place for place, field in enumerate(column.schema.fields)}
            for name in self._fields:
                if name not in places:
                    raise DataError(f"Field does not exist: {name}")
            found += [children[places[name]] for name in self._fields]
            rest = column
            if self._moves:
                kept = [field for field in column.schema.fields if field.name not in self._fields]
                schema = bare(column.schema, [(field.name, field.schema) for field in kept])
                rest = struct_column(schema, [children[places[field.name]] for field in kept], len(records))
        headers = tuple(Header(name, one) for name, one in zip(self._headers, found, strict=True))
        return [put(records, self._place, rest).but(headers=records.headers + headers)]

    def _without(self, value: dict[str, Any]) -> dict[str, Any]:
        return {name: item for name, item in value.items() if name not in self._fields}


class InsertHeader:
    """One more header, the same for all records."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("header", REQUIRED, ANY, HIGH, "The name of the header.", acted_on=True),
        Text(
            "value.literal",
            REQUIRED,
            ANY,
            HIGH,
            "Its value, whose type is taken from how it is written: a number, a date, an array, a text …",
            acted_on=True,
        ),
    )

    def __init__(self, options: Values) -> None:
        self._header = options.text("header")
        self._literal = parse_literal(options.text("value.literal"))

    def apply(self, records: Records) -> list[Records]:
        schema, value = self._literal
        column = nothing(len(records)) if schema is None else constant(schema, value, len(records))
        return [records.but(headers=(*records.headers, Header(self._header, column)))]


class RegexRouter:
    """Another topic, if the whole name matches."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("regex", REQUIRED, ANY, HIGH, "The regular expression, which the whole topic must match.", acted_on=True),
        Text("replacement", REQUIRED, ANY, HIGH, "The new topic; `$1` is what a group matched.", acted_on=True),
    )

    def __init__(self, options: Values) -> None:
        self._regex = option("regex", options.text("regex"))
        self._replacement = options.text("replacement")

    def apply(self, records: Records) -> list[Records]:
        if self._regex.fullmatch(records.topic) is None:
            return [records]
        try:
            return [records.but(topic=replaced_first(self._regex, records.topic, self._replacement))]
        except ValueError as error:
            raise DataError(f"the replacement {self._replacement}: {error}") from None
