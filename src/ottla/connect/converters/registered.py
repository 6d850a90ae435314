"""What the converters that use a schema registry have in common: options, the id of a schema, the schema of an id.

The registry's client is given (`schemas.registry_port`): nothing here opens a connection. What it raises passes
through.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ottla.config.bounds import at_least
from ottla.config.parse import Values
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Int, List, Setting, Text
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption, invalid
from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.registry_port import BlockingRegistry, RegisteredSchema, SchemaToRegister
from ottla.schemas.schema import InvalidSchema, ParsedSchema, SchemaKind, parse
from ottla.schemas.serializing.serializers import Kept
from ottla.schemas.serializing.subjects import strategy

RegistryMaker: TypeAlias = Callable[[Mapping[str, str | None]], BlockingRegistry]
"""Makes a client from a converter's options: `schema.registry.url`, credentials, TLS."""

TOPIC_NAMES: Final = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
REGISTRY_OPTIONS: Final[tuple[Setting, ...]] = (
    List("schema.registry.url", REQUIRED, ANY, HIGH, "Where the registry is.", acted_on=True),
    Flag("auto.register.schemas", True, ANY, MEDIUM, "Whether new schemas are registered.", acted_on=True),
    Flag("use.latest.version", False, ANY, LOW, "Whether the subject's latest schema is written with.", acted_on=True),
    Flag(
        "latest.compatibility.strict",
        True,
        ANY,
        LOW,
        "Whether that one must be able to read what has the schema of the records.",
        acted_on=True,
    ),
    Flag("normalize.schemas", False, ANY, MEDIUM, "Whether schemas are normalized when registered.", acted_on=True),
    Int("use.schema.id", -1, ANY, LOW, "The id of the schema to write with.", acted_on=True),
    Text("key.subject.name.strategy", TOPIC_NAMES, ANY, MEDIUM, "How keys' subjects are named.", acted_on=True),
    Text("value.subject.name.strategy", TOPIC_NAMES, ANY, MEDIUM, "How values' subjects are named.", acted_on=True),
    Int("schemas.cache.config", 1000, at_least(1), LOW, "How many schemas are kept.", acted_on=True),
)
_OF_THE_CLIENT: Final = ("schema.registry.", "basic.auth.", "bearer.auth.", "proxy.", "ssl.")
_IGNORED: Final = ("schemas.enable", "converter.type")
"""Left in configurations from another converter, and harmless."""


def refuse_unknown(class_name: str, rows: tuple[Setting, ...], given: Mapping[str, str | None]) -> None:
    """Raises `InvalidOption` for an option that is neither the converter's nor the client's."""
    known = {row.name for row in rows}
    for name in sorted(given):
        if name not in known and name not in _IGNORED and not name.startswith(_OF_THE_CLIENT):
            raise InvalidOption(f"{class_name} has no option {name} here; it has {', '.join(sorted(known))}")


class Registered:
    """Schemas of one kind and their ids, for keys or for values."""

    def __init__(self, kind: SchemaKind, options: Values, registry: BlockingRegistry, is_key: bool) -> None:
        self._kind: SchemaKind = kind
        self._registry = registry
        self._is_key = is_key
        name = "key.subject.name.strategy" if is_key else "value.subject.name.strategy"
        try:
            self._strategy = strategy(options.text(name))
        except ValueError as error:
            raise invalid(name, options.text(name), f"it must be {error}") from None
        self._registers = options.flag("auto.register.schemas")
        self._latest = options.flag("use.latest.version")
        self._strict = options.flag("latest.compatibility.strict")
        self._normalizes = options.flag("normalize.schemas")
        self._id = options.integer("use.schema.id")
        most = options.integer("schemas.cache.config")
        self._ids: Kept[tuple[int, ParsedSchema]] = Kept(most)
        self._schemas: Kept[tuple[ParsedSchema, int | None]] = Kept(most)

    def for_writing(self, topic: str, schema: ParsedSchema, record: str | None) -> tuple[int, ParsedSchema]:
        """The id that records of this schema carry, and the schema that they are written with."""
        try:
            subject = self._strategy(topic, self._is_key, record)
        except CannotEncode as error:
            raise DataError(str(error)) from None
        known = self._ids.get((subject, schema.canonical))
        return known or self._ids.put((subject, schema.canonical), self._asked(subject, schema))

    def _asked(self, subject: str, schema: ParsedSchema) -> tuple[int, ParsedSchema]:
        if self._id >= 0:
            return self._id, self._parsed(self._registry.schema_by_id(self._id, subject))
        if self._latest and not self._registers:
            found = self._registry.version(subject, -1)
            latest = self._parsed(found)
            if self._strict and (faults := latest.incompatibilities(schema)):
                raise DataError(
                    f"the latest schema of {subject} cannot read what the schema of the records writes: {faults[0]}. "
                    "Register one that can, or set latest.compatibility.strict=false"
                )
            return _id_of(found, subject), latest
        wanted = SchemaToRegister(self._kind, schema.canonical)
        if self._registers:
            return _id_of(self._registry.register(subject, wanted, normalize=self._normalizes), subject), schema
        return _id_of(self._registry.look_up(subject, wanted, normalize=self._normalizes), subject), schema

    def for_reading(self, topic: str, id: int) -> tuple[ParsedSchema, int | None]:
        """The schema of an id, and its version in the topic's subject if that is known."""
        known = self._schemas.get((topic, id))
        if known is not None:
            return known
        try:
            subject: str | None = self._strategy(topic, self._is_key, None)
        except CannotEncode:
            subject = None
        found = self._registry.schema_by_id(id, subject)
        if found.kind != self._kind:
            raise DataError(f"schema {id} is {found.kind}, and the converter reads {self._kind}")
        parsed = self._parsed(found)
        if subject is None:
            subject = parsed.name
        version = found.version
        if version is None and subject is not None:
            wanted = SchemaToRegister(self._kind, found.text, found.references)
            version = self._registry.look_up(subject, wanted, deleted=True).version
        return self._schemas.put((topic, id), (parsed, version))

    def _parsed(self, found: RegisteredSchema) -> ParsedSchema:
        try:
            return parse(found.kind, found.text, found.resolved)
        except InvalidSchema as error:
            raise DataError(f"schema {found.id} of the registry is not valid: {error}") from None


def _id_of(found: RegisteredSchema, subject: str) -> int:
    if found.id is None:
        raise DataError(f"the registry gave no id for the schema of {subject}")
    return found.id


def framed(content: bytes) -> int:
    """The id before the bytes of a record."""
    if len(content) < 5 or content[0] != 0:
        start = "nothing" if not content else f"byte {content[0]}"
        raise DataError(f"a record begins with {start}, and has no id of a schema: it is of another converter")
    return int.from_bytes(content[1:5], "big")


def refused(error: CannotDecode | CannotEncode | InvalidSchema, what: str) -> DataError:
    return DataError(f"{what}: {error}")
