"""A line of text to a record: `headers` delimiter `key` separator `value`, of which the first two are asked for.

The properties are those of Kafka's LineMessageReader. Lines end at a newline, and a carriage return before it is
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from ottla.base.errors import OttlaError

KNOWN = (
    "parse.key",
    "parse.headers",
    "key.separator",
    "headers.delimiter",
    "headers.separator",
    "headers.key.separator",
    "ignore.error",
    "null.marker",
    "topic",
)


class LineError(OttlaError):
    """A line that is not as the properties say, or properties that cannot be distinguished."""

    def __str__(self) -> str:
        return f"org.apache.kafka.common.KafkaException: {super().__str__()}"


class ParsedLine(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class LineReader:
    def __init__(self, properties: Mapping[str, str]) -> None:
        def is_true(name: str) -> bool:
            return properties.get(name, "").strip().lower() == "true"

        if unknown := [name for name in properties if name not in KNOWN]:
            raise LineError(f"the reader of lines has no property {', '.join(unknown)}; it has {', '.join(KNOWN)}")
        self._parse_key, self._parse_headers = is_true("parse.key"), is_true("parse.headers")
        self._ignore_error = is_true("ignore.error")
        self._key_separator = properties.get("key.separator", "\t")
        self._delimiter = properties.get("headers.delimiter", "\t")
        self._separator = properties.get("headers.separator", ",")
        self._name_separator = properties.get("headers.key.separator", ":")
        self._null = properties.get("null.marker")
        self._check_separators()

    def _check_separators(self) -> None:
        delimiter, separator = ("headers.delimiter", self._delimiter), ("headers.separator", self._separator)
        name_separator, marker = ("headers.key.separator", self._name_separator), ("null.marker", self._null)
        for (first, one), (second, other) in (
            (delimiter, separator),
            (delimiter, name_separator),
            (separator, name_separator),
            (marker, ("key.separator", self._key_separator)),
            (marker, separator),
            (marker, delimiter),
            (marker, name_separator),
        ):
            if one == other:
                raise LineError(f"{first} and {second} may not be equal")

    def lines(self, source: BinaryIO) -> Iterator[ParsedLine]:
        for number, line in enumerate(source, 1):
            yield self.parse(line.rstrip(b"\n").removesuffix(b"\r").decode(errors="surrogateescape"), number)

    def parse(self, line: str, number: int) -> ParsedLine:
        begin = 0
        headers: list[tuple[str, bytes | None]] = []
        if (
            self._parse_headers
            and (text := self._until(line, 0, self._delimiter, "headers delimiter", number)) is not None
        ):
            begin = len(text) + len(self._delimiter)
            headers = self._headers(text, number)
        key = self._until(line, begin, self._key_separator, "key separator", number) if self._parse_key else None
        if key is not None:
            begin += len(key) + len(self._key_separator)
        return ParsedLine(self._bytes(key), self._bytes(line[begin:]), headers)

    def _until(self, line: str, begin: int, mark: str, what: str, number: int) -> str | None:
        at = line.find(mark, begin)
        if at >= 0:
            return line[begin:at]
        if self._ignore_error:
            return None
        raise LineError(f"No {what} found on line number {number}: '{line}'")

    def _headers(self, text: str, number: int) -> list[tuple[str, bytes | None]]:
        if not text or text == self._null:
            return []
        found: list[tuple[str, bytes | None]] = []
        for pair in text.split(self._separator):
            name, separator, value = pair.partition(self._name_separator)
            if not separator and not self._ignore_error:
                raise LineError(f"No header key separator found in pair '{pair}' on line number {number}")
            if name == self._null:
                raise LineError(f"Header keys should not be equal to the null marker '{name}' as they can't be null")
            found.append((name, self._bytes(value) if separator else None))
        return found

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null else text.encode(errors="surrogateescape")
