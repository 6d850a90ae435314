"""Rows as text: numbers for people, and columns that fit them, and the terminal."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.cli.text_tables import duration, size
from ottla.cli.top.rates import GroupRow, TopicRow, View


class Column(NamedTuple):
    """`short` is its title where there is little room; where there is less, columns go in the order of `goes`."""

    title: str
    short: str
    goes: int = 0
    """0 stays."""


TOPIC_COLUMNS: Final = (
    Column("TOPIC", "TOPIC"),
    Column("PARTITIONS", "PARTS", 3),
    Column("RECORDS", "RECORDS", 4),
    Column("RECORDS/S", "REC/S"),
    Column("ON DISK", "DISK", 2),
    Column("GROWTH", "GROWTH", 1),
    Column("", ""),
)
"""What is on disk, and its growth, are of all replicas."""
GROUP_COLUMNS: Final = (
    Column("GROUP", "GROUP"),
    Column("STATE", "STATE", 4),
    Column("MEMBERS", "MEMB", 3),
    Column("TOPICS", "TOPICS", 1),
    Column("LAG", "LAG"),
    Column("BEHIND", "BEHIND"),
    Column("RECORDS/S", "REC/S", 2),
)
_GAP: Final = 2
_LEAST_NAME: Final = 12


class Fitted(NamedTuple):
    titles: tuple[str, ...]
    rows: list[tuple[str, ...]]


def fitted(columns: Sequence[Column], rows: Sequence[tuple[str, ...]], width: int | None) -> Fitted:
    """What fits into so many columns of a terminal: shorter titles, then fewer columns, then shorter names."""
    chosen = list(range(len(columns)))
    titles = [column.title for column in columns]
    if width is not None and _width(titles, rows, chosen) > width:
        titles = [column.short for column in columns]
        for number in sorted((n for n, one in enumerate(columns) if one.goes), key=lambda n: columns[n].goes):
            if _width(titles, rows, chosen) <= max(width, 0):
                break
            if _width(titles, rows, chosen) - _longest(titles, rows, 0) + _LEAST_NAME <= width:
                break  # a shorter name is enough
            chosen.remove(number)
    name_width = _longest(titles, rows, 0)
    if width is not None:
        name_width = max(_LEAST_NAME, name_width - max(0, _width(titles, rows, chosen) - width))
    shown = [tuple(_cut(row[n], name_width) if n == 0 else row[n] for n in chosen) for row in rows]
    return Fitted(tuple(titles[n] for n in chosen), shown)


def _longest(titles: Sequence[str], rows: Sequence[tuple[str, ...]], number: int) -> int:
    return max(len(titles[number]), *(len(row[number]) for row in rows)) if rows else len(titles[number])


def _width(titles: Sequence[str], rows: Sequence[tuple[str, ...]], chosen: Sequence[int]) -> int:
    return sum(_longest(titles, rows, number) for number in chosen) + _GAP * (len(chosen) - 1)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def plain(view: View) -> str:
    return "\n\n".join(
        (
            _table(fitted(TOPIC_COLUMNS, [topic_cells(row) for row in view.topics], None)),
            _table(fitted(GROUP_COLUMNS, [group_cells(row) for row in view.groups], None)),
        )
    )


def topic_cells(row: TopicRow) -> tuple[str, ...]:
    wrong = []
    if row.offline_partitions:
        wrong.append(f"{row.offline_partitions} offline")
    if row.under_replicated_partitions:
        wrong.append(f"{row.under_replicated_partitions} under-replicated")
    return (
        row.topic,
        str(row.partitions),
        f"{row.records:,}",
        _rate(row.records_per_second),
        "-" if row.size_bytes is None else size(row.size_bytes),
        "-" if row.bytes_per_second is None else f"{size(row.bytes_per_second)}/s",
        ", ".join(wrong),
    )


def group_cells(row: GroupRow) -> tuple[str, ...]:
    return (
        row.group,
        row.state,
        str(row.members),
        str(row.topics),
        f"{row.lag_records:,}",
        "?" if row.lag_seconds is None else duration(row.lag_seconds),
        _rate(row.records_per_second),
    )


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _table(table: Fitted) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(table.titles, *table.rows, strict=True)]
    lines = []
    for cells in (table.titles, *table.rows):
        first, *rest = (
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        lines.append("  ".join((first, *rest)).rstrip())
    return "\n".join(lines)
