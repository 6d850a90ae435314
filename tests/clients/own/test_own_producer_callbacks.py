"""What users' callbacks may do to a producer: be slow, want locks, raise anything, close it. And who waits for them."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla.client.errors import BufferExhausted, ForkedClient

TIMEOUT_S = 60
A_MOMENT_S = 0.05


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """What a callback waits for, in the end not in vain."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def producer(bootstrap: str, held: threading.Event) -> Iterator[ottla.Producer]:
    made = ottla.Producer(bootstrap_servers=bootstrap, linger_ms=0)
    yield made
    held.set()
    made.close()


def test_flush_keeps_to_its_time_limit_while_a_callback_hangs(
    producer: ottla.Producer, topic: str, held: threading.Event
) -> None:
    producer.send(topic, b"v", on_delivery=lambda _: held.wait(TIMEOUT_S) and None).result(TIMEOUT_S)
    with pytest.raises(TimeoutError, match="callbacks"):
        producer.flush(A_MOMENT_S)
    held.set()
    producer.flush(TIMEOUT_S)


def test_close_keeps_to_its_time_limit_while_a_callback_hangs_and_the_others_run_after_it(
    bootstrap: str, topic: str, held: threading.Event
) -> None:
    producer = ottla.Producer(bootstrap_servers=bootstrap, linger_ms=0)
    begun, told = threading.Event(), threading.Event()

    def hang(_: Any) -> None:
        begun.set()
        held.wait(TIMEOUT_S)

    producer.send(topic, b"first", on_delivery=hang).result(TIMEOUT_S)
    assert begun.wait(TIMEOUT_S)
    producer.send(topic, b"second", on_delivery=lambda _: told.set())
    producer.close(A_MOMENT_S)  # or this test never ends
    assert not told.is_set()
    held.set()
    assert told.wait(TIMEOUT_S)
    producer._loop._thread.join(TIMEOUT_S)
    assert not producer._loop._thread.is_alive()


def test_a_producer_can_be_closed_under_a_lock_that_a_callback_wants(bootstrap: str, topic: str) -> None:
    producer = ottla.Producer(bootstrap_servers=bootstrap, linger_ms=0)
    lock, told = threading.Lock(), threading.Event()

    def note(_: Any) -> None:
        with lock:
            told.set()

    with lock:
        producer.send(topic, b"v", on_delivery=note).result(TIMEOUT_S)
        producer.close(A_MOMENT_S)
    assert told.wait(TIMEOUT_S)


def test_a_callback_may_close_the_producer(bootstrap: str, topic: str) -> None:
    producer = ottla.Producer(bootstrap_servers=bootstrap, linger_ms=0)
    closed = threading.Event()

    def close(_: Any) -> None:
        producer.close()
        closed.set()

    producer.send(topic, b"v", on_delivery=close)
    assert closed.wait(TIMEOUT_S)
    producer._loop._thread.join(TIMEOUT_S)
    assert not producer._loop._thread.is_alive()


def test_records_whose_callbacks_wait_take_their_part_of_the_memory(
    bootstrap: str, topic: str, held: threading.Event
) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, linger_ms=0, buffer_memory=40_000, max_block_ms=200) as producer:
        told: list[Any] = []

        def note(delivery: Any) -> None:
            held.wait(TIMEOUT_S)
            told.append(delivery)

        sent: list[Any] = []

        def send_many() -> None:
            while len(sent) < 1000:
                sent.append(producer.send(topic, b"x" * 1000, on_delivery=note))

        with pytest.raises(BufferExhausted):
            send_many()
        for delivery in sent:
            delivery.result(TIMEOUT_S)
        held.set()
        producer.flush(TIMEOUT_S)
        assert told == sent
        assert producer.metrics()["buffer-available-bytes"] == 40_000
        producer.send(topic, b"x" * 1000).result(TIMEOUT_S)


def test_a_sender_goes_on_as_soon_as_callbacks_have_made_room(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, linger_ms=0, buffer_memory=40_000) as producer:
        may_run = threading.Semaphore(0)
        told: list[Any] = []

        def note(delivery: Any) -> None:
            may_run.acquire(timeout=TIMEOUT_S)
            told.append(delivery)

        done = threading.Event()

        def send() -> None:
            for _ in range(200):
                producer.send(topic, b"x" * 1000, on_delivery=note)
            done.set()

        threading.Thread(target=send).start()
        for _ in range(200):
            may_run.release()
        assert done.wait(TIMEOUT_S)
        producer.flush(TIMEOUT_S)
        assert len(told) == 200


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_whatever_a_callback_raises_the_others_are_told_and_the_producer_goes_on(
    producer: ottla.Producer, topic: str, raised: type[BaseException]
) -> None:
    def fail(_: Any) -> None:
        raise raised

    told: list[Any] = []
    deliveries = [
        producer.send(topic, b"%d" % number, on_delivery=told.append if number % 2 else fail) for number in range(10)
    ]
    producer.flush(TIMEOUT_S)
    assert [one.result(0).offset for one in deliveries] == list(range(10))
    assert told == deliveries[1::2]
    assert producer.send(topic, b"more").result(TIMEOUT_S).offset == 10


def test_a_callback_for_a_delivery_that_is_done_runs_soon_though_nothing_else_happens(
    producer: ottla.Producer, topic: str
) -> None:
    delivery = producer.send(topic, b"v")
    delivery.result(TIMEOUT_S)
    told = threading.Event()
    delivery.add_done_callback(lambda _: told.set())
    assert told.wait(TIMEOUT_S)


def test_a_callback_for_a_delivery_of_a_closed_producer_runs_at_once(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        delivery = producer.send(topic, b"v")
    told: list[Any] = []
    delivery.add_done_callback(told.append)
    assert told == [delivery]


def test_a_delivery_of_before_a_fork_is_refused_in_the_child(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, linger_ms=600_000, delivery_timeout_ms=700_000) as producer:
        delivery = producer.send(topic, b"v")
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            refused = []
            for call in (
                delivery.result,
                delivery.exception,
                lambda: delivery.add_done_callback(print),
                producer.metrics,
                producer.flush,
            ):
                try:
                    call()  # type: ignore[operator]
                except ForkedClient:
                    refused.append(b"x")
                except BaseException:
                    refused.append(b"-")
            os.write(writer, b"".join(refused))
            os._exit(0)
        os.close(writer)
        with open(reader, "rb") as told:
            assert told.read() == b"xxxxx"
        os.waitpid(child, 0)
        producer.flush(TIMEOUT_S)
        assert delivery.result(0).offset == 0


# --- asyncio ---


@pytest.mark.parametrize("raised", [ValueError, asyncio.CancelledError, GeneratorExit])
def test_in_asyncio_whatever_a_callback_raises_every_delivery_is_settled(
    bootstrap: str, topic: str, raised: type[BaseException]
) -> None:
    def fail(_: Any) -> None:
        raise raised

    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
            told: list[Any] = []
            deliveries = [await producer.send(topic, b"v", on_delivery=call) for call in (fail, told.append, None)]
            assert [(await delivery).offset for delivery in deliveries] == [0, 1, 2]
            await producer.flush()
            assert told == deliveries[1:2]

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


def test_in_asyncio_a_callback_that_ends_the_loop_leaves_nothing_unsettled(bootstrap: str, topic: str) -> None:
    def leave(_: Any) -> None:
        raise SystemExit

    told: list[Any] = []
    loop = asyncio.new_event_loop()
    made: list[Any] = []

    async def main() -> None:
        producer = ottla.aio.Producer(bootstrap_servers=bootstrap, linger_ms=20)
        made.append(producer)
        made.extend([await producer.send(topic, b"v", on_delivery=call) for call in (leave, told.append)])
        await producer.flush()

    async def end() -> None:
        assert (await made[2]).offset == 1
        await made[0].close()

    task = loop.create_task(main())
    with pytest.raises(SystemExit):
        loop.run_until_complete(task)
    loop.run_until_complete(asyncio.wait_for(end(), TIMEOUT_S))
    loop.run_until_complete(task)
    loop.close()
    assert told == made[2:]


def test_in_asyncio_flush_has_a_time_limit(bootstrap: str, topic: str) -> None:
    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers="localhost:1", max_block_ms=200) as producer:
            await producer.flush(A_MOMENT_S)  # nothing was sent
        async with ottla.aio.Producer(bootstrap_servers=bootstrap) as producer:
            delivery = await producer.send(topic, b"v")
            with pytest.raises(TimeoutError, match="not everything"):
                await producer.flush(0)
            await producer.flush(TIMEOUT_S)
            assert delivery.done()

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))
