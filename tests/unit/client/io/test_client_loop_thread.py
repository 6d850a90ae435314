"""The event loop of blocking clients: who drives it, and what becomes of it at a fork and at the end."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from ottla.base.errors import ClientError
from ottla.client.blocking.callbacks import Callbacks
from ottla.client.errors import ClientClosed, ForkedClient
from ottla.client.io import loop_thread
from ottla.client.io.loop_thread import LoopThread
from ottla.client.promise import Promise


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("test-loop")
    yield made
    made.stop()


def test_a_caller_who_waits_gets_what_a_timer_settles(thread: LoopThread) -> None:
    assert thread.ask(lambda: thread.world.sleep(1), timeout_s=10) is None


def test_the_callers_own_thread_runs_the_callbacks_while_it_waits(thread: LoopThread) -> None:
    thread.ask(lambda: thread.world.sleep(0), 10)
    ran_on = []
    promise: Promise[None] = Promise()

    def fire() -> None:
        ran_on.append(threading.current_thread())
        promise.resolve(None)

    with thread.lock:
        thread.loop.after(0.02, fire)
    thread.wait(promise, 10)
    assert ran_on == [threading.current_thread()]


def test_timers_fire_while_nobody_waits(thread: LoopThread) -> None:
    fired = threading.Event()
    with thread.lock:
        thread.loop.after(0.001, fired.set)
    assert fired.wait(10)


def test_the_loops_thread_drives_at_once_when_a_caller_hands_over(
    thread: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_thread, "_GRACE_S", 600.0)  # a caller who has driven might come back for so long
    thread.ask(lambda: thread.world.sleep(10), 60)
    fired = threading.Event()
    with thread.lock:
        thread.loop.after(0.0, fired.set)
    thread.hand_over()
    assert fired.wait(60)


def test_several_callers_wait_at_once(thread: LoopThread) -> None:
    done = []
    callers = [
        threading.Thread(target=lambda ms=ms: done.append(thread.ask(lambda: thread.world.sleep(ms), 10)))
        for ms in (1, 5, 20, 40)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(20)
    assert done == [None] * 4


def test_a_wait_that_is_too_short_says_so_and_the_promise_lives_on(thread: LoopThread) -> None:
    promise: Promise[int] = Promise()
    with pytest.raises(TimeoutError):
        thread.ask(lambda: promise, timeout_s=0.01)
    promise.resolve(7)
    assert thread.ask(lambda: promise) == 7


def test_what_a_callback_raises_is_logged_and_the_loop_goes_on(
    thread: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise RuntimeError("a bug in a callback")

    with thread.lock:
        thread.loop.after(0, fail)
    thread.ask(lambda: thread.world.sleep(5), 10)
    assert "a bug in a callback" in caplog.text


def test_a_callback_on_the_loops_thread_cannot_wait_for_the_loop(thread: LoopThread) -> None:
    caught: list[Exception] = []
    seen = threading.Event()

    def wait_inside() -> None:
        try:
            thread.wait(Promise(), 1)
        except ClientError as refused:
            caught.append(refused)
        seen.set()

    with thread.lock:
        thread.loop.after(0.05, wait_inside)
    assert seen.wait(10)
    assert "cannot wait" in str(caught[0])


def test_a_stopped_loop_refuses_callers_and_leaves_no_thread_and_no_descriptor() -> None:
    before, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    thread = LoopThread("test-loop")
    thread.stop()
    assert threading.active_count() == before
    assert len(os.listdir("/proc/self/fd")) == descriptors
    with pytest.raises(ClientClosed):
        thread.ask(lambda: thread.world.sleep(1))


def test_a_fork_is_told_to_make_a_client_of_its_own(thread: LoopThread) -> None:
    child = os.fork()
    if child == 0:
        try:
            thread.ask(lambda: thread.world.sleep(1))
        except ForkedClient:
            os._exit(42)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert thread.ask(lambda: thread.world.sleep(1)) is None


def test_a_program_that_forgets_to_close_ends_all_the_same() -> None:
    program = "from ottla.client.io.loop_thread import LoopThread; LoopThread('forgotten')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_callback_that_leaves_the_interpreter_does_not_end_the_loop(thread: LoopThread) -> None:
    left = threading.Event()

    def leaves() -> None:
        left.set()
        raise SystemExit

    thread.run_callbacks = leaves
    thread.loop.wake()
    assert left.wait(10)
    fired = threading.Event()
    with thread.lock:
        thread.loop.after(0.001, fired.set)
    assert fired.wait(10)


def test_who_waits_for_callbacks_while_the_client_ends_is_not_left_waiting(thread: LoopThread) -> None:
    """Another thread has closed the client, between this one's look whether any are due and its turn to wait."""
    callbacks, told = Callbacks(thread.nudge), list[int]()
    thread.run_callbacks = callbacks.run
    thread.stop()
    callbacks.add(told.append, 1)
    assert callbacks.all_run(1.0)
    assert told == [1]


@pytest.mark.parametrize("host", ["nobody..example", "x" * 70 + ".example"])
def test_what_can_be_nobodys_name_is_a_name_that_is_not_known(thread: LoopThread, host: str) -> None:
    outcome: Promise[None] = Promise()

    def begin() -> Promise[None]:
        thread.world.dialer.dial(
            host,
            9092,
            receive_buffer_bytes=-1,
            send_buffer_bytes=-1,
            then=lambda transport: outcome.resolve(None),
            failed=outcome.reject,
        )
        return outcome

    with pytest.raises(OSError, match="is not known"):
        thread.ask(begin, timeout_s=20)


def test_timers_that_were_cancelled_do_not_pile_up_until_they_are_due(thread: LoopThread) -> None:
    fired = threading.Event()
    with thread.lock:
        thread.loop.after(0.05, fired.set)
        for _ in range(1000):
            thread.loop.after(3600, lambda: None).cancel()
        assert len(thread.loop._timers) < 200
    assert fired.wait(10)
