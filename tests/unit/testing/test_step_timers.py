"""Timers that fire when time is moved."""

from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import Agenda, StepTimers


def test_they_fire_in_the_order_of_time_and_see_it():
    timers, seen = StepTimers(FixedClock(5_000)), []
    for delay_s in (0.3, 0.1, 0.2):
        timers.after(delay_s, lambda: seen.append(round(timers.now_s(), 3)))
    timers.advance(250)
    assert seen == [0.1, 0.2]
    assert timers.now_s() == 0.25
    assert len(timers) == 1


def test_at_one_moment_they_fire_in_the_order_in_which_they_were_set():
    timers, seen = StepTimers(FixedClock()), []
    for number in range(5):
        timers.after(0, lambda number=number: seen.append(number))
    assert seen == [], "never from within the call that sets it"
    timers.advance(0)
    assert seen == [0, 1, 2, 3, 4]


def test_a_repeating_one_fires_until_it_is_cancelled():
    timers, seen = StepTimers(FixedClock()), []
    repeating = timers.every(1, lambda: seen.append(timers.now_s()), first_s=0.5)
    timers.advance(3_000)
    assert seen == [0.5, 1.5, 2.5]
    repeating.cancel()
    timers.advance(10_000)
    assert len(seen) == 3
    assert len(timers) == 0


def test_one_that_cancels_itself_while_it_fires_stays_cancelled():
    timers, seen = StepTimers(FixedClock()), []
    repeating = timers.every(1, lambda: (seen.append(1), repeating.cancel()))
    timers.advance(5_000)
    assert seen == [1]


def test_closing_takes_one_nodes_timers_and_leaves_the_others():
    clock = FixedClock()
    agenda = Agenda(clock)
    one, other, seen = StepTimers(clock, agenda), StepTimers(clock, agenda), []
    one.every(1, lambda: seen.append("one"))
    other.every(2, lambda: seen.append("other"))
    one.advance(2_000)
    assert seen == ["one", "other", "one"]
    one.close()
    agenda.run_until(4_000_000)
    assert seen == ["one", "other", "one", "other"]
    assert (len(one), len(agenda)) == (0, 1)


def test_a_clock_that_is_set_moves_no_timer():
    clock = FixedClock(5_000)
    timers, seen = StepTimers(clock), []
    timers.after(1, lambda: seen.append(clock.now_ms()))
    clock.jump(60_000)
    timers.advance(999)
    assert seen == []
    timers.advance(1)
    assert seen == [66_000]
