"""Consumers that end in the middle of something: the group must not wait for them."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from ottla import Admin, Consumer, Producer, RebalanceListener, TopicPartition, aio
from ottla.testing import Broker

T0 = TopicPartition("clicks", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as node:
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            producer.send("clicks", b"v", partition=0)
        yield node


def settings_of(broker: Broker, group: str) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}


class Raises(RebalanceListener):
    def on_partitions_revoked(self, partitions: Any) -> None:
        raise RuntimeError("the listener of the test")


def test_a_listener_that_raises_does_not_keep_its_member_in_the_group(broker: Broker) -> None:
    consumer = Consumer(settings_of(broker, "raises"))
    consumer.subscribe(["clicks"], listener=Raises())
    for _ in range(100):
        if consumer.poll(0.1):
            break
    with pytest.raises(RuntimeError, match="the listener of the test"):
        consumer.close()
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        described = admin.describe_consumer_groups(["raises"])["raises"]
        assert list(described.members) == []


def test_a_poll_that_is_cancelled_within_a_listener_does_not_stop_the_rebalance(broker: Broker) -> None:
    class Slow(RebalanceListener):
        async def on_partitions_assigned(self, partitions: Any) -> None:
            entered.set()
            await asyncio.sleep(3600)

    entered = asyncio.Event()

    async def scene() -> list[Any]:
        async with aio.Consumer(settings_of(broker, "cancelled")) as consumer:
            consumer.subscribe(["clicks"], listener=Slow())

            async def poll() -> None:
                while True:
                    await consumer.poll(0.1)

            polling = asyncio.create_task(poll())
            await asyncio.wait_for(entered.wait(), 10)
            polling.cancel()
            await asyncio.wait([polling])
            for _ in range(50):
                if records := await consumer.poll(0.1):
                    return records
            return []

    assert [record.value for record in asyncio.run(scene())] == [b"v"]


def test_a_commit_that_nobody_waits_for_is_made_before_the_consumer_closes(broker: Broker) -> None:
    with Consumer(settings_of(broker, "later") | {"enable.auto.commit": False}) as consumer:
        consumer.assign([T0])
        told: list[Any] = []
        consumer.commit_async({T0: 1}, lambda offsets, error: told.append(error))
    assert told == [None]
    with Consumer(settings_of(broker, "later")) as consumer:
        committed = consumer.committed([T0])[T0]
        assert committed is not None
        assert committed.offset == 1


def test_an_idle_consumer_keeps_nothing_of_its_polls(broker: Broker) -> None:
    async def scene() -> int:
        async with aio.Consumer(settings_of(broker, "idle")) as consumer:
            consumer.assign([T0])
            consumer.seek(T0, 1)
            for _ in range(30):
                assert await consumer.poll(0.01) == []
            return len(consumer._core._activity._callbacks or ())

    assert asyncio.run(scene()) <= 1


def test_records_of_a_poll_that_was_interrupted_are_not_consumed(broker: Broker) -> None:
    program = f"""if True:
        import os, signal
        from ottla import Consumer, TopicPartition
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has background jobs ignore it
        consumer = Consumer({settings_of(broker, "interrupted")!r})
        clicks = TopicPartition("clicks", 0)
        consumer.assign([clicks])
        poll, lock, found = consumer._core.poll, consumer._lock, []

        def poll_and_tell(most, records):
            poll(most, records)
            found[:] = records

        class InterruptedAfterIt:
            __enter__ = staticmethod(lock.__enter__)

            def __exit__(self, *how):
                lock.__exit__(*how)
                if found:
                    consumer._core.poll, consumer._lock = poll, lock
                    os.kill(os.getpid(), signal.SIGINT)

        consumer._core.poll, consumer._lock = poll_and_tell, InterruptedAfterIt()
        try:
            while True:
                consumer.poll(1.0)
        except KeyboardInterrupt:
            assert consumer.position(clicks) == 0
            assert [record.value for record in consumer.poll(10.0)] == [b"v"]
        consumer.close()
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_poll_that_was_interrupted_in_the_middle_of_its_work_ends_the_consumer_and_commits_nothing(
    broker: Broker,
) -> None:
    program = f"""if True:
        import os, signal
        from ottla import Consumer, TopicPartition
        from ottla.errors import ClientClosed
        signal.signal(signal.SIGINT, signal.default_int_handler)
        consumer = Consumer({settings_of(broker, "torn")!r})
        clicks = TopicPartition("clicks", 0)
        consumer.assign([clicks])
        poll = consumer._core.poll

        def interrupted(most, records):
            poll(most, records)
            if records:
                os.kill(os.getpid(), signal.SIGINT)

        consumer._core.poll = interrupted
        try:
            while True:
                consumer.poll(1.0)
        except KeyboardInterrupt:
            pass
        try:
            consumer.poll(1.0)
            raise AssertionError("it is still used")
        except ClientClosed:
            consumer.close()
        with Consumer({settings_of(broker, "torn")!r}) as another:
            assert another.committed([clicks]) == {{clicks: None}}
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_chunk_of_a_poll_arrow_that_was_interrupted_is_not_consumed(broker: Broker) -> None:
    pytest.importorskip("pyarrow")
    program = f"""if True:
        import os, signal
        from ottla import Consumer, TopicPartition
        from ottla.client.consumer.fetching import arrow_chunks
        signal.signal(signal.SIGINT, signal.default_int_handler)
        consumer = Consumer({settings_of(broker, "interrupted-arrow")!r})
        clicks = TopicPartition("clicks", 0)
        consumer.assign([clicks])
        to_arrow = arrow_chunks.to_arrow

        def interrupted(*args, **options):
            to_arrow(*args, **options)
            os.kill(os.getpid(), signal.SIGINT)

        arrow_chunks.to_arrow = interrupted
        try:
            while True:
                consumer.poll_arrow(1.0)
        except KeyboardInterrupt:
            assert consumer.position(clicks) == 0, consumer.position(clicks)
        arrow_chunks.to_arrow = to_arrow
        assert consumer.poll_arrow(10.0).column("value").to_pylist() == [b"v"]
        consumer.close()
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_deserializer_does_not_keep_the_client_from_its_work(broker: Broker) -> None:
    """It may ask a registry and wait: heartbeats go on meanwhile."""
    began, may_go_on = Event(), Event()

    def slow(topic: str, content: bytes, headers: object) -> bytes:
        began.set()
        assert may_go_on.wait(30)
        return content

    with Consumer(settings_of(broker, "slow"), value_deserializer=slow) as consumer:
        consumer.assign([T0])
        read: list[Any] = []
        reader = Thread(target=lambda: read.extend(poll_some(consumer)))
        reader.start()
        assert began.wait(30)
        assert consumer._lock.acquire(timeout=30), "the loop's thread could not do its work"
        consumer._lock.release()
        may_go_on.set()
        reader.join(30)
        assert [record.value for record in read] == [b"v"]
        assert consumer.position(T0) == 1


def test_records_that_were_read_while_their_partition_was_moved_are_not_handed_out(broker: Broker) -> None:
    calls: list[bytes] = []

    def moving(topic: str, content: bytes, headers: object) -> bytes:
        calls.append(content)
        if len(calls) == 1:
            with consumer._lock:  # as the client's own thread does when a fetch beyond tells that the log was cut
                consumer._core.seek_to_end_of([T0], beginning=True)
        return content

    with Consumer(settings_of(broker, "moved"), value_deserializer=moving) as consumer:
        consumer.assign([T0])
        assert [record.value for record in poll_some(consumer)] == [b"v"]
        assert len(calls) == 2
        assert consumer.position(T0) == 1


def poll_some(consumer: Consumer) -> list[Any]:
    """As many polls as it takes until there are records."""
    for _ in range(30):
        if records := consumer.poll(1.0):
            return records
    raise AssertionError("no records came")
