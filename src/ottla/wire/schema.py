"""The schema facts as typed objects: messages, structs and fields, and the versions they exist in.

A set of versions is a `range`: `"3+"` is every version from 3, `"0-12"` those thirteen, `"none"` the empty one.
Nothing is read before the first message is asked for, and only messages that are asked for become objects.
"""

import re
from functools import cache
from typing import Any, Literal, NamedTuple

from ottla.base.ids import ZERO_UUID
from ottla.wire import facts

MESSAGE_FACTS = (
    "messages",
    "metadata-records",
    "group-records",
    "transaction-records",
    "share-records",
    "raft-state",
)
NO_VERSIONS = range(0)
_ANY_LATER = 1 << 15  # versions are int16
_ZEROS: dict[str, object] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": None,
}

Kind = Literal["request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"]


class Field(NamedTuple):
    """One field of a struct, over all versions.

    `type` is the type of the value or, when `is_array`, of its elements: a primitive's name, or a struct's with
    `struct` its schema. `default` is the value of a scalar or `None`; see `starts_empty` for what it means for others.
    """

    name: str
    attribute: str
    type: str
    is_array: bool
    struct: "Struct | None"
    versions: range
    nullable: range
    tagged: range
    tag: int
    ignorable: bool
    default: object
    flexible: range | None

    def mandatory_in(self, version: int) -> bool:
        return version in self.versions and version not in self.tagged

    def tagged_in(self, version: int) -> bool:
        return version in self.versions and version in self.tagged

    @property
    def defaults_to_null(self) -> bool:
        return self.default is None


class Struct(NamedTuple):
    name: str
    fields: tuple[Field, ...]


class Message(NamedTuple):
    """One message or record; `structs` holds its nested structs by name, inner ones before those that use them."""

    name: str
    kind: Kind
    api_key: int
    versions: range
    flexible: range
    root: Struct
    structs: dict[str, Struct]


@cache
def message_schema(name: str) -> Message:
    """The schema of one message; raises `KeyError` if there is none of that name."""
    fact = _facts_by_name()[name].parse()
    common = {shared["name"]: shared["fields"] for shared in fact.get("commonStructs", ())}
    structs: dict[str, Struct] = {}
    fields = _fields(fact.get("fields", ()), structs, common)
    return Message(
        name=name,
        kind=fact["type"],
        api_key=fact.get("apiKey", -1),
        versions=_versions(fact["validVersions"]),
        flexible=_versions(fact.get("flexibleVersions", "none")),
        root=Struct(name, fields),
        structs=structs,
    )


def message_names(file: str | None = None) -> list[str]:
    """Every message's name in the order of the facts, or only those of one fact file."""
    return [fact.name for source in MESSAGE_FACTS if file in (None, source) for fact in facts.load_messages(source)]


@cache
def request_names() -> dict[int, str]:
    """The name of each API's request message by API key."""
    return {fact.api_key: fact.name for fact in facts.load_messages("messages") if fact.type == "request"}


@cache
def record_names(file: str, kind: Kind) -> dict[int, str]:
    """The names of one fact file's records of one kind, by the API key that marks them in the log."""
    return {fact.api_key: fact.name for fact in facts.load_messages(file) if fact.type == kind}


@cache
def _facts_by_name() -> dict[str, facts.MessageFact]:
    return {fact.name: fact for source in MESSAGE_FACTS for fact in facts.load_messages(source)}


def _fields(given: Any, structs: dict[str, Struct], common: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(_field(fact, structs, common) for fact in given)


def _field(fact: Any, structs: dict[str, Struct], common: dict[str, Any]) -> Field:
    element = fact["type"].removeprefix("[]")
    is_array = element != fact["type"]
    if element not in _ZEROS and element not in structs:
        structs[element] = Struct(element, _fields(fact.get("fields") or common[element], structs, common))
    tagged = _versions(fact.get("taggedVersions", "none"))
    return Field(
        name=fact["name"],
        attribute=re.sub(r"(?<!^)(?=[A-Z])", "_", fact["name"]).lower(),
        type=element,
        is_array=is_array,
        struct=structs.get(element),
        versions=_versions(fact["versions"]) if "versions" in fact else tagged,
        nullable=_versions(fact.get("nullableVersions", "none")),
        tagged=tagged,
        tag=fact.get("tag", -1),
        ignorable=fact.get("ignorable", False),
        default=_default(element, is_array, fact.get("default", "")),
        flexible=_versions(fact["flexibleVersions"]) if "flexibleVersions" in fact else None,
    )


def _versions(text: str) -> range:
    if text == "none":
        return NO_VERSIONS
    first, dash, last = text.partition("-")
    if first.endswith("+"):
        return range(int(first[:-1]), _ANY_LATER)
    return range(int(first), int(last if dash else first) + 1)


def _default(type_name: str, is_array: bool, given: object) -> object:
    """The default as a value. Arrays and structs that do not start as null have `()`: they start empty or fresh."""
    if given == "null":
        return None
    given = "" if given is None else given  # a bare null in Kafka's schema is no default, and so not one of null
    if is_array or type_name not in _ZEROS:
        return ()
    if given == "" or type_name in ("string", "bytes"):
        return given or _ZEROS[type_name]
    if type_name == "bool":
        return str(given).lower() == "true"
    return int(str(given), 0)
