"""Iterating over a consumer: what was not handed out yet is not consumed."""

import asyncio
from collections.abc import Iterator

import pytest

from ottla import Consumer, Producer, TopicPartition, aio
from ottla.testing import Broker

T0 = TopicPartition("clicks", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as node:
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            for number in range(20):
                producer.send("clicks", b"%d" % number, partition=0)
        yield node


def consumer_of(broker: Broker, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )


def test_what_follows_a_break_is_neither_committed_nor_skipped(broker: Broker) -> None:
    with consumer_of(broker, "breaks") as consumer:
        consumer.assign([T0])
        first = []
        for record in consumer:
            first.append(record.offset)
            if len(first) == 3:
                break
        assert consumer.position(T0) == 3
        again = next(iter(consumer))
        assert again.offset == 3
    with consumer_of(broker, "breaks") as consumer:
        assert consumer.committed([T0])[T0].offset == 4


def test_a_commit_within_the_loop_is_behind_the_record_of_this_turn(broker: Broker) -> None:
    with consumer_of(broker, "commits", **{"enable.auto.commit": False}) as consumer:
        consumer.assign([T0])
        for record in consumer:
            if record.offset == 4:
                consumer.commit()
                break
        assert consumer.committed([T0])[T0].offset == 5


def test_a_seek_within_the_loop_takes_effect_at_once(broker: Broker) -> None:
    with consumer_of(broker, "seeks", **{"enable.auto.commit": False}) as consumer:
        consumer.assign([T0])
        offsets = []
        for record in consumer:
            offsets.append(record.offset)
            if len(offsets) == 2:
                consumer.seek(T0, 15)
            if record.offset == 19:
                break
        assert offsets == [0, 1, 15, 16, 17, 18, 19]


def test_a_pause_within_the_loop_takes_effect_at_once_and_loses_nothing(broker: Broker) -> None:
    with consumer_of(broker, "pauses", **{"enable.auto.commit": False}) as consumer:
        consumer.assign([T0])
        records = iter(consumer)
        assert [next(records).offset for _ in range(2)] == [0, 1]
        consumer.pause(T0)
        assert consumer.poll(0.2) == []
        consumer.resume(T0)
        assert [next(records).offset for _ in range(18)] == list(range(2, 20))


def test_a_poll_within_the_loop_goes_on_where_the_loop_is(broker: Broker) -> None:
    with consumer_of(broker, "polls", **{"enable.auto.commit": False}) as consumer:
        consumer.assign([T0])
        records = iter(consumer)
        offsets = [next(records).offset]
        while len(offsets) < 16:
            offsets += [record.offset for record in consumer.poll(1.0, max_records=5)]
        offsets += [next(records).offset for _ in range(20 - len(offsets))]
        assert offsets == list(range(20))


def test_a_loop_in_asyncio_that_ends_early_skips_nothing(broker: Broker) -> None:
    async def scene() -> None:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "aio", "auto.offset.reset": "earliest"}
        async with aio.Consumer(settings) as consumer:
            consumer.assign([T0])
            async for record in consumer:
                if record.offset == 3:
                    break
            assert await consumer.position(T0) == 4
        async with aio.Consumer(settings) as consumer:
            assert (await consumer.committed([T0]))[T0].offset == 4

    asyncio.run(scene())
