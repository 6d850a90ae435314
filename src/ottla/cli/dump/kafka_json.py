"""Messages as the JSON that Apache Kafka's tools print: its field names, its order, its number format.

Every field that the version has is there, except tagged ones that have their default. UUIDs are in Kafka's own base64,
bytes in the standard one.
"""

import json
from base64 import b64encode
from decimal import Decimal

from ottla.base.ids import uuid_text
from ottla.wire.message import Message, WireStruct
from ottla.wire.schema import Field, Struct, message_schema

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def message_json(message: Message, version: int) -> dict[str, Json]:
    return _struct_json(message_schema(type(message).__name__).root, message, version)


def json_text(node: Json) -> str:
    """Compact, as Jackson writes it; only numbers with a fraction differ from Python's own way."""
    if isinstance(node, float):
        return java_double(node)
    if isinstance(node, dict):
        return "{" + ",".join(f"{_text(name)}:{json_text(value)}" for name, value in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(json_text, node)) + "]"
    return _text(node)


def field_name(name: str) -> str:
    return name[0].lower() + name[1:]


def _struct_json(struct: Struct, value: WireStruct, version: int) -> dict[str, Json]:
    shown: dict[str, Json] = {}
    for field in struct.fields:
        if version in field.versions:
            content = getattr(value, field.attribute)
            if not (version in field.tagged and _is_default(field, content)):
                shown[field_name(field.name)] = _field_json(field, content, version)
    return shown


def _field_json(field: Field, content: object, version: int) -> Json:
    if content is None:
        return None
    if field.is_array:
        assert isinstance(content, list | tuple)
        return [_element_json(field, element, version) for element in content]
    return _element_json(field, content, version)


def _element_json(field: Field, element: object, version: int) -> Json:
    if field.struct is not None:
        assert isinstance(element, WireStruct)
        return _struct_json(field.struct, element, version)
    if field.type == "uuid":
        return uuid_text(element)  # type: ignore[arg-type]  # the schema says that it is one
    if isinstance(element, bytes | bytearray | memoryview):
        return b64encode(element).decode("ascii")
    assert isinstance(element, bool | int | float | str)
    return element


def _is_default(field: Field, content: object) -> bool:
    if field.default is None or content is None:
        return content is field.default
    if field.is_array:
        return not content
    if field.struct is not None:
        return content == type(content)()
    return content == field.default


def _text(node: Json) -> str:
    return json.dumps(node, ensure_ascii=False)


def java_double(number: float) -> str:
    if number == 0 or 1e-3 <= abs(number) < 1e7 or number != number or abs(number) == float("inf"):
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int), "neither infinite nor NaN"
    first, *rest = map(str, digits)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{exponent + len(digits) - 1}"
