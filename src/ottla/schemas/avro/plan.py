"""How bytes of a writer's schema become values of a reader's: Avro's resolution, worked out once, before any bytes
come.

A plan is a tree of steps that follows the writer's schema, because that is how the bytes lie; each step says what to
do for the reader: keep, widen, skip, or put a default in. What cannot be resolved is a step that fails when it is
reached: a union may have branches that nobody writes. Defaults are bytes too, in the reader's own encoding, and are
read like any others.

What carries plans out is in two twins, `_fast` and `_slow`. An `EncodingPlan` is the other direction, of one schema.
"""

from collections import Counter
from typing import Any, Final

from ottla.schemas.avro.types import (
    NO_DEFAULT,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Logical,
    Map,
    Named,
    Record,
    Union,
)
from ottla.schemas.faults import CannotDecode, CannotEncode

NULL: Final = 0
BOOLEAN: Final = 1
INT: Final = 2
LONG: Final = 3
FLOAT: Final = 4
DOUBLE: Final = 5
BYTES: Final = 6
STRING: Final = 7
FIXED: Final = 8
ENUM: Final = 9
ARRAY: Final = 10
MAP: Final = 11
UNION: Final = 12
RECORD: Final = 13
LONG_AS_FLOAT: Final = 14
LONG_AS_DOUBLE: Final = 15
FLOAT_AS_DOUBLE: Final = 16
BRANCH: Final = 17
"""A value of one branch of the reader's union, where it is known which."""
ERROR: Final = 18

_CODES: Final = {
    "null": NULL,
    "boolean": BOOLEAN,
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": BYTES,
    "string": STRING,
}

LOGICAL: Final = {
    "date": 1,
    "time-millis": 2,
    "time-micros": 3,
    "timestamp-millis": 4,
    "timestamp-micros": 5,
    "timestamp-nanos": 6,
    "local-timestamp-millis": 7,
    "local-timestamp-micros": 8,
    "local-timestamp-nanos": 9,
    "decimal": 10,
    "big-decimal": 11,
    "uuid": 12,
    "duration": 13,
}
"""Logical types that change what a value is, by number. 0 is none."""

MOST_NESTED: Final = 128
"""How deep values of a recursive schema may lie within each other."""
MOST_EMPTY: Final = 1 << 20
"""Elements of no bytes (null, an empty record) that one value may have: a few bytes could claim billions."""


class Plan:
    """One step. Which attributes mean something follows from `code`."""

    __slots__ = (
        "branches", "code", "inner", "logical", "message", "name", "names", "reader_branch", "scale", "size", "steps",
        "symbols", "takes_nothing",
    )  # fmt: skip

    def __init__(self, code: int) -> None:
        self.code = code
        self.logical = 0
        self.scale = 0
        self.size = 0
        """Of a fixed."""
        self.inner: Plan | None = None
        """What an array or a map has, or a branch is."""
        self.branches: list[Plan] = []
        self.symbols: list[str | None] = []
        """By the writer's numbers; None where the reader knows none."""
        self.names: list[str] = []
        """Of the reader's fields."""
        self.name = ""
        """Full name of the reader's record, for those who make objects of it."""
        self.steps: list[tuple[int, Plan, bytes | None]] = []
        """Of a record: the reader's field or -1 to skip, the plan, and the bytes to read instead of those that came."""
        self.reader_branch = 0
        self.message = ""
        self.takes_nothing = False
        """Whether a value may have no bytes at all."""


def decoding_plan(writer: AvroType, reader: AvroType | None = None) -> Plan:
    """The plan for bytes of `writer`, read as `reader`, or as what they are. Raises `CannotDecode` if no bytes at all
    could be read so."""
    plan = _Resolution().resolved(writer, reader if reader is not None else writer)
    if plan.code == ERROR:
        raise CannotDecode(plan.message)
    _mark_those_that_take_nothing(plan)
    return plan


_PROMOTIONS: Final = {
    ("int", "long"): LONG,
    ("int", "float"): LONG_AS_FLOAT,
    ("int", "double"): LONG_AS_DOUBLE,
    ("long", "float"): LONG_AS_FLOAT,
    ("long", "double"): LONG_AS_DOUBLE,
    ("float", "double"): FLOAT_AS_DOUBLE,
    ("string", "bytes"): BYTES,
    ("bytes", "string"): STRING,
}


class _Resolution:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Plan] = {}
        self._depth = 0

    def resolved(self, writer: AvroType, reader: AvroType) -> Plan:
        pair = (id(writer), id(reader))
        if pair in self._known:
            return self._known[pair]
        self._depth += 1
        if self._depth > MOST_NESTED * 2:
            raise CannotDecode(f"types lie deeper than {MOST_NESTED * 2} within each other")
        plan = self._made(writer, reader, pair)
        self._depth -= 1
        return plan

    def _made(self, writer: AvroType, reader: AvroType, pair: tuple[int, int]) -> Plan:
        if isinstance(writer, Union):
            plan = self._known[pair] = Plan(UNION)
            plan.branches = [self.resolved(branch, reader) for branch in writer.branches]
            return plan
        if isinstance(reader, Union):
            return self._for_branch(writer, reader)
        if isinstance(writer, Record) and isinstance(reader, Record):
            plan = self._known[pair] = Plan(RECORD)
            self._fill_record(plan, writer, reader)
            return plan
        if isinstance(writer, Array) and isinstance(reader, Array):
            plan = self._known[pair] = Plan(ARRAY)
            plan.inner = self.resolved(writer.items, reader.items)
            return plan
        if isinstance(writer, Map) and isinstance(reader, Map):
            plan = self._known[pair] = Plan(MAP)
            plan.inner = self.resolved(writer.values, reader.values)
            return plan
        return self._single(writer, reader)

    def _single(self, writer: AvroType, reader: AvroType) -> Plan:
        if isinstance(writer, Enum) and isinstance(reader, Enum):
            plan = Plan(ENUM)
            known = set(reader.symbols)
            plan.symbols = [symbol if symbol in known else reader.default for symbol in writer.symbols]
            plan.name = reader.full_name
            return plan
        if isinstance(writer, Fixed) and isinstance(reader, Fixed):
            if writer.size != reader.size:
                return _error(f"{writer.full_name} has {writer.size} bytes, and is read as {reader.size}")
            plan = Plan(FIXED)
            plan.size = reader.size
            _set_logical(plan, reader.logical)
            return plan
        if writer.kind == reader.kind and writer.kind in _CODES:
            plan = Plan(_CODES[writer.kind])
            _set_logical(plan, reader.logical)
            return plan
        promotion = _PROMOTIONS.get((writer.kind, reader.kind))
        if promotion is not None:
            plan = Plan(promotion)
            _set_logical(plan, reader.logical)
            return plan
        return _error(f"{_called(writer)} cannot be read as {_called(reader)}")

    def _for_branch(self, writer: AvroType, reader: Union) -> Plan:
        index = _branch_for(writer, reader, self)
        if index is None:
            kinds = ", ".join(map(_called, reader.branches))
            return _error(f"{_called(writer)} cannot be read as any of [{kinds}]")
        plan = Plan(BRANCH)
        plan.reader_branch = index
        plan.inner = self.resolved(writer, reader.branches[index])
        return plan

    def _fill_record(self, plan: Plan, writer: Record, reader: Record) -> None:
        plan.name = reader.full_name
        plan.names = [field.name for field in reader.fields]
        places = {field.name: place for place, field in enumerate(reader.fields)}
        for place, field in enumerate(reader.fields):
            for alias in field.aliases:
                places.setdefault(alias, place)
        read: set[int] = set()
        for field in writer.fields:
            place = places.get(field.name, -1)
            # A field of its own name is that one, even if another has the name among its aliases.
            if place in read:
                place = -1
            if place < 0:
                plan.steps.append((-1, self.resolved(field.type, field.type), None))
            else:
                read.add(place)
                plan.steps.append((place, self.resolved(field.type, reader.fields[place].type), None))
        for place, field in enumerate(reader.fields):
            if place not in read:
                plan.steps.append(self._default_step(place, field, reader))

    def _default_step(self, place: int, field: Field, reader: Record) -> tuple[int, Plan, bytes | None]:
        if not field.has_default:
            step = _error(f"the writer has no field {field.name} of {reader.full_name}, and it has no default")
            return place, step, None
        try:
            content = default_bytes(field.type, field.default)
        except CannotEncode as error:
            return place, _error(f"the default of {reader.full_name}.{field.name} is no value of it: {error}"), None
        return place, self.resolved(field.type, field.type), content


def _branch_for(writer: AvroType, reader: Union, resolution: _Resolution) -> int | None:
    """The branch of the reader's union that a writer's type is read as: one of the same name first, then the first that
    it can become."""
    same_kind = [index for index, branch in enumerate(reader.branches) if branch.kind == writer.kind]
    for index in same_kind:
        if reader.branches[index].full_name == writer.full_name:
            return index
    for index in same_kind:
        branch = reader.branches[index]
        if isinstance(branch, Named) and (
            branch.simple_name == writer.simple_name or writer.full_name in branch.alias_names()
        ):
            return index
    for index in same_kind:
        if resolution.resolved(writer, reader.branches[index]).code != ERROR:
            return index
    for index, branch in enumerate(reader.branches):
        if (writer.kind, branch.kind) in _PROMOTIONS:
            return index
    return None


def _error(message: str) -> Plan:
    plan = Plan(ERROR)
    plan.message = message
    return plan


def _set_logical(plan: Plan, logical: Logical | None) -> None:
    if logical is not None:
        plan.logical = LOGICAL.get(logical.name, 0)
        plan.scale = logical.scale


def _called(type: AvroType) -> str:
    return type.full_name if isinstance(type, Named) else type.kind


def _mark_those_that_take_nothing(root: Plan) -> None:
    """Until nothing changes: null takes no bytes, nor does what consists of such."""
    plans: list[Plan] = []
    seen: set[int] = set()
    todo = [root]
    while todo:
        plan = todo.pop()
        if id(plan) in seen:
            continue
        seen.add(id(plan))
        plans.append(plan)
        todo += plan.branches
        todo += (step for _, step, _ in plan.steps)
        if plan.inner is not None:
            todo.append(plan.inner)
    changed = True
    while changed:
        changed = False
        for plan in reversed(plans):
            if plan.takes_nothing:
                continue
            takes_nothing = (
                plan.code == NULL
                or plan.code == ERROR
                or (plan.code == FIXED and plan.size == 0)
                or (plan.code == BRANCH and plan.inner is not None and plan.inner.takes_nothing)
                or (
                    plan.code == RECORD
                    and all(step.takes_nothing or given is not None for _, step, given in plan.steps)
                )
            )
            if takes_nothing:
                plan.takes_nothing = changed = True


# The other direction.


class EncodingPlan:
    """How a value becomes bytes of a type."""

    __slots__ = (
        "branch_names", "branches", "code", "defaults", "inner", "logical", "name", "names", "numbers", "precision",
        "scale", "size", "steps",
    )  # fmt: skip

    def __init__(self, code: int) -> None:
        self.code = code
        self.logical = 0
        self.precision = 0
        self.scale = 0
        self.size = 0
        self.inner: EncodingPlan | None = None
        self.branches: list[EncodingPlan] = []
        self.branch_names: dict[str, int] = {}
        """Names by which a value may say of which branch it is: full, and simple where that is of one branch only."""
        self.numbers: dict[str, int] = {}
        """Of the symbols of an enum."""
        self.name = ""
        self.names: list[str] = []
        self.steps: list[EncodingPlan] = []
        self.defaults: list[bytes | None] = []
        """For fields that a value has not, the bytes of the default."""


def encoding_plan(type: AvroType) -> EncodingPlan:
    """The plan for values of a type."""
    return _Encoding().plan(type)


class _Encoding:
    def __init__(self) -> None:
        self._known: dict[int, EncodingPlan] = {}
        self._depth = 0

    def plan(self, type: AvroType) -> EncodingPlan:
        if id(type) in self._known:
            return self._known[id(type)]
        self._depth += 1
        if self._depth > MOST_NESTED * 2:
            raise CannotEncode(f"types lie deeper than {MOST_NESTED * 2} within each other")
        plan = self._known[id(type)] = EncodingPlan(_encoding_code(type))
        plan.name = _called(type)
        if type.logical is not None:
            plan.logical = LOGICAL.get(type.logical.name, 0)
            plan.precision, plan.scale = type.logical.precision, type.logical.scale
        if isinstance(type, Fixed):
            plan.size = type.size
        elif isinstance(type, Enum):
            plan.numbers = {symbol: number for number, symbol in enumerate(type.symbols)}
        elif isinstance(type, Array):
            plan.inner = self.plan(type.items)
        elif isinstance(type, Map):
            plan.inner = self.plan(type.values)
        elif isinstance(type, Union):
            plan.branches = [self.plan(branch) for branch in type.branches]
            simple = Counter(branch.simple_name for branch in type.branches)
            plan.branch_names = {
                branch.simple_name: index
                for index, branch in enumerate(type.branches)
                if simple[branch.simple_name] == 1
            }
            plan.branch_names.update({branch.full_name: index for index, branch in enumerate(type.branches)})
        elif isinstance(type, Record):
            for field in type.fields:
                plan.names.append(field.name)
                plan.steps.append(self.plan(field.type))
                plan.defaults.append(_default_or_none(field))
        self._depth -= 1
        return plan


def _encoding_code(type: AvroType) -> int:
    if type.kind in _CODES:
        return _CODES[type.kind]
    return {"fixed": FIXED, "enum": ENUM, "array": ARRAY, "map": MAP, "union": UNION, "record": RECORD}[type.kind]


def _default_or_none(field: Field) -> bytes | None:
    if not field.has_default:
        return None
    try:
        return default_bytes(field.type, field.default)
    except CannotEncode:
        return None  # A stored schema may have a default that is no value. Then it is as if there were none.


def default_bytes(type: AvroType, default: Any) -> bytes:
    """A default, which is JSON, in binary encoding. Raises `CannotEncode` if it is no value of the type."""
    out = bytearray()
    _write_default(type, default, out, 0)
    return bytes(out)


def _write_default(type: AvroType, default: Any, out: bytearray, depth: int) -> None:
    if depth > MOST_NESTED:
        raise CannotEncode(f"a default is nested deeper than {MOST_NESTED}")
    kind = type.kind
    if isinstance(type, Union):
        for index, branch in enumerate(type.branches):
            start = len(out)
            _write_long(index, out)
            try:
                _write_default(branch, default, out, depth + 1)
                return
            except CannotEncode:
                del out[start:]
        raise CannotEncode(f"{default!r} is no value of any branch")
    if isinstance(type, Record) and isinstance(default, dict):
        for field in type.fields:
            value = default.get(field.name, field.default)
            if value is NO_DEFAULT:
                raise CannotEncode(f"a value for {field.name} is missing", (field.name,))
            _write_default(field.type, value, out, depth + 1)
    elif isinstance(type, Array) and isinstance(default, list):
        if default:
            _write_long(len(default), out)
            for one in default:
                _write_default(type.items, one, out, depth + 1)
        out.append(0)
    elif isinstance(type, Map) and isinstance(default, dict):
        if default:
            _write_long(len(default), out)
            for key, one in default.items():
                _write_bytes(key.encode(), out)
                _write_default(type.values, one, out, depth + 1)
        out.append(0)
    elif isinstance(type, Enum) and default in type.symbols:
        _write_long(type.symbols.index(default), out)
    elif isinstance(type, Fixed) and isinstance(default, str):
        content = default.encode("latin-1", "replace")
        if len(content) != type.size:
            raise CannotEncode(f"{default!r} has not {type.size} bytes")
        out += content
    elif not _write_primitive_default(kind, default, out):
        raise CannotEncode(f"{default!r} is no {_called(type)}")


def _write_primitive_default(kind: str, default: Any, out: bytearray) -> bool:
    from struct import pack

    is_integer = isinstance(default, int) and not isinstance(default, bool)
    if kind == "null":
        return default is None
    if kind == "boolean" and isinstance(default, bool):
        out.append(default)
    elif kind in ("int", "long") and is_integer:
        bits = 31 if kind == "int" else 63
        if not -(1 << bits) <= default < 1 << bits:
            return False
        _write_long(default, out)
    elif kind == "float" and (is_integer or isinstance(default, float)):
        try:
            out += pack("<f", default)
        except OverflowError:
            out += pack("<f", float("inf") if default > 0 else float("-inf"))
    elif kind == "double" and (is_integer or isinstance(default, float)):
        out += pack("<d", float(default))
    elif kind == "bytes" and isinstance(default, str):
        _write_bytes(default.encode("latin-1", "replace"), out)
    elif kind == "string" and isinstance(default, str):
        _write_bytes(default.encode("utf-8", "replace"), out)
    else:
        return False
    return True


def _write_long(number: int, out: bytearray) -> None:
    number = (number << 1) ^ (number >> 63)
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)


def _write_bytes(content: bytes, out: bytearray) -> None:
    _write_long(len(content), out)
    out += content
