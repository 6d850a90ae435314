"""What is printed of a record: the formatters of Kafka's console consumer, by their Java names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from ottla.cli.failures import Terse
from ottla.records.kernel import ConsumerRecord

Headers = tuple[tuple[str, bytes | None], ...]
Shown = Callable[[str, bytes, Headers], bytes]

_PACKAGE: Final = "org.apache.kafka.tools.consumer."
DEFAULT: Final = f"{_PACKAGE}DefaultMessageFormatter"
_PARTS: Final = ("print.key", "print.timestamp", "print.partition", "print.offset", "print.epoch", "print.headers",
                 "print.value", "print.delivery")  # fmt: skip
_TEXTS: Final = ("key.separator", "line.separator", "headers.separator", "null.literal")
_DESERIALIZERS: Final = ("key.deserializer", "value.deserializer", "headers.deserializer")


class Formatter(Protocol):
    def __call__(self, record: ConsumerRecord) -> bytes:
        """What is written to standard output."""
        ...


def formatter(name: str, properties: Mapping[str, str]) -> Formatter:
    """Raises `Terse` for a name that is none, and for properties that it does not have."""
    match short_name := name.removeprefix(_PACKAGE):
        case "DefaultMessageFormatter":
            return DefaultFormatter(properties)
        case "LoggingMessageFormatter":
            return DefaultFormatter(properties)
        case "NoOpMessageFormatter":
            return lambda record: b""
    from ottla.cli.console.coordinator_formatters import COORDINATOR_FORMATTERS, coordinator_formatter

    if short_name not in COORDINATOR_FORMATTERS:
        raise Terse(name)
    if properties:
        raise Terse(f"{short_name} has no property {', '.join(properties)}; it has none")
    return coordinator_formatter(short_name)


class DefaultFormatter:
    """Fields in Kafka's order, with the separator between them and the end of a line after the last."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        known = (*_PARTS, *_TEXTS, *_DESERIALIZERS)
        if unknown := [name for name in properties if name not in known]:
            raise Terse(f"the formatter has no property {', '.join(unknown)}; it has {', '.join(known)}")
        if _is_true(properties, "print.delivery"):
            raise Terse("print.delivery is for share groups, and their consumer is not there yet")
        self._timestamp, self._partition = (
            _is_true(properties, "print.timestamp"),
            _is_true(properties, "print.partition"),
        )
        self._offset, self._epoch = _is_true(properties, "print.offset"), _is_true(properties, "print.epoch")
        self._headers, self._key = _is_true(properties, "print.headers"), _is_true(properties, "print.key")
        self._value = _is_true(properties, "print.value", "true")
        self._separator = properties.get("key.separator", "\t").encode()
        self._end = properties.get("line.separator", "\n").encode()
        self._between_headers = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self.show_key, self.show_value, self._show_header = (_shown(properties.get(name)) for name in _DESERIALIZERS)

    def __call__(self, record: ConsumerRecord) -> bytes:
        fields: list[bytes] = []
        if self._timestamp:
            fields.append(_timestamp(record).encode())
        if self._partition:
            fields.append(b"Partition:%d" % record.partition)
        if self._offset:
            fields.append(b"Offset:%d" % record.offset)
        if self._epoch:
            fields.append(b"Epoch:NOT_PRESENT")  # Kafka's tool has lost it by the time it formats
        if self._headers:
            fields.append(
                self._between_headers.join(self._header(record, one) for one in record.headers) or b"NO_HEADERS"
            )
        if self._key:
            fields.append(self._field(self.show_key, record, record.key))
        if self._value:
            fields.append(self._field(self.show_value, record, record.value))
        return self._separator.join(fields) + self._end if fields else b""

    def _header(self, record: ConsumerRecord, header: tuple[str, bytes | None]) -> bytes:
        return header[0].encode() + b":" + self._field(self._show_header, record, header[1])

    def _field(self, shown: Shown | None, record: ConsumerRecord, content: bytes | None) -> bytes:
        if content is None:
            return self._null
        return content if shown is None else shown(record.topic, content, record.headers)


def _is_true(properties: Mapping[str, str], name: str, default: str = "false") -> bool:
    return properties.get(name, default).strip().lower() == "true"


def _timestamp(record: ConsumerRecord) -> str:
    if record.timestamp < 0:
        return "NO_TIMESTAMP"
    kind = "LogAppendTime" if record.timestamp_type else "CreateTime"
    return f"{kind}:{record.timestamp}"


def _shown(name: str | None) -> Shown | None:
    """How a deserializer's values are printed; None leaves the bytes as they are."""
    if name is None:
        return None
    from ottla.client.serialization import deserializer

    try:
        deserialize = deserializer(name)
    except ValueError as problem:
        raise Terse(f"{name} is not a deserializer: it must be {problem}") from None

    def shown(topic: str, content: bytes, headers: Headers) -> bytes:
        value = deserialize(topic, content, headers)
        return value if isinstance(value, bytes) else str(value).encode()

    return shown
