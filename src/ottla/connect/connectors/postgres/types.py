"""Which schema of Connect's a type of PostgreSQL has, as Debezium 3.6 maps it, and how its texts become a column.

| PostgreSQL | schema |
| --- | --- |
| boolean, bit(1) | BOOLEAN |
| smallint, integer, bigint, oid | INT16, INT32, INT64, INT64 |
| real, double precision | FLOAT32, FLOAT64 |
| numeric(p, s); numeric | Decimal; VariableScaleDecimal (or double, or string) |
| money | Decimal |
| text, varchar, char, name, citext, inet, ranges … | STRING |
| json, uuid, xml, tsvector, ltree, enums | STRING, with the name that says so |
| bytea, bit(n), varbit | BYTES; Bits |
| date, time, timestamp | by `time.precision.mode` |
| timestamptz, timetz | STRING: ZonedTimestamp, ZonedTime, in UTC |
| interval | INT64 MicroDuration, or STRING Interval |
| point, geometry, geography | STRUCT |
| vector, halfvec, sparsevec | DoubleVector, FloatVector, SparseDoubleVector |
| hstore | Json, or MAP |
| arrays of most of these | ARRAY |
| everything else | no field; with `include.unknown.datatypes` its text in BYTES |
"""

import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.parse import Values
from ottla.connect.connectors.postgres import columns, texts
from ottla.connect.connectors.postgres.catalogue import PgType, Types
from ottla.connect.data.schema import DECIMAL, PRECISION, SCALE, Field, Schema, Type
from ottla.connect.data.schema import array as array_of
from ottla.connect.data.schema import date as connect_date
from ottla.connect.data.schema import time as connect_time
from ottla.connect.data.schema import timestamp as connect_timestamp

_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."

VARIABLE_SCALE_DECIMAL: Final = Schema(
    Type.STRUCT,
    name=_DATA + "VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
    fields=(Field("scale", Schema(Type.INT32)), Field("value", Schema(Type.BYTES))),
)
_XY: Final = (Field("x", Schema(Type.FLOAT64)), Field("y", Schema(Type.FLOAT64)))
_SRID: Final = Field("srid", Schema(Type.INT32, True))
_POINT: Final = Schema(
    Type.STRUCT,
    name=_DATA + "geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(*_XY, Field("wkb", Schema(Type.BYTES, True)), _SRID),
)
_SPARSE: Final = Schema(
    Type.STRUCT,
    name=_DATA + "SparseDoubleVector",
    version=1,
    doc="Sparse double vector",
    fields=(
        Field("dimensions", Schema(Type.INT16)),
        Field("vector", Schema(Type.MAP, keys=Schema(Type.INT16), items=Schema(Type.FLOAT64))),
    ),
)
_EMPTY_COLLECTION: Final = {"wkb": bytes.fromhex("010700000000000000"), "srid": None}

_STRINGS: Final = frozenset(
    [
        "text",
        "varchar",
        "bpchar",
        "char",
        "name",
        "citext",
        "isbn",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "int4range",
        "int8range",
        "numrange",
        "tsrange",
        "tstzrange",
        "daterange",
        "refcursor",
    ]
)
_NAMED_STRINGS: Final = {
    "json": _DATA + "Json",
    "jsonb": _DATA + "Json",
    "uuid": _DATA + "Uuid",
    "xml": _DATA + "Xml",
    "tsvector": _DATA + "Tsvector",
    "ltree": _DATA + "Ltree",
}
_NO_ARRAYS: Final = frozenset(
    [
        "money",
        "name",
        "interval",
        "bit",
        "varbit",
        "xml",
        "point",
        "refcursor",
        "tsvector",
        "vector",
        "halfvec",
        "sparsevec",
    ]
)
"""Types whose arrays have no mapping, as in Debezium."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """`schema` is neither optional nor has a default: a column says that. `fallback` stands for a null in a required
    column, which is what a `before` has beyond the key; `placeholder` for a value that was not sent."""

    schema: Schema
    read: columns.Read
    fallback: Any
    placeholder: Any = None


class TypeMap:
    """The mapping with a connector's options."""

    def __init__(self, options: Values, types: Types) -> None:
        self.types = types
        self._decimals = options.text("decimal.handling.mode")
        self._times = options.text("time.precision.mode")
        self._binary = options.text("binary.handling.mode")
        self._intervals = options.text("interval.handling.mode")
        self._hstores = options.text("hstore.handling.mode")
        self._money_digits = options.integer("money.fraction.digits")
        self._has_unknown = options.flag("include.unknown.datatypes")
        self._placeholder = _placeholder(options.text("unavailable.value.placeholder"))

    def of(self, oid: int, modifier: int) -> Mapped | None:
        """The mapping of a type, or None: it has no field."""
        kind, modifier = self.types.root(oid, modifier)
        found = self._of(kind, modifier)
        if found is None and self._has_unknown:
            return self._bytes(lambda text: text.encode())
        return found

    def _of(self, kind: PgType, modifier: int) -> Mapped | None:
        if kind.element:
            return self._array(kind, modifier)
        if kind.kind == "e":
            allowed = {"allowed": ",".join(kind.labels)}
            return self._string(Schema(Type.STRING, name=_DATA + "Enum", version=1, parameters=allowed))
        if kind.kind not in ("b", "r"):
            return None
        if kind.name in _STRINGS:
            return self._string(Schema(Type.STRING))
        if kind.name in _NAMED_STRINGS:
            return self._string(Schema(Type.STRING, name=_NAMED_STRINGS[kind.name], version=1))
        made = _BY_NAME.get(kind.name)
        return made(self, modifier) if made is not None else None

    def _string(self, schema: Schema) -> Mapped:
        return Mapped(schema, columns.same, "", self._placeholder)

    def _array(self, kind: PgType, modifier: int) -> Mapped | None:
        element = self.types.by_oid.get(kind.element)
        if element is None or element.kind == "d" or element.name in _NO_ARRAYS:
            return None
        inner = self._of(element, modifier)
        if inner is None or element.element:
            return None
        # Debezium forgets to make the items of enums' arrays optional; readers have that schema.
        items = inner.schema if element.kind == "e" else inner.schema.but(optional=True)
        placeholder: list[Any] | None = None
        if element.name in ("int2", "int4", "int8"):
            placeholder = list(self._placeholder.encode())
        elif element.name == "uuid":
            placeholder = [str(uuid.UUID(bytes=hashlib.md5(self._placeholder.encode()).digest(), version=3))]
        elif inner.schema.type is Type.STRING or element.name == "bytea":
            placeholder = [inner.placeholder]
        return Mapped(array_of(items), columns.arrays(inner.read), [], placeholder)

    # --- one function a type; its modifier comes in ---

    def _numeric(self, modifier: int) -> Mapped:
        if self._decimals == "double":
            return Mapped(Schema(Type.FLOAT64), columns.casts(pa.float64()), 0.0)
        if self._decimals == "string":
            return Mapped(Schema(Type.STRING), columns.same, "0")
        if modifier < 4:
            zero = {"scale": 0, "value": b"\0"}
            return Mapped(VARIABLE_SCALE_DECIMAL, columns.without_special(columns.variable_decimals), zero)
        precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
        scale = (scale ^ 1024) - 1024  # eleven bits with a sign, since PostgreSQL 15
        parameters = {SCALE: str(scale), PRECISION: str(precision)}
        schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
        return Mapped(schema, columns.without_special(columns.decimals(scale)), Decimal(0).scaleb(-scale))

    def _money(self, modifier: int) -> Mapped:
        digits = self._money_digits
        if self._decimals == "double":
            return Mapped(Schema(Type.FLOAT64), columns.money(columns.casts(pa.float64())), 0.0)
        if self._decimals == "string":
            return Mapped(Schema(Type.STRING), columns.money(columns.same), format(Decimal(0).scaleb(-digits), "f"))
        schema = Schema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: str(digits)})
        rounded, decimals = columns.rounded(digits), columns.decimals(digits)
        read = columns.money(decimals if digits >= 2 else lambda array: decimals(rounded(array)))
        return Mapped(schema, read, Decimal(0).scaleb(-digits))

    def _date(self, modifier: int) -> Mapped:
        if self._times == "isostring":
            read = columns.by_row(lambda text: texts.iso_date(texts.days(text)) + "Z", pa.string())
            return Mapped(Schema(Type.STRING, name=_TIME + "IsoDate", version=1), read, "1970-01-01Z")
        is_connects = self._times == "connect"
        schema = connect_date() if is_connects else Schema(Type.INT32, name=_TIME + "Date", version=1)
        return Mapped(schema, columns.dates, 0)

    def _time(self, modifier: int) -> Mapped:
        mode = self._times
        if mode == "isostring":
            read = columns.by_row(lambda text: texts.clock(texts.micros(text) % texts.DAY_US) + "Z", pa.string())
            return Mapped(Schema(Type.STRING, name=_TIME + "IsoTime", version=1), read, "00:00:00Z")
        if mode == "connect":
            return Mapped(connect_time(), columns.scaled(columns.times_us, 1000, pa.int32()), 0)
        if mode == "nanoseconds":
            schema = Schema(Type.INT64, name=_TIME + "NanoTime", version=1)
            return Mapped(schema, columns.multiplied(columns.times_us, 1000), 0)
        if mode == "adaptive" and 0 <= modifier <= 3:
            schema = Schema(Type.INT32, name=_TIME + "Time", version=1)
            return Mapped(schema, columns.scaled(columns.times_us, 1000, pa.int32()), 0)
        return Mapped(Schema(Type.INT64, name=_TIME + "MicroTime", version=1), columns.times_us, 0)

    def _timestamp(self, modifier: int) -> Mapped:
        mode = self._times
        if mode == "isostring":
            read = columns.by_row(lambda text: texts.iso_moment(texts.epoch_micros(text)), pa.string())
            schema = Schema(Type.STRING, name=_TIME + "IsoTimestamp", version=1)
            return Mapped(schema, read, "1970-01-01T00:00:00Z")
        if mode == "connect":
            return Mapped(connect_timestamp(), columns.scaled(columns.timestamps_us, 1000, pa.int64()), 0)
        if mode == "nanoseconds":
            schema = Schema(Type.INT64, name=_TIME + "NanoTimestamp", version=1)
            return Mapped(schema, columns.multiplied(columns.timestamps_us, 1000), 0)
        if mode.startswith("adaptive") and 0 <= modifier <= 3:
            schema = Schema(Type.INT64, name=_TIME + "Timestamp", version=1)
            return Mapped(schema, columns.scaled(columns.timestamps_us, 1000, pa.int64()), 0)
        return Mapped(Schema(Type.INT64, name=_TIME + "MicroTimestamp", version=1), columns.timestamps_us, 0)

    def _timestamptz(self, modifier: int) -> Mapped:
        schema = Schema(Type.STRING, name=_TIME + "ZonedTimestamp", version=1)
        digits = modifier if 0 <= modifier <= 6 else 6
        return Mapped(schema, columns.zoned_timestamps(digits), "1970-01-01T00:00:00Z")

    def _timetz(self, modifier: int) -> Mapped:
        schema = Schema(Type.STRING, name=_TIME + "ZonedTime", version=1)
        return Mapped(schema, columns.by_row(texts.iso_time, pa.string()), "00:00:00Z")

    def _interval(self, modifier: int) -> Mapped:
        if self._intervals == "string":
            schema = Schema(Type.STRING, name=_TIME + "Interval", version=1)
            return Mapped(schema, columns.by_row(texts.iso_span, pa.string()), "P0Y0M0DT0H0M0S")
        schema = Schema(Type.INT64, name=_TIME + "MicroDuration", version=1)
        return Mapped(schema, columns.by_row(texts.span_micros, pa.int64()), 0)

    def _bits(self, length: int) -> Mapped:
        if length == 1:
            return Mapped(Schema(Type.BOOLEAN), columns.bit_booleans, False)
        parameters = {"length": str(length if length > 0 else (1 << 31) - 1)}
        schema = Schema(Type.BYTES, name=_DATA + "Bits", version=1, parameters=parameters)
        return Mapped(schema, columns.by_row(texts.bits, pa.binary()), b"")

    def _bytea(self, modifier: int) -> Mapped:
        if self._binary == "bytes":
            return Mapped(Schema(Type.BYTES), columns.hex_bytes, b"", self._placeholder.encode())
        return self._bytes(lambda text: bytes.fromhex(text[2:]))

    def _bytes(self, raw: Callable[[str], bytes]) -> Mapped:
        """Bytes in the mode of `binary.handling.mode`."""
        placeholder = self._placeholder.encode()
        if self._binary == "bytes":
            return Mapped(Schema(Type.BYTES), columns.by_row(raw, pa.binary()), b"", placeholder)
        encode = _ENCODINGS[self._binary]
        read = columns.by_row(lambda text: encode(raw(text)), pa.string())
        # In hexadecimal Debezium has the placeholder as it is.
        told = self._placeholder if self._binary == "hex" else encode(placeholder)
        return Mapped(Schema(Type.STRING), read, "", told)

    def _hstore(self, modifier: int) -> Mapped:
        if self._hstores == "json":
            schema = Schema(Type.STRING, name=_DATA + "Json", version=1)
            pair = f'{{"{self._placeholder}":"{self._placeholder}"}}'
            return Mapped(schema, columns.by_row(columns.hstore_json, pa.string()), "{}", pair)
        schema = Schema(Type.MAP, keys=Schema(Type.STRING), items=Schema(Type.STRING, True))
        read = columns.by_row(texts.hstore_pairs, pa.map_(pa.string(), pa.string()))
        return Mapped(schema, read, [], [(self._placeholder, self._placeholder)])

    def _geometry(self, name: str) -> Mapped:
        fields = (Field("wkb", Schema(Type.BYTES)), _SRID)
        schema = Schema(Type.STRUCT, name=f"{_DATA}geometry.{name}", version=1, doc=name, fields=fields)
        return Mapped(schema, columns.geometries, _EMPTY_COLLECTION)

    def _vector(self, name: str, item: Type, kind: Any) -> Mapped:
        schema = Schema(Type.ARRAY, name=_DATA + name, version=1, items=Schema(item))
        return Mapped(schema, columns.vectors(kind), [])


def _number(type: Type, kind: Any, zero: Any) -> Callable[[TypeMap, int], Mapped]:
    made = Mapped(Schema(type), columns.casts(kind), zero)
    return lambda _, modifier: made


def _placeholder(text: str) -> str:
    return bytes.fromhex(text[4:]).decode() if text.startswith("hex:") else text


_ENCODINGS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "base64": lambda raw: base64.b64encode(raw).decode(),
    "base64-url-safe": lambda raw: base64.urlsafe_b64encode(raw).decode(),
    "hex": bytes.hex,
}

_BY_NAME: Final[Mapping[str, Callable[[TypeMap, int], Mapped]]] = {
    "bool": lambda _, modifier: Mapped(Schema(Type.BOOLEAN), columns.booleans, False),
    "int2": _number(Type.INT16, pa.int16(), 0),
    "int4": _number(Type.INT32, pa.int32(), 0),
    "int8": _number(Type.INT64, pa.int64(), 0),
    "oid": _number(Type.INT64, pa.int64(), 0),
    "float4": _number(Type.FLOAT32, pa.float32(), 0.0),
    "float8": _number(Type.FLOAT64, pa.float64(), 0.0),
    "numeric": TypeMap._numeric,
    "money": TypeMap._money,
    "date": TypeMap._date,
    "time": TypeMap._time,
    "timetz": TypeMap._timetz,
    "timestamp": TypeMap._timestamp,
    "timestamptz": TypeMap._timestamptz,
    "interval": TypeMap._interval,
    "bit": TypeMap._bits,
    "varbit": TypeMap._bits,
    "bytea": TypeMap._bytea,
    "hstore": TypeMap._hstore,
    "point": lambda _, modifier: Mapped(_POINT, columns.points, columns.point(0.0, 0.0)),
    "geometry": lambda here, modifier: here._geometry("Geometry"),
    "geography": lambda here, modifier: here._geometry("Geography"),
    "vector": lambda here, modifier: here._vector("DoubleVector", Type.FLOAT64, pa.float64()),
    "halfvec": lambda here, modifier: here._vector("FloatVector", Type.FLOAT32, pa.float32()),
    "sparsevec": lambda _, modifier: Mapped(_SPARSE, columns.sparse_vectors, {"dimensions": 0, "vector": []}),
}
