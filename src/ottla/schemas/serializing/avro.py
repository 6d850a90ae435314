"""Avro for records: `ottla.schemas.Avro`."""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.schemas.avro.codec import Decoder, Encoder
from ottla.schemas.avro.plan import decoding_plan, encoding_plan
from ottla.schemas.avro.schema import TAGS, AvroSchema, parse_avro
from ottla.schemas.avro.types import AvroType, Record, Union
from ottla.schemas.registry_port import (
    AsyncRegistry,
    BlockingRegistry,
    Reference,
    RegisteredSchema,
    SchemaToRegister,
)
from ottla.schemas.schema import ParsedSchema
from ottla.schemas.serializing.framing import Frame
from ottla.schemas.serializing.objects import maker
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


class AvroFormat(Format):
    """Values are dicts, dataclasses, pydantic's models, or anything with the fields as attributes."""

    def __init__(
        self,
        settings: Settings,
        schema: str | None,
        references: Mapping[str, str],
        registered_references: tuple[Reference, ...],
        reader_schema: str | None,
        value_type: Any,
    ) -> None:
        super().__init__(settings)
        self._local: LocalSchema | None = None
        if schema is not None:
            parsed = parse_avro(schema, references, as_new=True, limits=settings.limits)
            to_register = SchemaToRegister("AVRO", parsed.canonical, registered_references)
            self._local = LocalSchema("given", parsed, to_register, parsed.name)
        self._reader_type: AvroType | None = None
        if reader_schema is not None:
            self._reader_type = parse_avro(reader_schema, references, as_new=False, limits=settings.limits).type
        self._make = maker(value_type) if value_type is not None else None

    def local_key(self, value: Any) -> Any:
        return None

    def local_schema(self, value: Any, topic: str | None, is_key: bool) -> Procedure[LocalSchema | None]:
        yield from ()
        return self._local

    def writer(self, registered: RegisteredSchema, parsed: ParsedSchema, framed: Framing) -> Writer:
        assert isinstance(parsed, AvroSchema)
        encoder = Encoder(encoding_plan(parsed.type))
        start = framed.prefix()
        encode = encoder.encode
        rules = framed.rules
        if not rules.on_write and start:
            return lambda value, headers: encode(value, start)
        type = parsed.type

        def write(value: Any, headers: list[Header] | None) -> bytes:
            if rules.on_write:
                value = rules.run("WRITE", value, lambda whole: fields_of(whole, type))
            framed.add_header(headers)
            return encode(value, start)

        return write

    def find_reader_of(
        self, registered: RegisteredSchema, parsed: ParsedSchema, topic: str | None, is_key: bool
    ) -> Procedure[Reader]:
        reader_type = self._reader_type
        subject = self._subject_or_none(topic, is_key)
        if reader_type is None and self.settings.use_latest_version and subject is not None:
            latest: RegisteredSchema = yield Ask("version", (subject, -1))
            latest_parsed = self._parsed(latest)
            assert isinstance(latest_parsed, AvroSchema)
            reader_type = latest_parsed.type
        rules = RuleSet.of(registered, registered.subject or subject or "")
        return self._reader(parsed, reader_type, rules)

    def reader(self, registered: RegisteredSchema, parsed: ParsedSchema, rules: RuleSet) -> Reader:
        return self._reader(parsed, self._reader_type, rules)

    def _reader(self, parsed: ParsedSchema, reader_type: AvroType | None, rules: RuleSet) -> Reader:
        assert isinstance(parsed, AvroSchema)
        decode = Decoder(decoding_plan(parsed.type, reader_type)).decode
        make = self._make
        if make is None and not rules.on_read:
            return lambda content, frame: decode(content, frame.start)
        type = reader_type or parsed.type

        def read(content: Buffer, frame: Frame) -> Any:
            value = decode(content, frame.start)
            if rules.on_read:
                value = rules.run("READ", value, lambda whole: fields_of(whole, type))
            return make(value) if make is not None else value

        return read


def fields_of(value: Any, type: AvroType, name: str = "") -> Iterator[FieldPlace]:
    """The fields of a value that are no records themselves, with the tags that the schema gives them."""
    if isinstance(type, Union):
        for branch in type.branches:
            if isinstance(branch, Record) and isinstance(value, Mapping):
                yield from fields_of(value, branch, name)
                return
        return
    if not isinstance(type, Record) or value is None:
        return
    for field in type.fields:
        is_mapping = isinstance(value, Mapping)
        if is_mapping and field.name not in value:
            continue
        content = value[field.name] if is_mapping else getattr(value, field.name, None)
        if isinstance(content, Mapping):
            yield from fields_of(content, field.type, field.name)
            continue
        tags = field.props.get(TAGS)
        yield FieldPlace(
            field.name,
            f"{type.full_name}.{field.name}",
            _type_name(field.type),
            frozenset(tags if isinstance(tags, list) else ()),
            lambda content=content: content,  # type: ignore[misc]
            _setter(value, field.name),
        )


def _type_name(type: AvroType) -> str:
    if isinstance(type, Union):
        others = [branch for branch in type.branches if branch.kind != "null"]
        return _type_name(others[0]) if len(others) == 1 else "COMBINED"
    return type.kind.upper()


def _setter(holder: Any, name: str) -> Any:
    def set(value: Any) -> None:
        if isinstance(holder, dict):
            holder[name] = value
        else:
            setattr(holder, name, value)

    return set


class _Avro(Face[RegistryT]):
    """How `Avro` and `AsyncAvro` are made."""

    def __init__(
        self,
        registry: RegistryT,
        schema: str | None = None,
        *,
        references: Mapping[str, str] | None = None,
        registered_references: tuple[Reference, ...] = (),
        reader_schema: str | None = None,
        value_type: Any = None,
        **settings: Any,
    ) -> None:
        made = AvroFormat(
            settings_of(settings), schema, references or {}, registered_references, reader_schema, value_type
        )
        super().__init__(made, registry)


class Avro(_Avro[BlockingRegistry], Blocking):
    """Avro for records, on a registry.

    `schema` is the schema of what is written; without one, the latest of the subject is. `reader_schema` is what is
    read as, by Avro's resolution; without one, what was written. `value_type` is a class to make of what was read: a
    dataclass or a model of pydantic's. The other settings are Confluent's, for example `auto_register_schemas=False`.
    """


class AsyncAvro(_Avro[AsyncRegistry], Asynchronous):
    """`Avro` for asyncio."""
