"""Finds the field that made an encoder fail.

Encoders do not check values; `struct` and friends refuse what cannot be encoded, without saying where it was. This
walks the message a second time, slowly, and names the place: `topics[3].partitions[0].leader_id`.
"""

from collections.abc import Iterator
from typing import Any

from ottla.wire import schema
from ottla.wire.faults import EncodeError
from ottla.wire.reading import MAX_STRING_BYTES

_BOUNDS = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}


def encode_error(message: Any, version: int, cause: Exception) -> EncodeError:
    """The error to raise for a message whose encoder failed because of `cause`."""
    name = type(message).__name__
    for field, reason in _complaints(message, message._schema, version, ""):
        return EncodeError(name, version, field, reason)
    return EncodeError(name, version, "(unknown field)", str(cause))


def _complaints(value: Any, message: schema.Message, version: int, path: str) -> Iterator[tuple[str, str]]:
    blank = type(value)()
    if value.unknown_tags and version not in message.flexible:
        yield f"{path}unknown_tags", "this version has no tagged fields"
    for field in value._struct.fields:
        place = path + field.attribute
        given = getattr(value, field.attribute)
        if version in field.versions:
            yield from _field_complaints(given, field, message, version, place)
        elif not field.ignorable and given != getattr(blank, field.attribute):
            yield place, f"is set to {given!r}, but is not in this version"


def _field_complaints(
    given: Any, field: schema.Field, message: schema.Message, version: int, place: str
) -> Iterator[tuple[str, str]]:
    if given is None:
        if version not in field.nullable:
            yield place, "is null, which this version does not allow"
    elif not field.is_array:
        yield from _value_complaints(given, field, message, version, place)
    elif not hasattr(given, "__len__") or not hasattr(given, "__iter__"):
        yield place, f"is no sequence but {given!r}"
    else:
        for index, item in enumerate(given):
            yield from _value_complaints(item, field, message, version, f"{place}[{index}]")


def _value_complaints(
    value: Any, field: schema.Field, message: schema.Message, version: int, place: str
) -> Iterator[tuple[str, str]]:
    if field.struct is not None:
        if getattr(value, "_struct", None) is not field.struct:
            yield place, f"is no {field.type} but {value!r}"
        else:
            yield from _complaints(value, message, version, place + ".")
    elif field.type in _BOUNDS:
        lowest, highest = _BOUNDS[field.type]
        if not isinstance(value, int):
            yield place, f"is no integer but {value!r}"
        elif not lowest <= value <= highest:
            yield place, f"is {value}, out of the range of {field.type}"
    elif field.type == "string":
        yield from _text_complaints(value, place)
    elif field.type == "uuid" and (not isinstance(value, bytes | bytearray) or len(value) != 16):
        yield place, f"is no 16 bytes but {value!r}"
    elif field.type == "bytes" and not isinstance(value, bytes | bytearray | memoryview):
        yield place, f"is no bytes but {value!r}"
    elif field.type == "records" and not hasattr(value, "__len__"):
        yield place, f"has no length: {value!r}"
    elif field.type == "float64" and not isinstance(value, float | int):
        yield place, f"is no number but {value!r}"


def _text_complaints(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if not isinstance(value, str):
        yield place, f"is no string but {value!r}"
        return
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        yield place, f"cannot be UTF-8: {value!r}"
    else:
        if size > MAX_STRING_BYTES:
            yield place, f"is longer than {MAX_STRING_BYTES} bytes"
