"""Keys and values to bytes and back.

A serializer is any callable of topic, value and headers; it may add headers. A deserializer is one of topic, bytes and
headers. Ours are named in settings by a short name (`value_serializer="json"`), or by the name of Java's class, so that
a properties file means the same to both. None stays None: it is a record without a key, or a tombstone, and neither
kind is called for it.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

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
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def deserialize_json(topic: str, content: bytes, headers: Sequence[Header]) -> Any:
    import json

    return json.loads(content)


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


def _find(given: object, known: dict[str, FoundT], kind: str) -> FoundT:
    if given is None:
        return known["bytes"]
    if isinstance(given, str):
        name = given.removeprefix(_JAVA).removesuffix(kind).lower()
        if found := known.get(_JAVA_NAMES.get(name, name)):
            return found
    elif callable(given):
        return given  # type: ignore[return-value]  # what it takes and gives shows when it is called
    raise ValueError(f"one of {', '.join(known)}, Kafka's class of such a name, or a callable")
