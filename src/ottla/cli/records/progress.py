"""How many records, how fast and how far: one line on a terminal that is written over, and a last one in the end.

Where standard error is not a terminal there is the last line alone.
"""

import sys
import time
from typing import TextIO

from ottla.cli.bars import CLEAR, Pace, bar, time_left
from ottla.cli.text_tables import counted

_EVERY_S = 0.2


class Progress:
    def __init__(self, verb: str, *, stream: TextIO | None = None, is_quiet: bool = False) -> None:
        self.count = 0
        self.size_bytes = 0
        self.total: int | None = None
        """How much there is to do, once it is known: records, or bytes if `is_in_bytes`. Then there is a bar."""
        self.is_in_bytes = False
        self._verb = verb
        self._stream = stream or sys.stderr
        self._is_quiet = is_quiet
        self._is_live = self._stream.isatty() and not is_quiet
        self._began_s = self._shown_s = time.monotonic()
        self._pace = Pace(self._began_s)

    def add(self, size_bytes: int) -> None:
        self.count += 1
        self.size_bytes += size_bytes
        if self._is_live and not self.count % 64:
            self.show()

    def show(self) -> None:
        """Also for a while in which nothing came."""
        now_s = time.monotonic()
        if self._is_live and now_s - self._shown_s >= _EVERY_S:
            self._shown_s = now_s
            self._stream.write(f"{CLEAR}{self._bar()}{self._line(now_s)}{self._left(now_s)}")
            self._stream.flush()

    def say(self, line: str) -> None:
        """Something to know, also for those who want no progress; above the line that is written over."""
        clear = CLEAR if self._is_live else ""
        print(f"{clear}{line}", file=self._stream, flush=True)

    def end(self, remark: str = "") -> None:
        if self._is_quiet:
            return
        clear = CLEAR if self._is_live else ""
        more = f", {remark}" if remark else ""
        print(f"{clear}{self._line(time.monotonic())}{more}", file=self._stream)

    @property
    def _done(self) -> int:
        return self.size_bytes if self.is_in_bytes else self.count

    def _bar(self) -> str:
        return f"{bar(self._done, self.total)}  " if self.total else ""

    def _left(self, now_s: float) -> str:
        self._pace.note(self._done, now_s)
        return time_left(self._pace.left_s(self._done, self.total, now_s)) if self.total else ""

    def _line(self, now_s: float) -> str:
        seconds = max(now_s - self._began_s, 0.001)
        size = self.size_bytes / 1e6
        return (
            f"{counted(self.count, 'record')} {self._verb}, {size:,.1f} MB in {seconds:.1f} s "
            f"({self.count / seconds:,.0f} records/s, {size / seconds:.1f} MB/s)"
        )
