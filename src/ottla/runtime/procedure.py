"""Coroutines that wait for callbacks, without a loop of their own: how a node starts and stops.

    async def start(self) -> None:
        found = await wait_for(lambda done, failed: workers.run(look, done, failed))
        ...

    Procedure(start(), timers, then, failed)

Theory of operation. `wait_for` begins something that calls back, at once or later. If later, the coroutine is left, and
continues in a turn of its own (a timer of no delay) after the callback: never in the middle of the work that called
back. Nothing here knows what a loop is, so a real node and a simulated one start and stop by the same lines.
"""

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from ottla.base.ports import Timer, Timers

ResultT = TypeVar("ResultT")

Begin = Callable[[Callable[[ResultT], None], Callable[[Exception], None]], None]
"""Begins something, and sees to it that one of the two is called once, with its result or its problem."""


class _Outcome(Generic[ResultT]):
    """What is waited for. The first word counts; a second one, as of something that fails later on, is not heard."""

    def __init__(self) -> None:
        self.is_here = False
        self.wake: Callable[[], None] | None = None
        self._results: list[ResultT] = []
        self._problem: Exception | None = None

    def done(self, result: ResultT) -> None:
        if not self.is_here:
            self._results.append(result)
            self._tell()

    def failed(self, problem: Exception) -> None:
        if not self.is_here:
            self._problem = problem
            self._tell()

    def _tell(self) -> None:
        self.is_here = True
        if self.wake is not None:
            self.wake()

    def get(self) -> ResultT:
        if self._problem is not None:
            raise self._problem
        return self._results[0]


class _Wait(Generic[ResultT]):
    def __init__(self, begin: Begin[ResultT]) -> None:
        self._begin = begin

    def __await__(self) -> Generator[_Outcome[ResultT], None, ResultT]:
        outcome: _Outcome[ResultT] = _Outcome()
        self._begin(outcome.done, outcome.failed)
        if not outcome.is_here:
            yield outcome
        return outcome.get()


async def wait_for(begin: Begin[ResultT]) -> ResultT:
    """What `begin` begins comes to."""
    return await _Wait(begin)


async def wait_until(begin: Callable[[Callable[[], None]], object]) -> None:
    """Waits until what `begin` begins calls back."""

    def begin_it(done: Callable[[None], None], _failed: Callable[[Exception], None]) -> None:
        begin(lambda: done(None))

    await _Wait(begin_it)


class Procedure(Generic[ResultT]):
    """Runs a coroutine that waits by `wait_for` only, beginning now. `then` or `failed` is called at its end."""

    def __init__(
        self,
        coroutine: Coroutine[_Outcome[Any], None, ResultT],
        timers: Timers,
        then: Callable[[ResultT], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._coroutine = coroutine
        self._timers = timers
        self._then = then
        self._failed = failed
        self._timer: Timer | None = None
        self._is_over = False
        self._step()

    def cancel(self) -> None:
        """Leaves it where it is; nobody hears of it."""
        if not self._is_over:
            self._is_over = True
            if self._timer is not None:
                self._timer.cancel()
            self._coroutine.close()

    def _step(self) -> None:
        self._timer = None
        try:
            outcome = self._coroutine.send(None)
        except StopIteration as end:
            self._is_over = True
            self._then(end.value)
        except Exception as problem:
            self._is_over = True
            self._failed(problem)
        else:
            outcome.wake = self._on_outcome

    def _on_outcome(self) -> None:
        if not self._is_over:
            self._timer = self._timers.after(0, self._step)
