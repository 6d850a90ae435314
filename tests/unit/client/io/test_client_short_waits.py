"""How callers wait: looking again for a moment after a short wait, sleeping after a long one; and how senders work."""

import threading
from collections.abc import Callable, Iterator

import pytest

from ottla.client.io import loop_thread, short_waits
from ottla.client.io.event_loop import EventLoop
from ottla.client.io.loop_thread import LoopThread
from ottla.client.io.short_waits import ShortWaits


class ScriptedLoop(EventLoop):
    """Finds what a test says: the moments that pass in each look, and whether something is ready then."""

    def __init__(self, clock: "FakeClock", *looks: tuple[int, bool]) -> None:
        super().__init__(pytest.fail)
        self.timeouts: list[float] = []
        self.handled = 0
        script = iter(looks)

        def look(timeout: float) -> list:
            self.timeouts.append(timeout)
            passes_us, is_ready = next(script)
            clock.now_ns += passes_us * 1000
            return [None] if is_ready else []

        self.look = look

    def handle(self, events: list) -> None:
        self.handled += bool(events)


class FakeClock:
    now_ns = 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    clock = FakeClock()
    monkeypatch.setattr(short_waits, "perf_counter_ns", lambda: clock.now_ns)
    monkeypatch.setattr(short_waits, "moment_ns", lambda: 200_000)
    return clock


def turns(loop: ScriptedLoop, count: int) -> list[float]:
    """The timeouts of the looks in so many turns."""
    waits = ShortWaits(loop)
    for _ in range(count):
        waits.turn(1.0)
    loop.release()
    return [0.0 if timeout == 0 else 1.0 for timeout in loop.timeouts]


def test_the_first_wait_sleeps(clock: FakeClock) -> None:
    assert turns(ScriptedLoop(clock, (50, True)), 1) == [1.0]


def test_after_a_short_wait_it_looks_again_and_again(clock: FakeClock) -> None:
    loop = ScriptedLoop(clock, (50, True), (40, False), (40, False), (40, True))
    assert turns(loop, 2) == [1.0, 0.0, 0.0, 0.0]
    assert loop.handled == 2


def test_a_moment_in_which_nothing_came_ends_with_sleep_and_so_begins_the_next_wait(clock: FakeClock) -> None:
    loop = ScriptedLoop(clock, (50, True), (100, False), (100, False), (300, True), (10, True))
    assert turns(loop, 3) == [1.0, 0.0, 0.0, 1.0, 1.0]


def test_after_a_long_wait_it_sleeps_at_once(clock: FakeClock) -> None:
    loop = ScriptedLoop(clock, (5000, True), (5000, True), (5000, True))
    assert turns(loop, 3) == [1.0, 1.0, 1.0]


def test_a_timer_that_is_due_is_not_kept_waiting_by_looking(clock: FakeClock) -> None:
    loop = ScriptedLoop(clock, (50, True), (0, False))
    loop.after(0.0, lambda: None)
    waits = ShortWaits(loop)
    waits.turn(1.0)
    waits.turn(1.0)
    loop.release()
    assert loop.timeouts == [0.0, 0.0]


# --- a thread that sends ---


@pytest.fixture
def sending() -> Iterator[LoopThread]:
    made = LoopThread("test-sending")
    yield made
    made.stop()


def use(client: LoopThread) -> None:
    """As a thread does that sends often: the client's own thread stands aside."""
    client.ask(lambda: client.world.sleep(0), 10)
    client.note_use()


@pytest.fixture
def driven_at(sending: LoopThread, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Whether a caller who sends, so many seconds after the last time, handles answers."""
    now_s = 1000.0
    drives: list[float] = []
    monkeypatch.setattr(loop_thread, "monotonic", lambda: now_s)

    def drive() -> None:
        drives.append(now_s)
        sending._last_driven_s = now_s

    monkeypatch.setattr(sending, "drive", drive)

    def sends(after_s: float, **given: bool) -> bool:
        nonlocal now_s
        now_s += after_s
        drives.clear()
        sending.note_use(**given)
        return bool(drives)

    return sends


def test_a_thread_that_sends_now_and_then_leaves_answers_to_the_clients_own(driven_at: Callable[..., bool]) -> None:
    assert [driven_at(after_s) for after_s in (0.0, 0.002, 0.5)] == [False] * 3
    assert driven_at(0.5, wants_answers=True)


def test_a_thread_that_sends_one_after_another_handles_each_answer(driven_at: Callable[..., bool]) -> None:
    driven_at(0.0)
    assert [driven_at(0.0003) for _ in range(4)] == [True] * 4


def test_a_thread_that_sends_all_the_time_handles_answers_every_half_millisecond(
    driven_at: Callable[..., bool],
) -> None:
    driven_at(0.0)
    assert driven_at(0.0001)
    assert [driven_at(0.0001) for _ in range(12)] == [False] * 5 + [True] + [False] * 5 + [True]


def test_callbacks_of_a_thread_that_sends_often_are_left_to_the_clients_own_thread(sending: LoopThread) -> None:
    due, ran_on = [1], threading.Event()

    def run_callbacks() -> None:
        if due and threading.current_thread() is sending._thread:
            due.pop()
            ran_on.set()

    sending.run_callbacks = run_callbacks
    sending.has_callbacks = lambda: bool(due)
    use(sending)
    assert ran_on.wait(10)
