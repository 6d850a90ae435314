"""Records with the id of a schema as JSON, and JSON as such records: for `ottla tail`, `ottla consume` and the console
tools. A record's own format decides, whichever it is.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.blocking.schema_registry import SchemaRegistryClient
from ottla.client.schema_registry.registry_errors import RegistryError
from ottla.schemas.avro.json_form import from_json_form, to_json_form
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.registry_port import RegisteredSchema
from ottla.schemas.schema import InvalidSchema, ParsedSchema, parse
from ottla.schemas.serializing.framing import Header, prefix, read_frame


class SchemaDecoder:
    """Records to what JSON can say. Values of unions name their branch where `names_branches`, as Avro's JSON does."""

    def __init__(self, registry: SchemaRegistryClient, *, is_key: bool = False, names_branches: bool = False) -> None:
        self._registry = registry
        self._is_key = is_key
        self._names_branches = names_branches
        self._known: dict[int | str, tuple[RegisteredSchema, ParsedSchema]] = {}
        self._decoders: dict[int | str, Any] = {}

    def __call__(self, topic: str, content: bytes, headers: Sequence[Header]) -> Any:
        """Raises `CannotDecode`, and what the registry's client raises."""
        frame = read_frame(content, headers, self._is_key, False)
        key = frame.guid if frame.guid is not None else frame.id
        assert key is not None
        schema = self._schema(key)
        if isinstance(schema, AvroSchema):
            return self._avro(key, schema, content, frame.start)
        if isinstance(schema, ProtobufSchema):
            frame = read_frame(content, headers, self._is_key, True)
            return _message_said(schema, frame.indexes, content[frame.start :])
        try:
            return json.loads(content[frame.start :])
        except (ValueError, RecursionError) as problem:
            raise CannotDecode(f"the record is not JSON: {problem}") from None

    def id_of(self, content: bytes, headers: Sequence[Header]) -> int | str | None:
        """The id or guid that a record names."""
        frame = read_frame(content, headers, self._is_key, False)
        return frame.guid if frame.guid is not None else frame.id

    def _schema(self, key: int | str) -> ParsedSchema:
        if key not in self._known:
            by_id = self._registry.schema_by_id
            try:
                found = by_id(key) if isinstance(key, int) else self._registry.schema_by_guid(key)
            except RegistryError as problem:
                raise CannotDecode(f"the registry has no schema {key}: {problem}") from None
            self._known[key] = found, parsed(found)
        return self._known[key][1]

    def _avro(self, key: int | str, schema: AvroSchema, content: bytes, start: int) -> Any:
        if self._names_branches:
            return to_json_form(schema.type, content, start)
        if key not in self._decoders:
            from ottla.schemas.avro.codec import Decoder
            from ottla.schemas.avro.plan import decoding_plan

            self._decoders[key] = Decoder(decoding_plan(schema.type))
        return self._decoders[key].decode(content, start)


def _message_said(schema: ProtobufSchema, indexes: tuple[int, ...], content: bytes) -> Any:
    from google.protobuf.json_format import MessageToDict

    try:
        made = schema.message_class(schema.message_name(indexes))
        return MessageToDict(made.FromString(content), always_print_fields_with_no_presence=True)
    except InvalidSchema as problem:
        raise CannotDecode(str(problem)) from None
    except Exception as problem:  # the library's own, whose name has changed between versions
        raise CannotDecode(f"the record is none of its schema: {problem}") from None


def parsed(registered: RegisteredSchema) -> ParsedSchema:
    try:
        return parse(registered.kind, registered.text, registered.resolved)
    except InvalidSchema as problem:
        raise CannotDecode(f"the schema {registered.id or registered.guid} cannot be used: {problem}") from None


class SchemaEncoder:
    """JSON to records of one schema."""

    def __init__(self, registered: RegisteredSchema, message: str | None = None) -> None:
        assert registered.id is not None
        self._schema = parsed(registered)
        self._id = registered.id
        self._message = message

    def encode(self, text: str) -> bytes:
        """Raises `CannotEncode`."""
        schema = self._schema
        if isinstance(schema, ProtobufSchema):
            return self._message_of(schema, text)
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as problem:
            raise CannotEncode(f"not JSON: {problem}") from None
        if isinstance(schema, AvroSchema):
            return prefix(self._id) + from_json_form(schema.type, value)
        assert isinstance(schema, JsonSchema)
        from ottla.schemas.json_schema.validation import InvalidValue

        try:
            schema.validation.check(value)
        except InvalidValue as problem:
            raise CannotEncode(problem.reason, tuple(problem.path.split("/")) if problem.path else ()) from None
        return prefix(self._id) + text.encode()

    def _message_of(self, schema: ProtobufSchema, text: str) -> bytes:
        from google.protobuf.json_format import Parse, ParseError

        name = self._message or schema.name
        if name is None:
            raise CannotEncode("the schema has no message")
        try:
            message = Parse(text, schema.message_class(name)())
            return prefix(self._id, schema.message_indexes(name)) + bytes(message.SerializeToString())
        except (ParseError, InvalidSchema) as problem:
            raise CannotEncode(str(problem)) from None


def open_registry(settings: Mapping[str, str]) -> SchemaRegistryClient:
    """A client by the properties of the console tools; they have `schema.registry.url`."""
    return SchemaRegistryClient(dict(settings))
