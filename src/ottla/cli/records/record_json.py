"""Records as JSON lines, there and back without loss.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1772366400000, "key": "k", "value": "v",
     "headers": [["h", "x"]]}

Text stands as it is; bytes that are no text are in `key_base64` and `value_base64`, and a header's as
`{"base64": …}`. To produce, `value` alone will do; a `value` or `key` that is not a string is sent as JSON.
"""

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.errors import OttlaError

if TYPE_CHECKING:
    from ottla.records.kernel import ConsumerRecord

Header = tuple[str, bytes | None]
_KNOWN = {"topic", "partition", "offset", "timestamp", "key", "key_base64", "value", "value_base64", "headers"}


class NotARecord(OttlaError):
    """A line that does not say what to send."""


class Outgoing(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def record_line(record: "ConsumerRecord", **decoded: Any) -> str:
    """`decoded` may have another `key` or `value` than the record's text."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    for name, content in (("key", record.key), ("value", record.value)):
        if name in decoded:
            fields[name] = decoded[name]
        else:
            _put(fields, name, content)
    if record.headers:
        fields["headers"] = [[name, _header(content)] for name, content in record.headers]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)


def parse_line(line: str | bytes) -> Outgoing:
    """Raises `NotARecord`, with the reason."""
    try:
        fields = json.loads(line)
    except ValueError as problem:
        raise NotARecord(f"not JSON: {problem}") from None
    if not isinstance(fields, dict):
        raise NotARecord("not a JSON object")
    if unknown := sorted(fields.keys() - _KNOWN):
        raise NotARecord(f"no record has {unknown[0]!r}; it may have {', '.join(sorted(_KNOWN))}")
    if not fields.keys() & {"key", "key_base64", "value", "value_base64"}:
        raise NotARecord("neither a key nor a value")
    try:
        return Outgoing(
            _content(fields, "value"),
            _content(fields, "key"),
            _headers(fields.get("headers")),
            _number(fields, "partition"),
            _number(fields, "timestamp"),
        )
    except UnicodeEncodeError as problem:
        raise NotARecord(f"half a character, which is no text: {problem.object[problem.start]!r}") from None


def _put(fields: dict[str, Any], name: str, content: bytes | None) -> None:
    text = _text(content)
    if content is None or text is not None:
        fields[name] = text
    else:
        fields[f"{name}_base64"] = b64encode(content).decode()


def _text(content: bytes | None) -> str | None:
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError:
        return None


def _header(content: bytes | None) -> Any:
    text = _text(content)
    return text if content is None or text is not None else {"base64": b64encode(content).decode()}


def _content(fields: dict[str, Any], name: str) -> bytes | None:
    if encoded := fields.get(f"{name}_base64"):
        return _from_base64(name, encoded)
    content = fields.get(name)
    if content is None or isinstance(content, str):
        return content if content is None else content.encode()
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _headers(given: Any) -> tuple[Header, ...]:
    """A list of pairs, or an object where no name is there twice."""
    pairs = list(given.items()) if isinstance(given, dict) else given or []
    headers: list[Header] = []
    for pair in pairs:
        match pair:
            case [str() as name, None]:
                headers.append((name, None))
            case [str() as name, str() as text]:
                headers.append((name, text.encode()))
            case [str() as name, {"base64": str() as encoded}]:
                headers.append((name, _from_base64(f"header {name}", encoded)))
            case (str() as name, value):
                headers.append((name, json.dumps(value, ensure_ascii=False).encode()))
            case _:
                raise NotARecord("headers must be pairs of a name and a value")
    return tuple(headers)


def _number(fields: dict[str, Any], name: str) -> int | None:
    number = fields.get(name)
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and number < 2**63):
        return None if number is None or number < 0 else number
    raise NotARecord(f"{name} must be a whole number, below 2^63")


def _from_base64(name: str, encoded: Any) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except (ValueError, TypeError):
        raise NotARecord(f"{name} is not base64") from None
