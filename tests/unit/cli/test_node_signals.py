"""Signals reach the loop, and afterwards everything is as it was."""

import asyncio
import os
import signal

from ottla.cli.node_signals import signals_given_to


def test_each_signal_is_told_on_the_loop() -> None:
    told: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        both = loop.create_future()

        def on_signal(number: signal.Signals) -> None:
            assert asyncio.get_running_loop() is loop
            told.append(number.name)
            if len(told) == 2:
                both.set_result(None)

        with signals_given_to(loop, {signal.SIGUSR1, signal.SIGUSR2}, on_signal):
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.wait_for(both, 10)

    asyncio.run(run())
    assert sorted(told) == ["SIGUSR1", "SIGUSR2"]


def test_others_are_not() -> None:
    told: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        seen = loop.create_future()
        with signals_given_to(loop, {signal.SIGUSR2}, lambda _: seen.set_result(told.append("told"))):
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.wait_for(seen, 10)

    before = signal.signal(signal.SIGUSR1, lambda *_: told.append("handled"))
    try:
        asyncio.run(run())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sorted(told) == ["handled", "told"]


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)

    async def run() -> None:
        with signals_given_to(asyncio.get_running_loop(), {signal.SIGTERM}, lambda _: None):
            assert signal.getsignal(signal.SIGTERM) is not before

    asyncio.run(run())
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_that_the_process_was_started_to_ignore_stays_ignored() -> None:
    """`nohup ottla start &`: the end of the terminal is no reason to stop."""

    async def run() -> None:
        with signals_given_to(asyncio.get_running_loop(), {signal.SIGUSR1}, lambda _: None):
            assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN

    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        asyncio.run(run())
    finally:
        signal.signal(signal.SIGUSR1, before)
