"""Many clients at once."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Producer

from tests.clients import confluent_client

PRODUCERS = 50
EACH = 200


def test_fifty_producers_at_once(bootstrap: str, make_topic: Callable[..., str]) -> None:
    """Idempotent ones, each on all three partitions: nothing is lost, doubled or, within a partition, out of order."""
    topic = make_topic(partitions=3)

    def produce(number: int) -> int:
        config = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": number % 10}
        producer = Producer(config)
        for sequence in range(EACH):
            producer.produce(topic, b"%d/%d" % (number, sequence), partition=sequence % 3)
        return producer.flush(60)

    with ThreadPoolExecutor(PRODUCERS) as pool:
        assert list(pool.map(produce, range(PRODUCERS))) == [0] * PRODUCERS

    found = Counter[bytes | None]()
    for partition in range(3):
        expected = PRODUCERS * len(range(partition, EACH, 3))
        latest = dict.fromkeys(range(PRODUCERS), -1)
        for placed in confluent_client.read(bootstrap, topic, expected, partition=partition):
            assert placed.record.value is not None
            number, sequence = map(int, placed.record.value.split(b"/"))
            assert sequence > latest[number]
            latest[number] = sequence
            found[placed.record.value] += 1
    assert found == Counter({b"%d/%d" % (n, s): 1 for n in range(PRODUCERS) for s in range(EACH)})
