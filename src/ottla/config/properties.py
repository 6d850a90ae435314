r"""Properties files, as `java.util.Properties` reads and writes them: Kafka's `server.properties`, `meta.properties`.

The bytes are ISO 8859-1, because that is how Apache Kafka reads them: the same file means the same to both. Any other
character is written `\uXXXX`. References to configuration providers, `${…}`, are plain text here.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_BLANK: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {c: "\\" + c for c in "=:#!\\"}


def read_properties(content: bytes) -> dict[str, str]:
    r"""The keys and values of a file; of a key given twice, the last value.

    Raises `ValueError` for the one thing that is not allowed: `\u` without four hexadecimal digits.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(content.decode("iso-8859-1")):
        key, value = _split(line)
        properties[_unescape(key)] = _unescape(value)
    return properties


def write_properties(properties: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """A file that reads back as `properties`, in their order, under one `#` line a comment.

    Java writes the date as the last comment; the caller knows the time, so the caller brings that line.
    """
    lines = [f"#{comment}" for comment in comments]
    lines += [f"{_escape(key, key=True)}={_escape(value, key=False)}" for key, value in properties.items()]
    return "".join(f"{line}\n" for line in lines).encode("iso-8859-1")


def _logical_lines(text: str) -> Iterator[str]:
    r"""Lines without comments, blank lines and leading blanks, with those that end in a lone `\` joined to the next."""
    pending: str | None = None
    # str.splitlines would also split at form feeds and others, which are characters of a line here.
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            pending = None
            continue
        line = (pending or "") + line
        backslashes = len(line) - len(line.rstrip("\\"))
        pending = line[:-1] if backslashes % 2 else None
        if pending is None:
            yield line
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """The key ends at the first unescaped `=`, `:` or blank; blanks around one separator belong to neither side."""
    end = 0
    while end < len(line) and line[end] not in "=:" and line[end] not in _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    characters = iter(text)
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        escaped = next(characters, "")
        if escaped == "u":
            digits = "".join(next(characters, "") for _ in range(4))
            if len(digits) != 4 or not all(d in "0123456789abcdefABCDEF" for d in digits):
                raise ValueError(rf"\u needs four hexadecimal digits, not {digits!r}")
            out.append(chr(int(digits, 16)))
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java's characters are UTF-16 units: two escapes may be one character.
    return "".join(out).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escape(text: str, *, key: bool) -> str:
    out: list[str] = []
    for index, character in enumerate(text):
        if character == " " and (key or index == 0):
            out.append("\\ ")
        elif character in _ESCAPED:
            out.append(_ESCAPED[character])
        elif " " <= character <= "~":
            out.append(character)
        else:
            units = character.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2)]
    return "".join(out)
