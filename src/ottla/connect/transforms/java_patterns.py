"""Java's regular expressions, with Python's engine, and replacements as `Matcher.replaceFirst` reads them.

Both languages write nearly the same. Named groups are rewritten; what Python does not know (classes within classes,
`\\p{…}`) is refused when a connector is configured.
"""

import re
from typing import Final

from ottla.connect.options import invalid

_NAMED: Final = re.compile(r"(?<!\\)\(\?<([a-zA-Z][a-zA-Z0-9]*)>")
_TOKENS: Final = re.compile(r"\\.|\[\^?\]?|\]|&&", re.DOTALL)
_REPLACEMENT: Final = re.compile(r"\\(.)|\$(?:\{(\w+)\}|(\d))|([\\$])", re.DOTALL)


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises `re.error`."""
    in_class = False
    for token in _TOKENS.finditer(pattern):
        if in_class and (token[0][0] == "[" or token[0] == "&&"):
            raise re.error("a class within a class is not supported", pattern, token.start())
        if token[0][0] == "[":
            in_class = True
        elif token[0] == "]":
            in_class = False
    return re.compile(_NAMED.sub(r"(?P<\1>", pattern), re.ASCII)


def option(name: str, pattern: str) -> re.Pattern[str]:
    """The same of an option. Raises `InvalidOption`."""
    try:
        return compiled(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise invalid(name, pattern, f"Invalid regex: {error}") from None


def replaced_first(pattern: re.Pattern[str], text: str, replacement: str) -> str:
    """The text with the first match replaced. Raises `ValueError` for a group that is not there."""
    found = pattern.search(text)
    if found is None:
        return text
    return text[: found.start()] + _expanded(found, replacement) + text[found.end() :]


def _expanded(found: re.Match[str], replacement: str) -> str:
    """Java takes as many digits of a group's number as there are groups for."""
    made: list[str] = []
    at = 0
    while (piece := _REPLACEMENT.search(replacement, at)) is not None:
        made.append(replacement[at : piece.start()])
        at = piece.end()
        if piece[1] is not None:
            made.append(piece[1])
        elif piece[2] is not None:
            if piece[2] not in found.re.groupindex:
                raise ValueError(f"No group with name {{{piece[2]}}}")
            made.append(found[piece[2]] or "")
        elif piece[3] is not None:
            number = int(piece[3])
            if number > found.re.groups:
                raise ValueError(f"No group {number}")
            while at < len(replacement) and replacement[at] in "0123456789":
                longer = number * 10 + int(replacement[at])
                if longer > found.re.groups:
                    break
                number, at = longer, at + 1
            made.append(found[number] or "")
        else:
            raise ValueError("Illegal group reference" if piece[4] == "$" else "character to be escaped is missing")
    return "".join(made) + replacement[at:]
