"""Avro values from bytes and to bytes, in Python: the twin of `_fast.pyx`, which is the same, compiled.

Both take plans (`plan`), give equal values and say the same of what is wrong. A change to one needs the same in the
other.
"""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from ottla.schemas.avro import plan as codes
from ottla.schemas.avro.plan import MOST_EMPTY, MOST_NESTED, EncodingPlan, Plan
from ottla.schemas.faults import CannotDecode, CannotEncode

Buffer = bytes | bytearray | memoryview

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_DURATION: Final = struct.Struct("<III")
_EPOCH: Final = datetime(1970, 1, 1)
_UTC_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAY_MICROS: Final = 86_400_000_000
_PRECISE: Final = Context(prec=100_000)
_MICRO: Final = timedelta(microseconds=1)


class Duration(NamedTuple):
    """A value of the logical type `duration`: none of the three can be had from the others."""

    months: int
    days: int
    milliseconds: int


class Decoder:
    """Values from bytes, by one plan. `factories` makes objects of records, by full name, from their dict; `as_raw`
    leaves logical types as what they are encoded as. `as_tree` tells everything: a value of a union is a pair of its
    branch and itself, a map is a list of pairs."""

    def __init__(
        self,
        plan: Plan,
        factories: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        as_raw: bool = False,
        as_tree: bool = False,
    ) -> None:
        self._plan = plan
        self._factories = dict(factories or {})
        self._as_raw = as_raw
        self._as_tree = as_tree

    def decode(self, content: Buffer, start: int = 0) -> Any:
        """The value that begins at `start`. What comes after it is not looked at. Raises `CannotDecode`."""
        return _Reading(bytes(content), start, self).read(self._plan)

    def decode_all(self, content: Buffer, start: int = 0) -> tuple[Any, int]:
        """The value, and where it ends."""
        reading = _Reading(bytes(content), start, self)
        return reading.read(self._plan), reading.at


class _Reading:
    def __init__(self, content: bytes, start: int, decoder: Decoder) -> None:
        self.content = content
        self.at = start
        self._decoder = decoder
        self._depth = 0
        self._empty = 0
        if start > len(content):
            raise CannotDecode("the value ends before it begins")

    def read(self, plan: Plan) -> Any:
        match plan.code:
            case codes.NULL:
                return None
            case codes.BOOLEAN:
                return self._boolean()
            case codes.INT:
                return self._int(plan)
            case codes.LONG:
                value = self._long()
                return (
                    self._logical_number(value, plan.logical) if plan.logical and not self._decoder._as_raw else value
                )
            case codes.FLOAT | codes.FLOAT_AS_DOUBLE:
                return _FLOAT.unpack(self._take(4))[0]
            case codes.DOUBLE:
                return _DOUBLE.unpack(self._take(8))[0]
            case codes.LONG_AS_DOUBLE:
                return float(self._long())
            case codes.LONG_AS_FLOAT:
                return _FLOAT.unpack(_FLOAT.pack(self._long()))[0]
            case codes.BYTES:
                content = self._take(self._length())
                return self._logical_bytes(content, plan) if plan.logical and not self._decoder._as_raw else content
            case codes.STRING:
                return self._string(plan)
            case codes.FIXED:
                content = self._take(plan.size)
                return self._logical_bytes(content, plan) if plan.logical and not self._decoder._as_raw else content
            case codes.ENUM:
                return self._symbol(plan)
            case codes.ERROR:
                raise CannotDecode(plan.message)
            case codes.BRANCH:
                assert plan.inner is not None
                value = self.read(plan.inner)
                return (plan.reader_branch, value) if self._decoder._as_tree else value
            case _:
                return self._complex(plan)

    def _complex(self, plan: Plan) -> Any:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise CannotDecode(f"the value is nested deeper than {MOST_NESTED}")
        match plan.code:
            case codes.UNION:
                index = self._long()
                if not 0 <= index < len(plan.branches):
                    raise CannotDecode(f"there is no branch {index} in a union of {len(plan.branches)}")
                value = self.read(plan.branches[index])
            case codes.ARRAY:
                value = self._array(plan)
            case codes.MAP:
                value = self._map(plan)
            case _:
                value = self._record(plan)
        self._depth -= 1
        return value

    def _take(self, count: int) -> bytes:
        start = self.at
        self.at = end = start + count
        if end > len(self.content):
            raise CannotDecode(
                f"the value ends in the middle: {count} bytes are wanted, and {len(self.content) - start} left"
            )
        return self.content[start:end]

    def _boolean(self) -> bool:
        byte = self._take(1)[0]
        if byte > 1:
            raise CannotDecode(f"{byte} is no boolean")
        return byte == 1

    def _long(self) -> int:
        number = shift = 0
        content, at = self.content, self.at
        while True:
            if at >= len(content):
                raise CannotDecode("the value ends in the middle of a number")
            byte = content[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                raise CannotDecode("a number has more than 64 bits")
        self.at = at
        number &= 0xFFFF_FFFF_FFFF_FFFF
        return (number >> 1) ^ -(number & 1)

    def _int(self, plan: Plan) -> Any:
        value = self._long()
        if not -(1 << 31) <= value < 1 << 31:
            raise CannotDecode(f"{value} is no int of 32 bits")
        return self._logical_number(value, plan.logical) if plan.logical and not self._decoder._as_raw else value

    def _length(self) -> int:
        length = self._long()
        if length < 0:
            raise CannotDecode(f"a length is negative: {length}")
        return length

    def _string(self, plan: Plan) -> Any:
        content = self._take(self._length())
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise CannotDecode("a string is not UTF-8") from None
        if plan.logical == 12 and not self._decoder._as_raw:
            try:
                return UUID(text)
            except ValueError:
                raise CannotDecode(f"{text!r} is no UUID") from None
        return text

    def _symbol(self, plan: Plan) -> str:
        number = self._long()
        if not 0 <= number < len(plan.symbols):
            raise CannotDecode(f"there is no symbol {number} in an enum of {len(plan.symbols)}")
        symbol = plan.symbols[number]
        if symbol is None:
            raise CannotDecode(f"symbol {number} of the writer is not in {plan.name}, which has no default")
        return symbol

    def _block(self, plan: Plan) -> int:
        """How many elements the next block has; 0 ends them. A negative number has the block's size behind it."""
        assert plan.inner is not None
        count = self._long()
        if count < 0:
            count = -count
            self._length()
        if plan.inner.takes_nothing and plan.code == codes.ARRAY:
            self._empty += count
            if self._empty > MOST_EMPTY:
                raise CannotDecode(f"more than {MOST_EMPTY} elements of no bytes")
        elif count > len(self.content) - self.at:
            raise CannotDecode(f"{count} elements are announced, and {len(self.content) - self.at} bytes left")
        return count

    def _array(self, plan: Plan) -> list[Any]:
        values: list[Any] = []
        inner = plan.inner
        assert inner is not None
        while count := self._block(plan):
            values += [self.read(inner) for _ in range(count)]
        return values

    def _map(self, plan: Plan) -> dict[str, Any] | list[tuple[str, Any]]:
        values: list[tuple[str, Any]] = []
        inner = plan.inner
        assert inner is not None
        while count := self._block(plan):
            for _ in range(count):
                key = self._take(self._length())
                try:
                    name = key.decode()
                except UnicodeDecodeError:
                    raise CannotDecode("a key of a map is not UTF-8") from None
                values.append((name, self.read(inner)))
        return values if self._decoder._as_tree else dict(values)

    def _record(self, plan: Plan) -> Any:
        values: dict[str, Any] = dict.fromkeys(plan.names)
        for place, step, given in plan.steps:
            if given is not None:
                values[plan.names[place]] = self._default(step, given)
            elif place < 0:
                self.read(step)
            else:
                values[plan.names[place]] = self.read(step)
        factory = self._decoder._factories.get(plan.name)
        return factory(values) if factory is not None else values

    def _default(self, step: Plan, given: bytes) -> Any:
        content, at = self.content, self.at
        self.content, self.at = given, 0
        value = self.read(step)
        self.content, self.at = content, at
        return value

    def _logical_number(self, value: int, logical: int) -> Any:
        try:
            match logical:
                case 1:
                    return date.fromordinal(value + _EPOCH_DAY)
                case 2:
                    return _time_of_day(value * 1_000)
                case 3:
                    return _time_of_day(value)
                case 4:
                    return _UTC_EPOCH + timedelta(milliseconds=value)
                case 5:
                    return _UTC_EPOCH + timedelta(microseconds=value)
                case 7:
                    return _EPOCH + timedelta(milliseconds=value)
                case 8:
                    return _EPOCH + timedelta(microseconds=value)
                case _:
                    return value  # Python has no time of nanoseconds: they are the number.
        except (OverflowError, ValueError):
            raise CannotDecode(f"{value} is no time that Python has") from None

    def _logical_bytes(self, content: bytes, plan: Plan) -> Any:
        match plan.logical:
            case 10:
                return _decimal(content, plan.scale)
            case 11:
                return _big_decimal(content)
            case 12:
                return UUID(bytes=content)
            case _:
                return Duration(*_DURATION.unpack(content))


def _time_of_day(micros: int) -> time:
    if not 0 <= micros < _DAY_MICROS:
        raise ValueError
    seconds, micros = divmod(micros, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def _decimal(content: bytes, scale: int) -> Decimal:
    return Decimal(int.from_bytes(content, "big", signed=True)).scaleb(-scale, _PRECISE)


def _big_decimal(content: bytes) -> Decimal:
    reading = _Reading(content, 0, _PLAIN)
    unscaled = reading._take(reading._length())
    scale = reading._long()
    if not -100_000 <= scale <= 100_000:
        raise CannotDecode(f"a decimal has a scale of {scale}")
    return _decimal(unscaled, scale)


_PLAIN: Final = Decoder(Plan(codes.NULL))


class Encoder:
    """Values to bytes, by one plan."""

    def __init__(self, plan: EncodingPlan) -> None:
        self._plan = plan

    def encode(self, value: Any, prefix: bytes = b"") -> bytes:
        """The value's bytes, after `prefix`. Raises `CannotEncode`."""
        out = bytearray(prefix)
        _write(self._plan, value, out, 0)
        return bytes(out)


def _write(plan: EncodingPlan, value: Any, out: bytearray, depth: int) -> None:
    if depth > MOST_NESTED:
        raise CannotEncode(f"the value is nested deeper than {MOST_NESTED}")
    match plan.code:
        case codes.NULL:
            if value is not None:
                raise _unfit(value, plan)
        case codes.BOOLEAN:
            if value is not True and value is not False:
                raise _unfit(value, plan)
            out.append(value)
        case codes.INT:
            _write_long(_number(value, plan, 31), out)
        case codes.LONG:
            _write_long(_number(value, plan, 63), out)
        case codes.FLOAT:
            try:
                out += _FLOAT.pack(_floating(value, plan))
            except OverflowError:
                raise CannotEncode(f"{value!r} is too large for a float of 32 bits") from None
        case codes.DOUBLE:
            out += _DOUBLE.pack(_floating(value, plan))
        case codes.BYTES:
            _write_bytes(_content(value, plan), out)
        case codes.STRING:
            _write_bytes(_text(value, plan), out)
        case codes.FIXED:
            content = _content(value, plan)
            if len(content) != plan.size:
                raise CannotEncode(f"{plan.name} has {plan.size} bytes, and {len(content)} were given")
            out += content
        case codes.ENUM:
            number = plan.numbers.get(_symbol(value))
            if number is None:
                raise CannotEncode(f"{value!r} is no symbol of {plan.name}")
            _write_long(number, out)
        case codes.UNION:
            index, value = _branch(plan, value)
            _write_long(index, out)
            _write(plan.branches[index], value, out, depth + 1)
        case codes.ARRAY:
            _write_array(plan, value, out, depth)
        case codes.MAP:
            _write_map(plan, value, out, depth)
        case _:
            _write_record(plan, value, out, depth)


def _unfit(value: Any, plan: EncodingPlan) -> CannotEncode:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:80] + "…"
    return CannotEncode(f"{shown} ({type(value).__name__}) is no {plan.name}")


def _write_array(plan: EncodingPlan, value: Any, out: bytearray, depth: int) -> None:
    if not isinstance(value, list | tuple):
        raise _unfit(value, plan)
    assert plan.inner is not None
    if value:
        _write_long(len(value), out)
        for place, one in enumerate(value):
            try:
                _write(plan.inner, one, out, depth + 1)
            except CannotEncode as error:
                raise CannotEncode(error.reason, (f"[{place}]", *error.path)) from None
    out.append(0)


def _write_map(plan: EncodingPlan, value: Any, out: bytearray, depth: int) -> None:
    if not isinstance(value, Mapping):
        raise _unfit(value, plan)
    assert plan.inner is not None
    if value:
        _write_long(len(value), out)
        for key, one in value.items():
            if not isinstance(key, str):
                raise CannotEncode(f"{key!r} is no key of a map: they are strings")
            _write_bytes(_utf_8(key), out)
            try:
                _write(plan.inner, one, out, depth + 1)
            except CannotEncode as error:
                raise CannotEncode(error.reason, (f"[{key!r}]", *error.path)) from None
    out.append(0)


_MISSING: Final = object()


def _write_record(plan: EncodingPlan, value: Any, out: bytearray, depth: int) -> None:
    is_mapping = isinstance(value, Mapping)
    if not is_mapping and (value is None or isinstance(value, str | bytes | int | float | list | tuple)):
        raise _unfit(value, plan)
    for name, step, default in zip(plan.names, plan.steps, plan.defaults, strict=True):
        part = value.get(name, _MISSING) if is_mapping else getattr(value, name, _MISSING)
        if part is _MISSING:
            if default is None:
                raise CannotEncode(f"{plan.name} needs a value, which is missing and has no default", (name,))
            out += default
            continue
        try:
            _write(step, part, out, depth + 1)
        except CannotEncode as error:
            raise CannotEncode(error.reason, (name, *error.path)) from None


def _number(value: Any, plan: EncodingPlan, bits: int) -> int:
    if plan.logical:
        value = _logical_number(value, plan.logical)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unfit(value, plan)
    if not -(1 << bits) <= value < 1 << bits:
        raise CannotEncode(f"{value} is no {plan.name} of {bits + 1} bits")
    return value


def _logical_number(value: Any, logical: int) -> Any:
    """The number that stands for a date or a time. What is a number already stays so."""
    if isinstance(value, datetime):
        if logical in (4, 5, 6):
            since = (value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _UTC_EPOCH
        elif logical in (7, 8, 9):
            since = value.replace(tzinfo=None) - _EPOCH
        elif logical == 1:
            return value.date().toordinal() - _EPOCH_DAY
        else:
            return value
        micros = since // _MICRO
        return micros // 1_000 if logical in (4, 7) else micros if logical in (5, 8) else micros * 1_000
    if isinstance(value, date) and logical == 1:
        return value.toordinal() - _EPOCH_DAY
    if isinstance(value, time) and logical in (2, 3):
        micros = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        return micros // 1_000 if logical == 2 else micros
    return value


def _floating(value: Any, plan: EncodingPlan) -> float:
    if isinstance(value, float):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        raise _unfit(value, plan)
    try:
        return float(value)
    except OverflowError:
        raise CannotEncode(f"an integer of {value.bit_length()} bits is too large for a {plan.name}") from None


def _content(value: Any, plan: EncodingPlan) -> bytes | bytearray | memoryview:
    if isinstance(value, bytes | bytearray | memoryview):
        return value
    if isinstance(value, Decimal):
        if plan.logical == 10:
            return _decimal_bytes(value, plan)
        if plan.logical == 11:
            return _big_decimal_bytes(value)
    if isinstance(value, UUID) and plan.logical == 12:
        return value.bytes
    if plan.logical == 13 and isinstance(value, tuple) and len(value) == 3:
        try:
            return _DURATION.pack(*value)
        except struct.error:
            raise _unfit(value, plan) from None
    raise _unfit(value, plan)


def _decimal_bytes(value: Decimal, plan: EncodingPlan) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise CannotEncode(f"{value} is no number that a decimal can be")
    shift = exponent + plan.scale
    if shift < 0 and any(digits[shift:]):
        raise CannotEncode(f"{value} has more than {plan.scale} decimals")
    if value and value.adjusted() + plan.scale + 1 > plan.precision:
        raise CannotEncode(f"{value} has more than {plan.precision} digits")
    unscaled = int("".join(map(str, digits))) if value else 0
    if unscaled:  # zero may have any exponent
        unscaled = unscaled * int(10**shift) if shift >= 0 else unscaled // int(10**-shift)
    unscaled = -unscaled if sign else unscaled
    length = plan.size if plan.code == codes.FIXED else _signed_length(unscaled)
    return unscaled.to_bytes(length, "big", signed=True)


def _signed_length(number: int) -> int:
    return (number + (number < 0)).bit_length() // 8 + 1


def _big_decimal_bytes(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise CannotEncode(f"{value} is no number that a decimal can be")
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    out = bytearray()
    _write_bytes(unscaled.to_bytes(_signed_length(unscaled), "big", signed=True), out)
    _write_long(-exponent, out)
    return bytes(out)


def _text(value: Any, plan: EncodingPlan) -> bytes:
    if isinstance(value, str):
        return _utf_8(value)
    if plan.logical == 12 and isinstance(value, UUID):
        return str(value).encode()
    raise _unfit(value, plan)


def _utf_8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise CannotEncode(f"{text[:80]!r} has half of a surrogate pair, which UTF-8 cannot encode") from None


def _symbol(value: Any) -> Any:
    """The symbol that a value is: a string, or an enum of Python's whose name or value is one."""
    if isinstance(value, str) and type(value) is str:
        return value
    return getattr(value, "name", value) if not isinstance(value, str) else str(getattr(value, "value", value))


def _branch(plan: EncodingPlan, value: Any) -> tuple[int, Any]:
    """The branch of a union that a value is of: the one that it names, or the first that fits best. A value names its
    branch as a pair of name and value."""
    if type(value) is tuple and len(value) == 2 and isinstance(value[0], str) and value[0] in plan.branch_names:
        return plan.branch_names[value[0]], value[1]
    best, chosen = 0, -1
    for index, branch in enumerate(plan.branches):
        score = fit(branch, value)
        if score > best:
            best, chosen = score, index
    if chosen < 0:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:80] + "…"
        names = ", ".join(branch.name for branch in plan.branches)
        raise CannotEncode(f"{shown} ({type(value).__name__}) is none of [{names}]")
    return chosen, value


def fit(plan: EncodingPlan, value: Any) -> int:
    """How well a value fits a branch: 0 not at all, 4 exactly."""
    code, logical = plan.code, plan.logical
    if value is None:
        return 4 if code == codes.NULL else 0
    if isinstance(value, bool):
        return 4 if code == codes.BOOLEAN else 0
    if isinstance(value, int):
        if code == codes.INT:
            return (3 if logical else 4) if -(1 << 31) <= value < 1 << 31 else 0
        if code == codes.LONG:
            return (2 if logical else 3) if -(1 << 63) <= value < 1 << 63 else 0
        return 1 if code in (codes.FLOAT, codes.DOUBLE) else 0
    if isinstance(value, float):
        return 4 if code == codes.DOUBLE else 3 if code == codes.FLOAT else 0
    if isinstance(value, str):
        if code == codes.ENUM:
            return 3 if _symbol(value) in plan.numbers else 0
        return (2 if logical else 4) if code == codes.STRING else 0
    if isinstance(value, bytes | bytearray | memoryview):
        if code == codes.FIXED:
            return 3 if len(value) == plan.size else 0
        return 4 if code == codes.BYTES else 0
    if isinstance(value, datetime):
        wanted = (4, 5, 6) if value.tzinfo is not None else (7, 8, 9)
        return 4 if logical in wanted else 2 if logical in (4, 5, 6, 7, 8, 9) else 1 if logical == 1 else 0
    if isinstance(value, date):
        return 4 if logical == 1 else 0
    if isinstance(value, time):
        return 4 if logical == 3 else 3 if logical == 2 else 0
    if isinstance(value, Decimal):
        return 4 if logical in (10, 11) else 0
    if isinstance(value, UUID):
        return 4 if logical == 12 else 0
    return _fit_complex(plan, value)


def _fit_complex(plan: EncodingPlan, value: Any) -> int:
    code = plan.code
    if plan.logical == 13 and isinstance(value, tuple):
        return 4
    if isinstance(value, list | tuple):
        return 3 if code == codes.ARRAY else 0
    if isinstance(value, Mapping):
        if code == codes.RECORD:
            known = sum(name in value for name in plan.names)
            is_whole = all(
                name in value or given is not None for name, given in zip(plan.names, plan.defaults, strict=True)
            )
            return (4 if known == len(value) else 2) if is_whole else 0
        return 3 if code == codes.MAP else 0
    if code == codes.ENUM:
        return 3 if _symbol(value) in plan.numbers else 0
    if code == codes.RECORD:
        if getattr(type(value), "__name__", "") == plan.name.rpartition(".")[2]:
            return 4
        return 2 if all(hasattr(value, name) for name in plan.names) else 0
    return 0


def _write_long(number: int, out: bytearray) -> None:
    number = (number << 1) ^ (number >> 63)
    while number > 0x7F:
        out.append((number & 0x7F) | 0x80)
        number >>= 7
    out.append(number)


def _write_bytes(content: bytes | bytearray | memoryview, out: bytearray) -> None:
    _write_long(len(content), out)
    out += content
