"""Names for the things that are counted and addressed, and Kafka's text form of UUIDs."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType

Uuid = NewType("Uuid", bytes)
"""Sixteen bytes. Kafka writes them in text as 22 characters of unpadded URL-safe base64."""

ZERO_UUID = Uuid(bytes(16))


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(uuid: Uuid) -> str:
    return urlsafe_b64encode(uuid)[:22].decode("ascii")


def parse_uuid(text: str) -> Uuid:
    """Reads Kafka's text form; raises `ValueError` for anything that is not 16 bytes of URL-safe base64."""
    if len(text) != 22:
        raise ValueError(f"not a UUID of 22 base64 characters: {text!r}")
    uuid = Uuid(urlsafe_b64decode(text + "=="))
    if uuid_text(uuid) != text:
        raise ValueError(f"not a UUID in URL-safe base64: {text!r}")
    return uuid
