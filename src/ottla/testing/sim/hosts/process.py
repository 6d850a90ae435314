"""One life of a program in a simulation: it runs, it may be stopped and continue (SIGSTOP, SIGCONT), and it ends.

Whatever would happen in it while it is stopped (timers, finished jobs, turns of the network) happens when it continues,
in the same order. Once it has ended nothing happens in it any more.
"""

from collections.abc import Callable

from ottla.testing.sim.hosts.host_clock import HostClock
from ottla.testing.step_timers import Agenda, Due, StepTimer, StepTimers


class _Deferred:
    """Something that came while the process was stopped."""

    __slots__ = ("_callback", "_process")

    is_set = True

    def __init__(self, process: "Process", callback: Callable[[], None]) -> None:
        self._process = process
        self._callback = callback

    def fire(self) -> None:
        self._process.run(self._callback)


class Process:
    def __init__(self, agenda: Agenda) -> None:
        self.agenda = agenda
        self.is_stopped = False
        self.is_over = False
        self._held: list[Due] = []

    def run(self, callback: Callable[[], None]) -> None:
        """Does it now, when the process continues, or never."""
        if self.is_over:
            return
        if self.is_stopped:
            self._held.append(_Deferred(self, callback))
        else:
            callback()

    def hold(self, due: Due) -> bool:
        """Keeps what is due for later, if the process is stopped; returns whether it did."""
        if self.is_stopped:
            self._held.append(due)
        return self.is_stopped

    def stop(self) -> None:
        self.is_stopped = True

    def resume(self) -> None:
        self.is_stopped = False
        held, self._held = self._held, []
        for due in held:
            self.agenda.add(due, 0.0)

    def end(self) -> None:
        self.is_over = True
        self._held.clear()


class ProcessTimers(StepTimers):
    """Timers of a process, on its machine's clock."""

    def __init__(self, process: Process, clock: HostClock) -> None:
        super().__init__(process.agenda.clock, process.agenda)
        self.now_s = clock.elapsed_s
        self._process = process
        self._clock = clock

    def schedule(self, timer: StepTimer, delay_s: float) -> None:
        self.agenda.add(timer, delay_s / self._clock.rate)

    def may_fire(self, timer: StepTimer) -> bool:
        return not self._process.hold(timer)
