r"""`--format`, as kcat's `-f`: what is written of a record, with nothing added.

%s %S    the value, its length (-1 for null)      %t    the topic
%k %K    the key, its length                      %p    the partition
%h       headers, as name=value,name=value        %o    the offset
%T       the time in milliseconds                 %R    the value's length as four bytes, big-endian
%%       a percent sign                           \n \r \t \\ \xNN    bytes
"""

from argparse import ArgumentTypeError
from collections.abc import Callable
from struct import pack
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from ottla.records.kernel import ConsumerRecord

Part: TypeAlias = "bytes | Callable[[ConsumerRecord], bytes]"

_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
_NULL: Final = b"NULL"


class RecordFormat:
    def __init__(self, parts: list["Part"]) -> None:
        self._parts = parts

    def __call__(self, record: "ConsumerRecord") -> bytes:
        return b"".join(part if isinstance(part, bytes) else part(record) for part in self._parts)


def record_format(text: str) -> RecordFormat:
    """For argparse. Raises `ArgumentTypeError` for what there is not."""
    parts: list[Part] = []
    rest = iter(text)
    for one in rest:
        if one == "%":
            token = next(rest, "")
            if token not in _TOKENS:
                known = ", ".join(f"%{name}" for name in _TOKENS)
                raise ArgumentTypeError(f"{text!r}: there is no %{token}; there are {known}")
            parts.append(_TOKENS[token])
        elif one == "\\":
            escape = next(rest, "")
            parts.append(_byte(next(rest, "") + next(rest, ""), text) if escape == "x" else _escaped(escape, text))
        else:
            parts.append(one.encode())
    return RecordFormat(parts)


def _escaped(escape: str, text: str) -> bytes:
    if escape not in _ESCAPES:
        raise ArgumentTypeError(f"{text!r}: there is no \\{escape}; there are \\n, \\r, \\t, \\0, \\\\ and \\xNN")
    return _ESCAPES[escape]


def _byte(digits: str, text: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: \\x is followed by two hexadecimal digits") from None


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _headers(record: "ConsumerRecord") -> bytes:
    return b",".join(name.encode() + b"=" + (_NULL if content is None else content) for name, content in record.headers)


_TOKENS: Final[dict[str, Part]] = {
    "s": lambda record: record.value or b"",
    "S": lambda record: b"%d" % _length(record.value),
    "R": lambda record: pack(">i", _length(record.value)),
    "k": lambda record: record.key or b"",
    "K": lambda record: b"%d" % _length(record.key),
    "T": lambda record: b"%d" % record.timestamp,
    "h": _headers,
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "%": b"%",
}
