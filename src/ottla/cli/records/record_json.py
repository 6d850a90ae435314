"""Records as JSON lines, there and back without loss.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1772366400000, "key": "k", "value": "v",
     "headers": [["h", "x"]]}

Text stands as it is; bytes that are no text are in `key_base64` and `value_base64`, and a header's as
`{"base64": …}`. To produce, `value` alone will do; a `value` or `key` that is not a string is sent as JSON.

JSON has no NaN and no infinity, though Python reads and writes them. They are refused where JSON is read, a number that
is too large for a double among them; what a decoder made of bytes is written as text there.
"""

import json
import math
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
    return to_json(fields, separators=(",", ":"))


def from_json(text: str | bytes) -> Any:
    """What JSON says, and no more than that. Raises `ValueError`."""
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def to_json(value: Any, **how: Any) -> str:
    """JSON of anything: what it has no form for is written as text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str, **how)
    except ValueError:
        return json.dumps(_with_text_for_nan(value), ensure_ascii=False, allow_nan=False, default=str, **how)


def parse_line(line: str | bytes) -> Outgoing:
    """Raises `NotARecord`, with the reason."""
    try:
        fields = from_json(line)
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
            _number(fields, "partition", 2**31),
            _number(fields, "timestamp", 2**63),
        )
    except UnicodeEncodeError as problem:
        raise NotARecord(f"half a character, which is not text: {problem.object[problem.start]!r}") from None


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
    content, encoded = fields.get(name), fields.get(f"{name}_base64")
    if encoded is not None:
        if content is not None:
            raise NotARecord(f"both {name} and {name}_base64")
        return _from_base64(name, encoded)
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


def _number(fields: dict[str, Any], name: str, below: int) -> int | None:
    """-1 is none, as Kafka writes it."""
    number = fields.get(name)
    if number is None or number == -1:
        return None
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < below:
        return number
    raise NotARecord(f"{name} must be a whole number, from 0 on and below 2^{below.bit_length() - 1}")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text} is too large for a double")
    return number


def _no_constant(text: str) -> Any:
    raise ValueError(f"JSON has no {text}")


def _with_text_for_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {_with_text_for_nan(name): _with_text_for_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text_for_nan(one) for one in value]
    return value


def _from_base64(name: str, encoded: Any) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except (ValueError, TypeError):
        raise NotARecord(f"{name} is not base64") from None
