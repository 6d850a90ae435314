"""A transactional producer that is closed, or whose program ends, in any state: no hang, and the log is right."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla import Consumer, Producer, TopicPartition, aio
from ottla.errors import ClientClosed
from ottla.testing import Broker

TIMEOUT_S = 60
QUICK: dict[str, Any] = {
    "request_timeout_ms": 2000, "delivery_timeout_ms": 4000, "retry_backoff_ms": 20, "max_block_ms": 20_000,
    "reconnect_backoff_ms": 10,
}  # fmt: skip
SENT = [b"0", b"1", b"2"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    broker.create_topic(name, partitions=1)
    return name


def committed(broker: Broker, topic: str) -> list[bytes | None]:
    """What readers see when every transaction of the id has ended."""
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic, **QUICK) as producer:
        producer.init_transactions()
    with Consumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed") as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning([partition])
        [end] = consumer.end_offsets([partition]).values()
        found: list[bytes | None] = []
        while consumer.position(partition) < end:
            found += [record.value for record in consumer.poll(1)]
        return found


def begun(broker: Broker, topic: str, linger_ms: int = 0) -> Producer:
    producer = Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic, linger_ms=linger_ms, **QUICK)
    producer.begin()
    return producer


def ended_meanwhile(end: Callable[[], None]) -> list[BaseException | None]:
    """Calls it on a thread of its own. The list has what it raised, or None, when it is done."""
    outcome: list[BaseException | None] = []

    def run() -> None:
        try:
            end()
            outcome.append(None)
        except BaseException as raised:
            outcome.append(raised)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to that"
        time.sleep(0.005)


@pytest.mark.parametrize("timeout", [None, 30.0, 0.0])
@pytest.mark.parametrize("state", ["begun", "sent", "delivered"])
def test_an_open_transaction_is_aborted_by_close(broker: Broker, topic: str, state: str, timeout: float | None) -> None:
    producer = begun(broker, topic, linger_ms=1000)
    deliveries = [] if state == "begun" else [producer.send(topic, value) for value in SENT]
    if state == "delivered":
        producer.flush(TIMEOUT_S)
    producer.close(timeout)
    assert all(one.done() for one in deliveries)
    assert all((one.exception() is None) == (state == "delivered") for one in deliveries)
    assert committed(broker, topic) == []


@pytest.mark.parametrize("effect", ["before", "after"])
@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_close_waits_for_the_end_whose_reply_was_lost(broker: Broker, topic: str, ends: str, effect: str) -> None:
    producer = begun(broker, topic)
    for value in SENT:
        producer.send(topic, value)
    producer.flush(TIMEOUT_S)
    fault = broker.drop_connection("EndTxn", effect=effect)
    outcome = ended_meanwhile(getattr(producer, ends))
    until(lambda: fault.seen or outcome)
    producer.close()
    until(lambda: outcome)
    assert outcome == [None]
    assert committed(broker, topic) == (SENT if ends == "commit" else [])


@pytest.mark.parametrize(
    ("ends", "said"), [("commit", "is closed while it commits"), ("abort", "is closed in a trans")]
)
def test_close_that_cannot_wait_says_that_the_transaction_is_open(
    broker: Broker, topic: str, ends: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    producer = begun(broker, topic)
    producer.send(topic, b"0")
    producer.flush(TIMEOUT_S)
    fault = broker.delay("EndTxn", ms=1500, times=1)
    outcome = ended_meanwhile(getattr(producer, ends))
    until(lambda: fault.seen)
    producer.close(0.05)
    until(lambda: outcome)
    assert isinstance(outcome[0], ClientClosed)
    assert said in caplog.text
    broker.clear_faults()
    assert committed(broker, topic) in ([], [b"0"])


def test_closing_a_fenced_producer_neither_waits_nor_undoes_its_successor(broker: Broker, topic: str) -> None:
    producer = begun(broker, topic)
    producer.send(topic, b"old").result(TIMEOUT_S)
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic, **QUICK) as newer:
        newer.begin()
        newer.send(topic, b"new")
        producer.close()
        newer.commit()
    assert committed(broker, topic) == [b"new"]


def test_an_asyncio_producer_that_is_closed_while_it_commits_has_committed(broker: Broker, topic: str) -> None:
    async def scene() -> None:
        producer = aio.Producer(bootstrap_servers=broker.bootstrap, transactional_id=topic, **QUICK)
        await producer.begin()
        await producer.send_and_wait(topic, b"0")
        broker.drop_connection("EndTxn", effect="after")
        committing = asyncio.create_task(producer.commit())
        await asyncio.sleep(0)
        committing.cancel()
        await producer.close()

    asyncio.run(asyncio.wait_for(scene(), TIMEOUT_S))
    assert committed(broker, topic) == [b"0"]


PROGRAM = """
import logging, os, signal, sys, threading
from ottla import Producer
logging.basicConfig()
producer = Producer(bootstrap_servers={bootstrap!r}, transactional_id={topic!r}, linger_ms=1000)
producer.begin()
for value in (b"0", b"1", b"2"):
    producer.send({topic!r}, value)
"""
ENDS = {
    "end": "",
    "exit": "sys.exit(0)",
    "with": "with producer: sys.exit(0)",
    "raise in a block": "with producer:\n    raise SystemExit(0)",
    "commit": "producer.commit()",
    "interrupted commit": (
        "threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    producer.commit()\n    threading.Event().wait(60)\nexcept KeyboardInterrupt:\n    pass"
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_ends_in_a_transaction_has_it_aborted_or_committed_and_says_so(
    broker: Broker, topic: str, how: str
) -> None:
    program = PROGRAM.format(bootstrap=broker.bootstrap, topic=topic) + ENDS[how]
    if how == "interrupted commit":
        broker.delay("EndTxn", ms=1000, times=1)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert run.returncode in (0, -signal.SIGINT), run.stderr
    broker.clear_faults()
    is_committed = "commit" in how
    assert committed(broker, topic) == (SENT if is_committed else [])
    is_told = "has ended in a transaction that it has not committed" in run.stderr
    assert is_told == (how in ("end", "exit")), run.stderr
