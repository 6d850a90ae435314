"""Connect's schemas as Avro's, and back, as Confluent's AvroData maps them, to the last property: a registry knows a
schema by its text, so another text would be another version.

| Connect | Avro |
| --- | --- |
| INT8, INT16 | int, with `connect.type` |
| Decimal, Date, Time, Timestamp | bytes, int, int, long with their logical types |
| optional | a union with null, which is first unless there is a default |
| map of strings that may not be null | map; any other map is an array of records with `key` and `value` |
| a struct without a name | a record `ConnectDefault`, `ConnectDefault2` … |
| name, version, doc, parameters, default | `connect.name` … `connect.default`, with `connect.meta.data` |
| a struct named `io.confluent.connect.avro.Union`, of whose fields one is set | a union of their types |
| enum | STRING with parameters; an enum again with `enhanced.avro.schema.support` |
"""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote_plus

from ottla.connect.data.rows import check, decimal_of, stored_bytes, unscaled
from ottla.connect.data.schema import DATE, DECIMAL, PRECISION, SCALE, TIME, TIMESTAMP, Field, Schema, Type, scale_of
from ottla.connect.errors import DataError
from ottla.connect.java_numbers import narrowed, wrapped
from ottla.schemas.avro import types as avro

NAMESPACE: Final = "io.confluent.connect.avro"
UNION: Final = f"{NAMESPACE}.Union"
ENUM: Final = f"{NAMESPACE}.Enum"
DEFAULT_NAME: Final = f"{NAMESPACE}.ConnectDefault"
MAP_ENTRY: Final = "MapEntry"
FIXED_SIZE: Final = "connect.fixed.size"
DEFAULT_PRECISION: Final = 64
_RECORD_DOC: Final = f"{NAMESPACE}.record.doc"
_FIELD_DOC: Final = f"{NAMESPACE}.field.doc."
_FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
_ENUM_DOC: Final = f"{NAMESPACE}.enum.doc."
_ENUM_DEFAULT: Final = f"{NAMESPACE}.enum.default."
_PLAIN: Final = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Final = {TIME: "time-millis", TIMESTAMP: "timestamp-millis", DATE: "date"}
_OF_INT: Final = {"int8": Type.INT8, "int16": Type.INT16}
_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Mapping:
    """The options that say how schemas are mapped."""

    metadata: bool = True
    enhanced: bool = False
    scrub: bool = False
    discard_docs: bool = False
    optional_keys: bool = False
    flatten: bool = True
    no_defaults: bool = False
    """`ignore.default.for.nullables`"""

    def name(self, text: str) -> str:
        """A name as Avro can have it, with `scrub.invalid.names`."""
        if not self.scrub or not text or _VALID.fullmatch(text):
            return text
        encoded = quote_plus(text, safe="*-.")
        return _INVALID.sub("_", f"x{encoded}" if encoded[0].isdigit() else encoded)

    def full_name(self, text: str) -> tuple[str | None, str]:
        """Namespace and name."""
        parts = text.split(".")
        while len(parts) > 1 and not parts[-1]:  # as Java splits
            parts.pop()
        parts = [self.name(part) for part in parts]
        return (".".join(parts[:-1]) if len(parts) > 1 else None), parts[-1]

    def is_avro_map(self, schema: Schema) -> bool:
        assert schema.keys is not None
        return schema.keys.type is Type.STRING and (self.optional_keys or not schema.keys.optional)


def is_union(schema: Schema) -> bool:
    return schema.type is Type.STRUCT and schema.name == UNION


def is_enum(schema: Schema) -> bool:
    return schema.type is Type.STRING and ENUM in (schema.parameters or {})


def is_fixed(schema: Schema) -> bool:
    return schema.type is Type.BYTES and schema.name is not None and FIXED_SIZE in (schema.parameters or {})


# To Avro: a tree of dicts, where a named type that is met again is the same dict.

Node = Any


class ToAvro:
    """One schema. `tree` is its JSON."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._known: dict[Schema, Node] = {}
        self._by_name: dict[str, Node] = {}
        self._unnamed = 0

    def tree(self, schema: Schema) -> Any:
        """Named types in full where they come first, and by their names afterwards."""
        return _rendered(self._node(schema), set(), None)

    def _names(self, name: str | None) -> tuple[str | None, str]:
        if name is not None:
            return self._mapping.full_name(name)
        self._unnamed += 1
        return NAMESPACE, "ConnectDefault" + (str(self._unnamed) if self._unnamed > 1 else "")

    def _node(self, schema: Schema, *, ignore_optional: bool = False) -> Node:
        if not is_union(schema) and not schema.optional and schema in self._known:
            return self._known[schema]
        base = self._base(schema)
        made = base
        if not isinstance(base, list):
            self._add_properties(schema, base)
            if not ignore_optional:
                made = _optional(schema, base)
        if not schema.optional:
            self._known[schema] = made
        return made

    def _once(self, schema: Schema, *, ignore_optional: bool = False) -> Node:
        """The same, and a struct of a name that was met before is that one."""
        known = self._by_name.get(schema.name) if schema.name is not None else None
        if known is None:
            return self._node(schema, ignore_optional=ignore_optional)
        return known if ignore_optional else _optional(schema, known)

    def _base(self, schema: Schema) -> Node:
        parameters = schema.parameters or {}
        if schema.type is Type.STRUCT:
            return self._struct(schema)
        if schema.type is Type.ARRAY:
            assert schema.items is not None
            return {"type": "array", "items": self._once(schema.items)}
        if schema.type is Type.MAP:
            return self._map(schema)
        if self._mapping.enhanced and is_enum(schema):
            _, name = self._names(schema.name)
            symbols = [key[len(ENUM) + 1 :] for key in parameters if key.startswith(f"{ENUM}.")]
            space, own = self._mapping.full_name(parameters[ENUM])
            doc = parameters.get("connect.enum.doc" if self._mapping.discard_docs else _ENUM_DOC + name)
            node: Node = _named("enum", space, own, doc) | {"symbols": symbols}
            default = parameters.get(_ENUM_DEFAULT + name)
            if default is not None and not self._mapping.discard_docs:
                node["default"] = default
            return node
        if is_fixed(schema):
            space, name = self._names(schema.name)
            node = _named("fixed", space, name, None) | {"size": int(parameters[FIXED_SIZE])}
        else:
            node = {"type": _PLAIN[schema.type]}
        if schema.logical == DECIMAL:
            node["scale"] = _whole(parameters, SCALE, None)
            node["precision"] = _whole(parameters, PRECISION, DEFAULT_PRECISION)
        return node

    def _map(self, schema: Schema) -> Node:
        assert schema.keys is not None and schema.items is not None
        if self._mapping.is_avro_map(schema):
            return {"type": "map", "values": self._once(schema.items)}
        space, name = (NAMESPACE, MAP_ENTRY) if schema.name is None else self._names(schema.name)
        entry = _named("record", space, name, None)
        entry["fields"] = [self._field("key", schema.keys, None), self._field("value", schema.items, None)]
        if schema.name is not None:
            entry["connect.internal.type"] = MAP_ENTRY
        return {"type": "array", "items": entry}

    def _struct(self, schema: Schema) -> Node:
        if is_union(schema):
            branches = [self._once(field.schema.but(optional=False), ignore_optional=True) for field in schema.fields]
            return ([{"type": "null"}] if schema.optional else []) + branches
        if schema.optional:
            return [{"type": "null"}, self._once(schema.but(optional=False))]
        parameters = schema.parameters or {}
        space, name = self._names(schema.name)
        doc = parameters.get("connect.record.doc" if self._mapping.discard_docs else _RECORD_DOC)
        node = _named("record", space, name, doc)
        if schema.name is not None:
            self._by_name[schema.name] = node
        fields: list[Node] = []
        for field in schema.fields:
            doc = None if self._mapping.discard_docs else parameters.get(_FIELD_DOC + field.name)
            fields.append(self._field(self._mapping.name(field.name), field.schema, doc))
        node["fields"] = fields
        return node

    def _field(self, name: str, schema: Schema, doc: str | None) -> Node:
        default = _NONE
        if schema.default is not None:
            default = self._default(schema, schema.default)
        elif schema.optional:
            default = None
        type = self._node(schema)
        made: dict[str, Any] = {"name": name, "type": type}
        said = schema.doc if self._mapping.discard_docs else doc
        if said is not None:
            made["doc"] = said
        if default is not _NONE and _fits(type, default):
            made["default"] = default
        return made

    def _add_properties(self, schema: Schema, node: dict[str, Any]) -> None:
        parameters = schema.parameters or {}
        keeps_docs = not self._mapping.discard_docs
        if self._mapping.metadata:
            if schema.doc is not None:
                node["connect.doc"] = schema.doc
            if schema.version is not None:
                node["connect.version"] = schema.version
            said = {name: text for name, text in parameters.items() if name != _FIELD_DEFAULT or not keeps_docs}
            if said:
                node["connect.parameters"] = said
            if schema.default is not None and (not keeps_docs or _FIELD_DEFAULT not in parameters):
                node["connect.default"] = self._default(schema, schema.default)
            if schema.name is not None:
                node["connect.name"] = schema.name
            if schema.type in (Type.INT8, Type.INT16):
                node["connect.type"] = schema.type.value
        if schema.logical == DECIMAL:
            node["logicalType"] = "decimal"
        elif schema.logical is not None:
            node["logicalType"] = _LOGICAL[schema.logical]
        node.update({name: text for name, text in parameters.items() if name.startswith("avro")})

    def _default(self, schema: Schema, value: Any) -> Any:
        """A value as JSON has it."""
        if value is None:
            return None
        if schema.logical == DECIMAL:
            return stored_bytes(unscaled(schema, value)).decode("latin-1")
        if schema.type is Type.BYTES:
            return value.decode("latin-1")
        if schema.type is Type.ARRAY:
            assert schema.items is not None
            return [self._default(schema.items, item) for item in value]
        if schema.type is Type.MAP:
            assert schema.keys is not None and schema.items is not None
            pairs = [(self._default(schema.keys, key), self._default(schema.items, item)) for key, item in value]
            return dict(pairs) if self._mapping.is_avro_map(schema) else [list(pair) for pair in pairs]
        if schema.type is Type.STRUCT:
            made: dict[str, Any] = {}
            for field in schema.fields:
                item = value.get(field.name)
                said = self._default(field.schema, field.schema.default if item is None else item)
                if is_union(schema):
                    return said
                made[self._mapping.name(field.name)] = said
            return made
        return value


_NONE: Final = object()


def _whole(parameters: Any, name: str, default: int | None) -> int:
    try:
        text = parameters.get(name)
        if text is None and default is not None:
            return default
        return int(text)
    except (TypeError, ValueError):
        raise DataError(f"Invalid Decimal schema: {name} parameter is {parameters.get(name)}") from None


def _named(kind: str, space: str | None, name: str, doc: str | None) -> dict[str, Any]:
    node: dict[str, Any] = {"type": kind, "name": name, "namespace": space or ""}
    if doc is not None:
        node["doc"] = doc
    return node


def _optional(schema: Schema, node: Node) -> Node:
    if not schema.optional:
        return node
    null = {"type": "null"}
    return [node, null] if schema.default is not None else [null, node]


def _fits(node: Node, default: Any) -> bool:
    """Whether Avro takes it for a default of that type: of a union's first branch."""
    if isinstance(node, list):
        return _fits(node[0], default)
    match node["type"]:
        case "null":
            return default is None
        case "boolean":
            return isinstance(default, bool)
        case "int" | "long":
            return isinstance(default, int) and not isinstance(default, bool)
        case "float" | "double":
            return isinstance(default, int | float) and not isinstance(default, bool)
        case "string" | "bytes" | "enum" | "fixed":
            return isinstance(default, str)
        case "array":
            return isinstance(default, list) and all(_fits(node["items"], item) for item in default)
        case "map":
            return isinstance(default, dict) and all(_fits(node["values"], item) for item in default.values())
    if not isinstance(default, dict):
        return False
    return all(
        _fits(field["type"], default[field["name"]]) if field["name"] in default else "default" in field
        for field in node["fields"]
    )


def _rendered(node: Node, seen: set[int], space: str | None) -> Any:
    """JSON, with names for what was said before."""
    if isinstance(node, list):
        return [_rendered(branch, seen, space) for branch in node]
    if "name" in node:
        if id(node) in seen:
            return f"{node['namespace']}.{node['name']}" if node["namespace"] else node["name"]
        seen.add(id(node))
        made = dict(node)
        if "fields" in node:
            made["fields"] = [field | {"type": _rendered(field["type"], seen, space)} for field in node["fields"]]
        return made
    made = dict(node)
    for name in ("items", "values"):
        if name in node:
            made[name] = _rendered(node[name], seen, space)
    return made


# From Avro.


class FromAvro:
    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._within: list[avro.AvroType] = []

    def schema(self, type: avro.AvroType, version: int | None = None) -> Schema | None:
        """The schema of Connect's; None for what was written without one. Raises `DataError`."""
        if isinstance(type, avro.Record) and type.full_name == f"{NAMESPACE}.Anything":
            return None
        return self._schema(type, False, _NONE, None, version)

    def _schema(
        self, type: avro.AvroType, optional: bool, default: Any, doc: str | None, version: int | None = None
    ) -> Schema:
        if any(type is one for one in self._within):
            raise DataError(f"{type.full_name} is within itself, and columns cannot be recursive")
        if isinstance(type, avro.Union):
            others = [branch for branch in type.branches if branch.kind != "null"]
            if len(type.branches) == 1 and self._mapping.flatten:
                return self._schema(type.branches[0], False, _NONE, doc)
            if len(type.branches) == 2 and len(others) == 1:
                return self._schema(others[0], True, _NONE, doc)
        self._within.append(type)
        try:
            made, parameters = self._base(type)
        finally:
            self._within.pop()
        return self._with_words(type, made, parameters, optional, default, doc, version)

    def _base(self, type: avro.AvroType) -> tuple[Schema, dict[str, str]]:
        """The schema without its words, and the parameters that the type gives it."""
        logical = type.props.get("logicalType")
        parameters: dict[str, str] = {}
        if isinstance(type, avro.Fixed) or type.kind == "bytes":
            made = Schema(Type.BYTES)
            if isinstance(logical, str) and logical.lower() == "decimal":
                scale, precision = type.props.get("scale"), type.props.get("precision")
                parameters[SCALE] = str(scale if isinstance(scale, int) else 0)
                if isinstance(precision, int) and precision != DEFAULT_PRECISION:
                    parameters[PRECISION] = str(precision)
                made = Schema(Type.BYTES, name=DECIMAL, version=1)
            if isinstance(type, avro.Fixed):
                parameters[FIXED_SIZE] = str(type.size)
            return made, parameters
        if isinstance(type, avro.Enum):
            if self._mapping.metadata:
                if type.doc is not None:
                    name = "connect.enum.doc" if self._mapping.discard_docs else _ENUM_DOC + type.name
                    parameters[name] = type.doc
                if type.default is not None and not self._mapping.discard_docs:
                    parameters[_ENUM_DEFAULT + type.name] = type.default
            parameters[ENUM] = type.full_name
            parameters.update({f"{ENUM}.{symbol}": symbol for symbol in type.symbols})
            return Schema(Type.STRING), parameters
        if isinstance(type, avro.Array):
            if is_map_entry(type.items):
                assert isinstance(type.items, avro.Record)
                key, value = (
                    self._schema(type.items.by_name[name].type, False, _NONE, None) for name in ("key", "value")
                )
                return Schema(Type.MAP, keys=key, items=value), parameters
            return Schema(Type.ARRAY, items=self._schema(type.items, False, _NONE, None)), parameters
        if isinstance(type, avro.Map):
            items = self._schema(type.values, False, _NONE, None)
            return Schema(Type.MAP, keys=Schema(Type.STRING), items=items), parameters
        if isinstance(type, avro.Record):
            return self._record(type)
        if isinstance(type, avro.Union):
            return self._union(type), parameters
        if type.kind == "int":
            if logical is not None:
                names = {"date": DATE, "time-millis": TIME}
                if not isinstance(logical, str) or logical.lower() not in names:
                    return Schema(Type.INT32), parameters
                return Schema(Type.INT32, name=names[logical.lower()], version=1), parameters
            said = type.props.get("connect.type")
            if said is not None and said not in _OF_INT:
                raise DataError("Connect type annotation for Avro int field is null")
            return Schema(Type.INT32 if said is None else _OF_INT[said]), parameters
        if type.kind == "long" and isinstance(logical, str) and logical.lower() == "timestamp-millis":
            return Schema(Type.INT64, name=TIMESTAMP, version=1), parameters
        if type.kind == "null":
            raise DataError("Standalone null schemas are not supported by this converter")
        plain = {name: kind for kind, name in _PLAIN.items() if kind not in (Type.INT8, Type.INT16)}
        return Schema(plain[type.kind]), parameters

    def _record(self, type: avro.Record) -> tuple[Schema, dict[str, str]]:
        parameters: dict[str, str] = {}
        keeps_docs = not self._mapping.discard_docs and self._mapping.metadata
        if keeps_docs and type.doc is not None:
            parameters[_RECORD_DOC] = type.doc
        fields: list[Field] = []
        for field in type.fields:
            if keeps_docs and field.doc is not None:
                parameters[_FIELD_DOC + field.name] = field.doc
            default = field.default if field.has_default else _NONE
            fields.append(Field(field.name, self._schema(field.type, False, default, field.doc)))
        return Schema(Type.STRUCT, fields=tuple(fields)), parameters

    def _union(self, type: avro.Union) -> Schema:
        fields: list[Field] = []
        for branch in type.branches:
            if branch.kind == "null":
                continue
            name = branch_field(branch, self._mapping)
            if any(field.name == name for field in fields):
                raise DataError("Multiple union schemas map to the Connect union field name")
            fields.append(Field(name, self._schema(branch, True, _NONE, None)))
        optional = any(branch.kind == "null" for branch in type.branches)
        return Schema(Type.STRUCT, optional, name=UNION, fields=tuple(fields))

    def _with_words(
        self,
        type: avro.AvroType,
        made: Schema,
        parameters: dict[str, str],
        optional: bool,
        default: Any,
        field_doc: str | None,
        version: int | None,
    ) -> Schema:
        props = type.props
        own_doc = type.doc if isinstance(type, avro.Named) and not isinstance(type, avro.Fixed) else None
        doc: Any = None
        if self._mapping.discard_docs:
            doc = field_doc if field_doc is not None else own_doc if own_doc is not None else props.get("connect.doc")
            if self._mapping.metadata and own_doc is not None:
                parameters["connect.record.doc"] = own_doc
        elif self._mapping.metadata:
            doc = props.get("connect.doc")
        number = props.get("connect.version", version)
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise DataError(f"Invalid Connect version found: {number}")
        if number is not None and number >= 0:
            if made.version is not None and made.version != number:
                raise DataError(
                    f"Mismatched versions: version already added to SchemaBuilder ({made.version}) differs from "
                    f"version in source schema ({number})"
                )
        else:
            number = made.version
        self._add_parameters(props, parameters)
        if default is _NONE or default is None:
            default = props.get("connect.default", _NONE) if default is _NONE else default
        elif not self._mapping.discard_docs and self._mapping.metadata and "connect.default" not in props:
            parameters[_FIELD_DEFAULT] = "true"
        name = props.get("connect.name")
        if name is None and isinstance(type, avro.Named):
            name = type.full_name
        if name is not None and not isinstance(name, str):
            raise DataError(f"Invalid schema name: {name}")
        if name is not None and name.startswith(DEFAULT_NAME):
            name = None
        if made.name is not None and name is not None and made.name != name:
            raise DataError(
                f"Mismatched names: name already added to SchemaBuilder ({made.name}) differs from name in source "
                f"schema ({name})"
            )
        schema = made.but(
            optional=made.optional or optional,
            name=made.name if made.name is not None else name,
            version=number,
            doc=doc if isinstance(doc, str) else None,
            parameters=parameters or None,
        )
        if default is not _NONE and default is not None:
            try:
                value = self._default(schema, type, default)
                check(schema.but(optional=True), value)
                schema = schema.but(default=value)
            except (DataError, KeyError, TypeError, ValueError, AttributeError):
                pass  # a default that is none is left out, as Confluent's leave it out
        return schema

    def _add_parameters(self, props: dict[str, Any], parameters: dict[str, str]) -> None:
        said = props.get("connect.parameters")
        if self._mapping.metadata and said is not None:
            if not isinstance(said, dict):
                raise DataError(f"Expected JSON object for schema parameters but found: {said}")
            for name, text in said.items():
                if not isinstance(text, str):
                    raise DataError(f"Expected schema parameter values to be strings but found: {text}")
                parameters[name] = text
        parameters.update({name: str(text) for name, text in props.items() if name.startswith("avro")})

    def _default(self, schema: Schema, type: avro.AvroType, value: Any) -> Any:
        """A default from JSON, as rows have values."""
        if value is None:
            return None
        if isinstance(type, avro.Union):
            first = type.branches[0]
            if is_union(schema):
                if first.kind == "null":
                    return None
                name = branch_field(first, self._mapping)
                field = schema.field(name)
                assert field is not None
                return {one.name: None for one in schema.fields} | {name: self._default(field.schema, first, value)}
            others = [branch for branch in type.branches if branch.kind != "null"]
            return self._default(schema, others[0], value)
        if schema.logical == DECIMAL:
            return decimal_of(int.from_bytes(value.encode("latin-1"), "big", signed=True), scale_of(schema))
        match schema.type:
            case Type.BYTES:
                return value.encode("latin-1")
            case Type.INT8 | Type.INT16 | Type.INT32 | Type.INT64:
                return wrapped(int(value), int(schema.type.value[3:]))
            case Type.FLOAT32:
                return narrowed(float(value))
            case Type.FLOAT64:
                return float(value)
            case Type.ARRAY:
                assert isinstance(type, avro.Array) and schema.items is not None
                return [self._default(schema.items, type.items, item) for item in value]
            case Type.MAP:
                assert schema.items is not None
                if isinstance(type, avro.Map):
                    return [(key, self._default(schema.items, type.values, item)) for key, item in value.items()]
                raise DataError("the default of a map is no JSON object")
            case Type.STRUCT:
                assert isinstance(type, avro.Record)
                return {
                    field.name: self._default(field.schema, type.by_name[field.name].type, value.get(field.name))
                    for field in schema.fields
                }
        return value


def is_map_entry(type: avro.AvroType) -> bool:
    if not isinstance(type, avro.Record):
        return False
    if type.full_name != f"{NAMESPACE}.{MAP_ENTRY}" and type.props.get("connect.internal.type") != MAP_ENTRY:
        return False
    if len(type.fields) != 2 or not {"key", "value"} <= type.by_name.keys():
        raise DataError(
            "Found map encoded as array of key-value pairs, but array elements do not match the expected format."
        )
    return True


def branch_field(type: avro.AvroType, mapping: Mapping) -> str:
    """The field that stands for a branch of a union."""
    if not isinstance(type, avro.Named):
        return type.kind
    return type.full_name if mapping.enhanced else mapping.full_name(type.name)[1]
