"""Keys and values of records in words: text and numbers, or the records of Kafka's own internal topics.

A parser takes a record and gives the texts of its key and its value; None is not printed. A coordinator's
record has its type in the first two bytes of the key and its version in the first two of the value; a metadata record
has frame version, type and version in front, as varints. What does not decode is told in place of the
record, and the next one is tried. The schemas are loaded when the first such record comes.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from struct import Struct
from typing import Any

from ottla.base.errors import OttlaError, ProtocolError
from ottla.cli.dump.kafka_json import Json, json_text, message_json
from ottla.records.record import Record

Text = str | None
Parser = Callable[[Record], tuple[Text, Text]]
Decoder = Callable[[bytes], object]

STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"
_SHORT = Struct(">h")
_METADATA_FRAME_VERSION = 1


class UndecodableRecordError(OttlaError):
    """A record that the chosen decoder cannot be meant for."""


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(size: int) -> Decoder:
    def decode(data: bytes) -> int:
        if len(data) < size:
            raise UndecodableRecordError(f"{len(data)} bytes are not a number of {size}")
        return int.from_bytes(data[:size], "big", signed=True)

    return decode


_DECODERS: dict[str, Decoder] = {
    "StringDecoder": text,
    "IntegerDecoder": _number(4),
    "LongDecoder": _number(8),
    "DefaultDecoder": bytes.hex,
}


def decoder_named(name: str) -> Decoder:
    """One of Kafka's decoders by its class name, or any function of ours as `module:function`."""
    package, _, class_name = name.rpartition(".")
    if package in ("org.apache.kafka.tools.api", "kafka.serializer", "") and class_name in _DECODERS:
        return _DECODERS[class_name]
    module, colon, function = name.partition(":")
    if colon:
        try:
            found: Decoder = getattr(import_module(module), function)
        except (ImportError, AttributeError) as problem:
            raise OttlaError(f"no decoder {name}: {problem}") from problem
        return found
    raise OttlaError(f"no decoder {name}: use one of {', '.join(_DECODERS)}, or module:function for your own")


def plain(key: Decoder = text, value: Decoder = text) -> Parser:
    def parse(record: Record) -> tuple[Text, Text]:
        return (
            None if record.key is None else str(key(record.key)),
            None if record.value is None else str(value(record.value)),
        )

    return parse


PLAIN = plain()


def coordinator(facts: str) -> Parser:
    """For the topic whose records are in `facts`: group-records, transaction-records or share-records."""

    def parse(record: Record) -> tuple[Text, Text]:
        if record.key is None:
            raise UndecodableRecordError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            (record_type,) = _SHORT.unpack_from(record.key.ljust(2, b"\0"))
            if record_type not in _coordinator_messages(facts):
                return f"Unknown record type {record_type} at offset {record.offset}, skipping.", None
            key_class, value_class = _coordinator_messages(facts)[record_type]
            key: dict[str, Json] = {"type": str(record_type), "data": _decoded(key_class, record.key, 0)}
            if record.value is None:
                return json_text(key), "<DELETE>"
            (version,) = _SHORT.unpack_from(record.value.ljust(2, b"\0"))
            data = _decoded(value_class, record.value, version)
            return json_text(key), json_text({"version": str(version), "data": _with_members(data)})
        except ProtocolError as problem:
            return f"Error at offset {record.offset}, skipping. {problem}", None

    return parse


def cluster_metadata(record: Record) -> tuple[Text, Text]:
    try:
        return None, json_text(_metadata_json(record.value or b""))
    except ProtocolError as problem:
        return None, f"Error at {record.offset}, skipping. {problem}"


OF_TOPICS: dict[str, Parser] = {
    "__consumer_offsets": coordinator("group-records"),
    "__transaction_state": coordinator("transaction-records"),
    "__share_group_state": coordinator("share-records"),
    "__cluster_metadata": cluster_metadata,
}


def of_path(path: str) -> Parser:
    """The decoder for the topic that a file is of, known by its directory."""
    directory, name = os.path.split(os.path.abspath(path))
    if name == "bootstrap.checkpoint":
        return cluster_metadata
    return OF_TOPICS.get(os.path.basename(directory).rpartition("-")[0], PLAIN)


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
                    (version,) = _SHORT.unpack_from(encoded.ljust(2, b"\0"))
                    member[name] = _decoded(message_class, encoded, version)
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
