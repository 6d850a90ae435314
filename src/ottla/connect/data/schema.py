"""A schema of Connect's: what values are, and what they mean.

The type says how a value is stored. A name gives it a meaning: Connect itself knows four such names (`Decimal`, `Date`,
`Time`, `Timestamp`), Debezium has more; whoever does not know a name still knows how to store the value. So a schema
here is the type and the words around it, and nothing depends on a name but what the name is for.

A value that is missing is allowed where the schema is optional. A default stands in for a missing value where somebody
asks for it: a field that is required and has a default may be stored as null.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from ottla.connect.errors import DataError

DEEPEST: Final = 100
"""How deep schemas may be nested: what walks them is recursive, and a schema may come from anybody."""


class Type(Enum):
    """How values are stored. The value is the name in JSON."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"

SCALE: Final = "scale"
"""The parameter of a decimal that it cannot be without."""
PRECISION: Final = "connect.decimal.precision"
"""The parameter that Debezium and Confluent add: how many digits at most."""

STORED_AS: Final[Mapping[str, Type]] = {
    DECIMAL: Type.BYTES,
    DATE: Type.INT32,
    TIME: Type.INT32,
    TIMESTAMP: Type.INT64,
}
"""What Connect's own logical types are stored as. A schema that has the name and another type has just a name."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    schema: "Schema"


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Schemas are equal when all they say is equal; the order of parameters says nothing.

    `default` is a value as `rows` has them. `items` is of arrays and maps, `keys` of maps, `fields` of structs.
    """

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = None
    fields: tuple[Field, ...] = ()
    keys: "Schema | None" = None
    items: "Schema | None" = None
    depth: int = 0
    """How deep it is nested; worked out."""

    def __post_init__(self) -> None:
        if self.type is Type.ARRAY and self.items is None:
            raise DataError("Array schema did not specify the element type")
        if self.type is Type.MAP and self.keys is None:
            raise DataError("Map schema did not specify the key type")
        if self.type is Type.MAP and self.items is None:
            raise DataError("Map schema did not specify the value type")
        names: set[str] = set()
        for field in self.fields:
            if field.name in names:
                raise DataError(f"Cannot create field because of field name duplication {field.name}")
            names.add(field.name)
        inner = [one.schema.depth for one in self.fields]
        inner += [one.depth for one in (self.keys, self.items) if one is not None]
        depth = 1 + max(inner, default=0)
        if depth > DEEPEST:
            raise DataError(f"a schema is nested deeper than {DEEPEST}")
        object.__setattr__(self, "depth", depth)

    def _said(self) -> tuple[Any, ...]:
        return (self.type, self.optional, self.name, self.version, self.doc, self.fields, self.keys, self.items)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Schema)
            and self._said() == other._said()
            and (self.parameters or None) == (other.parameters or None)
            and (self.default is other.default or repr(self.default) == repr(other.default))  # -0.0 is not 0.0
        )

    def __hash__(self) -> int:
        return hash(self._said())

    def __str__(self) -> str:
        return f"Schema{{{self.name}:{self.type.name}}}" if self.name is not None else f"Schema{{{self.type.name}}}"

    @property
    def logical(self) -> str | None:
        """The name, if it is one of Connect's own and the value is stored as it says."""
        return self.name if self.name is not None and STORED_AS.get(self.name) is self.type else None

    @property
    def may_be_null(self) -> bool:
        """Whether a null may be stored: the schema is optional, or a default stands in for it."""
        return self.optional or self.default is not None

    def field(self, name: str) -> Field | None:
        if self.type is not Type.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        return next((field for field in self.fields if field.name == name), None)

    def but(self, **changes: Any) -> "Schema":
        """The same with other words around it."""
        return replace(self, **changes)


def struct(
    fields: Iterable[tuple[str, Schema]],
    *,
    name: str | None = None,
    version: int | None = None,
    optional: bool = False,
    default: Any = None,
    doc: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Schema:
    """The schema of a struct: `struct([("id", Schema(Type.INT64))], name="shop.Order")`."""
    made = tuple(Field(field, schema) for field, schema in fields)
    return Schema(Type.STRUCT, optional, default, name, version, doc, parameters, made)


def array(items: Schema, *, optional: bool = False) -> Schema:
    return Schema(Type.ARRAY, optional, items=items)


def map_of(keys: Schema, items: Schema, *, optional: bool = False) -> Schema:
    return Schema(Type.MAP, optional, keys=keys, items=items)


def decimal(scale: int, *, optional: bool = False, precision: int | None = None) -> Schema:
    parameters = {SCALE: str(scale)} | ({} if precision is None else {PRECISION: str(precision)})
    return Schema(Type.BYTES, optional, name=DECIMAL, version=1, parameters=parameters)


def date(*, optional: bool = False) -> Schema:
    return Schema(Type.INT32, optional, name=DATE, version=1)


def time(*, optional: bool = False) -> Schema:
    return Schema(Type.INT32, optional, name=TIME, version=1)


def timestamp(*, optional: bool = False) -> Schema:
    return Schema(Type.INT64, optional, name=TIMESTAMP, version=1)


def scale_of(schema: Schema) -> int:
    """The scale of a decimal. Raises `DataError` if it says none."""
    text = (schema.parameters or {}).get(SCALE)
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        scale = int(text)
    except ValueError:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {text}") from None
    if not -(1 << 31) <= scale < 1 << 31:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {text}")
    return scale
