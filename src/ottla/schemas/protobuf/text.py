"""Elements to text: the form in which Confluent's registry stores files, and its normal form.

The canonical text has the parts of a message in a fixed order (reserved, options, fields, oneofs, groups, extensions,
nested messages, enums), and each kind in the order of the source. Comments are gone. Message indexes count messages in
that order, so nothing is sorted.

The normal form says each thing in one way: names of types in full, fields by number, options by name, values of enums
by number, nothing that is the default. What maps are made of in descriptors is a map again.

Where Confluent's text would say something else than the file did (bytes that are no UTF-8 in strings, a default of
bytes, weak imports, numbers with many decimals), ours says what the file said.
"""

import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Final, Protocol

from ottla.schemas.json_text import utf_16_order
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
    Message,
    OneOf,
    Option,
    Reserved,
    ReservedList,
    Rpc,
    Service,
    Word,
)

_PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_.-]+")
_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", "'": "\\'", '"': '\\"', "\0": "\\000",
    **{chr(0xDC00 + byte): f"\\{byte:03o}" for byte in range(128, 256)},
}  # fmt: skip
_ESCAPED: Final = str.maketrans(_ESCAPES)


class Meanings(Protocol):
    """What the normal form needs to know of names. Scopes are full names of messages, or the package."""

    def type_name(self, written: str, scope: str) -> str:
        """The full name, without a dot before it. Raises `InvalidSchema` if there is no such type."""

    def extension_name(self, written: str, scope: str) -> str | None:
        """The full name of an extension field, or None."""

    def map_entry(self, full_name: str) -> tuple[str, str, str] | None:
        """Key type, value type, and the scope in which they were written, if the message is an entry of a map."""

    def field_of_extension(self, full_name: str) -> tuple[Field, str] | None:
        """The field and the scope of its definition."""

    def message(self, full_name: str) -> Message | None: ...


def canonical_text(file: File, *, ignore_extensions: bool = False) -> str:
    """As Confluent's registry writes it. `ignore_extensions` leaves extensions and custom options out."""
    return _Writer(ignore_extensions=ignore_extensions).file(file)


def normal_text(file: File, meanings: Meanings) -> str:
    """The normal form. Raises `InvalidSchema` if a type is not known."""
    return _Writer(meanings=meanings).file(file)


class _Writer:
    def __init__(self, *, ignore_extensions: bool = False, meanings: Meanings | None = None) -> None:
        self._ignore_extensions = ignore_extensions
        self._meanings = meanings
        self._scope = ""
        self._of_edition = False

    def file(self, file: File) -> str:
        normal = self._meanings is not None
        self._scope = file.package or ""
        self._of_edition = file.edition is not None
        text = ""
        if file.edition is not None:
            text += f'edition = "{file.edition}";\n'
        elif file.syntax is not None and (not normal or file.is_proto3):
            text += f'syntax = "{file.syntax}";\n'
        if file.package is not None:
            text += f"package {file.package};\n"
        imports = [
            f'import {modifier}"{_escaped(name)}";\n'
            for modifier, names in (
                ("", file.imports),
                ("public ", file.public_imports),
                ("weak ", file.weak_imports),
                ("option ", file.option_imports),
            )
            for name in (sorted(set(names), key=utf_16_order) if normal else names)
        ]
        if imports:
            text += "\n" + "".join(imports)
        options = self._options(file.options)
        if options:
            text += "\n" + "".join(map(self._option_statement, options))
        text += self._types(file.types)
        text += self._extends(file.extends)
        if file.services:
            text += "\n" + "".join(map(self._service, file.services))
        return text

    def _types(self, types: list[Message | Enum], indent: Callable[[str], str] = str) -> str:
        if self._meanings is not None:
            types = [one for one in types if not (isinstance(one, Message) and one.is_map_entry)]
        if not types:
            return ""
        messages = (self._message(one) for one in types if isinstance(one, Message))
        enums = (self._enum(one) for one in types if isinstance(one, Enum))
        return "\n" + "".join(indent(one) for made in (messages, enums) for one in made)

    def _extends(self, extends: list[Extend], indent: Callable[[str], str] = str) -> str:
        if self._ignore_extensions or not extends:
            return ""
        if self._meanings is not None:
            joined: dict[str, Extend] = {}
            for extend in extends:
                name = self._type_name(extend.name)
                into = joined.setdefault(name, Extend(name))
                into.fields += extend.fields
                into.groups += extend.groups
            extends = list(joined.values())
        return "\n" + "".join(indent(self._extend(one)) for one in extends)

    def _extend(self, extend: Extend) -> str:
        return self._block(f"extend {extend.name}", self._fields(extend.fields), self._groups(extend.groups))

    def _message(self, message: Message) -> str:
        outer = self._scope
        self._scope = f"{outer}.{message.name}" if outer else message.name
        visibility = f"{message.visibility} " if message.visibility else ""
        text = self._block(f"{visibility}message {message.name}", *self._message_parts(message))
        self._scope = outer
        return text

    def _message_parts(self, message: Message) -> Iterable[str]:
        yield self._reserved(message.reserved)
        yield "".join(map(self._option_statement, self._options(message.options)))
        yield self._fields(message.fields)
        yield self._oneofs(message.oneofs)
        yield self._groups(message.groups)
        if not self._ignore_extensions:
            yield self._extension_ranges(message.extensions)
        yield self._extends(message.extends)[1:]
        yield self._types(message.types)[1:]

    @staticmethod
    def _block(head: str, *parts: str) -> str:
        """Parts have an empty line between them, and are indented."""
        inner = "".join("\n" + _indented(part) for part in parts if part)
        return f"{head} {{{inner}}}\n"

    def _reserved(self, reserved: list[ReservedList]) -> str:
        if self._meanings is not None:
            single = [ReservedList([value]) for one in reserved for value in one.values]
            reserved = sorted(single, key=lambda one: _reserved_order(one.values[0]))
        return "".join(f"reserved {', '.join(map(self._reserved_value, one.values))};\n" for one in reserved)

    def _reserved_value(self, value: Reserved) -> str:
        if isinstance(value, str):
            return value if self._of_edition else f'"{_escaped(value)}"'
        return self._number_range(value)

    def _number_range(self, value: int | range) -> str:
        if isinstance(value, int):
            return str(value)
        if self._meanings is not None and value.start == value.stop:
            return str(value.start)
        return f"{value.start} to {'max' if value.stop >= MAX_FIELD_NUMBER else value.stop}"

    def _fields(self, fields: list[Field]) -> str:
        if self._meanings is not None:
            fields = sorted(fields, key=lambda one: one.number)
        return "".join(map(self._field, fields))

    def _field(self, field: Field) -> str:
        label, type = field.label, field.type
        if self._meanings is not None:
            type = self._normal_type(type, self._meanings)
            if type.startswith("map<"):
                label = None
        options = list(field.options)
        if field.default is not None:
            options.append(Option("default", _written_default(field)))
        if field.json_name is not None:
            options.append(Option("json_name", field.json_name))
        head = f"{label} {type}" if label else type
        return f"{head} {field.name} = {field.number}{self._bracketed(options)};\n"

    def _normal_type(self, type: str, meanings: Meanings) -> str:
        if type in SCALARS:
            return type
        scope = self._scope
        if type.startswith("map<"):
            key, value = type[4:-1].split(", ", 1)
        else:
            full_name = meanings.type_name(type, scope)
            entry = meanings.map_entry(full_name)
            if entry is None:
                return f".{full_name}"
            key, value, scope = entry
        return f"map<{key}, {value if value in SCALARS else '.' + meanings.type_name(value, scope)}>"

    def _type_name(self, name: str) -> str:
        return name if self._meanings is None else f".{self._meanings.type_name(name, self._scope)}"

    def _oneofs(self, oneofs: list[OneOf]) -> str:
        if self._meanings is not None:
            filled = [one for one in oneofs if one.fields or one.groups]
            oneofs = sorted(filled, key=_lowest_number)
        return "".join(
            self._block(
                f"oneof {one.name}",
                "".join(map(self._option_statement, self._options(one.options))),
                self._fields(one.fields),
                self._groups(one.groups),
            )
            for one in oneofs
        )

    def _groups(self, groups: list[Group]) -> str:
        if self._meanings is not None:
            groups = sorted(groups, key=lambda one: one.number)
        return "".join(map(self._group, groups))

    def _group(self, group: Group) -> str:
        label = f"{group.label} " if group.label else ""
        outer = self._scope
        self._scope = f"{outer}.{group.name}" if outer else group.name
        head = f"{label}group {group.name} = {group.number}{self._bracketed(group.options)}"
        text = self._block(head, *self._message_parts(group.message))
        self._scope = outer
        return text

    def _extension_ranges(self, extensions: list[Extensions]) -> str:
        if self._meanings is not None:
            single = [Extensions([value], one.options) for one in extensions for value in one.values]
            extensions = sorted(single, key=lambda one: _reserved_order(one.values[0]))
        return "".join(
            f"extensions {', '.join(map(self._number_range, one.values))}{self._bracketed(one.options)};\n"
            for one in extensions
        )

    def _enum(self, enum: Enum) -> str:
        values = enum.values
        if self._meanings is not None:
            zero_first = bool(values) and values[0].number == 0  # it must be so in proto3, and is the default in proto2
            values = sorted(
                values, key=lambda one: (zero_first and one.number != 0, one.number, utf_16_order(one.name))
            )
        reserved = self._reserved(enum.reserved)
        options = "".join(map(self._option_statement, self._options(enum.options)))
        rest = options + "".join(map(self._enum_value, values))
        visibility = f"{enum.visibility} " if enum.visibility else ""
        # After what is reserved there is no empty line here.
        inner = reserved + rest
        opened = "\n" if reserved or enum.options or enum.values else ""
        return f"{visibility}enum {enum.name} {{{opened}{_indented(inner)}}}\n"

    def _enum_value(self, value: EnumValue) -> str:
        return f"{value.name} = {value.number}{self._bracketed(value.options)};\n"

    def _service(self, service: Service) -> str:
        return self._block(
            f"service {service.name}",
            "".join(map(self._option_statement, self._options(service.options))),
            "".join(map(self._rpc, service.rpcs)),
        )

    def _rpc(self, rpc: Rpc) -> str:
        request = ("stream " if rpc.request_streams else "") + self._type_name(rpc.request)
        response = ("stream " if rpc.response_streams else "") + self._type_name(rpc.response)
        options = "".join(map(self._option_statement, self._options(rpc.options)))
        block = f" {{\n{_indented(options)}}}" if options else ""
        return f"rpc {rpc.name} ({request}) returns ({response}){block};\n"

    # Options.

    def _options(self, options: list[Option]) -> list[Option]:
        if self._ignore_extensions:
            options = [one for one in options if not one.is_extension or one.name.lstrip(".").startswith("confluent.")]
        if self._meanings is not None and options:
            return _NormalOptions(self._meanings, self._scope).normal(options)
        return options

    def _option_statement(self, option: Option) -> str:
        return f"option {self._option(option)};\n"

    def _bracketed(self, options: list[Option]) -> str:
        options = self._options(options)
        return f" {self._in_brackets([self._option(one) for one in options])}" if options else ""

    @staticmethod
    def _in_brackets(written: list[str]) -> str:
        if len(written) == 1:
            return f"[{written[0]}]"
        return f"[\n{_indented_each(written)}]"

    def _option(self, option: Option) -> str:
        name = f"({option.name})" if option.is_extension else option.name
        value = option.value
        if isinstance(value, Option):
            return f"{name}.{self._option(value)}"
        if isinstance(value, list):
            return f"{name} = {self._in_brackets([self._value(one) for one in value])}"
        return f"{name} = {self._value(value)}"

    def _value(self, value: object) -> str:
        if isinstance(value, str):
            return f'"{_escaped(value)}"'
        if isinstance(value, Word):
            return _normal_number(value.text) if self._meanings is not None and value.kind == "number" else value.text
        if isinstance(value, dict):
            members: Iterable[tuple[str, object]] = value.items()
            if self._meanings is not None:
                named = {self._literal_name(name): one for name, one in reversed(value.items()) if one != []}
                members = sorted(named.items(), key=lambda one: utf_16_order(one[0]))
            return f"{{\n{_indented_each([f'{name}: {self._value(one)}' for name, one in members])}}}"
        if isinstance(value, Option):
            return self._option(value)
        assert isinstance(value, list)
        if self._meanings is not None and len(value) == 1:
            return self._value(value[0])
        return f"[\n{_indented_each([self._value(one) for one in value])}]"

    def _literal_name(self, name: str) -> str:
        assert self._meanings is not None
        if not name.startswith("["):
            return name
        found = self._meanings.extension_name(name[1:-1], self._scope)
        return f"[{found}]" if found else name


class _NormalOptions:
    """Options with full names, in the order of their names, those of one message joined."""

    def __init__(self, meanings: Meanings, scope: str) -> None:
        self._meanings = meanings
        self._scope = scope

    def normal(self, options: list[Option]) -> list[Option]:
        by_name: dict[str, list[Option]] = {}
        for option in sorted(map(self._named, options), key=lambda one: utf_16_order(one.name)):
            by_name.setdefault(option.name, []).append(option)
        result: list[Option] = []
        for name, same in by_name.items():
            known = self._meanings.field_of_extension(name) if same[0].is_extension else None
            if known is None or known[0].label == "repeated":
                result += same
                continue
            joined = same[0]
            for option in same[1:]:
                joined = self._joined(*known, joined, option)
            result.append(joined)
        return result

    def _named(self, option: Option) -> Option:
        if not option.is_extension:
            return option
        name = self._meanings.extension_name(option.name, self._scope)
        return option if name is None else _as_literal(Option(name, option.value, True))

    def _joined(self, field: Field, scope: str, first: Option, second: Option) -> Option:
        second = _as_literal(second)
        if isinstance(first.value, dict) and isinstance(second.value, dict):
            value = self._joined_literals(field, scope, first.value, second.value)
            return Option(second.name, value, second.is_extension)
        return second

    def _joined_literals(
        self, field: Field | None, scope: str, first: dict[str, object], second: dict[str, object]
    ) -> dict[str, object]:
        parts = self._parts_of(field, scope)
        joined = dict(first)
        for name, value in second.items():
            part, part_scope = parts.get(name, (None, ""))
            joined[name] = self._joined_values(part, part_scope, joined[name], value) if name in joined else value
        return joined

    def _joined_values(self, field: Field | None, scope: str, first: object, second: object) -> object:
        if field is not None and field.label != "repeated":
            if isinstance(first, dict) and isinstance(second, dict):
                return self._joined_literals(field, scope, first, second)
            return second
        values: list[object] = list(first) if isinstance(first, list) else [first]
        for one in second if isinstance(second, list) else [second]:
            if one not in values:
                values.append(one)
        return values

    def _parts_of(self, field: Field | None, scope: str) -> dict[str, tuple[Field, str]]:
        if field is None or field.type in SCALARS or field.type.startswith("map<"):
            return {}
        name = self._meanings.type_name(field.type, scope)
        message = self._meanings.message(name)
        if message is None:
            return {}
        fields = (*message.fields, *(one for oneof in message.oneofs for one in oneof.fields))
        return {one.name: (one, name) for one in fields}


def _as_literal(option: Option) -> Option:
    """`(a).b.c = 1` as `(a) = {b: {c: 1}}`."""
    value = option.value
    if not isinstance(value, Option):
        return option
    inner = _as_literal(value)
    name = f"[{inner.name}]" if inner.is_extension else inner.name
    literal: object = inner.value
    for part in reversed(name.split(".")) if not inner.is_extension else (name,):
        literal = {part: literal}
    assert isinstance(literal, dict)
    return Option(option.name, literal, option.is_extension)


def _written_default(field: Field) -> str | Word:
    default = field.default
    assert default is not None
    if isinstance(default, str) and field.type == "bytes" and _PLAIN_WORD.fullmatch(default):
        return Word("enum", default)  # Confluent's registry writes bytes without quotes.
    if isinstance(default, str) and field.type not in ("string", "bytes"):
        return Word("enum", default) if _PLAIN_WORD.fullmatch(default) else default
    if isinstance(default, Word) and field.type == "string":
        return default.text
    return default


def _normal_number(text: str) -> str:
    """A number without an exponent and without zeros that mean nothing."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    try:
        if digits[:2].lower() == "0x":
            return sign + str(int(digits, 16))
        if len(digits) > 1 and digits[0] == "0" and digits.isdecimal():
            return sign + str(int(digits, 8))
        number = Decimal(digits.rstrip("fF"))
    except (ValueError, InvalidOperation):
        return text
    if not number.is_finite() or abs(number.adjusted()) > 400:
        return text
    plain = f"{number:f}"
    if "." in plain:
        plain = plain.rstrip("0").rstrip(".")
    return (sign if plain != "0" else "-" if sign else "") + plain


def _lowest_number(oneof: OneOf) -> int:
    return min((*(one.number for one in oneof.fields), *(one.number for one in oneof.groups)))


def _reserved_order(value: Reserved) -> tuple[int, bytes]:
    if isinstance(value, str):
        return 2**31 - 1, utf_16_order(value)
    if isinstance(value, int):
        return value, utf_16_order(str(value))
    return value.start, utf_16_order(f"{value.start}..{value.stop}")


def _escaped(text: str) -> str:
    return text.translate(_ESCAPED)


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" if line else "  \n" for line in text.split("\n")[:-1])


def _indented_each(written: list[str]) -> str:
    last = len(written) - 1
    return "".join(_indented(f"{one}{',' if place < last else ''}\n") for place, one in enumerate(written))
