"""SIGTERM and Ctrl-C, told to the loop as bytes that arrive.

Python's own handler writes the number of each signal to a socket, at whatever moment it comes; the loop reads it there
when it has the time. `loop.add_signal_handler` does the same, and needs a fifth more of asyncio's imports for it, to
make sure that its callback is no coroutine.
"""

import signal
import socket
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_MANY = 4096


@contextmanager
def signals_told(loop: AbstractEventLoop, numbers: set[signal.Signals], callback: Callable[[], None]) -> Iterator[None]:
    """While it lasts, `callback` is called on the loop for each of these signals. On the main thread only."""
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)

    def on_bytes() -> None:
        for number in reading.recv(_MANY):
            if number in numbers:
                callback()

    before_fd = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _told_already) for number in numbers}
    loop.add_reader(reading, on_bytes)
    try:
        yield
    finally:
        loop.remove_reader(reading)
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        reading.close()
        writing.close()


def _told_already(_number: int, _frame: object) -> None:
    """A signal without a handler would do what it does by default, and end the process."""
