"""Reads the YAML that deploy/ is written in: maps and lists by indentation, scalars, JSON in one line, comment lines.

Not more: what it does not know, and a key that is there twice, is an error, so the files stay plain.
"""

import json
import re
from typing import Any

_ENTRY = re.compile(r"([A-Za-z_][\w./-]*):(?: (.*))?$")


def documents(text: str) -> list[Any]:
    return [read(part) for part in re.split(r"^---$", text, flags=re.MULTILINE)]


def read(text: str) -> Any:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    value, rest = _block([(len(line) - len(line.lstrip()), line.strip()) for line in lines])
    if rest:
        raise ValueError(f"indented otherwise than what is before it: {rest[0][1]}")
    return value


Lines = list[tuple[int, str]]


def _block(lines: Lines) -> tuple[Any, Lines]:
    """What begins with the first line, and the lines after it."""
    depth = lines[0][0]
    if lines[0][1].startswith("- "):
        items = []
        while lines and lines[0][0] == depth and lines[0][1].startswith("- "):
            inner = lines[0][1][2:]
            if _ENTRY.fullmatch(inner):
                item, lines = _block([(depth + 2, inner), *lines[1:]])
            else:
                item, lines = _scalar(inner), lines[1:]
            items.append(item)
        return items, lines
    found: dict[str, Any] = {}
    while lines and lines[0][0] == depth:
        entry = _ENTRY.fullmatch(lines[0][1])
        if entry is None:
            raise ValueError(f"neither an entry nor an item: {lines[0][1]}")
        if entry[1] in found:
            raise ValueError(f"twice: {entry[1]}")
        lines = lines[1:]
        if entry[2] is not None:
            found[entry[1]] = _scalar(entry[2])
        elif lines and lines[0][0] > depth:
            found[entry[1]], lines = _block(lines)
        else:
            raise ValueError(f"{entry[1]} has no value")
    return found, lines


def _scalar(text: str) -> Any:
    if text[0] in '"[{' or re.fullmatch(r"\d+|true|false|null", text):
        return json.loads(text)
    if text[0] in "'&*!|>%@`" or ": " in text or " #" in text:
        raise ValueError(f"more of YAML than is read here: {text}")
    return text
