"""Values of an Avro schema, from a seed, and bytes that are almost values."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

from ottla.schemas.avro._slow import Duration
from ottla.schemas.avro.types import Array, AvroType, Enum, Fixed, Map, Record, Union

WORDS = ("", "a", "é", "\U0001f600", "longer than eight bytes", "\x00", "z" * 200)


class NoValue(Exception):
    """The type has no value that ends: a record that holds itself, or an enum without symbols."""


def random_value(random: Random, type: AvroType, depth: int = 0) -> Any:
    if depth > 12:
        raise NoValue
    logical = type.logical.name if type.logical is not None else ""
    if logical in _LOGICAL:
        return _LOGICAL[logical](random, type)
    if isinstance(type, Record):
        return {field.name: random_value(random, field.type, depth + 1) for field in type.fields}
    if isinstance(type, Union):
        return _of_union(random, type, depth)
    if isinstance(type, Array):
        return (
            [random_value(random, type.items, depth + 1) for _ in range(random.choice((0, 0, 1, 3)))]
            if depth < 8
            else []
        )
    if isinstance(type, Map):
        words = random.sample(WORDS, random.choice((0, 1, 3))) if depth < 8 else []
        return {word: random_value(random, type.values, depth + 1) for word in words}
    if isinstance(type, Enum):
        if not type.symbols:
            raise NoValue
        return random.choice(type.symbols)
    if isinstance(type, Fixed):
        return random.randbytes(type.size)
    return {
        "null": lambda: None,
        "boolean": lambda: random.random() < 0.5,
        "int": lambda: random.choice((0, -1, 63, 64, -65, 2**31 - 1, -(2**31))),
        "long": lambda: random.choice((0, 1, -1, 2**63 - 1, -(2**63), random.getrandbits(40))),
        "float": lambda: random.choice((0.0, -1.5, 0.25, 1e10 // 1024 * 1024.0)),
        "double": lambda: random.choice((0.0, 0.1, -1e300, 5e-324)),
        "bytes": lambda: random.randbytes(random.choice((0, 1, 5, 300))),
        "string": lambda: random.choice(WORDS),
    }[type.kind]()


def _of_union(random: Random, type: Union, depth: int) -> Any:
    if not type.branches:
        raise NoValue
    branches = [one for one in type.branches if one.kind == "null"] if depth > 6 else []
    branch = random.choice(branches or type.branches)
    value = random_value(random, branch, depth + 1)
    return value if branch.kind == "null" else (branch.full_name, value)


def untagged(value: Any) -> Any:
    """The value without the names of branches, as it is read back."""
    if isinstance(value, Duration):
        return value
    if isinstance(value, tuple):
        return untagged(value[1])
    if isinstance(value, list):
        return [untagged(one) for one in value]
    if isinstance(value, dict):
        return {name: untagged(one) for name, one in value.items()}
    return value


def _moment(random: Random) -> datetime:
    micros = random.choice((0, 1, 999_999, random.getrandbits(45), -random.getrandbits(45)))
    return datetime(1970, 1, 1) + timedelta(microseconds=micros)


def _millis(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def _decimal(random: Random, type: AvroType) -> Decimal:
    assert type.logical is not None
    digits = random.randrange(type.logical.precision + 1)
    unscaled = random.randrange(10**digits) * random.choice((1, -1))
    if isinstance(type, Fixed) and unscaled.bit_length() >= type.size * 8:
        unscaled = 0
    return Decimal(unscaled).scaleb(-type.logical.scale)


_LOGICAL: dict[str, Any] = {
    "date": lambda random, type: date(1970, 1, 1) + timedelta(days=random.randrange(-700_000, 2_900_000)),
    "time-millis": lambda random, type: time(random.randrange(24), 59, 1, random.randrange(1000) * 1000),
    "time-micros": lambda random, type: time(random.randrange(24), 0, 59, random.randrange(1_000_000)),
    "timestamp-millis": lambda random, type: _millis(_moment(random)).replace(tzinfo=UTC),
    "timestamp-micros": lambda random, type: _moment(random).replace(tzinfo=UTC),
    "timestamp-nanos": lambda random, type: random.getrandbits(60),
    "local-timestamp-millis": lambda random, type: _millis(_moment(random)),
    "local-timestamp-micros": lambda random, type: _moment(random),
    "local-timestamp-nanos": lambda random, type: -random.getrandbits(60),
    "decimal": _decimal,
    "big-decimal": lambda random, type: Decimal(
        random.choice(("0", "-1.50", "1e10", "123456789012345678901234567890.1"))
    ),
    "uuid": lambda random, type: UUID(int=random.getrandbits(128)),
    "duration": lambda random, type: Duration(*(random.getrandbits(31) for _ in range(3))),
}


def damaged(random: Random, content: bytes) -> bytes:
    """The bytes with something wrong, most of the time."""
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5))):
        choice = random.random()
        if choice < 0.4 and changed:
            changed[random.randrange(len(changed))] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF, random.randrange(256)))
        elif choice < 0.7:
            del changed[random.randrange(len(changed) + 1) :]
        else:
            place = random.randrange(len(changed) + 1)
            changed[place:place] = random.randbytes(random.choice((1, 2, 9)))
    return bytes(changed)
