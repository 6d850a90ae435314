"""The world of a client as ports: what time it is, timers, chance, and connecting. `client/io` has the real ones."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from ottla.base.errors import OttlaError
from ottla.base.ports import Clock, Dialer, Entropy, Timers
from ottla.client.client_log import ClientLog
from ottla.client.errors import ClientClosed
from ottla.client.promise import Promise, spawn

T = TypeVar("T")


class TlsFailed(OttlaError, OSError):
    """A dialler or a transport says so where TLS failed for a reason that trying again does not mend."""


class Aside(Protocol):
    """Runs what may wait (a request to a token provider) away from the loop, and promises what it returns."""

    def __call__(self, work: Callable[[], T], /) -> Promise[T]: ...


def _at_once(work: Callable[[], T]) -> Promise[T]:
    """For worlds without threads."""
    try:
        return Promise.resolved(work())
    except Exception as problem:
        return Promise.rejected(problem)


class ClientWorld:
    """`report` is notified of an exception that nobody awaits: a bug, to be logged with its traceback. `log` has lines
    for the log of the application.
    """

    __slots__ = ("aside", "clock", "dialer", "entropy", "log", "now_s", "report", "timers")

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        entropy: Entropy,
        dialer: Dialer,
        report: Callable[[Exception], None],
        aside: Aside = _at_once,
        log: ClientLog | None = None,
    ) -> None:
        self.clock = clock
        self.timers = timers
        self.entropy = entropy
        self.dialer = dialer
        self.report = report
        self.aside = aside
        self.now_s: Callable[[], float] = timers.now_s
        """Elapsed time, in which deadlines are given."""
        self.log = log or ClientLog(self.now_s)

    def sleep(self, delay_ms: float) -> Promise[None]:
        """Done after that time, in a later turn even if it is none."""
        over: Promise[None] = Promise()
        self.timers.after(delay_ms / 1000, lambda: over.resolve(None))
        return over

    def start(self, coroutine: Coroutine[Promise[Any], None, None]) -> Promise[None]:
        """Runs something in the background. That the client was closed ends it quietly; other errors are reported."""
        running = spawn(coroutine)
        running.on_done(self._report_failure)
        return running

    def within(self, promise: Promise[T], timeout_ms: float, error: Callable[[], Exception]) -> Promise[T]:
        """The same outcome, or that error if it takes longer. What is promised continues all the same."""
        if promise.is_done:
            return promise
        outcome: Promise[T] = Promise()
        timer = self.timers.after(timeout_ms / 1000, lambda: outcome.reject_if_waiting(error()))

        def settle(done: Promise[T]) -> None:
            timer.cancel()
            if outcome.is_done:
                return
            if done.error is not None:
                outcome.reject(done.error)
            else:
                outcome.resolve(done.value())

        promise.on_done(settle)
        return outcome

    def _report_failure(self, done: Promise[Any]) -> None:
        if done.error is not None and not isinstance(done.error, ClientClosed):
            self.report(done.error)
