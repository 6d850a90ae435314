"""Serializers on a registry, without its HTTP: what is asked, in which order, and what is kept.

Theory of operation. To write a value its schema must have an id, and to read one the id must have a schema. Both are
found once and kept (`Kept`, which is bounded); after that no call leaves the process. What has to be asked is
yielded: a procedure is a generator of `Ask`s, and the two faces, blocking and asyncio, carry them out with a registry
of their kind (`registry_port`). So there is one way to do it, and it does no I/O.

A face is given to clients as plain functions: ours (`serializer`, `deserializer` and the same for keys),
confluent-kafka's (`for_confluent_kafka`), and those of one argument (`for_topic`).
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.registry_port import (
    AsyncRegistry,
    BlockingRegistry,
    RegisteredSchema,
    SchemaToRegister,
)
from ottla.schemas.schema import DEFAULT_LIMITS, InvalidSchema, Limits, ParsedSchema, parse
from ottla.schemas.serializing.framing import KEY_HEADER, VALUE_HEADER, Frame, header_value, prefix, read_frame
from ottla.schemas.serializing.rules import RuleSet
from ottla.schemas.serializing.subjects import SubjectStrategy, strategy

Header = tuple[str, bytes | None]
Buffer = bytes | bytearray | memoryview

T = TypeVar("T")
RegistryT = TypeVar("RegistryT")
"""A client of a registry, for threads or for asyncio."""

MOST_KEPT: Final = 1_000
_FIRST: Final = (0,)


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of a registry, by the name that `registry_port` has for it."""

    call: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


Procedure = Generator[Ask, Any, T]


class Kept(Generic[T]):
    """A dict of bounded size: what was put in first goes first."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: dict[Any, T] = {}

    def get(self, key: Any) -> T | None:
        return self._known.get(key)

    def put(self, key: Any, value: T) -> T:
        while len(self._known) >= self._most:
            # Another thread may have taken the same out meanwhile.
            self._known.pop(next(iter(self._known), None), None)
        self._known[key] = value
        return value

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True, slots=True)
class Settings:
    """What Confluent's serializers are configured with, under the same names, underscores for dots."""

    auto_register_schemas: bool = True
    use_latest_version: bool = False
    use_schema_id: int | None = None
    use_latest_with_metadata: Mapping[str, str] | None = None
    normalize_schemas: bool = False
    subject_name_strategy: str | SubjectStrategy = "topic"
    schema_id_in: Literal["prefix", "header"] = "prefix"
    on_error: Literal["raise", "null"] = "raise"
    """What comes of bytes that cannot be decoded. A dead-letter topic is the consumer's affair, and needs `raise`."""
    limits: Limits = DEFAULT_LIMITS


_CONFLUENTS: Final = {
    "auto.register.schemas": "auto_register_schemas",
    "use.latest.version": "use_latest_version",
    "use.schema.id": "use_schema_id",
    "use.latest.with.metadata": "use_latest_with_metadata",
    "normalize.schemas": "normalize_schemas",
    "subject.name.strategy": "subject_name_strategy",
    "key.subject.name.strategy": "subject_name_strategy",
    "value.subject.name.strategy": "subject_name_strategy",
}


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Settings from keywords or from Confluent's names. Raises `ValueError` for those that contradict each other."""
    named = {_CONFLUENTS.get(name, name): value for name, value in given.items()}
    unknown = named.keys() - Settings.__dataclass_fields__.keys()
    if unknown:
        raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
    settings = Settings(**named)
    if settings.use_latest_version and named.get("auto_register_schemas"):
        raise ValueError("auto.register.schemas and use.latest.version cannot both be on")
    if settings.use_schema_id is not None and named.get("auto_register_schemas"):
        raise ValueError("auto.register.schemas and use.schema.id cannot both be on")
    strategy(settings.subject_name_strategy)
    return settings


class Writer(Protocol):
    """Encodes values of one schema that has an id."""

    def __call__(self, value: Any, headers: list[Header] | None) -> bytes: ...


class Reader(Protocol):
    """Decodes records of one schema."""

    def __call__(self, content: Buffer, frame: Frame) -> Any: ...


@dataclass(frozen=True, slots=True)
class LocalSchema:
    """A schema that a value is written with, as the application has it. Equal `key`s are equal schemas."""

    key: Any
    parsed: ParsedSchema
    to_register: SchemaToRegister
    record: str | None
    """Full name of the record, for subjects that are named after it."""


class Format:
    """One format: how its values find their schema, and how they are encoded and decoded. The faces do the rest."""

    has_indexes: bool = False

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._strategy = strategy(settings.subject_name_strategy)
        self._writers: Kept[tuple[Writer, LocalSchema | None]] = Kept()
        self._readers: Kept[Reader] = Kept()

    # What each format has of its own.

    def local_key(self, value: Any) -> Any:
        """What a value's schema is known by, without looking into it much."""
        raise NotImplementedError

    def local_schema(self, value: Any, topic: str | None, is_key: bool) -> Procedure[LocalSchema | None]:
        """The schema of a value, or None if the application has none and the registry's is taken."""
        raise NotImplementedError

    def writer(self, registered: RegisteredSchema, parsed: ParsedSchema, framed: "Framing") -> Writer:
        raise NotImplementedError

    def reader(self, registered: RegisteredSchema, parsed: ParsedSchema, rules: "RuleSet") -> Reader:
        raise NotImplementedError

    # Writing.

    def known_writer(self, topic: str | None, value: Any, is_key: bool) -> Writer | None:
        known = self._writers.get((topic, is_key, self.local_key(value)))
        return known[0] if known is not None else None

    def find_writer(self, topic: str | None, value: Any, is_key: bool) -> Procedure[Writer]:
        """The writer for a value, from the registry, and kept from now on."""
        settings = self.settings
        local = yield from self.local_schema(value, topic, is_key)
        subject = self._strategy(topic, is_key, local.record if local is not None else None)
        if settings.use_schema_id is not None:
            registered: RegisteredSchema = yield Ask("schema_by_id", (settings.use_schema_id, subject))
            registered = _with(registered, id=settings.use_schema_id)
            parsed = self._parsed(registered)
        elif settings.use_latest_with_metadata is not None:
            registered = yield Ask("latest_with_metadata", (subject, settings.use_latest_with_metadata))
            parsed = self._parsed(registered)
        elif settings.use_latest_version or local is None:
            registered = yield Ask("version", (subject, -1))
            parsed = self._parsed(registered)
        else:
            call = "register" if settings.auto_register_schemas else "look_up"
            options = {"normalize": settings.normalize_schemas}
            registered = yield Ask(call, (subject, local.to_register), options)
            parsed = local.parsed
        framed = Framing(registered, settings.schema_id_in, is_key, RuleSet.of(registered, subject))
        writer = self.writer(registered, parsed, framed)
        self._writers.put((topic, is_key, self.local_key(value)), (writer, local))
        return writer

    # Reading.

    def frame(self, content: Buffer, headers: Iterable[Header] | None, is_key: bool) -> Frame:
        if not headers and type(content) is bytes and len(content) > 5 and content[0] == 0:
            # Almost every record: an id before the bytes, and the first message.
            if not self.has_indexes:
                return Frame(int.from_bytes(content[1:5], "big"), None, (), 5)
            if content[5] == 0:
                return Frame(int.from_bytes(content[1:5], "big"), None, _FIRST, 6)
        return read_frame(content, headers or (), is_key, self.has_indexes)

    def known_reader(self, frame: Frame) -> Reader | None:
        return self._readers.get(frame.guid or frame.id)

    def find_reader(self, topic: str | None, frame: Frame, is_key: bool) -> Procedure[Reader]:
        """The reader for records of this schema, from the registry, and kept from now on."""
        if frame.guid is not None:
            registered: RegisteredSchema = yield Ask("schema_by_guid", (frame.guid,))
        else:
            subject = self._subject_or_none(topic, is_key)
            registered = yield Ask("schema_by_id", (frame.id, subject))
        parsed = self._parsed(registered)
        reader = yield from self.find_reader_of(registered, parsed, topic, is_key)
        return self._readers.put(frame.guid or frame.id, reader)

    def find_reader_of(
        self, registered: RegisteredSchema, parsed: ParsedSchema, topic: str | None, is_key: bool
    ) -> Procedure[Reader]:
        """A format that has to ask for more (a reader's schema) does it here."""
        yield from ()
        return self.reader(registered, parsed, RuleSet.of(registered, registered.subject or topic or ""))

    def _subject_or_none(self, topic: str | None, is_key: bool) -> str | None:
        try:
            return self._strategy(topic, is_key, None)
        except CannotEncode:
            return None

    def _parsed(self, registered: RegisteredSchema) -> ParsedSchema:
        try:
            return parse(registered.kind, registered.text, registered.resolved, limits=self.settings.limits)
        except InvalidSchema as error:
            raise CannotDecode(f"the schema {registered.id or registered.guid} is not valid: {error}") from error


def _with(registered: RegisteredSchema, **changes: Any) -> RegisteredSchema:
    from dataclasses import replace

    return replace(registered, **changes)


class Framing:
    """Puts the schema's id where the settings want it."""

    def __init__(
        self, registered: RegisteredSchema, where: Literal["prefix", "header"], is_key: bool, rules: "RuleSet"
    ) -> None:
        self.rules = rules
        self._registered = registered
        self._in_header = where == "header"
        self._header = KEY_HEADER if is_key else VALUE_HEADER
        if self._in_header and registered.guid is None:
            raise CannotEncode("the id is to stand in a header, and the registry gave no guid")
        if not self._in_header and registered.id is None:
            raise CannotEncode("the registry gave no id for the schema")

    def prefix(self, indexes: Sequence[int] | None = None) -> bytes:
        """What stands before the bytes; nothing, if it stands in a header."""
        if self._in_header:
            return b""
        assert self._registered.id is not None
        return prefix(self._registered.id, indexes)

    def add_header(self, headers: list[Header] | None, indexes: Sequence[int] | None = None) -> None:
        if not self._in_header:
            return
        assert self._registered.guid is not None
        if headers is None:
            raise CannotEncode("the id is to stand in a header, and there are no headers to add it to")
        said = (self._header, header_value(self._registered.guid, indexes))
        if said not in headers:
            headers.append(said)


class Face(Generic[RegistryT]):
    """What both faces have: a format, and a registry to ask."""

    def __init__(self, format: Format, registry: RegistryT) -> None:
        self._format = format
        self._registry = registry


class Blocking(Face[BlockingRegistry]):
    """A serializer and deserializer for threads. `registry` is asked for what is not known yet."""

    def serialize(
        self, topic: str | None, value: Any, headers: list[Header] | None = None, *, is_key: bool = False
    ) -> bytes | None:
        """The bytes of a record; None stays None. Raises `CannotEncode`, and what the registry's client raises."""
        if value is None:
            return None
        writer = self._format.known_writer(topic, value, is_key)
        if writer is None:
            writer = self._carried_out(self._format.find_writer(topic, value, is_key))
        return writer(value, headers)

    def deserialize(
        self,
        topic: str | None,
        content: Buffer | None,
        headers: Iterable[Header] | None = None,
        *,
        is_key: bool = False,
    ) -> Any:
        """The value of a record; None stays None. Raises `CannotDecode`, and what the registry's client raises."""
        if content is None:
            return None
        try:
            frame = self._format.frame(content, headers, is_key)
            reader = self._format.known_reader(frame)
            if reader is None:
                reader = self._carried_out(self._format.find_reader(topic, frame, is_key))
            return reader(content, frame)
        except CannotDecode:
            if self._format.settings.on_error == "null":
                return None
            raise

    def _carried_out(self, procedure: Procedure[T]) -> T:
        try:
            ask = next(procedure)
            while True:
                try:
                    answer = getattr(self._registry, ask.call)(*ask.arguments, **ask.options)
                except Exception as error:
                    ask = procedure.throw(error)
                else:
                    ask = procedure.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]

    # For our clients.

    def serializer(self, topic: str, value: Any, headers: list[Header]) -> bytes:
        """`Producer(value_serializer=avro.serializer)`"""
        return self.serialize(topic, value, headers)  # type: ignore[return-value]  # clients do not call it for None

    def key_serializer(self, topic: str, value: Any, headers: list[Header]) -> bytes:
        """`Producer(key_serializer=avro.key_serializer)`"""
        return self.serialize(topic, value, headers, is_key=True)  # type: ignore[return-value]

    def deserializer(self, topic: str, content: bytes, headers: Sequence[Header]) -> Any:
        """`Consumer(value_deserializer=avro.deserializer)`"""
        return self.deserialize(topic, content, headers)

    def key_deserializer(self, topic: str, content: bytes, headers: Sequence[Header]) -> Any:
        """`Consumer(key_deserializer=avro.key_deserializer)`"""
        return self.deserialize(topic, content, headers, is_key=True)

    # For others.

    def for_confluent_kafka(self) -> tuple[Callable[[Any, Any], bytes | None], Callable[[Any, Any], Any]]:
        """A serializer and a deserializer of (value, SerializationContext), for confluent-kafka's clients. Its headers
        may be a list or a dict; to a dict nothing is added."""

        def serialize(value: Any, context: Any) -> bytes | None:
            headers = context.headers if isinstance(context.headers, list) else None
            return self.serialize(context.topic, value, headers, is_key=context.field == "key")

        def deserialize(content: Any, context: Any) -> Any:
            headers = context.headers
            listed = list(headers.items()) if isinstance(headers, dict) else headers
            return self.deserialize(context.topic, content, listed, is_key=context.field == "key")

        return serialize, deserialize

    def for_topic(
        self, topic: str, *, is_key: bool = False
    ) -> tuple[Callable[[Any], bytes | None], Callable[[Any], Any]]:
        """A serializer and a deserializer of one argument, for clients that know no more (aiokafka, kafka-python)."""
        return (
            lambda value: self.serialize(topic, value, is_key=is_key),
            lambda content: self.deserialize(topic, content, is_key=is_key),
        )


class Asynchronous(Face[AsyncRegistry]):
    """The same for asyncio: `serialize` and `deserialize` are awaited."""

    async def serialize(
        self, topic: str | None, value: Any, headers: list[Header] | None = None, *, is_key: bool = False
    ) -> bytes | None:
        """As `Blocking.serialize`."""
        if value is None:
            return None
        writer = self._format.known_writer(topic, value, is_key)
        if writer is None:
            writer = await self._carried_out(self._format.find_writer(topic, value, is_key))
        return writer(value, headers)

    async def deserialize(
        self,
        topic: str | None,
        content: Buffer | None,
        headers: Iterable[Header] | None = None,
        *,
        is_key: bool = False,
    ) -> Any:
        """As `Blocking.deserialize`."""
        if content is None:
            return None
        try:
            frame = self._format.frame(content, headers, is_key)
            reader = self._format.known_reader(frame)
            if reader is None:
                reader = await self._carried_out(self._format.find_reader(topic, frame, is_key))
            return reader(content, frame)
        except CannotDecode:
            if self._format.settings.on_error == "null":
                return None
            raise

    async def _carried_out(self, procedure: Procedure[T]) -> T:
        try:
            ask = next(procedure)
            while True:
                try:
                    answer = await getattr(self._registry, ask.call)(*ask.arguments, **ask.options)
                except Exception as error:
                    ask = procedure.throw(error)
                else:
                    ask = procedure.send(answer)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
