"""Rows on a terminal, drawn over and over. The only importer of rich, which `ottla[terminal]` installs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ottla.cli.top.rates import GroupRow, TopicRow, View
from ottla.cli.top.tables import GROUP_COLUMNS, TOPIC_COLUMNS, group_cells, topic_cells

_LATE_S = 60


class Show(Protocol):
    def __call__(self, view: View) -> None: ...


@contextmanager
def screen(title: str) -> Iterator[Show]:
    """The terminal's other screen, as long as it lasts: what was there before comes back."""
    with Live(Text("asking the cluster …"), screen=True, auto_refresh=False) as live:
        yield lambda view: live.update(drawn(view, title), refresh=True)


def drawn(view: View, title: str) -> Group:
    head = Text(f"{title}   {view.brokers} brokers, {len(view.topics)} topics, {len(view.groups)} groups", style="bold")
    foot = Text("Ctrl-C leaves", style="dim")
    topics = _table(TOPIC_COLUMNS)
    for row in view.topics:
        topics.add_row(*topic_cells(row), style=_topic_style(row))
    groups = _table(GROUP_COLUMNS)
    for one in view.groups:
        groups.add_row(*group_cells(one), style=_group_style(one))
    return Group(head, Text(), topics, Text(), groups, Text(), foot)


def _table(columns: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="bold cyan", pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    return table


def _topic_style(row: TopicRow) -> str:
    if row.offline_partitions:
        return "red"
    if row.under_replicated_partitions:
        return "yellow"
    return "" if row.records_per_second else "dim"


def _group_style(row: GroupRow) -> str:
    if row.lag_seconds is not None and row.lag_seconds >= _LATE_S:
        return "yellow" if row.members else "red"
    return "" if row.members else "dim"
