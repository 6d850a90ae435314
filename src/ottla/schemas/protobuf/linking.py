"""Files linked by protobuf's descriptor pool: descriptors, classes of messages without generated code, custom options.

A pool is of one schema and holds what it imports, in the versions that it refers to. So two schemas that define the
same name differently live side by side, and neither is in the process-wide pool, where generated code is.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from ottla.schemas.protobuf.descriptors import descriptor_of_file, has_extension, set_literal
from ottla.schemas.protobuf.elements import Extend, Field, File, Message, Option
from ottla.schemas.protobuf.names import Names
from ottla.schemas.protobuf.parsing import parse_file
from ottla.schemas.protobuf.well_known import META_HOLDER, WELL_KNOWN, well_known_descriptor, well_known_file
from ottla.schemas.schema import DEFAULT_LIMITS, InvalidSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message as ProtobufMessage

MAIN_FILE = "schema.proto"
"""What the file itself is called in its pool, unless something that it imports has that name."""


class Linked:
    """A schema and what it imports, linked. Raises `InvalidSchema` if that cannot be done."""

    def __init__(self, file: File, files: Mapping[str, File]) -> None:
        self.file = file
        self._files = files
        self.pool = DescriptorPool()
        self._added: set[str] = set()
        name = MAIN_FILE
        while name in files or name in WELL_KNOWN:
            name = f"_{name}"
        self.file_name = name
        self.names = Names(file, files)
        self._add_imports(file, (name,))
        for imported in sorted(self._well_known_used(file)):
            self._add_import(imported, (name,))
        self.proto = descriptor_of_file(file, name, self.names)
        missing = sorted(self._added & self._well_known_used(file) - set(self.proto.dependency))
        self.proto.dependency.extend(missing)
        self._add(self.proto)

    def _well_known_used(self, file: File) -> set[str]:
        """Files that a type is of and that were not imported: text of long ago may lack the import."""
        used = {self.names.definition(name) for name in _type_names(file, self.names)}
        files = {one.file_name for one in used if one is not None}
        return {name for name in files if name in WELL_KNOWN and name not in file.import_order}

    def _add_imports(self, file: File, way: tuple[str, ...]) -> None:
        for name in (*file.import_order, *file.option_imports):
            self._add_import(name, way)

    def _add_import(self, name: str, way: tuple[str, ...]) -> None:
        if name in way:
            raise InvalidSchema(f"File recursively imports itself: {' -> '.join((*way, name))}")
        if name in self._added:
            return
        if len(way) > 100:
            raise InvalidSchema("imports lie deeper than 100 within each other")
        if name in self._files:
            file = self._files[name]
            self._add_imports(file, (*way, name))
            self._add(descriptor_of_file(file, name, Names(file, self._files)))
        elif name.startswith("google/protobuf/") and name in WELL_KNOWN:
            proto = well_known_descriptor(name)
            for imported in proto.dependency:
                self._add_import(imported, (*way, name))
            self._add(proto)
        elif name in WELL_KNOWN:
            file = well_known_file(name)
            self._add_imports(file, (*way, name))
            self._add(descriptor_of_file(file, name, Names(file, {})))
        else:
            raise InvalidSchema(f'Import "{name}" was not found or had errors: no reference has this name')
        self._added.add(name)

    def _add(self, proto: descriptor_pb2.FileDescriptorProto) -> None:
        try:
            self.pool.AddSerializedFile(proto.SerializeToString())
        except TypeError as error:
            raise InvalidSchema(str(error)) from None

    def descriptor(self, full_name: str) -> "Descriptor":
        """The descriptor of a message. Raises `InvalidSchema` if there is none of that name."""
        try:
            return self.pool.FindMessageTypeByName(full_name)
        except KeyError:
            raise InvalidSchema(f"the schema has no message {full_name}") from None

    def message_class(self, full_name: str) -> "type[ProtobufMessage]":
        """A class whose objects are messages of that name, as protoc would have generated it."""
        return cast("type[ProtobufMessage]", message_factory.GetMessageClass(self.descriptor(full_name)))

    def serialized(self) -> bytes:
        """The descriptor of the file, with its custom options."""
        proto = descriptor_pb2.FileDescriptorProto()
        proto.CopyFrom(self.proto)
        _CustomOptions(self).set(self.file, proto)
        return cast("bytes", proto.SerializeToString(deterministic=True))


def _type_names(file: File, names: Names) -> Iterable[str]:
    package = file.package or ""
    todo: list[tuple[str, Message]] = [(package, one) for one in file.messages()]
    while todo:
        scope, message = todo.pop()
        name = f"{scope}.{message.name}" if scope else message.name
        yield from _field_types(message.fields, name, names)
        for oneof in message.oneofs:
            yield from _field_types(oneof.fields, name, names)
        todo += ((name, one) for one in message.messages())


def _field_types(fields: Iterable[Field], scope: str, names: Names) -> Iterable[str]:
    for field in fields:
        types = field.map_types()
        found = names.find_type(types[1] if types else field.type, scope)
        if found is not None:
            yield found.full_name


class _CustomOptions:
    """Sets options that are extensions, now that what they extend is linked. What is not known is left out: then nobody
    who reads the descriptor could know it either."""

    def __init__(self, linked: Linked) -> None:
        self._linked = linked
        self._pool = linked.pool
        self._scope = ""

    def set(self, file: File, proto: descriptor_pb2.FileDescriptorProto) -> None:
        self._scope = file.package or ""
        self._options(file.options, proto)
        types = {one.name: one for one in proto.message_type}
        enums = {one.name: one for one in proto.enum_type}
        for type in file.types:
            if isinstance(type, Message):
                self._message(type, types[type.name])
            else:
                self._enum(type, enums[type.name])
        for service, made in zip(file.services, proto.service, strict=True):
            self._options(service.options, made)
            for rpc, method in zip(service.rpcs, made.method, strict=True):
                self._options(rpc.options, method)
        self._extends(file.extends, proto.extension)

    def _message(self, message: Message, made: descriptor_pb2.DescriptorProto) -> None:
        outer = self._scope
        self._scope = f"{outer}.{message.name}" if outer else message.name
        self._options(message.options, made)
        fields = {one.name: one for one in made.field}
        for field in (*message.fields, *(one for oneof in message.oneofs for one in oneof.fields)):
            self._options(field.options, fields[field.name])
        for group in (*message.groups, *(one for oneof in message.oneofs for one in oneof.groups)):
            self._options(group.options, fields[group.name.lower()])
        for oneof, declared in zip(message.oneofs, made.oneof_decl, strict=False):
            self._options(oneof.options, declared)
        ranges = iter(made.extension_range)
        for extensions in message.extensions:
            for _ in extensions.values:
                self._options(extensions.options, next(ranges))
        self._extends(message.extends, made.extension)
        types = {one.name: one for one in made.nested_type}
        enums = {one.name: one for one in made.enum_type}
        for type in message.types:
            if isinstance(type, Message):
                self._message(type, types[type.name])
            else:
                self._enum(type, enums[type.name])
        for group in (*message.groups, *(one for oneof in message.oneofs for one in oneof.groups)):
            self._message(group.message, types[group.name])
        self._scope = outer

    def _enum(self, enum: Any, made: descriptor_pb2.EnumDescriptorProto) -> None:
        self._options(enum.options, made)
        for value, made_value in zip(enum.values, made.value, strict=True):
            self._options(value.options, made_value)

    def _extends(self, extends: list[Extend], made: Any) -> None:
        by_name = {one.name: one for one in made}
        for extend in extends:
            for field in extend.fields:
                self._options(field.options, by_name[field.name])

    def _options(self, options: list[Option], holder: Any) -> None:
        custom = [one for one in options if has_extension(one)]
        if not custom:
            return
        try:
            descriptor = self._pool.FindMessageTypeByName(type(holder.options).DESCRIPTOR.full_name)
        except KeyError:
            return
        message = message_factory.GetMessageClass(descriptor)()
        for option in custom:
            named = self._named(option)
            if named is None:
                continue
            name = f"[{named.name}]" if named.is_extension else named.name
            set_literal(message, {name: named.value}, f"Option {option.name}")
        holder.options.MergeFromString(message.SerializeToString(deterministic=True))

    def _named(self, option: Option) -> Option | None:
        """The option with full names, or None if a name is not known."""
        name = option.name
        if option.is_extension:
            found = self._linked.names.extension_name(name, self._scope)
            try:
                self._pool.FindExtensionByName(found or "")
            except KeyError:
                return None
            name = found or ""
        value = option.value
        if isinstance(value, Option):
            named = self._named(value)
            if named is None:
                return None
            value = named
        else:
            value = cast("str", self._literal(value))
        return Option(name, value, option.is_extension)

    def _literal(self, value: object) -> object:
        if isinstance(value, dict):
            return {self._literal_name(name): self._literal(one) for name, one in value.items()}
        return [self._literal(one) for one in value] if isinstance(value, list) else value

    def _literal_name(self, name: str) -> str:
        if not name.startswith("[") or "/" in name:
            return name
        return f"[{self._linked.names.extension_name(name[1:-1], self._scope) or name[1:-1]}]"


@cache
def meta_class() -> Any:
    """A message that has Confluent's `Meta` where the options have it, whatever options they are."""
    pool = DescriptorPool()
    file = parse_file(META_HOLDER, DEFAULT_LIMITS)
    pool.AddSerializedFile(descriptor_of_file(file, "holder.proto", Names(file, {})).SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Holder"))
