"""Messages inside records: what says, in the record's own bytes, which message and which version follow.

Three envelopes exist. Records of `__cluster_metadata` start with three varints: a frame version (1), the record's API
key and its version. Records of the coordinators' topics have a key that starts with an int16 saying which kind of
record it is, and a value that starts with an int16 version; no value is a tombstone. Smaller messages that travel as
plain bytes (the consumer protocol's, transaction markers) have the int16 version too.
"""

from enum import Enum
from functools import cache
from struct import Struct
from typing import TypeVar

from ottla.base.ports import Buffer
from ottla.wire import messages
from ottla.wire.codec import decode_from, encode
from ottla.wire.faults import DecodeError, TrailingBytesError, TruncatedError, UnsupportedVersionError
from ottla.wire.message import Message
from ottla.wire.schema import record_names
from ottla.wire.varint import encode_varint, read_varint

METADATA_FRAME_VERSION = 1
KEY_VERSION = 0
_INT16 = Struct(">h")
MessageT = TypeVar("MessageT", bound=Message)


class CoordinatorTopic(Enum):
    """The topics that coordinators keep their state in; each numbers its kinds of records for itself."""

    CONSUMER_OFFSETS = "group-records"
    TRANSACTION_STATE = "transaction-records"
    SHARE_GROUP_STATE = "share-records"


def encode_metadata_record(record: Message, version: int) -> bytes:
    return _metadata_envelope(record._schema.api_key, version) + encode(record, version)


@cache
def _metadata_envelope(api_key: int, version: int) -> bytes:
    return b"".join(map(encode_varint, (METADATA_FRAME_VERSION, api_key, version)))


def decode_metadata_record(data: Buffer) -> tuple[Message, int]:
    """The record, and the version it was written in."""
    frame_version, position = read_varint(data, 0)
    if frame_version != METADATA_FRAME_VERSION:
        raise DecodeError(f"a metadata record with frame version {frame_version}", 0)
    api_key, position = read_varint(data, position)
    version, position = read_varint(data, position)
    name = record_names("metadata-records", "metadata").get(api_key)
    if name is None:
        raise UnsupportedVersionError(f"the metadata record with API key {api_key}", version)
    record_type: type[Message] = getattr(messages, name)
    return _decode_rest(record_type, data, position, version), version


def encode_key(key: Message) -> bytes:
    """The key of a coordinator's record."""
    return _INT16.pack(key._schema.api_key) + encode(key, KEY_VERSION)


def decode_key(topic: CoordinatorTopic, data: Buffer) -> Message:
    """Raises `UnsupportedVersionError` for a kind of record that is not known: coordinators skip those."""
    kind = _int16(data)
    name = record_names(topic.value, "coordinator-key").get(kind)
    if name is None:
        raise UnsupportedVersionError(f"the record of kind {kind} in {topic.name}", KEY_VERSION)
    key_type: type[Message] = getattr(messages, name)
    return _decode_rest(key_type, data, _INT16.size, KEY_VERSION)


def decode_value(key: Message, data: Buffer) -> Message:
    """The value that belongs to a key; tombstones have none and are for the caller to tell."""
    value_type: type[Message] = getattr(messages, key._schema.name.removesuffix("Key") + "Value")
    return decode_versioned(value_type, data)


def encode_versioned(message: Message, version: int) -> bytes:
    """A message after its int16 version: a coordinator's value, a subscription, a marker."""
    return _INT16.pack(version) + encode(message, version)


def decode_versioned(message: type[MessageT], data: Buffer) -> MessageT:
    return _decode_rest(message, data, _INT16.size, _int16(data))


def _int16(data: Buffer) -> int:
    if len(data) < _INT16.size:
        raise TruncatedError("a record without its version", 0)
    return _INT16.unpack_from(data)[0]  # type: ignore[no-any-return]


def _decode_rest(message: type[MessageT], data: Buffer, position: int, version: int) -> MessageT:
    value, end = decode_from(message, data, position, version)
    if end != len(data):
        raise TrailingBytesError(f"{message.__name__} ends {len(data) - end} bytes early", end)
    return value
