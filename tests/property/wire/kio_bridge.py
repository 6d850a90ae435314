"""Finds kio's class for a message and version, and builds its object from ours, field by field in wire order."""

from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from io import BytesIO
from types import NoneType, UnionType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.readers import tz_aware_from_i64
from kio.static.primitive import i32Timedelta, i64Timedelta

from ottla.wire.message import Message, WireStruct

KIND = {"request": "request", "response": "response", "header": "header", "data": "data"}


def kio_class(message: type[Message], version: int) -> type | None:
    """None when kio does not have that message or version."""
    kind = message._schema.kind
    if kind not in ("request", "response", "header", "data"):
        return None
    name = message.__name__
    stem = name.removesuffix(kind.title()) if kind in ("request", "response") else name
    module = "".join("_" + letter.lower() if letter.isupper() else letter for letter in stem).lstrip("_")
    try:
        found: type = getattr(import_module(f"kio.schema.{module}.v{version}.{kind}"), name)
    except ModuleNotFoundError:
        return None
    return found


def to_kio(value: WireStruct, target: type, version: int) -> Any:
    """kio's object with the content of ours; both list the fields of a version in the order of the schema."""
    ours = [field for field in value._struct.fields if version in field.versions]
    theirs = fields(target)
    assert len(ours) == len(theirs), f"{target.__name__}: {[f.name for f in ours]} and {[f.name for f in theirs]}"
    return target(
        **{
            their.name: convert(getattr(value, our.attribute), their.type, their.metadata.get("kafka_type"), version)
            for our, their in zip(ours, theirs, strict=True)
        }
    )


def convert(value: Any, kio_type: Any, kafka_type: str | None, version: int) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        (element,) = {argument for argument in get_args(without_null(kio_type)) if argument is not ...}
        return tuple(convert(item, element, kafka_type, version) for item in value)
    if isinstance(value, WireStruct):
        return to_kio(value, without_null(kio_type), version)
    match kafka_type:
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32":
            return i32Timedelta.parse(timedelta(milliseconds=value))
        case "timedelta_i64":
            return i64Timedelta.parse(timedelta(milliseconds=value))
        case "datetime_i64":
            return tz_aware_from_i64(value)
        case "uuid":
            return UUID(bytes=value) if any(value) else None
    return value


def without_null(kio_type: Any) -> Any:
    if get_origin(kio_type) is UnionType:
        (kio_type,) = {argument for argument in get_args(kio_type) if argument is not NoneType}
    return kio_type


def kio_encode(value: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(type(value))(buffer, value)
    return buffer.getvalue()


def kio_decode(target: type, data: bytes) -> Any:
    value, size = entity_reader(target)(data, 0)
    assert size == len(data)
    return value
