"""Transforms of schemas: Flatten, SetSchemaMetadata."""

from typing import Any, Final

from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, MEDIUM, Int, Setting, Text
from ottla.connect.data.columns import Column, Schemaless, struct_column
from ottla.connect.data.records import Records
from ottla.connect.data.rows import field_value, java_class, type_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from ottla.connect.transforms.fields import DEFAULTS
from ottla.connect.transforms.transform import Place, apart_from_nulls, at, bare, fields_of, maps_of, put, struct_of


class Flatten:
    """The fields of structs within the struct, under names that say the way to them."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("delimiter", ".", ANY, MEDIUM, "What stands between the names.", acted_on=True),
    )
    _PURPOSE: Final = "flattening"

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._delimiter = options.text("delimiter")

    def apply(self, records: Records) -> list[Records]:
        return apart_from_nulls(records, self._place, self._applied)

    def _applied(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            made: list[dict[str, Any]] = []
            for row, value in enumerate(maps_of(column, self._PURPOSE)):
                flat: dict[str, Any] = {}
                try:
                    self._flatten_map(value, "", flat)
                except DataError as error:
                    raise error.at(row) from None
                except RecursionError:
                    raise DataError("the value is nested too deep", row) from None
                made.append(flat)
            return [put(records, self._place, Schemaless(tuple(made)))]
        struct_of(column, self._PURPOSE)
        found: list[tuple[str, Schema, Column]] = []
        self._flatten(column, "", column.schema.optional, column.schema.default, found)
        schema = bare(column.schema, [(name, schema) for name, schema, _ in found])
        columns = [Column(schema, child.array) for _, schema, child in found]
        return [put(records, self._place, struct_column(schema, columns, len(records)))]

    def _name(self, before: str, name: str) -> str:
        return f"{before}{self._delimiter}{name}" if before else name

    def _flatten(
        self, column: Column, before: str, optional: bool, default: Any, found: list[tuple[str, Schema, Column]]
    ) -> None:
        for place, field in enumerate(column.schema.fields):
            name = self._name(before, field.name)
            may_be_null = optional or field.schema.optional
            of_field = field.schema.default
            if of_field is None and default is not None:
                of_field = default.get(field.name)
            child = column.child(place)
            if field.schema.type is Type.STRUCT:
                self._flatten(child, name, may_be_null, of_field, found)
            elif field.schema.type is Type.MAP:
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            else:
                found.append(
                    (name, field.schema.but(optional=may_be_null, default=of_field), field_value(column, place))
                )

    def _flatten_map(self, value: dict[str, Any], before: str, flat: dict[str, Any]) -> None:
        for key, item in value.items():
            name = self._name(before, key)
            if isinstance(item, dict):
                self._flatten_map(item, name, flat)
            elif item is not None and type_of(item) is None:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(item)} which is not "
                    "supported by Connect's data API"
                )
            else:
                flat[name] = item


class SetSchemaMetadata:
    """Another name or version for the schema."""

    OPTIONS: Final[tuple[Setting, ...]] = (
        Text("schema.name", None, ANY, HIGH, "The name.", acted_on=True),
        Int("schema.version", None, ANY, HIGH, "The version.", acted_on=True),
        DEFAULTS,
    )

    def __init__(self, options: Values, place: Place) -> None:
        self._place: Place = place
        self._name = options.optional_text("schema.name")
        version = options["schema.version"]
        self._version = version if isinstance(version, int) else None
        self._defaults = options.flag("replace.null.with.default")
        if self._name is None and self._version is None:
            raise InvalidOption("Neither schema name nor version configured")

    def apply(self, records: Records) -> list[Records]:
        column = at(records, self._place)
        if isinstance(column, Schemaless):
            row = column.is_null().index(False).as_py()
            if row >= 0:
                raise DataError("Schema required for [updating schema metadata]", row)
            return [records]
        schema = column.schema
        made = schema.but(
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )
        if schema.type is Type.STRUCT:
            children = fields_of(column, self._defaults)
            return [put(records, self._place, struct_column(made, children, len(records), column.is_null()))]
        return [put(records, self._place, Column(made, column.array))]
