"""Encodes and decodes whole messages. Each message and version gets its codec compiled when first used."""

from typing import Any, TypeVar

from ottla.base.lent import Seen
from ottla.wire.diagnosis import encode_error
from ottla.wire.faults import EncodeError, TrailingBytesError, UnsupportedVersionError
from ottla.wire.message import Message, Payload

MessageT = TypeVar("MessageT", bound=Message)
Piece = Payload
"""A part of an encoded message: bytes, or a records payload as it was given."""


def decode(message: type[MessageT], data: Seen, version: int) -> MessageT:
    """The message that all of `data` is. Records are views of `data`; everything else is copied."""
    try:
        decoder = message._decoders[version]
    except KeyError:
        raise UnsupportedVersionError(message.__name__, version) from None
    value, end = decoder(data, 0)
    if end != len(data):
        raise TrailingBytesError(f"{message.__name__} ends {len(data) - end} bytes early", end)
    return value  # type: ignore[no-any-return]


def decode_from(message: type[MessageT], data: Seen, position: int, version: int) -> tuple[MessageT, int]:
    """The message that starts at `position`, and the position after it."""
    try:
        decoder = message._decoders[version]
    except KeyError:
        raise UnsupportedVersionError(message.__name__, version) from None
    return decoder(data, position)


def encode(message: Message, version: int) -> bytes:
    """The message as one byte string. Records that are a span of a file need `encode_parts`."""
    pieces: list[Any] = []
    encode_into(message, version, pieces, [])
    return join(message, version, pieces)


def encode_parts(message: Message, version: int) -> list[Piece]:
    """The message as parts to be sent one after the other: records payloads as they were given, not copied, and
    byte strings of everything between them. Payloads may be buffers, or opaque spans of a file with a length.
    """
    pieces: list[Any] = []
    payloads: list[int] = []
    encode_into(message, version, pieces, payloads)
    return join_around(message, version, pieces, payloads)


def encode_into(message: Message, version: int, pieces: list[Any], payloads: list[int]) -> None:
    """Appends the message's pieces, and to `payloads` the index of each piece that is a records payload."""
    try:
        encoder = message._encoders[version]
    except KeyError:
        raise EncodeError(type(message).__name__, version, "(message)", "there is no such version") from None
    encoder(message, pieces, payloads)


def join(message: Message, version: int, pieces: list[Any]) -> bytes:
    try:
        return b"".join(pieces)
    except TypeError as error:
        raise encode_error(message, version, error) from None


def join_around(message: Message, version: int, pieces: list[Any], payloads: list[int]) -> list[Piece]:
    """Joins the pieces between payloads."""
    parts: list[Piece] = []
    start = 0
    for index in payloads:
        parts += join(message, version, pieces[start:index]), pieces[index]
        start = index + 1
    if start < len(pieces):
        parts.append(join(message, version, pieces[start:]))
    return parts
