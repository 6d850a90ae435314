"""The records of Kafka's own topics in words: JSON of the messages that they carry.

A coordinator's record has its type in the first two bytes of the key and its version in the first two of the value; a
metadata record has frame version, type and version in front, as varints. What does not decode is reported in place of
the record, and the next one is tried. The schemas are loaded when the first such record comes.
"""

import os
from collections.abc import Container
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from ottla.base.errors import ProtocolError
from ottla.cli.dump.decoders import PLAIN, Parser, Text, UndecodableRecordError
from ottla.cli.dump.kafka_json import Json, json_text, message_json
from ottla.records.record import Record

_SHORT = Struct(">h")
_METADATA_FRAME_VERSION = 1


class CoordinatorRecord(NamedTuple):
    """A coordinator's record, decoded. Without a value, and so without its version, it is a tombstone."""

    record_type: int
    key: dict[str, Json]
    version: int | None
    value: dict[str, Json] | None


def coordinator_record(
    facts: str, key: bytes, value: bytes | None, wanted: Container[int] | None = None
) -> CoordinatorRecord | None:
    """Decodes a record of the topic of `facts`: group-records, transaction-records or share-records.

    None for a type that is not known or, if some are, not `wanted`. Raises `ProtocolError` for what does not decode.
    """
    record_type = _short(key)
    if record_type not in _coordinator_messages(facts) or (wanted is not None and record_type not in wanted):
        return None
    key_class, value_class = _coordinator_messages(facts)[record_type]
    key_data = _decoded(key_class, key, 0)
    if value is None:
        return CoordinatorRecord(record_type, key_data, None, None)
    version = _short(value)
    return CoordinatorRecord(record_type, key_data, version, _decoded(value_class, value, version))


def coordinator(facts: str) -> Parser:
    """For the topic whose records are in `facts`, as `coordinator_record` takes it."""

    def parse(record: Record) -> tuple[Text, Text]:
        if record.key is None:
            raise UndecodableRecordError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            read = coordinator_record(facts, record.key, record.value)
            if read is None:
                return f"Unknown record type {_short(record.key)} at offset {record.offset}, skipping.", None
            key = json_text({"type": str(read.record_type), "data": read.key})
            if read.value is None:
                return key, "<DELETE>"
            return key, json_text({"version": str(read.version), "data": _with_members(read.value)})
        except ProtocolError as problem:
            return f"Error at offset {record.offset}, skipping. {problem}", None

    return parse


def cluster_metadata(record: Record) -> tuple[Text, Text]:
    try:
        return None, json_text(_metadata_json(record.value or b""))
    except ProtocolError as problem:
        return None, f"Error at {record.offset}, skipping. {problem}"


PARSERS: dict[str, Parser] = {
    "__consumer_offsets": coordinator("group-records"),
    "__transaction_state": coordinator("transaction-records"),
    "__share_group_state": coordinator("share-records"),
    "__cluster_metadata": cluster_metadata,
}


def parser_of(path: str) -> Parser:
    """The parser for the topic that a file is of, known by its directory."""
    directory, name = os.path.split(os.path.abspath(path))
    if name == "bootstrap.checkpoint":
        return cluster_metadata
    return PARSERS.get(os.path.basename(directory).rpartition("-")[0], PLAIN)


def _metadata_json(value: bytes) -> dict[str, Json]:
    from ottla.wire.codec import decode_from

    frame_version, position = _varint(value, 0)
    if frame_version != _METADATA_FRAME_VERSION:
        raise ProtocolError(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {_METADATA_FRAME_VERSION} is supported)"
        )
    record_type, position = _varint(value, position)
    version, position = _varint(value, position)
    if record_type not in _metadata_messages():
        raise ProtocolError(f"Unknown metadata id {record_type}")
    name, message_class = _metadata_messages()[record_type]
    message, _ = decode_from(message_class, value, position, version)
    return {"type": name, "version": version, "data": message_json(message, version)}


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    for at in range(position, min(len(data), position + 5)):
        number |= (data[at] & 0x7F) << shift
        shift += 7
        if data[at] < 0x80:
            return number, at + 1
    raise ProtocolError("Error while reading frame version" if position == 0 else "Error while reading type")


def _short(data: bytes) -> int:
    """The type or version in the first two bytes."""
    number: int = _SHORT.unpack_from(data.ljust(2, b"\0"))[0]
    return number


def _decoded(message_class: Any, data: bytes, version: int) -> dict[str, Json]:
    """What follows the two bytes of type or version."""
    from ottla.wire.codec import decode_from

    message, _ = decode_from(message_class, data, _SHORT.size, version)
    return message_json(message, version)


def _with_members(data: dict[str, Json]) -> dict[str, Json]:
    """A classic group's members carry the consumer protocol's own messages as bytes: shown decoded where they do."""
    if data.get("protocolType") == "consumer" and isinstance(data.get("members"), list):
        from base64 import b64decode

        from ottla.wire import messages

        nested = {
            "subscription": messages.ConsumerProtocolSubscription,
            "assignment": messages.ConsumerProtocolAssignment,
        }
        for member in data["members"]:  # type: ignore[union-attr]  # a list, as was asked above
            assert isinstance(member, dict)
            for name, message_class in nested.items():
                encoded = b64decode(str(member[name]))
                try:
                    member[name] = _decoded(message_class, encoded, _short(encoded))
                except ProtocolError:
                    continue  # another protocol under the same name: its bytes stay as they are
    return data


@cache
def _coordinator_messages(facts: str) -> dict[int, tuple[Any, Any]]:
    """Record types with the classes of their keys and values."""
    from ottla.wire import messages
    from ottla.wire.schema import message_names, message_schema

    keys = [message_schema(name) for name in message_names(facts) if name.endswith("Key")]
    return {
        key.api_key: (getattr(messages, key.name), getattr(messages, key.name.removesuffix("Key") + "Value"))
        for key in keys
    }


@cache
def _metadata_messages() -> dict[int, tuple[str, Any]]:
    """Record types with their names in Kafka's upper case and their classes."""
    from ottla.wire import messages
    from ottla.wire.schema import message_names, message_schema

    found = {}
    for name in message_names("metadata-records"):
        upper = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name).lstrip("_")
        found[message_schema(name).api_key] = (upper, getattr(messages, name))
    return found
