"""Avro to Arrow: typed columns straight from bytes, and no row becomes an object. Needs pyarrow (`ottla[arrow]`).

    decoder = ArrowDecoder(reader_schema)
    decoder.append(writer_schema, b"…")
    batch = decoder.finish()          # a pyarrow.RecordBatch

Rows of several writers' schemas may come one after the other: each is read as the one reader's schema, by Avro's
resolution. Where the compiled twin is missing, rows become Python objects in between; the result is the same, later.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.schemas.avro import _slow
from ottla.schemas.avro import columns as kinds
from ottla.schemas.avro.columns import ColumnPlan, column_plan
from ottla.schemas.avro.plan import Plan, decoding_plan
from ottla.schemas.avro.types import AvroType, Record
from ottla.schemas.faults import CannotDecode

try:
    from ottla.schemas.avro import _fast
except ImportError:  # no compiler where it was installed
    _fast = None  # type: ignore[assignment]

_LOGICAL: Final[dict[str, Callable[[], Any]]] = {
    "date": pa.date32,
    "time-millis": lambda: pa.time32("ms"),
    "time-micros": lambda: pa.time64("us"),
    "timestamp-millis": lambda: pa.timestamp("ms", tz="UTC"),
    "timestamp-micros": lambda: pa.timestamp("us", tz="UTC"),
    "timestamp-nanos": lambda: pa.timestamp("ns", tz="UTC"),
    "local-timestamp-millis": lambda: pa.timestamp("ms"),
    "local-timestamp-micros": lambda: pa.timestamp("us"),
    "local-timestamp-nanos": lambda: pa.timestamp("ns"),
}
_KINDS: Final[dict[int, Callable[[], Any]]] = {
    kinds.NULLS: pa.null,
    kinds.BOOLEANS: pa.bool_,
    kinds.INTS: pa.int32,
    kinds.LONGS: pa.int64,
    kinds.FLOATS: pa.float32,
    kinds.DOUBLES: pa.float64,
    kinds.INTERVALS: pa.month_day_nano_interval,
}


def arrow_type(plan: ColumnPlan) -> Any:
    """The type of Arrow for a column."""
    if plan.logical in _LOGICAL:
        return _LOGICAL[plan.logical]()
    if plan.kind in _KINDS:
        return _KINDS[plan.kind]()
    if plan.kind == kinds.VARIABLE:
        return pa.string() if plan.is_text else pa.binary()
    if plan.kind == kinds.FIXED:
        return pa.binary(plan.width) if plan.width else pa.binary()
    if plan.kind == kinds.DECIMALS:
        make = pa.decimal128 if plan.width == 16 else pa.decimal256
        return make(plan.precision, plan.scale)
    if plan.kind == kinds.LISTS:
        return pa.list_(arrow_field(plan.children[0]))
    if plan.kind == kinds.MAPS:
        value = plan.children[1]
        return pa.map_(pa.string(), pa.field("value", arrow_type(value), nullable=value.is_nullable))
    return pa.struct([arrow_field(child) for child in plan.children])


def arrow_field(plan: ColumnPlan) -> Any:
    return pa.field(plan.name, arrow_type(plan), nullable=plan.is_nullable)


def arrow_schema(reader: AvroType) -> Any:
    """The schema of the batches: the fields of a record, or one column `value` of anything else."""
    plan = column_plan(reader, "value")
    if isinstance(reader, Record):
        return pa.schema([arrow_field(child) for child in plan.children])
    return pa.schema([arrow_field(plan)])


class ArrowDecoder:
    """Rows of one reader's schema. `append` what came, then `finish` the batch; then it begins anew.

    `nullable` is for rows that may be missing, or wrong and read as null: then every column may be null.
    """

    def __init__(self, reader: AvroType, *, nullable: bool = False, compiled: bool = True) -> None:
        self.reader = reader
        self._plan = column_plan(reader, "value")
        self._is_record = isinstance(reader, Record)
        top = self._plan.children if self._is_record else [self._plan]
        for child in top:
            child.is_nullable = child.is_nullable or nullable
        self._type = arrow_type(self._plan)
        self.schema = pa.schema([arrow_field(child) for child in top])
        self._columns: Any
        if compiled and _fast is not None:
            self._columns = _fast.Columns(self._plan)
        else:
            self._columns = _SlowColumns(self._plan, self._is_record)
        self._bindings: dict[int, tuple[AvroType, Any]] = {}
        self._by_id: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def bind(self, writer: AvroType) -> Any:
        """What is made once for a writer's schema. Raises `CannotDecode` if nothing of it could be read."""
        known = self._bindings.get(id(writer))
        if known is None:
            known = self._bindings[id(writer)] = (writer, self._columns.bind(decoding_plan(writer, self.reader)))
        return known[1]

    def append(self, writer: AvroType, content: bytes | bytearray | memoryview, start: int = 0) -> None:
        """One more row, from bytes that begin at `start`. Raises `CannotDecode`, and nothing is added then."""
        self._columns.append(self.bind(writer), content, start)

    def append_null(self) -> None:
        """A row of nulls. Only a decoder that was made `nullable` may have one."""
        self._columns.append_null()

    def know(self, id: int, writer: AvroType) -> None:
        """Says of which schema values with this id are, for `append_framed`."""
        self._by_id[id] = self.bind(writer)

    def append_framed(self, values: Any, first: int = 0) -> int:
        """Rows of a binary array of Arrow whose values have Confluent's framing, from row `first` on. It stops before a
        row that is null, that has an id which is not known, or that is wrong, and returns its number; the length of
        the array if there is none."""
        if values.type != pa.binary():
            values = values.cast(pa.binary())
        _, offsets, content = values.buffers()
        last = len(values)
        if values.null_count:
            gap: int = values.is_valid().slice(first).index(False).as_py()
            last = first + gap if gap >= 0 else last
        if first >= last:
            return last
        start = values.offset
        places = memoryview(offsets).cast("B")[start * 4 :]
        reached = self._columns.append_framed(content if content is not None else b"", places, first, last, self._by_id)
        return cast("int", reached)

    def finish(self) -> Any:
        """All rows as a `pyarrow.RecordBatch`."""
        made = self._columns.finish()
        array = made if isinstance(made, pa.Array) else _array(self._plan, self._type, made)
        if not self._is_record:
            return pa.RecordBatch.from_arrays([array], schema=self.schema)
        if len(self.schema) == 0:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(array), pa.struct([])))
        arrays = [array.field(place) for place in range(len(self.schema))]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(plan: ColumnPlan, type: Any, made: tuple[int, int, list[Any], list[Any]]) -> Any:
    length, nulls, buffers, children = made
    if plan.kind == kinds.NULLS:
        return pa.nulls(length)
    held = [None if one is None else pa.py_buffer(one) for one in buffers]
    if plan.kind == kinds.FIXED and plan.width == 0:
        offsets = pa.py_buffer(bytes(4 * (length + 1)))
        return pa.Array.from_buffers(type, length, [held[0], offsets, pa.py_buffer(b"")], nulls)
    if plan.kind == kinds.LISTS:
        child = _array(plan.children[0], type.value_type, children[0])
        return pa.Array.from_buffers(type, length, held, nulls, children=[child])
    if plan.kind == kinds.MAPS:
        key = _array(plan.children[0], type.key_type, children[0])
        value = _array(plan.children[1], type.item_type, children[1])
        entries = pa.StructArray.from_arrays([key, value], fields=[type.key_field, type.item_field])
        return pa.Array.from_buffers(type, length, held, nulls, children=[entries])
    if plan.kind == kinds.STRUCTS:
        arrays = [_array(child, type.field(place).type, children[place]) for place, child in enumerate(plan.children)]
        return pa.Array.from_buffers(type, length, held[:1], nulls, children=arrays)
    return pa.Array.from_buffers(type, length, held, nulls)


class _SlowColumns:
    """The twin of `_fast.Columns`: rows are Python objects until the batch is finished."""

    def __init__(self, plan: ColumnPlan, is_record: bool) -> None:
        self._plan = plan
        self._type = arrow_type(plan)
        self._rows: list[Any] = []
        self._nothing = {child.name: None for child in plan.children} if is_record else None

    def __len__(self) -> int:
        return len(self._rows)

    def bind(self, plan: Plan) -> _slow.Decoder:
        return _slow.Decoder(plan, None, as_raw=True, as_tree=True)

    def append(self, binding: _slow.Decoder, content: bytes | bytearray | memoryview, start: int = 0) -> None:
        self._rows.append(_converted(self._plan, binding.decode(content, start)))

    def append_null(self) -> None:
        self._rows.append(self._nothing)

    def append_framed(self, content: Any, offsets: Any, first: int, last: int, bindings: dict[int, Any]) -> int:
        places = memoryview(offsets).cast("i")
        held = memoryview(content)
        for row in range(first, last):
            value = bytes(held[places[row] : places[row + 1]])
            binding = bindings.get(int.from_bytes(value[1:5], "big"))
            if len(value) < 5 or value[0] != 0 or binding is None:
                return row
            try:
                self.append(binding, value, 5)
            except CannotDecode:
                return row
        return last

    def finish(self) -> Any:
        rows, self._rows = self._rows, []
        return pa.array(rows, self._type)


def _converted(plan: ColumnPlan, value: Any) -> Any:
    """A value as pyarrow wants it for the column."""
    if plan.branches is not None and isinstance(value, tuple):
        branch, value = value
        goes_to = plan.branches[branch]
        if goes_to == kinds.IS_NULL:
            return None
        if goes_to != kinds.IS_ITSELF:
            child = plan.children[goes_to]
            return {one.name: _converted(child, value) if one is child else None for one in plan.children}
    if value is None:
        return None
    if plan.kind == kinds.STRUCTS:
        return {child.name: _converted(child, value[child.name]) for child in plan.children}
    if plan.kind == kinds.LISTS:
        return [_converted(plan.children[0], one) for one in value]
    if plan.kind == kinds.MAPS:
        return [(key, _converted(plan.children[1], one)) for key, one in value]
    if plan.kind == kinds.DECIMALS:
        if abs(int.from_bytes(value, "big", signed=True)) >= 10**plan.precision:
            raise CannotDecode("the value has no place in its column")
        return _slow._decimal(value, plan.scale)
    if plan.kind == kinds.INTERVALS:
        months, days, milliseconds = _slow._DURATION.unpack(value)
        if months >= 1 << 31 or days >= 1 << 31:
            raise CannotDecode("the value has no place in its column")
        return pa.MonthDayNano([months, days, milliseconds * 1_000_000])
    if plan.kind in (kinds.INTS, kinds.LONGS) and plan.logical in _LOGICAL:
        storage = pa.int32() if plan.kind == kinds.INTS else pa.int64()
        return pa.scalar(value, storage).cast(_LOGICAL[plan.logical]())
    return value
