"""Clients of asyncio in a loop that is closed, in another one, in another thread's, and when nobody calls `close`."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import ottla
from ottla import aio
from ottla.errors import ClientClosed, OtherEventLoop

TIMEOUT_S = 60


def values_of(bootstrap: str, topic: str, **settings: Any) -> list[bytes | None]:
    with ottla.Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        partition = ottla.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning([partition])
        [end] = consumer.end_offsets([partition]).values()
        found: list[bytes | None] = []
        while consumer.position(partition) < end:
            found += [record.value for record in consumer.poll(1)]
        return found


async def producer_with_one_waiting(bootstrap: str, topic: str) -> tuple[aio.Producer, Any]:
    """It knows the topic, so that `send` needs nothing but memory."""
    producer = aio.Producer(bootstrap_servers=bootstrap, linger_ms=600_000)
    delivery = await producer.send(topic, b"first", partition=0)
    await producer.flush()
    await delivery
    return producer, await producer.send(topic, b"second", partition=0)


CALLS: dict[str, Callable[[aio.Producer, str], Awaitable[Any]]] = {
    "send": lambda producer, topic: producer.send(topic, b"third", partition=0),
    "flush": lambda producer, topic: producer.flush(),
    "commit": lambda producer, topic: producer.commit(),
    "partitions_for": lambda producer, topic: producer.partitions_for(topic),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_producer_whose_loop_is_closed_refuses_records(bootstrap: str, topic: str, call: str) -> None:
    producer, delivery = asyncio.run(producer_with_one_waiting(bootstrap, topic))

    async def in_another() -> None:
        with pytest.raises(OtherEventLoop, match="made in another event loop"):
            await CALLS[call](producer, topic)
        with pytest.raises(OtherEventLoop):
            await delivery
        await producer.close()

    asyncio.run(in_another())


def test_closing_a_producer_whose_loop_is_closed_says_what_is_lost(
    bootstrap: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    producer, delivery = asyncio.run(producer_with_one_waiting(bootstrap, topic))
    asyncio.run(producer.close())
    assert f"1 records for {topic} that were sent could not be delivered: they are lost" in caplog.text
    assert isinstance(delivery.exception(), ClientClosed)
    asyncio.run(producer.close())
    assert values_of(bootstrap, topic) == [b"first"]


def test_calls_from_the_loop_of_another_thread_change_nothing(bootstrap: str, topic: str) -> None:
    async def scene() -> None:
        producer = aio.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id")
        await producer.begin()
        await producer.send(topic, b"within", partition=0)
        raised: list[type[BaseException]] = []

        def elsewhere() -> None:
            for call in (*CALLS.values(), lambda producer, _: producer.abort(), lambda producer, _: producer.close()):
                try:
                    asyncio.run(call(producer, topic))  # type: ignore[arg-type]
                except BaseException as problem:
                    raised.append(type(problem))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join, TIMEOUT_S)
        assert raised == [OtherEventLoop] * 6
        await producer.commit()
        await producer.close()

    asyncio.run(scene())
    assert values_of(bootstrap, topic, isolation_level="read_committed") == [b"within"]


def test_a_fork_within_a_running_loop_sends_nothing(bootstrap: str, topic: str) -> None:
    """Its memory says that the loop runs, in this very thread."""

    async def scene() -> None:
        producer, delivery = await producer_with_one_waiting(bootstrap, topic)
        child = os.fork()
        if child == 0:
            try:
                producer.send(topic, b"of the fork", partition=0).send(None)
            except RuntimeError:
                os._exit(0)
            finally:
                os._exit(1)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        await producer.close()
        await delivery

    asyncio.run(scene())
    assert values_of(bootstrap, topic) == [b"first", b"second"]


def test_a_consumer_whose_loop_is_closed_can_be_closed_and_nothing_else(bootstrap: str, topic: str) -> None:
    async def begun() -> aio.Consumer:
        consumer = aio.Consumer(bootstrap_servers=bootstrap, group_id=topic)
        consumer.subscribe([topic])
        await consumer.poll(0.05)
        return consumer

    consumer = asyncio.run(begun())

    async def in_another() -> None:
        with pytest.raises(OtherEventLoop):
            await consumer.poll(1)
        with pytest.raises(OtherEventLoop):
            await consumer.commit()
        await consumer.close()

    asyncio.run(asyncio.wait_for(in_another(), TIMEOUT_S))
    assert consumer._core.is_closed


def test_an_admin_is_not_closed_by_another_loop(bootstrap: str) -> None:
    async def scene() -> None:
        async with aio.Admin(bootstrap_servers=bootstrap) as admin:
            with pytest.raises(OtherEventLoop):
                await asyncio.to_thread(asyncio.run, admin.close())
            assert (await admin.describe_cluster()).nodes

    asyncio.run(scene())


@pytest.mark.filterwarnings("ignore:ottla.aio.Producer was dropped:ResourceWarning")
def test_a_producer_that_was_dropped_is_waited_for_before_its_loop_is_closed(bootstrap: str, topic: str) -> None:
    async def scene() -> None:
        await producer_with_one_waiting(bootstrap, topic)

    asyncio.run(scene())
    assert values_of(bootstrap, topic) == [b"first", b"second"]


@pytest.mark.filterwarnings("ignore:ottla.aio.Producer was dropped:ResourceWarning")
def test_a_producer_that_was_dropped_delivers_while_its_loop_goes_on(bootstrap: str, topic: str) -> None:
    async def scene() -> None:
        delivery = (await producer_with_one_waiting(bootstrap, topic))[1]
        gc.collect()
        assert (await asyncio.wait_for(delivered(delivery), TIMEOUT_S)).offset == 1

    async def delivered(delivery: Any) -> Any:
        return await delivery

    asyncio.run(scene())


@pytest.mark.filterwarnings("ignore:ottla.aio.Consumer was dropped:ResourceWarning")
def test_a_consumer_that_was_dropped_ends(bootstrap: str, topic: str) -> None:
    async def scene() -> None:
        consumer = aio.Consumer(bootstrap_servers=bootstrap, group_id=topic)
        core, io = consumer._core, consumer._io
        consumer.subscribe([topic])
        await consumer.poll(0.05)
        del consumer
        gc.collect()
        while not core.is_closed or not io._is_closed:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(scene(), TIMEOUT_S))


def test_a_program_whose_loop_ends_without_the_producers_close_says_what_is_lost(bootstrap: str, topic: str) -> None:
    program = f"""if True:
        import asyncio
        from ottla import aio
        async def main():
            global producer
            producer = aio.Producer(bootstrap_servers={bootstrap!r}, linger_ms=600_000)
            for number in range(7):
                await producer.send({topic!r}, b"%d" % number)
        asyncio.run(main())
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert run.returncode == 0, run.stderr
    assert f"7 records for {topic} that were sent could not be delivered: they are lost" in run.stderr
