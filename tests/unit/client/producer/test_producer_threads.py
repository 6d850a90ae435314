"""Threads that share a producer: another one sends, without the lock, at every step of a `send` that holds it."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from ottla.client.producer.append import IS_COMPILED, Delivery
from ottla.testing.scripted_brokers import ScriptedBrokers
from tests.unit.client.producer.written_logs import Producing, WrittenLogs

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="only the compiled `send` takes no lock")


def preempted(step: int, work: Callable[[], Any], meanwhile: Callable[[], Any]) -> bool:
    """Runs `meanwhile` before that step of the producer's own code, where Python may change to another thread.

    Returns whether `work` has so many steps.
    """
    left = step

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        if "/ottla/client/producer/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        return on_step

    def on_step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "opcode":
            left -= 1
            if left == 0:
                sys.settrace(None)
                meanwhile()
        return on_step

    traced = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(traced)
    return left <= 0


def sharing(step: int, filled: int, others: int, **settings: object) -> bool:
    """One thread sends `filled` records and then one more, before whose given step another one sends some, too."""
    brokers = ScriptedBrokers((1,), {"clicks": 2})
    logs = WrittenLogs(brokers)
    producing = Producing(brokers, **{"linger_ms": 50, "batch_size": 200, **settings})
    producing.send(b"warm", partition=0)
    producing.send(b"warm", partition=1)
    producing.flush()
    sent: list[tuple[bytes, Delivery]] = []
    told: list[Delivery] = []

    def send(value: bytes, **options: Any) -> None:
        sent.append((value, producing.send(value, on_delivery=told.append, **options)))

    def others_send() -> None:
        for number in range(others):
            value = b"other %d" % number
            delivery = producing.core.appender.append("clicks", value, None, None, None, None, told.append)
            if delivery is not None:
                sent.append((value, delivery))

    for number in range(filled):
        send(b"before %d" % number)
    had_step = preempted(step, lambda: send(b"mine", headers=[("takes", b"the long way")]), others_send)
    send(b"after")
    producing.flush()
    for value, delivery in sent:
        assert logs.values["clicks", delivery.partition][delivery.result().offset] == value, (step, value)
    assert sum(map(len, logs.values.values())) == len(sent) + 2
    assert len(told) == len(sent)
    available, total = "buffer-available-bytes", "buffer-total-bytes"
    assert producing.core.metrics()[available] == producing.core.metrics()[total]
    return had_step


@pytest.mark.slow
@pytest.mark.parametrize("filled", [0, 3, 7, 8, 9])
@pytest.mark.parametrize("others", [1, 3, 40])
def test_every_record_is_where_its_delivery_says_whenever_another_thread_sends(filled: int, others: int) -> None:
    step = 1
    while sharing(step, filled, others):
        step += 1
    assert step > 50


@pytest.mark.slow
def test_records_of_two_threads_are_kept_when_every_batch_is_sent_at_once() -> None:
    step = 1
    while sharing(step, 3, 5, batch_size=0, linger_ms=0):
        step += 1
    assert step > 50


def test_a_partition_is_drawn_again_when_other_threads_spend_the_sticky_one_meanwhile() -> None:
    """At any step, the records of others may use up what goes to one partition (KIP-794): then it is none, -1."""
    brokers = ScriptedBrokers((1,), {"clicks": 2})
    logs = WrittenLogs(brokers)
    producing = Producing(brokers, linger_ms=50, batch_size=200)
    producing.send(b"warm")
    open_batches = producing.core.accumulator.topics["clicks"].open

    def spend() -> None:
        open_batches.sticky = -1

    step = count = 1
    while preempted(step, lambda: producing.send(b"mine", headers=[("takes", b"the long way")]), spend):
        step, count = step + 1, count + 1
    producing.flush()
    assert sum(map(len, logs.values.values())) == count + 1
