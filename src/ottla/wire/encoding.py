"""Generates the encoder of one message in one version: a single straight-line Python function.

Theory of operation. The mirror of `decoding`: fixed-width values and lengths collect in a run, which becomes one
`struct` call whose result is appended to the list of pieces; joining them is the caller's work. Records payloads are
appended as they are, and their place noted, so that they can be sent without being copied.

Nothing is validated in advance. `struct` refuses what does not fit, and whatever goes wrong makes `diagnosis` look for
the guilty field: errors may take their time. Two things go wrong silently, and are checked: a UUID that is not 16 bytes
long, and a value in a field that the version does not have. The latter is an error unless the field is ignorable.
"""

from typing import Any

from ottla.wire import layout, schema
from ottla.wire.diagnosis import encode_error
from ottla.wire.message import Encoder, Message
from ottla.wire.source import Source
from ottla.wire.varint import encode_varint
from ottla.wire.writing import check_text, check_uuid, payload_size, tag_section, write_numbers

_KNOWN: dict[str, Any] = {
    "check_text": check_text,
    "check_uuid": check_uuid,
    "encode_error": encode_error,
    "encode_varint": encode_varint,
    "payload_size": payload_size,
    "tag_section": tag_section,
    "write_numbers": write_numbers,
}


def compile_encoder(message: type[Message], version: int) -> Encoder:
    generator = _Generator(message, version)
    generator.generate()
    label = f"encoder of {message.__name__} version {version}"
    return generator.source.compile("encode", label, _KNOWN)  # type: ignore[no-any-return]


def encoder_source(message: type[Message], version: int) -> str:
    """What `compile_encoder` compiles, for people to read."""
    generator = _Generator(message, version)
    generator.generate()
    return generator.source.show()


class _Generator:
    """Emits one encoder. `_run` is what has been met and not yet been emitted; `_add` is where pieces go."""

    def __init__(self, message: type[Message], version: int) -> None:
        self.schema = message._schema
        self.version = version
        self.flexible = version in self.schema.flexible
        self.source = Source()
        self._run: list[tuple[str, str]] = []  # (format, expression)
        self._add = "add"

    def generate(self) -> None:
        source = self.source
        with source.block("def encode(message, pieces, payloads):"):
            source.line("add = pieces.append")
            with source.block("try:"):
                self._struct(self.schema.root, "message")
            with source.block("except Exception as error:"):
                source.line(f"raise encode_error(message, {self.version}, error) from None")

    def _struct(self, struct: schema.Struct, value: str) -> None:
        for field in struct.fields:
            if self.version not in field.versions and not field.ignorable:
                with self.source.block(f"if {self._is_set(field, f'{value}.{field.attribute}')}:"):
                    self.source.line(f'raise ValueError("{field.attribute} is not in this version")')
        for field in struct.fields:
            if field.mandatory_in(self.version):
                self._field(field, f"{value}.{field.attribute}")
        if self.flexible:
            self._tags(struct, value)
        else:
            with self.source.block(f"if {value}.unknown_tags:"):
                self.source.line('raise ValueError("this version has no tagged fields")')
            self._flush()

    def _is_set(self, field: schema.Field, place: str) -> str:
        """An expression that is true when a field has another value than its default."""
        if field.defaults_to_null:
            return f"{place} is not None"
        if field.is_array:
            return f"({place} is None or len({place}))" if field.nullable else f"len({place})"
        if field.struct is None:
            return f"{place} != {field.default!r}"
        parts = [
            f"{place}.unknown_tags",
            *(self._is_set(inner, f"{place}.{inner.attribute}") for inner in field.struct.fields),
        ]
        unset = f"{place} is None or " if field.nullable else ""
        return f"({unset}{' or '.join(parts)})"

    def _field(self, field: schema.Field, place: str) -> None:
        nullable = self.version in field.nullable
        if field.is_array or field.type in ("string", "bytes", "records"):
            self._variable(field, place, nullable)
        elif field.struct is not None:
            self._nested(field.struct, place, nullable)
        else:
            if field.type == "uuid":
                with self.source.block(f"if len({place}) != 16:"):
                    self.source.line(f"check_uuid({place})")
            self._run.append((layout.FORMATS[field.type], place))

    def _flush(self) -> None:
        run, self._run = self._run, []
        if run:
            self.source.line(f"{self._add}({self._pack(run)})")

    def _pack(self, run: list[tuple[str, str]]) -> str:
        if all(expression.isdecimal() for _, expression in run):
            return repr(layout.packer("".join(format for format, _ in run))(*(int(value) for _, value in run)))
        pack = self.source.bind(layout.packer("".join(format for format, _ in run)), "pack")
        return f"{pack}({', '.join(expression for _, expression in run)})"

    def _variable(self, field: schema.Field, place: str, nullable: bool) -> None:
        """A length, which ends the run, and content."""
        source = self.source
        value = source.name("value")
        source.line(f"{value} = {place}")
        if nullable:
            flexible = layout.is_flexible(self.schema, field, self.version)
            length_format = layout.length_format(field.type, field.is_array, flexible)
            with source.block(f"if {value} is None:"):
                null = "0" if flexible else "-1"
                source.line(f"{self._add}({self._pack([*self._run, (length_format, null)])})")
            with source.block("else:"):
                self._content(field, value)
        else:
            self._content(field, value)
        self._run = []

    def _content(self, field: schema.Field, value: str) -> None:
        source = self.source
        flexible = layout.is_flexible(self.schema, field, self.version)
        if field.is_array and field.type in layout.FORMATS:
            self._numbers(field, value, flexible)
        elif field.is_array:
            self._length(field, f"len({value})", flexible)
            element = source.name("item")
            with source.block(f"for {element} in {value}:"):
                if field.struct is not None:
                    self._struct(field.struct, element)
                else:
                    self._content(field._replace(is_array=False), element)
        elif field.type == "string":
            source.line(f"{value} = {value}.encode()")
            self._length(field, f"len({value})", flexible)
            source.line(f"{self._add}({value})")
        elif field.type == "bytes":
            self._length(field, f"len({value})", flexible)
            source.line(f"{self._add}({value})")
        else:
            assert self._add == "add", "records are never in a tagged field"
            self._length(field, f"payload_size({value})", flexible)
            source.line("payloads.append(len(pieces))")
            source.line(f"add({value})")

    def _length(self, field: schema.Field, size: str, flexible: bool) -> None:
        """Ends the run with a length."""
        source = self.source
        run, self._run = self._run, []
        if not flexible:
            length_format = layout.length_format(field.type, field.is_array, flexible)
            source.line(f"{self._add}({self._pack([*run, (length_format, size)])})")
            return
        length = source.name("n")
        source.line(f"{length} = {size} + 1")
        with source.block(f"if {length} < {layout.SMALL}:"):
            source.line(f"{self._add}({self._pack([*run, ('B', length)])})")
        with source.block("else:"):
            if field.type == "string" and not field.is_array:
                source.line(f"check_text({length})")
            if run:
                source.line(f"{self._add}({self._pack(run)})")
            source.line(f"{self._add}(encode_varint({length}))")

    def _numbers(self, field: schema.Field, value: str, flexible: bool) -> None:
        """An array of fixed-width elements: short ones together with the run before them."""
        source = self.source
        element = layout.FORMATS[field.type]
        if field.type == "uuid":
            with source.block(f"for item in {value}:"):
                source.line("check_uuid(item)")
        run, self._run = self._run, []
        count = source.name("n")
        source.line(f"{count} = len({value})")
        with source.block(f"if {count} < {layout.SMALL - 1}:"):
            run_and_length = [*run, ("B", f"{count} + 1") if flexible else ("i", count)]
            table = source.bind(layout.packers("".join(format for format, _ in run_and_length), element), "table")
            before = ", ".join(expression for _, expression in run_and_length)
            source.line(f"{self._add}({table}[{count}]({before}, *{value}))")
        with source.block("else:"):
            if run:
                source.line(f"{self._add}({self._pack(run)})")
            source.line(f"{self._add}(write_numbers({value}, {element!r}, {flexible}))")

    def _nested(self, struct: schema.Struct, place: str, nullable: bool) -> None:
        value = self.source.name("struct")
        self.source.line(f"{value} = {place}")
        if not nullable:
            self._struct(struct, value)
            return
        run, self._run = self._run, []
        with self.source.block(f"if {value} is None:"):
            self.source.line(f"{self._add}({self._pack([*run, ('b', '-1')])})")
        with self.source.block("else:"):
            self._run = [*run, ("b", "1")]  # KIP-893
            self._struct(struct, value)

    def _tags(self, struct: schema.Struct, value: str) -> None:
        source = self.source
        tagged = [field for field in struct.fields if field.tagged_in(self.version)]
        conditions = [f"{value}.unknown_tags"]
        conditions += [self._is_set(field, f"{value}.{field.attribute}") for field in tagged]
        run, self._run = self._run, []
        with source.block(f"if {' or '.join(conditions)}:"):
            if run:
                source.line(f"{self._add}({self._pack(run)})")
            tags = source.name("tags")
            source.line(f"{tags} = [*{value}.unknown_tags]")
            for field, condition in zip(tagged, conditions[1:], strict=True):
                with source.block(f"if {condition}:"):
                    self._tagged_field(field, f"{value}.{field.attribute}", tags)
            source.line(f"{self._add}(tag_section({tags}))")
        with source.block("else:"):
            source.line(f"{self._add}({self._pack([*run, ('B', '0')])})")

    def _tagged_field(self, field: schema.Field, place: str, tags: str) -> None:
        """The content is encoded apart, as its size comes first."""
        source = self.source
        content = source.name("content")
        source.line(f"{content} = []")
        outer, self._add = self._add, f"{content}.append"
        if field.struct is not None and not field.is_array and self.version in field.nullable:
            # Here alone the marker of a nullable struct is an unsigned varint: 0 for null, 1 for what follows.
            with source.block(f"if {place} is None:"):
                source.line(f'{content}.append(b"\\0")')
            with source.block("else:"):
                self._run = [("B", "1")]
                self._nested(field.struct, place, nullable=False)
        else:
            self._field(field, place)
            self._flush()
        self._add = outer
        source.line(f'{tags}.append(({field.tag}, b"".join({content})))')
