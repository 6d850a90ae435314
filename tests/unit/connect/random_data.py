"""Schemas of Connect's and values of them, at random: for hypothesis, and from a seed for tests beside Java."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from ottla.connect.data import schema as schemas
from ottla.connect.data.schema import DECIMAL, TIME, Field, Schema, Type, scale_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_PLAIN = [*_BITS, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING, Type.BYTES]
_DEBEZIUM = [
    ("io.debezium.time.Date", Type.INT32),
    ("io.debezium.time.MicroTimestamp", Type.INT64),
    ("io.debezium.time.NanoTimestamp", Type.INT64),
    ("io.debezium.time.ZonedTimestamp", Type.STRING),
    ("io.debezium.data.Uuid", Type.STRING),
    ("io.debezium.data.Bits", Type.BYTES),
]


@st.composite
def plain_schemas(draw: st.DrawFn) -> Schema:
    """Of one value: numbers, texts, bytes, logical types."""
    kind = draw(st.integers(0, 7))
    if kind == 0:
        scale = draw(st.integers(-3, 12))
        precision = draw(st.none() | st.integers(20, 80)) if scale >= 0 else None
        base = schemas.decimal(scale, precision=precision)
    elif kind == 1:
        base = draw(st.sampled_from([schemas.date(), schemas.time(), schemas.timestamp()]))
    elif kind == 2:
        name, type = draw(st.sampled_from(_DEBEZIUM))
        base = Schema(type, name=name, version=1)
    else:
        base = Schema(draw(st.sampled_from(_PLAIN)))
    return base


@st.composite
def any_schema(draw: st.DrawFn, depth: int = 3) -> Schema:
    kind = draw(st.integers(0, 5)) if depth > 0 else 0
    if kind <= 2:
        base = draw(plain_schemas())
    elif kind == 3:
        base = schemas.array(draw(any_schema(depth - 1)))
    elif kind == 4:
        keys = draw(st.sampled_from([Schema(Type.STRING), Schema(Type.INT32), Schema(Type.BYTES)]))
        base = schemas.map_of(keys, draw(any_schema(depth - 1)))
    else:
        base = draw(struct_schemas(depth - 1))
    optional = draw(st.booleans())
    base = base.but(optional=optional)
    if base.name is None and draw(st.integers(0, 3)) == 0:
        base = base.but(name=draw(NAMES), version=draw(st.none() | st.integers(1, 9)), doc=draw(st.none() | TEXTS))
    if base.logical is None and draw(st.integers(0, 3)) == 0:
        base = base.but(parameters=draw(st.dictionaries(NAMES, TEXTS, min_size=1, max_size=2)))
    if draw(st.integers(0, 3)) == 0:
        base = base.but(default=draw(values(base.but(optional=False))))
    return base


@st.composite
def struct_schemas(draw: st.DrawFn, depth: int = 2) -> Schema:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    fields = tuple(Field(name, draw(any_schema(depth))) for name in names)
    return Schema(Type.STRUCT, name=draw(st.none() | NAMES), fields=fields)


@st.composite
def values(draw: st.DrawFn, schema: Schema) -> Any:
    """A value of the schema, as `rows` has it."""
    if schema.optional and draw(st.integers(0, 4)) == 0:
        return None
    if schema.logical == DECIMAL:
        digits = draw(st.integers(-(10**19), 10**19))
        return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale_of(schema)))
    if schema.logical == TIME:
        return draw(st.integers(0, 86_399_999))
    if schema.type in _BITS:
        bound = 1 << (_BITS[schema.type] - 1)
        if schema.logical is not None or schema.name is not None:
            bound = min(bound, 1 << 40)
        if schema.name == schemas.DATE:
            bound = 1 << 18
        return draw(st.integers(-bound, bound - 1))
    if schema.type is Type.FLOAT32:
        return draw(st.floats(width=32))
    if schema.type is Type.FLOAT64:
        return draw(st.floats())
    if schema.type is Type.BOOLEAN:
        return draw(st.booleans())
    if schema.type is Type.STRING:
        return draw(TEXTS)
    if schema.type is Type.BYTES:
        return draw(st.binary(max_size=12))
    if schema.type is Type.ARRAY:
        assert schema.items is not None
        return draw(st.lists(values(schema.items), max_size=3))
    if schema.type is Type.MAP:
        assert schema.keys is not None
        assert schema.items is not None
        pairs = st.tuples(values(schema.keys), values(schema.items))
        return draw(st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0]))
    return {field.name: draw(values(field.schema)) for field in schema.fields}


@st.composite
def schemas_and_rows(draw: st.DrawFn) -> tuple[Schema, list[Any]]:
    schema = draw(any_schema())
    return schema, draw(st.lists(values(schema), max_size=4))
