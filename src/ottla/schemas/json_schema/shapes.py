"""JSON Schemas as shapes: what a comparison looks at, the same for all drafts.

A schema of JSON says many things at once: `type`, `properties`, `oneOf`, `enum`. Confluent's registry compares it as
its libraries load it: one shape for each kind of value, and, where there are several, a combination of all. So that
is what is made here. `{"type": "string", "enum": ["a"]}` is allOf a string and an enum; `{"type": ["string",
"null"]}` is anyOf two.

References are resolved within the text and the texts that were given for it; nothing is ever fetched. A shape that
refers to itself is a `Reference`, which holds the shape that it leads to.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

from ottla.schemas.json_text import read_json, sorted_json, write_json
from ottla.schemas.schema import InvalidSchema, Limits

DRAFTS: Final = {
    f"{scheme}://json-schema.org/{name}": draft
    for scheme in ("http", "https")
    for name, draft in (
        ("draft-04/schema", 4),
        ("schema", 4),
        ("draft-06/schema", 6),
        ("draft-07/schema", 7),
        ("draft/2019-09/schema", 2019),
        ("draft/2020-12/schema", 2020),
    )
}
"""`$schema`, without its `#`, and the draft. What says none, or another, is read as draft 7."""

_META_SCHEMAS: Final = re.compile(
    r"https?://json-schema\.org/(?:draft-0[467]/schema|draft/(?:2019-09|2020-12)/.*|schema)"
)

_OBJECT_KEYWORDS: Final = (
    "properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
    "additionalProperties",
)  # fmt: skip
_ARRAY_KEYWORDS: Final = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems")
_NUMBER_KEYWORDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING_KEYWORDS: Final = ("minLength", "maxLength", "pattern", "format")
_COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONAL_KEYWORDS: Final = ("if", "then", "else")

_BASE: Final = "mem://input/"


class Shape:
    """One kind of value. `key` is its JSON in a fixed form: equal keys are equal schemas."""

    __slots__ = ("connect_type", "has_default", "key")

    def __init__(self) -> None:
        self.key = ""
        self.has_default = False
        self.connect_type: Any = None


class Empty(Shape):
    """Everything is valid: `{}` or true."""

    __slots__ = ()


class Never(Shape):
    """Nothing is valid: false."""

    __slots__ = ()


class String(Shape):
    __slots__ = ("max_length", "min_length", "pattern")

    def __init__(self) -> None:
        super().__init__()
        self.min_length: int | None = None
        self.max_length: int | None = None
        self.pattern: str | None = None


class Number(Shape):
    __slots__ = ("exclusive_maximum", "exclusive_minimum", "is_integer", "maximum", "minimum", "multiple_of")

    def __init__(self, is_integer: bool = False) -> None:
        super().__init__()
        self.is_integer = is_integer
        self.minimum: Decimal | None = None
        self.maximum: Decimal | None = None
        self.exclusive_minimum: Decimal | None = None
        self.exclusive_maximum: Decimal | None = None
        self.multiple_of: Decimal | None = None


class Boolean(Shape):
    __slots__ = ()


class Null(Shape):
    __slots__ = ()


class Const(Shape):
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Enum(Shape):
    __slots__ = ("values",)

    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.values = values


class Not(Shape):
    __slots__ = ("shape",)

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape


class Conditional(Shape):
    """`if`, `then` and `else`. Confluent's registry does not look into it."""

    __slots__ = ()


class Object(Shape):
    __slots__ = (
        "additional", "dependent_names", "dependent_shapes", "max_properties", "min_properties", "patterns",
        "permits_additional", "properties", "required", "unevaluated",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.properties: dict[str, Shape] = {}
        self.required: set[str] = set()
        self.min_properties: int | None = None
        self.max_properties: int | None = None
        self.permits_additional = True
        self.additional: Shape | None = None
        self.patterns: dict[str, Shape] = {}
        self.dependent_names: dict[str, set[str]] = {}
        self.dependent_shapes: dict[str, Shape] = {}
        self.unevaluated: Shape | None = None


class Array(Shape):
    __slots__ = (
        "additional", "all_items", "items", "max_contains", "max_items", "min_contains", "min_items",
        "permits_additional", "unevaluated", "unique",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.all_items: Shape | None = None
        self.items: list[Shape] | None = None
        self.permits_additional = True
        self.additional: Shape | None = None
        self.min_items: int | None = None
        self.max_items: int | None = None
        self.min_contains: int | None = None
        self.max_contains: int | None = None
        self.unique = False
        self.unevaluated: Shape | None = None


class Combined(Shape):
    """allOf, anyOf or oneOf several."""

    __slots__ = ("criterion", "shapes")

    def __init__(self, criterion: str, shapes: list[Shape]) -> None:
        super().__init__()
        self.criterion = criterion
        self.shapes = shapes


class Reference(Shape):
    """Leads to a shape, once everything is made."""

    __slots__ = ("target",)

    def __init__(self) -> None:
        super().__init__()
        self.target: Shape | None = None


_SAYS_NOTHING: Final = Empty()
"""What a reference to itself is. One for all: comparisons know shapes by their identity."""


def resolved(shape: Shape) -> Shape:
    """What a shape is, at the end of its references."""
    seen: set[int] = set()
    while isinstance(shape, Reference):
        if id(shape) in seen:
            return _SAYS_NOTHING
        seen.add(id(shape))
        assert shape.target is not None
        shape = shape.target
    return shape


def draft_of(tree: Any) -> int:
    """The draft that a schema is of."""
    said = tree.get("$schema") if isinstance(tree, dict) else None
    return DRAFTS.get(said.removesuffix("#"), 7) if isinstance(said, str) else 7


def shape_of(tree: Any, references: Mapping[str, str], limits: Limits) -> Shape:
    """The shape of a schema. Raises `InvalidSchema` for what no draft allows, and for references that lead nowhere."""
    return _Shaping(tree, references, limits).shape()


class _Document:
    """A text, and where in it the names are that others refer to."""

    def __init__(self, tree: Any, uri: str, draft: int) -> None:
        self.tree = _with_definitions(tree)
        self.draft = draft
        self.uri = uri
        self.ids: dict[str, tuple[Any, str]] = {}
        """Absolute URIs, with fragments, to schemas and the base within them."""
        self._index(self.tree, uri)

    def _index(self, tree: Any, uri: str) -> None:
        id_keyword = "id" if self.draft == 4 else "$id"
        todo: list[tuple[Any, str]] = [(tree, uri)]
        while todo:
            node, base = todo.pop()
            if isinstance(node, list):
                todo += ((one, base) for one in node)
                continue
            if not isinstance(node, dict):
                continue
            if isinstance(said := node.get(id_keyword), str):
                absolute = _joined(base, said)
                plain, fragment = urldefrag(absolute)
                self.ids.setdefault(absolute if fragment else plain, (node, plain))
                if not fragment:
                    base = plain
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(anchor := node.get(keyword), str):
                    self.ids.setdefault(f"{base}#{anchor}", (node, base))
            todo += ((one, base) for name, one in node.items() if name not in ("enum", "const", "default", "examples"))


def _with_definitions(tree: Any) -> Any:
    """`definitions` may be referred to as `$defs`, as in Confluent's registry."""
    if isinstance(tree, dict) and isinstance(old := tree.get("definitions"), dict) and old:
        new = tree.get("$defs", {})
        if isinstance(new, dict):
            return {**tree, "$defs": {**old, **new}}
    return tree


class _Shaping:
    def __init__(self, tree: Any, references: Mapping[str, str], limits: Limits) -> None:
        self._limits = limits
        self._references = references
        self._made = 0
        self._depth = 0
        self._draft = draft_of(tree)
        said = tree.get("id" if self._draft == 4 else "$id") if isinstance(tree, dict) else None
        base = _joined(_BASE, said) if isinstance(said, str) else _BASE
        self._root = _Document(tree, urldefrag(base)[0], self._draft)
        self._documents: dict[str, _Document] = {self._root.uri: self._root}
        self._by_place: dict[int, Reference] = {}
        self._todo: list[tuple[Reference, Any, str, _Document]] = []

    def shape(self) -> Shape:
        made = self._shape(self._root.tree, self._root.uri, self._root, ())
        while self._todo:
            reference, tree, base, document = self._todo.pop()
            reference.target = self._shape(tree, base, document, ("$ref",))
        return made

    def _fault(self, reason: str, path: tuple[str, ...]) -> InvalidSchema:
        return InvalidSchema(reason, "#/" + "/".join(path))

    def _shape(self, tree: Any, base: str, document: _Document, path: tuple[str, ...]) -> Shape:
        self._made += 1
        self._depth += 1
        if self._made > self._limits.definitions:
            raise self._fault(f"more than {self._limits.definitions} schemas within each other", path)
        if self._depth > self._limits.type_depth:
            raise self._fault(f"schemas lie deeper than {self._limits.type_depth} within each other", path)
        if isinstance(tree, bool):
            made: Shape = Empty() if tree else Never()
        elif isinstance(tree, dict):
            made = _Node(self, tree, base, document, path).shape()
            made.has_default = made.has_default or "default" in tree
            made.connect_type = tree.get("connect.type")
        else:
            raise self._fault(f"Expected type is one of JsonObject or Boolean, found: {_kind(tree)}", path)
        made.key = made.key or write_json(sorted_json(tree))
        self._depth -= 1
        return made

    def refer(self, target: Any, base: str, document: _Document, path: tuple[str, ...]) -> Reference:
        """The reference to what `target` names, from a schema with this base."""
        if not isinstance(target, str):
            raise self._fault(f"$ref is {_kind(target)}, and must be a string", path)
        tree, base, document = self._found(target, base, document, path)
        if id(tree) in self._by_place and isinstance(tree, dict):
            return self._by_place[id(tree)]
        reference = Reference()
        self._by_place[id(tree)] = reference
        self._todo.append((reference, tree, base, document))
        return reference

    def _found(self, target: str, base: str, document: _Document, path: tuple[str, ...]) -> tuple[Any, str, _Document]:
        absolute = _joined(base, target)
        if absolute in document.ids:
            tree, within = document.ids[absolute]
            return tree, within, document
        plain, fragment = urldefrag(absolute)
        if target.startswith("#"):
            holder, within = document.ids.get(base, (document.tree, document.uri))
            if base == document.uri:
                holder, within = document.tree, document.uri
            return self._pointed(holder, fragment, within, document, target, path)
        if plain in document.ids:
            holder, within = document.ids[plain]
            return self._pointed(holder, fragment, within, document, target, path)
        if plain == document.uri:
            return self._pointed(document.tree, fragment, document.uri, document, target, path)
        other = self._document(urldefrag(target)[0], plain, path)
        if other is None:
            return True, base, document  # A meta-schema: any schema is valid there.
        if absolute in other.ids:
            tree, within = other.ids[absolute]
            return tree, within, other
        if (named := f"{other.uri}#{fragment}") in other.ids and fragment:
            tree, within = other.ids[named]
            return tree, within, other
        return self._pointed(other.tree, fragment, other.uri, other, target, path)

    def _document(self, name: str, absolute: str, path: tuple[str, ...]) -> _Document | None:
        if absolute in self._documents:
            return self._documents[absolute]
        for one in (name, absolute, name.removeprefix("./"), absolute.removeprefix(_BASE), f"{name}#", f"{absolute}#"):
            if one in self._references:
                tree = read_json(self._references[one], self._limits, decimals=True)
                draft = draft_of(tree) if isinstance(tree, dict) and "$schema" in tree else self._draft
                found = self._documents[absolute] = _Document(tree, absolute, draft)
                return found
        for document in (*self._documents.values(),):
            if absolute in document.ids:
                tree, _ = document.ids[absolute]
                found = self._documents[absolute] = _Document(tree, absolute, document.draft)
                return found
        if _META_SCHEMAS.fullmatch(absolute):
            return None
        if absolute.startswith(("http://", "https://")):
            raise self._fault(f"Remote schema reference fetching over HTTP(S) is disabled: {absolute}", path)
        raise self._fault(f"no reference has the name {name}", path)

    def _pointed(
        self, tree: Any, fragment: str, base: str, document: _Document, target: str, path: tuple[str, ...]
    ) -> tuple[Any, str, _Document]:
        if fragment and not fragment.startswith("/"):
            raise self._fault(f"$ref {target} leads nowhere: there is no anchor {fragment}", path)
        id_keyword = "id" if document.draft == 4 else "$id"
        for part in fragment.split("/")[1:] if fragment else ():
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(tree, dict) and part in tree:
                tree = tree[part]
            elif isinstance(tree, list) and part.isdecimal() and int(part) < len(tree):
                tree = tree[int(part)]
            else:
                raise self._fault(f"$ref {target} leads nowhere: there is no {part}", path)
            if isinstance(tree, dict) and isinstance(said := tree.get(id_keyword), str):
                base = urldefrag(_joined(base, said))[0]
        return tree, base, document


class _Node:
    """Makes the shape of one schema that is an object."""

    def __init__(
        self, shaping: _Shaping, tree: dict[str, Any], base: str, document: _Document, path: tuple[str, ...]
    ) -> None:
        self._shaping = shaping
        self._tree = tree
        self._document = document
        self._path = path
        self._is_modern = document.draft > 7
        said = tree.get("id" if document.draft == 4 else "$id")
        # Beside a $ref, drafts up to 7 see nothing else.
        if isinstance(said, str) and path and (self._is_modern or "$ref" not in tree):
            base = urldefrag(_joined(base, said))[0]
        self._base = base

    def _fault(self, reason: str, *path: str) -> InvalidSchema:
        return InvalidSchema(reason, "#/" + "/".join((*self._path, *path)))

    def _child(self, tree: Any, *path: str) -> Shape:
        return self._shaping._shape(tree, self._base, self._document, (*self._path, *path))

    def shape(self) -> Shape:
        tree = self._tree
        if "$ref" in tree and not self._is_modern:
            return self._refer("$ref")
        parts: list[Shape] = []
        if self._is_modern:
            parts += (self._refer(word) for word in ("$ref", "$dynamicRef", "$recursiveRef") if word in tree)
        if "enum" in tree:
            if not isinstance(tree["enum"], list):
                raise self._fault(f"enum is {_kind(tree['enum'])}, and must be an array", "enum")
            parts.append(Enum(tree["enum"]))
        parts += (self._combined(word) for word in _COMBINATIONS if word in tree)
        if "not" in tree:
            parts.append(Not(self._child(tree["not"], "not")))
        if "const" in tree and self._document.draft != 4:
            parts.append(Const(tree["const"]))
        parts += self._typed()
        if self._document.draft >= 7 and any(word in tree for word in _CONDITIONAL_KEYWORDS):
            for word in _CONDITIONAL_KEYWORDS:
                if word in tree:
                    self._child(tree[word], word)
            parts.append(Conditional())
        if not parts:
            return Empty()
        if len(parts) == 1:
            return parts[0]
        for place, part in enumerate(parts):
            part.key = part.key or f"{place} {write_json(sorted_json(tree))}"
        return Combined("allOf", parts)

    def _refer(self, word: str) -> Reference:
        """A reference of this schema's own: it may say more, a default for instance."""
        reference = Reference()
        reference.target = self._shaping.refer(self._tree[word], self._base, self._document, (*self._path, word))
        reference.key = write_json({"$ref": self._tree[word]})
        return reference

    def _combined(self, word: str) -> Shape:
        trees = self._tree[word]
        if not isinstance(trees, list):
            raise self._fault(f"{word} is {_kind(trees)}, and must be an array", word)
        return Combined(word, [self._child(one, word, str(place)) for place, one in enumerate(trees)])

    def _typed(self) -> list[Shape]:
        """The shape that `type` says, and those that other keywords imply beside it."""
        tree = self._tree
        makers = {
            "array": (self._array_keywords(), self._array),
            "object": (self._object_keywords(), self._object),
            "number": (_NUMBER_KEYWORDS, self._number),
            "string": (_STRING_KEYWORDS, self._string),
        }
        types = tree.get("type", [])
        named = [types] if isinstance(types, str) else types
        if not isinstance(named, list):
            raise self._fault(f"type is {_kind(types)}, and must be a string or an array", "type")
        shapes: list[Shape] = [self._of_type(name) for name in named]
        if isinstance(types, list) and "type" in tree:
            for place, shape in enumerate(shapes):
                shape.key = f"{place} of {types}"
            shapes = [Combined("anyOf", shapes)]
        said = {"number" if name == "integer" else name for name in named}
        for name, (keywords, make) in makers.items():
            if name not in said and any(word in tree for word in keywords):
                shapes.append(make())
        return shapes

    def _of_type(self, name: Any) -> Shape:
        match name:
            case "string":
                return self._string()
            case "integer":
                return self._number(is_integer=True)
            case "number":
                return self._number()
            case "boolean":
                return Boolean()
            case "null":
                return Null()
            case "array":
                return self._array()
            case "object":
                return self._object()
            case _:
                raise self._fault(f"unknown type: [{name if isinstance(name, str) else _kind(name)}]", "type")

    def _object_keywords(self) -> tuple[str, ...]:
        if self._is_modern:
            return (
                *_OBJECT_KEYWORDS,
                "propertyNames",
                "dependentRequired",
                "dependentSchemas",
                "unevaluatedProperties",
            )
        return _OBJECT_KEYWORDS if self._document.draft == 4 else (*_OBJECT_KEYWORDS, "propertyNames")

    def _array_keywords(self) -> tuple[str, ...]:
        if self._is_modern:
            return (*_ARRAY_KEYWORDS, "contains", "prefixItems", "unevaluatedItems")
        return _ARRAY_KEYWORDS if self._document.draft == 4 else (*_ARRAY_KEYWORDS, "contains")

    def _string(self) -> String:
        string = String()
        string.min_length = self._integer("minLength")
        string.max_length = self._integer("maxLength")
        pattern = self._tree.get("pattern")
        if pattern is not None and not isinstance(pattern, str):
            raise self._fault(f"pattern is {_kind(pattern)}, and must be a string", "pattern")
        string.pattern = pattern
        return string

    def _number(self, is_integer: bool = False) -> Number:
        number = Number(is_integer)
        number.minimum = self._decimal("minimum")
        number.maximum = self._decimal("maximum")
        number.multiple_of = self._decimal("multipleOf")
        if number.multiple_of == 0:
            raise self._fault("multipleOf should not be 0", "multipleOf")
        for word in ("exclusiveMinimum", "exclusiveMaximum"):
            said = self._tree.get(word)
            if self._document.draft == 4:
                if said is not None and not isinstance(said, bool):
                    raise self._fault(f"{word} is {_kind(said)}, and must be a boolean in draft 4", word)
            elif word == "exclusiveMinimum":
                number.exclusive_minimum = self._decimal(word)
            else:
                number.exclusive_maximum = self._decimal(word)
        return number

    def _object(self) -> Object:
        tree, made = self._tree, Object()
        made.min_properties = self._integer("minProperties")
        made.max_properties = self._integer("maxProperties")
        for name, one in self._members("properties"):
            made.properties[name] = self._child(one, "properties", name)
        additional = tree.get("additionalProperties", True)
        if isinstance(additional, bool):
            made.permits_additional = additional
        else:
            made.additional = self._child(additional, "additionalProperties")
        required = tree.get("required", [])
        if isinstance(required, list):
            for name in required:
                if not isinstance(name, str):
                    raise self._fault(f"required has {_kind(name)}, and must have strings", "required")
                made.required.add(name)
        elif not isinstance(required, bool):
            raise self._fault(f"required is {_kind(required)}, and must be an array", "required")
        for pattern, one in self._members("patternProperties"):
            made.patterns[pattern] = self._child(one, "patternProperties", pattern)
        for name, one in self._members("dependencies"):
            self._dependency(made, name, one, "dependencies")
        if self._is_modern:
            for name, one in self._members("dependentRequired"):
                self._dependency(made, name, one, "dependentRequired")
            for name, one in self._members("dependentSchemas"):
                self._dependency(made, name, one, "dependentSchemas")
            if "unevaluatedProperties" in tree:
                made.unevaluated = self._child(tree["unevaluatedProperties"], "unevaluatedProperties")
        if "propertyNames" in tree and self._document.draft != 4:
            self._child(tree["propertyNames"], "propertyNames")
        return made

    def _dependency(self, made: Object, name: str, one: Any, keyword: str) -> None:
        if not isinstance(one, list):
            made.dependent_shapes[name] = self._child(one, keyword, name)
            return
        for needed in one:
            if not isinstance(needed, str):
                raise self._fault(f"{keyword} has {_kind(needed)}, and must have strings", keyword, name)
            made.dependent_names.setdefault(name, set()).add(needed)

    def _array(self) -> Array:
        tree, made = self._tree, Array()
        made.min_items = self._integer("minItems")
        made.max_items = self._integer("maxItems")
        unique = tree.get("uniqueItems", False)
        if not isinstance(unique, bool):
            raise self._fault(f"uniqueItems is {_kind(unique)}, and must be a boolean", "uniqueItems")
        made.unique = unique
        prefix = tree.get("prefixItems") if self._document.draft == 2020 else None
        items = tree.get("items")
        if prefix is None and isinstance(items, list):
            prefix, rest = items, tree.get("additionalItems")
        else:
            rest = items if prefix is not None or self._is_modern else tree.get("additionalItems")
            if not self._is_modern and items is not None:
                made.all_items = self._child(items, "items")
        if prefix is not None:
            if not isinstance(prefix, list):
                raise self._fault(f"prefixItems is {_kind(prefix)}, and must be an array", "prefixItems")
            made.items = [self._child(one, "items", str(place)) for place, one in enumerate(prefix)]
        self._rest(made, rest)
        if self._is_modern:
            if "contains" in tree:
                made.min_contains = 1 if "minContains" not in tree else self._integer("minContains")
                made.max_contains = self._integer("maxContains")
            if "unevaluatedItems" in tree:
                made.unevaluated = self._child(tree["unevaluatedItems"], "unevaluatedItems")
        if "contains" in tree and self._document.draft != 4:
            self._child(tree["contains"], "contains")
        return made

    def _rest(self, made: Array, rest: Any) -> None:
        """What follows the items that have a schema each."""
        if rest is None or rest is True:
            return
        if rest is False:
            made.permits_additional = made.all_items is not None
        elif self._is_modern and made.items is None:
            made.all_items = self._child(rest, "items")
        else:
            made.additional = self._child(rest, "additionalItems")

    def _members(self, keyword: str) -> list[tuple[str, Any]]:
        members = self._tree.get(keyword, {})
        if not isinstance(members, dict):
            raise self._fault(f"{keyword} is {_kind(members)}, and must be an object", keyword)
        return list(members.items())

    def _integer(self, keyword: str) -> int | None:
        value = self._tree.get(keyword)
        if value is None:
            return None
        if isinstance(value, Decimal) and value == value.to_integral_value() and abs(value) < 2**31:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._fault(f"{keyword} is {_kind(value)}, and must be an integer", keyword)
        return value

    def _decimal(self, keyword: str) -> Decimal | None:
        value = self._tree.get(keyword)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self._fault(f"{keyword} is {_kind(value)}, and must be a number", keyword)
        if isinstance(value, Decimal) and abs(value.adjusted()) > 1_000:
            raise self._fault(f"{keyword} has an exponent beyond 1,000", keyword)
        return Decimal(value)


def _joined(base: str, target: str) -> str:
    """`target` as seen from `base`. Text that is not a URL stays as it is."""
    try:
        if "://" not in base and not base.startswith(("urn:", "mem:")):
            base = _BASE + base
        if base.startswith("mem:"):
            # urljoin knows no such scheme.
            return urljoin(f"http{base[3:]}", target).replace("http://input/", _BASE, 1)
        if base.startswith("urn:"):
            return base.split("#")[0] + target if target.startswith("#") else target
        return urljoin(base, target)
    except ValueError:
        return target


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", dict: "an object", list: "an array"}.get(type(value), "a number")
