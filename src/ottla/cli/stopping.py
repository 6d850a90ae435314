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
