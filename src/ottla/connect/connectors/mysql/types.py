"""Which schema of Connect's a type has, as Debezium 3.5 maps it, and how values of the log and of queries become a
column.

A value comes in one of two forms: as bytes of the binary log, or as the text of a query's result. Both are read into
the same plain column (a number, days, microseconds, a text, bytes); the schema's storage is made from that.

| MariaDB, MySQL | plain | schema |
| --- | --- | --- |
| tinyint, smallint, mediumint, int, bigint | int64 (uint64) | INT16, INT32 or INT64, the next larger if unsigned |
| float, double | float, double | FLOAT32, FLOAT64 |
| decimal | its unscaled number, in bytes | Decimal (or double, or string) |
| bit(1), bit(n) | bytes | BOOLEAN, Bits |
| date, time, datetime | days, microseconds | by `time.precision.mode` |
| timestamp | microseconds in UTC | ZonedTimestamp |
| year | number | Year |
| char, varchar, text, inet4, inet6 | text | STRING |
| enum, set, json (MySQL), uuid | text | Enum, EnumSet, Json, Uuid |
| binary, varbinary, blob | bytes | by `binary.handling.mode` |
| point, geometry and the like | bytes | Point, Geometry |
"""

import base64
import ipaddress
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.parse import Values as Options
from ottla.connect.connectors.mysql import binlog, json_binary, rows
from ottla.connect.connectors.mysql.catalogue import Kind
from ottla.connect.connectors.postgres import columns
from ottla.connect.connectors.postgres import texts as iso
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import check, rows_of
from ottla.connect.data.schema import DECIMAL, PRECISION, SCALE, Field, Schema, Type
from ottla.connect.data.schema import date as connect_date
from ottla.connect.data.schema import time as connect_time
from ottla.connect.data.schema import timestamp as connect_timestamp
from ottla.connect.errors import ConnectError, DataError

_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
_SRID: Final = Field("srid", Schema(Type.INT32, True))
_POINT: Final = Schema(
    Type.STRUCT,
    name=_DATA + "geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(
        Field("x", Schema(Type.FLOAT64)),
        Field("y", Schema(Type.FLOAT64)),
        Field("wkb", Schema(Type.BYTES, True)),
        _SRID,
    ),
)
_GEOMETRY: Final = Schema(
    Type.STRUCT,
    name=_DATA + "geometry.Geometry",
    version=1,
    doc="Geometry",
    fields=(Field("wkb", Schema(Type.BYTES)), _SRID),
)
_INTEGERS: Final[Mapping[str, tuple[Type, Type]]] = {
    "tinyint": (Type.INT16, Type.INT16),
    "smallint": (Type.INT16, Type.INT32),
    "mediumint": (Type.INT32, Type.INT32),
    "int": (Type.INT32, Type.INT64),
    "bigint": (Type.INT64, Type.INT64),
}
_ARROW: Final = {Type.INT16: pa.int16(), Type.INT32: pa.int32(), Type.INT64: pa.int64()}
_TEXTS: Final = frozenset(["char", "varchar", "tinytext", "text", "mediumtext", "longtext"])
_BYTES: Final = frozenset(["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"])
_SHAPES: Final = frozenset(
    [
        "geometry",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    ]
)
_NO_DATE: Final = r"^0000-|-00"
_SPAN: Final = re.compile(r"(-)?(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")

FromText = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mapped:
    """`schema` is neither optional nor has a default: a column says that. `read` makes the schema's storage of plain
    values; `from_text` plain values of a query's texts, which come as bytes. `fallback` stands for a null in a column
    that is NOT NULL: a date that is none."""

    schema: Schema
    read: columns.Read
    from_text: FromText
    fallback: Any
    placeholder: Any = None
    always_optional: bool = False
    """Debezium has no geometry that is required, but points."""


class TypeMap:
    """The mapping with a connector's options."""

    def __init__(self, options: Options, *, is_mariadb: bool) -> None:
        self._is_mariadb = is_mariadb
        self._decimals = options.text("decimal.handling.mode")
        self._times = options.text("time.precision.mode")
        self._binary = options.text("binary.handling.mode")
        self._unsigned = options.text("bigint.unsigned.handling.mode")

    def of(self, kind: Kind) -> Mapped | None:
        """The mapping of a type, or None: it has no field."""
        name = kind.name
        if name in _INTEGERS:
            return self._integer(kind)
        if name in _TEXTS:
            return _text(Schema(Type.STRING))
        if name in _BYTES:
            return self._bytes()
        if name in _SHAPES:
            return Mapped(_GEOMETRY, columns.by_row(_geometry, columns.GEOMETRY), _same, None, always_optional=True)
        made = _BY_NAME.get(name)
        return None if made is None else made(self, kind)

    def _integer(self, kind: Kind) -> Mapped:
        signed, unsigned = _INTEGERS[kind.name]
        stored = unsigned if kind.unsigned else signed
        if kind.name != "bigint" or not kind.unsigned:
            return Mapped(Schema(stored), lambda array: array.cast(_ARROW[stored]), _casts(pa.int64()), 0)
        if self._unsigned == "precise":
            schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: "0", PRECISION: "20"})
            read = columns.decimals(0)
            return Mapped(schema, lambda array: read(array.cast(pa.string())), _casts(pa.uint64()), Decimal(0))
        return Mapped(Schema(Type.INT64), _wrapped, _casts(pa.uint64()), 0)

    def _float(self, kind: Kind) -> Mapped:
        if kind.scale is not None:  # float(7,3), which Debezium has as a double
            return Mapped(Schema(Type.FLOAT64), lambda array: array.cast(pa.float64()), _floats, 0.0)
        return Mapped(Schema(Type.FLOAT32), _same, _floats, 0.0)

    def _decimal(self, kind: Kind) -> Mapped:
        precision, scale = kind.precision or 10, kind.scale or 0
        from_text = _on_strings(columns.decimals(scale))
        if self._decimals == "precise":
            parameters = {SCALE: str(scale), PRECISION: str(precision)}
            schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
            return Mapped(schema, _same, from_text, Decimal(0).scaleb(-scale))

        def number(raw: bytes) -> Decimal:
            unscaled = int.from_bytes(raw, "big", signed=True)
            digits = tuple(map(int, str(abs(unscaled))))
            return Decimal((int(unscaled < 0), digits, -scale))

        if self._decimals == "double":
            return Mapped(
                Schema(Type.FLOAT64), columns.by_row(lambda raw: float(number(raw)), pa.float64()), from_text, 0.0
            )
        return Mapped(
            Schema(Type.STRING), columns.by_row(lambda raw: format(number(raw), "f"), pa.string()), from_text, "0"
        )

    def _bit(self, kind: Kind) -> Mapped:
        if (kind.length or 1) == 1:
            return Mapped(Schema(Type.BOOLEAN), columns.by_row(lambda raw: raw[-1:] == b"\1", pa.bool_()), _same, False)
        schema = Schema(Type.BYTES, name=_DATA + "Bits", version=1, parameters={"length": str(kind.length)})
        return Mapped(schema, columns.by_row(lambda raw: raw[::-1], pa.binary()), _same, b"")

    def _date(self, kind: Kind) -> Mapped:
        from_text = _without(_NO_DATE, columns.dates)
        if self._times == "isostring":
            schema = Schema(Type.STRING, name=_TIME + "IsoDate", version=1)
            return Mapped(
                schema, columns.by_row(lambda day: iso.iso_date(day) + "Z", pa.string()), from_text, "1970-01-01Z"
            )
        schema = connect_date() if self._times == "connect" else Schema(Type.INT32, name=_TIME + "Date", version=1)
        return Mapped(schema, _same, from_text, 0)

    def _time(self, kind: Kind) -> Mapped:
        from_text = _on_strings(columns.by_row(_span_us, pa.int64()))
        mode = self._times
        if mode == "isostring":
            schema = Schema(Type.STRING, name=_TIME + "IsoTime", version=1)
            return Mapped(
                schema, columns.by_row(lambda us: iso.clock(us % iso.DAY_US) + "Z", pa.string()), from_text, "00:00:00Z"
            )
        if mode == "connect":
            return Mapped(connect_time(), columns.scaled(_same, 1000, pa.int32()), from_text, 0)
        if mode == "nanoseconds":
            schema = Schema(Type.INT64, name=_TIME + "NanoTime", version=1)
            return Mapped(schema, columns.multiplied(_same, 1000), from_text, 0)
        return Mapped(Schema(Type.INT64, name=_TIME + "MicroTime", version=1), _same, from_text, 0)

    def _datetime(self, kind: Kind) -> Mapped:
        from_text = _without(_NO_DATE, columns.timestamps_us)
        mode = self._times
        if mode == "isostring":
            schema = Schema(Type.STRING, name=_TIME + "IsoTimestamp", version=1)
            return Mapped(schema, columns.by_row(iso.iso_moment, pa.string()), from_text, "1970-01-01T00:00:00Z")
        if mode == "connect":
            return Mapped(connect_timestamp(), columns.scaled(_same, 1000, pa.int64()), from_text, 0)
        if mode == "nanoseconds":
            schema = Schema(Type.INT64, name=_TIME + "NanoTimestamp", version=1)
            return Mapped(schema, columns.multiplied(_same, 1000), from_text, 0)
        if mode == "adaptive_time_microseconds" and (kind.digits or 0) <= 3:
            schema = Schema(Type.INT64, name=_TIME + "Timestamp", version=1)
            return Mapped(schema, columns.scaled(_same, 1000, pa.int64()), from_text, 0)
        return Mapped(Schema(Type.INT64, name=_TIME + "MicroTimestamp", version=1), _same, from_text, 0)

    def _timestamp(self, kind: Kind) -> Mapped:
        digits = kind.digits or 0
        schema = Schema(Type.STRING, name=_TIME + "ZonedTimestamp", version=1)
        read = _zoned(digits)
        return Mapped(schema, read, _without(_NO_DATE, columns.timestamps_us), "1970-01-01T00:00:00Z")

    def _year(self, kind: Kind) -> Mapped:
        return Mapped(Schema(Type.INT32, name=_TIME + "Year", version=1), _same, _casts(pa.int32()), 0)

    def _enum(self, kind: Kind) -> Mapped:
        name = "Enum" if kind.name == "enum" else "EnumSet"
        allowed = ",".join(label.replace(",", "\\,") for label in kind.labels)
        return _text(Schema(Type.STRING, name=_DATA + name, version=1, parameters={"allowed": allowed}))

    def _json(self, kind: Kind) -> Mapped:
        return _text(Schema(Type.STRING, name=_DATA + "Json", version=1), "{}")

    def _uuid(self, kind: Kind) -> Mapped:
        return _text(Schema(Type.STRING, name=_DATA + "Uuid", version=1))

    def _point(self, kind: Kind) -> Mapped:
        return Mapped(_POINT, columns.by_row(_point, columns.POINT), _same, columns.point(0.0, 0.0))

    def _bytes(self) -> Mapped:
        if self._binary == "bytes":
            return Mapped(Schema(Type.BYTES), _same, _same, b"")
        encode = _ENCODINGS[self._binary]
        return Mapped(Schema(Type.STRING), columns.by_row(encode, pa.string()), _same, "")


_BY_NAME: Final[Mapping[str, Callable[[TypeMap, Kind], Mapped]]] = {
    "float": TypeMap._float,
    "double": lambda types, kind: Mapped(Schema(Type.FLOAT64), _same, _casts(pa.float64()), 0.0),
    "decimal": TypeMap._decimal,
    "bit": TypeMap._bit,
    "date": TypeMap._date,
    "time": TypeMap._time,
    "datetime": TypeMap._datetime,
    "timestamp": TypeMap._timestamp,
    "year": TypeMap._year,
    "enum": TypeMap._enum,
    "set": TypeMap._enum,
    "json": TypeMap._json,
    "uuid": TypeMap._uuid,
    "inet4": lambda types, kind: _text(Schema(Type.STRING)),
    "inet6": lambda types, kind: _text(Schema(Type.STRING)),
    "point": TypeMap._point,
}
_ENCODINGS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64-url-safe": lambda raw: base64.urlsafe_b64encode(raw).decode(),
    "hex": bytes.hex,
}


def of_log(column: binlog.MapColumn, kind: Kind) -> rows.Read:
    """How the plain values of a column are read from the log. Raises `ConnectError` for one that cannot be."""
    number, meta = column.kind, column.meta
    if kind.name in _INTEGERS:
        width = {binlog.TINY: 1, binlog.SHORT: 2, binlog.INT24: 3, binlog.LONG: 4, binlog.LONGLONG: 8}[number]
        return rows.integers(width, unsigned=kind.unsigned)
    if number in (binlog.FLOAT, binlog.DOUBLE):
        return rows.floats(4 if number == binlog.FLOAT else 8)
    if number == binlog.NEWDECIMAL:
        return rows.decimals(meta & 0xFF, meta >> 8)
    if number == binlog.BIT:
        return rows.bits(((meta >> 8) * 8 + (meta & 0xFF) + 7) // 8)
    simple = _OF_LOG.get(number)
    if simple is not None:
        return simple
    if number in (binlog.TIMESTAMP2, binlog.DATETIME2, binlog.TIME2):
        made = {binlog.TIMESTAMP2: rows.timestamps, binlog.DATETIME2: rows.datetimes, binlog.TIME2: rows.times}
        return made[number](meta)
    if number in (binlog.ENUM, binlog.SET):
        return (rows.enums if number == binlog.ENUM else rows.sets)(meta, kind.labels)
    read = rows.inflated_bytes if number in (binlog.BLOB_COMPRESSED, binlog.VARCHAR_COMPRESSED) else rows.raw_bytes
    if kind.name in _TEXTS:
        return rows.texts(kind.codec, read)
    if kind.name == "binary":
        return rows.padded_bytes(meta)
    if kind.name == "json":
        return lambda values: columns.by_row(json_binary.text_of, pa.string())(read(values))
    if kind.name in ("uuid", "inet6", "inet4"):
        show = {"uuid": _uuid_text, "inet6": _inet6_text, "inet4": _inet4_text}[kind.name]
        return lambda values: columns.by_row(show, pa.string())(read(values))
    return read


_OF_LOG: Final[Mapping[int, rows.Read]] = {
    binlog.DATE: rows.dates,
    binlog.YEAR: rows.years,
    binlog.TIMESTAMP: rows.old_timestamps,
    binlog.DATETIME: rows.old_datetimes,
    binlog.TIME: rows.old_times,
}


def kind_of(column: binlog.MapColumn, codecs: Mapping[int, str]) -> Kind:
    """The type of a column from the log alone: what the catalogue adds is whether bytes are an address or a UUID."""
    number, meta = column.kind, column.meta
    is_binary = column.collation == 63
    codec = codecs.get(column.collation or 0, "utf-8")
    labels = column.labels or ()
    whole = _WHOLE.get(number)
    if whole is not None:
        return Kind(whole, unsigned=bool(column.unsigned))
    if number == binlog.NEWDECIMAL:
        return Kind("decimal", precision=meta & 0xFF, scale=meta >> 8, unsigned=bool(column.unsigned))
    if number == binlog.BIT:
        return Kind("bit", length=(meta >> 8) * 8 + (meta & 0xFF))
    if number in (binlog.TIMESTAMP2, binlog.DATETIME2, binlog.TIME2):
        return Kind(
            {binlog.TIMESTAMP2: "timestamp", binlog.DATETIME2: "datetime", binlog.TIME2: "time"}[number], digits=meta
        )
    if number in (binlog.ENUM, binlog.SET):
        return Kind("enum" if number == binlog.ENUM else "set", labels=labels)
    if number in (binlog.VARCHAR, binlog.VAR_STRING, binlog.VARCHAR_COMPRESSED):
        return Kind("varbinary" if is_binary else "varchar", length=meta, codec=codec)
    if number == binlog.STRING:
        return Kind("binary" if is_binary else "char", length=meta, codec=codec)
    if number in (binlog.BLOB, binlog.BLOB_COMPRESSED):
        return Kind("blob" if is_binary else "text", codec=codec)
    raise ConnectError(f"a column has the type {number} in the binary log, which is not known")


_WHOLE: Final = {
    binlog.TINY: "tinyint", binlog.SHORT: "smallint", binlog.INT24: "mediumint", binlog.LONG: "int",
    binlog.LONGLONG: "bigint", binlog.FLOAT: "float", binlog.DOUBLE: "double", binlog.DATE: "date", binlog.YEAR: "year",
    binlog.TIMESTAMP: "timestamp", binlog.DATETIME: "datetime", binlog.TIME: "time", binlog.JSON: "json",
    binlog.GEOMETRY: "geometry",
}  # fmt: skip

_FAMILIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(["varchar", "varbinary"], "variable"),
    **dict.fromkeys(["char", "binary", "uuid", "inet6", "inet4"], "fixed"),
    **dict.fromkeys(
        ["tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"], "large"
    ),
    **dict.fromkeys([*_SHAPES, "point"], "shape"),
}


def agree(logged: Kind, known: Kind, *, is_full: bool) -> bool:
    """Whether what the catalogue says of a column may be said of one in the log: then it is the better word."""
    if _FAMILIES.get(logged.name, logged.name) != _FAMILIES.get(known.name, known.name):
        return False
    if known.name == "decimal":
        return (logged.precision, logged.scale) == (known.precision, known.scale)
    if known.name in ("timestamp", "datetime", "time"):
        return (logged.digits or 0) == (known.digits or 0)
    if known.name == "bit":
        return logged.length == known.length
    if is_full:
        if known.name in ("enum", "set"):
            return logged.labels == known.labels
        if known.name in _INTEGERS:
            return logged.unsigned == known.unsigned
        if known.name in _TEXTS or known.name in _BYTES:
            return (logged.name in _BYTES) == (known.name in _BYTES) and logged.codec == known.codec
    return True


# --- plain values to storage, and texts to plain values ---


def _same(array: Any) -> Any:
    return array


def _text(schema: Schema, fallback: str = "") -> Mapped:
    return Mapped(schema, _same, lambda array: _strings(array), fallback)


def _strings(array: Any) -> Any:
    if array.type == pa.string():
        return array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if one is None else one.decode("utf-8", "replace") for one in array.to_pylist()], pa.string()
        )


def _on_strings(read: columns.Read) -> FromText:
    return lambda array: read(_strings(array))


def _casts(kind: Any) -> FromText:
    read = columns.casts(kind)
    return lambda array: read(_strings(array))


def _floats(array: Any) -> Any:
    """Of the text of a double, which has all digits: the text of a float has six."""
    return _casts(pa.float64())(array).cast(pa.float32(), safe=False)


def _wrapped(array: Any) -> Any:
    """Unsigned numbers of 64 bits as signed ones with the same bits, as Debezium's mode `long` has them."""
    numbers = np.asarray(pc.fill_null(array, 0)).astype(np.uint64).view(np.int64)
    return pa.array(numbers, mask=np.asarray(array.is_null()))


def _without(pattern: str, read: columns.Read) -> FromText:
    """Null where the text matches: a date that is none."""

    def read_all(array: Any) -> Any:
        array = _strings(array)
        found = pc.match_substring_regex(array, pattern)
        if pc.any(found).as_py():
            array = pc.if_else(found, None, array)
        return read(array)

    return read_all


def _span_us(text: str) -> int:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no time")
    us = (int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4])) * 1_000_000 + int((found[5] or "").ljust(6, "0"))
    return -us if found[1] else us


def _zoned(digits: int) -> columns.Read:
    """ISO 8601 in UTC."""

    def read(array: Any) -> Any:
        unit = "s" if not digits else "ms" if digits <= 3 else "us"
        divisor = {"s": 1_000_000, "ms": 1000, "us": 1}[unit]
        numbers = np.asarray(pc.fill_null(array, 0)) // divisor
        moments = pa.array(numbers.astype(f"datetime64[{unit}]"), mask=np.asarray(array.is_null()))
        shown = pc.strftime(moments, format="%Y-%m-%dT%H:%M:%S")
        if digits:
            shown = pc.utf8_slice_codeunits(shown, 0, 20 + digits)
        return pc.binary_join_element_wise(shown, "Z", "")

    return read


def _geometry(raw: bytes) -> dict[str, Any]:
    srid = int.from_bytes(raw[:4], "little")
    return {"wkb": raw[4:], "srid": srid or None}


def _point(raw: bytes) -> dict[str, Any]:
    order = "<" if raw[4:5] == b"\1" else ">"
    x, y = struct.unpack_from(order + "dd", raw, 9)
    return {"x": x, "y": y, "wkb": raw[4:], "srid": int.from_bytes(raw[:4], "little") or None}


def _uuid_text(raw: bytes) -> str:
    return str(uuid.UUID(bytes=raw.ljust(16, b"\0")))


def _inet6_text(raw: bytes) -> str:
    address = ipaddress.IPv6Address(raw.ljust(16, b"\0"))
    mapped = address.ipv4_mapped
    return f"::ffff:{mapped}" if mapped is not None else str(address)


def _inet4_text(raw: bytes) -> str:
    return str(ipaddress.IPv4Address(raw.ljust(4, b"\0")))


# --- defaults ---

_NOW: Final = re.compile(
    r"(current_timestamp|now|localtime|localtimestamp|curdate|current_date)(\(\d*\))?( on update .*)?", re.I
)
_LITERAL: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_BITS: Final = re.compile(r"b'([01]*)'", re.I)


def default_of(expression: str | None, kind: Kind, mapped: Mapped, *, required: bool) -> Any:
    """The default as `rows` has values, or None if there is none. The time of now is not known: in a column that is
    NOT NULL, and in any datetime, a zero stands for it, as in Debezium."""
    if expression is None or expression.upper() == "NULL" or mapped.schema.type is Type.STRUCT:
        return None
    text = expression.strip()
    if _NOW.fullmatch(text):
        return mapped.fallback if required or kind.name == "datetime" else None
    literal = _LITERAL.fullmatch(text)
    bit = _BITS.fullmatch(text)
    if bit is not None:
        number = int(bit[1] or "0", 2)
        raw = number.to_bytes(((kind.length or 1) + 7) // 8, "big")
    elif literal is not None:
        raw = literal[1].replace("''", "'").replace("\\\\", "\\").encode()
    elif re.fullmatch(r"-?[0-9.]+(e[+-]?\d+)?", text, re.I):
        raw = text.encode()
    else:
        return None
    if kind.name == "binary":
        raw = raw.ljust(kind.length or 0, b"\0")
    if kind.name == "year" and raw in (b"0000", b"0"):
        raw = b"0"
    try:
        plain = mapped.from_text(pa.array([raw], pa.binary()))
        if plain.null_count:
            return mapped.fallback if required else None
        column = Column(mapped.schema, mapped.read(plain))
        (value,) = rows_of(column)
        check(mapped.schema, value)
    except (DataError, pa.ArrowInvalid, ValueError, ArithmeticError):
        return None
    return value
