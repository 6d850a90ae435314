"""Compiled code and its twin, on two nodes that are asked the same: replies, logs and counts are the same."""

from random import Random
from typing import Any

import pytest

from ottla.broker.data import plain_fetch, produce
from ottla.broker.data.plain_produce import append_none
from ottla.broker.partitions.quick_append import partition_end
from ottla.wire.messages import FetchRequest, ProduceRequest
from tests.unit.broker.brokers import NODE_ID, TestNode, batch, fetch_request, produce_request, produced, topic_id_of

TOPICS = {"orders": 3, "bills": 2, "shared": 2, "small": 1}
VERSIONS_OF_PRODUCE = range(3, 14)
VERSIONS_OF_FETCH = range(4, 19)
needs_compiler = pytest.mark.skipif(partition_end is None, reason="there is no C compiler")


def new_node() -> TestNode:
    node = TestNode()
    for topic, partitions in TOPICS.items():
        replicas = (NODE_ID, 2) if topic == "shared" else (NODE_ID,)
        settings = {"internal_segment_bytes": "3000"} if topic == "small" else {}
        node.create_topic(topic, partitions, replicas=replicas, **settings)
    return node


class History:
    """Requests of several clients, from a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.sequences: dict[tuple[str, int, int], int] = {}

    def request(self) -> tuple[ProduceRequest | FetchRequest, int]:
        chance = self.chance
        if chance.random() < 0.5:
            version = chance.choice(VERSIONS_OF_PRODUCE)
            return self.produce(version), version
        version = chance.choice(VERSIONS_OF_FETCH)
        return self.fetch(version), version

    def places(self) -> list[tuple[str, list[int]]]:
        """Topics and partitions, of which some are named twice, and some are not there."""
        places: list[tuple[str, list[int]]] = []
        for _ in range(self.chance.choice([1, 1, 1, 2, 4])):
            topic = self.chance.choice([*TOPICS, *TOPICS, "nowhere"] if self.chance.random() < 0.2 else [*TOPICS])
            most = TOPICS.get(topic, 1) + (self.chance.random() < 0.05)
            count = self.chance.choice([1, 1, most, most + 1])
            places.append((topic, [self.chance.randrange(most) for _ in range(count)]))
        return places

    def records(self, topic: str, index: int) -> bytearray | None:
        chance, values = self.chance, [b"v" * self.chance.choice([1, 10, 200])] * self.chance.choice([1, 2, 5])
        kind = chance.choices(["plain", "producer", "again", "codec", "corrupt", "empty", "two"], [8, 8, 1, 1, 1, 1, 1])
        producer = chance.randint(1, 2)
        sequence = self.sequences.get((topic, index, producer), 0)
        match kind[0]:
            case "producer":
                self.sequences[topic, index, producer] = sequence + len(values)
                return produced(producer, sequence, *values)
            case "again":
                return produced(producer, max(sequence - 1, 0), *values[:1])
            case "codec":
                return batch(*values, compression=1)
            case "corrupt":
                data = batch(*values)
                data[-1] ^= 1
                return data
            case "empty":
                return chance.choice([None, bytearray(), bytearray(5)])
            case "two":
                return batch(*values) + batch(*values)
        return batch(*values)

    def produce(self, version: int) -> ProduceRequest:
        topics = []
        for topic, indexes in self.places():
            data = [
                ProduceRequest.PartitionProduceData(index=index, records=self.records(topic, index))
                for index in indexes
            ]
            name = {"topic_id": topic_id_of(topic)} if version >= 13 else {"name": topic}
            topics.append(ProduceRequest.TopicProduceData(partition_data=data, **name))
        acks = self.chance.choice([1, 1, -1, -1, 0, 2 if self.chance.random() < 0.1 else 1])
        return ProduceRequest(acks=acks, timeout_ms=100, topic_data=topics)

    def fetch(self, version: int) -> FetchRequest:
        chance = self.chance
        request = fetch_request(
            max_wait_ms=chance.choice([0, 0, 50]),
            min_bytes=chance.choice([1, 1, 1, 500]),
            max_bytes=chance.choice([1 << 20, 1 << 20, 300]),
            isolation_level=chance.choice([0, 1]),
        )
        request.topics = []
        for topic, indexes in self.places():
            asked = [
                FetchRequest.FetchPartition(
                    partition=index,
                    fetch_offset=chance.choice([0, chance.randrange(60), chance.randrange(60)]),
                    current_leader_epoch=chance.choice([-1, -1, 0, 7]) if version >= 9 else -1,
                    partition_max_bytes=chance.choice([1 << 20, 100, 1000]),
                )
                for index in indexes
            ]
            name = {"topic_id": topic_id_of(topic)} if version >= 13 else {"topic": topic}
            request.topics.append(FetchRequest.FetchTopic(partitions=asked, **name))
        return request


def told(node: TestNode) -> dict[str, Any]:
    """What a node has, as far as compiled code may change it."""
    return {
        f"{topic}-{index}": (
            partition.log.log_end_offset,
            partition.log.high_watermark,
            partition.log.read(0, 1 << 20, partition.log.log_end_offset).read(),
            *(getattr(partition.traffic, name) for name in partition.traffic.__slots__),
        )
        for (topic, index), partition in node.broker.partitions.items()
    }


def has_news(node: TestNode) -> bool:
    """Whether there was something for the checkpoints since the last time that this was asked."""
    partitions = node.broker.partitions
    had_news, partitions.has_news_for_checkpoints = partitions.has_news_for_checkpoints, False
    return had_news


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("seed", range(8))
def test_both_ways_answer_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    history, nodes, replies = History(seed), (new_node(), new_node()), list[tuple[Any, Any]]()
    compiled, in_python = nodes
    for number in range(120):
        request, version = history.request()
        first = compiled.ask(request, version)
        with monkeypatch.context() as patch:
            patch.setattr(produce, "append_all_plain", append_none)
            patch.setattr(plain_fetch, "read_all_plain", plain_fetch.read_none)
            replies.append((first, in_python.ask(request, version)))
        if number % 10 == 9:
            for node in nodes:
                partition = node.partition("shared")
                end = partition.log.log_end_offset
                assert partition.state is not None
                partition.apply_high_watermark(partition.state.on_fetched(2, end, 0, 0))
                node.broker.partitions.purgatory.wake(partition)
                node.timers.advance(70)
        for one, other in replies:
            assert (one.is_here, one.message) == (other.is_here, other.message)
        assert told(compiled) == told(in_python)
        assert has_news(compiled) == has_news(in_python)
        assert len(compiled.line.problems) == len(in_python.line.problems)


def test_a_batch_that_comes_again_is_no_news_for_the_checkpoints() -> None:
    """Nor one that is refused. Both are plain, and found out when they are about to be appended."""
    node = new_node()
    node.produce(produced(1, 0, b"a"))
    assert has_news(node)
    node.produce(produced(1, 0, b"a"))
    assert not has_news(node)
    node.produce(produced(1, 7, b"a"))
    assert not has_news(node)
    node.produce(produced(1, 1, b"a"))
    assert has_news(node)


@needs_compiler
def test_most_requests_are_taken_by_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the other tests would compare nothing."""
    taken: dict[str, list[bool]] = {"produce": [], "fetch": []}
    append, read = produce.append_all_plain, plain_fetch.read_all_plain

    def appends(*args: Any) -> Any:
        outcome = append(*args)
        taken["produce"].append(outcome is not None)
        return outcome

    def reads(*args: Any) -> Any:
        outcome = read(*args)
        taken["fetch"].append(outcome is not None)
        return outcome

    monkeypatch.setattr(produce, "append_all_plain", appends)
    monkeypatch.setattr(plain_fetch, "read_all_plain", reads)
    node = new_node()
    for version in VERSIONS_OF_PRODUCE:
        request = produce_request(batch(b"a"), acks=1)
        request.topic_data[0].topic_id = topic_id_of("orders")
        node.send(request, version)
    for version in VERSIONS_OF_FETCH:
        fetch = fetch_request()
        fetch.topics[0].topic_id = topic_id_of("orders")
        node.send(fetch, version)
    assert taken == {"produce": [True] * 11, "fetch": [True] * 15}


@needs_compiler
@pytest.mark.parametrize(
    "fields",
    [
        {"topic": "nothing"},
        {"offset": 99},
        {"current_leader_epoch": 7},
        {"last_fetched_epoch": 0},
        {"replica_id": 2},
        {"rack_id": "r"},
        {"session_epoch": 0},
        {"session_id": 5},
    ],
)
def test_what_has_more_to_it_is_left_to_python(fields: dict[str, Any]) -> None:
    node = new_node()
    node.produce(batch(b"a"))
    partitions = node.broker.partitions
    assert plain_fetch.read_all_plain(partitions, node.disk, fetch_request(), 12, 1 << 20, {}, []) is not None
    assert plain_fetch.read_all_plain(partitions, node.disk, fetch_request(**fields), 12, 1 << 20, {}, []) is None


@needs_compiler
@pytest.mark.parametrize("max_bytes", [-1, -70, -(1 << 31)])
def test_a_partition_of_which_less_than_nothing_is_asked_has_nothing_in_the_reply(max_bytes: int) -> None:
    """Behind one that has something: of the first, a whole batch comes whatever is asked for."""
    node = new_node()
    for index in range(2):
        for _ in range(12):  # More than a partition remembers the places of.
            node.produce(batch(b"a"), index=index)
    request = fetch_request()
    request.topics[0].partitions.append(
        FetchRequest.FetchPartition(partition=1, fetch_offset=2, partition_max_bytes=max_bytes)
    )
    first, second = node.send(request, 12).responses[0].partitions
    assert len(first.records) > 0
    assert (second.error_code, bytes(second.records)) == (0, b"")


@needs_compiler
def test_a_topic_of_which_nothing_is_asked_is_not_in_the_reply() -> None:
    node, request = new_node(), fetch_request()
    request.topics.insert(0, FetchRequest.FetchTopic(topic="bills"))
    assert [topic.topic for topic in node.send(request, 12).responses] == ["orders"]


@needs_compiler
def test_much_of_a_reply_is_not_read_into_memory() -> None:
    """A client that takes no replies would have the node keep all of it."""
    node, told = TestNode(), list[Any]()
    node.create_topic("many", 200)
    for index in range(200):
        node.produce(batch(b"v" * 16_000), "many", index)
    request = fetch_request(topic="many")
    request.topics[0].partitions = [
        FetchRequest.FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in range(200)
    ]
    node.hear(request, 4, told.append)
    (topic,) = told[0].responses
    assert sum(len(data.records) for data in topic.partitions) > 3_000_000
    assert sum(len(data.records) for data in topic.partitions if isinstance(data.records, bytes)) < 1_100_000
