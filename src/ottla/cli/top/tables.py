"""Rows as text: numbers for people, and columns that fit them."""

from ottla.cli.top.rates import GroupRow, TopicRow, View

TOPIC_COLUMNS = ("TOPIC", "PARTITIONS", "RECORDS", "RECORDS/S", "SIZE", "BYTES/S", "")
GROUP_COLUMNS = ("GROUP", "STATE", "MEMBERS", "TOPICS", "LAG", "BEHIND", "RECORDS/S")


def plain(view: View) -> str:
    return "\n\n".join(
        (
            _table(TOPIC_COLUMNS, [topic_cells(row) for row in view.topics]),
            _table(GROUP_COLUMNS, [group_cells(row) for row in view.groups]),
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
        "-" if row.bytes_per_second is None else size(row.bytes_per_second),
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


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    lines = []
    for cells in (columns, *rows):
        first, *rest = (
            cell.ljust(width) if number == 0 else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        lines.append("  ".join((first, *rest)).rstrip())
    return "\n".join(lines)
