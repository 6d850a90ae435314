"""Ctrl-C at every step of a call that waits: it ends the call, and the client is as good as before."""

import subprocess
import sys

import pytest

TIMEOUT_S = 120

STEPS = """if True:
    import faulthandler, signal, sys, threading, time
    from _thread import interrupt_main
    from ottla.client.io.loop_thread import LoopThread
    from ottla.client.promise import Promise

    faulthandler.dump_traceback_later(100, exit=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has background jobs ignore it


    def interrupted_at(step, work):
        \"""Whether there was such a step of our own code. A signal comes before it, and strikes where Python looks.\"""
        left = step

        def on_call(frame, event, _):
            if "/ottla/client/" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            return on_step

        def on_step(frame, event, _):
            nonlocal left
            if event == "opcode":
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    for _ in map(interrupt_main, (signal.SIGINT,)):
                        return None  # without a call: Python would look for signals after it, here
            return on_step

        sys.settrace(on_call)
        try:
            try:
                work()
            finally:
                sys.settrace(None)
        except KeyboardInterrupt:
            pass
        return left <= 0


    def take_wheel(client):
        for _ in range(600):
            client._ask_for_wheel()
            if client._driving.acquire(timeout=0.05):
                return
        raise AssertionError("the wheel is still taken")


    def is_as_before(client, another_drives):
        if not another_drives:
            take_wheel(client)
            client._driving.release()
        assert client._waiting == 0
        assert client.lock._depth == 0 and client.lock._noted is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


    def every_step(work, *clients, another_drives=False):
        step = 1
        while interrupted_at(step, work):
            for client in clients:
                is_as_before(client, another_drives)
            step += 1
        assert step > 50, step
        for client in clients:
            if another_drives:
                client._driving.release()
            asked = []
            other = threading.Thread(target=lambda: asked.append(client.ask(lambda: client.world.sleep(1), 30)))
            other.start()
            other.join(60)
            assert asked == [None]
            client.stop()


    def settled_soon(client):
        promise = Promise()
        client.loop.call(lambda: promise.resolve(None))
        return promise
"""

SCENES = {
    "a caller who waits": """
    client = LoopThread("one")
    every_step(lambda: client.wait(settled_soon(client), 10), client)
    """,
    "a caller who handles what is ready": """
    client = LoopThread("one")
    every_step(client.drive, client)
    """,
    "a caller who waits, and drives the client that it has sent with": """
    client, other = LoopThread("one"), LoopThread("other")
    client.takes_along = True

    def work():
        other.note_use()
        client.wait(settled_soon(client), 10)

    every_step(work, client, other)
    """,
    "a caller who waits while another thread drives": """
    client = LoopThread("one")
    take_wheel(client)
    every_step(lambda: client.wait(Promise(), 0.003), client, another_drives=True)
    """,
    "a caller who waits for callbacks of a user": """
    from ottla.client.blocking.callbacks import Callbacks

    client = LoopThread("one")
    callbacks = Callbacks(client.nudge)
    client.run_callbacks, client.has_callbacks = callbacks.run, callbacks.are_due
    told = []

    def work():
        callbacks.add(told.append, None)
        callbacks.all_run(60)

    every_step(work, client)
    assert callbacks.are_idle and told
    """,
    "a rebalance listener, which runs or stays to be run": """
    from ottla import Consumer
    from ottla.client.consumer.group_bond import UserTask

    consumer = Consumer(bootstrap_servers="localhost:1")
    tasks, ran, done = consumer._core.tasks, [], []

    def work():
        tasks.append(UserTask(lambda: ran.append(None), done.append))
        consumer._run_tasks()

    step = 1
    while interrupted_at(step, work):
        is_as_before(consumer._loop, False)
        assert done == [None] and not tasks or not ran and not done and len(tasks) == 1, (step, ran, done, tasks)
        consumer._run_tasks()
        assert not tasks and len(done) == 1
        ran.clear()
        done.clear()
        step += 1
    assert step > 50, step
    consumer.close(0)
    """,
    "a client that one thread at a time may use": """
    from ottla.client.io.one_user import OneUser

    client = LoopThread("one")
    user = OneUser(client.lock)

    def use():
        with user:
            pass

    def work():
        try:
            use()
        finally:
            asked = []
            other = threading.Thread(target=lambda: asked.append(use()))
            other.start()
            other.join()
            if asked != [None]:
                raise AssertionError("it is still taken")

    step = 1
    while interrupted_at(step, work):
        is_as_before(client, False)
        step += 1
    assert step > 20, step
    client.stop()
    """,
    "what a user deserializes": """
    client = LoopThread("one")

    def work():
        with client.lock:
            client.lock.released(lambda: None)

    every_step(work, client)
    """,
}


@pytest.mark.parametrize("scene", SCENES)
def test_an_interrupt_at_any_step_leaves_a_client_that_others_can_drive_and_close(scene: str) -> None:
    run(STEPS + SCENES[scene])


def test_an_interrupt_ends_a_long_wait_at_once() -> None:
    run(
        """if True:
    import os, signal, threading
    from ottla.client.io.loop_thread import LoopThread
    from ottla.client.promise import Promise

    signal.signal(signal.SIGINT, signal.default_int_handler)
    client = LoopThread("one")
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        client.wait(Promise(), 3600)
    except KeyboardInterrupt:
        pass
    client.stop()
    """
    )


def test_a_handler_that_raises_nothing_runs_and_the_wait_goes_on() -> None:
    run(
        """if True:
    import os, signal, threading
    from ottla.client.io.loop_thread import LoopThread
    from ottla.client.promise import Promise

    client, promise = LoopThread("one"), Promise()
    signal.signal(signal.SIGINT, lambda *_: client.loop.call(lambda: promise.resolve(7)))
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    assert client.wait(promise, 3600)
    assert promise.value() == 7
    client.stop()
    """
    )


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, timeout=TIMEOUT_S)
