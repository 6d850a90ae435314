"""What the demo shows: a live table on a terminal that has rich, and otherwise a line now and then."""

import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ottla.spark.demo.answers import Answers
    from ottla.spark.demo.job import Job

LINE_EVERY_S = 5.0
BAR = 40


class Scene(NamedTuple):
    """What is to be seen at a moment."""

    sent: int
    events: int
    node_mb: int
    job: "Job"
    answers: "Answers"


class Screen(Protocol):
    def show(self, scene: Scene) -> None: ...

    def tell(self, what: str) -> None:
        """A line that stays."""
        ...

    def close(self) -> None: ...


def open_screen() -> Screen:
    if sys.stdout.isatty():
        try:
            return LiveScreen()
        except ImportError:
            pass
    return PlainScreen()


class PlainScreen:
    """For pipes, logs and terminals without rich."""

    def __init__(self) -> None:
        self._shown_s = time.monotonic()

    def show(self, scene: Scene) -> None:
        if time.monotonic() - self._shown_s < LINE_EVERY_S:
            return
        self._shown_s = time.monotonic()
        best = scene.answers.top_bidders(1)
        bidder = f", top bidder {best[0][0]} with {best[0][1].total / 100:,.2f}" if best else ""
        print(
            f"    {scene.sent:>9,} of {scene.events:,} events; pipeline {scene.job.state}, "
            f"{scene.job.batches} batches; {len(scene.answers.prices)} windows closed{bidder}",
            flush=True,
        )

    def tell(self, what: str) -> None:
        print(what, flush=True)

    def close(self) -> None:
        """Nothing is held."""


class LiveScreen:
    """One table, drawn over itself, under the lines that stay."""

    def __init__(self) -> None:
        from rich.live import Live

        self._live = Live(refresh_per_second=4, transient=True)
        self._live.start()

    def show(self, scene: Scene) -> None:
        self._live.update(drawn(scene))

    def tell(self, what: str) -> None:
        self._live.console.print(what, highlight=False, markup=False)

    def close(self) -> None:
        self._live.stop()


def drawn(scene: Scene) -> Any:
    from rich.columns import Columns
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    share = scene.sent / scene.events
    bar = "━" * int(share * BAR) + "╌" * (BAR - int(share * BAR))
    colour = {"running": "green", "killed": "red"}.get(scene.job.state, "yellow")
    head = Text.assemble(
        (bar, "cyan"), f" {scene.sent:,} of {scene.events:,} events\n",
        "pipeline ", (scene.job.state, colour),
        f", {scene.job.batches} batches, {sum(scene.job.rows.values()):,} rows; node {scene.node_mb} MB",
    )  # fmt: skip
    prices = Table("category", "bids", "average price", title="Newest closed window", title_justify="left")
    for category, bids in scene.answers.last_window():
        prices.add_row(str(category), f"{bids.number:,}", f"{bids.total / bids.number / 100:,.2f}")
    bidders = Table("bidder", "bids", "bid in all", title="Top bidders", title_justify="left")
    for bidder, bids in scene.answers.top_bidders():
        bidders.add_row(bidder, f"{bids.number:,}", f"{bids.total / 100:,.2f}")
    return Group(head, Columns([prices, bidders], padding=(0, 4)))
