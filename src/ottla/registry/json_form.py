"""JSON as Confluent's registry writes it: compact, members in their order, UTF-8 as it is, Jackson's escapes."""

import re
from json import JSONEncoder
from typing import Any, Final

_ENCODER: Final = JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LOWER_CASE: Final = re.compile(r"(\\\\)|\\u00([01][0-9a-f])")


def json_text(value: Any) -> str:
    text = _ENCODER.encode(value)
    # Python writes control characters as \u001f, Jackson as \u001F. A backslash that is escaped begins no escape.
    return _LOWER_CASE.sub(_upper, text) if "\\u00" in text else text


def _upper(found: "re.Match[str]") -> str:
    return found[0] if found[1] else f"\\u00{found[2].upper()}"


def json_bytes(value: Any) -> bytes:
    return json_text(value).encode("utf-8", "surrogatepass")


def utf_16_order(text: str) -> bytes:
    """What Java's strings are compared by."""
    return text.encode("utf-16-be", "surrogatepass")
