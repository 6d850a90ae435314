"""The text of a .proto file to elements: proto2, proto3 and editions.

Theory of operation. One regular expression cuts the text into tokens, in one pass; a parser goes down through the
grammar as protoc's does, with one token to look at. It takes a little more than protoc: what Confluent's registry
writes (a default of bytes without quotes, lists as values of options, `option map_entry`), since that has to be read
again. Whether names mean something and numbers are used once is not its affair (`linking`).

Depth and number of definitions are bounded. Errors have protoc's words where they are short enough to be known by.
"""

import re
from collections.abc import Callable
from typing import Final, cast

from ottla.schemas.json_text import LONGEST_NUMBER
from ottla.schemas.protobuf.elements import (
    MAX_FIELD_NUMBER,
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
    Reserved,
    ReservedList,
    Rpc,
    Service,
    Word,
)
from ottla.schemas.schema import InvalidSchema, Limits

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    |(?P<number>0[xX][0-9a-fA-F]++|(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?[fF]?)
    |(?P<string>"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)
    |(?P<symbol>[\x21-\x7e])
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"?])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPED: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_LABELS: Final = ("optional", "required", "repeated")
_EDITIONS: Final = ("2023", "2024")

Token = tuple[str, str, int]
"""Kind, text, and where it begins."""


def parse_file(text: str, limits: Limits) -> File:
    """The file that a text is. Raises `InvalidSchema`."""
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise InvalidSchema("the text has half of a surrogate pair, which UTF-8 cannot encode") from None
    if size > limits.text_bytes:
        raise InvalidSchema(f"the text has {size} bytes, and a schema may have {limits.text_bytes}")
    return _Parser(text, limits).file()


class _Parser:
    def __init__(self, text: str, limits: Limits) -> None:
        self._text = text
        self._limits = limits
        self._definitions = 0
        self._depth = 0
        self._syntax = "proto2"
        self._top_names: set[str] = set()
        self._tokens = self._tokenized()
        self._next = 0
        self._kind, self._word, self._start = self._tokens[0]

    # Tokens.

    def _tokenized(self) -> list[Token]:
        tokens: list[Token] = []
        most = self._limits.definitions * 15
        for found in _TOKEN.finditer(self._text):
            kind = cast("str", found.lastgroup)
            word = found[0]
            if kind == "space":
                if word.startswith("/*") and (len(word) < 4 or not word.endswith("*/")):
                    raise self._fault("End-of-file inside block comment.", found.start())
                continue
            if kind == "other":
                raise self._fault("Interpreting non ascii codepoint or control character.", found.start())
            if kind == "string" and (len(word) < 2 or word[-1] != word[0]):
                raise self._fault("String literals cannot cross line boundaries.", found.start())
            if kind == "number" and len(word) > LONGEST_NUMBER:
                raise self._fault(f"a number has more than {LONGEST_NUMBER} digits", found.start())
            if kind == "number" and _is_word_character(self._text[found.end() : found.end() + 1]):
                raise self._fault("Need space between number and identifier.", found.end())
            tokens.append((kind, word, found.start()))
            if len(tokens) > most:
                raise self._fault(f"more than {most} words and symbols", found.start())
        tokens.append(("end", "", len(self._text)))
        return tokens

    def _fault(self, reason: str, place: int | None = None) -> InvalidSchema:
        place = self._start if place is None else place
        line = self._text.count("\n", 0, place) + 1
        column = place - (self._text.rfind("\n", 0, place) + 1) + 1
        return InvalidSchema(reason, f"line {line}, column {column}")

    def _advance(self) -> str:
        word = self._word
        if self._kind != "end":
            self._next += 1
            self._kind, self._word, self._start = self._tokens[self._next]
        return word

    def _peek(self, ahead: int = 1) -> Token:
        place = min(self._next + ahead, len(self._tokens) - 1)
        return self._tokens[place]

    def _is(self, symbol: str) -> bool:
        return self._word == symbol and self._kind in ("symbol", "word")

    def _try(self, symbol: str) -> bool:
        if self._is(symbol):
            self._advance()
            return True
        return False

    def _need(self, symbol: str) -> None:
        if not self._try(symbol):
            raise self._fault(f'Expected "{symbol}".')

    def _name(self, what: str = "identifier") -> str:
        if self._kind != "word":
            raise self._fault(f"Expected {what}.")
        return self._advance()

    def _count(self) -> None:
        self._definitions += 1
        if self._definitions > self._limits.definitions:
            raise self._fault(f"more than {self._limits.definitions} messages, fields, values and options")

    def _full_name(self, what: str = "identifier", leading_dot: bool = False) -> str:
        parts = "." if leading_dot and self._try(".") else ""
        parts += self._name(what)
        while self._try("."):
            parts += "." + self._name(what)
        return parts

    def _integer(self, what: str) -> int:
        if self._kind != "number":
            raise self._fault(f"Expected {what}.")
        word = self._word
        try:
            if word[:2] in ("0x", "0X"):
                value = int(word, 16)
            elif len(word) > 1 and word[0] == "0":
                value = int(word, 8)
            else:
                value = int(word)
        except ValueError:
            raise self._fault(f"Expected {what}.") from None
        if value >= 1 << 64:
            raise self._fault("Integer out of range.")
        self._advance()
        return value

    def _string(self) -> str:
        if self._kind != "string":
            raise self._fault("Expected string.")
        pieces: list[str] = []
        while self._kind == "string":
            pieces.append(self._unescaped(self._word[1:-1]))
            self._advance()
        return _joined("".join(pieces))

    def _unescaped(self, text: str) -> str:
        if "\\" not in text:
            return text

        def one(found: re.Match[str]) -> str:
            simple, octal, hexadecimal, short, long, bad = found.groups()
            if simple:
                return _ESCAPED[simple]
            if octal or hexadecimal:
                byte = int(octal, 8) if octal else int(hexadecimal, 16)
                if byte > 255:
                    raise self._fault("Invalid escape sequence in string literal.")
                return chr(byte) if byte < 128 else chr(0xDC00 + byte)
            if bad is not None:
                raise self._fault("Invalid escape sequence in string literal.")
            point = int(short or long, 16)
            if point > 0x10FFFF or 0xD800 <= point < 0xE000:
                raise self._fault("Invalid escape sequence in string literal.")
            return chr(point)

        return _ESCAPE.sub(one, text)

    # The file.

    def file(self) -> File:
        file = File()
        if self._is("syntax"):
            self._advance()
            self._need("=")
            file.syntax = self._string()
            if file.syntax not in ("proto2", "proto3"):
                raise self._fault(f'Unrecognized syntax identifier "{file.syntax}".')
            self._need(";")
        elif self._is("edition"):
            self._advance()
            self._need("=")
            file.edition = self._string()
            if file.edition not in _EDITIONS:
                raise self._fault(f'Unknown edition "{file.edition}".')
            self._need(";")
        self._syntax = "editions" if file.edition is not None else file.syntax or "proto2"
        while self._kind != "end":
            self._top_level(file)
        return file

    def _top_level(self, file: File) -> None:
        if self._try(";"):
            return
        if self._kind != "word":
            raise self._fault('Expected top-level statement (e.g. "message").')
        word = self._word
        visibility = None
        if self._syntax == "editions" and word in ("export", "local") and self._peek()[1] in ("message", "enum"):
            visibility = self._advance()
            word = self._word
        if word == "message":
            self._add_type(file.types, self._message(visibility))
        elif word == "enum":
            self._add_type(file.types, self._enum(visibility))
        elif word == "service":
            file.services.append(self._service())
        elif word == "extend":
            file.extends.append(self._extend())
        elif word == "import":
            self._import(file)
        elif word == "package":
            if file.package is not None:
                raise self._fault("Multiple package definitions.")
            self._advance()
            file.package = self._full_name()
            self._need(";")
        elif word == "option":
            file.options.append(self._option_statement())
        else:
            raise self._fault('Expected top-level statement (e.g. "message").')

    def _add_type(self, types: list[Message | Enum], one: Message | Enum) -> None:
        if one.name in self._top_names:
            raise self._fault(f'"{one.name}" is already defined.')
        self._top_names.add(one.name)
        types.append(one)

    def _import(self, file: File) -> None:
        self._count()
        self._advance()
        modifier = self._advance() if self._kind == "word" and self._word in ("public", "weak", "option") else ""
        name = self._string()
        self._need(";")
        if len(file.import_order) >= self._limits.references:
            raise self._fault(f"more than {self._limits.references} imports")
        if name in file.import_order:
            raise self._fault(f'Import "{name}" was listed twice.')
        {
            "": file.imports,
            "public": file.public_imports,
            "weak": file.weak_imports,
            "option": file.option_imports,
        }[modifier].append(name)
        if modifier != "option":
            file.import_order.append(name)

    # Messages.

    def _message(self, visibility: str | None = None) -> Message:
        self._count()
        self._advance()
        message = Message(self._name("message name"), visibility=visibility)
        self._message_block(message)
        return message

    def _message_block(self, message: Message) -> None:
        self._depth += 1
        if self._depth > self._limits.type_depth:
            raise self._fault(f"messages are nested deeper than {self._limits.type_depth}")
        self._need("{")
        while not self._try("}"):
            if self._kind == "end":
                raise self._fault("Reached end of input in message definition (missing '}').")
            self._message_statement(message)
        self._depth -= 1

    def _message_statement(self, message: Message) -> None:
        if self._try(";"):
            return
        visibility = None
        if self._syntax == "editions" and self._word in ("export", "local") and self._peek()[1] in ("message", "enum"):
            visibility = self._advance()
        word = self._word
        if word == "message":
            message.types.append(self._message(visibility))
        elif word == "enum":
            message.types.append(self._enum(visibility))
        elif word == "extensions":
            message.extensions.append(self._extensions())
        elif word == "reserved":
            message.reserved.append(self._reserved())
        elif word == "extend":
            message.extends.append(self._extend())
        elif word == "option":
            message.options.append(self._option_statement())
        elif word == "oneof":
            message.oneofs.append(self._oneof())
        else:
            self._field_or_group(message.fields, message.groups)

    def _field_or_group(self, fields: list[Field], groups: list[Group], in_oneof: bool = False) -> None:
        self._count()
        place = self._definitions
        label: Label | None = None
        if self._word in _LABELS and self._kind == "word":
            label = cast("Label", self._word)
            if in_oneof:
                raise self._fault("Fields in oneofs must not have labels (required / optional / repeated).")
            if self._syntax == "proto3" and label == "required":
                raise self._fault("Required fields are not allowed in proto3.")
            if self._syntax == "editions" and label != "repeated":
                raise self._fault(f'Label "{label}" is not supported in editions.')
            self._advance()
        if self._is("map") and self._peek()[1] == "<":
            if label is not None:
                raise self._fault("Field labels (required/optional/repeated) are not allowed on map fields.")
            if in_oneof:
                raise self._fault("Map fields are not allowed in oneofs.")
            type = self._map_type()
        elif self._is("group") and self._peek()[0] == "word" and self._peek(2)[1] == "=":
            groups.append(self._group(label, place))
            return
        else:
            if label is None and self._syntax == "proto2" and not in_oneof:
                raise self._fault('Expected "required", "optional", or "repeated".')
            type = self._full_name("type name", leading_dot=True)
        name = self._name("field name")
        self._need("=")
        number = self._field_number()
        field = Field(label, type, name, number, place=place)
        if self._is("["):
            self._set_field_options(field)
        self._need(";")
        fields.append(field)

    def _field_number(self) -> int:
        number = self._integer("field number")
        if not 0 < number <= MAX_FIELD_NUMBER:
            raise self._fault(f"Field numbers must be from 1 to {MAX_FIELD_NUMBER}, not {number}.")
        return number

    def _map_type(self) -> str:
        self._advance()
        self._need("<")
        key = self._name("key type")
        self._need(",")
        value = self._full_name("value type", leading_dot=True)
        self._need(">")
        return f"map<{key}, {value}>"

    def _set_field_options(self, field: Field) -> None:
        for option in self._bracketed_options():
            if not option.is_extension and option.name == "default":
                if not isinstance(option.value, str | Word):
                    raise self._fault(f"A default of {field.name} must be a single value.")
                field.default = option.value
            elif not option.is_extension and option.name == "json_name":
                if not isinstance(option.value, str):
                    raise self._fault("Expected string for JSON name.")
                field.json_name = option.value
            else:
                field.options.append(option)

    def _group(self, label: Label | None, place: int) -> Group:
        if self._syntax == "proto3":
            raise self._fault("Groups are not supported in proto3 syntax.")
        if self._syntax == "editions":
            raise self._fault(
                "Group syntax is no longer supported in editions: use features.message_encoding = DELIMITED."
            )
        self._advance()
        name = self._name("group name")
        if not name[0].isupper():
            raise self._fault("Group names must start with a capital letter.")
        self._need("=")
        number = self._field_number()
        options = self._bracketed_options() if self._is("[") else []
        message = Message(name)
        self._message_block(message)
        return Group(label, name, number, message, options, place)

    def _oneof(self) -> OneOf:
        self._count()
        self._advance()
        oneof = OneOf(self._name("oneof name"))
        self._need("{")
        while not self._try("}"):
            if self._kind == "end":
                raise self._fault("Reached end of input in oneof definition (missing '}').")
            if self._try(";"):
                continue
            if self._is("option") and self._peek()[1] != ".":
                oneof.options.append(self._option_statement())
            else:
                self._field_or_group(oneof.fields, oneof.groups, in_oneof=True)
        return oneof

    def _extend(self) -> Extend:
        self._count()
        self._advance()
        extend = Extend(self._full_name("message type", leading_dot=True))
        self._need("{")
        while not self._try("}"):
            if self._kind == "end":
                raise self._fault("Reached end of input in extend definition (missing '}').")
            if not self._try(";"):
                self._field_or_group(extend.fields, extend.groups)
        return extend

    def _extensions(self) -> Extensions:
        self._count()
        self._advance()
        extensions = Extensions([])
        while True:
            first = self._field_number()
            extensions.values.append(self._up_to(first, MAX_FIELD_NUMBER, "field number range"))
            if not self._try(","):
                break
        if self._is("["):
            extensions.options = self._bracketed_options()
        self._need(";")
        return extensions

    def _up_to(self, first: int, most: int, what: str, signed: bool = False) -> int | range:
        if not self._try("to"):
            return first
        if self._try("max"):
            last = most
        else:
            sign = -1 if signed and self._try("-") else 1
            last = sign * self._integer(what)
        if last < first:
            raise self._fault("Range end must be greater than start number.")
        return range(first, last)

    def _reserved(self, of_enum: bool = False) -> ReservedList:
        self._count()
        self._advance()
        reserved: list[Reserved] = []
        while True:
            if self._kind == "string":
                if self._syntax == "editions":
                    raise self._fault("Reserved names must be identifiers in editions, not string literals.")
                reserved.append(self._string())
            elif self._kind == "word":
                if self._syntax != "editions":
                    raise self._fault("Reserved names must be string literals. (Only editions supports identifiers.)")
                reserved.append(self._advance())
            else:
                sign = -1 if of_enum and self._try("-") else 1
                first = sign * self._integer("number range")
                if not of_enum and not 0 < first <= MAX_FIELD_NUMBER:
                    raise self._fault(f"Field numbers must be from 1 to {MAX_FIELD_NUMBER}, not {first}.")
                most = (1 << 31) - 1 if of_enum else MAX_FIELD_NUMBER
                reserved.append(self._up_to(first, most, "number range", of_enum))
            if not self._try(","):
                break
        self._need(";")
        return ReservedList(reserved)

    # Enums and services.

    def _enum(self, visibility: str | None = None) -> Enum:
        self._count()
        self._advance()
        enum = Enum(self._name("enum name"), visibility=visibility)
        self._need("{")
        while not self._try("}"):
            if self._kind == "end":
                raise self._fault("Reached end of input in enum definition (missing '}').")
            if self._try(";"):
                continue
            if self._is("option") and self._peek()[1] != "=":
                enum.options.append(self._option_statement())
            elif self._is("reserved") and self._peek()[1] != "=":
                enum.reserved.append(self._reserved(of_enum=True))
            else:
                enum.values.append(self._enum_value())
        return enum

    def _enum_value(self) -> EnumValue:
        self._count()
        name = self._name("enum constant name")
        self._need("=")
        negative = self._try("-")
        number = self._integer("enum constant number")
        number = -number if negative else number
        if not -(1 << 31) <= number < 1 << 31:
            raise self._fault("Integer out of range.")
        options = self._bracketed_options() if self._is("[") else []
        self._need(";")
        return EnumValue(name, number, options)

    def _service(self) -> Service:
        self._count()
        self._advance()
        service = Service(self._name("service name"))
        self._need("{")
        while not self._try("}"):
            if self._kind == "end":
                raise self._fault("Reached end of input in service definition (missing '}').")
            if self._try(";"):
                continue
            if self._is("option"):
                service.options.append(self._option_statement())
            elif self._is("rpc"):
                service.rpcs.append(self._rpc())
            else:
                raise self._fault('Expected "rpc" or "option".')
        return service

    def _rpc(self) -> Rpc:
        self._count()
        self._advance()
        name = self._name("method name")
        request, request_streams = self._rpc_type()
        self._need("returns")
        response, response_streams = self._rpc_type()
        rpc = Rpc(name, request, response, request_streams, response_streams)
        if not self._try("{"):
            self._need(";")
            return rpc
        while not self._try("}"):
            if self._kind == "end":
                raise self._fault("Reached end of input in method options (missing '}').")
            if not self._try(";"):
                rpc.options.append(self._option_statement())
        return rpc

    def _rpc_type(self) -> tuple[str, bool]:
        self._need("(")
        streams = self._is("stream") and self._peek()[1] != ")" and self._try("stream")
        name = self._full_name("message type", leading_dot=True)
        self._need(")")
        return name, streams

    # Options.

    def _option_statement(self) -> Option:
        self._need("option")
        option = self._option()
        self._need(";")
        return option

    def _bracketed_options(self) -> list[Option]:
        self._need("[")
        options = [self._option()]
        while self._try(","):
            options.append(self._option())
        self._need("]")
        return options

    def _option(self) -> Option:
        """`name = value`, where a name is words and extensions in parentheses with dots between. Words in a row are one
        name, as Confluent's parser has it; each part after an extension is a level of its own."""
        self._count()
        parts: list[tuple[str, bool]] = []
        while True:
            if self._try("("):
                parts.append((self._full_name(leading_dot=True), True))
                self._need(")")
            elif parts and not parts[-1][1] and len(parts) == 1:
                parts[-1] = (f"{parts[-1][0]}.{self._name()}", False)
            else:
                parts.append((self._name(), False))
            if not self._try("."):
                break
        self._need("=")
        value = self._option_value()
        for name, is_extension in reversed(parts):
            value = Option(name, value, is_extension)
        return cast("Option", value)

    def _option_value(self) -> "str | Word | dict[str, object] | list[object] | Option":
        if self._kind == "string":
            return self._string()
        if self._is("{") or self._is("<"):
            return self._message_literal()
        if self._is("["):
            return self._list_literal()
        return self._word_value()

    def _word_value(self) -> Word:
        sign = "-" if self._try("-") else ""
        if self._kind == "number":
            return Word("number", sign + self._advance())
        if self._kind != "word":
            raise self._fault("Expected option value.")
        word = self._advance()
        if sign:
            if word.lower() not in ("inf", "infinity", "nan"):
                raise self._fault("Invalid '-' symbol before identifier.")
            return Word("number", sign + word)
        return Word("bool" if word in ("true", "false") else "enum", word)

    def _deeper(self, read: Callable[[], object]) -> object:
        self._depth += 1
        if self._depth > self._limits.type_depth:
            raise self._fault(f"values are nested deeper than {self._limits.type_depth}")
        value = read()
        self._depth -= 1
        return value

    def _message_literal(self) -> dict[str, object]:
        """Text format: `{ name: value, other { … } [extension]: value }`. A name that comes again makes a list."""
        end = "}" if self._advance() == "{" else ">"
        members: dict[str, object] = {}
        while not self._try(end):
            if self._kind == "end":
                raise self._fault("Unexpected end of stream while parsing aggregate value.")
            self._count()
            name = self._literal_name()
            if not self._try(":") and not (self._is("{") or self._is("<")):
                raise self._fault('Expected ":".')
            value = self._deeper(self._option_value)
            if name in members:
                known = members[name]
                if not isinstance(known, list):
                    known = members[name] = [known]
                known.extend(value if isinstance(value, list) else [value])
            else:
                members[name] = value
            if not self._try(","):
                self._try(";")
        return members

    def _literal_name(self) -> str:
        if not self._try("["):
            return self._name("field name")
        name = self._full_name()
        while self._try("/"):
            name += "/" + self._full_name()
        self._need("]")
        return f"[{name}]"

    def _list_literal(self) -> list[object]:
        self._advance()
        values: list[object] = []
        while not self._try("]"):
            if self._kind == "end":
                raise self._fault("Unexpected end of stream while parsing a list.")
            self._count()
            values.append(self._deeper(self._option_value))
            if not self._is("]"):
                self._need(",")
        return values


def _joined(text: str) -> str:
    """Bytes that were escaped one by one make up characters, where they are UTF-8."""
    if not any("\udc80" <= character <= "\udcff" for character in text):
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def _is_word_character(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
