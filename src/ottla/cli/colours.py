"""Colours on a terminal, and none when the output goes elsewhere or `NO_COLOR` is set (no-color.org)."""

import os
from typing import Final, TextIO

RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
BLUE: Final = "34"
CYAN: Final = "36"
BOLD: Final = "1"
DIM: Final = "2"


class Palette:
    """Paints text, or leaves it as it is."""

    __slots__ = ("is_on",)

    def __init__(self, is_on: bool) -> None:
        self.is_on = is_on

    def __call__(self, text: str, *codes: str) -> str:
        return f"\033[{';'.join(codes)}m{text}\033[0m" if self.is_on and codes else text


def palette_for(stream: TextIO) -> Palette:
    return Palette(stream.isatty() and not os.environ.get("NO_COLOR"))
