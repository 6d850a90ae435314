"""How far something is, how fast it goes, and how long yet."""

import io

import pytest

from ottla.base.ids import TopicPartition
from ottla.cli import bars
from ottla.cli.bars import Bar, Pace, bar
from ottla.cli.reassign.waiting import Copied, copied_so_far
from ottla.client.admin.replicas import PartitionReassignment


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_as_full_as_what_is_done() -> None:
    assert bar(0, 10) == "░" * 24 + "   0%"
    assert bar(5, 10) == "█" * 12 + "░" * 12 + "  50%"
    assert bar(20, 10) == "█" * 24 + " 100%"
    assert bar(0, 0) == "█" * 24 + " 100%"


def test_the_time_that_is_left_follows_the_last_seconds() -> None:
    pace = Pace(0.0)
    for second in range(100):
        pace.note(second * 1.0, second)
    assert pace.left_s(99, 199, 99) == pytest.approx(100)
    for second in range(100, 120):
        pace.note(99 + (second - 99) * 10.0, second)
    assert pace.left_s(299, 399, 119) == pytest.approx(10)


def test_where_nothing_moves_nobody_knows_how_long() -> None:
    pace = Pace(0.0)
    pace.note(0, 60)
    assert pace.left_s(0, 100, 60) is None


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr(bars.time, "monotonic", lambda: now_s)
    terminal = Terminal()
    shown = Bar(terminal)
    now_s = 10.0
    shown.show(1e9, 2e9, "3 moves under way")
    assert terminal.getvalue() == (
        "\r\033[K" + "█" * 12 + "░" * 12 + "  50%  1.0 GB of 2.0 GB, 100.0 MB/s, 10 s left, 3 moves under way"
    )
    shown.clear()
    assert terminal.getvalue().endswith("\r\033[K")


def test_a_bar_elsewhere_is_nothing() -> None:
    stream = io.StringIO()
    shown = Bar(stream)
    shown.show(1, 2)
    shown.clear()
    assert stream.getvalue() == ""


def test_what_a_reassignment_has_copied() -> None:
    moving = {TopicPartition("orders", 0): PartitionReassignment((1, 2, 3, 4), (3, 4), (2,))}
    sizes = {
        (1, ("orders", 0), False): 1000,
        (2, ("orders", 0), False): 900,
        (3, ("orders", 0), False): 250,
        (4, ("orders", 0), False): 1200,  # a replica may have more for a moment: its segments are reserved
    }
    assert copied_so_far(moving, sizes) == Copied(1250, 2000)
