"""Records of a put as rows of a table.

Inserted, every record is a row. Upserted, a put comes to what is left of each key when all its records were written one
after the other: a row, or nothing. A record is the whole row: columns that it has not are null.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.connectors.lakes.columns import LakeTypes, in_columns, lake_array, wider
from ottla.connect.data.columns import Column
from ottla.connect.data.records import Records
from ottla.connect.data.schema import Type
from ottla.connect.errors import ConnectError, DataError

POSITION: Final = "__ottla_position"


class Words(NamedTuple):
    """How a connector's options say it, for messages."""

    upserts: str
    deletes: str
    key_fields: str
    creates: str
    evolves: str


@dataclass(frozen=True, slots=True)
class KeyOf:
    """What the key of a row is: the fields of the record's key that are named, or all."""

    fields: tuple[str, ...]
    words: Words


@dataclass(frozen=True, slots=True)
class Changes:
    """What a put does to a table. Of an insert, `keys` is empty and nothing is gone."""

    rows: Any
    """A table of Arrow's, in the order of the records; None if there are only deletes."""
    gone: Any = None
    """Keys of rows to delete, a table of Arrow's; None if there are none. No key is among `rows` too."""
    keys: tuple[str, ...] = ()


def inserted(batches: Sequence[Records], types: LakeTypes, words: Words) -> Changes:
    """Every record as a row. Raises `ConnectError`, which names the record."""
    return Changes(_in_order([_rows(records, None, types, words) for records in batches]).drop_columns([POSITION]))


def upserted(batches: Sequence[Records], key: KeyOf, deletes: bool, types: LakeTypes) -> Changes:
    """What is left of each key. Raises `ConnectError`, which names the record."""
    written: list[Any] = []
    removed: list[Any] = []
    names: tuple[str, ...] = ()
    for records in batches:
        gone, there = records.split(records.value.is_null())
        if gone is not None:
            if not deletes:
                raise tombstone(gone, key.words)
            found, table = _keys(gone, key, types)
            removed.append(table)
            names = _same_key(names, found, gone)
        if there is not None:
            found, _ = _keys(there, key, types)
            written.append(_rows(there, key, types, key.words))
            names = _same_key(names, found, there)
    rows = _in_order(written) if written else None
    gone_keys = _in_order(removed) if removed else None
    parts = [one.select([*names, POSITION]) for one in (rows, gone_keys) if one is not None]
    last = _in_order(parts).group_by(list(names)).aggregate([(POSITION, "max")]).column(f"{POSITION}_max")
    if rows is not None:
        rows = rows.filter(pc.is_in(rows.column(POSITION), last)).drop_columns([POSITION])
    if gone_keys is not None:
        gone_keys = gone_keys.filter(pc.is_in(gone_keys.column(POSITION), last)).drop_columns([POSITION])
    return Changes(
        rows if rows is not None and rows.num_rows else None,
        gone_keys if gone_keys is not None and gone_keys.num_rows else None,
        names,
    )


def tombstone(records: Records, words: Words) -> ConnectError:
    return ConnectError(
        f"{records.where(0)} has no value: set {words.deletes} to delete its row, or drop "
        "tombstones with the transform Filter and the predicate RecordIsTombstone"
    )


def _same_key(known: tuple[str, ...], found: tuple[str, ...], records: Records) -> tuple[str, ...]:
    if known and known != found:
        raise ConnectError(f"{records.where(0)} has the key {', '.join(found)}, and others have {', '.join(known)}")
    return found


def _rows(records: Records, key: KeyOf | None, types: LakeTypes, words: Words) -> Any:
    value = records.value
    try:
        if not isinstance(value, Column) or value.schema.type is not Type.STRUCT:
            if isinstance(value, Column) or not all(one is None for one in value.values):
                raise DataError(
                    "tables are written from structs: set a converter that has schemas, as JsonConverter with "
                    "schemas.enable=true, or AvroConverter"
                )
            raise tombstone(records, words)
        if value.array.null_count:
            raise tombstone(records.take(pa.array([value.is_null().index(True).as_py()])), words)
        arrays = {} if key is None else dict(_key_arrays(records, key, types))
        for place, field in enumerate(value.schema.fields):
            if field.name not in arrays:
                arrays[field.name] = lake_array(field.name, value.child(place), types)
        if not arrays:
            raise DataError("a value without fields is no row")
    except DataError as error:
        raise _of(records, error) from None
    return _table(arrays, records)


def _keys(records: Records, key: KeyOf, types: LakeTypes) -> tuple[tuple[str, ...], Any]:
    try:
        arrays = dict(_key_arrays(records, key, types))
    except DataError as error:
        raise _of(records, error) from None
    return tuple(arrays), _table(arrays, records)


def _key_arrays(records: Records, key: KeyOf, types: LakeTypes) -> list[tuple[str, Any]]:
    column = records.key
    if not isinstance(column, Column):
        raise DataError(f"{key.words.upserts} needs keys with a schema: set a key.converter that has schemas")
    if column.array.null_count:
        row = column.is_null().index(True).as_py()
        raise DataError(f"{key.words.upserts} needs keys, and this record has none", row)
    if column.schema.type is not Type.STRUCT:
        if len(key.fields) != 1:
            raise DataError(f"keys are no structs: name the one column for them in {key.words.key_fields}")
        named = [(key.fields[0], column)]
    else:
        known = {field.name: place for place, field in enumerate(column.schema.fields)}
        for name in key.fields:
            if name not in known:
                raise DataError(
                    f"{key.words.key_fields} names {name}, and keys have no such field: they have {', '.join(known)}"
                )
        named = [(name, column.child(known[name])) for name in key.fields or known]
    if not named:
        raise DataError("keys have no fields: a row needs a key")
    made: list[tuple[str, Any]] = []
    for name, one in named:
        if one.array.null_count:
            raise DataError(f"the key's field {name} is null", one.array.is_null().index(True).as_py())
        if one.schema.type in (Type.ARRAY, Type.MAP, Type.STRUCT, Type.FLOAT32, Type.FLOAT64):
            raise DataError(
                f"the key's field {name} is {one.schema}, which cannot be compared: see {key.words.key_fields}"
            )
        made.append((name, lake_array(name, one, types)))
    return made


def _table(arrays: dict[str, Any], records: Records) -> Any:
    return pa.table([*arrays.values(), records.position], names=[*arrays, POSITION])


def _in_order(parts: Sequence[Any]) -> Any:
    """Rows of several schemas in the order of their positions, with all columns that any of them has."""
    schema = parts[0].schema
    if any(part.schema != schema for part in parts):
        kinds: dict[str, Any] = {}
        for part in parts:
            for field in part.schema:
                try:
                    known = kinds.get(field.name)
                    kinds[field.name] = field.type if known is None else wider(field.name, known, field.type)
                except DataError as error:
                    raise ConnectError(str(error)) from None
        schema = pa.schema(list(kinds.items()))
        parts = [in_columns(part, schema) for part in parts]
    table = pa.concat_tables(parts)
    return table if len(parts) == 1 else table.take(pc.sort_indices(table.column(POSITION)))


def _of(records: Records, error: DataError) -> ConnectError:
    where = f"records of {records.topic}" if error.row is None else records.where(error.row)
    return ConnectError(f"{where}: {error}")
