"""The types that an Avro schema is made of, as the parser leaves them. They are not changed afterwards.

Named types are shared: a name that is used twice is the same object, so a recursive record holds itself. Two
definitions of one name (they must be equal) are two objects, as in Java; comparisons count on that.
`ottla.schemas.avro.parsing` makes them, and nothing else does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from ottla.schemas.json_text import same_json
from ottla.schemas.schema import InvalidSchema

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
TYPE_NAMES: Final = frozenset(("record", "enum", "array", "map", "union", "fixed", *PRIMITIVES))

Order = Literal["ascending", "descending", "ignore"]

NO_DEFAULT: Final = object()
"""What a field without a default has as its default: `None` is one."""


@dataclass(frozen=True, slots=True)
class Logical:
    """A logical type that fits the type it stands on. One that does not is a property and nothing more."""

    name: str
    precision: int = 0
    scale: int = 0


class AvroType:
    """A type. `kind` is its name in JSON; `props` what else the JSON says, in its order."""

    __slots__ = ("kind", "logical", "props")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.props: dict[str, Any] = {}
        self.logical: Logical | None = None

    @property
    def full_name(self) -> str:
        """By which it is distinguished from the other branches of a union: a named type's name, else the kind."""
        return self.kind

    @property
    def simple_name(self) -> str:
        return self.kind

    def __repr__(self) -> str:
        return f"<{self.kind} {self.full_name}>" if self.full_name != self.kind else f"<{self.kind}>"


class Primitive(AvroType):
    """null, boolean, int, long, float, double, bytes or string."""

    __slots__ = ()


class Named(AvroType):
    """A record, an enum or a fixed. `namespace` is None for the empty one."""

    __slots__ = ("aliases", "doc", "name", "namespace")

    def __init__(self, kind: str, name: str, namespace: str | None, doc: str | None) -> None:
        super().__init__(kind)
        self.name = name
        self.namespace = namespace
        self.doc = doc
        self.aliases: list[tuple[str, str | None]] = []
        """Names and namespaces, each once."""

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace is not None else self.name

    @property
    def simple_name(self) -> str:
        return self.name

    def alias_names(self) -> list[str]:
        """Full names, as Java's `getAliases` gives them: one of the empty namespace has a dot before it here."""
        return [
            f".{name}" if space is None and self.namespace is not None else name if space is None else f"{space}.{name}"
            for name, space in self.aliases
        ]


class Field:
    """One field of a record."""

    __slots__ = ("aliases", "default", "doc", "name", "order", "position", "props", "type")

    def __init__(self, name: str, type: AvroType, position: int) -> None:
        self.name = name
        self.type = type
        self.position = position
        self.doc: str | None = None
        self.default: Any = NO_DEFAULT
        self.order: Order = "ascending"
        self.aliases: list[str] = []
        self.props: dict[str, Any] = {}

    @property
    def has_default(self) -> bool:
        return self.default is not NO_DEFAULT


class Record(Named):
    """A record, or an error, which is a record for all that is done here."""

    __slots__ = ("by_name", "fields", "is_error")

    def __init__(self, name: str, namespace: str | None, doc: str | None, is_error: bool = False) -> None:
        super().__init__("record", name, namespace, doc)
        self.is_error = is_error
        self.fields: list[Field] = []
        self.by_name: dict[str, Field] = {}


class Enum(Named):
    """An enum. `default` stands for symbols that a reader does not know."""

    __slots__ = ("default", "symbols")

    def __init__(self, name: str, namespace: str | None, doc: str | None) -> None:
        super().__init__("enum", name, namespace, doc)
        self.symbols: list[str] = []
        self.default: str | None = None


class Fixed(Named):
    """Bytes of a fixed number."""

    __slots__ = ("size",)

    def __init__(self, name: str, namespace: str | None, doc: str | None, size: int) -> None:
        super().__init__("fixed", name, namespace, doc)
        self.size = size


class Array(AvroType):
    __slots__ = ("items",)

    def __init__(self, items: AvroType) -> None:
        super().__init__("array")
        self.items = items


class Map(AvroType):
    __slots__ = ("values",)

    def __init__(self, values: AvroType) -> None:
        super().__init__("map")
        self.values = values


class Union(AvroType):
    __slots__ = ("branches",)

    def __init__(self, branches: list[AvroType]) -> None:
        super().__init__("union")
        self.branches = branches


class Unresolved(AvroType):
    """A name whose definition comes later in the text, or encloses it. Gone when the parser is done."""

    __slots__ = ("looked_for",)

    def __init__(self, looked_for: str) -> None:
        super().__init__("record")
        self.looked_for = looked_for

    @property
    def full_name(self) -> str:
        return f"{self.looked_for}#{id(self)}"  # Java makes up a name for each, so no two are the same.


def all_types(root: AvroType) -> Iterator[AvroType]:
    """All types, outer before inner, in the order of the text; each named one once."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, Record):
            todo += (field.type for field in reversed(one.fields))
        elif isinstance(one, Array):
            todo.append(one.items)
        elif isinstance(one, Map):
            todo.append(one.values)
        elif isinstance(one, Union):
            todo += reversed(one.branches)


class DeeperThan:
    """Counts how deep a recursion is, so that it ends with `InvalidSchema` and never with a RecursionError: named types
    may refer to each other in a chain that no nesting of the text shows."""

    __slots__ = ("depth", "limit")

    def __init__(self, limit: int) -> None:
        self.depth = 0
        self.limit = limit

    def __enter__(self) -> None:
        self.depth += 1
        if self.depth > self.limit:
            raise InvalidSchema(f"types lie deeper than {self.limit} within each other")

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


class Equality:
    """Whether types are equal, as Java's `Schema.equals` says: docs, aliases and an enum's default do not count. With
    `with_meta` they do, which is Confluent's `equivalent`."""

    def __init__(self, type_depth: int, with_meta: bool = False) -> None:
        self._seen: set[tuple[int, int]] = set()
        self._deeper = DeeperThan(type_depth)
        self._with_meta = with_meta

    def same(self, one: AvroType, other: AvroType) -> bool:
        if one is other:
            return True
        if type(one) is not type(other) or one.kind != other.kind or not same_json(one.props, other.props):
            return False
        with self._deeper:
            if isinstance(one, Named):
                assert isinstance(other, Named)
                return self._same_named(one, other)
            if isinstance(one, Array):
                assert isinstance(other, Array)
                return self.same(one.items, other.items)
            if isinstance(one, Map):
                assert isinstance(other, Map)
                return self.same(one.values, other.values)
            if isinstance(one, Union):
                assert isinstance(other, Union)
                return len(one.branches) == len(other.branches) and all(map(self.same, one.branches, other.branches))
            return isinstance(one, Primitive)

    def _same_named(self, one: Named, other: Named) -> bool:
        if one.full_name != other.full_name:
            return False
        if self._with_meta and (one.doc != other.doc or set(one.aliases) != set(other.aliases)):
            return False
        if isinstance(one, Enum):
            assert isinstance(other, Enum)
            return one.symbols == other.symbols and (not self._with_meta or one.default == other.default)
        if isinstance(one, Fixed):
            assert isinstance(other, Fixed)
            return one.size == other.size
        assert isinstance(one, Record)
        assert isinstance(other, Record)
        pair = (id(one), id(other))
        if pair in self._seen:
            return True
        self._seen.add(pair)
        return len(one.fields) == len(other.fields) and all(map(self._same_field, one.fields, other.fields))

    def _same_field(self, one: Field, other: Field) -> bool:
        return (
            one.name == other.name
            and one.order == other.order
            and one.has_default == other.has_default
            and (not one.has_default or same_json(one.default, other.default))
            and same_json(one.props, other.props)
            and (not self._with_meta or (one.doc == other.doc and set(one.aliases) == set(other.aliases)))
            and self.same(one.type, other.type)
        )
