"""What columns a type of Avro becomes, before any library of columns is asked.

| Avro | a column of |
| --- | --- |
| null, boolean, int, long, float, double, bytes, string | the same, of 32 and 64 bits |
| enum | strings |
| fixed | bytes of that width |
| array, map, record | lists, maps, structs |
| a union with null and one other | that other, which may be null |
| any other union | a struct with a field for each branch, of which one is set; null, if the value is |
| date, time-…, timestamp-…, local-timestamp-… | dates, times of day, moments, moments without a zone |
| decimal | decimals up to 76 digits, else bytes |
| uuid | strings, or 16 bytes |
| duration | months, days and nanoseconds |
| big-decimal | bytes, as they are encoded |

A recursive record has no columns: its depth is not known.
"""

from typing import Final

from ottla.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Named, Record, Union
from ottla.schemas.faults import CannotDecode

NULLS: Final = 0
BOOLEANS: Final = 1
INTS: Final = 2
LONGS: Final = 3
FLOATS: Final = 4
DOUBLES: Final = 5
VARIABLE: Final = 6
"""Bytes or strings."""
FIXED: Final = 7
DECIMALS: Final = 8
LISTS: Final = 9
MAPS: Final = 10
STRUCTS: Final = 11
INTERVALS: Final = 12

_PRIMITIVES: Final = {
    "null": NULLS,
    "boolean": BOOLEANS,
    "int": INTS,
    "long": LONGS,
    "float": FLOATS,
    "double": DOUBLES,
    "bytes": VARIABLE,
    "string": VARIABLE,
}

IS_NULL: Final = -1
IS_ITSELF: Final = -2


class ColumnPlan:
    """A column and those within it."""

    __slots__ = (
        "branches",
        "children",
        "is_nullable",
        "is_text",
        "kind",
        "logical",
        "name",
        "precision",
        "scale",
        "width",
    )

    def __init__(self, kind: int, name: str = "") -> None:
        self.kind = kind
        self.name = name
        """Of the field of a struct."""
        self.width = 0
        """Bytes of a value, where all have the same number."""
        self.is_text = False
        self.is_nullable = False
        self.logical = ""
        """Name of the logical type, if it decides what the column is of."""
        self.precision = 0
        self.scale = 0
        self.children: list[ColumnPlan] = []
        self.branches: list[int] | None = None
        """Of a union: for each branch the child that it goes to, `IS_NULL` or `IS_ITSELF`."""


def column_plan(type: AvroType, name: str = "") -> ColumnPlan:
    """The column for a type. Raises `CannotDecode` for a recursive one."""
    return _planned(type, name, ())


def _planned(type: AvroType, name: str, within: tuple[str, ...]) -> ColumnPlan:
    if isinstance(type, Named) and type.full_name in within:
        raise CannotDecode(f"{type.full_name} is recursive, and has no columns")
    if isinstance(type, Record):
        plan = ColumnPlan(STRUCTS, name)
        inside = (*within, type.full_name)
        plan.children = [_planned(field.type, field.name, inside) for field in type.fields]
        return plan
    if isinstance(type, Union):
        return _union(type, name, within)
    if isinstance(type, Array):
        plan = ColumnPlan(LISTS, name)
        plan.children = [_planned(type.items, "item", within)]
        return plan
    if isinstance(type, Map):
        plan = ColumnPlan(MAPS, name)
        key = ColumnPlan(VARIABLE, "key")
        key.is_text = True
        plan.children = [key, _planned(type.values, "value", within)]
        return plan
    return _single(type, name)


def _single(type: AvroType, name: str) -> ColumnPlan:
    logical = type.logical.name if type.logical is not None else ""
    if type.logical is not None and logical == "decimal" and type.logical.precision <= 76:
        plan = ColumnPlan(DECIMALS, name)
        plan.logical, plan.precision, plan.scale = logical, type.logical.precision, type.logical.scale
        plan.width = 16 if type.logical.precision <= 38 else 32
        return plan
    if isinstance(type, Enum):
        plan = ColumnPlan(VARIABLE, name)
        plan.is_text = True
        return plan
    if isinstance(type, Fixed):
        if logical == "duration":
            plan = ColumnPlan(INTERVALS, name)
            plan.width = 16
            return plan
        plan = ColumnPlan(FIXED, name)
        plan.width = type.size
        plan.logical = logical
        return plan
    plan = ColumnPlan(_PRIMITIVES[type.kind], name)
    plan.is_text = type.kind == "string"
    plan.is_nullable = type.kind == "null"
    plan.width = {"int": 4, "long": 8, "float": 4, "double": 8, "boolean": 1}.get(type.kind, 0)
    if type.kind in ("int", "long"):
        plan.logical = logical
    return plan


def _union(type: Union, name: str, within: tuple[str, ...]) -> ColumnPlan:
    others = [branch for branch in type.branches if branch.kind != "null"]
    if len(others) == 1:
        plan = _planned(others[0], name, within)
        plan.branches = [IS_NULL if branch.kind == "null" else IS_ITSELF for branch in type.branches]
    elif not others:
        plan = ColumnPlan(NULLS, name)
        plan.branches = [IS_NULL for _ in type.branches]
    else:
        plan = ColumnPlan(STRUCTS, name)
        plan.branches = []
        for branch in type.branches:
            if branch.kind == "null":
                plan.branches.append(IS_NULL)
                continue
            plan.branches.append(len(plan.children))
            child = _planned(branch, _field_name(branch, type), within)
            child.is_nullable = True
            plan.children.append(child)
    plan.is_nullable = len(others) < len(type.branches) or not others
    return plan


def _field_name(branch: AvroType, union: Union) -> str:
    """The simple name of the branch, unless two have it."""
    alike = [one for one in union.branches if one.simple_name == branch.simple_name]
    return branch.simple_name if len(alike) == 1 else branch.full_name.replace(".", "_")
