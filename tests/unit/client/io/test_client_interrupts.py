"""Ctrl-C at every step of a call: it ends the call, and nothing of the client's is left taken.

Python raises it between any two steps of the main thread, in the middle of a core's work, too. A library leaves that to
the program, so the tests have both: a program that does nothing about it, and a command of ours, whose handler waits
for the end of the core's work.
"""

import subprocess
import sys

import pytest

TIMEOUT_S = 120

STEPS = """if True:
    import faulthandler, gc, signal, sys, threading, time
    from _thread import interrupt_main
    from contextlib import nullcontext
    from ottla.cli.stopping import interrupts_between_steps
    from ottla.client.errors import ClientClosed
    from ottla.client.io.locks import OneUser
    from ottla.client.io.loop_thread import LoopThread
    from ottla.client.promise import Promise

    faulthandler.dump_traceback_later(100, exit=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has background jobs ignore it
    IS_COMMAND = sys.argv[1] == "command"


    def interrupted_at(step, work):
        \"""Whether there was such a step of our own code. A signal comes before it, and strikes where Python looks.

        Nothing is collected meanwhile: Python swallows an interrupt that strikes in the callback of a weak reference.
        \"""
        left = step

        def on_call(frame, event, _):
            if "/ottla/client/" not in frame.f_code.co_filename and frame.f_code.co_name != "core":
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

        with interrupts_between_steps() if IS_COMMAND else nullcontext():
            handler = signal.getsignal(signal.SIGINT)
            sys._getframe().f_trace_opcodes = True  # Python 3.12 has no steps to trace unless somebody wants them
            gc.disable()
            sys.settrace(on_call)
            try:
                try:
                    work()
                finally:
                    sys.settrace(None)
                if left <= 0:  # it may come a moment later
                    time.sleep(60)
                    raise AssertionError("the interrupt is lost")
            except KeyboardInterrupt:
                pass
            gc.enable()
            assert signal.getsignal(signal.SIGINT) == handler, "a library has touched it"
        return left <= 0


    def take_wheel(client):
        for _ in range(600):
            client._ask_for_wheel()
            if client._wheel.acquire(timeout=0.05):
                return
        raise AssertionError("the wheel is still taken")


    def is_as_before(client):
        take_wheel(client)
        client._wheel.release()
        assert not client.lock._is_owned()
        assert not client._waiting


    def has_ended(client):
        \"""One whose core was at work. It is not used any more, and nobody is left waiting for it.\"""
        assert not IS_COMMAND, "an interrupt has struck in the middle of a step"
        client._thread.join(60)
        assert not client._thread.is_alive()
        assert not client.lock._is_owned()
        try:
            client.ask(Promise)
        except ClientClosed:
            return
        raise AssertionError("it is still used")


    def every_step(begin, check=lambda client: None):
        \"""`begin` is given a client, and returns what is interrupted.\"""
        step, torn = 1, 0
        client = LoopThread("one")
        work = begin(client)
        while interrupted_at(step, work):
            check(client)
            if client.step.is_torn:
                has_ended(client)
                torn += 1
                client = LoopThread("one")
                work = begin(client)
            else:
                is_as_before(client)
            step += 1
        assert step > 20, step
        asked = []
        other = threading.Thread(target=lambda: asked.append(client.ask(lambda: client.world.sleep(1), 30)))
        other.start()
        other.join(60)
        assert asked == [None]
        client.stop()
        return torn


    def settled_soon(client):
        promise = Promise()
        client.loop.call(lambda: promise.resolve(None))
        return promise
"""

SCENES = {
    "a caller who waits": """
    torn = every_step(lambda client: lambda: client.wait(settled_soon(client), 10))
    assert torn or IS_COMMAND
    """,
    "a caller who handles what is ready": """
    every_step(lambda client: client.drive)
    """,
    "a caller who waits while another thread drives": """
    def begin(client):
        driving, over = threading.Event(), Promise()

        def drive():
            take_wheel(client)
            driving.set()
            time.sleep(0.02)
            client._wheel.release()

        def work():
            driving.clear()
            other = threading.Thread(target=drive)
            other.start()
            driving.wait()
            try:
                client.wait(Promise(), 0.003)
            finally:
                other.join()

        return work

    every_step(begin)
    """,
    "a caller who waits for callbacks of a user": """
    from ottla.client.blocking.callbacks import Callbacks

    def begin(client):
        callbacks = Callbacks(client.nudge)
        client.run_callbacks, client.has_callbacks = callbacks.run, callbacks.are_due

        def work():
            callbacks.add(lambda _: None, None)
            callbacks.all_run(60)

        return work

    assert not every_step(begin)
    """,
    "a rebalance listener, which runs or stays to be run": """
    from ottla import Consumer
    from ottla.client.consumer.group_bond import UserTask

    def begin():
        consumer = Consumer(bootstrap_servers="localhost:1")
        tasks, ran, done = consumer._core.tasks, [], []

        def work():
            tasks.append(UserTask(lambda: ran.append(None), done.append))
            consumer._run_tasks()

        return consumer, tasks, ran, done, work

    consumer, tasks, ran, done, work = begin()
    step = 1
    while interrupted_at(step, work):
        is_done = done == [None] and not tasks
        is_to_run = not ran and not done and len(tasks) == 1
        assert is_done or is_to_run or consumer._loop.step.is_torn, (step, ran, done, tasks)
        if consumer._loop.step.is_torn:
            has_ended(consumer._loop)
            consumer.close()
            consumer, tasks, ran, done, work = begin()
        else:
            is_as_before(consumer._loop)
            consumer._run_tasks()
            assert not tasks and len(done) == 1
        ran.clear()
        done.clear()
        step += 1
    assert step > 20, step
    consumer.close(0)
    """,
    "a rebalance listener whose end waits for the lock": """
    import os
    from ottla import Consumer
    from ottla.client.consumer.group_bond import UserTask

    consumer = Consumer(bootstrap_servers="localhost:1")
    done, is_held = [], threading.Event()

    def strike(*_):
        if is_held.is_set():
            raise KeyboardInterrupt

    def hold():
        with consumer._lock:
            is_held.set()
            for _ in range(50):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.002)
            is_held.clear()

    signal.signal(signal.SIGINT, strike)
    holder = threading.Thread(target=hold)
    consumer._core.tasks.append(UserTask(lambda: holder.start() or is_held.wait(), done.append))
    try:
        consumer._run_tasks()
    except KeyboardInterrupt:
        pass
    holder.join()
    assert done == [None]
    consumer.close(0)
    """,
    "a client that one thread at a time may use": """
    user = OneUser()

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
        step += 1
    assert step > 10, step
    """,
    "what a user deserializes": """
    def begin(client):
        def core():
            with client.lock, client.step:
                client.step.outside(client.lock, lambda: None)

        return core

    every_step(begin)
    """,
    "what a core does that leaves garbage": """
    import weakref

    class Item:
        pass

    known = weakref.WeakSet()

    def begin(client):
        def core():
            many, more = map(set, [()] * 100), map(set, [()] * 100)
            gc.set_threshold(50)
            list(many)
            item = Item()
            item.itself = item
            known.add(item)
            del item
            list(more)  # in the middle of it, Python would collect
            return client.world.sleep(0)

        return lambda: client.ask(core, 10)

    def check(client):
        gc.set_threshold(700)
        gc.collect()

    assert every_step(begin, check) or IS_COMMAND
    """,
    "what a core does": """
    begun, ended = [], []

    def begin(client):
        def core():
            begun.append(None)
            promise = client.world.sleep(0)
            ended.append(None)
            return promise

        return lambda: client.ask(core, 10)

    def check(client):
        assert len(begun) == len(ended) or client.step.is_torn, "it was cut short, and is used all the same"
        begun.clear()
        ended.clear()

    assert every_step(begin, check) or IS_COMMAND
    """,
}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["library", "command"])
@pytest.mark.parametrize("scene", SCENES)
def test_an_interrupt_at_any_step_leaves_a_client_that_others_can_drive_and_close(scene: str, program: str) -> None:
    run(STEPS + SCENES[scene], program)


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


def test_what_an_applications_own_code_raises_ends_no_client() -> None:
    """A deserializer takes its time, and Ctrl-C strikes there."""
    run(
        """if True:
    from ottla.client.io.loop_thread import LoopThread

    def deserialize():
        raise KeyboardInterrupt

    client = LoopThread("one")
    try:
        with client.lock, client.step:
            client.step.outside(client.lock, deserialize)
    except KeyboardInterrupt:
        pass
    assert client.ask(lambda: client.world.sleep(0), 30) is None
    client.stop()
    """
    )


def test_a_producer_whose_work_was_cut_short_is_not_used_any_more() -> None:
    run(
        """if True:
    from ottla import Producer
    from ottla.client.errors import ClientClosed

    producer = Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=1)
    core = producer._core

    def interrupted(*_):
        raise KeyboardInterrupt

    core.flush = interrupted
    try:
        producer.flush()
    except KeyboardInterrupt:
        pass
    try:
        producer.send("t", b"v")
    except ClientClosed as refused:
        assert "interrupted" in str(refused), refused
    else:
        raise AssertionError("it is still used")
    producer.close()
    assert core.is_closed
    """
    )


def run(program: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, timeout=TIMEOUT_S)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["Producer", "Consumer", "Admin"])
def test_an_interrupt_in_the_middle_of_close_is_what_close_raises_and_the_client_has_ended(client: str) -> None:
    run(
        f"""if True:
    from ottla import Admin, Consumer, Producer

    client = {client}(bootstrap_servers="127.0.0.1:1")
    inner = client._cluster if {client} is Admin else client._core
    close = inner.close

    def interrupted(*_):
        inner.close = close
        raise KeyboardInterrupt

    inner.close = interrupted
    try:
        client.close()
    except KeyboardInterrupt:
        client._loop._thread.join(60)
    else:
        raise AssertionError("the interrupt is lost")
    assert not client._loop._thread.is_alive()
    client.close()
    """
    )


def test_a_producer_that_was_interrupted_names_the_records_that_are_lost_and_closes_its_interceptors() -> None:
    run(
        """if True:
    import logging
    from ottla import Producer

    told, closed = [], []
    logging.getLogger().addHandler(logging.Handler())
    logging.Handler.emit = lambda _, record: told.append(record.getMessage())

    class Interceptor:
        def close(self):
            closed.append(None)

    producer = Producer(bootstrap_servers="127.0.0.1:1", interceptor_classes=[Interceptor()])
    batch = type("Batch", (), {"topic": "t", "record_count": 3})
    producer._core.accumulator.unfinished = lambda: [batch]

    def interrupted(*_):
        raise KeyboardInterrupt

    producer._core.flush = interrupted
    try:
        producer.flush()
    except KeyboardInterrupt:
        pass
    producer.close()
    producer.close()
    assert len(closed) == 1, closed
    assert any("interrupted" in line and "3 records for t" in line for line in told), told
    """
    )
