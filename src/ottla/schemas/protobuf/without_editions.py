"""Files with an edition, said in proto2 or proto3, for readers that know no editions. A record has the same bytes.

proto2 says what an edition says by default: presence is seen. If a field has none (`features.field_presence =
IMPLICIT`), the file becomes proto3, and the fields that have it are `optional`. What neither can say (a field without
presence beside a required one, or beside an enum that does not begin with zero) is refused by the pool. What does not
matter for reading is left out: options, defaults, extensions, services. Groups are not to be given.
"""

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from ottla.schemas.faults import CannotDecode


def without_editions(descriptor: Descriptor) -> Descriptor:
    """The same message; it itself if nothing that it is made of has an edition. Raises `CannotDecode`."""
    files: dict[str, FileDescriptorProto] = {}
    if not _collect(descriptor.file, files):
        return descriptor
    pool = DescriptorPool()
    try:
        for file in files.values():
            pool.AddSerializedFile(file.SerializeToString())
        found: Descriptor = pool.FindMessageTypeByName(descriptor.full_name)
    except (TypeError, KeyError) as error:
        raise CannotDecode(f"{descriptor.full_name} cannot be said in proto2 or proto3: {error}") from None
    return found


def _collect(file: FileDescriptor, files: dict[str, FileDescriptorProto]) -> bool:
    """Adds a file behind those that it imports. Whether one of them had an edition."""
    if file.name in files:
        return False
    had_one = [_collect(imported, files) for imported in file.dependencies]
    made = FileDescriptorProto()
    file.CopyToProto(made)
    files[file.name] = made
    if made.syntax != "editions":
        return any(had_one)
    messages = list(file.message_types_by_name.values())
    made.syntax = "proto3" if any(map(_has_implicit, messages)) else "proto2"
    for name in ("edition", "options", "service", "extension"):
        made.ClearField(name)
    for message in made.message_type:
        _change_message(message, file.message_types_by_name[message.name], made.syntax)
    for enum in made.enum_type:
        _change_enum(enum)
    return True


def _has_implicit(message: Descriptor) -> bool:
    if message.GetOptions().map_entry:
        return False
    fields = any(not one.is_repeated and not one.has_presence for one in message.fields)
    return fields or any(map(_has_implicit, message.nested_types))


def _change_message(made: DescriptorProto, message: Descriptor, syntax: str) -> None:
    is_map = made.options.map_entry
    for name in ("options", "extension", "extension_range"):
        made.ClearField(name)
    if is_map:
        made.options.map_entry = True
    for field in made.field:
        _change_field(made, field, message.fields_by_name[field.name], optional=syntax == "proto3" and not is_map)
    for oneof in made.oneof_decl:
        oneof.ClearField("options")
    for nested in made.nested_type:
        _change_message(nested, message.nested_types_by_name[nested.name], syntax)
    for enum in made.enum_type:
        _change_enum(enum)


def _change_field(
    message: DescriptorProto, made: FieldDescriptorProto, field: FieldDescriptor, *, optional: bool
) -> None:
    made.ClearField("options")
    made.ClearField("default_value")
    if field.is_repeated:
        if field.is_packed or field.type not in _NEVER_PACKED:
            made.options.packed = field.is_packed
        return
    if field.is_required:
        made.label = FieldDescriptorProto.LABEL_REQUIRED
    is_alone = field.containing_oneof is None and field.message_type is None
    if optional and field.has_presence and is_alone:
        made.proto3_optional = True
        made.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


_NEVER_PACKED = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
)


def _change_enum(made: EnumDescriptorProto) -> None:
    allows_alias = made.options.allow_alias
    made.ClearField("options")
    if allows_alias:
        made.options.allow_alias = True
    for value in made.value:
        value.ClearField("options")
