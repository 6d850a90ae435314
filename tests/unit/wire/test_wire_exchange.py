"""A connection without I/O: bytes to frames, replies in order, responses to their requests."""

import pytest

from ottla.base.errors import RemoteProtocolError
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames, FrameTooLarge
from ottla.wire.exchange.replies import ReplyRow
from ottla.wire.frame import encode_response
from ottla.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)


def framed(*contents: bytes) -> bytes:
    return b"".join(len(content).to_bytes(4, "big") + content for content in contents)


class Received:
    """Feeds bytes as a connection does, and keeps the frames."""

    def __init__(self, max_bytes: int = 1 << 20) -> None:
        self.frames = Frames(max_bytes, "the.limit")
        self.whole: list[bytes] = []
        self.takes = 1 << 30

    def take(self, frame: memoryview) -> bool:
        self.whole.append(bytes(frame))
        self.takes -= 1
        return self.takes > 0

    def feed(self, data: bytes) -> None:
        while data:
            if self.frames.has_begun:
                with self.frames.room() as room:
                    count = min(len(room), len(data))
                    room[:count] = data[:count]
                self.frames.fill(count, self.take)
                data = data[count:]
            else:
                self.frames.take(memoryview(data), self.take)
                data = b""


CONTENTS = [b"", b"a", b"four", b"x" * 100_000, b"", b"end"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", [1, 2, 5, 4096, 1 << 20])
def test_frames_come_out_whole_however_their_bytes_arrive(piece: int) -> None:
    stream, received = framed(*CONTENTS), Received()
    for at in range(0, len(stream), piece):
        received.feed(stream[at : at + piece])
    assert received.whole == CONTENTS
    assert not received.frames.has_begun


def test_memory_follows_what_has_arrived_and_not_what_was_announced() -> None:
    received = Received(max_bytes=1 << 30)
    received.feed((1 << 29).to_bytes(4, "big") + bytes(100))
    assert received.frames.kept_bytes <= 16 << 10
    received.feed(bytes(200_000))
    assert received.frames.kept_bytes <= 2_000_000


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1])
@pytest.mark.parametrize("first", [0, 3])
def test_a_size_beyond_the_limit_is_refused_before_anything_is_kept_for_it(size: int, first: int) -> None:
    received = Received(max_bytes=1000)
    head = size.to_bytes(4, "big", signed=True)
    received.feed(head[:first])
    with pytest.raises(FrameTooLarge, match=r"the\.limit=1000"):
        received.feed(head[first:])


def test_what_is_not_taken_waits_and_comes_first() -> None:
    received = Received()
    received.takes = 2
    received.feed(framed(b"1", b"2", b"3", b"4") + b"\0\0")
    assert received.whole == [b"1", b"2"]
    assert received.frames.has_waiting
    received.takes = 1
    received.frames.take_waiting(received.take)
    assert received.whole[2:] == [b"3"]
    received.takes = 9
    received.frames.take_waiting(received.take)
    assert received.whole[3:] == [b"4"]
    assert not received.frames.has_waiting
    received.feed(b"\0\x01x")
    assert received.whole[4:] == [b"x"]


class Slot:
    parts: list[str] | None = None


def test_replies_leave_in_the_order_of_their_places() -> None:
    row: ReplyRow[Slot] = ReplyRow()
    first, second, third = Slot(), Slot(), Slot()
    for slot in (first, second, third):
        row.append(slot)
    second.parts = ["b", "c"]
    assert row.take_ready() == []
    first.parts = []
    assert row.take_ready() == ["b", "c"]
    assert len(row) == 1
    third.parts = ["d"]
    assert row.take_ready() == ["d"]


def test_a_response_comes_back_with_what_was_asked() -> None:
    client: Correlation[str] = Correlation("client")
    client.ask(MetadataRequest(), 12, "metadata")
    client.ask(ProduceRequest(acks=0), 9, "nobody waits", has_response=False)
    client.ask(ApiVersionsRequest(), 3, "versions")
    assert len(client) == 2
    asked, response = client.on_frame(encode_response(MetadataResponse(cluster_id="x"), 12, 0)[4:])
    assert (asked, response.cluster_id) == ("metadata", "x")
    asked, response = client.on_frame(encode_response(ApiVersionsResponse(error_code=35), 3, 2)[4:])
    assert (asked, response.error_code) == ("versions", 35)


def test_a_response_out_of_order_or_that_nobody_asked_for_is_the_nodes_fault() -> None:
    client: Correlation[str] = Correlation(None)
    response = encode_response(MetadataResponse(), 12, 1)[4:]
    with pytest.raises(RemoteProtocolError, match="nobody asked"):
        client.on_frame(response)
    client.ask(MetadataRequest(), 12, "first")
    client.ask(MetadataRequest(), 12, "second")
    with pytest.raises(RemoteProtocolError, match="where 0 comes next"):
        client.on_frame(response)
    assert client.take_unanswered() == ["first", "second"]


def test_a_request_that_cannot_be_encoded_leaves_no_trace() -> None:
    client: Correlation[str] = Correlation("x" * 40_000)
    with pytest.raises(Exception, match="client_id"):
        client.ask(MetadataRequest(), 12, "too long")
    assert len(client) == 0
