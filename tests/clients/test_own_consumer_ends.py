"""Consumers that end in the middle of something: the group must not wait for them."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
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
        consumer = Consumer({settings_of(broker, "interrupted")!r})
        consumer.assign([TopicPartition("clicks", 0)])
        poll = consumer._core.poll

        def interrupted(most):
            records = poll(most)
            if records:
                os.kill(os.getpid(), signal.SIGINT)
            return records

        consumer._core.poll = interrupted
        try:
            while True:
                consumer.poll(1.0)
        except KeyboardInterrupt:
            assert consumer.position(TopicPartition("clicks", 0)) == 0
            consumer._core.poll = poll
            assert [record.value for record in consumer.poll(10.0)] == [b"v"]
        consumer.close()
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
