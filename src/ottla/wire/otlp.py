"""Metrics as OpenTelemetry writes them (OTLP 1.0, Protobuf), as far as Kafka's clients push them (KIP-714).

    MetricsData.resource_metrics(1) -> ResourceMetrics.scope_metrics(2) -> ScopeMetrics.metrics(2) -> Metric
    Metric: name(1), gauge(5) or sum(7), each with data_points(1); sum: aggregation_temporality(2), is_monotonic(3)
    NumberDataPoint: attributes(7), start_time(2), time(3), as_double(4) or as_int(6)
    KeyValue: key(1), value(2) -> AnyValue: string(1), bool(2), int(3), double(4)

Fields that are not named here are passed over. What is not Protobuf raises `RemoteProtocolError`.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ottla.base.errors import RemoteProtocolError

DELTA: Final = 1
CUMULATIVE: Final = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT: Final = 10


class Point(NamedTuple):
    """One number. `is_sum` grows with time; of a sum that is `is_delta`, by so much since the last push."""

    name: str
    value: float
    attributes: tuple[tuple[str, str], ...] = ()
    is_sum: bool = False
    is_delta: bool = False


def decode_points(data: bytes, most: int) -> list[Point]:
    """At most so many; what comes after them is left out."""
    found: list[Point] = []
    for resource in _children(data, 1):
        for scope in _children(resource, 2):
            for metric in _children(scope, 2):
                for point in _points(metric):
                    if len(found) >= most:
                        return found
                    found.append(point)
    return found


def _points(metric: bytes) -> Iterator[Point]:
    fields = list(_fields(metric))
    name = "".join(_text(value) for number, kind, value in fields if (number, kind) == (1, _BYTES))
    for number, kind, value in fields:
        if kind != _BYTES or number not in (5, 7):
            continue
        is_sum = number == 7
        assert isinstance(value, bytes)
        inner = list(_fields(value))
        is_delta = any(one[:2] == (2, _VARINT) and one[2] == DELTA for one in inner)
        for place, shape, data in inner:
            if (place, shape) == (1, _BYTES):
                assert isinstance(data, bytes)
                yield _point(name, data, is_sum, is_sum and is_delta)


def _point(name: str, data: bytes, is_sum: bool, is_delta: bool) -> Point:
    value = 0.0
    attributes: list[tuple[str, str]] = []
    for number, kind, found in _fields(data):
        if (number, kind) == (4, _FIXED64):
            assert isinstance(found, bytes)
            value = struct.unpack("<d", found)[0]
        elif (number, kind) == (6, _FIXED64):
            assert isinstance(found, bytes)
            value = float(struct.unpack("<q", found)[0])
        elif (number, kind) == (7, _BYTES):
            assert isinstance(found, bytes)
            attributes.append(_attribute(found))
    return Point(name, value, tuple(attributes), is_sum, is_delta)


def _attribute(data: bytes) -> tuple[str, str]:
    key = shown = ""
    for number, kind, found in _fields(data):
        if (number, kind) == (1, _BYTES):
            key = _text(found)
        elif (number, kind) == (2, _BYTES):
            assert isinstance(found, bytes)
            for place, shape, value in _fields(found):
                if (place, shape) == (1, _BYTES):
                    shown = _text(value)
                elif (place, shape) == (2, _VARINT):
                    shown = "true" if value else "false"
                elif (place, shape) == (3, _VARINT):
                    shown = str(value)
                elif (place, shape) == (4, _FIXED64):
                    assert isinstance(value, bytes)
                    shown = str(struct.unpack("<d", value)[0])
    return key, shown


def _text(value: bytes | int) -> str:
    assert isinstance(value, bytes)
    return value.decode("utf-8", "replace")


def _children(data: bytes, wanted: int) -> Iterator[bytes]:
    for number, kind, value in _fields(data):
        if number == wanted and kind == _BYTES:
            assert isinstance(value, bytes)
            yield value


def _fields(data: bytes) -> Iterator[tuple[int, int, bytes | int]]:
    """Number, kind and value of each field: of varints the number, of all others the bytes."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, kind, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind)
        if kind == _BYTES:
            size, place = _varint(data, place)
        if size is None:
            raise RemoteProtocolError(f"Protobuf has no fields of kind {kind} here")
        if place + size > len(data):
            raise RemoteProtocolError("a Protobuf field is longer than the message")
        yield number, kind, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for count in range(_MOST_VARINT):
        if place >= len(data):
            raise RemoteProtocolError("a Protobuf message ends within a number")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, place
    raise RemoteProtocolError("a Protobuf number is too long")


# Writing


def encode_points(points: Iterable[Point], *, start_ns: int, now_ns: int) -> bytes:
    """As one scope of one resource. Sums count from `start_ns` on, unless they are deltas."""
    metrics = b"".join(_field(2, _metric(point, start_ns, now_ns)) for point in points)
    return _field(1, _field(2, metrics))


def _metric(point: Point, start_ns: int, now_ns: int) -> bytes:
    number = b"".join(
        _field(7, _field(1, key.encode()) + _field(2, _field(1, value.encode()))) for key, value in point.attributes
    )
    if point.is_sum:
        number += b"\x11" + struct.pack("<Q", start_ns)
    number += b"\x19" + struct.pack("<Q", now_ns) + b"\x21" + struct.pack("<d", point.value)
    data = _field(1, number)
    if not point.is_sum:
        return _field(1, point.name.encode()) + _field(5, data)
    data += b"\x10" + bytes([DELTA if point.is_delta else CUMULATIVE]) + b"\x18\x01"
    return _field(1, point.name.encode()) + _field(7, data)


def _field(number: int, data: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(data)) + data


def _encoded(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
