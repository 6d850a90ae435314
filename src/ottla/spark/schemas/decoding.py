"""Records with the id of a schema to columns, each read as the schema that the query was planned with.

Records of several schemas come in one batch. Avro's are read by its resolution: evolution is no matter. Protobuf's are
read by the numbers of their fields. A record of another type than those that were asked for cannot be decoded, and so
is one whose schema the registry does not have; that the registry cannot be reached fails the task.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyarrow import compute

from ottla.client.schema_registry.registry_errors import RegistryError
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.faults import CannotDecode
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.registry_port import RegisteredSchema
from ottla.schemas.schema import InvalidSchema, ParsedSchema, parse
from ottla.schemas.serializing.framing import read_frame
from ottla.spark.options import OptionError
from ottla.spark.schemas.schema_options import RegistrySettings, WantedSchemas, kept_registry
from ottla.spark.schemas.spark_types import as_sparks, spark_ddl, struct_ddl

_PREFIX_BYTES: Final = 5


class _Registered:
    """Schemas that records were written with, by id. What the registry does not have, a record cannot be read with."""

    def __init__(self, settings: RegistrySettings, kind: str) -> None:
        self._settings = settings
        self._kind = kind
        self._known: dict[int, ParsedSchema] = {}

    def by_id(self, id: int) -> ParsedSchema:
        """Raises `ValueError` for what no registry will have in a moment."""
        if id not in self._known:
            try:
                registered = kept_registry(self._settings).schema_by_id(id)
            except RegistryError as problem:
                if problem.is_missing:
                    raise CannotDecode(f"the registry has no schema {id}: {problem}") from None
                raise
            self._known[id] = parsed(registered, self._kind)
        return self._known[id]


def parsed(registered: RegisteredSchema, kind: str) -> ParsedSchema:
    if registered.kind != kind:
        raise CannotDecode(f"the schema {registered.id} is {registered.kind}, and not {kind}")
    try:
        return parse(registered.kind, registered.text, registered.resolved)
    except InvalidSchema as problem:
        raise CannotDecode(f"the schema {registered.id} cannot be used: {problem}") from None


class _AvroColumns:
    def __init__(self, schema: AvroSchema, registered: _Registered) -> None:
        from ottla.schemas.avro.arrow import ArrowDecoder

        self.name = schema.name or ""
        self._registered = registered
        self._known: dict[int, AvroSchema] = {}
        self._decoder = ArrowDecoder(schema.type, nullable=True)
        self._is_struct = schema.name is not None and schema.type.kind == "record"
        self.type = pa.struct(list(self._decoder.schema)) if self._is_struct else self._decoder.schema.field(0).type

    def name_of(self, value: bytes) -> str:
        """The full name of the record that a value was written as."""
        return self._registered_schema(value).name or ""

    def decode(self, values: Any) -> Any:
        decoder = self._decoder
        try:
            row = 0
            while (row := decoder.append_framed(values, row)) < len(values):
                value = values[row].as_py()
                if value is None:
                    decoder.append_null()
                else:
                    # The schema is not known yet, or the value is wrong: then this says what about it is.
                    decoder.append(self._writer(value).type, value, _PREFIX_BYTES)
                row += 1
        except BaseException:
            decoder.finish()
            raise
        batch = decoder.finish()
        if not self._is_struct:
            return batch.column(0)
        if not batch.num_columns:
            return pa.array([None if one is None else {} for one in values.to_pylist()], self.type)
        return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema), mask=values.is_null())

    def _writer(self, value: bytes) -> AvroSchema:
        id = _id_of(value)
        if id not in self._known:
            schema = self._registered_schema(value)
            self._decoder.know(id, schema.type)
            self._known[id] = schema
        return self._known[id]

    def _registered_schema(self, value: bytes) -> AvroSchema:
        schema = self._registered.by_id(_id_of(value))
        assert isinstance(schema, AvroSchema)
        return schema


class _ProtobufColumns:
    def __init__(self, schema: ProtobufSchema, message: str | None, registered: _Registered) -> None:
        from ottla.schemas.protobuf.arrow import ArrowDecoder

        self.name = message or schema.name or ""
        self._registered = registered
        self._names: dict[tuple[int, tuple[int, ...]], str] = {}
        self._decoder = ArrowDecoder(schema, message)
        self.type = pa.struct(list(self._decoder.finish().schema))

    def name_of(self, value: bytes) -> str:
        return self._message(value)[0]

    def decode(self, values: Any) -> Any:
        decoder = self._decoder
        try:
            for value in values.to_pylist():
                if value is None:
                    decoder.append_null()
                    continue
                name, start = self._message(value)
                if name != self.name:
                    raise CannotDecode(f"it is a {name}, and not a {self.name}")
                decoder.append(value, start)
        except BaseException:
            decoder.finish("null")
            raise
        batch = decoder.finish()
        if not batch.num_columns:
            return pa.array([None if one is None else {} for one in values.to_pylist()], self.type)
        fields = [field.with_nullable(True) for field in batch.schema]
        return pa.StructArray.from_arrays(batch.columns, fields=fields, mask=values.is_null())

    def _message(self, value: bytes) -> tuple[str, int]:
        """The full name of a value's message, and where it begins."""
        frame = read_frame(value, (), False, True)
        if frame.id is None:
            raise CannotDecode("it has a guid in place of an id")
        key = frame.id, frame.indexes
        if key not in self._names:
            schema = self._registered.by_id(frame.id)
            assert isinstance(schema, ProtobufSchema)
            try:
                self._names[key] = schema.message_name(frame.indexes)
            except InvalidSchema as problem:
                raise CannotDecode(str(problem)) from None
        return self._names[key], frame.start


def _id_of(value: bytes) -> int:
    if len(value) < _PREFIX_BYTES or value[0] != 0:
        raise CannotDecode("it does not begin with 0 and the id of a schema")
    return int.from_bytes(value[1:_PREFIX_BYTES], "big")


Columns = _AvroColumns | _ProtobufColumns


class SchemaValues:
    """A decoder of the source's, for Avro and Protobuf: a struct for each record, or, if several types were asked for,
    a struct with a field for each of them, of which one is set.
    """

    def __init__(
        self, wanted: WantedSchemas, schemas: Sequence[RegisteredSchema], arrow_type: Any | None = None
    ) -> None:
        registered = _Registered(wanted.registry, wanted.kind)
        self._parts: list[Columns] = []
        for one in schemas:
            schema = parsed(one, wanted.kind)
            if isinstance(schema, AvroSchema):
                self._parts.append(_AvroColumns(schema, registered))
            else:
                assert isinstance(schema, ProtobufSchema)
                for message in wanted.messages or (None,):
                    self._parts.append(_ProtobufColumns(schema, message, registered))
        self._fields = _short_names([part.name for part in self._parts])
        self._arrow_type = arrow_type

    def ddl(self) -> str:
        """The type of the column, in Spark's words."""
        if len(self._parts) == 1:
            return spark_ddl(self._parts[0].type)
        return struct_ddl(zip(self._fields, (part.type for part in self._parts), strict=True))

    def decode(self, values: Any) -> Any:
        assert self._arrow_type is not None
        if values.type != pa.binary():
            values = values.cast(pa.binary())
        if len(self._parts) == 1:
            return as_sparks(self._parts[0].decode(values), self._arrow_type)
        places = [self._part_of(value) for value in values.to_pylist()]
        which = pa.array(places, pa.int32())
        columns = []
        for number, part in enumerate(self._parts):
            own = compute.if_else(compute.equal(which, number).fill_null(False), values, None)
            columns.append(as_sparks(part.decode(own), self._arrow_type.field(number).type))
        return pa.StructArray.from_arrays(columns, fields=list(self._arrow_type), mask=values.is_null())

    def _part_of(self, value: bytes | None) -> int | None:
        if value is None:
            return None
        name = self._parts[0].name_of(value)
        names = [part.name for part in self._parts]
        if name in names:
            return names.index(name)
        # Avro reads a record under another namespace, too; if there is more than one such, nobody knows as which.
        short = [one.rpartition(".")[2] for one in names]
        last = name.rpartition(".")[2]
        if isinstance(self._parts[0], _AvroColumns) and short.count(last) == 1:
            return short.index(last)
        raise CannotDecode(f"it is a {name}, and none of {', '.join(names)}")


def _short_names(names: list[str]) -> list[str]:
    """Without their namespaces, if they differ all the same."""
    short = [name.rpartition(".")[2] for name in names]
    if len(set(map(str.lower, short))) == len(names):
        return short
    if len(set(map(str.lower, names))) != len(names):
        raise OptionError(f"option value.subject: two schemas are of the same record, {sorted(names)}")
    return [name.replace(".", "_") for name in names]


class FramedJson:
    """JSON behind the id of a schema: by Arrow's parser, as JSON without one."""

    def __init__(self, arrow_type: Any) -> None:
        from ottla.schemas.json_schema.arrow import JsonValues

        self._documents = JsonValues(arrow_type)

    def decode(self, values: Any) -> Any:
        if values.type != pa.binary():
            values = values.cast(pa.binary())
        starts = compute.binary_slice(values, 0, 1).drop_null()
        is_framed = compute.all(compute.equal(starts, b"\0"), min_count=0).as_py()
        lengths = compute.binary_length(values).drop_null()
        if not is_framed or (len(lengths) and compute.min(lengths).as_py() <= _PREFIX_BYTES):
            raise CannotDecode("it does not begin with 0 and the id of a schema")
        return self._documents.decode(compute.binary_slice(values, _PREFIX_BYTES))
