"""The help of a tool: options to the left, what they are for to the right, 80 columns wide, laid out as Kafka's is.

Either column is as wide as its widest cell and at most half of the whole. A line that is too long continues below, two
columns further in. It is broken after spaces, and inside words after a hyphen, colon, full stop or comma.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Final

from ottla.cli.options.table import Option, Program

WIDTH: Final = 80
SEPARATOR: Final = "  "
INDENT: Final = "  "


def help_text(program: Program) -> str:
    """All that `--help` prints after the summary. Options come in the order of their names."""
    rows = [(_left(option), _right(option)) for _, option in sorted(program.by_name.items())]
    title = "Option (* = required)" if any(option.is_required for option in program.options) else "Option"
    rows = [(title, "Description"), ("-" * len(title), "-----------"), *rows]
    left_width = min((WIDTH - len(SEPARATOR)) // 2, max(len(left) for left, _ in rows))
    right_width = min(WIDTH - left_width - len(SEPARATOR), max(len(right) for _, right in rows))
    lines: list[tuple[str, str]] = []
    for left, right in rows:
        lines += zip_longest(_fit(left, left_width), _fit(right, right_width), fillvalue="")
    left_width = max(len(left) for left, _ in lines)
    right_width = max(len(right) for _, right in lines)
    return "\n".join(f"{left:{left_width}}{SEPARATOR}{right:{right_width}}" for left, right in lines)


def _left(option: Option) -> str:
    mark = "* " if option.is_required else ""
    if not option.kind:
        return f"{mark}--{option.name}"
    begin, end = "[]" if option.is_optional else "<>"
    about = f": {option.about}" if option.about else ""
    return f"{mark}--{option.name} {begin}{option.kind}{about}{end}"


def _right(option: Option) -> str:
    if option.why_not:
        return f"{option.help} Not supported: {option.why_not}."
    return option.help if option.default is None else f"{option.help} (default: {option.default})"


def _fit(cell: str, width: int) -> list[str]:
    lines: list[str] = []
    for text in cell.split("\n"):
        line = ""
        for piece in _pieces(text):
            if len(line) + len(piece) > width and line:
                lines.append(line.rstrip())
                line = INDENT
            line += piece
        lines.append(line)
    return lines


def _pieces(text: str) -> Iterator[str]:
    """What stays together on a line, with the spaces after it."""
    at = 0
    while at < len(text):
        end = _end_of_piece(text, at)
        yield text[at:end]
        at = end


def _end_of_piece(text: str, at: int) -> int:
    for index in range(at, len(text) - 1):
        here, after = text[index], text[index + 1]
        if here == " " != after:
            return index + 1
        if here in "-:.," and after.isalpha():
            return index + 1
        if here.isalnum() and after == "(":
            return index + 1
    return len(text)
