"""JSON documents to columns of a struct, all of a batch at once, by Arrow's parser.

Theory of operation. Arrow reads a stream of documents and does not say which came from where: a value with two
documents and one with half a document would shift all between them. So each value is wrapped in an object of its own,
as the one element of a list, with its row number under a name that nobody can guess. What is read must have all numbers
in order and one element in each list. If it has not, or cannot be parsed, `ValueError` is raised for the batch; the
caller divides it to find the bad ones.
"""

from secrets import token_hex
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyarrow import compute
from pyarrow import json as arrow_json

_LEAST_BLOCK_BYTES: Final = 1 << 16


class JsonValues:
    """`type_` is a struct. Members that it does not name are passed over; fields without a member are null."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._row, self._document = f"row-{token_hex(8)}", f"document-{token_hex(8)}"
        schema = pa.schema([pa.field(self._row, pa.int64()), pa.field(self._document, pa.list_(_as_read(type_)))])
        self._parsing = arrow_json.ParseOptions(
            explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore"
        )

    def decode(self, values: pa.Array) -> pa.Array:
        if not values.null_count:
            return self._decode(values)
        is_valid = values.is_valid()
        decoded = self._decode(values.filter(is_valid))
        places = compute.subtract(compute.cumulative_sum(is_valid.cast(pa.int64())), 1)
        return decoded.take(compute.if_else(is_valid, places, None))

    def _decode(self, values: pa.Array) -> pa.Array:
        if not len(values):
            return pa.array([], self._type)
        table = self._read(self._wrapped(values))
        rows, documents = table.column(self._row), table.column(self._document)
        if not rows.combine_chunks().equals(pa.array(range(len(values)), pa.int64())):
            raise ValueError("not one JSON document in each value")
        one_each = compute.all(compute.equal(compute.list_value_length(documents), 1), skip_nulls=False)
        if not one_each.as_py():
            raise ValueError("not one JSON document in each value")
        return documents.combine_chunks().flatten().cast(self._type)

    def _wrapped(self, values: pa.Array) -> pa.Buffer:
        text = values.cast(pa.string())  # it must be UTF-8
        numbers = pa.array(range(len(values)), pa.int64()).cast(pa.string())
        begin, middle = f'{{"{self._row}":', f',"{self._document}":['
        lines = compute.binary_join_element_wise(begin, numbers, middle, text, "]}\n", "")
        _, offsets, data = lines.buffers()
        ends = memoryview(offsets).cast("i")
        return data.slice(ends[0], ends[len(lines)] - ends[0])

    def _read(self, documents: pa.Buffer) -> pa.Table:
        # One block: a document that does not fit into one would be an error.
        reading = arrow_json.ReadOptions(use_threads=False, block_size=max(documents.size + 1, _LEAST_BLOCK_BYTES))
        try:
            return arrow_json.read_json(pa.BufferReader(documents), reading, self._parsing)
        except pa.ArrowException as problem:
            raise ValueError(str(problem).replace(f"/{self._document}/[]", "value")) from None


def _as_read(type_: pa.DataType) -> pa.DataType:
    """The type as Arrow's parser takes it: dates are not read from text, times are."""
    if pa.types.is_date(type_):
        return pa.timestamp("s")
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _as_read(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_as_read(type_.value_type))
    return type_
