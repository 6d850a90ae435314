"""Connect's schemas as JSON, in JsonConverter's form, and back."""

from collections.abc import Callable
from typing import Any

from ottla.connect.converters.json_columns import JsonWriter, string_text
from ottla.connect.data.rows import check
from ottla.connect.data.schema import Field, Schema, Type
from ottla.connect.errors import DataError

_TYPES = {type.value: type for type in Type}


def schema_text(schema: Schema, writer: JsonWriter) -> str:
    """As Kafka writes it, byte for byte."""
    return "{" + ",".join(_members(schema, writer)) + "}"


def _members(schema: Schema, writer: JsonWriter) -> list[str]:
    said = [f'"type":"{schema.type.value}"']
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        said.append(f'"items":{schema_text(schema.items, writer)}')
    elif schema.type is Type.MAP:
        assert schema.keys is not None and schema.items is not None
        said.append(f'"keys":{schema_text(schema.keys, writer)}')
        said.append(f'"values":{schema_text(schema.items, writer)}')
    elif schema.type is Type.STRUCT:
        fields = (
            "{" + ",".join([*_members(field.schema, writer), f'"field":{string_text(field.name)}']) + "}"
            for field in schema.fields
        )
        said.append(f'"fields":[{",".join(fields)}]')
    said.append(f'"optional":{"true" if schema.optional else "false"}')
    if schema.name is not None:
        said.append(f'"name":{string_text(schema.name)}')
    if schema.version is not None:
        said.append(f'"version":{schema.version}')
    if schema.doc is not None:
        said.append(f'"doc":{string_text(schema.doc)}')
    if schema.parameters is not None:
        pairs = (f"{string_text(name)}:{string_text(text)}" for name, text in schema.parameters.items())
        said.append('"parameters":{' + ",".join(pairs) + "}")
    if schema.default is not None:
        said.append(f'"default":{writer.value_text(schema, schema.default)}')
    return said


def read_schema(said: Any, value_of: Callable[[Schema, Any], Any]) -> Schema | None:
    """The schema that this JSON stands for; null is none. `value_of` reads the default. Raises `DataError`."""
    if said is None:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("type"), str):
        raise DataError("Schema must contain 'type' field")
    kind = _TYPES.get(said["type"])
    if kind is None:
        raise DataError(f"Unknown schema type: {said['type']}")
    keys = items = None
    fields: list[Field] = []
    if kind is Type.ARRAY:
        items = read_schema(said.get("items"), value_of)
        if items is None:
            raise DataError("Array schema did not specify the element type")
    elif kind is Type.MAP:
        keys, items = read_schema(said.get("keys"), value_of), read_schema(said.get("values"), value_of)
    elif kind is Type.STRUCT:
        if not isinstance(said.get("fields"), list):
            raise DataError('Struct schema\'s "fields" argument is not an array.')
        for field in said["fields"]:
            name = field.get("field") if isinstance(field, dict) else None
            if not isinstance(name, str):
                raise DataError("Struct schema's field name not specified properly")
            schema = read_schema(field, value_of)
            assert schema is not None
            fields.append(Field(name, schema))
    parameters = said.get("parameters")
    if isinstance(parameters, dict) and not all(isinstance(text, str) for text in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    version = said.get("version")
    made = Schema(
        kind,
        optional=said.get("optional") is True,
        name=_text(said.get("name")),
        version=version if isinstance(version, int) and not isinstance(version, bool) else None,
        doc=_text(said.get("doc")),
        parameters=dict(parameters) if isinstance(parameters, dict) and parameters else None,
        fields=tuple(fields),
        keys=keys,
        items=items,
    )
    if made.version is not None and not -(1 << 31) <= made.version < 1 << 31:
        raise DataError(f"the version of a schema has more than 32 bits: {made.version}")
    if said.get("default") is not None:
        default = value_of(made, said["default"])
        check(made, default)
        made = made.but(default=default)
    return made


def _text(said: Any) -> str | None:
    return said if isinstance(said, str) else None
