"""Keys and values to bytes and back.

A serializer is any callable of topic, value and headers; it may add headers. A deserializer is one of topic, bytes and
headers. One that takes a single argument is given the value, or the bytes, alone. Ours are named in settings by a short
name (`value_serializer="json"`), or by the name of Java's class, so that a properties file means the same to both. None
stays None: it is a record without a key, or a tombstone, and neither kind is called for it.
"""

import struct
from collections.abc import Callable, Sequence
from functools import cache
from math import isinf
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from json import JSONDecoder, JSONEncoder

T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)

Header = tuple[str, bytes | None]
Buffer = bytes | bytearray | memoryview


class Serializer(Protocol[T_contra]):
    """Turns keys or values into bytes. What it raises reaches the caller as the cause of a `SerializationFailed`."""

    def __call__(self, topic: str, value: T_contra, headers: list[Header], /) -> Buffer: ...


class Deserializer(Protocol[T_co]):
    """Turns bytes into keys or values. What it raises reaches the caller as the cause of a `DeserializationFailed`."""

    def __call__(self, topic: str, content: bytes, headers: Sequence[Header], /) -> T_co: ...


def serialize_bytes(topic: str, value: Buffer, headers: list[Header]) -> Buffer:
    if isinstance(value, bytes | bytearray | memoryview):
        return value
    raise TypeError(f"expected bytes, got {type(value).__name__}: encode it, or set a serializer such as 'string'")


def deserialize_bytes(topic: str, content: bytes, headers: Sequence[Header]) -> bytes:
    return content


def serialize_string(topic: str, value: str, headers: list[Header]) -> bytes:
    return value.encode()


def deserialize_string(topic: str, content: bytes, headers: Sequence[Header]) -> str:
    return content.decode()


def serialize_json(topic: str, value: Any, headers: list[Header]) -> bytes:
    """Raises `ValueError` for NaN and for infinite numbers: JSON has none, and most of its readers refuse Python's."""
    return _json_encoder().encode(value).encode()


def deserialize_json(topic: str, content: bytes, headers: Sequence[Header]) -> Any:
    """Raises `ValueError` for text that is not JSON, NaN and Infinity too, and for numbers that no float can hold
    (1e400)."""
    from json import detect_encoding

    return _json_decoder().decode(content.decode(detect_encoding(content), "surrogatepass"))


@cache
def _json_encoder() -> "JSONEncoder":
    from json import JSONEncoder  # only for those who use it

    return JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@cache
def _json_decoder() -> "JSONDecoder":
    from json import JSONDecoder

    return JSONDecoder(parse_float=_finite, parse_constant=_no_constant)


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError(f"{text} is too large for a float: a deserializer of your own may read it, as a Decimal")
    return number


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON: a deserializer of your own may read it")


def _packer(format: str) -> Serializer[Any]:
    pack = struct.Struct(format).pack
    return lambda topic, value, headers: pack(value)


def _unpacker(format: str) -> Deserializer[Any]:
    unpack = struct.Struct(format).unpack
    return lambda topic, content, headers: unpack(content)[0]


# Numbers are big-endian, as Java's are.
_FORMATS: Final = {"short": ">h", "integer": ">i", "long": ">q", "float": ">f", "double": ">d"}

SERIALIZERS: Final[dict[str, Serializer[Any]]] = {
    "bytes": serialize_bytes,
    "string": serialize_string,
    "json": serialize_json,
    **{name: _packer(format) for name, format in _FORMATS.items()},
}
DESERIALIZERS: Final[dict[str, Deserializer[Any]]] = {
    "bytes": deserialize_bytes,
    "string": deserialize_string,
    "json": deserialize_json,
    **{name: _unpacker(format) for name, format in _FORMATS.items()},
}

_JAVA: Final = "org.apache.kafka.common.serialization."
_JAVA_NAMES: Final = {"bytearray": "bytes", "bytebuffer": "bytes"}

FoundT = TypeVar("FoundT", bound=Callable[..., Any])


def serializer(given: object) -> Serializer[Any]:
    """The serializer that a setting names or is; bytes if it is None. Raises `ValueError` that says what it must be."""
    return _find(given, SERIALIZERS, "Serializer")


def deserializer(given: object) -> Deserializer[Any]:
    """The deserializer that a setting names or is; bytes if it is None. Raises `ValueError` as `serializer` does."""
    return _find(given, DESERIALIZERS, "Deserializer")


def _of_three(given: Callable[..., Any]) -> Callable[..., Any]:
    """The callable; one that needs a single argument, as other clients have it, is given the value alone."""
    from inspect import Parameter, signature  # only for those who bring their own

    try:
        parameters = signature(given).parameters.values()
    except (TypeError, ValueError):  # some of Python's own do not tell
        return given
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in positional and one.default is Parameter.empty]
    return given if len(needed) != 1 else lambda topic, content, headers: given(content)


def _find(given: object, known: dict[str, FoundT], kind: str) -> FoundT:
    if given is None:
        return known["bytes"]
    if isinstance(given, str):
        name = given.removeprefix(_JAVA).removesuffix(kind).lower()
        if found := known.get(_JAVA_NAMES.get(name, name)):
            return found
    elif callable(given):
        return _of_three(given)  # type: ignore[return-value]  # what it takes and gives shows when it is called
    raise ValueError(f"one of {', '.join(known)}, Kafka's class of such a name, or a callable")
