"""Promises, and coroutines over them."""

import gc
import weakref

import pytest

from ottla.client.promise import Promise, all_settled, first_settled, spawn


def test_a_coroutine_goes_on_when_what_it_awaits_is_settled() -> None:
    first: Promise[int] = Promise()
    second: Promise[int] = Promise()

    async def add() -> int:
        return await first + await second

    total = spawn(add())
    first.resolve(1)
    assert not total.is_done
    second.resolve(2)
    assert total.value() == 3


def test_an_error_is_raised_where_it_is_awaited_and_becomes_the_outcome() -> None:
    asked: Promise[int] = Promise()
    seen = []

    async def ask() -> int:
        try:
            return await asked
        except OSError as problem:
            seen.append(problem)
            raise

    outcome = spawn(ask())
    asked.reject(OSError("gone"))
    assert len(seen) == 1
    with pytest.raises(OSError, match="gone"):
        outcome.value()


def test_a_thousand_promises_that_are_done_are_awaited_without_recursion() -> None:
    async def count() -> int:
        total = 0
        for _ in range(10_000):
            total += await Promise.resolved(1)
        return total

    assert spawn(count()).value() == 10_000


def test_settling_twice_is_a_bug_but_for_those_who_may_come_too_late() -> None:
    promise: Promise[int] = Promise()
    promise.resolve(1)
    promise.resolve_if_waiting(2)
    promise.reject_if_waiting(OSError())
    assert promise.value() == 1
    with pytest.raises(AssertionError):
        promise.resolve(2)


def test_all_and_first() -> None:
    one: Promise[int] = Promise()
    two: Promise[int] = Promise()
    every, some = all_settled([one, two]), first_settled([one, two])
    one.reject(OSError())
    assert some.is_done
    assert not every.is_done
    two.resolve(1)
    assert every.is_done
    assert all_settled([]).is_done


def test_what_a_coroutine_returned_is_gone_as_soon_as_nobody_holds_it() -> None:
    class Found:
        pass

    async def wait(promise: Promise[None]) -> Found:
        await promise
        return Found()

    waited: Promise[None] = Promise()
    running = spawn(wait(waited))
    waited.resolve(None)
    found = weakref.ref(running.value())
    gc.disable()
    try:
        del running
        assert found() is None
    finally:
        gc.enable()


def test_a_callback_that_fails_does_not_keep_others_from_being_called() -> None:
    told: list[str] = []

    def fails(_: Promise[int]) -> None:
        raise RuntimeError("of the test")

    promise: Promise[int] = Promise()
    promise.on_done(fails)
    promise.on_done(lambda _: told.append("called"))
    with pytest.raises(RuntimeError, match="of the test"):
        promise.resolve(1)
    assert told == ["called"]


def test_what_lasts_does_not_collect_those_who_waited_for_something_else_too() -> None:
    lasting: Promise[None] = Promise()
    for _ in range(3):
        passing: Promise[None] = Promise()
        either = first_settled((passing, lasting))
        passing.resolve(None)
        assert either.is_done
    assert first_settled((Promise.resolved(None), lasting)).is_done
    assert not lasting._callbacks
