"""How far something is: a bar, how fast it goes and how long yet, on a line of a terminal that is written over.

████████████░░░░░░░░░░░░  50 %  1.2 of 2.4 GB, 104 MB/s, 12 s left
"""

import sys
import time
from typing import Final, TextIO

from ottla.cli.text_tables import duration, size

_EVERY_S: Final = 0.2
_WIDTH: Final = 24
_RATE_S: Final = 10.0
"""The rate is that of the last seconds, so that the time that is left follows what happens."""

CLEAR: Final = "\r\033[K"


def bar(done: float, total: float) -> str:
    share = min(1.0, max(0.0, done / total)) if total else 1.0
    filled = round(share * _WIDTH)
    return f"{'█' * filled}{'░' * (_WIDTH - filled)} {share:4.0%}"


class Pace:
    """How fast something goes, lately, and how long the rest takes at that pace."""

    def __init__(self, now_s: float) -> None:
        self._seen: list[tuple[float, float]] = [(now_s, 0.0)]

    def note(self, done: float, now_s: float) -> None:
        if now_s - self._seen[-1][0] >= _RATE_S / 20:
            self._seen.append((now_s, done))
        while len(self._seen) > 2 and now_s - self._seen[1][0] > _RATE_S:
            del self._seen[0]

    def rate(self, done: float, now_s: float) -> float:
        then_s, before = self._seen[0]
        return max(done - before, 0.0) / max(now_s - then_s, 0.001)

    def left_s(self, done: float, total: float, now_s: float) -> float | None:
        """None while nothing moves."""
        rate = self.rate(done, now_s)
        return (total - done) / rate if rate > 0 else None


def time_left(left_s: float | None) -> str:
    return "" if left_s is None else f", {duration(left_s)} left"


class Bar:
    """Of bytes, or of so many `unit`. Nothing is shown where the stream is no terminal."""

    def __init__(self, stream: TextIO, *, unit: str | None = None, is_quiet: bool = False) -> None:
        self._stream = stream
        self._unit = unit
        self._is_live = stream.isatty() and not is_quiet
        self._pace = Pace(time.monotonic())
        self._shown_s = 0.0

    def show(self, done: float, total: float, more: str = "") -> None:
        now_s = time.monotonic()
        self._pace.note(done, now_s)
        if not self._is_live or now_s - self._shown_s < _EVERY_S:
            return
        self._shown_s = now_s
        rate = self._pace.rate(done, now_s)
        if self._unit is None:
            amount = f"{size(done)} of {size(total)}, {size(rate)}/s"
        else:
            amount = f"{done:,.0f} of {total:,.0f} {self._unit}, {rate:,.0f}/s"
        left = time_left(self._pace.left_s(done, total, now_s))
        self._stream.write(f"{CLEAR}{bar(done, total)}  {amount}{left}{f', {more}' if more else ''}")
        self._stream.flush()

    def clear(self) -> None:
        if self._is_live and self._shown_s:
            self._stream.write(CLEAR)
            self._stream.flush()


class ProgressBar:
    """Of work in several parts, with what else there is to say. `total` and `done` count anything: offsets, partitions.

    `size_bytes` is shown beside them. Where standard error is no terminal, there are only the lines that are said.
    """

    def __init__(self, what: str, *, stream: TextIO | None = None, is_quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._is_quiet = is_quiet
        self.is_live = self._stream.isatty() and not is_quiet
        self._shown_s = 0.0
        self.restart(what, 0)

    def restart(self, what: str, total: int) -> None:
        """The next part of the work."""
        self.what, self.total, self.done, self.size_bytes = what, total, 0, 0
        self._began_s = time.monotonic()
        self._pace = Pace(self._began_s)

    def show(self) -> None:
        """Also for a while in which nothing came."""
        now_s = time.monotonic()
        if self.is_live and now_s - self._shown_s >= _EVERY_S:
            self._shown_s = now_s
            self._stream.write(f"{CLEAR}{self.line(now_s)}")
            self._stream.flush()

    def line(self, now_s: float) -> str:
        self._pace.note(self.done, now_s)
        seconds = max(now_s - self._began_s, 0.001)
        sizes = f", {size(self.size_bytes)}, {size(self.size_bytes / seconds)}/s" if self.size_bytes else ""
        left = time_left(self._pace.left_s(self.done, self.total, now_s)) if self.total else ""
        shown = bar(self.done, self.total or 1)
        return f"{shown}  {self.what}{sizes}{left}"

    @property
    def took_s(self) -> float:
        return max(time.monotonic() - self._began_s, 0.001)

    def say(self, line: str) -> None:
        """Something to know, also for those who want no progress; above the line that is written over."""
        self.clear()
        print(line, file=self._stream, flush=True)

    def end(self, line: str) -> None:
        """The last line, unless nobody wants progress."""
        self.clear()
        if not self._is_quiet:
            print(line, file=self._stream, flush=True)

    def clear(self) -> None:
        if self.is_live:
            self._stream.write(CLEAR)
            self._stream.flush()
