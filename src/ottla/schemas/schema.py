"""What a schema is to everybody outside this room: text that was parsed, rendered, and compared with another.

Theory of operation. `parse` takes the text of a schema and of everything that it refers to, and gives a
`ParsedSchema` or raises `InvalidSchema`. Nothing is fetched: the caller resolves references first, into texts by
name, with what a text refers to before the text itself. A parsed schema never changes. Its texts, its comparisons and
what decodes by it are made when they are first asked for, and kept.

Whether new data can be read with an old schema is a question about a reader and a writer, and `incompatibilities`
answers it for one pair. Levels (BACKWARD to FULL_TRANSITIVE) are in `levels`: which pairs of a subject's history are
asked about. The rules that a format is compared by are one table, `RULES` of its room, and each incompatibility names
the row that refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ottla.base.errors import OttlaError

SchemaKind = Literal["AVRO", "PROTOBUF", "JSON"]
KINDS: Final[tuple[SchemaKind, ...]] = get_args(SchemaKind)

Policy = Literal["STRICT", "LENIENT"]
"""Confluent's `compatibilityPolicy`: LENIENT lets JSON Schema add properties to an open content model."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a schema may be. Beyond one of these it is an `InvalidSchema`, before it has cost anything."""

    text_bytes: int = 1 << 20
    """Of one text, and of each that it refers to."""
    nesting: int = 256
    """How deep brackets and JSON may lie within each other, in a text."""
    references: int = 1_000
    """Texts that a schema refers to, those counted that they refer to in turn."""
    definitions: int = 20_000
    """Fields, symbols, values, messages and types of a schema and of all that it refers to."""
    comparisons: int = 200_000
    """Pairs of types that one comparison may look at. Beyond it the comparison raises `InvalidSchema`."""

    @property
    def type_depth(self) -> int:
        """How deep types and messages may lie within each other, through names too, which no bracket shows."""
        return self.nesting // 2


DEFAULT_LIMITS: Final = Limits()


class InvalidSchema(OttlaError):
    """A text is no schema of its kind, or is beyond a limit. `path` says where in it, `reason` what is wrong there.
    Both are for a log line: what is quoted of a text is cut off."""

    def __init__(self, reason: str, path: str = "") -> None:
        reason, path = _cut_off(reason), _cut_off(path)
        super().__init__(f"{reason} (at {path})" if path else reason)
        self.reason = reason
        self.path = path


def _cut_off(text: str) -> str:
    return text if len(text) <= 500 else text[:500] + "…"


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a format's table: one kind of change, and what is done about it."""

    id: str
    """Confluent's name where it has one, for example READER_FIELD_MISSING_DEFAULT_VALUE."""
    change: str
    """What the reader's schema has that the writer's has not, or the other way round; for people."""
    compatible: bool
    """Whether the reader can still read."""
    message: str = ""
    """Confluent's error text. `%s` stands for `new` or `old`, first the reader and then the writer."""
    why: str = ""
    """What would go wrong, or why nothing does; for people."""
    compatible_if_lenient: bool = False
    """Whether the policy LENIENT lets it pass (JSON Schema)."""


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """Why data of the writer cannot be read with the reader's schema."""

    rule: Rule
    path: str
    """Where in the reader's schema, in the format's own notation, for example `/fields/0/type` or `#/properties/a`."""
    message: str
    """Confluent's text, with `%s` for reader and writer as in `Rule.message`."""

    def worded(self, reader: str, writer: str) -> str:
        """The message for people who know the schemas as `reader` and `writer`, which are `new` and `old` or
        reverse."""
        return self.message.replace("%s", reader, 1).replace("%s", writer, 1)


EntityKind = Literal["sr_record", "sr_field"]


@dataclass(frozen=True, slots=True)
class Entity:
    """What tags hang on in a schema: a record (message) or one of its fields, by full name and dots."""

    path: str
    kind: EntityKind


class ParsedSchema(ABC):
    """A schema that was understood. Two with the same kind, text and references are equal."""

    kind: SchemaKind
    text: str
    """As it was given to `parse`."""
    references: Mapping[str, str]
    """Name to text, as given: what a text refers to stands before it."""

    @property
    @abstractmethod
    def canonical(self) -> str:
        """The text as Confluent's registry stores it and gives it out: for Avro Java's `Schema.toString`, without the
        definitions that came from references; for Protobuf the file written anew in the order of its source; for JSON
        Schema the same JSON without white space."""

    @abstractmethod
    def normalize(self) -> "ParsedSchema":
        """The schema whose text no longer has what means nothing (`normalize=true`): orders, defaults, full names."""

    @property
    def normalized(self) -> str:
        """The canonical text of the normalized schema."""
        return self.normalize().canonical

    @abstractmethod
    def rendered(self, format: str) -> str:
        """The text in a format of Confluent's `format` parameter: `resolved` (Avro, JSON Schema: what is referred to is
        put in), `serialized` (Protobuf: the descriptor in base64), `ignore_extensions` (Protobuf). An empty, `default`
        or unknown format gives the canonical text, as Confluent's registry does."""

    @property
    @abstractmethod
    def name(self) -> str | None:
        """The full name of the record or of the first message; the title of a JSON Schema. None if it has none."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Full names of all records (Avro: named types; Protobuf: messages, with the nested) that this text defines."""

    @abstractmethod
    def has_top_level_field(self, field: str) -> bool:
        """For `confluent:reserved`: whether the record has a field of this name."""

    def validate(self, strict: bool = False) -> None:  # noqa: B027  # a format may have nothing to add
        """What is checked of a schema that is registered and not of one that is read: that every name resolves, and,
        with `strict` (`schema.validate.fields`), that no field begins with `$$`. Raises `InvalidSchema`."""

    @abstractmethod
    def incompatibilities(self, writer: "ParsedSchema", policy: Policy = "STRICT") -> list[Incompatibility]:
        """Why data that was written with `writer`, a schema of the same kind, cannot be read with this one. Empty if it
        can. Confluent's `isBackwardCompatible`, with its order. Raises `InvalidSchema` beyond `Limits.comparisons`."""

    @abstractmethod
    def is_equivalent(self, other: "ParsedSchema") -> bool:
        """Whether both mean the same, whatever their references: one may have defined what the other refers to."""

    @abstractmethod
    def tagged_entities(self) -> dict[Entity, tuple[str, ...]]:
        """What is tagged with `confluent:tags` in the text itself, in the order of the text."""

    def tags(self) -> tuple[str, ...]:
        """All tags in the text, each once."""
        return tuple(dict.fromkeys(tag for tags in self.tagged_entities().values() for tag in tags))

    @abstractmethod
    def with_tags(
        self, add: Mapping[Entity, Iterable[str]], remove: Mapping[Entity, Iterable[str]], add_first: bool = True
    ) -> "ParsedSchema":
        """The same schema with other tags in its text. Raises `InvalidSchema` for an entity that is not there."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ParsedSchema):
            return NotImplemented
        return (self.kind, self.text, self.references) == (other.kind, other.text, other.references)

    def __hash__(self) -> int:
        return hash((self.kind, self.text))

    def __repr__(self) -> str:
        return f"<{self.kind} schema {self.name or self.text[:40]!r}>"


def parse(
    kind: SchemaKind,
    text: str,
    references: Mapping[str, str] | None = None,
    *,
    as_new: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> ParsedSchema:
    """The schema that a text is. Raises `InvalidSchema`, whatever the text is; time and memory are bounded by `limits`.

    `references` has the text of each schema that this one refers to, and of those that they refer to, by the name that
    it is referred to with (Avro: a full name; Protobuf: what stands in `import`; JSON Schema: the URI in `$ref`), what
    a text needs before the text. `as_new` is Confluent's `validateAsNew`, for a schema that is being registered: Avro's
    names and defaults are held to the specification. A stored schema that breaks it is parsed all the same.

    A Protobuf text is a .proto file or a `FileDescriptorProto` in base64. Each format needs its extra: `avro` none,
    `protobuf` the package protobuf, `json-schema` the package jsonschema; without it `ModuleNotFoundError` says which.
    """
    if kind == "AVRO":
        from ottla.schemas.avro.schema import parse_avro

        return parse_avro(text, references or {}, as_new=as_new, limits=limits)
    if kind == "PROTOBUF":
        from ottla.schemas.protobuf.schema import parse_protobuf

        return parse_protobuf(text, references or {}, as_new=as_new, limits=limits)
    if kind == "JSON":
        from ottla.schemas.json_schema.schema import parse_json_schema

        return parse_json_schema(text, references or {}, as_new=as_new, limits=limits)
    raise InvalidSchema(f"Invalid schema type {kind}")
