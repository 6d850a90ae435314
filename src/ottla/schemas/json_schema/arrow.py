"""JSON to Arrow: documents to typed columns, all of a batch at once, by Arrow's parser. Needs pyarrow (`ottla[arrow]`).

    decoder = ArrowDecoder(schema)
    decoder.append(b'{"id": 5}')
    batch = decoder.finish()          # a pyarrow.RecordBatch

The columns are those that the JSON Schema names: whole numbers are of 64 bits, `date-time` a moment in UTC, `date` a
day. A schema that leaves open what a value is has none (`column_type`). Every column may be null, for a member may be
missing. Values are not held against the schema, but for their types.

Theory of operation. Arrow reads a stream of documents and does not say which came from where: a value with two
documents and one with half a document would shift all between them. So each value is wrapped in an object of its own,
as the one element of a list, with its row number under a name that no value can have: it is the digest of them all.
What is read must have all numbers in order and one element in each list. If it has not, or cannot be parsed,
`ValueError` is raised for the batch; the caller divides it to find the bad ones.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final, Literal

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyarrow import compute
from pyarrow import json as arrow_json

from ottla.base.errors import OttlaError
from ottla.schemas.faults import CannotDecode
from ottla.schemas.json_schema.schema import JsonSchema

_LEAST_BLOCK_BYTES: Final = 1 << 16
_DEEPEST: Final = 50
_TYPES: Final[dict[str, Callable[[], Any]]] = {
    "string": pa.string,
    "integer": pa.int64,
    "number": pa.float64,
    "boolean": pa.bool_,
}
_STRINGS: Final[dict[str, Callable[[], Any]]] = {"date-time": lambda: pa.timestamp("us", tz="UTC"), "date": pa.date32}


class NoColumns(OttlaError, ValueError):
    """A JSON Schema says too little of its values to make columns of them, or allows too much."""


def column_type(tree: Any) -> Any:
    """The type of Arrow for values of a JSON Schema. Raises `NoColumns`."""
    return _type(tree, tree, 0)


def _type(tree: Any, root: Any, depth: int) -> Any:
    if depth > _DEEPEST or not isinstance(tree, dict):
        raise NoColumns("it is nested too deeply" if depth > _DEEPEST else "a part of it allows anything")
    if isinstance(reference := tree.get("$ref"), str):
        return _type(_local(reference, root), root, depth + 1)
    for word in ("oneOf", "anyOf"):
        if isinstance(branches := tree.get(word), list):
            others = [one for one in branches if one != {"type": "null"}]
            if len(others) != 1:
                raise NoColumns(f"{word} has several types")
            return _type(others[0], root, depth + 1)
    kind = tree.get("type", "object" if "properties" in tree else None)
    if isinstance(kind, list):
        named = [one for one in kind if one != "null"]
        kind = named[0] if len(named) == 1 else None
    if kind == "string":
        return _STRINGS.get(str(tree.get("format")), pa.string)()
    if kind in _TYPES:
        return _TYPES[kind]()
    if kind == "array":
        return pa.list_(_type(tree.get("items"), root, depth + 1))
    if kind == "object" and isinstance(members := tree.get("properties"), dict) and members:
        return pa.struct([pa.field(name, _type(one, root, depth + 1)) for name, one in members.items()])
    raise NoColumns(f"{kind or 'a part of it'} has no type for a column")


def _local(reference: str, root: Any) -> Any:
    if reference.startswith("#/"):
        found = root
        for word in reference[2:].split("/"):
            found = found.get(word.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if found is not None:
            return found
    raise NoColumns(f"{reference} is not within it")


class ArrowDecoder:
    """Rows of one JSON Schema. `append` what came, then `finish` the batch; then it begins anew. A schema that is no
    object has one column, `value`. Making one raises `NoColumns`."""

    def __init__(self, schema: JsonSchema) -> None:
        found = column_type(schema.tree)
        self._is_struct = pa.types.is_struct(found)
        self._documents = JsonValues(found)
        self.schema = pa.schema(list(found) if self._is_struct else [pa.field("value", found)])
        self._rows: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, content: bytes | bytearray | memoryview, start: int = 0) -> None:
        """One more row, from JSON that begins at `start`."""
        self._rows.append(bytes(memoryview(content)[start:]))

    def append_null(self) -> None:
        """A row of nulls."""
        self._rows.append(None)

    def finish(self, on_error: Literal["raise", "null"] = "raise") -> Any:
        """All rows as a `pyarrow.RecordBatch`. Raises `CannotDecode`, with the number of the row, unless it is to be
        null; the rows are gone either way."""
        rows, self._rows = self._rows, []
        column = self._decoded(pa.array(rows, pa.binary()), 0, on_error)
        if not self._is_struct:
            return pa.record_batch([column], schema=self.schema)
        return pa.record_batch(column.flatten(), schema=self.schema)

    def _decoded(self, values: Any, first: int, on_error: str) -> Any:
        """Halves what cannot be read, until one is left that is wrong by itself."""
        try:
            return self._documents.decode(values)
        except ValueError as problem:
            if len(values) == 1:
                if on_error == "raise":
                    raise CannotDecode(f"row {first} is none of the schema's values: {problem}") from None
                return self._documents.decode(pa.array([None], pa.binary()))
        half = len(values) // 2
        parts = (values.slice(0, half), first), (values.slice(half), first + half)
        return pa.concat_arrays([self._decoded(part, place, on_error) for part, place in parts])


class JsonValues:
    """`type_` is a struct. Members that it does not name are passed over; fields without a member are null."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._read_type = pa.list_(_as_read(type_))

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
        text = values.cast(pa.string())  # it must be UTF-8
        digest = _digest(text)
        table = self._read(_wrapped(text, digest), digest)
        rows, documents = table.column(f"row-{digest}"), table.column(f"document-{digest}")
        if not rows.combine_chunks().equals(pa.array(range(len(values)), pa.int64())):
            raise ValueError("not one JSON document in each value")
        one_each = compute.all(compute.equal(compute.list_value_length(documents), 1), skip_nulls=False)
        if not one_each.as_py():
            raise ValueError("not one JSON document in each value")
        return documents.combine_chunks().flatten().cast(self._type)

    def _read(self, documents: pa.Buffer, digest: str) -> pa.Table:
        schema = pa.schema([pa.field(f"row-{digest}", pa.int64()), pa.field(f"document-{digest}", self._read_type)])
        parsing = arrow_json.ParseOptions(
            explicit_schema=schema, newlines_in_values=True, unexpected_field_behavior="ignore"
        )
        # One block: a document that does not fit into one would be an error.
        reading = arrow_json.ReadOptions(use_threads=False, block_size=max(documents.size + 1, _LEAST_BLOCK_BYTES))
        try:
            return arrow_json.read_json(pa.BufferReader(documents), reading, parsing)
        except pa.ArrowException as problem:
            raise ValueError(str(problem).replace(f"/document-{digest}/[]", "value")) from None


def _digest(text: pa.Array) -> str:
    """Nobody can write a value that has the digest of all values in it."""
    digest = sha256()
    for buffer in text.buffers():
        if buffer is not None:
            digest.update(buffer)
    return digest.hexdigest()[:32]


def _wrapped(text: pa.Array, digest: str) -> pa.Buffer:
    numbers = pa.array(range(len(text)), pa.int64()).cast(pa.string())
    begin, middle = f'{{"row-{digest}":', f',"document-{digest}":['
    lines = compute.binary_join_element_wise(begin, numbers, middle, text, "]}\n", "")
    _, offsets, data = lines.buffers()
    ends = memoryview(offsets).cast("i")
    return data.slice(ends[0], ends[len(lines)] - ends[0])


def _as_read(type_: pa.DataType) -> pa.DataType:
    """The type as Arrow's parser takes it: dates are not read from text, times are."""
    if pa.types.is_date(type_):
        return pa.timestamp("s")
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, _as_read(field.type)) for field in type_])
    if pa.types.is_list(type_):
        return pa.list_(_as_read(type_.value_type))
    return type_
