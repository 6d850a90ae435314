"""Names for the things that are counted and addressed, and Kafka's text form of UUIDs."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from typing import NamedTuple, NewType

Uuid = NewType("Uuid", bytes)
"""Sixteen bytes. Kafka writes them in text as 22 characters of unpadded URL-safe base64."""

ZERO_UUID = Uuid(bytes(16))
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_", b"+/")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def random_uuid(randbytes: Callable[[int], bytes]) -> Uuid:
    """A random (version 4) UUID."""
    value = bytearray(randbytes(16))
    value[6] = value[6] & 0x0F | 0x40
    value[8] = value[8] & 0x3F | 0x80
    return Uuid(bytes(value))


def uuid_text(uuid: Uuid) -> str:
    return b2a_base64(uuid, newline=False)[:22].translate(_TO_URL).decode("ascii")


def uuid_hex_text(uuid: Uuid) -> str:
    """As Java writes a UUID, in hexadecimal digits with dashes. Members of classic groups have such names."""
    digits = uuid.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def parse_uuid(text: str) -> Uuid:
    """Reads Kafka's text form; raises `ValueError` for anything that is not 16 bytes of URL-safe base64."""
    if len(text) != 22:
        raise ValueError(f"not a UUID of 22 base64 characters: {text!r}")
    uuid = Uuid(a2b_base64(text.encode().translate(_FROM_URL) + b"=="))
    if uuid_text(uuid) != text:
        raise ValueError(f"not a UUID in URL-safe base64: {text!r}")
    return uuid
