"""A Protobuf schema as others know it: `ottla.schemas.schema.ParsedSchema`, made of the elements, texts and rules
beside."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING

from ottla.schemas.protobuf.compatibility import Side, incompatibilities
from ottla.schemas.protobuf.elements import Enum, EnumValue, Field, File, Message, Option, all_messages
from ottla.schemas.protobuf.names import Names
from ottla.schemas.protobuf.parsing import parse_file
from ottla.schemas.protobuf.text import canonical_text, normal_text
from ottla.schemas.protobuf.well_known import WELL_KNOWN, well_known_file
from ottla.schemas.schema import Entity, Incompatibility, InvalidSchema, Limits, ParsedSchema, Policy

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtobufMessage

    from ottla.schemas.protobuf.linking import Linked

MESSAGE_META = "confluent.message_meta"
FIELD_META = "confluent.field_meta"


def parse_protobuf(text: str, references: Mapping[str, str], *, as_new: bool, limits: Limits) -> "ProtobufSchema":
    """What `ottla.schemas.schema.parse` does for Protobuf. `as_new` makes no difference here: `validate` does."""
    if len(references) > limits.references:
        raise InvalidSchema(f"{len(references)} references, and a schema may have {limits.references}")
    files: dict[str, File] = {}
    for name, referred in references.items():
        try:
            files[name] = read_file(referred, limits)
        except InvalidSchema as error:
            raise InvalidSchema(f"in the reference {name}: {error.reason}", error.path) from None
    return ProtobufSchema(text, references, read_file(text, limits), files, limits)


def read_file(text: str, limits: Limits) -> File:
    """The file that a text is: a .proto file, or a descriptor in base64."""
    try:
        return parse_file(text, limits)
    except InvalidSchema as error:
        try:
            content = base64.b64decode(text, validate=True)
        except (ValueError, binascii.Error):
            raise error from None
        if not content:
            raise
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    from ottla.schemas.protobuf.descriptors import file_of_descriptor

    try:
        descriptor = FileDescriptorProto.FromString(content)
    except DecodeError:
        raise InvalidSchema("neither a .proto file nor a FileDescriptorProto in base64") from None
    return file_of_descriptor(descriptor, limits)


class ProtobufSchema(ParsedSchema):
    """A parsed .proto file. `file` is what it is made of, `files` what it imports by reference."""

    kind = "PROTOBUF"

    def __init__(
        self, text: str, references: Mapping[str, str], file: File, files: Mapping[str, File], limits: Limits
    ) -> None:
        self.text = text
        self.references = dict(references)
        self.file = file
        self.files = dict(files)
        self._limits = limits

    @cached_property
    def canonical(self) -> str:
        return canonical_text(self.file)

    def normalize(self) -> "ProtobufSchema":
        return self._normal

    @cached_property
    def _normal(self) -> "ProtobufSchema":
        text = normal_text(self.file, self.type_names)
        return ProtobufSchema(text, self.references, parse_file(text, self._limits), self.files, self._limits)

    def rendered(self, format: str) -> str:
        match format.strip().lower():
            case "ignore_extensions":
                return canonical_text(self.file, ignore_extensions=True)
            case "serialized":
                return base64.b64encode(self.linked.serialized()).decode()
            case _:
                return self.canonical

    @cached_property
    def type_names(self) -> Names:
        """What its names mean."""
        return Names(self.file, self.files)

    @cached_property
    def linked(self) -> "Linked":
        """It and what it imports, linked. Raises `InvalidSchema` if that cannot be done."""
        from ottla.schemas.protobuf.linking import Linked

        return Linked(self.file, self.files)

    @property
    def _effective(self) -> File:
        """The file itself; or, if it does nothing but import one other publicly, that one."""
        file = self.file
        if file.types or file.imports or file.services or file.extends or len(file.public_imports) != 1:
            return file
        name = file.public_imports[0]
        imported = self.files.get(name) or (well_known_file(name) if name in WELL_KNOWN else None)
        return imported if imported is not None and imported.types else file

    @property
    def name(self) -> str | None:
        file = self._effective
        first = next(iter(file.messages()), None) or next(iter(file.types), None)
        if first is None:
            return None
        return f"{file.package}.{first.name}" if file.package else first.name

    def names(self) -> tuple[str, ...]:
        return tuple(name for name, message in all_messages(self.file) if not message.is_map_entry)

    def has_top_level_field(self, field: str) -> bool:
        return any(one.name == field for message in self._effective.messages() for one in message.fields)

    def validate(self, strict: bool = False) -> None:
        """Links it, so that every name, number and option is checked. `strict` adds nothing to that."""
        self.linked  # noqa: B018  # made, or it raises
        self.normalize()

    def incompatibilities(self, writer: ParsedSchema, policy: Policy = "STRICT") -> list[Incompatibility]:
        assert isinstance(writer, ProtobufSchema), "schemas of two kinds"
        return incompatibilities(self._side, writer._side, self._limits)

    @property
    def _side(self) -> Side:
        return Side(self.file, self.type_names, dict(self.references))

    def is_equivalent(self, other: ParsedSchema) -> bool:
        return isinstance(other, ProtobufSchema) and self.canonical == other.canonical

    # Messages.

    def message_indexes(self, full_name: str) -> tuple[int, ...]:
        """Where a message stands, from the outermost in: what is written before a record. Raises `InvalidSchema`."""
        file = self._effective
        prefix = f"{file.package}." if file.package else ""
        if not full_name.startswith(prefix):
            raise InvalidSchema(f"the schema has no message {full_name}")
        indexes: list[int] = []
        messages = file.messages()
        for part in full_name[len(prefix) :].split("."):
            index = next((place for place, one in enumerate(messages) if one.name == part), None)
            if index is None:
                raise InvalidSchema(f"the schema has no message {full_name}")
            indexes.append(index)
            messages = messages[index].messages()
        return tuple(indexes)

    def message_name(self, indexes: Iterable[int] = (0,)) -> str:
        """The full name of the message at these indexes. Raises `InvalidSchema` if there is none."""
        file = self._effective
        names: list[str] = [file.package] if file.package else []
        messages = file.messages()
        for index in indexes:
            if not 0 <= index < len(messages):
                raise InvalidSchema(f"Invalid message indexes: {list(indexes)}")
            names.append(messages[index].name)
            messages = messages[index].messages()
        return ".".join(names)

    def message_class(self, full_name: str | None = None) -> "type[ProtobufMessage]":
        """A class of messages without generated code; of the first message if no name is given."""
        name = full_name or self.name
        if name is None:
            raise InvalidSchema("Protobuf schema definition contains no type definitions")
        return self.linked.message_class(name)

    # Tags.

    def tagged_entities(self) -> dict[Entity, tuple[str, ...]]:
        tagged: dict[Entity, tuple[str, ...]] = {}
        prefix = len(self.file.package) + 1 if self.file.package else 0
        for full_name, message in all_messages(self.file):
            name = full_name[prefix:]
            if tags := _tags(message.options, MESSAGE_META):
                tagged[Entity(name, "sr_record")] = tags
            for field in (*(one for oneof in message.oneofs for one in oneof.fields), *message.fields):
                if tags := _tags(field.options, FIELD_META):
                    tagged[Entity(f"{name}.{field.name}", "sr_field")] = tags
        return tagged

    def tags(self) -> tuple[str, ...]:
        found = [*_tags(self.file.options, "confluent.file_meta"), *super().tags()]
        enums = [one for one in self.file.types if isinstance(one, Enum)]
        enums += (one for _, message in all_messages(self.file) for one in message.types if isinstance(one, Enum))
        for enum in enums:
            found += _tags(enum.options, "confluent.enum_meta")
            values: list[EnumValue] = enum.values
            found += (tag for value in values for tag in _tags(value.options, "confluent.enum_value_meta"))
        return tuple(dict.fromkeys(found))

    def with_tags(
        self, add: Mapping[Entity, Iterable[str]], remove: Mapping[Entity, Iterable[str]], add_first: bool = True
    ) -> "ProtobufSchema":
        file = deepcopy(self.file)
        for entity in dict.fromkeys((*add, *remove)):
            element = _element(file, entity)
            meta = MESSAGE_META if entity.kind == "sr_record" else FIELD_META
            tags = dict.fromkeys(_tags(element.options, meta))
            wanted, unwanted = dict.fromkeys(add.get(entity, ())), set(remove.get(entity, ()))
            if add_first:
                tags = {tag: None for tag in {**tags, **wanted} if tag not in unwanted}
            else:
                tags = {**{tag: None for tag in tags if tag not in unwanted}, **wanted}
            element.options = _with_meta_tags(element.options, meta, list(tags))
        text = canonical_text(file)
        return ProtobufSchema(text, self.references, parse_file(text, self._limits), self.files, self._limits)


def _meta(options: list[Option], meta: str) -> dict[str, object]:
    """What Confluent's option says, whichever way it was written, in one literal."""
    literal: dict[str, object] = {}
    for option in options:
        if not option.is_extension or option.name.lstrip(".") != meta:
            continue
        value: object = option.value
        if isinstance(value, Option):
            value = {value.name: value.value}
        if not isinstance(value, dict):
            continue
        for name, one in value.items():
            if name in literal:
                known = literal[name]
                listed = known if isinstance(known, list) else [known]
                literal[name] = [*listed, *(one if isinstance(one, list) else [one])]
            else:
                literal[name] = one
    return literal


def _tags(options: list[Option], meta: str) -> tuple[str, ...]:
    tags = _meta(options, meta).get("tags", [])
    return tuple(dict.fromkeys(str(tag) for tag in (tags if isinstance(tags, list) else [tags])))


def _with_meta_tags(options: list[Option], meta: str, tags: list[str]) -> list[Option]:
    literal = _meta(options, meta)
    literal.pop("tags", None)
    if tags:
        literal["tags"] = list(tags)
    others = [one for one in options if not (one.is_extension and one.name.lstrip(".") == meta)]
    return [*others, Option(meta, literal, True)] if literal else others


def _element(file: File, entity: Entity) -> Message | Field:
    """The message or field of that path. A path may lead through a oneof."""
    path = entity.path.lstrip(".").split(".")
    field_name = path.pop() if entity.kind == "sr_field" else None
    messages = file.messages()
    message: Message | None = None
    oneof: str | None = None
    for place, part in enumerate(path):
        found = next((one for one in messages if one.name == part), None)
        if found is None:
            if message is not None and field_name is not None and place == len(path) - 1:
                oneof = part
                break
            raise InvalidSchema(f"No matching Message with name '{part}' found in the schema")
        message = found
        messages = found.messages()
    if field_name is None and message is not None:
        return message
    if message is not None:
        fields = [one for group in message.oneofs if oneof in (None, group.name) for one in group.fields]
        for field in (*message.fields, *fields) if oneof is None else fields:
            if field.name == field_name:
                return field
    raise InvalidSchema(f"No matching Field with name '{field_name}' found in the schema")
