"""What will be known later, and coroutines that wait for it: `async` and `await` without asyncio.

Theory of operation. A core runs on one thread at a time and never waits. What takes a round trip is a `Promise`, which
is resolved or rejected once, by a callback of the network or of a timer. Work of several round trips is an `async def`,
which `spawn` runs as far as it gets; it continues within the call that settles the promise it awaits. So a core reads
like straight code, sees no loop, and behaves the same under a thread, asyncio or a test.
"""

from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")
OnDone = Callable[["Promise[Any]"], None]


class Promise(Generic[T]):
    """A value or an error to come. Settling it twice is a bug, but for `resolve_if_waiting` and `reject_if_waiting`."""

    __slots__ = ("_callbacks", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: list[OnDone] | None = None

    @classmethod
    def resolved(cls, value: T) -> "Promise[T]":
        promise = cls()
        promise.resolve(value)
        return promise

    @classmethod
    def rejected(cls, error: Exception) -> "Promise[T]":
        promise = cls()
        promise.reject(error)
        return promise

    @property
    def error(self) -> Exception | None:
        """Why there will be no value; None as long as there may be one."""
        return self._error

    def value(self) -> T:
        """The value; raises the error. Only once it is done."""
        assert self.is_done, "nothing is known yet"
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # It is there, or there is an error.

    def resolve(self, value: T) -> None:
        self._value = value
        self._settle()

    def reject(self, error: Exception) -> None:
        self._error = error
        self._settle()

    def resolve_if_waiting(self, value: T) -> None:
        """As `resolve`, but the promise may have been settled before."""
        if not self.is_done:
            self.resolve(value)

    def reject_if_waiting(self, error: Exception) -> None:
        """As `reject`, but the promise may have been settled before."""
        if not self.is_done:
            self.reject(error)

    def on_done(self, callback: OnDone) -> None:
        """Calls back with this promise when it is done: at once, if it is."""
        if self.is_done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def forget(self, callback: OnDone) -> None:
        """Takes an `on_done` back: nobody waits any more. Else a promise that lasts would collect them."""
        if self._callbacks is not None and callback in self._callbacks:
            self._callbacks.remove(callback)

    def __await__(self) -> Generator["Promise[Any]", None, T]:
        if not self.is_done:
            yield self
        return self.value()

    def _settle(self) -> None:
        """Every callback is called, even if one fails or is interrupted; what was raised first is raised then."""
        assert not self.is_done, "a promise is settled once"
        self.is_done = True
        callbacks, self._callbacks = self._callbacks, None
        problem: BaseException | None = None
        for callback in callbacks or ():
            try:
                callback(self)
            except BaseException as raised:
                problem = problem or raised
        if problem is not None:
            raise problem


class _Running(Generic[T]):
    """A coroutine on its way. Only what it awaits holds it, so that it goes by its reference count when it is done."""

    __slots__ = ("_coroutine", "outcome")

    def __init__(self, coroutine: Coroutine["Promise[Any]", None, T]) -> None:
        self._coroutine = coroutine
        self.outcome: Promise[T] = Promise()

    def resume(self, _: "Promise[Any] | None" = None) -> None:
        while True:
            try:
                awaited = self._coroutine.send(None)
            except StopIteration as end:
                self.outcome.resolve(end.value)
                return
            except Exception as error:
                self.outcome.reject(error)
                return
            if not awaited.is_done:
                awaited.on_done(self.resume)
                return


def spawn(coroutine: Coroutine["Promise[Any]", None, T]) -> Promise[T]:
    """Runs a coroutine as far as it gets, and promises what it returns or raises."""
    running = _Running(coroutine)
    running.resume()
    return running.outcome


def all_settled(promises: Iterable[Promise[Any]]) -> Promise[None]:
    """Done when all of these are, whatever became of them."""
    waiting = [promise for promise in promises if not promise.is_done]
    outcome: Promise[None] = Promise()
    left = len(waiting)
    if not left:
        outcome.resolve(None)

    def count_down(_: Promise[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            outcome.resolve(None)

    for promise in waiting:
        promise.on_done(count_down)
    return outcome


class _First:
    """Waits for the first of several. Like `_Running`, it goes by its reference count."""

    __slots__ = ("_waiting", "outcome")

    def __init__(self, waiting: list[Promise[Any]]) -> None:
        self._waiting = waiting
        self.outcome: Promise[None] = Promise()
        for promise in waiting:
            promise.on_done(self.settle)

    def settle(self, _: Promise[Any]) -> None:
        waiting, self._waiting = self._waiting, []
        for promise in waiting:
            promise.forget(self.settle)
        self.outcome.resolve_if_waiting(None)


def first_settled(promises: Iterable[Promise[Any]]) -> Promise[None]:
    """Done when one of these is, whatever became of it. The others are not waited for any more."""
    waiting = list(promises)
    if any(promise.is_done for promise in waiting):
        return Promise.resolved(None)
    return _First(waiting).outcome
