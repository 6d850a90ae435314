"""Commands that are told to stop, by Ctrl-C or by TERM, so that they clean up and sum up.

Only commands touch the handlers of signals; the clients, as any library, leave them to the program. A strike in the
middle of a client's step would end that step half-way. So a command's own handler waits for the end of the step: it
raises nothing then, and has itself called again a moment later.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
"""The exit status of what was stopped before it was done."""
_MOMENT_S: Final = 0.001


@contextmanager
def interrupts_between_steps() -> Iterator[None]:
    """Inside the block, Ctrl-C raises `KeyboardInterrupt` between two steps of our clients, and never in one."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # The shell has a command in the background ignore it; or somebody has a handler of their own.
        return
    with _handler(signal.SIGINT):
        yield


@contextmanager
def stop_on_terminate() -> Iterator[None]:
    """Raises `KeyboardInterrupt` inside the block when the process gets TERM, in the same way."""
    with _handler(signal.SIGTERM):
        yield


@contextmanager
def _handler(number: signal.Signals) -> Iterator[None]:
    before = signal.signal(number, _interrupt)
    try:
        yield
    finally:
        signal.signal(number, before)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    clients = sys.modules.get("ottla.client.io.loop_thread")
    if clients is None or not clients.is_inside_a_step():
        raise KeyboardInterrupt
    from threading import Timer, main_thread

    again = Timer(_MOMENT_S, signal.pthread_kill, (main_thread().ident, number))  # wakes it, too, if it sleeps by then
    again.daemon = True
    again.start()


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
