"""Keys and values of records as text, by Kafka's decoders or a function of the user's.

A parser takes a record and gives the texts of its key and its value; None is not printed. The parsers of Kafka's own
topics are in `internal_topics`.
"""

from collections.abc import Callable
from importlib import import_module

from ottla.base.errors import OttlaError
from ottla.records.record import Record

Text = str | None
Parser = Callable[[Record], tuple[Text, Text]]
Decoder = Callable[[bytes], object]

STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"


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
