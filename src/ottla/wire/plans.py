"""Turns schemas into the plans that the compiled codec walks."""

from functools import cache
from typing import Any

from ottla.wire import layout, schema
from ottla.wire._native import EncodePlan, StructPlan
from ottla.wire.message import Decoder, Encoder, Message


def compile_decoder(message: type[Message], version: int) -> Decoder:
    return decode_plan(message, version).decode


_decode_plans: dict[tuple[type[Message], int], StructPlan] = {}


def decode_plan(message: type[Message], version: int) -> StructPlan:
    plan = _decode_plans.get((message, version))
    if plan is None:
        plan = _decode_plans[message, version] = _plan(message, message._schema.root, version)
    return plan


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


# Encoding


def compile_encoder(message: type[Message], version: int) -> Encoder:
    return encode_plan(message, version).encode


_encode_plans: dict[tuple[type[Message], int], EncodePlan] = {}


def encode_plan(message: type[Message], version: int) -> EncodePlan:
    @cache
    def generated() -> Encoder:
        from ottla.wire import encoding  # For what is unusual: most processes never see it.

        return encoding.compile_encoder(message, version)

    def slow(value: Any, pieces: list[Any], payloads: list[int]) -> None:
        generated()(value, pieces, payloads)

    plan = _encode_plans.get((message, version))
    if plan is None:
        plan = _encode_plans[message, version] = _encoded_struct(message, message._schema.root, version, slow)
    return plan


def _encoded_struct(
    message: type[Message], struct: schema.Struct, version: int, slow: Encoder | None = None
) -> EncodePlan:
    fields = [_encoded_field(message, field, version) for field in struct.fields if field.mandatory_in(version)]
    tagged = [
        (_encoded_field(message, field, version), _unset(message, field))
        for field in sorted(struct.fields, key=lambda field: field.tag)
        if field.tagged_in(version)
    ]
    unset = [
        (field.attribute, _unset(message, field))
        for field in struct.fields
        if version not in field.versions and not field.ignorable
    ]
    return EncodePlan(_class(message, struct), version in message._schema.flexible, fields, tagged, unset, slow)


def _encoded_field(message: type[Message], field: schema.Field, version: int) -> tuple[Any, ...]:
    compact = layout.is_flexible(message._schema, field, version)
    struct = _encoded_struct(message, field.struct, version) if field.struct is not None else None
    return field.attribute, field.type, field.is_array, version in field.nullable, compact, struct, field.tag


def _unset(message: type[Message], field: schema.Field) -> Any:
    """What a field is compared with to see that it has its default."""
    if field.defaults_to_null:
        return None
    if field.is_array:
        return list
    if field.struct is None:
        return field.default
    inner = [(each.attribute, _unset(message, each)) for each in field.struct.fields]
    return EncodePlan(_class(message, field.struct), False, [], [], inner)
