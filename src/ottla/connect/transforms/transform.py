"""What a transform is: records in, records out, a batch at a time. Many batches may come of one.

Most of Kafka's transforms are for the key or for the value of a record, two classes of one kind (`…$Key`, `…$Value`).
Such a transform here says what it does with a column that has a schema and with one that has none; null stays what it
was, with the schema it had, unless the transform says otherwise.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Literal, Protocol, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.data.columns import AnyColumn, Column, Schemaless
from ottla.connect.data.records import Records
from ottla.connect.data.rows import field_value, java_class
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError

Place = Literal["key", "value"]
Part = TypeVar("Part", bound=Hashable)


class Transform(Protocol):
    def apply(self, records: Records) -> list[Records]:
        """Raises `DataError`, with the row if it is known."""


class Predicate(Protocol):
    def holds(self, records: Records) -> Any:
        """For which records it holds, as an array of booleans."""


def at(records: Records, place: Place) -> AnyColumn:
    return records.key if place == "key" else records.value


def put(records: Records, place: Place, column: AnyColumn) -> Records:
    return records.but(key=column) if place == "key" else records.but(value=column)


def apart_from_nulls(records: Records, place: Place, apply: Callable[[Records], list[Records]]) -> list[Records]:
    """What `apply` makes of the records that have a key or value there; the others stay as they are."""
    missing = at(records, place).is_null()
    gone, present = records.split(missing)
    made = [] if gone is None else [gone]
    if present is None:
        return made
    try:
        return made + apply(present)
    except DataError as error:
        raise _in_the_whole(error, missing, gone is None) from None


def _in_the_whole(error: DataError, missing: Any, is_whole: bool) -> DataError:
    """The row of an error counts among those that are present."""
    if error.row is None or is_whole:
        return error
    rows = [row for row, is_missing in enumerate(missing.to_pylist()) if not is_missing]
    return DataError(str(error), rows[error.row])


def in_parts(
    records: Records, keys: Sequence[Part | None], apply: Callable[[Part, Records], list[Records]]
) -> list[Records]:
    """What `apply` makes of the records of each key. A key that is None drops its records."""
    rows: dict[Part, list[int]] = {}
    for row, key in enumerate(keys):
        if key is not None:
            rows.setdefault(key, []).append(row)
    made: list[Records] = []
    for key, chosen in rows.items():
        part = records if len(chosen) == len(records) else records.take(pa.array(chosen, pa.int64()))
        try:
            made += apply(key, part)
        except DataError as error:
            if error.row is None:
                raise
            raise DataError(str(error), chosen[error.row]) from None
    return made


def struct_of(column: Column, purpose: str) -> Column:
    """The column, if it is of structs. Raises `DataError` for the first row that is none."""
    if column.schema.type is not Type.STRUCT:
        rows = column.array.is_valid()
        row = rows.index(True).as_py()
        if row >= 0:
            raise DataError(
                f"Only Struct objects supported for [{purpose}], found: {java_class(0, column.schema)}", row
            )
    return column


def no_nulls(column: AnyColumn, purpose: str) -> None:
    """Raises `DataError` for the first row that is null."""
    row = column.is_null().index(True).as_py()
    if row >= 0:
        kind = (
            "Struct objects supported for"
            if isinstance(column, Column)
            else "Map objects supported in absence of schema for"
        )
        raise DataError(f"Only {kind} [{purpose}], found: null", row)


def maps_of(column: Schemaless, purpose: str) -> list[dict[str, Any]]:
    """The rows, all of which are maps. Raises `DataError` for the first that is none."""
    for row, value in enumerate(column.values):
        if not isinstance(value, dict):
            found = java_class(value)
            raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {found}", row)
    return list(column.values)


def fields_of(column: Column, defaults: bool) -> list[Column]:
    """The fields of a struct, with their defaults where there is no value, if that is wanted."""
    places = range(len(column.schema.fields))
    return [field_value(column, place) if defaults else column.child(place) for place in places]


def bare(schema: Schema, fields: list[tuple[str, Schema]]) -> Schema:
    """A struct of these fields with the words of another, as Kafka copies them: neither optional nor with a default."""
    return struct(fields, name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters)


PLACES: Final[tuple[Place, ...]] = ("key", "value")
