"""Clocks that are wrong, and processes that are stopped."""

from ottla.testing.clock import FixedClock
from ottla.testing.sim.hosts.host_clock import HostClock
from ottla.testing.sim.hosts.process import Process, ProcessTimers
from ottla.testing.step_timers import Agenda


def test_a_clock_may_be_wrong_be_set_and_stand_still_while_elapsed_time_goes_on():
    time = FixedClock(1_000)
    clock = HostClock(time, ahead_ms=500)
    time.advance(100)
    assert (clock.now_ms(), clock.elapsed_s()) == (1_600, 0.1)
    clock.jump(-2_000)
    assert (clock.now_ms(), clock.elapsed_s()) == (-400, 0.1)
    clock.stall()
    time.advance(1_000)
    assert (clock.now_ms(), clock.elapsed_s()) == (-400, 1.1)
    clock.resume()
    assert clock.now_ms() == 600


def test_timers_of_a_fast_clock_come_early():
    agenda = Agenda(FixedClock())
    clock = HostClock(agenda.clock, rate=1.25)
    timers, fired = ProcessTimers(Process(agenda), clock), []
    timers.after(1.0, lambda: fired.append(agenda.clock.elapsed_us()))
    timers.every(5.0, lambda: fired.append(agenda.clock.elapsed_us()))
    agenda.run_until(8_000_000)
    assert fired == [800_000, 4_000_000, 8_000_000]
    assert clock.elapsed_s() == 10.0


def test_what_is_due_in_a_stopped_process_comes_when_it_goes_on_in_its_order():
    agenda = Agenda(FixedClock())
    process = Process(agenda)
    timers, fired = ProcessTimers(process, HostClock(agenda.clock)), []
    cancelled = timers.after(1.0, lambda: fired.append("cancelled"))
    timers.after(2.0, lambda: fired.append("second"))
    timers.after(1.5, lambda: fired.append("first"))
    process.stop()
    agenda.run_until(3_000_000)
    process.run(lambda: fired.append("third"))
    cancelled.cancel()
    assert fired == []
    process.resume()
    agenda.run_until(3_000_000)
    assert fired == ["first", "second", "third"]


def test_nothing_happens_in_a_process_that_has_ended():
    agenda = Agenda(FixedClock())
    process, fired = Process(agenda), []
    process.stop()
    process.run(lambda: fired.append("too late"))
    process.end()
    process.resume()
    process.run(lambda: fired.append("too late"))
    agenda.run_until(1_000_000)
    assert fired == []
