"""Generates the decoder of one message in one version: a single straight-line Python function.

Theory of operation. Fields are read in wire order. Fixed-width ones are not read at once but collect in a run, which
becomes one `struct` call. A variable-length field adds its length to the run, ends it, and becomes the head of the
next: for the usual short length, one call from a table of precompiled `Struct`s reads the content together with the
fixed-width fields after it and the next length. Long, null and broken lengths go to `reading`. The count of tagged
fields, which ends every struct of a flexible version, is one more byte of a run and nearly always zero.

Nested structs are written in line; arrays of structs are loops. `unpack_from` refuses to read beyond the buffer, so no
fixed-width read is checked separately: one handler around the function turns its complaint into a `TruncatedError`.
Slices do not complain, and allocations come before reads: these are checked against the bytes left.

A decoder in steps is the same function as a generator: it yields after every entry of an array, so that its caller can
do something else between two of them. It also bounds the entries of a message.
"""

from collections.abc import Callable, Generator
from struct import error as struct_error
from typing import Any

from ottla.base.lent import Seen
from ottla.wire import layout, reading, schema
from ottla.wire.faults import OversizeError, TagSizeError
from ottla.wire.head import Head
from ottla.wire.message import Decoder, Message
from ottla.wire.source import Source
from ottla.wire.varint import continue_varint, read_varint

_KNOWN: dict[str, Any] = {
    "StructError": struct_error,
    "TagSizeError": TagSizeError,
    "check_count": reading.check_count,
    "check_size": reading.check_size,
    "compact_length": reading.compact_length,
    "continue_varint": continue_varint,
    "invalid_text": reading.invalid_text,
    "new": object.__new__,
    "read_bytes": reading.read_bytes,
    "read_numbers": reading.read_numbers,
    "read_text": reading.read_text,
    "read_unknown_tags": reading.read_unknown_tags,
    "read_varint": read_varint,
    "truncated": reading.truncated,
}


def compile_decoder(message: type[Message], version: int) -> Decoder:
    generator = _Generator(message, version)
    generator.generate()
    label = f"decoder of {message.__name__} version {version}"
    return generator.source.compile("decode", label, _KNOWN)  # type: ignore[no-any-return]


Steps = Generator[None, None, tuple[Any, int]]
"""Yields between entries, and returns the message and the position after it."""

MOST_ENTRIES = 500_000
"""Of a message that is decoded in steps: what a hundred megabytes can hold otherwise takes gigabytes when decoded."""


def compile_step_decoder(message: type[Message], version: int) -> Callable[[Seen, int], Steps]:
    generator = _Generator(message, version, in_steps=True)
    generator.generate()
    label = f"step decoder of {message.__name__} version {version}"
    known = {**_KNOWN, "OversizeError": OversizeError, "read_numbers": _read_bounded_numbers}
    return generator.source.compile("decode", label, known)  # type: ignore[no-any-return]


def _read_bounded_numbers(buffer: Seen, position: int, count: int, element: str) -> tuple[tuple[Any, ...], int]:
    if count > MOST_ENTRIES:
        raise OversizeError(f"an array of {count} numbers", position)
    return reading.read_numbers(buffer, position, count, element)


def decoder_source(message: type[Message], version: int) -> str:
    """What `compile_decoder` compiles, for people to read."""
    generator = _Generator(message, version)
    generator.generate()
    return generator.source.show()


class _Generator:
    """Emits one decoder. `_head` and `_run` are what has been met and not yet been emitted."""

    def __init__(self, message: type[Message], version: int, *, in_steps: bool = False) -> None:
        self.in_steps = in_steps
        self.message = message
        self.schema = message._schema
        self.version = version
        self.flexible = version in self.schema.flexible
        self.source = Source()
        self._run: list[tuple[str, str]] = []  # (format, where the value goes)
        self._head: Head | None = None

    def generate(self) -> None:
        source = self.source
        with source.block("def decode(buffer, position):"):
            source.line("size = len(buffer)")
            if self.in_steps:
                source.line(f"entries_left = {MOST_ENTRIES}")
                source.line("yield")
            with source.block("try:"):
                self._struct(self.schema.root, "message")
                source.line("return message, position")
            with source.block("except (StructError, IndexError):"):
                source.line("raise truncated(buffer, position) from None")
            with source.block("except UnicodeDecodeError as error:"):
                source.line("raise invalid_text(position + error.start) from None")

    def _struct(self, struct: schema.Struct, target: str) -> None:
        """Reads a struct into a new object named `target`."""
        self.source.line(f"{target} = new({self._class(struct)})")
        for field in struct.fields:
            place = f"{target}.{field.attribute}"
            if field.mandatory_in(self.version):
                self._field(field, place)
            else:
                self._default(field, place)
        self.source.line(f"{target}.unknown_tags = ()")
        if self.flexible:
            self._tags(struct, target)
        else:
            self._flush()

    def _class(self, struct: schema.Struct) -> str:
        return self.source.bind(getattr(self.message, struct.name, self.message), struct.name)

    def _default(self, field: schema.Field, place: str) -> None:
        """Sets what this version does not carry. Defaults are assigned while a run is open: it sets other places."""
        if field.struct is None or field.defaults_to_null:
            self.source.line(f"{place} = {field.default!r}")
        elif field.is_array:
            self.source.line(f"{place} = []")
        else:
            self.source.line(f"{place} = {self._class(field.struct)}()")

    def _field(self, field: schema.Field, place: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array:
            length = self._length(field)
            if field.struct is None and field.type in layout.FORMATS:
                self._head = Head(field, place, length, nullable, self._flexible(field))
            else:
                self._array(field, place, length, nullable)
        elif field.type == "records":
            length = self._length(field)
            self._records(field, place, length, nullable)
        elif field.type in ("string", "bytes"):
            length = self._length(field)
            self._head = Head(field, place, length, nullable, self._flexible(field))
        elif field.struct is not None:
            self._nested(field.struct, place, nullable)
        else:
            self._run.append((layout.FORMATS[field.type], place))

    def _flexible(self, field: schema.Field) -> bool:
        return layout.is_flexible(self.schema, field, self.version)

    def _length(self, field: schema.Field) -> str:
        """Adds a field's length prefix to the run, which it ends; returns the variable it will be in."""
        length = self.source.name("n")
        self._run.append((layout.length_format(field.type, field.is_array, self._flexible(field)), length))
        self._flush()
        return length

    def _flush(self) -> None:
        """Emits the reads that have collected: the head's content and the run after it."""
        head, run = self._head, self._run
        self._head, self._run = None, []
        if head is None:
            self._read_run(run)
            return
        source = self.source
        formats = "".join(format for format, _ in run)
        places = [place for _, place in run]
        small = f"0 < {head.length} < {layout.SMALL}" if head.flexible else f"-1 < {head.length} < {layout.SMALL}"
        with source.block(f"if {small}:"):
            head.read_small(source, formats, places)
        if head.nullable:
            with source.block(f"elif {head.length} == {0 if head.flexible else -1}:"):
                source.line(f"{head.place} = None")
                self._read_run(run)
        with source.block("else:"):
            if head.flexible:
                source.line(f"{head.length}, position = compact_length(buffer, position, {head.length})")
            if head.flexible and head.nullable:  # null again: a varint may take more bytes than it needs
                with source.block(f"if {head.length} == -1:"):
                    source.line(f"{head.place} = None")
                with source.block("else:"):
                    head.read_any(source)
            else:
                head.read_any(source)
            self._read_run(run)

    def _read_run(self, run: list[tuple[str, str]]) -> None:
        if run:
            formats = "".join(format for format, _ in run)
            unpack = self.source.bind(layout.unpacker(formats), "unpack")
            targets = "".join(f"{place}, " for _, place in run)
            self.source.line(f"{targets}= {unpack}(buffer, position)")
            self.source.line(f"position += {layout.width(formats)}")

    def _nested(self, struct: schema.Struct, place: str, nullable: bool) -> None:
        target = self.source.name("struct")
        if not nullable:
            self._struct(struct, target)
            self.source.line(f"{place} = {target}")
            return
        presence = self.source.name("n")
        self._run.append(("b", presence))  # KIP-893: -1 for null, 1 for what follows
        self._flush()
        with self.source.block(f"if {presence} < 0:"):
            self.source.line(f"{place} = None")
        with self.source.block("else:"):
            self._struct(struct, target)
            self.source.line(f"{place} = {target}")

    def _records(self, field: schema.Field, place: str, length: str, nullable: bool) -> None:
        """A view of the input: what is stored or sent on is never copied here."""
        source = self.source
        if self._flexible(field):
            source.line(f"{length}, position = compact_length(buffer, position, {length})")
        if nullable:
            with source.block(f"if {length} == -1:"):
                source.line(f"{place} = None")
        with source.block("else:" if nullable else "if True:"):
            source.line(f"check_size(buffer, position, {length})")
            source.line(f"{place} = memoryview(buffer)[position:position + {length}]")
            source.line(f"position += {length}")

    def _array(self, field: schema.Field, place: str, count: str, nullable: bool) -> None:
        source = self.source
        if self._flexible(field):
            with source.block(f"if {count} > 127:"):
                source.line(f"{count}, position = compact_length(buffer, position, {count})")
            with source.block("else:"):
                source.line(f"{count} -= 1")
        if nullable:
            with source.block(f"if {count} == -1:"):
                source.line(f"{place} = None")
            with source.block("else:"):
                self._elements(field, place, count)
        else:
            self._elements(field, place, count)

    def _elements(self, field: schema.Field, place: str, count: str) -> None:
        source = self.source
        items = source.name("items")
        if field.struct is None:
            least = 1 if self._flexible(field) else 2
        else:
            least = layout.least_size(self.schema, field.struct, self.version) or 1
        with source.block(f"if {count} < 0 or {count} * {least} > size - position:"):
            source.line(f"check_count(buffer, position, {count}, {least})")
        if self.in_steps:
            source.line(f"entries_left -= {count}")
            with source.block("if entries_left < 0:"):
                source.line(f'raise OversizeError("more than {MOST_ENTRIES} entries", position)')
        source.line(f"{items} = []")
        with source.block(f"for _ in range({count}):"):
            if field.struct is None:
                self._text_element(field, items)
            else:
                target = source.name("struct")
                self._struct(field.struct, target)
                source.line(f"{items}.append({target})")
            if self.in_steps:
                source.line("yield")
        source.line(f"{place} = {items}" if field.struct else f"{place} = tuple({items})")

    def _text_element(self, field: schema.Field, items: str) -> None:
        assert field.type == "string", "the schema has arrays of strings, fixed-width primitives and structs only"
        text = self.source.name("text")
        length = self.source.name("n")
        flexible = self._flexible(field)
        self._run.append(("B" if flexible else "h", length))
        self._flush()
        self._head = Head(field._replace(is_array=False), text, length, False, flexible)
        self._flush()
        self.source.line(f"{items}.append({text})")

    def _tags(self, struct: schema.Struct, target: str) -> None:
        source = self.source
        count = source.name("tags")
        self._run.append(("B", count))
        self._flush()
        known = [field for field in struct.fields if field.tagged_in(self.version)]
        with source.block(f"if {count}:"):
            if not known:
                source.line(f"{target}.unknown_tags, position = read_unknown_tags(buffer, position, {count})")
                return
            with source.block(f"if {count} > 127:"):
                source.line(f"{count}, position = continue_varint(buffer, position, {count})")
            source.line(f"check_count(buffer, position, {count}, 2)")
            self._tag_loop(known, target, count)

    def _tag_loop(self, known: list[schema.Field], target: str, count: str) -> None:
        source = self.source
        tag, size, end, unknown = (source.name(prefix) for prefix in ("tag", "size", "end", "unknown"))
        source.line(f"{unknown} = []")
        with source.block(f"for _ in range({count}):"):
            source.line(f"{tag}, position = read_varint(buffer, position)")
            source.line(f"{size}, position = read_varint(buffer, position)")
            source.line(f"check_size(buffer, position, {size})")
            source.line(f"{end} = position + {size}")
            for index, field in enumerate(known):
                with source.block(f"{'elif' if index else 'if'} {tag} == {field.tag}:"):
                    self._tagged_field(field, f"{target}.{field.attribute}")
            with source.block("else:"):
                source.line(f"{unknown}.append(({tag}, bytes(buffer[position:{end}])))")
                source.line(f"position = {end}")
            with source.block(f"if position != {end}:"):
                source.line(
                    f'raise TagSizeError(f"tag {{{tag}}} announced {{{size}}} bytes and ends elsewhere", position)'
                )
        source.line(f"{target}.unknown_tags = tuple({unknown})")

    def _tagged_field(self, field: schema.Field, place: str) -> None:
        if field.struct is not None and not field.is_array and self.version in field.nullable:
            # Here alone the marker of a nullable struct is an unsigned varint: 0 for null, 1 for what follows.
            present = self.source.name("n")
            self.source.line(f"{present}, position = read_varint(buffer, position)")
            with self.source.block(f"if {present} == 0:"):
                self.source.line(f"{place} = None")
            with self.source.block("else:"):
                self._nested(field.struct, place, nullable=False)
        else:
            self._field(field, place)
            self._flush()
