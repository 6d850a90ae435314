"""JSON with its parts in colours, for a terminal."""

import json
import re
from typing import Any

from ottla.cli.colours import BLUE, CYAN, GREEN, YELLOW, Palette

_PARTS = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*")(?=\s*:)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>\b(?:true|false|null)\b)'
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
)
_COLOURS = {"name": BLUE, "text": GREEN, "word": YELLOW, "number": CYAN}


def json_shown(value: Any, paint: Palette, *, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    if not paint.is_on:
        return text
    return _PARTS.sub(lambda found: paint(found[0], _COLOURS[str(found.lastgroup)]), text)
