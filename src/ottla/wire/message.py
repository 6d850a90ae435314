"""Message classes: one slotted class per message and per nested struct, with the fields of all versions.

A field that a version does not have keeps its default when that version is decoded. Arrays of structs are lists;
arrays of primitives are tuples when decoded and any sequence when built. `unknown_tags` holds tagged fields that the
schema does not know, as `(tag, content)` pairs: they are kept, and written again (KIP-482).
"""

from collections.abc import Callable, Iterator, Sized
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ottla.base.lent import Seen
from ottla.base.ports import Buffer
from ottla.wire import schema

try:
    from ottla.wire._native import like as like_of_native
except ImportError:  # there was no C compiler when the package was installed
    like_of_native = None  # type: ignore[assignment]

Payload = Buffer | Sized
"""What a `records` field may hold: bytes (always a `memoryview` when decoded), or a span of a file, known by its length
alone, that `encode_parts` passes through for `sendfile`.
"""

FRESH: Any = object()
"""Stands for a default that must be made anew for each message: an empty list or a struct."""

Decoder = Callable[[Seen, int], tuple[Any, int]]
"""Buffer and position to the message and the position after it."""

Encoder = Callable[[Any, list[Any], list[int]], None]
"""Appends a message's pieces to the first list, and to the second the index of each piece that is a records payload."""


class WireStruct:
    """A struct of the protocol: its fields are attributes, and keyword arguments of the constructor."""

    __slots__: tuple[str, ...] = ()
    _struct: ClassVar[schema.Struct]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # fields can be reassigned

    def __repr__(self) -> str:
        """Leaves out what has its default: most fields of most versions do."""
        shown = ", ".join(f"{name}={value!r}" for name, value in self._set_fields())
        return f"{type(self).__qualname__}({shown})"

    def _set_fields(self) -> Iterator[tuple[str, object]]:
        blank = type(self)()
        for name in self.__slots__:
            value = getattr(self, name)
            if not _same(value, getattr(blank, name)):
                yield name, value


class Message(WireStruct):
    """A whole request, response, header or record: what `ottla.wire.codec` encodes and decodes."""

    __slots__ = ()
    _schema: ClassVar[schema.Message]
    _decoders: ClassVar[dict[int, Decoder]]
    _encoders: ClassVar[dict[int, Encoder]]


StructT = TypeVar("StructT")

if TYPE_CHECKING or like_of_native is None:

    def like(prototype: StructT) -> StructT:
        """Another object of a slotted class with the same values, which the two share: what is a list in the prototype
        is to be replaced, or never changed. Quicker than the constructor where many are made that differ in little.
        """
        made = object.__new__(type(prototype))
        for kind in type(prototype).__mro__:
            for name in getattr(kind, "__slots__", ()):
                if hasattr(prototype, name):
                    setattr(made, name, getattr(prototype, name))
        return made

else:
    like = like_of_native


def _same(one: object, other: object) -> bool:
    """Equality that does not tell a list from a tuple: either may stand for an array."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def build_class(message: schema.Message, module: str) -> type[Message]:
    """Makes the class of a message, with its structs' classes as attributes."""
    known: dict[str, Any] = {"FRESH": FRESH}
    for struct in message.structs.values():
        known[struct.name] = _build(struct, WireStruct, known, f"{message.name}.{struct.name}", module)
    built: Any = _build(message.root, Message, known, message.name, module)
    built._schema = message
    for struct in message.structs.values():
        setattr(built, struct.name, known[struct.name])
    return built  # type: ignore[no-any-return]


def _build(
    struct: schema.Struct,
    base: type[WireStruct],
    known: dict[str, Any],
    qualified_name: str,
    module: str,
) -> type[WireStruct]:
    slots = (*(field.attribute for field in struct.fields), "unknown_tags")
    body = {"__slots__": slots, "__module__": module, "__qualname__": qualified_name, "_struct": struct}
    built: Any = type(struct.name, (base,), body)

    def compile_and_init(self: WireStruct, **fields: Any) -> None:
        """Of most messages that a node knows it makes none, so what makes one is compiled with the first."""
        built.__init__ = _compile_init(struct, known)
        built.__init__(self, **fields)

    built.__init__ = compile_and_init
    return built  # type: ignore[no-any-return]


def _compile_init(struct: schema.Struct, known: dict[str, Any]) -> Any:
    """An `__init__` with one keyword per field: compiled, as `**fields` would take any name and be slower.

    It finds the message's structs in `known` when it is called.
    """
    parameters, body = ["self", "*"], []
    for field in struct.fields:
        name = field.attribute
        if field.struct is None or field.defaults_to_null:
            parameters.append(f"{name}={field.default!r}")
            body.append(f"self.{name} = {name}")
        else:
            fresh = "[]" if field.is_array else f"{field.type}()"
            parameters.append(f"{name}=FRESH")
            body.append(f"self.{name} = {fresh} if {name} is FRESH else {name}")
    parameters.append("unknown_tags=()")
    body.append("self.unknown_tags = unknown_tags")
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body)
    made: dict[str, Any] = {}  # Of this call alone: threads may compile two structs of a message at once.
    exec(source, known, made)
    return made["__init__"]
