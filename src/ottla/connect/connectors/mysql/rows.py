"""Rows of many events to columns, without a step of Python's for each row.

Theory of operation. A row is a bitmap of nulls, then the values that are not null, one behind the other: where a value
begins depends on all before it, and where a row begins on the row before it. But events do not depend on each other.
So all events of a table are walked at once: in step k the k-th row of every event, column by column, as arithmetic on
arrays of positions (`split`). What was found are positions and lengths; the values of a column are then taken for all
rows together, straight into Arrow.

A server puts as many rows into an event as fit into `binlog_row_event_max_size` (8 kB), so that a batch of megabytes
has many events, and the number of steps is that of rows in one event. One huge event alone costs a step a row, and is
read as fast as row by row.
"""

import codecs
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.connectors.mysql import binlog
from ottla.connect.connectors.mysql.binlog import Damaged, MapColumn
from ottla.connect.connectors.postgres.columns import integers_in_bytes, slices
from ottla.connect.data.rows import stored_bytes

_PADDING: Final = bytes(16)
_DECIMAL_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_MOST_INT64_DIGITS: Final = 18
_TOO_LONG: Final = (
    "a row is longer than its event: the binary log is damaged, or the table's columns are not those of the event"
)


@dataclass(frozen=True, slots=True)
class Part:
    """The rows part of one event: where it is in `data`."""

    data: bytes
    start: int
    kind: int


def part_of(event_kind: int, body: bytes, count: int) -> Part:
    """The rows of a rows event of a table with `count` columns. Raises `Damaged` if columns are missing."""
    kind, version, is_compressed = binlog.ROWS[event_kind]
    at = 8
    if version == 2:
        at += int.from_bytes(body[8:10], "little")
    width, at = binlog.lenenc(body, at)
    if width != count:
        raise Damaged(f"a row has {width} columns, and its table {count}")
    size = (count + 7) // 8
    full = (1 << count) - 1
    for _ in range(2 if kind == binlog.UPDATE else 1):
        if int.from_bytes(body[at : at + size], "little") & full != full:
            raise Damaged("a row does not have all columns: set binlog_row_image to FULL on the server")
        at += size
    if is_compressed:
        return Part(binlog.inflated(body[at:]), 0, kind)
    return Part(body, at, kind)


@dataclass(frozen=True, slots=True)
class Values:
    """One column of some rows: where each value is in `data`, how long, and which are null."""

    data: Any
    starts: Any
    lengths: Any
    nulls: Any

    def take(self, rows: Any) -> "Values":
        return Values(self.data, self.starts[rows], self.lengths[rows], self.nulls[rows])

    def fixed(self, width: int) -> Any:
        """The bytes of all values, which have the same width: an array of rows of bytes."""
        return np.lib.stride_tricks.sliding_window_view(self.data, width)[self.starts]

    def mask(self) -> Any:
        return self.nulls if self.nulls.any() else None


@dataclass(frozen=True, slots=True)
class Images:
    """All images of rows, in the order of the stream. `events` has for each the place of its event, `numbers` its
    place among the images of that event."""

    columns: list[Values]
    events: Any
    numbers: Any


def split(parts: Sequence[Part], columns: Sequence[MapColumn]) -> Images:
    """Where the values are. Raises `Damaged` if a row goes beyond its event."""
    pieces = [part.data[part.start :] for part in parts]
    sizes = np.array([len(piece) for piece in pieces], dtype=np.int64)
    data = np.frombuffer(b"".join([*pieces, _PADDING * 4]), dtype=np.uint8)
    ends = np.cumsum(sizes)
    at = ends - sizes
    widths = [_width(one) for one in columns]
    bitmap = (len(columns) + 7) // 8
    active = np.flatnonzero(at < ends)
    found: list[tuple[Any, Any, Any, list[Any], list[Any]]] = []
    number = 0
    while len(active):
        place = at[active]
        bits = np.lib.stride_tricks.sliding_window_view(data, bitmap)[place]
        nulls: Any = np.unpackbits(bits, axis=1, bitorder="little")[:, : len(columns)].astype(bool)
        has_nulls = nulls.any(axis=0).tolist()
        place = place + bitmap
        starts: list[Any] = []
        lengths: list[Any] = []
        for column, (fixed, prefix) in enumerate(widths):
            if not prefix:
                starts.append(place)
                if has_nulls[column]:
                    length: Any = np.where(nulls[:, column], 0, fixed)
                    place = place + length
                else:
                    length = fixed
                    place = place + fixed
            else:
                length = data[place].astype(np.int64)
                for byte in range(1, prefix):
                    length |= data[place + byte].astype(np.int64) << (8 * byte)
                if has_nulls[column]:
                    gone = nulls[:, column]
                    length = np.where(gone, 0, length)
                    begins = place + np.where(gone, 0, prefix)
                else:
                    begins = place + prefix
                starts.append(begins)
                place = begins + length
                # A length that is not one must not lead out of the data.
                if (place > ends[active]).any():
                    raise Damaged(_TOO_LONG)
            lengths.append(length)
        if (place > ends[active]).any():
            raise Damaged(_TOO_LONG)
        found.append((active, np.full(len(active), number), nulls, starts, lengths))
        at[active] = place
        active = active[place < ends[active]]
        number += 1
    return _joined(found, len(columns), data)


def _joined(found: list[tuple[Any, Any, Any, list[Any], list[Any]]], count: int, data: Any) -> Images:
    if not found:
        none = np.zeros(0, np.int64)
        return Images([Values(data, none, none, np.zeros(0, bool)) for _ in range(count)], none, none)
    events = np.concatenate([one[0] for one in found])
    numbers = np.concatenate([one[1] for one in found])
    nulls = np.concatenate([one[2] for one in found])
    order = np.lexsort((numbers, events)) if len(found) > 1 else np.arange(len(events))
    columns: list[Values] = []
    for column in range(count):
        starts = np.concatenate([one[3][column] for one in found])
        lengths = np.concatenate(
            [
                one[4][column] if isinstance(one[4][column], np.ndarray) else np.full(len(one[0]), one[4][column])
                for one in found
            ]
        )
        columns.append(Values(data, starts[order], lengths[order], nulls[order, column]))
    return Images(columns, events[order], numbers[order])


def decimal_bytes(precision: int, scale: int) -> int:
    whole = precision - scale
    return whole // 9 * 4 + _DECIMAL_BYTES[whole % 9] + scale // 9 * 4 + _DECIMAL_BYTES[scale % 9]


def _width(column: MapColumn) -> tuple[int, int]:
    """How many bytes a value has, or (0, n): a length of n bytes stands before it."""
    kind, meta = column.kind, column.meta
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed, 0
    if kind in (binlog.TIMESTAMP2, binlog.DATETIME2, binlog.TIME2):
        return {binlog.TIMESTAMP2: 4, binlog.DATETIME2: 5, binlog.TIME2: 3}[kind] + (meta + 1) // 2, 0
    if kind == binlog.NEWDECIMAL:
        return decimal_bytes(meta & 0xFF, meta >> 8), 0
    if kind == binlog.BIT:
        return ((meta >> 8) * 8 + (meta & 0xFF) + 7) // 8, 0
    if kind in (binlog.ENUM, binlog.SET):
        return meta, 0
    if kind in (binlog.VARCHAR, binlog.VAR_STRING, binlog.STRING, binlog.VARCHAR_COMPRESSED):
        return 0, 1 if meta < 256 else 2
    if kind in _BLOBS:
        return 0, meta
    raise Damaged(f"a column has the type {kind}, which is not known")


_FIXED: Final = {
    binlog.TINY: 1, binlog.SHORT: 2, binlog.INT24: 3, binlog.LONG: 4, binlog.LONGLONG: 8, binlog.FLOAT: 4,
    binlog.DOUBLE: 8, binlog.TIMESTAMP: 4, binlog.DATE: 3, binlog.TIME: 3, binlog.DATETIME: 8, binlog.YEAR: 1,
    6: 0, 14: 3,
}  # fmt: skip
_BLOBS: Final = frozenset(
    [
        binlog.BLOB,
        binlog.TINY_BLOB,
        binlog.MEDIUM_BLOB,
        binlog.LONG_BLOB,
        binlog.JSON,
        binlog.GEOMETRY,
        binlog.BLOB_COMPRESSED,
    ]
)

Read = Callable[[Values], Any]
"""A column of Arrow, of what `types` calls plain values."""


def integers(width: int, *, unsigned: bool) -> Read:
    """int64, or uint64 where that is needed."""

    def read(values: Values) -> Any:
        raw = values.fixed(width)
        if width == 3:
            last = raw[:, 2:3]
            sign = np.zeros_like(last) if unsigned else np.where(last >= 128, 255, 0).astype(np.uint8)
            numbers = np.ascontiguousarray(np.concatenate([raw, sign], axis=1)).view("<i4")[:, 0]
        else:
            numbers = np.ascontiguousarray(raw).view(f"<{'u' if unsigned else 'i'}{width}")[:, 0]
        kind = np.uint64 if unsigned and width == 8 else np.int64
        return pa.array(numbers.astype(kind), mask=values.mask())

    return read


def floats(width: int) -> Read:
    def read(values: Values) -> Any:
        numbers = np.ascontiguousarray(values.fixed(width)).view(f"<f{width}")[:, 0]
        return pa.array(numbers, mask=values.mask())

    return read


def _big(raw: Any) -> Any:
    """Big-endian numbers of up to seven bytes."""
    number = np.zeros(len(raw), dtype=np.int64)
    for byte in range(raw.shape[1]):
        number = number << 8 | raw[:, byte].astype(np.int64)
    return number


def _fraction_us(raw: Any, digits: int) -> Any:
    return _big(raw) * (1, 10_000, 100, 1)[(digits + 1) // 2]


def decimals(precision: int, scale: int) -> Read:
    """Unscaled numbers, in bytes as a Decimal has them. Groups of nine digits have four bytes each."""
    whole = precision - scale
    groups = [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]
    width = decimal_bytes(precision, scale)

    def read(values: Values) -> Any:
        raw = values.fixed(width).copy()
        is_negative = raw[:, 0] < 128
        raw[:, 0] ^= 0x80
        raw[is_negative] ^= 0xFF
        is_small = precision <= _MOST_INT64_DIGITS
        number = np.zeros(len(raw), dtype=np.int64 if is_small else object)
        at = 0
        for digits in groups:
            size = _DECIMAL_BYTES[digits]
            if digits:
                part = _big(raw[:, at : at + size])
                number = number * 10**digits + (part if is_small else part.astype(object))
                at += size
        number = np.where(is_negative, -number, number)
        mask = values.mask()
        if not is_small:
            rows = [stored_bytes(int(one)) for one in number]
            return pa.array(rows, pa.binary(), mask=mask)
        return _in_bytes(number, mask)

    return read


def _in_bytes(number: Any, mask: Any) -> Any:
    words = np.empty((len(number), 2), dtype=np.int64)
    words[:, 0] = number
    words[:, 1] = np.where(number < 0, -1, 0)
    valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    wide = pa.Array.from_buffers(pa.decimal128(38, 0), len(number), [valid, pa.py_buffer(words)])
    return integers_in_bytes(wide)


def days_of(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970 of dates of the Gregorian calendar."""
    year = year - (month <= 2)
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _or_null(numbers: Any, values: Values, is_zero: Any, kind: Any) -> Any:
    nulls = values.nulls | is_zero
    return pa.array(numbers, mask=nulls if nulls.any() else None).cast(kind)


def dates(values: Values) -> Any:
    """Days since 1970. A date with a zero in it is none."""
    raw = values.fixed(3).astype(np.int64)
    number = raw[:, 0] | raw[:, 1] << 8 | raw[:, 2] << 16
    year, month, day = number >> 9, number >> 5 & 15, number & 31
    return _or_null(days_of(year, month, day), values, (year == 0) | (month == 0) | (day == 0), pa.int32())


_DAY_US: Final = 86_400_000_000


def datetimes(digits: int) -> Read:
    """Microseconds since 1970, as if in UTC."""

    def read(values: Values) -> Any:
        raw = values.fixed(5 + (digits + 1) // 2)
        number = _big(raw[:, :5]) - (1 << 39)
        day_part, clock = number >> 17, number & 0x1FFFF
        months, day = day_part >> 5, day_part & 31
        year, month = months // 13, months % 13
        seconds = (clock >> 12) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
        us = days_of(year, month, day) * _DAY_US + seconds * 1_000_000 + _fraction_us(raw[:, 5:], digits)
        return _or_null(us, values, (year == 0) | (month == 0) | (day == 0), pa.int64())

    return read


def timestamps(digits: int) -> Read:
    """Microseconds since 1970 in UTC. Zero is the date that is none."""

    def read(values: Values) -> Any:
        raw = values.fixed(4 + (digits + 1) // 2)
        us = _big(raw[:, :4]) * 1_000_000 + _fraction_us(raw[:, 4:], digits)
        return _or_null(us, values, us == 0, pa.int64())

    return read


def times(digits: int) -> Read:
    """Microseconds, of up to 838 hours, with a sign."""

    def read(values: Values) -> Any:
        more = (digits + 1) // 2
        number = _big(values.fixed(3 + more)) - (1 << (23 + 8 * more))
        size = np.abs(number)
        fraction = (size & ((1 << 8 * more) - 1)) * (1, 10_000, 100, 1)[more]
        clock = size >> 8 * more
        seconds = (clock >> 12 & 1023) * 3600 + (clock >> 6 & 63) * 60 + (clock & 63)
        us = seconds * 1_000_000 + fraction
        return pa.array(np.where(number < 0, -us, us), mask=values.mask())

    return read


def old_datetimes(values: Values) -> Any:
    number = np.ascontiguousarray(values.fixed(8)).view("<i8")[:, 0]
    date, clock = number // 1_000_000, number % 1_000_000
    year, month, day = date // 10_000, date // 100 % 100, date % 100
    seconds = clock // 10_000 * 3600 + clock // 100 % 100 * 60 + clock % 100
    us = days_of(year, month, day) * _DAY_US + seconds * 1_000_000
    return _or_null(us, values, (year == 0) | (month == 0) | (day == 0), pa.int64())


def old_timestamps(values: Values) -> Any:
    us = np.ascontiguousarray(values.fixed(4)).view("<u4")[:, 0].astype(np.int64) * 1_000_000
    return _or_null(us, values, us == 0, pa.int64())


def old_times(values: Values) -> Any:
    raw = values.fixed(3).astype(np.int64)
    number = raw[:, 0] | raw[:, 1] << 8 | raw[:, 2] << 16
    number = np.where(number >= 1 << 23, number - (1 << 24), number)
    size = np.abs(number)
    us = (size // 10_000 * 3600 + size // 100 % 100 * 60 + size % 100) * 1_000_000
    return pa.array(np.where(number < 0, -us, us), mask=values.mask())


def years(values: Values) -> Any:
    number = values.fixed(1)[:, 0].astype(np.int32)
    return pa.array(np.where(number == 0, 0, number + 1900), pa.int32(), mask=values.mask())


def raw_bytes(values: Values) -> Any:
    """The bytes, as they are."""
    present = ~values.nulls if values.nulls.any() else None
    if not len(values.starts):
        return pa.array([], pa.binary())
    starts = values.starts
    if (np.diff(starts) < 0).any():
        order = np.argsort(starts, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return raw_bytes(values.take(order)).take(pa.array(back))
    # A null's place may be that of the value behind it: as a slice of nothing it does no harm.
    return slices(pa.py_buffer(values.data), starts, starts + values.lengths, present)


def padded_bytes(width: int) -> Read:
    """BINARY(n): the log leaves out zeros at the end."""

    def read(values: Values) -> Any:
        found = raw_bytes(values)
        rows = [None if one is None else one.ljust(width, b"\0") for one in found.to_pylist()]
        return pa.array(rows, pa.binary())

    return read


def inflated_bytes(values: Values) -> Any:
    """A COMPRESSED column of MariaDB's: a byte 0 and the bytes; or the kind, the length and a stream of zlib's."""

    def plain(content: bytes) -> bytes:
        if not content or content[0] == 0:
            return content[1:]
        head = content[0]
        return zlib.decompress(content[1 + (head & 7) :], -15 if head & 8 else 15)

    return pa.array([None if one is None else plain(one) for one in raw_bytes(values).to_pylist()], pa.binary())


def texts(codec: str, read: Read = raw_bytes) -> Read:
    """Strings, of bytes in this encoding."""

    def read_all(values: Values) -> Any:
        found = read(values)
        if codec == "utf-8":
            try:
                return found.cast(pa.string())
            except pa.ArrowInvalid:
                pass
        errors = _AS_LATIN1 if codec == "cp1252" else "replace"
        rows = [None if one is None else one.decode(codec, errors) for one in found.to_pylist()]
        return pa.array(rows, pa.string())

    return read_all


def _as_latin1(error: UnicodeError) -> tuple[str, int]:
    """MySQL's latin1 is cp1252, and has five characters more, as ISO 8859-1 has them: what a query gives for the same
    bytes, and what texts of other encodings that were stored as latin1 are full of."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


_AS_LATIN1: Final = "ottla-as-latin1"
codecs.register_error(_AS_LATIN1, _as_latin1)


def enums(width: int, labels: Sequence[str]) -> Read:
    """The label; nothing for the number 0, which stands for a value that was wrong."""
    known = pa.array(["", *labels], pa.string())

    def read(values: Values) -> Any:
        raw = values.fixed(width).astype(np.int64)
        number = raw[:, 0] if width == 1 else raw[:, 0] | raw[:, 1] << 8
        return known.take(pa.array(np.where(values.nulls, 0, number), mask=values.mask()))

    return read


def sets(width: int, labels: Sequence[str]) -> Read:
    def read(values: Values) -> Any:
        raw = values.fixed(width).astype(np.uint64)
        number = np.zeros(len(raw), np.uint64)
        for byte in range(width):
            number |= raw[:, byte] << np.uint64(8 * byte)
        shown: dict[int, str] = {}
        rows: list[str | None] = []
        for bits, is_null in zip(number.tolist(), values.nulls.tolist(), strict=True):
            if is_null:
                rows.append(None)
                continue
            if bits not in shown:
                shown[bits] = ",".join(label for place, label in enumerate(labels) if bits >> place & 1)
            rows.append(shown[bits])
        return pa.array(rows, pa.string())

    return read


def bits(width: int) -> Read:
    """The bytes, big-endian, all of them."""

    def read(values: Values) -> Any:
        return pa.array([bytes(row) for row in values.fixed(width)], pa.binary(), mask=values.mask())

    return read
