"""Protobuf for records: `ottla.schemas.Protobuf`.

A value is an object of a generated class, and then its own file is its schema, with what it imports as references,
each registered under the name of the file; or it is a dict, and then the schema is given, or the latest of the
subject. What is read becomes an object of a generated class if one is given, else of a class made from the schema, or
a dict.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.protobuf.schema import ProtobufSchema, parse_protobuf
from ottla.schemas.protobuf.well_known import WELL_KNOWN
from ottla.schemas.registry_port import (
    AsyncRegistry,
    BlockingRegistry,
    Reference,
    RegisteredSchema,
    SchemaToRegister,
)
from ottla.schemas.schema import InvalidSchema, ParsedSchema
from ottla.schemas.serializing.framing import Frame
from ottla.schemas.serializing.objects import maker, plain
from ottla.schemas.serializing.rules import FieldPlace, RuleSet
from ottla.schemas.serializing.serializers import (
    Ask,
    Asynchronous,
    Blocking,
    Buffer,
    Face,
    Format,
    Framing,
    Header,
    LocalSchema,
    Procedure,
    Reader,
    RegistryT,
    Settings,
    Writer,
    settings_of,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor


class ProtobufFormat(Format):
    has_indexes = True

    def __init__(
        self,
        settings: Settings,
        schema: str | None,
        references: Mapping[str, str],
        registered_references: tuple[Reference, ...],
        message: str | None,
        value_type: Any,
    ) -> None:
        super().__init__(settings)
        self._message = message
        self._local: LocalSchema | None = None
        if schema is not None:
            parsed = parse_protobuf(schema, references, as_new=True, limits=settings.limits)
            to_register = SchemaToRegister("PROTOBUF", parsed.canonical, registered_references)
            self._local = LocalSchema("given", parsed, to_register, message or parsed.name)
        self._is_generated = isinstance(value_type, type) and hasattr(value_type, "DESCRIPTOR")
        self._value_type = value_type
        as_object = value_type is not None and not self._is_generated and value_type is not dict
        self._make = maker(value_type) if as_object else None
        self._as_dict = as_object or value_type is dict

    def local_key(self, value: Any) -> Any:
        return value.DESCRIPTOR.full_name if hasattr(value, "DESCRIPTOR") else None

    def local_schema(self, value: Any, topic: str | None, is_key: bool) -> Procedure[LocalSchema | None]:
        if not hasattr(value, "DESCRIPTOR"):
            yield from ()
            return self._local
        file = value.DESCRIPTOR.file
        references = yield from self._registered_imports(file, set())
        text = b64encode(file.serialized_pb).decode()
        texts = {one.name: b64encode(one.serialized_pb).decode() for one in _imports(file)}
        parsed = parse_protobuf(text, texts, as_new=False, limits=self.settings.limits)
        to_register = SchemaToRegister("PROTOBUF", text, references)
        return LocalSchema(value.DESCRIPTOR.full_name, parsed, to_register, value.DESCRIPTOR.full_name)

    def _registered_imports(self, file: "FileDescriptor", seen: set[str]) -> Procedure[tuple[Reference, ...]]:
        """What a file imports, as references to versions: registered, or looked up, from the inside out."""
        references: list[Reference] = []
        for imported in file.dependencies:
            if imported.name in WELL_KNOWN:
                continue
            inner = yield from self._registered_imports(imported, seen | {file.name})
            schema = SchemaToRegister("PROTOBUF", b64encode(imported.serialized_pb).decode(), inner)
            options = {"normalize": self.settings.normalize_schemas}
            if self.settings.auto_register_schemas:
                yield Ask("register", (imported.name, schema), options)
            found: RegisteredSchema = yield Ask("look_up", (imported.name, schema), options)
            if found.version is None:
                raise CannotEncode(f"the registry gave no version for {imported.name}")
            references.append(Reference(imported.name, imported.name, found.version))
        return tuple(references)

    def writer(self, registered: RegisteredSchema, parsed: ParsedSchema, framed: Framing) -> Writer:
        assert isinstance(parsed, ProtobufSchema)
        name = self._message or parsed.name
        rules = framed.rules
        starts: dict[str, tuple[bytes, tuple[int, ...]]] = {}

        def start_of(full_name: str) -> tuple[bytes, tuple[int, ...]]:
            if full_name not in starts:
                try:
                    indexes = parsed.message_indexes(full_name)
                except InvalidSchema as error:
                    raise CannotEncode(str(error)) from None
                starts[full_name] = framed.prefix(indexes), indexes
            return starts[full_name]

        def write(value: Any, headers: list[Header] | None) -> bytes:
            if not hasattr(value, "DESCRIPTOR"):
                if name is None:
                    raise CannotEncode("the schema has no message")
                value = _from_dict(parsed.message_class(name)(), plain(value))
            if rules.on_write:
                value = rules.run("WRITE", value, fields_of)
            start, indexes = start_of(value.DESCRIPTOR.full_name)
            framed.add_header(headers, indexes)
            try:
                return start + bytes(value.SerializeToString())
            except Exception as error:  # a required field is missing: the library has an error of its own for it
                raise CannotEncode(str(error)) from None

        return write

    def reader(self, registered: RegisteredSchema, parsed: ParsedSchema, rules: RuleSet) -> Reader:
        assert isinstance(parsed, ProtobufSchema)
        classes: dict[tuple[int, ...], Any] = {}

        def class_of(indexes: tuple[int, ...]) -> Any:
            if indexes not in classes:
                if self._is_generated:
                    classes[indexes] = self._value_type
                else:
                    try:
                        classes[indexes] = parsed.message_class(parsed.message_name(indexes))
                    except InvalidSchema as error:
                        raise CannotDecode(str(error)) from None
            return classes[indexes]

        def read(content: Buffer, frame: Frame) -> Any:
            made_of = classes.get(frame.indexes) or class_of(frame.indexes)
            payload = content[frame.start :] if type(content) is bytes else bytes(memoryview(content)[frame.start :])
            try:
                made = made_of.FromString(payload)
            except Exception as error:  # the library's own, whose name has changed between versions
                raise CannotDecode(f"the record is no {made_of.DESCRIPTOR.full_name}: {error}") from None
            if rules.on_read:
                made = rules.run("READ", made, fields_of)
            if not self._as_dict:
                return made
            value = _to_dict(made)
            return self._make(value) if self._make is not None else value

        return read


def _imports(file: "FileDescriptor") -> Iterator["FileDescriptor"]:
    """All that a file imports, what is needed first, each once."""
    seen: set[str] = set()

    def visit(one: "FileDescriptor") -> Iterator["FileDescriptor"]:
        for imported in one.dependencies:
            if imported.name not in seen and imported.name not in WELL_KNOWN:
                seen.add(imported.name)
                yield from visit(imported)
                yield imported

    yield from visit(file)


def _from_dict(message: Any, value: Any) -> Any:
    """Fills a message from a dict, by the names of the .proto file or of JSON. Raises `CannotEncode`."""
    from google.protobuf.json_format import ParseDict, ParseError

    if not isinstance(value, Mapping):
        raise CannotEncode(f"{type(value).__name__} is no {message.DESCRIPTOR.full_name}")
    try:
        return ParseDict(_json_ready(value), message)
    except (ParseError, TypeError, ValueError) as error:
        raise CannotEncode(str(error)) from None


def _json_ready(value: Any) -> Any:
    """Bytes as base64, which is what protobuf's JSON has for them."""
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return {key: _json_ready(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_json_ready(one) for one in value]
    return value


def _to_dict(message: Any) -> dict[str, Any]:
    """A message as a dict: fields by their names, numbers as numbers, bytes as bytes, enums by name, what is not set
    left out if it can be determined, else with its default."""
    value: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not field.is_repeated and not message.HasField(field.name):
            continue
        value[field.name] = _field_value(message, field)
    return value


def _field_value(message: Any, field: Any) -> Any:
    content = getattr(message, field.name)
    if not field.is_repeated:
        return _single(content, field)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {key: _single(one, inner) for key, one in content.items()}
    return [_single(one, field) for one in content]


def _single(content: Any, field: Any) -> Any:
    if field.message_type is not None:
        return _to_dict(content)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(content)
        return known.name if known is not None else content
    return content


def fields_of(message: Any, name: str = "") -> Iterator[FieldPlace]:
    """The fields of a message that are no messages themselves, with the tags that the schema gives them."""
    if not hasattr(message, "DESCRIPTOR"):
        return
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            continue
        if field.message_type is not None:
            if message.HasField(field.name):
                yield from fields_of(getattr(message, field.name), field.full_name)
            continue
        content = getattr(message, field.name)
        yield FieldPlace(
            field.name,
            field.full_name,
            "ENUM" if field.enum_type is not None else _TYPE_NAMES.get(field.type, "STRING"),
            _tags(field),
            lambda content=content: content,  # type: ignore[misc]
            lambda changed, name=field.name: setattr(message, name, changed),  # type: ignore[misc]
        )


_TYPE_NAMES = {
    1: "DOUBLE",
    2: "FLOAT",
    3: "LONG",
    4: "LONG",
    5: "INT",
    8: "BOOLEAN",
    9: "STRING",
    12: "BYTES",
    13: "INT",
}


def _tags(field: Any) -> frozenset[str]:
    from ottla.schemas.protobuf.linking import meta_class

    content = field.GetOptions().SerializeToString()
    return frozenset(meta_class().FromString(content).meta.tags) if content else frozenset()


class _Protobuf(Face[RegistryT]):
    """How `Protobuf` and `AsyncProtobuf` are made."""

    def __init__(
        self,
        registry: RegistryT,
        schema: str | None = None,
        *,
        message: str | None = None,
        references: Mapping[str, str] | None = None,
        registered_references: tuple[Reference, ...] = (),
        value_type: Any = None,
        **settings: Any,
    ) -> None:
        made = ProtobufFormat(
            settings_of(settings), schema, references or {}, registered_references, message, value_type
        )
        super().__init__(made, registry)


class Protobuf(_Protobuf[BlockingRegistry], Blocking):
    """Protobuf for records, on a registry.

    Objects of generated classes bring their schema along. For dicts `schema` is the .proto file, and `message` the full
    name of the message in it, the first if none is given; without a schema, the latest of the subject is taken.
    `value_type` is what is made of what was read: a generated class, `dict`, a dataclass, a model of pydantic's.
    """


class AsyncProtobuf(_Protobuf[AsyncRegistry], Asynchronous):
    """`Protobuf` for asyncio."""
