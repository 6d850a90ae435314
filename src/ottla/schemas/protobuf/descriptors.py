"""Elements to protobuf's `FileDescriptorProto` and back.

A descriptor made here is the one that protoc makes of the same file, with two differences that message indexes need:
entries of maps come after the messages that the text has, and where the text has an entry itself, it is that one.
Custom options are `linking`'s affair: their types must be linked first.

Back: the file that a descriptor was made of, as far as it is known. Custom options whose definition is not at hand
are left out; those of `confluent/meta.proto` are read.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor import FieldDescriptor

from ottla.schemas.protobuf.elements import (
    MAX_FIELD_NUMBER,
    SCALARS,
    Enum,
    EnumValue,
    Extend,
    Extensions,
    Field,
    File,
    Group,
    Label,
    Message,
    OneOf,
    Option,
    ReservedList,
    Rpc,
    Service,
    Word,
)
from ottla.schemas.schema import InvalidSchema, Limits

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtobufMessage

    from ottla.schemas.protobuf.names import Names

_TYPES: Final = {
    name: descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}") for name in sorted(SCALARS)
}
_SCALAR_NAMES: Final = {number: name for name, number in _TYPES.items()}
_LABELS: Final = {
    "optional": descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    "required": descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
}
_MESSAGE: Final = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
_GROUP: Final = descriptor_pb2.FieldDescriptorProto.TYPE_GROUP
_ENUM: Final = descriptor_pb2.FieldDescriptorProto.TYPE_ENUM
_RANGES: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, (1 << 32) - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, (1 << 64) - 1)),
}


def descriptor_of_file(file: File, file_name: str, names: "Names") -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of a file, its types looked up in `names`. Raises `InvalidSchema`."""
    return _Making(file, names).file(file_name)


class _Making:
    def __init__(self, file: File, names: "Names") -> None:
        self._file = file
        self._names = names
        self._scope = file.package or ""

    def file(self, file_name: str) -> descriptor_pb2.FileDescriptorProto:
        file = self._file
        made = descriptor_pb2.FileDescriptorProto(name=file_name)
        if file.package:
            made.package = file.package
        made.dependency.extend(file.import_order)
        made.public_dependency.extend(file.import_order.index(name) for name in file.public_imports)
        made.weak_dependency.extend(file.import_order.index(name) for name in file.weak_imports)
        if file.option_imports:
            made.option_dependency.extend(file.option_imports)
        if file.is_proto3:
            made.syntax = "proto3"
        if file.edition is not None:
            made.syntax = "editions"
            edition = f"EDITION_{file.edition}"
            if edition not in set(descriptor_pb2.Edition.keys()):
                raise InvalidSchema(f'Unknown edition "{file.edition}".')
            made.edition = descriptor_pb2.Edition.Value(edition)
        for type in file.types:
            if isinstance(type, Message):
                self._message(type, made.message_type.add())
            else:
                self._enum(type, made.enum_type.add())
        for service in file.services:
            self._service(service, made.service.add())
        for extend in file.extends:
            self._extend(extend, made.extension, made.message_type)
        set_options(file.options, made, "options")
        return made

    def _message(self, message: Message, made: descriptor_pb2.DescriptorProto) -> None:
        outer = self._scope
        self._scope = f"{outer}.{message.name}" if outer else message.name
        made.name = message.name
        if message.visibility:
            made.visibility = _visibility(message.visibility)
        for type in message.types:
            if isinstance(type, Message):
                self._message(type, made.nested_type.add())
            else:
                self._enum(type, made.enum_type.add())
        self._fields(message, made)
        for extend in message.extends:
            self._extend(extend, made.extension, made.nested_type)
        is_set = any(
            one.name == "message_set_wire_format" and one.value == Word("bool", "true") for one in message.options
        )
        for extensions in message.extensions:
            for value in extensions.values:
                first, last = (value, value) if isinstance(value, int) else (value.start, value.stop)
                if is_set and last == MAX_FIELD_NUMBER:
                    last = (1 << 31) - 2
                extension_range = made.extension_range.add(start=first, end=last + 1)
                set_options(extensions.options, extension_range, "options")
        for reserved in (value for one in message.reserved for value in one.values):
            if isinstance(reserved, str):
                made.reserved_name.append(reserved)
            else:
                first, last = (reserved, reserved) if isinstance(reserved, int) else (reserved.start, reserved.stop)
                made.reserved_range.add(start=first, end=last + 1)
        set_options(message.options, made, "options")
        self._scope = outer

    def _fields(self, message: Message, made: descriptor_pb2.DescriptorProto) -> None:
        parts: list[tuple[int, Field | Group, int | None]] = [(one.place, one, None) for one in message.fields]
        parts += ((one.place, one, None) for one in message.groups)
        for index, oneof in enumerate(message.oneofs):
            parts += ((one.place, one, index) for one in oneof.fields)
            parts += ((one.place, one, index) for one in oneof.groups)
            declared = made.oneof_decl.add(name=oneof.name)
            set_options(oneof.options, declared, "options")
        entries: list[Field] = []
        synthetic: list[descriptor_pb2.FieldDescriptorProto] = []
        for _, part, oneof_index in sorted(parts, key=lambda one: one[0]):
            field = made.field.add()
            if isinstance(part, Group):
                self._group(part, field, made.nested_type)
            elif part.map_types() is not None:
                entries.append(part)
                self._map_field(part, field)
            else:
                self._field(part, field)
                if part.label == "optional" and self._file.is_proto3:
                    field.proto3_optional = True
                    synthetic.append(field)
            if oneof_index is not None:
                field.oneof_index = oneof_index
        for entry in entries:
            self._map_entry(entry, made.nested_type.add())
        taken = {oneof.name for oneof in message.oneofs} | {field.name for field in made.field}
        for field in synthetic:
            name = f"_{field.name}"
            while name in taken:
                name = f"X{name}"
            taken.add(name)
            field.oneof_index = len(made.oneof_decl)
            made.oneof_decl.add(name=name)

    def _field(self, field: Field, made: descriptor_pb2.FieldDescriptorProto) -> None:
        made.name = field.name
        made.number = field.number
        made.label = _LABELS[field.label or "optional"]
        self._set_type(field.type, made)
        if field.default is not None:
            made.default_value = _default_text(field.default, field.type, made.type)
        if field.json_name is not None:
            made.json_name = field.json_name
        set_options(field.options, made, "options")

    def _set_type(self, type: str, made: descriptor_pb2.FieldDescriptorProto) -> None:
        if type in _TYPES:
            made.type = _TYPES[type]
            return
        found = self._names.find_type(type, self._scope)
        if found is None:
            raise InvalidSchema(f'"{type}" is not defined.', self._scope)
        made.type = _MESSAGE if isinstance(found.type, Message) else _ENUM
        made.type_name = f".{found.full_name}"

    def _group(self, group: Group, made: descriptor_pb2.FieldDescriptorProto, nested: Any) -> None:
        made.name = group.name.lower()
        made.number = group.number
        made.label = _LABELS[group.label or "optional"]
        made.type = _GROUP
        made.type_name = f".{self._scope}.{group.name}" if self._scope else f".{group.name}"
        set_options(group.options, made, "options")
        self._message(group.message, nested.add())

    def _map_field(self, field: Field, made: descriptor_pb2.FieldDescriptorProto) -> None:
        self._field(Field("repeated", "bool", field.name, field.number, field.options, None, field.json_name), made)
        made.type = _MESSAGE
        made.type_name = f".{self._scope}.{_entry_name(field.name)}"

    def _map_entry(self, field: Field, made: descriptor_pb2.DescriptorProto) -> None:
        types = field.map_types()
        assert types is not None
        if types[0] not in _TYPES or types[0] in ("float", "double", "bytes"):
            raise InvalidSchema(f"Key in map fields cannot be {types[0]}.", f"{self._scope}.{field.name}")
        made.name = _entry_name(field.name)
        made.options.map_entry = True
        for name, type, number in (("key", types[0], 1), ("value", types[1], 2)):
            self._field(Field("optional", type, name, number), made.field.add())

    def _extend(self, extend: Extend, extensions: Any, nested: Any) -> None:
        parts: list[Field | Group] = [*extend.fields, *extend.groups]
        for part in sorted(parts, key=lambda one: one.place):
            made = extensions.add()
            if isinstance(part, Group):
                self._group(part, made, nested)
            else:
                self._field(part, made)
                if part.label == "optional" and self._file.is_proto3:
                    made.proto3_optional = True
            made.extendee = f".{self._names.type_name(extend.name, self._scope)}"

    def _enum(self, enum: Enum, made: descriptor_pb2.EnumDescriptorProto) -> None:
        made.name = enum.name
        if enum.visibility:
            made.visibility = _visibility(enum.visibility)
        for value in enum.values:
            made_value = made.value.add(name=value.name, number=value.number)
            set_options(value.options, made_value, "options")
        for reserved in (value for one in enum.reserved for value in one.values):
            if isinstance(reserved, str):
                made.reserved_name.append(reserved)
            else:
                first, last = (reserved, reserved) if isinstance(reserved, int) else (reserved.start, reserved.stop)
                made.reserved_range.add(start=first, end=last)
        set_options(enum.options, made, "options")

    def _service(self, service: Service, made: descriptor_pb2.ServiceDescriptorProto) -> None:
        made.name = service.name
        for rpc in service.rpcs:
            method = made.method.add(name=rpc.name)
            method.input_type = f".{self._names.type_name(rpc.request, self._scope)}"
            method.output_type = f".{self._names.type_name(rpc.response, self._scope)}"
            if rpc.request_streams:
                method.client_streaming = True
            if rpc.response_streams:
                method.server_streaming = True
            set_options(rpc.options, method, "options")
        set_options(service.options, made, "options")


def _visibility(word: str) -> Any:
    return descriptor_pb2.SymbolVisibility.Value(f"VISIBILITY_{word.upper()}")


def _entry_name(field: str) -> str:
    """The message of a map: `some_map` is `SomeMapEntry`."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def default_json_name(field: str) -> str:
    """`some_field` is `someField`: the JSON name of a field that says none."""
    first, *rest = field.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


# Options.


def set_options(options: Iterable[Option], holder: Any, attribute: str) -> None:
    """Sets the options that `descriptor.proto` defines. Custom ones are left to `linking`."""
    for option in options:
        if has_extension(option):
            continue
        target = getattr(holder, attribute)
        set_value(target, option.name.split("."), option.value, f"Option {option.name}")


def has_extension(option: Option) -> bool:
    """Whether a part of its name is in parentheses: then it is a custom option."""
    while not option.is_extension and isinstance(option.value, Option):
        option = option.value
    return option.is_extension


def set_value(target: Any, path: Sequence[str], value: object, what: str) -> None:
    """Sets a field of a message, down a path of names. Raises `InvalidSchema` if it has none, or none of that kind."""
    for name in path[:-1]:
        field = _field_of(target, name, what)
        if field.message_type is None or field.is_repeated:
            raise InvalidSchema(f'{what}: "{name}" is an atomic type, not a message.')
        target = getattr(target, name)
        target.SetInParent()
    put_value(target, _field_of(target, path[-1], what), value, what)


def _field_of(target: Any, name: str, what: str) -> FieldDescriptor:
    field = target.DESCRIPTOR.fields_by_name.get(name)
    if field is None:
        raise InvalidSchema(f'{what} unknown: {target.DESCRIPTOR.full_name} has no field "{name}".')
    assert isinstance(field, FieldDescriptor)
    return field


def put_value(target: Any, field: FieldDescriptor, value: object, what: str) -> None:
    """Sets or adds to one field of a message, an extension too."""
    if isinstance(value, Option):
        value = {f"[{value.name}]" if value.is_extension else value.name: value.value}
    if isinstance(value, list):
        if not field.is_repeated:
            if len(value) != 1:
                raise InvalidSchema(f"{what} is not repeated, and is given a list.")
            put_value(target, field, value[0], what)
            return
        for one in value:
            put_value(target, field, one, what)
        return
    if field.message_type is not None:
        if not isinstance(value, dict):
            raise InvalidSchema(f"{what} is a message. To set the entire message, use aggregate syntax.")
        _put_message(target, field, value, what)
        return
    scalar = _scalar(value, field, what)
    if field.is_repeated:
        container(target, field).append(scalar)
    elif field.is_extension:
        target.Extensions[field] = scalar
    else:
        setattr(target, field.name, scalar)


def _put_message(target: Any, field: FieldDescriptor, literal: dict[str, object], what: str) -> None:
    if field.message_type.GetOptions().map_entry:
        # An entry of a map: {key: …, value: …}.
        entry_type = field.message_type
        key = _scalar(literal.get("key", ""), entry_type.fields_by_name["key"], what)
        value_field = entry_type.fields_by_name["value"]
        entries = container(target, field)
        if value_field.message_type is None:
            entries[key] = _scalar(literal.get("value", ""), value_field, what)
        else:
            set_literal(entries[key], literal.get("value", {}), what)  # type: ignore[arg-type]
        return
    inner = container(target, field)
    if field.is_repeated:
        inner = inner.add()
    else:
        inner.SetInParent()
    set_literal(inner, literal, what)


def set_literal(target: Any, literal: dict[str, object], what: str) -> None:
    """Sets what a message literal says. Extensions in it (`[name]`) are looked up among those that are linked, and what
    stands after an address (`[type.googleapis.com/name]`) is packed."""
    pool = target.DESCRIPTOR.file.pool
    for name, value in literal.items():
        if not name.startswith("["):
            put_value(target, _field_of(target, name, what), value, what)
            continue
        name = name[1:-1]
        try:
            if "/" not in name:
                put_value(target, pool.FindExtensionByName(name.lstrip(".")), value, what)
                continue
            packed = message_factory.GetMessageClass(pool.FindMessageTypeByName(name.rpartition("/")[2]))()
        except KeyError:
            raise InvalidSchema(f'{what}: nothing has the name "{name}".') from None
        if not isinstance(value, dict) or target.DESCRIPTOR.full_name != "google.protobuf.Any":
            raise InvalidSchema(f"{what}: only a google.protobuf.Any can have {name}.")
        set_literal(packed, value, what)
        target.type_url = name
        target.value = packed.SerializeToString(deterministic=True)


def container(target: Any, field: FieldDescriptor) -> Any:
    return target.Extensions[field] if field.is_extension else getattr(target, field.name)


def _scalar(value: object, field: FieldDescriptor, what: str) -> Any:
    kind = field.type
    if kind == FieldDescriptor.TYPE_STRING or kind == FieldDescriptor.TYPE_BYTES:
        if not isinstance(value, str):
            raise InvalidSchema(f"Value must be quoted string for {what}.")
        content = value.encode("utf-8", "surrogateescape")
        try:
            return content if kind == FieldDescriptor.TYPE_BYTES else content.decode()
        except UnicodeDecodeError:
            raise InvalidSchema(f"Value must be UTF-8 for {what}.") from None
    if not isinstance(value, Word):
        raise InvalidSchema(f"{what} has a value of another kind.")
    if kind == FieldDescriptor.TYPE_BOOL:
        if value.text not in ("true", "false"):
            raise InvalidSchema(f'Value must be "true" or "false" for boolean {what}.')
        return value.text == "true"
    if kind == FieldDescriptor.TYPE_ENUM:
        found = field.enum_type.values_by_name.get(value.text)
        if found is None:
            if value.kind == "number" and (number := _integer(value.text)) is not None:
                return number
            raise InvalidSchema(
                f'Enum type "{field.enum_type.full_name}" has no value named "{value.text}" for {what}.'
            )
        return found.number
    if kind in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        floating = _floating(value.text)
        if floating is None:
            raise InvalidSchema(f"Value must be number for {what}.")
        return floating
    whole: int | None = _integer(value.text)
    name = _SCALAR_NAMES[kind]
    if whole is None or not _RANGES[name][0] <= whole <= _RANGES[name][1]:
        raise InvalidSchema(
            f"Value must be integer of {name}, from {_RANGES[name][0]} to {_RANGES[name][1]}, for {what}."
        )
    return whole


def _integer(text: str) -> int | None:
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    try:
        if digits[:2].lower() == "0x":
            return sign * int(digits, 16)
        if len(digits) > 1 and digits[0] == "0":
            return sign * int(digits, 8)
        return sign * int(digits)
    except ValueError:
        return None


def _floating(text: str) -> float | None:
    whole = _integer(text)
    if whole is not None:
        return float(whole)
    try:
        return float(text.rstrip("fF") if text[-1] in "fF" and text[-2:-1].isdigit() else text)
    except ValueError:
        return None


# Defaults.


def _default_text(default: str | Word, type: str, kind: int) -> str:
    """As a descriptor has it: protoc's form of the value."""
    text = default if isinstance(default, str) else default.text
    if type == "string":
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if type == "bytes":
        return _c_escaped(text.encode("utf-8", "surrogateescape"))
    if type in ("float", "double"):
        number = _floating(text)
        if number is None:
            raise InvalidSchema(f"Expected number, and the default is {text}.")
        return float_text(number, type == "float")
    if type in _RANGES:
        whole = _integer(text)
        if whole is None or not _RANGES[type][0] <= whole <= _RANGES[type][1]:
            raise InvalidSchema(f"Expected integer of {type}, and the default is {text}.")
        return str(whole)
    if type == "bool" and text not in ("true", "false"):
        raise InvalidSchema(f'Expected "true" or "false", and the default is {text}.')
    if kind == _MESSAGE:
        raise InvalidSchema("Messages can't have default values.")
    return text


def float_text(number: float, is_single: bool) -> str:
    """The shortest of few digits that gives the number back, in C's form: 1.5, 1e+10, inf."""
    if number != number:
        return "nan"
    if is_single:
        try:
            (number,) = struct.unpack("<f", struct.pack("<f", number))
        except OverflowError:
            number = float("inf") if number > 0 else float("-inf")
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    for digits in (6, 9) if is_single else (15, 17):
        text = f"{number:.{digits}g}"
        read = float(text)
        if is_single:
            read = struct.unpack("<f", struct.pack("<f", read))[0]
        if read == number:
            return text
    return text


_C_SIMPLE: Final = {ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}


def _c_escaped(content: bytes) -> str:
    return "".join(_C_SIMPLE.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in content)


_C_SEQUENCE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_C_NAMED: Final = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def _c_unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        octal, hexadecimal, named = found.groups()
        if octal or hexadecimal:
            return chr(int(octal, 8) & 255 if octal else int(hexadecimal, 16))
        return chr(_C_NAMED.get(named, ord(named)))

    content = _C_SEQUENCE.sub(one, text).encode("latin-1", "replace")
    return content.decode("utf-8", "surrogateescape")


# Descriptors to elements.


def file_of_descriptor(made: descriptor_pb2.FileDescriptorProto, limits: Limits) -> File:
    """The file that a descriptor was made of. Raises `InvalidSchema` for one that is no file."""
    return _Reading(made, limits).file()


class _Reading:
    def __init__(self, made: descriptor_pb2.FileDescriptorProto, limits: Limits) -> None:
        self._made = made
        self._limits = limits
        self._definitions = 0
        self._is_proto3 = made.syntax == "proto3"
        self._is_edition = made.syntax == "editions" or bool(made.edition)

    def _count(self, depth: int = 0) -> None:
        self._definitions += 1
        if self._definitions > self._limits.definitions:
            raise InvalidSchema(f"more than {self._limits.definitions} messages, fields, values and options")
        if depth > self._limits.type_depth:
            raise InvalidSchema(f"messages are nested deeper than {self._limits.type_depth}")

    def file(self) -> File:
        made = self._made
        file = File(package=_checked(made.package, dots=True) if made.package else None)
        if self._is_edition:
            name = descriptor_pb2.Edition.Name(made.edition) if made.edition in descriptor_pb2.Edition.values() else ""
            if not name:
                raise InvalidSchema(f"edition {made.edition} is not known")
            file.edition = name.removeprefix("EDITION_")
        elif made.syntax in ("proto2", "proto3"):
            file.syntax = made.syntax
        elif made.syntax:
            raise InvalidSchema(f'Unrecognized syntax identifier "{made.syntax}".')
        public, weak = set(made.public_dependency), set(made.weak_dependency)
        if len(made.dependency) > self._limits.references:
            raise InvalidSchema(f"more than {self._limits.references} imports")
        for index, name in enumerate(made.dependency):
            imports = file.public_imports if index in public else file.weak_imports if index in weak else file.imports
            imports.append(name)
            file.import_order.append(name)
        file.option_imports.extend(made.option_dependency)
        file.types += (self._message(one, 1) for one in made.message_type)
        file.types += (self._enum(one) for one in made.enum_type)
        file.services += map(self._service, made.service)
        file.extends += self._extends(made.extension)
        file.options += self._options(made, "confluent.file_meta")
        return file

    def _message(self, made: descriptor_pb2.DescriptorProto, depth: int) -> Message:
        self._count(depth)
        message = Message(_checked(made.name))
        oneofs = [OneOf(_checked(one.name), options=self._options(one, None)) for one in made.oneof_decl]
        groups = {one.type_name.rpartition(".")[2] for one in made.field if one.type == _GROUP and not self._is_edition}
        nested = {one.name: one for one in made.nested_type}
        for place, one in enumerate(made.field):
            in_oneof = one.HasField("oneof_index") and not one.proto3_optional
            if in_oneof and not 0 <= one.oneof_index < len(oneofs):
                raise InvalidSchema(f"FieldDescriptorProto.oneof_index {one.oneof_index} is out of range.", made.name)
            holder: Message | OneOf = oneofs[one.oneof_index] if in_oneof else message
            group_name = one.type_name.rpartition(".")[2]
            if group_name in groups and group_name in nested:
                label = None if in_oneof else self._label(one)
                group = self._message(nested[group_name], depth + 1)
                holder.groups.append(Group(label, group_name, one.number, group, self._options(one, None), place))
            else:
                holder.fields.append(self._field(one, place, in_oneof))
        message.oneofs = [one for one in oneofs if one.fields or one.groups]
        message.types += (self._message(one, depth + 1) for one in made.nested_type if one.name not in groups)
        message.types += (self._enum(one) for one in made.enum_type)
        for span in made.reserved_range:
            message.reserved.append(ReservedList([_span(span.start, span.end - 1)]))
        message.reserved += (ReservedList([name]) for name in made.reserved_name)
        for extension in made.extension_range:
            value = _span(extension.start, extension.end - 1)
            message.extensions.append(Extensions([value], self._options(extension, None)))
        message.extends += self._extends(made.extension)
        message.options += self._options(made, "confluent.message_meta")
        if made.visibility:
            message.visibility = (
                descriptor_pb2.SymbolVisibility.Name(made.visibility).removeprefix("VISIBILITY_").lower()
            )
        return message

    def _field(self, made: descriptor_pb2.FieldDescriptorProto, place: int, in_oneof: bool) -> Field:
        self._count()
        type = made.type_name if made.HasField("type_name") else _SCALAR_NAMES.get(made.type)
        if type is None:
            raise InvalidSchema(f"field {made.name} has no type")
        field = Field(
            None if in_oneof else self._label(made), _checked(type, dots=True), _checked(made.name), made.number
        )
        field.place = place
        if made.HasField("default_value") and not self._is_proto3:
            if type == "bytes":
                field.default = _c_unescaped(made.default_value)
            elif type == "string":
                field.default = made.default_value
            else:
                is_name = made.type == _ENUM or (made.HasField("type_name") and not made.HasField("type"))
                field.default = Word("bool" if type == "bool" else "enum" if is_name else "number", made.default_value)
        if made.HasField("json_name"):
            field.json_name = made.json_name
        field.options = self._options(made, "confluent.field_meta")
        return field

    def _label(self, made: descriptor_pb2.FieldDescriptorProto) -> Label | None:
        if made.proto3_optional:
            return "optional"
        if made.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED:
            return "repeated"
        if self._is_proto3 or self._is_edition:
            return None
        return "required" if made.label == descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED else "optional"

    def _extends(self, made: Iterable[descriptor_pb2.FieldDescriptorProto]) -> list[Extend]:
        extends: dict[str, Extend] = {}
        for place, one in enumerate(made):
            extend = extends.setdefault(one.extendee, Extend(_checked(one.extendee, dots=True)))
            extend.fields.append(self._field(one, place, in_oneof=False))
        return list(extends.values())

    def _enum(self, made: descriptor_pb2.EnumDescriptorProto) -> Enum:
        self._count()
        enum = Enum(_checked(made.name), options=self._options(made, "confluent.enum_meta"))
        for value in made.value:
            self._count()
            options = self._options(value, "confluent.enum_value_meta")
            enum.values.append(EnumValue(_checked(value.name), value.number, options))
        for span in made.reserved_range:
            enum.reserved.append(ReservedList([_span(span.start, span.end)]))
        enum.reserved += (ReservedList([name]) for name in made.reserved_name)
        if made.visibility:
            enum.visibility = descriptor_pb2.SymbolVisibility.Name(made.visibility).removeprefix("VISIBILITY_").lower()
        return enum

    def _service(self, made: descriptor_pb2.ServiceDescriptorProto) -> Service:
        self._count()
        service = Service(_checked(made.name), options=self._options(made, None))
        for one in made.method:
            self._count()
            request, response = _checked(one.input_type, dots=True), _checked(one.output_type, dots=True)
            rpc = Rpc(_checked(one.name), request, response, one.client_streaming, one.server_streaming)
            rpc.options = self._options(one, None)
            service.rpcs.append(rpc)
        return service

    def _options(self, holder: Any, meta: str | None) -> list[Option]:
        if not holder.HasField("options"):
            return []
        options: list[Option] = []
        for field, value in holder.options.ListFields():
            if field.is_extension or field.name == "uninterpreted_option":
                continue
            for one in value if field.is_repeated else (value,):
                self._count()
                options.append(Option(field.name, _option_value(one, field)))
        if meta is not None and (found := _confluent_meta(holder.options)):
            options.append(Option(meta, found, True))
        # What features and the like say comes after what is said without them.
        return sorted(options, key=lambda one: isinstance(one.value, dict))


def _option_value(value: Any, field: FieldDescriptor) -> "str | Word | dict[str, object]":
    if field.message_type is not None:
        literal: dict[str, object] = {}
        for inner, inner_value in value.ListFields():
            if inner.is_extension:
                continue
            if inner.is_repeated:
                literal[inner.name] = [_option_value(one, inner) for one in inner_value]
            else:
                literal[inner.name] = _option_value(inner_value, inner)
        return literal
    if field.type == FieldDescriptor.TYPE_STRING:
        return str(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(value).decode("utf-8", "surrogateescape")
    if field.type == FieldDescriptor.TYPE_BOOL:
        return Word("bool", "true" if value else "false")
    if field.type == FieldDescriptor.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return Word("enum", known.name if known is not None else str(value))
    if field.type in (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE):
        return Word("number", float_text(value, field.type == FieldDescriptor.TYPE_FLOAT))
    return Word("number", str(value))


def _confluent_meta(options: "ProtobufMessage") -> dict[str, object]:
    """What Confluent's option says, in the order in which its registry writes it: doc, params, tags, rules."""
    from ottla.schemas.protobuf.linking import meta_class

    content = options.SerializeToString(deterministic=True)
    found = meta_class().FromString(content)
    if not found.HasField("meta"):
        return {}
    meta = found.meta
    literal: dict[str, object] = {}
    if meta.doc:
        literal["doc"] = meta.doc
    params: list[object] = []
    for key, value in meta.params.items():
        if key in ("precision", "scale"):
            params.append({"value": value, "key": key})
        else:
            params.append({"key": key, "value": value})
    if params:
        literal["params"] = params
    if meta.tags:
        literal["tags"] = list(meta.tags)
    rules: list[object] = []
    for rule in meta.rules:
        said = ((name, getattr(rule, name)) for name in ("name", "doc", "expr", "sql"))
        if entry := {name: value for name, value in said if value}:
            rules.append(entry)
    if rules:
        literal["rules"] = rules
    return literal


_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DOTTED_NAME: Final = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


def _checked(name: str, dots: bool = False) -> str:
    """Names of a descriptor go into a text, and must not be able to say more there."""
    if not (_DOTTED_NAME if dots else _NAME).fullmatch(name):
        raise InvalidSchema(f'"{name[:100]}" is not a valid identifier.')
    return name


def _span(first: int, last: int) -> Any:
    if last < first:
        raise InvalidSchema("Range end must be greater than start number.")
    return first if first == last else range(first, last)
