"""Words and tables of tools: numbers, sizes and times for people; the nearest name; tables with a tab after each cell,
as those of Kafka's tools that have sub-commands.
"""

from collections.abc import Iterable, Iterator, Sequence


def tabbed_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns are as wide as their widest cell."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        yield "".join(f"{cell:{width}}\t" for cell, width in zip(row, widths, strict=True))


def counted(count: int, noun: str) -> str:
    """`1 broker`, `2 brokers`, `1,000 brokers`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a complaint about a name that there is not; nothing if none is near."""
    from difflib import get_close_matches  # only a mistyped name pays for it

    by_letters = {one.lstrip("-"): one for one in names}  # The dashes of options make none alike.
    nearest = get_close_matches(name.lstrip("-"), by_letters, n=1)
    return f" (did you mean {by_letters[nearest[0]]}?)" if nearest else ""


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 or not seconds else "< 1 s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} m" if hours < 48 else f"{hours // 24} d {hours % 24} h"
