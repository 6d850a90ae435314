"""SIGTERM, SIGHUP and Ctrl-C, given to a node's loop as bytes that arrive.

Python's own handler writes the number of each signal to a socket, at whatever moment it comes; the loop reads it there
when it has the time.
"""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from ottla.runtime.loop import Loop

_MANY = 4096


def stop_signals(loop: Loop, callback: Callable[[str], None]) -> AbstractContextManager[None]:
    """Those that stop a node: TERM, HUP and Ctrl-C. The callback is given their names."""
    return signals_given_to(loop, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}, lambda number: callback(number.name))


@contextmanager
def signals_given_to(
    loop: Loop, numbers: set[signal.Signals], callback: Callable[[signal.Signals], None]
) -> Iterator[None]:
    """While it lasts, `callback` is called on the loop for each of these signals. On the main thread only.

    A signal that the process was started to ignore (`nohup`) stays ignored.
    """
    numbers = {number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN}
    reading, writing = socket.socketpair()
    reading.setblocking(False)
    writing.setblocking(False)

    def on_bytes() -> None:
        for number in reading.recv(_MANY):
            if number in numbers:
                callback(signal.Signals(number))

    before_fd = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _handled_already) for number in numbers}
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


def _handled_already(_number: int, _frame: object) -> None:
    """A signal without a handler would do what it does by default, and end the process."""
