"""Rows to records with the id of a schema. The schema is the driver's; a task asks no registry."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.errors import OttlaError
from ottla.schemas.faults import CannotEncode
from ottla.schemas.registry_port import RegisteredSchema
from ottla.spark.schemas.schema_options import WantedSchemas

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class UnencodableRow(OttlaError, ValueError):
    """A row is not what its schema wants."""


class ValueEncoding(NamedTuple):
    wanted: WantedSchemas
    schema: RegisteredSchema


class _Given:
    """A registry with one schema, for serializers."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self._schema = schema

    def schema_by_id(self, id: int, subject: str | None = None) -> RegisteredSchema:
        return self._schema


def encoded(encoding: ValueEncoding | None, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """The same rows with bytes for values. Raises `UnencodableRow`."""
    if encoding is None:
        yield from batches
        return
    import pyarrow as pa

    serialize = _serializer(encoding)
    leaves_out_nulls = encoding.wanted.kind != "AVRO"
    for batch in batches:
        place = batch.schema.get_field_index("value")
        column = batch.column(place)
        values = []
        for row, value in enumerate(column.to_pylist()):
            try:
                values.append(serialize(None, _plain(value, column.type, leaves_out_nulls)))
            except CannotEncode as problem:
                raise UnencodableRow(
                    f'column "value": row {row} of a batch cannot be written with the schema '
                    f"{encoding.schema.subject or encoding.schema.id}: {problem}"
                ) from None
        yield batch.set_column(place, "value", pa.array(values, pa.binary()))


def _serializer(encoding: ValueEncoding) -> Any:
    from ottla import schemas

    registry: Any = _Given(encoding.schema)
    settings: dict[str, Any] = {
        "use_schema_id": encoding.schema.id,
        "auto_register_schemas": False,
        "subject_name_strategy": _subject,
    }
    if encoding.wanted.kind == "AVRO":
        return schemas.Avro(registry, **settings).serialize
    if encoding.wanted.kind == "JSON":
        return schemas.Json(registry, **settings).serialize
    message = encoding.wanted.messages[0] if encoding.wanted.messages else None
    return schemas.Protobuf(registry, message=message, **settings).serialize


def _subject(topic: str | None, is_key: bool, record: str | None) -> str:
    return ""


def _plain(value: Any, type_: Any, leaves_out_nulls: bool) -> Any:
    """A value as serializers take it: maps are dicts; members of a struct that are null are left out where the format
    has other words for what is missing.
    """
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_struct(type_):
        return {
            field.name: _plain(one, field.type, leaves_out_nulls)
            for field in type_
            if (one := value[field.name]) is not None or not leaves_out_nulls
        }
    if pa.types.is_map(type_):
        return {key: _plain(one, type_.item_type, leaves_out_nulls) for key, one in value}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [_plain(one, type_.value_type, leaves_out_nulls) for one in value]
    return value
