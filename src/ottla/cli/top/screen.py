"""Rows on a terminal, drawn over and over. The only importer of rich, which `ottla[terminal]` installs."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ottla.cli.text_tables import counted
from ottla.cli.top.rates import GroupRow, TopicRow, View
from ottla.cli.top.tables import GROUP_COLUMNS, TOPIC_COLUMNS, fitted, group_cells, topic_cells

_LATE_S = 60


class Show(Protocol):
    def __call__(self, view: View) -> None: ...


@contextmanager
def screen(title: str) -> Iterator[Show]:
    """The terminal's other screen, as long as it lasts: what was there before comes back."""
    with Live(Text("asking the cluster …"), screen=True, auto_refresh=False) as live:
        yield lambda view: live.update(drawn(view, title, live.console.width), refresh=True)


@contextmanager
def waits_for_q() -> Iterator[Callable[[float], None]]:
    """A function that waits so many seconds, and raises `KeyboardInterrupt` when somebody types q meanwhile."""
    if not sys.stdin.isatty():
        yield time.sleep
        return
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)

    def wait(seconds: float) -> None:
        deadline_s = time.monotonic() + seconds
        while (left_s := deadline_s - time.monotonic()) > 0:
            if select.select([fd], [], [], left_s)[0] and os.read(fd, 1) in (b"q", b"Q", b""):
                raise KeyboardInterrupt

    try:
        yield wait
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def drawn(view: View, title: str, width: int) -> Group:
    held = (counted(view.brokers, "broker"), counted(len(view.topics), "topic"), counted(len(view.groups), "group"))
    head = Text(f"{title}   {', '.join(held)}", style="bold")
    foot = Text("q leaves; what is on disk is of all replicas", style="dim")
    fit = fitted(TOPIC_COLUMNS, [topic_cells(row) for row in view.topics], width)
    topics = _table(fit.titles)
    for row, cells in zip(view.topics, fit.rows, strict=True):
        topics.add_row(*cells, style=_topic_style(row))
    fit = fitted(GROUP_COLUMNS, [group_cells(one) for one in view.groups], width)
    groups = _table(fit.titles)
    for one, cells in zip(view.groups, fit.rows, strict=True):
        groups.add_row(*cells, style=_group_style(one))
    return Group(head, Text(), topics, Text(), groups, Text(), foot)


def _table(columns: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="bold cyan", pad_edge=False, padding=(0, 2, 0, 0))
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
