import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.runtime.timers import LoopTimers
from ottla.runtime.workers import ThreadWorkers


def run(test: Callable[[ThreadWorkers], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        workers = ThreadWorkers(asyncio.get_running_loop(), threads=3)
        try:
            await asyncio.wait_for(test(workers), 10)
        finally:
            workers.close()

    asyncio.run(main())


def test_a_job_runs_on_a_thread_and_its_result_comes_back_to_the_loop() -> None:
    async def test(workers: ThreadWorkers) -> None:
        done: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        workers.run(
            lambda: threading.current_thread().name,
            lambda name: done.set_result((name, threading.current_thread().name)),
        )
        ran_on, came_back_on = await done
        assert ran_on.startswith("disk-")
        assert came_back_on == threading.current_thread().name

    run(test)


def test_jobs_wait_for_the_threads_that_there_are_when_the_system_has_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(workers: ThreadWorkers) -> None:
        results: asyncio.Queue[int] = asyncio.Queue()
        monkeypatch.setattr(threading.Thread, "start", cannot_start)
        for number in range(5):
            workers.run(lambda number=number: number, results.put_nowait)  # type: ignore[misc]
        await asyncio.sleep(0)
        assert results.empty()
        monkeypatch.undo()
        assert sorted([await results.get() for _ in range(5)]) == [0, 1, 2, 3, 4]
        monkeypatch.setattr(threading.Thread, "start", cannot_start)
        for number in range(5):
            workers.run(lambda number=number: number, results.put_nowait)  # type: ignore[misc]
        assert sorted([await results.get() for _ in range(5)]) == [0, 1, 2, 3, 4]

    def cannot_start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    run(test)


def test_a_failure_goes_to_its_callback() -> None:
    async def test(workers: ThreadWorkers) -> None:
        failed: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        workers.run(lambda: [][0], lambda _: None, failed.set_result)
        assert isinstance(await failed, IndexError)

    run(test)


def test_a_failure_that_nobody_takes_reaches_the_loops_exception_handler() -> None:
    async def test(workers: ThreadWorkers) -> None:
        loop = asyncio.get_running_loop()
        seen: asyncio.Future[object] = loop.create_future()
        loop.set_exception_handler(lambda _, context: seen.set_result(context["exception"]))
        workers.run(lambda: [][0], lambda _: None)
        assert isinstance(await seen, IndexError)

    run(test)


def test_there_are_as_many_threads_as_there_were_jobs_at_once_and_no_more_than_allowed() -> None:
    before = set(threading.enumerate())

    async def test(workers: ThreadWorkers) -> None:
        async def threads_after(jobs: int) -> int:
            """How many threads there are when so many jobs have been given, of which three can run at once."""
            together = threading.Barrier(min(jobs, 3))
            idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            for _ in range(jobs):
                workers.run(lambda: together.wait(10), lambda _: None)
            workers.when_idle(lambda: idle.set_result(None))
            await idle
            return len(set(threading.enumerate()) - before)

        assert [await threads_after(jobs) for jobs in (1, 1, 2, 1, 6)] == [1, 1, 2, 2, 3]

    run(test)


def test_jobs_with_one_key_run_in_order_and_never_together() -> None:
    async def test(workers: ThreadWorkers) -> None:
        idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        events: list[tuple[str, int]] = []
        pause = threading.Event()

        def job(number: int) -> None:
            events.append(("begin", number))
            pause.wait(0.002)
            events.append(("end", number))

        for number in range(20):
            workers.run(lambda number=number: job(number), lambda _: None, key="partition")
        workers.when_idle(lambda: idle.set_result(None))
        await idle
        assert events == [(what, number) for number in range(20) for what in ("begin", "end")]

    run(test)


def test_jobs_without_a_key_run_side_by_side() -> None:
    async def test(workers: ThreadWorkers) -> None:
        idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        meeting = threading.Barrier(3)
        for _ in range(3):
            workers.run(lambda: meeting.wait(5), lambda _: None)
        workers.when_idle(lambda: idle.set_result(None))
        await idle
        assert not meeting.broken

    run(test)


def test_of_jobs_that_are_under_way_when_they_are_closed_nobody_hears() -> None:
    async def test(workers: ThreadWorkers) -> None:
        begun, resume = threading.Event(), threading.Event()
        told: list[object] = []

        def job() -> str:
            begun.set()
            resume.wait(10)
            return "done"

        workers.run(job, told.append, key="partition")
        workers.run(lambda: told.append("worked"), told.append, key="partition")
        assert begun.wait(10)
        workers.close()
        resume.set()
        workers.run(lambda: told.append("worked"), told.append)
        await asyncio.sleep(0.05)
        assert told == []

    run(test)


def test_a_timer_fires_once_and_a_repeating_one_until_it_is_cancelled() -> None:
    async def main() -> None:
        timers = LoopTimers(asyncio.get_running_loop())
        fired: list[str] = []
        three_times: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def again() -> None:
            fired.append("again")
            if fired.count("again") == 3:
                repeating.cancel()
                three_times.set_result(None)

        timers.after(0.001, lambda: fired.append("once"))
        repeating = timers.every(0.002, again)
        await asyncio.wait_for(three_times, 5)
        await asyncio.sleep(0.02)
        assert sorted(fired) == ["again"] * 3 + ["once"]
        assert len(timers) == 0

    asyncio.run(main())


def test_no_timer_is_left_when_they_are_closed() -> None:
    async def main() -> None:
        timers = LoopTimers(asyncio.get_running_loop())
        fired: list[int] = []
        timers.after(0.001, lambda: fired.append(1))
        timers.every(0.001, lambda: fired.append(2))
        timers.close()
        await asyncio.sleep(0.01)
        assert not fired
        assert len(timers) == 0

    asyncio.run(main())
