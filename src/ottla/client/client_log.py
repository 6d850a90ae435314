"""What a client tells the log of its application: what goes wrong and is tried again, and how it ended.

How often, `base.pacing` says. When trouble is over, that is reported, if the trouble was. Nothing is written here:
`write` does that, on a thread that holds no lock of the client's (`client/io/log_writer.py`).
"""

from collections.abc import Callable, Hashable
from typing import Final, NamedTuple

from ottla.base.pacing import Pacing, and_more

DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40
"""As in Python's `logging`."""

LONG_S: Final = 5.0
"""What is tried again for longer is worth a line."""


class Line(NamedTuple):
    level: int
    about: Hashable
    """The kind of thing and its name, as `("broker", "127.0.0.1:9092")`."""
    text: str
    client: str = ""
    """Its `client.id`, if it has one: a program may have several clients."""


def _discard(line: Line) -> None:
    """For worlds in which nobody reads."""


class ClientLog:
    """One client's, which has this `client.id`."""

    def __init__(self, now_s: Callable[[], float], write: Callable[[Line], None] = _discard, name: str = "") -> None:
        self.name = name
        self._now_s = now_s
        self._write = write
        self._pacing = Pacing()

    def trouble(self, about: Hashable, text: str, *, level: int = WARNING, after_s: float = 0.0) -> None:
        """Something failed, and may fail again. With `after_s`, it is logged only if it still fails that much later."""
        left_out = self._pacing.due(about, self._now_s(), after_s)
        if left_out is not None:
            self.note(about, f"{text}{and_more(left_out)}", level=level)

    def over(self, about: Hashable, text: str) -> None:
        """The trouble has ended. Logged if the trouble was, with how long it lasted."""
        lasted_s = self._pacing.over(about, self._now_s())
        if lasted_s is not None:
            self.note(about, f"{text} after {lasted_s:.1f} s")

    def news(self, about: Hashable, text: str) -> None:
        """Something that happens now and then. Logged as troubles are when it happens too often."""
        self.trouble(about, text, level=INFO)
        self._pacing.over(about, self._now_s())

    def is_troubled(self, about: Hashable) -> bool:
        return self._pacing.is_on(about)

    def note(self, about: Hashable, text: str, *, level: int = INFO) -> None:
        """Something that happened once."""
        self._write(Line(level, about, text, self.name))
