"""A request with very many entries in a connection: others are served between its steps, and it keeps its place."""

from itertools import count

import pytest

from ottla.wire.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from tests.unit.runtime.memory_server import Client, Scene

SMALL = MetadataRequest(topics=[]), 9


def large(entries: int = 40_000) -> tuple[ListOffsetsRequest, int]:
    partitions = [ListOffsetsRequest.ListOffsetsPartition(partition_index=number) for number in range(entries)]
    return ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=partitions)]), 7


class SlowScene(Scene):
    """Every look at the clock finds that a little time has passed."""

    def __init__(self) -> None:
        super().__init__(pipe_bytes=64 << 20)
        times = count()
        self.server.now_s = self.server.lane._now_s = lambda: next(times) * 1e-5
        self.handled: list[str] = []
        self.handle = self.answer

    def answer(self, context, message, respond):
        self.handled.append(type(message).__name__)
        if isinstance(message, ListOffsetsRequest):
            context.go_through(self.steps(message, respond))
        else:
            respond(MetadataResponse())

    def steps(self, message, respond):
        for topic in message.topics:
            for number, _ in enumerate(topic.partitions):
                if number % 1000 == 0:
                    self.handled.append("step")
                yield None
        respond(ListOffsetsResponse())

    def push(self, client: Client, *requests) -> None:
        data = client.bytes_of(*requests)
        assert client.end.send(data) == len(data)


@pytest.mark.slow
def test_others_are_served_while_it_is_decoded_and_handled() -> None:
    scene = SlowScene()
    client, other = scene.connect(), scene.connect()
    scene.push(client, large(), SMALL)
    turns_before, served_early = scene.network.turns, 0
    for _ in range(5000):
        if scene.handled.count("step") < 40:
            scene.push(other, SMALL)
            served_early += 1
        if not scene.network.turn():
            break
    order = scene.handled
    assert order.index("ListOffsetsRequest") > 3, "others came first, while it was decoded"
    between = order[order.index("step") : len(order) - order[::-1].index("step")]
    assert between.count("MetadataRequest") > 3, "and between the steps of its handler"
    assert [asked for asked, _ in client.replies()] == [0, 1]
    assert len(other.replies()) == served_early
    assert scene.network.turns > turns_before + 20


def test_requests_behind_it_wait_for_it() -> None:
    scene = SlowScene()
    client = scene.connect()
    scene.push(client, large(), SMALL)
    scene.network.run()
    assert scene.handled[0] == "ListOffsetsRequest"
    assert scene.handled[-1] == "MetadataRequest"
    assert [type(reply) for _, reply in client.replies()] == [ListOffsetsResponse, MetadataResponse]


def test_a_connection_that_is_closed_takes_its_work_with_it() -> None:
    scene = SlowScene()
    client = scene.connect()
    [connection] = scene.server.connections
    other = scene.connect()
    scene.push(client, large())
    while scene.handled.count("step") < 3:
        assert scene.network.turn()
    connection.close()
    scene.network.run()
    assert scene.handled.count("step") < 40
    other.ask(SMALL)
    assert len(other.replies()) == 1
    assert not scene.server.lane._under_way


def test_a_frame_that_breaks_off_in_the_middle_costs_its_connection() -> None:
    scene = SlowScene()
    client, other = scene.connect(), scene.connect()
    data = bytearray(client.bytes_of(large()))[:-10]
    data[:4] = (len(data) - 4).to_bytes(4)
    assert client.end.send(bytes(data)) == len(data)
    scene.network.run()
    assert client.end.is_closed
    other.ask(SMALL)
    assert len(other.replies()) == 1
    assert "ListOffsetsRequest" not in scene.handled


def test_an_exception_in_a_step_is_answered_and_the_requests_behind_it_go_on() -> None:
    scene = SlowScene()

    def breaks(context, message, respond):
        if isinstance(message, MetadataRequest):
            respond(MetadataResponse())
        else:
            context.go_through(broken())

    def broken():
        yield None
        raise ValueError("a bug")

    scene.handle = breaks
    client = scene.connect()
    scene.push(client, large(), SMALL)
    scene.network.run()
    (_, refused), (_, fine) = client.replies()
    assert {answer.error_code for answer in refused.topics[0].partitions} == {-1}
    assert isinstance(fine, MetadataResponse)


@pytest.mark.parametrize("records", [1 << 20, 300 << 10])
def test_large_frames_of_few_entries_are_handled_at_once(records: int) -> None:
    scene = Scene(pipe_bytes=8 << 20)
    client = scene.connect()
    partition = ProduceRequest.PartitionProduceData(index=0, records=bytes(records))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    data = client.bytes_of((ProduceRequest(acks=1, topic_data=[topic]), 9))
    client.end.send(data)
    seen: list[bytes] = []
    scene.handle = lambda _context, message, _respond: seen.append(
        bytes(message.topic_data[0].partition_data[0].records)
    )
    while not seen:
        assert scene.network.turn()
    assert seen == [bytes(records)]
    assert scene.server.lane._thresholds is None
