"""What a tool says on standard error while its clients cannot reach the cluster: at once, and how long that lasts.

    kafka-topics: cannot connect to 127.0.0.1:29999: connection refused; trying again for 59 s

On a terminal that line is kept up to date until there is a connection, or the tool gives up. Elsewhere it is a line at
once, and then fewer and fewer. What else clients have to tell (a topic that does not exist, an offset that was reset)
is a line each, from warnings on.
"""

import os
import sys
from collections.abc import Hashable
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Final, TextIO

from ottla.client.client_log import INFO, WARNING, Line

DEFAULT_TIMEOUT_S: Final = 60.0
"""Of clients: `default.api.timeout.ms`."""
_TICK_S: Final = 1.0
_NEXT_TRY: Final = "; next try in "
_CLEAR: Final = "\r\x1b[K"
"""Of a line that shows progress and has no end yet."""
_UP_AND_CLEAR: Final = "\x1b[A\r\x1b[K"


class Notices:
    """`timeout_s` is how long the tool tries; None if it does so until it is stopped."""

    def __init__(self, program: str, timeout_s: float | None, stream: TextIO, *, is_live: bool) -> None:
        self.timeout_s = timeout_s
        self._program = program
        self._stream = stream
        self._is_live = is_live
        self._lock = Lock()
        self._troubled: dict[Hashable, str] = {}
        self._since_s = 0.0
        self._is_shown = False
        self._ended: Event | None = None

    def write(self, line: Line, at_s: float) -> None:
        """Called by any thread of a client."""
        with self._lock:
            if not (isinstance(line.about, tuple) and line.about[0] == "broker"):
                if line.level >= WARNING:
                    self._print(line.text)
            elif line.level <= INFO:
                self._troubled.pop(line.about, None)
                self._hide()
            else:
                if not self._troubled:
                    self._since_s = monotonic()
                self._troubled[line.about] = line.text.partition(_NEXT_TRY)[0]
                self._show(line)

    def end(self) -> None:
        """The tool has something to say itself, or nothing more."""
        with self._lock:
            self._troubled.clear()
            self._hide()

    def _show(self, line: Line) -> None:
        if line.level > WARNING:
            return  # It is not tried again: the tool itself ends with it.
        if not self._is_live:
            self._print(self._now(line.about))
            return
        self._draw(line.about)
        if self._ended is None:
            self._ended = Event()
            Thread(target=self._keep_drawing, args=(self._ended,), name="ottla-notices", daemon=True).start()

    def _keep_drawing(self, ended: Event) -> None:
        while not ended.wait(_TICK_S):
            with self._lock:
                if self._troubled and not ended.is_set():
                    self._draw(next(reversed(self._troubled)))

    def _draw(self, about: Hashable) -> None:
        again = _UP_AND_CLEAR if self._is_shown else _CLEAR
        self._put(f"{again}{_fitted(self._program, self._now(about), _columns(self._stream) - 1)}\n")
        self._is_shown = True

    def _hide(self) -> None:
        if self._ended is not None:
            self._ended.set()
            self._ended = None
        if self._is_shown:
            self._put(_UP_AND_CLEAR)
            self._is_shown = False

    def _now(self, about: Hashable) -> str:
        others = len(self._troubled) - 1
        more = f" (and {others} more)" if others else ""
        if self.timeout_s is None:
            return f"{self._troubled[about]}{more}; trying again"
        left_s = max(self.timeout_s - (monotonic() - self._since_s), 0)
        return f"{self._troubled[about]}{more}; trying again for {left_s:.0f} s"

    def _print(self, text: str) -> None:
        clear = (_UP_AND_CLEAR if self._is_shown else _CLEAR) if self._is_live else ""
        self._is_shown = False
        self._put(f"{clear}{self._program}: {text}\n")

    def _put(self, text: str) -> None:
        with suppress(OSError, ValueError):  # standard error is closed: there is nobody to tell
            self._stream.write(text)
            self._stream.flush()


def _fitted(program: str, text: str, width: int) -> str:
    """One line of the terminal: a second one could not be cleared. Its end is what changes."""
    line = f"{program}: {text}"
    if len(line) > width:
        line = text
    return line if len(line) <= width else f"{line[: width // 2]}…{line[len(line) - (width - 1) // 2 + 1 :]}"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


_notices: Notices | None = None


def tell_troubles(timeout_s: float | None = DEFAULT_TIMEOUT_S) -> None:
    """Has this process's clients tell what troubles them on standard error, in the manner of a tool."""
    global _notices
    from ottla.client.io.log_writer import write_by

    _notices = Notices(program_name(), timeout_s, sys.stderr, is_live=sys.stderr.isatty())
    write_by(_notices.write, at_once=True)


def try_for_ever() -> None:
    """From now on the tool does not give up."""
    if _notices is not None:
        _notices.timeout_s = None


def end_notices() -> None:
    if _notices is not None:
        _notices.end()


def program_name() -> str:
    name = os.path.basename(sys.argv[0]).removesuffix(".sh") if sys.argv else ""
    return f"ottla {sys.argv[1]}" if name in ("ottla", "main.py") and len(sys.argv) > 1 else name or "ottla"
