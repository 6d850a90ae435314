"""JSON with its parts in colours, for a terminal."""

import re
from typing import Any

from ottla.cli.colours import BLUE, CYAN, GREEN, YELLOW, Palette
from ottla.cli.records.record_json import to_json

_PARTS = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>\b(?:true|false|null)\b)'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
)
_COLOURS = {"name": BLUE, "text": GREEN, "word": YELLOW, "number": CYAN}


def json_shown(value: Any, paint: Palette, *, indent: int | None = None) -> str:
    text = to_json(value, indent=indent)
    if not paint.is_on:
        return text
    return _PARTS.sub(lambda found: paint(found[0], _COLOURS[str(found.lastgroup)]), text)
