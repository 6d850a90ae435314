"""Turns schemas into the plans that the compiled decoder walks."""

from typing import Any

from ottla.wire import layout, schema
from ottla.wire._native import StructPlan
from ottla.wire.message import Decoder, Message


def compile_decoder(message: type[Message], version: int) -> Decoder:
    return _plan(message, message._schema.root, version).decode  # type: ignore[no-any-return]


def _plan(message: type[Message], struct: schema.Struct, version: int) -> Any:
    fields = [_field(message, field, version) for field in struct.fields if field.mandatory_in(version)]
    tagged = [_field(message, field, version) for field in struct.fields if field.tagged_in(version)]
    absent = [field for field in struct.fields if not field.mandatory_in(version)]
    flexible = version in message._schema.flexible
    return StructPlan(_class(message, struct), flexible, fields, tagged, _defaults(message, absent))


def _class(message: type[Message], struct: schema.Struct) -> type:
    return getattr(message, struct.name, message)


def _field(message: type[Message], field: schema.Field, version: int) -> tuple[Any, ...]:
    compact = layout.is_flexible(message._schema, field, version)
    nullable = version in field.nullable
    struct, least_size = None, 0
    if field.struct is not None:
        struct = _plan(message, field.struct, version)
        least_size = layout.least_size(message._schema, field.struct, version) or 1
    return field.attribute, field.type, field.is_array, nullable, compact, field.tag, struct, least_size


def _defaults(message: type[Message], fields: list[schema.Field]) -> list[tuple[str, Any]]:
    return [*((field.attribute, _default(message, field)) for field in fields), ("unknown_tags", ())]


def _default(message: type[Message], field: schema.Field) -> Any:
    if field.struct is None or field.defaults_to_null:
        return field.default
    if field.is_array:
        return list
    inner = field.struct
    return StructPlan(_class(message, inner), False, [], [], _defaults(message, list(inner.fields)))
