"""JSON to Avro types, with the strictness of Apache Avro 1.12 for Java.

Theory of operation. Types are made from the inside out, and a name is known once its definition has ended: a name that
is used before, or inside, becomes an `Unresolved` and is replaced at the end, when all are known. That is how Java does
it, and it shows: of a type that is only referred to yet, a default may be nothing but an object.

What may differ is how strict names are. A schema that is being registered (`as_new`) has ASCII names and namespaces and
sound defaults; one that was registered long ago has letters of any script, and whatever defaults it has.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from ottla.schemas.avro.types import (
    NO_DEFAULT,
    PRIMITIVES,
    Array,
    AvroType,
    DeeperThan,
    Enum,
    Equality,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Order,
    Primitive,
    Record,
    Union,
    Unresolved,
)
from ottla.schemas.json_text import read_json, write_json
from ottla.schemas.schema import InvalidSchema, Limits

_RESERVED: Final = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases")
)
_ENUM_RESERVED: Final = _RESERVED | {"default"}
_FIELD_RESERVED: Final = frozenset(("default", "doc", "name", "order", "type", "aliases"))

_ASCII_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JAVA_DOUBLE: Final = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)[\x00-\x20]*"
)

_JAVA_CLASSES: Final = ("avro.java.string", "java-class", "java-key-class", "java-element-class")

_LONG_KINDS: Final = {
    "time-micros": "long",
    "timestamp-millis": "long",
    "timestamp-micros": "long",
    "timestamp-nanos": "long",
    "local-timestamp-millis": "long",
    "local-timestamp-micros": "long",
    "local-timestamp-nanos": "long",
    "date": "int",
    "time-millis": "int",
    "big-decimal": "bytes",
}
"""Logical types that need nothing but their kind."""


class Parser:
    """Parses texts one after the other; each knows the named types of those before it."""

    def __init__(self, limits: Limits, as_new: bool) -> None:
        self._limits = limits
        self._as_new = as_new
        self._known: dict[str, Named] = {}
        self._definitions = 0
        self._path: list[str] = []

    def parse(self, text: str) -> AvroType:
        """The type that a text is. Raises `InvalidSchema`."""
        tree = read_json(text, self._limits, comments=True)
        self._path = []
        parsed = self._type(tree, None)
        return _Resolving(self._known, self._limits, self._as_new).resolved(parsed)

    def _fault(self, reason: str) -> InvalidSchema:
        return InvalidSchema(reason, "/" + "/".join(self._path) if self._path else "")

    def _count(self, number: int = 1) -> None:
        self._definitions += number
        if self._definitions > self._limits.definitions:
            raise self._fault(f"more than {self._limits.definitions} types, fields and symbols")

    def _type(self, node: Any, namespace: str | None) -> AvroType:
        self._count()
        if isinstance(node, str):
            return self._find(node, namespace)
        if isinstance(node, list):
            return self._union(node, namespace)
        if not isinstance(node, dict):
            raise self._fault(f"Schema not yet supported: {write_json(node)}")
        kind = node.get("type")
        if not isinstance(kind, str):
            raise self._fault(f"No type: {_shown(node)}")
        if kind in PRIMITIVES:
            parsed: AvroType = Primitive(kind)
            self._set_props(parsed, node, _RESERVED)
            return parsed
        if (parse_complex := _COMPLEX.get(kind)) is not None:
            return parse_complex(self, node, namespace)
        if not self._as_new and (found := self._known.get(_full_name(kind, namespace))) is not None:
            return found  # Avro before 1.12 took an object for a reference.
        raise self._fault(
            'A schema "type" MUST be a primitive type or one of "enum", "fixed", "record", "error", "array" or "map".'
        )

    def _find(self, name: str, namespace: str | None) -> AvroType:
        if name in PRIMITIVES:
            return Primitive(name)
        full_name = _full_name(name, namespace)
        found = self._known.get(full_name) or self._known.get(name)
        if found is not None:
            return found
        return Unresolved(full_name)

    def _record(self, node: dict[str, Any], namespace: str | None) -> AvroType:
        name, space = self._name(node, namespace)
        record = Record(name, space, _text(node, "doc"), is_error=node["type"] == "error")
        self._refuse_primitive_name(record)
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise self._fault(f"Record has no fields: {_shown(node)}")
        self._path.append("fields")
        for position, one in enumerate(fields):
            self._path.append(str(position))
            field = self._field(one, space, position)
            if field.name in record.by_name:
                raise self._fault(f"Duplicate field {field.name} in record {record.full_name}")
            record.fields.append(field)
            record.by_name[field.name] = field
            self._path.pop()
        self._path.pop()
        self._set_props(record, node, _RESERVED)
        self._set_aliases(record, node)
        self._put(record)
        return record

    def _field(self, node: Any, namespace: str | None, position: int) -> Field:
        name = _text(node, "name") if isinstance(node, dict) else None
        if name is None:
            raise self._fault(f"No field name: {_shown(node)}")
        if "type" not in node:
            raise self._fault(f"No field type: {_shown(node)}")
        self._path.append("type")
        type = self._type(node["type"], namespace)
        self._path.pop()
        field = Field(self._checked_name(name), type, position)
        field.doc = _text(node, "doc")
        if "order" in node:
            order = node["order"].lower() if isinstance(node["order"], str) else None
            if order not in ("ascending", "descending", "ignore"):
                raise self._fault(f"No such order: {_shown(node['order'])}")
            field.order = cast("Order", order)
        if "default" in node:
            field.default = self._default(field, node["default"])
        field.props = {key: value for key, value in node.items() if key not in _FIELD_RESERVED}
        field.aliases = self._aliases(node)
        return field

    def _default(self, field: Field, default: Any) -> Any:
        if field.type.kind in ("float", "double") and isinstance(default, str):
            if not _JAVA_DOUBLE.fullmatch(default):
                raise self._fault(f'For input string: "{default}"')
            default = float(default.strip("".join(map(chr, range(33)))).rstrip("fFdD"))
        if self._as_new and not _is_valid_default(field.type, default, DeeperThan(self._limits.type_depth)):
            raise self._fault(
                f"Invalid default for field {field.name}: {_shown(default)} not a {_described(field.type)}"
            )
        return default

    def _enum(self, node: dict[str, Any], namespace: str | None) -> AvroType:
        name, space = self._name(node, namespace)
        enum = Enum(name, space, _text(node, "doc"))
        symbols = node.get("symbols")
        if not isinstance(symbols, list):
            raise self._fault(f"Enum has no symbols: {_shown(node)}")
        self._refuse_primitive_name(enum)
        self._count(len(symbols))
        for symbol in symbols:
            self._checked_name(symbol if isinstance(symbol, str) else None)
        if len(set(symbols)) < len(symbols):
            seen: set[str] = set()
            twice = next(symbol for symbol in symbols if symbol in seen or seen.add(symbol))  # type: ignore[func-returns-value]
            raise self._fault(f"Duplicate enum symbol: {twice}")
        enum.symbols = symbols
        enum.default = _text(node, "default")
        if enum.default is not None and enum.default not in set(symbols):
            raise self._fault(
                f"The Enum Default: {enum.default} is not in the enum symbol set: [{', '.join(symbols[:100])}]"
            )
        self._set_props(enum, node, _ENUM_RESERVED)
        self._set_aliases(enum, node)
        self._put(enum)
        return enum

    def _fixed(self, node: dict[str, Any], namespace: str | None) -> AvroType:
        name, space = self._name(node, namespace)
        size = node.get("size")
        if type(size) is not int or not -(2**31) <= size < 2**31:
            raise self._fault(f"Invalid or no size: {_shown(node)}")
        if size < 0:
            raise self._fault(f"Malformed data. Length is negative: {size}")
        fixed = Fixed(name, space, _text(node, "doc"), size)
        self._refuse_primitive_name(fixed)
        self._set_props(fixed, node, _RESERVED)
        self._set_aliases(fixed, node)
        self._put(fixed)
        return fixed

    def _array(self, node: dict[str, Any], namespace: str | None) -> AvroType:
        if "items" not in node:
            raise self._fault(f"Array has no items type: {_shown(node)}")
        self._path.append("items")
        array = Array(self._type(node["items"], namespace))
        self._path.pop()
        self._set_props(array, node, _RESERVED)
        return array

    def _map(self, node: dict[str, Any], namespace: str | None) -> AvroType:
        if "values" not in node:
            raise self._fault(f"Map has no values type: {_shown(node)}")
        self._path.append("values")
        map = Map(self._type(node["values"], namespace))
        self._path.pop()
        self._set_props(map, node, _RESERVED)
        return map

    def _union(self, node: list[Any], namespace: str | None) -> AvroType:
        branches: list[AvroType] = []
        for place, branch in enumerate(node):
            self._path.append(str(place))
            branches.append(self._type(branch, namespace))
            self._path.pop()
        _refuse_bad_union(branches, self._fault)
        return Union(branches)

    def _name(self, node: dict[str, Any], namespace: str | None) -> tuple[str, str | None]:
        name = _text(node, "name")
        if name is None:
            raise self._fault(f"No name in schema: {_shown(node)}")
        given = _text(node, "namespace")
        space = given if given is not None else namespace
        if "." in name:
            space, name = name.rsplit(".", 1)
        return self._checked_name(name), space or None

    def _refuse_primitive_name(self, named: Named) -> None:
        if named.full_name in PRIMITIVES:
            raise self._fault(f"Schemas may not be named after primitives: {named.full_name}")

    def _checked_name(self, name: str | None) -> str:
        if name is None:
            raise self._fault("Null name")
        if not name:
            raise self._fault("Empty name")
        if _ASCII_NAME.fullmatch(name):
            return name
        if self._as_new:
            good_start = name[0].isascii() and (name[0].isalpha() or name[0] == "_")
            raise self._fault(f"Illegal {'character in' if good_start else 'initial character'}: {name}")
        if not (_is_letter(name[0]) or name[0] == "_"):
            raise self._fault(f"Illegal initial character: {name}")
        if not all(_is_letter(c) or _is_digit(c) or c == "_" for c in name):
            raise self._fault(f"Illegal character in: {name}")
        return name

    def _set_props(self, parsed: AvroType, node: dict[str, Any], reserved: frozenset[str]) -> None:
        parsed.props = {key: value for key, value in node.items() if key not in reserved}
        if isinstance(parsed, Record | Array | Map):
            for key, value in parsed.props.items():
                if _has_large_integer(value):  # Java copies the properties of these, and cannot copy that.
                    raise self._fault(f"Can't set a property to null: {key}")
        if isinstance(name := parsed.props.get("logicalType"), str):
            parsed.logical = _logical(name, parsed)
            if parsed.logical is not None and isinstance(parsed, Array | Record):
                # Java copies what contains others once more when names are resolved, and begins with the logical type.
                parsed.props = {"logicalType": name, **parsed.props}

    def _aliases(self, node: dict[str, Any]) -> list[str]:
        if "aliases" not in node:
            return []
        aliases = node["aliases"]
        if not isinstance(aliases, list):
            raise self._fault(f"aliases not an array: {_shown(node)}")
        for alias in aliases:
            if not isinstance(alias, str):
                raise self._fault(f"alias not a string: {_shown(alias)}")
        self._count(len(aliases))
        return list(dict.fromkeys(aliases))

    def _set_aliases(self, named: Named, node: dict[str, Any]) -> None:
        aliases: dict[tuple[str, str | None], None] = {}
        for alias in self._aliases(node):
            space, name = alias.rsplit(".", 1) if "." in alias else (named.namespace, alias)
            aliases[self._checked_name(name) if self._as_new else name, space or None] = None
        named.aliases = list(aliases)

    def _put(self, named: Named) -> None:
        full_name = named.full_name
        if self._as_new:
            for part in (named.namespace or "").split(".") if named.namespace else ():
                try:
                    self._checked_name(part)
                except InvalidSchema as error:
                    raise self._fault(f'Namespace part "{part}" is invalid: {error.reason}') from None
        known = self._known.setdefault(full_name, named)
        if known is not named and not Equality(self._limits.type_depth).same(named, known):
            raise self._fault(f"Can't redefine: {full_name}")


_COMPLEX: Final[dict[str, Callable[[Parser, dict[str, Any], str | None], AvroType]]] = {
    "record": Parser._record,
    "error": Parser._record,
    "enum": Parser._enum,
    "fixed": Parser._fixed,
    "array": Parser._array,
    "map": Parser._map,
}


class _Resolving:
    """Puts definitions where there were names, and sees that no chain of types is too deep. It goes through everything
    that was parsed, each type once."""

    def __init__(self, known: dict[str, Named], limits: Limits, as_new: bool) -> None:
        self._known = known
        self._limits = limits
        self._as_new = as_new
        self._done: set[int] = set()

    def resolved(self, parsed: AvroType) -> AvroType:
        roots = [*self._known.values(), parsed]
        if self._as_new:
            _Defaults(self.looked_up, DeeperThan(self._limits.type_depth)).check(roots)
        result = self.looked_up(parsed)
        for one in (*self._known.values(), result):
            self._visit(one, DeeperThan(self._limits.type_depth))
        return result

    def looked_up(self, one: AvroType) -> AvroType:
        if not isinstance(one, Unresolved):
            return one
        found = self._known.get(one.looked_for)
        if found is None:
            raise InvalidSchema(f"Undefined schema: {one.looked_for}")
        return found

    def _visit(self, one: AvroType, deeper: DeeperThan) -> None:
        if id(one) in self._done or isinstance(one, Primitive | Enum | Fixed):
            return
        self._done.add(id(one))
        with deeper:
            if isinstance(one, Record):
                for field in one.fields:
                    field.type = self.looked_up(field.type)
                    self._visit(field.type, deeper)
            elif isinstance(one, Array):
                one.items = self.looked_up(one.items)
                self._visit(one.items, deeper)
            elif isinstance(one, Map):
                one.values = self.looked_up(one.values)
                self._visit(one.values, deeper)
            elif isinstance(one, Union):
                one.branches[:] = map(self.looked_up, one.branches)
                _refuse_bad_union(one.branches, InvalidSchema)
                for branch in one.branches:
                    self._visit(branch, deeper)


class _Defaults:
    """Checks defaults once more, now that it is known what the names are.

    A default inside a recursive record may be one for a record whose own fields Java has not set yet, and is refused
    then. Which records are done is a matter of the order in which Java goes through them, so this is that order: from
    each type that was defined, the first first; a name that was not known leads at once to its definition, from which
    everything that is not done is looked at anew.
    """

    def __init__(self, looked_up: Callable[[AvroType], AvroType], deeper: DeeperThan) -> None:
        self.looked_up = looked_up
        self._deeper = deeper
        self._begun: set[int] = set()
        self._done: set[int] = set()

    def check(self, roots: Iterable[AvroType]) -> None:
        for root in roots:
            self._visit(root, set())

    def _visit(self, one: AvroType, visited: set[int]) -> None:
        if id(one) in visited or id(one) in self._done or isinstance(one, Primitive | Enum | Fixed):
            return
        visited.add(id(one))
        with self._deeper:
            if isinstance(one, Unresolved):
                self._begun.add(id(one))
                definition = self.looked_up(one)
                if id(definition) not in self._begun:
                    self._visit(definition, set())
            elif isinstance(one, Record):
                self._begun.add(id(one))
                for field in one.fields:
                    self._visit(field.type, visited)
                if id(one) not in self._done:
                    self._check_record(one)
            elif isinstance(one, Array):
                self._visit(one.items, visited)
            elif isinstance(one, Map):
                self._visit(one.values, visited)
            elif isinstance(one, Union):
                for branch in reversed(one.branches):
                    self._visit(branch, visited)

    def _check_record(self, record: Record) -> None:
        for field in record.fields:
            if field.has_default and not _is_valid_default(field.type, field.default, self._deeper, self):
                raise InvalidSchema(
                    f"Invalid default for field {field.name}: {_shown(field.default)} not a {_described(field.type)}"
                )
        self._done.add(id(record))

    def refuse_begun(self, record: Record) -> None:
        if id(record) not in self._done:
            raise InvalidSchema(f"Schema fields not set yet: a default is of {record.full_name}, and stands inside it")


def _refuse_bad_union(branches: Iterable[AvroType], fault: Callable[[str], InvalidSchema]) -> None:
    names: set[str] = set()
    for branch in branches:
        if isinstance(branch, Union):
            raise fault("Nested union: a union cannot be a branch of another")
        if branch.full_name in names:
            raise fault(f"Duplicate in union:{branch.full_name}")
        names.add(branch.full_name)


def _is_valid_default(type: AvroType, default: Any, deeper: DeeperThan, defaults: _Defaults | None = None) -> bool:
    """Whether a default is one for this type. Of a union, any branch will do. Without `defaults`, what a name stands
    for is not known yet: then it is a record, and any object will do."""
    if defaults is not None:
        type = defaults.looked_up(type)
    kind = type.kind
    if kind in ("string", "bytes", "enum", "fixed"):
        return isinstance(default, str)
    if kind == "int" or kind == "long":
        bits = 31 if kind == "int" else 63
        return isinstance(default, int) and not isinstance(default, bool) and -(1 << bits) <= default < 1 << bits
    if kind == "float" or kind == "double":
        return isinstance(default, int | float) and not isinstance(default, bool)
    if kind == "boolean":
        return isinstance(default, bool)
    if kind == "null":
        return default is None
    with deeper:
        if isinstance(type, Array):
            return isinstance(default, list) and all(
                _is_valid_default(type.items, x, deeper, defaults) for x in default
            )
        if isinstance(type, Map):
            return isinstance(default, dict) and all(
                _is_valid_default(type.values, x, deeper, defaults) for x in default.values()
            )
        if isinstance(type, Union):
            return any(_is_valid_default(branch, default, deeper, defaults) for branch in type.branches)
        if not isinstance(default, dict):
            return False
        if isinstance(type, Unresolved):
            return True
        assert isinstance(type, Record)
        if defaults is not None:
            defaults.refuse_begun(type)
        for field in type.fields:
            value = default.get(field.name, field.default)
            if value is NO_DEFAULT or not _is_valid_default(field.type, value, deeper, defaults):
                return False
        return True


def _logical(name: str, type: AvroType) -> Logical | None:
    """The logical type of this name, if it fits. Java has no logical types where another class is asked for."""
    if any(isinstance(type.props.get(prop), str) for prop in _JAVA_CLASSES):
        return None
    if name in _LONG_KINDS:
        return Logical(name) if type.kind == _LONG_KINDS[name] else None
    if name == "decimal":
        return _decimal(type)
    if name == "uuid":
        return Logical(name) if type.kind == "string" or (isinstance(type, Fixed) and type.size == 16) else None
    if name == "duration":
        return Logical(name) if isinstance(type, Fixed) and type.size == 12 else None
    # Two of Confluent's own.
    if name == "map" and isinstance(type, Array):
        items = type.items
        is_entry = isinstance(items, Record) and [field.name for field in items.fields] == ["key", "value"]
        return Logical(name) if is_entry else None
    if name == "variant" and isinstance(type, Record):
        kinds = {field.name: field.type.kind for field in type.fields}
        return Logical(name) if kinds == {"metadata": "bytes", "value": "bytes"} else None
    return None


def _decimal(type: AvroType) -> Logical | None:
    precision: Any = type.props.get("precision")
    scale: Any = type.props.get("scale", 0)
    if not _is_java_int(precision) or not _is_java_int(scale):
        return None
    if isinstance(type, Fixed):
        most = math.floor(math.log10(2) * (8 * type.size - 1))
    elif type.kind == "bytes":
        most = 2**31 - 1
    else:
        return None
    return Logical("decimal", precision, scale) if 0 < precision <= most and 0 <= scale <= precision else None


def _has_large_integer(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_large_integer, value.values()))
    if isinstance(value, list):
        return any(map(_has_large_integer, value))
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _is_java_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**31) <= value < 2**31


def _full_name(name: str, namespace: str | None) -> str:
    return f"{namespace}.{name}" if namespace is not None and "." not in name else name


def _text(node: dict[str, Any], key: str) -> str | None:
    value = node.get(key)
    return value if isinstance(value, str) else None


def _is_letter(character: str) -> bool:
    return character.isalpha() and ord(character) < 0x10000  # Java looks at halves of others, which are no letters.


def _is_digit(character: str) -> bool:
    return character.isdecimal() and ord(character) < 0x10000


def _shown(node: Any) -> str:
    """JSON for an error, which is never longer than a line or two."""
    text = write_json(node)
    return text if len(text) <= 300 else text[:300] + "…"


def _described(type: AvroType) -> str:
    from ottla.schemas.avro.text import java_text

    text = java_text(type)
    return text if len(text) <= 300 else text[:300] + "…"
