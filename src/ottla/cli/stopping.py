"""Tools that run until they are told to stop: a TERM ends them as Ctrl-C does, so that they clean up and sum up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_terminate() -> Iterator[None]:
    """Raises `KeyboardInterrupt` inside the block when the process gets TERM."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """A TERM or Ctrl-C inside the block is raised at its end: what the block begins is not lost half begun."""
    heard: list[int] = []
    held = [number for number in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(number))]
    before = {number: signal.signal(number, lambda number, _frame: heard.append(number)) for number in held}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt
