"""Whether messages of one .proto file can be read with another: Confluent's rules, which are not protobuf's own.

Protobuf itself reads almost anything: unknown fields are kept, missing ones have defaults. The rules refuse what
reads wrongly (a number whose type has another encoding), what fails (required fields), and what people did not mean
(a message that is gone). Fields are found by their numbers, so names may change.

Two files are walked at once. A type of another file is compared when a field leads to it, each pair once; what is in
the file itself is compared where it stands.
"""

from dataclasses import dataclass
from typing import Final

from ottla.schemas.protobuf.elements import SCALARS, Enum, Field, File, Message, Option, Word
from ottla.schemas.protobuf.names import Definition, Names
from ottla.schemas.schema import Incompatibility, InvalidSchema, Limits, Rule

MOST_INCOMPATIBILITIES: Final = 1_000

PACKAGE_CHANGED: Final = Rule(
    "PACKAGE_CHANGED",
    "the package is another",
    False,
    "The package at '{path}' in the %s schema does not match the package in the %s schema",
    "All messages have other full names then.",
)
MESSAGE_REMOVED: Final = Rule(
    "MESSAGE_REMOVED",
    "a message is gone",
    False,
    "The %s schema is missing a MESSAGE type at path '{path}' in the %s schema",
    "Records of that message could not be read. Keep it, even if nobody writes it any more.",
)
FIELD_KIND_CHANGED: Final = Rule(
    "FIELD_KIND_CHANGED",
    "a field was a scalar, a message or a map, and is another of these",
    False,
    "The type of a field at path '{path}' in the %s schema does not match the %s schema",
    "They are encoded differently. Take a new number, and reserve the old one.",
)
FIELD_SCALAR_KIND_CHANGED: Final = Rule(
    "FIELD_SCALAR_KIND_CHANGED",
    "a scalar has a type that is encoded differently",
    False,
    "The kind of a SCALAR field at path '{path}' in the %s schema does not match its kind in the %s schema",
    "These may be exchanged: int32, int64, uint32, uint64, bool and enums; sint32 and sint64; string and bytes; "
    "fixed32 and sfixed32; fixed64 and sfixed64.",
)
FIELD_NAMED_TYPE_CHANGED: Final = Rule(
    "FIELD_NAMED_TYPE_CHANGED",
    "a field has another message as its type, or one that is itself incompatible",
    False,
    "The type of a MESSAGE field at path '{path}' in the %s schema does not match its type in the %s schema",
    "Messages are compared by name, without their package.",
)
FIELD_NUMERIC_LABEL_CHANGED: Final = Rule(
    "FIELD_NUMERIC_LABEL_CHANGED",
    "a number has another label (required, optional, repeated)",
    False,
    "The label for a NUMERIC field at path '{path}' in the %s schema does not match its label in the %s schema",
    "Repeated numbers may be packed, and a reader of a single one does not find it then.",
)
REQUIRED_FIELD_ADDED: Final = Rule(
    "REQUIRED_FIELD_ADDED",
    "a required field is new",
    False,
    "A required field  at path '{path}' in the %s schema is missing in the %s schema",
    "Records without it cannot be read.",
)
REQUIRED_FIELD_REMOVED: Final = Rule(
    "REQUIRED_FIELD_REMOVED",
    "a required field is gone",
    False,
    "The %s schema is missing a required field at path: '{path}' in the %s schema",
    "Readers with the old schema would refuse what is written without it.",
)
ONEOF_FIELD_REMOVED: Final = Rule(
    "ONEOF_FIELD_REMOVED",
    "a field of a oneof is gone, and the oneof or another field of it is not",
    False,
    "The %s schema is missing a oneof field at path '{path}' in the %s schema",
    "Nothing of the oneof would seem to be set.",
)
MULTIPLE_FIELDS_MOVED_TO_ONEOF: Final = Rule(
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
    "several fields are in a oneof now, and were not",
    False,
    "Multiple fields in the oneof at path '{path}' in the %s schema are outside a oneof in the %s schema",
    "Only the last of them that was written would be read.",
)
FIELD_MOVED_TO_EXISTING_ONEOF: Final = Rule(
    "FIELD_MOVED_TO_EXISTING_ONEOF",
    "a field is in a oneof now with others that were in another place",
    False,
    "A field in the oneof at path '{path}' in the %s schema is outside an existing oneof in the %s schema",
    "Only the last of them that was written would be read.",
)

RULES: Final = (
    PACKAGE_CHANGED,
    MESSAGE_REMOVED,
    FIELD_KIND_CHANGED,
    FIELD_SCALAR_KIND_CHANGED,
    FIELD_NAMED_TYPE_CHANGED,
    FIELD_NUMERIC_LABEL_CHANGED,
    REQUIRED_FIELD_ADDED,
    REQUIRED_FIELD_REMOVED,
    ONEOF_FIELD_REMOVED,
    MULTIPLE_FIELDS_MOVED_TO_ONEOF,
    FIELD_MOVED_TO_EXISTING_ONEOF,
    Rule("MESSAGE_ADDED", "a message is new", True, "", "Nobody has written it."),
    Rule("MESSAGE_MOVED", "messages are in another order", True, "", "Message indexes are those of the schema's id."),
    Rule("ENUM_ADDED", "an enum is new", True, "", "Nobody has written it."),
    Rule("ENUM_REMOVED", "an enum is gone", True, "", "What uses it is compared as a number."),
    Rule("ENUM_CONST_ADDED", "an enum has a new value", True, "", "Old readers see its number."),
    Rule("ENUM_CONST_CHANGED", "a value of an enum has another name", True, "", "Numbers are written, not names."),
    Rule("ENUM_CONST_REMOVED", "a value of an enum is gone", True, "", "Readers see its number."),
    Rule("FIELD_ADDED", "a field is new and not required", True, "", "It has its default."),
    Rule("FIELD_REMOVED", "a field that was not required is gone", True, "", "It is skipped."),
    Rule("FIELD_NAME_CHANGED", "a field has another name", True, "", "Numbers are written, not names."),
    Rule(
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "a string or bytes has another label",
        True,
        "",
        "They are never packed; of several, a single one reads the last.",
    ),
    Rule("ONEOF_ADDED", "a oneof is new", True, "", "What is in it is compared field by field."),
    Rule("ONEOF_REMOVED", "a oneof is gone", True, "", "With all of its fields, or they are compared where they are."),
    Rule("ONEOF_FIELD_ADDED", "a oneof has a new field", True, "", "Old readers skip it."),
    Rule("ONEOF_FIELD_MOVED_TO_TOP_LEVEL", "a field has left its oneof", True, "", "It is read as before."),
)
"""Every change that Confluent has a name for. The page docs/registry/compatibility.md is made of it."""

_SCALAR_KINDS: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "general number"),
    **dict.fromkeys(("sint32", "sint64"), "signed number"),
    **dict.fromkeys(("string", "bytes"), "string or bytes"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of two files, with what its names mean."""

    file: File
    names: Names
    texts: dict[str, str]
    """What it imports, by name."""


def incompatibilities(reader: Side, writer: Side, limits: Limits) -> list[Incompatibility]:
    """Why messages of the writer cannot be read; empty if they can."""
    comparison = _Comparison(reader, writer, limits)
    comparison.files()
    return comparison.found[:MOST_INCOMPATIBILITIES]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where in both files the comparison is: packages differ, names within them do not."""

    old_package: str
    new_package: str
    names: tuple[str, ...] = ()

    def within(self, name: str) -> "_Scope":
        return _Scope(self.old_package, self.new_package, (*self.names, name))

    @property
    def old(self) -> str:
        return ".".join(filter(None, (self.old_package, *self.names)))

    @property
    def new(self) -> str:
        return ".".join(filter(None, (self.new_package, *self.names)))


class _Comparison:
    """The writer is the old file, the reader the new one, whichever was registered first."""

    def __init__(self, reader: Side, writer: Side, limits: Limits) -> None:
        self._new = reader
        self._old = writer
        self._limits = limits
        self.found: list[Incompatibility] = []
        self._looked_at = 0
        self._depth = 0
        self._open: set[int] = set()
        self._pairs: dict[tuple[int, int], list[Incompatibility] | None] = {}

    def _add(self, rule: Rule, path: tuple[str, ...]) -> None:
        if len(self.found) > MOST_INCOMPATIBILITIES:
            return
        where = "#/" + "/".join(path)
        message = f'{{errorType:"{rule.id}", description:"{rule.message.replace("{path}", where)}"}}'
        self.found.append(Incompatibility(rule, where, message))

    def files(self) -> None:
        old, new = self._old.file, self._new.file
        if old.package != new.package:
            self._add(PACKAGE_CHANGED, ())
        self._types(old.types, new.types, _Scope(old.package or "", new.package or ""))

    def _types(self, old: list[Message | Enum], new: list[Message | Enum], scope: _Scope) -> None:
        new_messages = {one.name: one for one in new if isinstance(one, Message)}
        for one in old:
            if not isinstance(one, Message):
                continue
            inner = scope.within(one.name)
            if one.name in new_messages:
                self._messages(one, new_messages[one.name], inner)
            elif not one.is_map_entry:
                self._add(MESSAGE_REMOVED, inner.names)

    def _messages(self, old: Message, new: Message, scope: _Scope) -> None:
        self._looked_at += 1
        self._depth += 1
        if self._looked_at > self._limits.comparisons or self._depth > self._limits.type_depth:
            raise InvalidSchema(f"a comparison would look at more than {self._limits.comparisons} pairs of messages")
        if id(old) not in self._open:
            self._open.add(id(old))
            self._fields(old, new, scope)
            self._types(old.types, new.types, scope)
            self._open.discard(id(old))
        self._depth -= 1

    def _fields(self, old: Message, new: Message, scope: _Scope) -> None:
        old_fields, old_oneof_of = _by_number(old)
        new_fields, new_oneof_of = _by_number(new)
        self._new_exclusions(new, old_fields, old_oneof_of, scope)
        gone = _deleted_oneofs(old, new, new_fields)
        for number in sorted(old_fields.keys() | new_fields.keys()):
            self._looked_at += 1
            old_field, new_field = old_fields.get(number), new_fields.get(number)
            old_oneof, new_oneof = old_oneof_of.get(number), new_oneof_of.get(number)
            if new_field is None:
                assert old_field is not None
                if old_oneof is None:
                    if _is_required(old_field):
                        self._add(REQUIRED_FIELD_REMOVED, (*scope.names, str(number)))
                elif old_oneof not in gone:
                    self._add(ONEOF_FIELD_REMOVED, (*scope.names, old_oneof, str(number)))
            elif old_field is None:
                if new_oneof is None and _is_required(new_field):
                    self._add(REQUIRED_FIELD_ADDED, (*scope.names, str(number)))
            else:
                path = (*scope.names, *((new_oneof,) if new_oneof is not None else ()), str(number))
                self._field(old_field, new_field, scope, path)

    def _new_exclusions(
        self, new: Message, old_fields: dict[int, Field], old_oneof_of: dict[int, str], scope: _Scope
    ) -> None:
        """Fields that could be set together before, and exclude each other now."""
        for oneof in new.oneofs:
            numbers = [field.number for field in oneof.fields if field.number in old_fields]
            alone = [number for number in numbers if number not in old_oneof_of]
            oneofs = {old_oneof_of[number] for number in numbers if number in old_oneof_of}
            if len(set(alone)) + len(oneofs) > 1:
                rule = MULTIPLE_FIELDS_MOVED_TO_ONEOF if len(alone) > 1 else FIELD_MOVED_TO_EXISTING_ONEOF
                self._add(rule, (*scope.names, oneof.name))

    def _field(self, old: Field, new: Field, scope: _Scope, path: tuple[str, ...]) -> None:
        self._typed(old.label, new.label, old.type, new.type, scope, path)

    def _typed(
        self, old_label: str | None, new_label: str | None, old: str, new: str, scope: _Scope, path: tuple[str, ...]
    ) -> None:
        old, old_within = _as_map(old, scope.old, self._old.names)
        new, new_within = _as_map(new, scope.new, self._new.names)
        old_kind, old_found = _kind(old, old_within, self._old.names)
        new_kind, new_found = _kind(new, new_within, self._new.names)
        if old_kind != new_kind:
            self._add(FIELD_KIND_CHANGED, path)
        elif old_kind == "map":
            for old_part, new_part in zip(old[4:-1].split(", ", 1), new[4:-1].split(", ", 1), strict=True):
                self._typed(None, None, old_part, new_part, scope, path)
        elif old_kind == "message":
            self._named(old, new, old_found, new_found, path)
        else:
            old_scalar = _SCALAR_KINDS.get(old, "general number")
            if old_scalar != _SCALAR_KINDS.get(new, "general number"):
                self._add(FIELD_SCALAR_KIND_CHANGED, path)
            elif None not in (old_label, new_label) and old_label != new_label and old_scalar != "string or bytes":
                self._add(FIELD_NUMERIC_LABEL_CHANGED, path)

    def _named(
        self, old: str, new: str, old_found: Definition | None, new_found: Definition | None, path: tuple[str, ...]
    ) -> None:
        if old_found is None or new_found is None:
            if old != new:
                self._add(FIELD_NAMED_TYPE_CHANGED, path)
            return
        if old_found.local_name != new_found.local_name:
            self._add(FIELD_NAMED_TYPE_CHANGED, path)
            return
        if self._is_same_file(old_found, new_found):
            return
        pair = (id(old_found.type), id(new_found.type))
        if pair not in self._pairs:
            self._pairs[pair] = None
            before, self.found = self.found, []
            assert isinstance(old_found.type, Message)
            assert isinstance(new_found.type, Message)
            names = tuple(old_found.local_name.split("."))
            scope = _Scope(old_found.package, new_found.package, names)
            self._messages(old_found.type, new_found.type, scope)
            self._pairs[pair] = self.found
            self.found = before
        if inner := self._pairs[pair]:
            self.found += inner
            self._add(FIELD_NAMED_TYPE_CHANGED, path)

    def _is_same_file(self, old: Definition, new: Definition) -> bool:
        """What is in the files themselves is compared where it stands; what has not changed need not be."""
        if not old.file_name and not new.file_name:
            return True
        return old.type is new.type or (
            old.file_name == new.file_name and old.file_name in self._old.texts and self._old.texts == self._new.texts
        )


def _as_map(type: str, scope: str, names: Names) -> tuple[str, str]:
    """`map<…>` for the name of a message that is an entry of one, and where its types are to be looked up."""
    if type in SCALARS or type.startswith("map<"):
        return type, scope
    found = names.find_type(type, scope)
    entry = names.map_entry(found.full_name) if found is not None else None
    if entry is None:
        return type, scope
    key, value, within = entry
    if value not in SCALARS and (named := names.find_type(value, within)) is not None:
        value = f".{named.full_name}"
    return f"map<{key}, {value}>", scope


def _kind(type: str, scope: str, names: Names) -> tuple[str, Definition | None]:
    if type in SCALARS:
        return "scalar", None
    if type.startswith("map<"):
        return "map", None
    found = names.find_type(type, scope)
    return ("scalar" if found is not None and isinstance(found.type, Enum) else "message"), found


def _by_number(message: Message) -> tuple[dict[int, Field], dict[int, str]]:
    fields = {field.number: field for field in message.fields}
    oneof_of: dict[int, str] = {}
    for oneof in message.oneofs:
        for field in oneof.fields:
            fields[field.number] = field
            oneof_of[field.number] = oneof.name
    return fields, oneof_of


def _deleted_oneofs(old: Message, new: Message, new_fields: dict[int, Field]) -> set[str]:
    """Oneofs of which nothing is left, neither the name nor a field."""
    left = {oneof.name for oneof in new.oneofs}
    return {
        oneof.name
        for oneof in old.oneofs
        if oneof.name not in left and not any(field.number in new_fields for field in oneof.fields)
    }


def _is_required(field: Field) -> bool:
    if field.label == "required":
        return True
    for option in field.options:
        value: object = option.value
        if option.name == "features" and isinstance(value, Option) and value.name == "field_presence":
            value = value.value
        elif option.name == "features" and isinstance(value, dict):
            value = value.get("field_presence")
        elif option.name != "features.field_presence":
            continue
        if value == Word("enum", "LEGACY_REQUIRED"):
            return True
    return False
