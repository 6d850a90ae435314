"""Operations that wait: completed once, whatever comes first."""

import pytest

from ottla.broker.partitions.purgatory import MAX_WAIT_MS, Operation, Purgatory
from ottla.runtime.attribution import current, work_for
from ottla.runtime.request import ClientConnection
from ottla.testing.clock import FixedClock
from tests.unit.broker.brokers import StepTimers


class Place:
    waiting = None


class Wish(Operation):
    """Waits until a place has what it wants."""

    def __init__(self, wanted: int = 1) -> None:
        super().__init__(ClientConnection(1, "PLAINTEXT", "127.0.0.1"))
        self.left = wanted
        self.completed = 0

    def is_done(self, place: Place) -> bool:
        self.left -= 1
        return self.left == 0

    def complete(self) -> None:
        self.completed += 1


def purgatory() -> tuple[Purgatory, StepTimers]:
    timers = StepTimers(FixedClock())
    return Purgatory(timers), timers


def test_an_operation_completes_when_a_place_has_what_it_wants():
    waiting, timers = purgatory()
    here, there, wish = Place(), Place(), Wish(wanted=2)
    waiting.park(wish, [here, there], 1000)
    waiting.wake(here)
    assert wish.completed == 0
    waiting.wake(there)
    assert wish.completed == 1
    assert (here.waiting, there.waiting, len(waiting), len(timers)) == (None, None, 0, 0)


def test_an_operation_completes_when_its_time_is_over_and_not_again():
    waiting, timers = purgatory()
    place, wish = Place(), Wish()
    waiting.park(wish, [place], 1000)
    timers.advance(1000)
    assert wish.completed == 1
    waiting.wake(place)
    waiting.release(place)
    assert wish.completed == 1


def test_a_place_that_goes_releases_who_waits_there():
    waiting, _ = purgatory()
    here, there = Place(), Place()
    mine, other = Wish(wanted=9), Wish(wanted=9)
    waiting.park(mine, [here, there], 1000)
    waiting.park(other, [there], 1000)
    waiting.release(here)
    assert (mine.completed, other.completed) == (1, 0)
    assert list(there.waiting) == [other]


def test_a_wake_may_lead_to_another_wake_of_the_same_place():
    """Completing one operation (a follower's fetch) moves what others wait for."""
    waiting, _ = purgatory()
    place, second = Place(), Wish(wanted=2)

    class First(Wish):
        def complete(self) -> None:
            super().complete()
            waiting.wake(place)

    first = First()
    waiting.park(first, [place], 1000)
    waiting.park(second, [place], 1000)
    waiting.wake(place)
    assert (first.completed, second.completed) == (1, 1)


def test_the_longest_wait_is_a_day():
    waiting, timers = purgatory()
    wish = Wish()
    waiting.park(wish, [Place()], (1 << 31) - 1)
    timers.advance(MAX_WAIT_MS)
    assert wish.completed == 1


def test_operations_of_one_wait_share_a_timer_and_each_completes_at_its_own_time():
    waiting, timers = purgatory()
    wishes = [Wish() for _ in range(4)]
    places = [Place() for _ in wishes]
    for wish, place in zip(wishes, places, strict=True):
        waiting.park(wish, [place], 1000)
        timers.advance(100)
    assert len(timers) == 1
    waiting.wake(places[0])
    timers.advance(650)  # 50 ms after the first would have been due
    assert [wish.completed for wish in wishes] == [1, 0, 0, 0]
    timers.advance(50)
    assert [wish.completed for wish in wishes] == [1, 1, 0, 0]
    timers.advance(99)
    assert [wish.completed for wish in wishes] == [1, 1, 0, 0]
    timers.advance(1)
    assert [wish.completed for wish in wishes] == [1, 1, 1, 0]
    timers.advance(100)
    assert [wish.completed for wish in wishes] == [1, 1, 1, 1]
    assert len(timers) == 0


def test_a_shorter_wait_that_begins_later_may_be_over_first():
    waiting, timers = purgatory()
    long, short = Wish(), Wish()
    waiting.park(long, [Place()], 1000)
    waiting.park(short, [Place()], 200)
    timers.advance(200)
    assert (long.completed, short.completed, len(timers)) == (0, 1, 1)
    timers.advance(800)
    assert (long.completed, short.completed, len(timers)) == (1, 1, 0)


def test_an_operation_whose_time_is_over_may_end_the_wait_of_the_next():
    waiting, timers = purgatory()
    place, second = Place(), Wish(wanted=1)

    class First(Wish):
        def complete(self) -> None:
            super().complete()
            waiting.wake(place)

    first = First()
    waiting.park(first, [place], 1000)
    waiting.park(second, [place], 1000)
    timers.advance(1000)
    assert (first.completed, second.completed, len(waiting), len(timers)) == (1, 1, 0, 0)


def test_the_operations_of_clients_that_have_gone_are_dropped():
    waiting, timers = purgatory()
    gone, here = Wish(), Wish()
    for wish in (gone, here):
        waiting.park(wish, [Place()], 1000)
    gone.client.is_open = False
    waiting.drop_closed()
    assert (gone.completed, here.completed, len(waiting), len(timers)) == (1, 0, 1, 1)


def test_at_the_end_all_are_released():
    waiting, timers = purgatory()
    wishes = [Wish() for _ in range(3)]
    for wish in wishes:
        waiting.park(wish, [Place()], 1000)
    waiting.release_all()
    assert [wish.completed for wish in wishes] == [1, 1, 1]
    assert len(timers) == 0


class Broken(Wish):
    """Breaks when it is looked at, or when it is answered."""

    def __init__(self, *, when: str) -> None:
        super().__init__()
        self.when = when

    def is_done(self, place: Place) -> bool:
        if self.when == "looked at":
            raise AssertionError("an invariant")
        return super().is_done(place)

    def complete(self) -> None:
        raise AssertionError("an invariant")


class Request:
    def __init__(self) -> None:
        self.problems: list[Exception] = []

    def fail(self, problem: Exception) -> None:
        self.problems.append(problem)


@pytest.mark.parametrize("when", ["looked at", "answered", "its time is over"])
def test_an_operation_that_breaks_fails_its_own_request_and_no_other(when):
    waiting, timers = purgatory()
    place, request, other = Place(), Request(), Wish()
    work_for(request, lambda: waiting.park(Broken(when=when), [place], 1000))
    waiting.park(other, [place], 5000)
    producer = Request()
    if when == "its time is over":
        timers.advance(1000)
    work_for(producer, lambda: waiting.wake(place))
    assert [str(problem) for problem in request.problems] == ["an invariant"]
    assert not producer.problems, "the producer that woke it does not notice"
    assert other.completed == 1
    assert (len(waiting), place.waiting, len(timers), current()) == (0, None, 0, None)


def test_an_operation_of_the_node_itself_that_breaks_is_logged(caplog):
    waiting, _ = purgatory()
    place = Place()
    waiting.park(Broken(when="answered"), [place], 1000)
    waiting.wake(place)
    assert "Broken failed; no client waits for it" in caplog.text


def test_operations_that_wake_each_other_are_completed_one_after_the_other() -> None:
    waiting, _ = purgatory()
    here, there = Place(), Place()
    under_way: list[int] = []
    most_under_way = 0

    class Waking(Wish):
        def complete(self) -> None:
            nonlocal most_under_way
            super().complete()
            under_way.append(1)
            most_under_way = max(most_under_way, len(under_way))
            waiting.wake(here)
            waiting.wake(there)
            under_way.pop()

    first, last = [Waking() for _ in range(2_000)], Waking()
    for wish in first:
        waiting.park(wish, [here], 1000)
    waiting.park(last, [there], 1000)
    waiting.wake(here)
    assert {wish.completed for wish in (*first, last)} == {1}
    assert (most_under_way, len(waiting)) == (1, 0)
