"""Threads that wait for the disk, so that the loop does not have to.

Jobs with the same key run one after the other, in the order given; others side by side. What a job returns or raises
is handed to its callbacks on the loop's thread, for the request that asked for the job, if one did: an exception in a
callback is then that request's alone. Jobs touch no state of the loop: they are given what they need.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from queue import SimpleQueue
from typing import Any, TypeVar

from ottla.runtime.attribution import Attributed, current, work_for
from ottla.runtime.loop import Loop

ResultT = TypeVar("ResultT")

_Job = tuple[Hashable, Callable[[], Any], Callable[[Any], None], Callable[[Exception], None] | None, Attributed | None]

_TRY_AGAIN_S = 0.5


class ThreadWorkers:
    """Daemon threads, as many as there have been jobs at the same time, up to a limit: an idle node has one or two."""

    def __init__(self, loop: Loop, threads: int = 4) -> None:
        self._loop = loop
        self._most_threads = threads
        self._threads: list[threading.Thread] = []
        self._ready: SimpleQueue[_Job | None] = SimpleQueue()
        self._waiting: dict[Hashable, deque[_Job]] = {}
        self._under_way = 0
        self._given_out = 0
        self._idle_callbacks: list[Callable[[], None]] = []
        self._is_closed = False

    def run(
        self,
        function: Callable[[], ResultT],
        then: Callable[[ResultT], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        key: Hashable = None,
    ) -> None:
        """Runs `function` on a thread. Without `failed`, an exception is raised on the loop."""
        if self._is_closed:
            return
        job: _Job = (key, function, then, failed, current())
        self._under_way += 1
        if key is None:
            self._give_out(job)
        elif key in self._waiting:
            self._waiting[key].append(job)
        else:
            self._waiting[key] = deque()
            self._give_out(job)

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Calls back once no job is under way."""
        if self._under_way:
            self._idle_callbacks.append(callback)
        else:
            callback()

    def close(self) -> None:
        """Takes no more jobs, and lets the threads end after the one they are at. Nobody hears what comes of it.

        Threads that hang in a dead disk go with the process.
        """
        self._is_closed = True
        for _ in self._threads:
            self._ready.put(None)
        self._threads.clear()

    def _give_out(self, job: _Job) -> None:
        self._given_out += 1
        self._ready.put(job)
        self._grow()

    def _grow(self) -> None:
        """One more thread, if there is work for it. If the system has none to give, the job waits for one that works.

        Without any thread there is nobody to wait for: it is tried again.
        """
        if len(self._threads) >= min(self._given_out, self._most_threads):
            return
        thread = threading.Thread(target=self._work, name=f"disk-{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            if not self._threads:
                self._loop.call_later(_TRY_AGAIN_S, self._grow)
            return
        self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._ready.get()) is not None and not self._is_closed:
            try:
                result, problem = job[1](), None
            except Exception as error:
                result, problem = None, error
            try:
                self._loop.call_soon_threadsafe(self._finish, job, result, problem)
            except RuntimeError:
                return  # The loop is closed: nobody is waiting.

    def _finish(self, job: _Job, result: Any, problem: Exception | None) -> None:
        if self._is_closed:
            return
        key, _, then, failed, request = job
        self._under_way -= 1
        self._given_out -= 1
        if key is not None:
            if self._waiting[key]:
                self._give_out(self._waiting[key].popleft())
            else:
                del self._waiting[key]
        try:
            if problem is None:
                work_for(request, then, result)
            else:
                work_for(request, failed or _raise, problem)
        finally:
            if not self._under_way:
                callbacks, self._idle_callbacks = self._idle_callbacks, []
                for callback in callbacks:
                    callback()


def _raise(problem: Exception) -> None:
    raise problem
