"""How callers wait: looking again for a moment after a short wait, sleeping after a long one, for one loop or two."""

import os
import threading
from collections.abc import Iterator

import pytest

from ottla.client.io import loop_thread, short_waits
from ottla.client.io.event_loop import EventLoop
from ottla.client.io.loop_thread import LoopThread
from ottla.client.io.short_waits import ShortWaits
from ottla.client.promise import Promise


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


# --- two clients of one thread ---


@pytest.fixture
def sending() -> Iterator[LoopThread]:
    made = LoopThread("test-sending")
    yield made
    made.stop()


@pytest.fixture
def waiting() -> Iterator[LoopThread]:
    made = LoopThread("test-waiting")
    made.takes_along = True
    yield made
    made.stop()


def use(client: LoopThread) -> None:
    """As a thread does that sends often: the client's own thread stands aside."""
    client.ask(lambda: client.world.sleep(0), 10)
    client.note_use()


def test_a_thread_that_sends_often_takes_up_answers_now_and_then(
    sending: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, drives = 1000.0, []
    monkeypatch.setattr(loop_thread, "monotonic", lambda: now_s)
    monkeypatch.setattr(sending, "drive", lambda: drives.append(now_s))
    sending.note_use()
    assert drives == []  # It has not sent anything for long.
    for _ in range(4):
        now_s += 0.0002
        sending.note_use()
        if drives:
            sending._last_driven_s = drives[-1]
    assert len(drives) == 2
    now_s += 0.002
    sending.note_use()
    assert len(drives) == 2
    sending.note_use(wants_answers=True)
    assert len(drives) == 3


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


def test_a_caller_who_waits_takes_along_the_client_that_it_has_sent_with(
    sending: LoopThread, waiting: LoopThread
) -> None:
    ran_on: list[threading.Thread] = []
    while threading.current_thread() not in ran_on:  # An own thread that was not asked yet may be at it.
        use(sending)
        promise: Promise[None] = Promise()

        def fire(promise: Promise[None] = promise) -> None:
            ran_on.append(threading.current_thread())
            waiting.loop.call(lambda: promise.resolve(None))

        with sending.lock:
            sending.loop.after(0.001, fire)
        assert waiting.wait(promise, 10)


def test_callbacks_of_the_client_that_is_taken_along_run_on_its_own_thread(
    sending: LoopThread, waiting: LoopThread
) -> None:
    due, ran_on = [], []
    promise: Promise[None] = Promise()

    def run_callbacks() -> None:
        while due:
            due.pop()
            ran_on.append(threading.current_thread())
            waiting.loop.call(lambda: promise.resolve(None))

    sending.run_callbacks = run_callbacks
    sending.has_callbacks = lambda: bool(due)
    use(sending)
    with sending.lock:
        sending.loop.after(0.001, lambda: due.append(1))
    assert waiting.wait(promise, 10)
    assert ran_on == [sending._thread]


def test_another_caller_gets_the_client_that_is_taken_along(sending: LoopThread, waiting: LoopThread) -> None:
    promise: Promise[None] = Promise()

    def wait() -> None:
        use(sending)
        waiting.wait(promise, 10)

    one = threading.Thread(target=wait)
    one.start()
    for _ in range(20):
        sending.ask(lambda: sending.world.sleep(1), 10)
    waiting.loop.call(lambda: promise.resolve(None))
    one.join(10)
    assert not one.is_alive()


def test_a_client_that_is_closed_while_another_takes_it_along_leaves_no_descriptor(waiting: LoopThread) -> None:
    waiting.ask(lambda: waiting.world.sleep(0), 10)
    descriptors = len(os.listdir("/proc/self/fd"))
    sending = LoopThread("test-sending")
    promise: Promise[None] = Promise()

    def wait() -> None:
        use(sending)
        waiting.wait(promise, 10)

    one = threading.Thread(target=wait)
    one.start()
    sending.ask(lambda: sending.world.sleep(5), 10)
    sending.stop()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    waiting.loop.call(lambda: promise.resolve(None))
    one.join(10)
    assert not one.is_alive()
