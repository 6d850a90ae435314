"""What a .proto file says, as a tree: what the parser gives, and what text, descriptors and comparisons are made of.

A message has its parts in groups (fields, oneofs, nested types, …), each in the order of the source, because the
canonical text has them so; `Field.place` keeps where a field stood among all. Names of types are as they were
written: `names` finds out what they mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Label = Literal["optional", "required", "repeated"]
WordKind = Literal["bool", "number", "enum"]

MAX_FIELD_NUMBER: Final = (1 << 29) - 1

SCALARS: Final = frozenset(
    (
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
        "sfixed32", "sfixed64", "bool", "string", "bytes",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Word:
    """A value of an option that stands without quotes, as it was written."""

    kind: WordKind
    text: str


OptionValue = "str | Word | dict[str, OptionValue] | list[OptionValue] | Option"
"""A string (bytes that are no UTF-8 are lone surrogates in it), a word, a message literal, a list, or what follows
the dot in `(some.option).part = …`."""


@dataclass(slots=True)
class Option:
    """One option. `is_extension` is for a name in parentheses."""

    name: str
    value: "str | Word | dict[str, object] | list[object] | Option"
    is_extension: bool = False


@dataclass(slots=True)
class Field:
    """A field of a message, a oneof, a group or an extension. `type` is `map<K, V>` for a map."""

    label: Label | None
    type: str
    name: str
    number: int
    options: list[Option] = field(default_factory=list)
    default: "str | Word | None" = None
    json_name: str | None = None
    place: int = 0

    def map_types(self) -> tuple[str, str] | None:
        """Key and value, if it is a map."""
        if not self.type.startswith("map<"):
            return None
        key, value = self.type[4:-1].split(", ", 1)
        return key, value


@dataclass(slots=True)
class Group:
    """A group: a message and a field at once (proto2)."""

    label: Label | None
    name: str
    number: int
    message: "Message"
    options: list[Option] = field(default_factory=list)
    place: int = 0


@dataclass(slots=True)
class OneOf:
    name: str
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


Reserved = str | int | range
"""A name, a number, or numbers: a range here has its last number in it, so its `stop` is the last."""


@dataclass(slots=True)
class ReservedList:
    values: list[Reserved]


@dataclass(slots=True)
class Extensions:
    """`extensions 100 to 199 [options];`"""

    values: list[int | range]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    """`extend Name { fields }`"""

    name: str
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)


@dataclass(slots=True)
class EnumValue:
    name: str
    number: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Enum:
    name: str
    values: list[EnumValue] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[ReservedList] = field(default_factory=list)
    visibility: str | None = None


@dataclass(slots=True)
class Message:
    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    types: list["Message | Enum"] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[ReservedList] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    visibility: str | None = None

    def messages(self) -> list["Message"]:
        """Nested messages, in order: what message indexes count."""
        return [one for one in self.types if isinstance(one, Message)]

    @property
    def is_map_entry(self) -> bool:
        """Whether it is what protoc makes of a map. It stands in files that were made from descriptors."""
        return any(one.name == "map_entry" and one.value == Word("bool", "true") for one in self.options)


@dataclass(slots=True)
class Rpc:
    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Service:
    name: str
    rpcs: list[Rpc] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class File:
    """A file. `syntax` is None if it was not said (proto2), `edition` is a name such as 2023."""

    syntax: str | None = None
    edition: str | None = None
    package: str | None = None
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    weak_imports: list[str] = field(default_factory=list)
    option_imports: list[str] = field(default_factory=list)
    types: list["Message | Enum"] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    import_order: list[str] = field(default_factory=list)

    def messages(self) -> list[Message]:
        return [one for one in self.types if isinstance(one, Message)]

    @property
    def is_proto3(self) -> bool:
        return self.syntax == "proto3"


def all_messages(file: File) -> Iterator[tuple[str, Message]]:
    """Each message with its full name, outer before inner, those of groups not."""
    prefix = f"{file.package}." if file.package else ""
    todo = [(prefix + one.name, one) for one in reversed(file.messages())]
    while todo:
        name, message = todo.pop()
        yield name, message
        todo += ((f"{name}.{one.name}", one) for one in reversed(message.messages()))
