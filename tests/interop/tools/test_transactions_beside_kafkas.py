"""kafka-transactions prints what Kafka's prints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def scene(beside: Beside) -> Iterator[Beside]:
    """Each has a transaction that is done and one that is open, in a topic of its own."""
    beside.both("kafka-topics {at} --create --topic x-{me}")
    producers = []
    for me in NAMES:
        for number in (1, 2):
            producer = Producer(
                {"bootstrap.servers": beside.bootstrap, "transactional.id": f"tx{number}-{me}", "acks": "all"}
            )
            producer.init_transactions()
            producer.begin_transaction()
            producer.produce(f"x-{me}", b"a")
            producer.flush()
            if number == 1:
                producer.commit_transaction()
            producers.append(producer)
    yield beside
    for producer in producers[1::2]:
        producer.abort_transaction()


def test_transactions_are_listed_and_described(scene: Beside) -> None:
    for words in (
        "list",
        "list --duration-filter 100000",
        "list --transactional-id-pattern tx1-{me}",
        "describe --transactional-id tx1-{me}",
        "describe-producers --topic x-{me} --partition 0",
        "describe-producers --topic x-{me} --partition 0 --broker-id 1",
        "find-hanging --topic x-{me}",
        "find-hanging --broker-id 1",
        "find-hanging --topic x-{me} --partition 0 --max-transaction-timeout 0",
    ):
        scene.same(f"kafka-transactions {{at}} {words}", ordered=False)
    for me in NAMES:
        open_one = scene.printed(me, "kafka-transactions {at} describe --transactional-id tx2-{me}")
        assert "Ongoing         \t60000               \t" in open_one.out
        assert f"x-{me}-0" in open_one.out


def test_what_is_wrong_is_told_alike(scene: Beside) -> None:
    for words in (
        "describe --transactional-id nope",
        "find-hanging",
        "find-hanging --partition 0",
        "find-hanging --topic nope",
        "abort --topic x-{me} --partition 0 --start-offset 77",
        "abort --topic x-{me} --partition 0",
        "abort --topic x-{me} --partition 0 --producer-id 5",
        "forceTerminateTransaction --transactionalId nope",
    ):
        scene.same(f"kafka-transactions {{at}} {words}")
    for words in ("list", "{at}", "{at} abort --topic x"):
        scene.same(f"kafka-transactions {words}", alone=True)


def test_a_transaction_is_ended_by_force(scene: Beside) -> None:
    for me in NAMES:
        producer = Producer({"bootstrap.servers": scene.bootstrap, "transactional.id": f"forced-{me}"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(f"x-{me}", b"a")
        producer.flush()
    ended = scene.same("kafka-transactions {at} forceTerminateTransaction --transactionalId forced-{me}")
    assert ended == (0, "", "")
    scene.same("kafka-transactions {at} list --transactional-id-pattern forced-{me}")
