"""Dates in the patterns of Java's SimpleDateFormat: the letters that dates and times are made of, and quoted text."""

import re
import time
from collections.abc import Callable

_PARTS = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)


def date_formatter(pattern: str) -> Callable[[int], str]:
    """For milliseconds since 1970, in local time. Raises `ValueError` for a letter that is not known here."""
    parts = [(found[0], found[1], found[2]) for found in _PARTS.finditer(pattern)]
    for whole, _, letter in parts:
        if letter and letter not in "yMdHhmsSaE":
            raise ValueError(
                f"{whole!r} in {pattern!r}: of SimpleDateFormat's letters only y, M, d, H, h, m, s, S, a, E work"
            )

    def format(time_ms: int) -> str:
        moment = time.localtime(time_ms // 1000)
        return "".join(
            _part(letter, len(whole), moment, time_ms % 1000)
            if letter
            else (quoted.replace("''", "'") or "'")
            if quoted is not None
            else whole
            for whole, quoted, letter in parts
        )

    return format


def _part(letter: str, width: int, moment: time.struct_time, milliseconds: int) -> str:
    match letter:
        case "y":
            return f"{moment.tm_year % 100:02d}" if width == 2 else f"{moment.tm_year:0{width}d}"
        case "M" if width >= 3:
            return time.strftime("%B" if width > 3 else "%b", moment)
        case "E":
            return time.strftime("%A" if width > 3 else "%a", moment)
        case "a":
            return "AM" if moment.tm_hour < 12 else "PM"
    number = {
        "M": moment.tm_mon,
        "d": moment.tm_mday,
        "H": moment.tm_hour,
        "h": moment.tm_hour % 12 or 12,
        "m": moment.tm_min,
        "s": moment.tm_sec,
        "S": milliseconds,
    }[letter]
    return f"{number:0{width}d}"
