"""Connect's schemas as JSON Schema, and back, as Confluent's JsonSchemaData maps them.

| Connect | JSON Schema |
| --- | --- |
| INT8 to INT64, FLOAT32, FLOAT64 | `integer`, `number`, with `connect.type` |
| BOOLEAN, STRING | `boolean`, `string` |
| BYTES, Decimal | `string`, `number`, both with `"connect.type": "bytes"` |
| an array | `array` of `items` |
| a map with strings as keys | `object` of `additionalProperties`, with `"connect.type": "map"` |
| any other map | `array` of objects of a `key` and a `value`, with `"connect.type": "map"` |
| a struct | `object`; each of its `properties` has its place as `connect.index` |
| optional | `oneOf` of `null` and the type |
| an `enum` | STRING with parameters |
| any other `oneOf`, `anyOf` | a struct named `io.confluent.connect.json.OneOf`, of whose fields one is set |

A name is a `title`, a doc a `description`; `connect.version` and `connect.parameters` have the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.connect.data.schema import DECIMAL, Field, Schema, Type
from ottla.connect.errors import DataError

_NAMESPACE: Final = "io.confluent.connect.json"
ENUM: Final = f"{_NAMESPACE}.Enum"
ONE_OF: Final = f"{_NAMESPACE}.OneOf"
_TYPE, _VERSION, _PARAMETERS, _INDEX = "connect.type", "connect.version", "connect.parameters", "connect.index"
_INTEGERS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FLOATS: Final = (Type.FLOAT32, Type.FLOAT64)
_NUMBERS: Final = {type.value: type for type in (*_INTEGERS, *_FLOATS)} | {
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
}
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class Shaping:
    """Options: whether objects may have other members, and whether members that need not be there are optional."""

    additional: bool = True
    optional_unless_required: bool = False


def has_named_keys(schema: Schema) -> bool:
    """Whether a map is an object: JSON's have names, which are never null."""
    assert schema.keys is not None
    return schema.keys.type is Type.STRING and not schema.keys.optional


def to_json_schema(schema: Schema, options: Shaping, default_of: Callable[[Schema], Any]) -> dict[str, Any]:
    """The tree of a schema. `default_of` gives a schema's default as JSON."""
    return _To(options, default_of).tree(schema, None)


class _To:
    def __init__(self, options: Shaping, default_of: Callable[[Schema], Any]) -> None:
        self._options = options
        self._default_of = default_of

    def tree(self, schema: Schema, index: int | None, *, ignore_optional: bool = False) -> dict[str, Any]:
        if schema.type is Type.STRUCT and schema.name == ONE_OF:
            kinds = [
                self.tree(field.schema.but(optional=False), place, ignore_optional=True)
                for place, field in enumerate(schema.fields)
            ]
            made: dict[str, Any] = {"oneOf": [*([{"type": "null"}] if schema.optional else []), *kinds]}
        else:
            made = self._described(schema)
            if schema.optional and not ignore_optional:
                made = {"oneOf": [{"type": "null"}, made]}
        if index is not None:
            made[_INDEX] = index
        return made

    def _described(self, schema: Schema) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if schema.name is not None:
            made["title"] = schema.name
        if schema.doc is not None:
            made["description"] = schema.doc
        if schema.default is not None:
            made["default"] = self._default_of(schema)
        made |= self._typed(schema)
        if schema.version is not None:
            made[_VERSION] = schema.version
        parameters = {key: text for key, text in (schema.parameters or {}).items() if not key.startswith(_NAMESPACE)}
        if parameters:
            made[_PARAMETERS] = parameters
        return made

    def _typed(self, schema: Schema) -> dict[str, Any]:
        kind = schema.type
        if kind in _INTEGERS:
            return {"type": "integer", _TYPE: kind.value}
        if kind in _FLOATS:
            return {"type": "number", _TYPE: "float32" if kind is Type.FLOAT32 else "float64"}
        if kind is Type.BOOLEAN:
            return {"type": "boolean"}
        if kind is Type.STRING:
            parameters = schema.parameters or {}
            if ENUM in parameters:
                return {"enum": [text for key, text in parameters.items() if key.startswith(f"{ENUM}.")]}
            return {"type": "string"}
        if kind is Type.BYTES:
            return {"type": "number" if schema.name == DECIMAL else "string", _TYPE: "bytes"}
        if kind is Type.ARRAY:
            assert schema.items is not None
            return {"type": "array", "items": self.tree(schema.items, None)}
        if kind is Type.MAP:
            assert schema.keys is not None and schema.items is not None
            if has_named_keys(schema):
                return {"type": "object", "additionalProperties": self.tree(schema.items, None), _TYPE: "map"}
            entry = {"key": self.tree(schema.keys, 0), "value": self.tree(schema.items, 1)}
            return {"type": "array", "items": {"type": "object", "properties": entry}, _TYPE: "map"}
        made: dict[str, Any] = {
            "type": "object",
            "properties": {field.name: self.tree(field.schema, place) for place, field in enumerate(schema.fields)},
        }
        if self._options.optional_unless_required:
            required = [field.name for field in schema.fields if not field.schema.optional]
            made |= {"required": required} if required else {}
        if not self._options.additional:
            made["additionalProperties"] = False
        return made


class FromJsonSchema:
    """Reads one schema; `references` are the trees of those that it names."""

    def __init__(
        self,
        tree: Any,
        references: Mapping[str, Any],
        options: Shaping,
        default_of: Callable[[Schema, Any], Any],
    ) -> None:
        self._root = tree
        self._references = references
        self._options = options
        self._default_of = default_of

    def schema(self, version: int | None) -> Schema:
        """Raises `DataError` for a schema that Connect has nothing for."""
        return self._read(self._root, version, is_optional=False, depth=0)

    def _read(self, tree: Any, version: int | None, *, is_optional: bool, depth: int) -> Schema:
        if depth > _DEEPEST:
            raise DataError(f"a JSON schema is within itself, or nested deeper than {_DEEPEST}")
        if not isinstance(tree, dict):
            raise DataError(f"a JSON schema that is {tree!r} says nothing of a type")
        if "$ref" in tree:
            return self._read(self._referred(tree["$ref"]), version, is_optional=is_optional, depth=depth + 1)
        kinds = self._kinds(tree)
        if kinds is not None:
            wanted = [one for one in kinds if one != {"type": "null"}]
            has_null = len(wanted) < len(kinds)
            if has_null and len(wanted) == 1:
                return self._read(wanted[0], version, is_optional=True, depth=depth + 1)
            fields = tuple(
                Field(f"{ONE_OF}.field.{place}", self._read(one, None, is_optional=True, depth=depth + 1))
                for place, one in enumerate(wanted)
            )
            made = Schema(Type.STRUCT, has_null, name=ONE_OF, fields=fields)
        elif isinstance(tree.get("allOf"), list):
            return self._read(self._merged(tree["allOf"]), version, is_optional=is_optional, depth=depth + 1)
        else:
            made = self._typed(tree, depth)
        return self._described(made, tree, version, is_optional=is_optional)

    def _kinds(self, tree: dict[str, Any]) -> list[Any] | None:
        """The alternatives of a schema that has some."""
        for word in ("oneOf", "anyOf"):
            if isinstance(tree.get(word), list):
                return list(tree[word])
        listed = tree.get("type")
        if isinstance(listed, list):
            rest = {key: value for key, value in tree.items() if key not in ("type", _INDEX)}
            return [{"type": "null"} if one == "null" else rest | {"type": one} for one in listed]
        return None

    def _merged(self, parts: list[Any]) -> dict[str, Any]:
        """`allOf` of a type and what limits it: an enum, a constant, a format."""
        merged: dict[str, Any] = {}
        for part in parts:
            if not isinstance(part, dict) or "properties" in part or "$ref" in part:
                raise DataError("Unsupported criterion allOf")
            merged |= part
        return merged

    def _typed(self, tree: dict[str, Any], depth: int) -> Schema:
        kind, said = tree.get("type"), tree.get(_TYPE)
        if "enum" in tree and kind in (None, "string"):
            symbols = [one if isinstance(one, str) else str(one) for one in tree["enum"]]
            return Schema(Type.STRING, parameters={ENUM: ""} | {f"{ENUM}.{one}": one for one in symbols})
        if kind in ("integer", "number"):
            if said == "bytes":
                return Schema(Type.BYTES)
            if said is None:
                return Schema(Type.INT64 if kind == "integer" else Type.FLOAT64)
            if said not in _NUMBERS:
                raise DataError(f"Unsupported type {said}")
            return Schema(_NUMBERS[said])
        if kind == "boolean":
            return Schema(Type.BOOLEAN)
        if kind == "string":
            return Schema(Type.BYTES if said == "bytes" else Type.STRING)
        if kind == "array":
            return self._array(tree, said, depth)
        if kind == "object" or (kind is None and "properties" in tree):
            return self._object(tree, said, depth)
        raise DataError(f"a JSON schema of the type {kind!r} has no type in Connect")

    def _array(self, tree: dict[str, Any], said: Any, depth: int) -> Schema:
        items = tree.get("items")
        if not isinstance(items, dict):
            raise DataError("Array schema did not specify the items type")
        if said == "map" and isinstance(items.get("properties"), dict):
            entry = items["properties"]
            return self._map(entry.get("key"), entry.get("value"), depth)
        return Schema(Type.ARRAY, items=self._read(items, None, is_optional=False, depth=depth + 1))

    def _map(self, key: Any, item: Any, depth: int) -> Schema:
        keys = Schema(Type.STRING) if key is None else self._read(key, None, is_optional=False, depth=depth + 1)
        return Schema(Type.MAP, keys=keys, items=self._read(item, None, is_optional=False, depth=depth + 1))

    def _object(self, tree: dict[str, Any], said: Any, depth: int) -> Schema:
        if said == "map":
            return self._map(None, tree.get("additionalProperties"), depth)
        properties = tree.get("properties", {})
        if not isinstance(properties, dict):
            raise DataError("the properties of a JSON schema are no object")
        required = tree.get("required") or ()
        placed: list[tuple[int, str, Any]] = []
        for place, (name, one) in enumerate(properties.items()):
            index = one.get(_INDEX) if isinstance(one, dict) else None
            placed.append((index if isinstance(index, int) else place, name, one))
        fields = tuple(
            Field(
                name,
                self._read(
                    one,
                    None,
                    is_optional=self._options.optional_unless_required and name not in required,
                    depth=depth + 1,
                ),
            )
            for _, name, one in sorted(placed, key=lambda one: one[0])
        )
        return Schema(Type.STRUCT, fields=fields)

    def _described(self, made: Schema, tree: dict[str, Any], version: int | None, *, is_optional: bool) -> Schema:
        title, doc, own, parameters = (tree.get(key) for key in ("title", "description", _VERSION, _PARAMETERS))
        if isinstance(title, str):
            made = made.but(name=title)
        if isinstance(own, int):
            made = made.but(version=own)
        elif version is not None:
            made = made.but(version=version)
        if isinstance(doc, str):
            made = made.but(doc=doc)
        if isinstance(parameters, dict):
            own_parameters = dict(made.parameters or {})
            made = made.but(parameters=own_parameters | {key: str(text) for key, text in parameters.items()})
        if tree.get("default") is not None:
            made = made.but(default=self._default_of(made, tree["default"]))
        return made.but(optional=made.optional or is_optional)

    def _referred(self, name: Any) -> Any:
        """What `$ref` names: a part of this schema, or another that it refers to, or a part of that."""
        if not isinstance(name, str):
            raise DataError("a $ref of a JSON schema is no text")
        file, _, path = name.partition("#")
        found = self._root if not file else self._references.get(file)
        for part in path.split("/")[1:]:
            step = part.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, dict) else None
        if found is None:
            raise DataError(f"a JSON schema refers to {name}, which is not there")
        return found
