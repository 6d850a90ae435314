"""Avro types as text, in the forms that there are, and fingerprints of them.

| form | is | for |
| --- | --- | --- |
| `java_text` | Java's `Schema.toString` | what a registry stores and gives out |
| `normal_tree` | Confluent's `normalize=true`: sorted properties, full names | schemas that mean the same |
| `parsing_form` | the specification's Parsing Canonical Form: what a reader of bytes needs | fingerprints |
"""

import hashlib
from collections.abc import Collection
from typing import Any, Final, Literal

from ottla.schemas.avro.types import (
    TYPE_NAMES,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Record,
    Union,
)
from ottla.schemas.json_text import java_float, json_string, sorted_json, utf_16_order, write_json
from ottla.schemas.schema import InvalidSchema


def java_text(type: AvroType, known: Collection[str] = ()) -> str:
    """As Java's `Schema.toString` writes it. Types of a name in `known` are named and not defined."""
    return write_json(java_tree(type, known))


def java_tree(type: AvroType, known: Collection[str] = ()) -> Any:
    """The JSON that `java_text` is."""
    return _java(type, set(known), None)


def _java(type: AvroType, known: set[str], namespace: str | None) -> Any:
    if isinstance(type, Union):
        return [_java(branch, known, namespace) for branch in type.branches]
    if isinstance(type, Array):
        return {"type": "array", "items": _java(type.items, known, namespace), **type.props}
    if isinstance(type, Map):
        return {"type": "map", "values": _java(type.values, known, namespace), **type.props}
    if not isinstance(type, Named):
        return {"type": type.kind, **type.props} if type.props else type.kind
    if type.full_name in known:
        return _qualified(type.name, type.namespace, namespace)
    known.add(type.full_name)
    is_error = isinstance(type, Record) and type.is_error
    tree: dict[str, Any] = {"type": "error" if is_error else type.kind, "name": type.name}
    if type.namespace is not None:
        if type.namespace != namespace:
            tree["namespace"] = type.namespace
    elif namespace is not None:
        tree["namespace"] = ""
    if type.doc is not None:
        tree["doc"] = type.doc
    if isinstance(type, Record):
        tree["fields"] = [_java_field(field, known, type.namespace) for field in type.fields]
    elif isinstance(type, Enum):
        tree["symbols"] = type.symbols
        if type.default is not None:
            tree["default"] = type.default
    else:
        assert isinstance(type, Fixed)
        tree["size"] = type.size
    tree.update(type.props)
    if type.aliases:
        tree["aliases"] = [_qualified(name, space, type.namespace) for name, space in type.aliases]
    return tree


def _java_field(field: Field, known: set[str], namespace: str | None) -> Any:
    tree = {"name": field.name, "type": _java(field.type, known, namespace)}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.has_default:
        tree["default"] = field.default
    if field.order != "ascending":
        tree["order"] = field.order
    if field.aliases:
        tree["aliases"] = field.aliases
    tree.update(field.props)
    return tree


def _qualified(name: str, space: str | None, namespace: str | None) -> str:
    """The name as it must be written inside `namespace`: in full, unless it is of the same and no keyword."""
    if space is not None and space == namespace and name not in TYPE_NAMES:
        return name
    return f"{space}.{name}" if space is not None else name


def normal_tree(type: AvroType, known: Collection[str] = ()) -> Any:
    """The JSON of the normalized schema. What it says is parsed once more, and then written by `java_text`."""
    return _normal(type, set(known))


def _normal(type: AvroType, known: set[str]) -> Any:
    if isinstance(type, Union):
        return [_normal(branch, known) for branch in type.branches]
    if isinstance(type, Array):
        return {"type": "array", "items": _normal(type.items, known), **_normal_props(type)}
    if isinstance(type, Map):
        return {"type": "map", "values": _normal(type.values, known), **_normal_props(type)}
    if not isinstance(type, Named):
        return {"type": type.kind, **_normal_props(type)} if type.props else type.kind
    if type.full_name in known:
        return type.full_name
    known.add(type.full_name)
    # In Confluent's text an error is a record from here on, and a name of the empty namespace is its full name.
    tree: dict[str, Any] = {"name": type.full_name, "type": type.kind}
    if isinstance(type, Enum):
        tree["symbols"] = type.symbols
    elif isinstance(type, Fixed):
        tree["size"] = type.size
    else:
        assert isinstance(type, Record)
        tree["fields"] = [_normal_field(field, known) for field in type.fields]
    props = _normal_props(type)
    if type.doc:
        tree["doc"] = type.doc
    if type.aliases:
        tree["aliases"] = sorted(type.alias_names(), key=utf_16_order)
    if isinstance(type, Enum) and type.default is not None:
        tree["default"] = type.default
    return {**tree, **props}


def _normal_field(field: Field, known: set[str]) -> Any:
    tree: dict[str, Any] = {"name": field.name, "type": _normal(field.type, known), "order": field.order}
    if field.doc is not None:
        tree["doc"] = field.doc
    if field.aliases:
        tree["aliases"] = sorted(field.aliases, key=utf_16_order)
    if field.has_default and (default := _normal_default(field.default, field.type)) is not _NOTHING:
        tree["default"] = default
    return {**tree, **sorted_json(field.props)}


def _normal_props(type: AvroType) -> dict[str, Any]:
    props: dict[str, Any] = {}
    if type.logical is not None:
        props["logicalType"] = type.logical.name
        if type.logical.name == "decimal":
            props["precision"] = type.logical.precision
            if type.logical.scale:
                props["scale"] = type.logical.scale
    props.update(sorted_json(type.props))
    return props


_NOTHING: Final = object()


def _normal_default(default: Any, type: AvroType | None) -> Any:
    """The default as a value of its type, written as JSON again: numbers have the form of the type, and what is no
    value of it is left out, as Java's `Field.defaultVal` does."""
    if default is None:
        return None
    if isinstance(type, Union):
        for branch in type.branches:
            try:
                value = _NOTHING if branch.kind == "null" else _normal_default(default, branch)
            except InvalidSchema:
                continue
            if value is not _NOTHING:
                return value
        return _NOTHING
    kind = type.kind if type is not None else None
    if isinstance(default, bool):
        return default
    if isinstance(default, int):
        return _normal_int(default, kind)
    if isinstance(default, float):
        return default if kind in (None, "double") else _single(default) if kind == "float" else _NOTHING
    if isinstance(default, str):
        if kind in ("bytes", "fixed"):
            return default.encode("latin-1", "replace").decode("latin-1")
        return default if kind in (None, "string", "enum") else _NOTHING
    if isinstance(default, list):
        if type is not None and not isinstance(type, Array):
            raise InvalidSchema(f"Not an array: {type.full_name}")
        return [_kept(_normal_default(one, type.items if type is not None else None)) for one in default]
    members: dict[str, Any] = {}
    for name in sorted(default, key=utf_16_order):
        member: AvroType | None = None
        if isinstance(type, Map):
            member = type.values
        elif isinstance(type, Record):
            if name not in type.by_name:
                raise InvalidSchema(f"a default of {type.full_name} has {name}, which is no field of it")
            member = type.by_name[name].type
        members[name] = _kept(_normal_default(default[name], member))
    return members


def _normal_int(default: int, kind: str | None) -> Any:
    if not -(2**63) <= default < 2**63:
        return _NOTHING  # A BigInteger is no value of any type.
    if kind in (None, "long", "int"):
        return default
    return float(default) if kind == "double" else _single(float(default)) if kind == "float" else _NOTHING


def _single(value: float) -> float:
    """A double that is written with the digits of the float."""
    text = java_float(value)
    return float(text.strip('"').replace("Infinity", "inf"))


def _kept(value: Any) -> Any:
    if value is _NOTHING:
        raise InvalidSchema("Unknown datum class in a default")
    return value


def parsing_form(type: AvroType) -> str:
    """The Parsing Canonical Form of the specification."""
    return _parsing(type, set())


def _parsing(type: AvroType, known: set[str]) -> str:
    if isinstance(type, Union):
        return f"[{','.join(_parsing(branch, known) for branch in type.branches)}]"
    if isinstance(type, Array):
        return f'{{"type":"array","items":{_parsing(type.items, known)}}}'
    if isinstance(type, Map):
        return f'{{"type":"map","values":{_parsing(type.values, known)}}}'
    quoted = f'"{type.full_name}"'
    if not isinstance(type, Named) or type.full_name in known:
        return quoted
    known.add(type.full_name)
    head = f'{{"name":{quoted},"type":"{type.kind}"'
    if isinstance(type, Enum):
        return f'{head},"symbols":[{",".join(map(json_string, type.symbols))}]}}'
    if isinstance(type, Fixed):
        return f'{head},"size":{type.size}}}'
    assert isinstance(type, Record)
    fields = (f'{{"name":"{field.name}","type":{_parsing(field.type, known)}}}' for field in type.fields)
    return f'{head},"fields":[{",".join(fields)}]}}'


Fingerprint = Literal["CRC-64-AVRO", "MD5", "SHA-256"]


def fingerprint(type: AvroType, algorithm: Fingerprint = "CRC-64-AVRO") -> bytes:
    """What the specification recommends to know a schema by. The CRC is little-endian, as in single-object encoding."""
    form = parsing_form(type).encode()
    if algorithm == "CRC-64-AVRO":
        return crc_64_avro(form).to_bytes(8, "little")
    return hashlib.new(algorithm.replace("-", "").lower(), form, usedforsecurity=False).digest()


_EMPTY: Final = 0xC15D213AA4D7A795


def _crc_row(crc: int) -> int:
    for _ in range(8):
        crc = (crc >> 1) ^ (_EMPTY if crc & 1 else 0)
    return crc


_CRC_TABLE: Final = tuple(map(_crc_row, range(256)))


def crc_64_avro(content: bytes) -> int:
    """The 64-bit Rabin fingerprint."""
    crc = _EMPTY
    for byte in content:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc
