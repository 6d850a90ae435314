"""Columns of PostgreSQL's texts to columns of Arrow, in the storage that Connect's types have.

Each function takes an array of strings, nulls among them, and gives one of the same length. What the kernels of Arrow
read, they read; rows in another form (years beyond 9999, BC, infinity, 24:00:00) are read one by one (`texts`).
"""

import json
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.connectors.postgres import texts
from ottla.connect.data.rows import stored_bytes
from ottla.connect.errors import DataError

Read = Callable[[Any], Any]

_PLAIN_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_PLAIN_MOMENT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_PLAIN_UTC: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?\+00$"
_DIGITS_128: Final = 38


def same(array: Any) -> Any:
    return array


def casts(kind: Any) -> Read:
    """Arrow's own reading of numbers; PostgreSQL's `NaN` and `Infinity` are among what it reads."""

    def read(array: Any) -> Any:
        try:
            return array.cast(kind)
        except pa.ArrowInvalid as error:
            raise DataError(str(error)) from None

    return read


def booleans(array: Any) -> Any:
    return pc.equal(array, "t")


def bit_booleans(array: Any) -> Any:
    return pc.equal(array, "1")


def by_row(read: Callable[[Any], Any], kind: Any) -> Read:
    """Row by row."""

    def read_all(array: Any) -> Any:
        return pa.array([None if text is None else read(text) for text in array.to_pylist()], kind)

    return read_all


def _mostly(array: Any, pattern: str, plain: Read, odd: Callable[[str], Any], kind: Any) -> Any:
    """`plain` for rows of this form, and `odd` for each of the others."""
    is_plain = pc.match_substring_regex(array, pattern)
    if pc.all(is_plain, min_count=0).as_py() is not False:
        return plain(array)
    read = plain(pc.if_else(is_plain, array, None))
    rows = pc.indices_nonzero(pc.invert(pc.fill_null(is_plain, True))).to_pylist()
    mask = np.zeros(len(array), dtype=bool)
    mask[rows] = True
    return pc.replace_with_mask(read, pa.array(mask), pa.array([odd(array[row].as_py()) for row in rows], kind))


def dates(array: Any) -> Any:
    """Days since 1970."""
    return _mostly(array, _PLAIN_DATE, lambda all_: all_.cast(pa.date32()).cast(pa.int32()), texts.days, pa.int32())


def times_us(array: Any) -> Any:
    """Microseconds of the day."""

    def plain(all_: Any) -> Any:
        # Arrow reads no times, but timestamps.
        return pc.binary_join_element_wise("1970-01-01", all_, " ").cast(pa.timestamp("us")).cast(pa.int64())

    return _mostly(array, r"^([01][0-9]|2[0-3]):", plain, texts.micros, pa.int64())


def timestamps_us(array: Any) -> Any:
    """Microseconds since 1970."""

    def plain(all_: Any) -> Any:
        return all_.cast(pa.timestamp("us")).cast(pa.int64())

    return _mostly(array, _PLAIN_MOMENT, plain, texts.epoch_micros, pa.int64())


def scaled(read: Read, divisor: int, kind: Any) -> Read:
    """The whole number below; a thousandth of microseconds for milliseconds."""

    def read_all(array: Any) -> Any:
        numbers = read(array)
        missing = numbers.is_null()
        quotients = np.asarray(pc.fill_null(numbers, 0)) // divisor
        return pa.array(quotients, mask=np.asarray(missing)).cast(kind)

    return read_all


def multiplied(read: Read, factor: int) -> Read:
    """Nanoseconds of microseconds; what is too large becomes the largest, as infinity is."""
    most = (1 << 63) - 1

    def read_all(array: Any) -> Any:
        numbers = read(array)
        try:
            return pc.multiply_checked(numbers, factor)
        except pa.ArrowInvalid:
            rows = [None if one is None else max(-most - 1, min(most, one * factor)) for one in numbers.to_pylist()]
            return pa.array(rows, pa.int64())

    return read_all


def zoned_timestamps(digits: int) -> Read:
    """ISO 8601 in UTC, with so many digits of a second; `infinity` stays as it is."""

    def plain(all_: Any) -> Any:
        fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(all_, 20, -3), 6, "0")
        parts = [pc.utf8_slice_codeunits(all_, 0, 10), "T", pc.utf8_slice_codeunits(all_, 11, 19)]
        if digits:
            parts += [".", pc.utf8_slice_codeunits(fraction, 0, digits)]
        return pc.binary_join_element_wise(*parts, "Z", "")

    def odd(text: str) -> str:
        return text if text.endswith("infinity") else texts.iso_moment(texts.epoch_micros(text), digits)

    def read(array: Any) -> Any:
        return _mostly(array, _PLAIN_UTC, plain, odd, pa.string())

    return read


def slices(data: Any, starts: Any, ends: Any, present: Any) -> Any:
    """An array of bytes of these slices of a buffer, null where not `present`.

    The slices come in the buffer's order, so that their bounds are the offsets of an array in which every second item
    is a slice; Arrow takes those out.
    """
    count = len(starts)
    bounds = np.empty(2 * count, dtype=np.int32)
    bounds[0::2] = starts
    bounds[1::2] = ends
    around = pa.Array.from_buffers(pa.binary(), max(2 * count - 1, 0), [None, pa.py_buffer(bounds), data])
    places = pa.array(np.arange(count, dtype=np.int64) * 2, mask=None if present is None else ~present)
    return around.take(places)


def hex_bytes(array: Any) -> Any:
    r"""The bytes of `\x00ff`."""
    raw = pc.fill_null(array, "\\x").cast(pa.binary())
    offsets, data = _bounds(raw)
    nibbles = slices(pa.py_buffer(data), offsets[:-1] + 2, offsets[1:], None)
    offsets, digits = _bounds(nibbles)
    values = _NIBBLES[digits]
    packed = (values[0::2] << 4 | values[1::2]).astype(np.uint8)
    bounds = (offsets // 2).astype(np.int32)
    missing = array.is_null()
    found = pa.Array.from_buffers(pa.binary(), len(array), [None, pa.py_buffer(bounds), pa.py_buffer(packed)])
    return pc.if_else(missing, None, found) if array.null_count else found


_NIBBLES: Final = np.zeros(256, dtype=np.uint8)
for _place, _letter in enumerate(b"0123456789abcdef"):
    _NIBBLES[_letter] = _place


def _bounds(array: Any) -> tuple[Any, Any]:
    """Offsets and bytes of an array of bytes that begins at its buffers' beginning."""
    array = pa.concat_arrays([array]) if array.offset else array
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[: len(array) + 1] if offsets is not None else np.zeros(1, np.int32)
    return bounds, np.frombuffer(data, dtype=np.uint8)[: bounds[-1]] if data is not None else np.zeros(0, np.uint8)


def decimals(scale: int) -> Read:
    """Unscaled numbers in bytes, of decimals with this many digits behind the point."""

    def odd(text: str) -> bytes:
        return stored_bytes(_unscaled(text, scale))

    def read(array: Any) -> Any:
        if scale >= 0 and _longest(array) + scale <= _DIGITS_128:
            return integers_in_bytes(array.cast(pa.decimal128(_DIGITS_128, scale)))
        return by_row(odd, pa.binary())(array)

    return read


def integers_in_bytes(array: Any) -> Any:
    """The unscaled numbers of decimals of 128 bits: big-endian, two's complement, as few bytes as each needs."""
    array = pa.concat_arrays([array]) if array.offset else array
    count = len(array)
    if not count:
        return pa.array([], pa.binary())
    words = np.frombuffer(array.buffers()[1], dtype=np.uint8)[: count * 16].reshape(count, 16)
    present = np.asarray(array.is_valid())
    big = np.ascontiguousarray(words[:, ::-1])
    if not present.all():
        big[~present] = 0
    sign = np.where(big[:, 0] >= 128, 255, 0).astype(np.uint8)
    # A byte of the sign may go if the next begins with the sign.
    may_go = (big[:, :15] == sign[:, None]) & ((big[:, 1:] >= 128) == (sign[:, None] == 255))
    gone = np.cumprod(may_go, axis=1, dtype=np.int32).sum(axis=1)
    ends = np.arange(1, count + 1, dtype=np.int64) * 16
    return slices(pa.py_buffer(big), ends - 16 + gone, ends, present)


def variable_decimals(array: Any) -> Any:
    """Structs of scale and unscaled number, without zeros at the end."""
    trimmed = pc.replace_substring_regex(array, r"\.0*$|(\.[0-9]*[1-9])0+$", r"\1")
    point = pc.find_substring(trimmed, ".")
    length = pc.binary_length(trimmed)
    scale = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(length, point), 1)).cast(pa.int32())
    digits = pc.replace_substring(trimmed, ".", "", max_replacements=1)
    if _longest(digits) <= _DIGITS_128:
        unscaled = integers_in_bytes(digits.cast(pa.decimal128(_DIGITS_128, 0)))
    else:
        unscaled = by_row(lambda text: stored_bytes(_integer(text)), pa.binary())(digits)
    fields = [pa.field("scale", pa.int32()), pa.field("value", pa.binary())]
    return pa.StructArray.from_arrays([scale, unscaled], fields=fields, mask=array.is_null())


def _longest(array: Any) -> int:
    """Arrow does not notice when a text has more digits than its decimals, so they are counted first."""
    return int(pc.max(pc.binary_length(array)).as_py() or 0)


def _unscaled(text: str, scale: int) -> int:
    """Exact, unlike the arithmetic of decimals, which rounds to 28 digits."""
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    number = int(Decimal((0, digits, 0)))
    more = exponent + scale
    factor: int = 10 ** abs(more)
    number = number * factor if more >= 0 else number // factor
    return -number if sign else number


def _integer(text: str) -> int:
    return int(Decimal(text))  # `int` refuses more than 4,300 digits


SPECIAL: Final = r"^(NaN|-?Infinity)$"


def without_special(read: Read) -> Read:
    """NaN and infinity, which a Decimal cannot be, become null."""

    def read_all(array: Any) -> Any:
        special = pc.match_substring_regex(array, SPECIAL)
        if pc.any(special).as_py():
            array = pc.if_else(special, None, array)
        return read(array)

    return read_all


def money(read: Read) -> Read:
    """`-$1,234.56` is read as -1234.56."""

    def read_all(array: Any) -> Any:
        return read(pc.replace_substring_regex(array, r"[^0-9.\-]", ""))

    return read_all


def rounded(digits: int) -> Read:
    """Decimals as texts, with this many digits behind the point, half up."""

    def read(text: str) -> str:
        return format(round_half_up(Decimal(text), digits), "f")

    return by_row(read, pa.string())


def round_half_up(number: Decimal, digits: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-digits), rounding="ROUND_HALF_UP")


def points(array: Any) -> Any:
    """Structs of x, y and the same in WKB, of `(1.5,-2)`."""
    rows: list[dict[str, Any] | None] = []
    for text in array.to_pylist():
        if text is None:
            rows.append(None)
            continue
        x, y = map(float, text[1:-1].split(","))
        rows.append(point(x, y))
    return pa.array(rows, POINT)


def point(x: float, y: float) -> dict[str, Any]:
    return {"x": x, "y": y, "wkb": struct.pack("<BIdd", 1, 1, x, y), "srid": None}


POINT: Final = pa.struct([("x", pa.float64()), ("y", pa.float64()), ("wkb", pa.binary()), ("srid", pa.int32())])
GEOMETRY: Final = pa.struct([("wkb", pa.binary()), ("srid", pa.int32())])


def geometries(array: Any) -> Any:
    """Structs of EWKB and its SRID, of PostGIS's hexadecimal."""

    def read(text: str) -> dict[str, Any]:
        ewkb = bytes.fromhex(text)
        if len(ewkb) < 9:
            raise DataError(f"{text!r} is no geometry of PostGIS's")
        order = "<" if ewkb[0] else ">"
        (kind,) = struct.unpack_from(order + "I", ewkb, 1)
        return {"wkb": ewkb, "srid": struct.unpack_from(order + "i", ewkb, 5)[0] if kind & 0x20000000 else None}

    return by_row(read, GEOMETRY)(array)


def vectors(kind: Any) -> Read:
    """Lists of numbers, of `[1,2.5,-3]`."""

    def read(array: Any) -> Any:
        split = pc.split_pattern(pc.utf8_slice_codeunits(array, 1, -1), ",")
        return _list(split, split.flatten().cast(kind), array)

    return read


def _list(split: Any, items: Any, array: Any) -> Any:
    lengths = np.asarray(pc.fill_null(pc.list_value_length(split), 0))
    bounds = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    missing = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(bounds), items, mask=missing)


SPARSE: Final = pa.struct([("dimensions", pa.int16()), ("vector", pa.map_(pa.int16(), pa.float64()))])


def sparse_vectors(array: Any) -> Any:
    def read(text: str) -> dict[str, Any]:
        dimensions, pairs = texts.sparse(text)
        return {"dimensions": dimensions, "vector": pairs}

    return by_row(read, SPARSE)(array)


def arrays(read: Read) -> Read:
    """Lists, of PostgreSQL's arrays, whose items `read` reads."""

    def read_all(array: Any) -> Any:
        items: list[str | None] = []
        bounds = [0]
        for text in array.to_pylist():
            if text is not None:
                items += texts.array_items(text)
            bounds.append(len(items))
        missing = array.is_null() if array.null_count else None
        inner = read(pa.array(items, pa.string()))
        return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), inner, mask=missing)

    return read_all


def hstore_json(text: str) -> str:
    return json.dumps(dict(texts.hstore_pairs(text)), ensure_ascii=False, separators=(",", ":"))
