"""Frames that come twice: whole, right behind themselves, however their bytes are cut into pieces."""

from random import Random

import pytest

from ottla.records.builder import BatchBuilder
from ottla.testing.sim.network.passing_frames import PassingFrames, Repeating, is_told_apart
from ottla.wire.frame import encode_request
from ottla.wire.messages import MetadataRequest, ProduceRequest

ALL = Repeating(Random(1), 1.0, 1.0)
REPLIES = Repeating(Random(1), 1.0, 0.0)


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def record(content: bytes) -> bytes:
    return b"\x16\x03\x03" + len(content).to_bytes(2, "big") + content


def passed(stream: bytes, piece: int, repeating: Repeating | None, *, is_request: bool = False) -> bytes:
    """What comes of it behind a handshake, if it is TLS."""
    frames = PassingFrames(is_request=is_request)
    if stream[0] == record(b"")[0]:
        handshake = record(bytes(5000))
        assert frames.pass_on(handshake, repeating) == handshake
    pieces = [stream[at : at + piece] for at in range(0, len(stream), piece)]
    return b"".join(frames.pass_on(one, repeating) for one in pieces)


@pytest.mark.parametrize("piece", [1, 3, 4, 5, 7, 1000])
@pytest.mark.parametrize("made", [framed, record])
def test_a_whole_frame_comes_twice(made, piece: int) -> None:
    frames = [made(b"one"), made(b"two words"), made(b"x" * 300)]
    assert passed(b"".join(frames), piece, REPLIES) == b"".join(2 * frame for frame in frames)
    assert passed(b"".join(frames), piece, None) == b"".join(frames)
    assert passed(b"".join(frames), piece, REPLIES, is_request=True) == b"".join(frames)


def test_a_frame_that_began_before_comes_once() -> None:
    frames = PassingFrames(is_request=False)
    first, second = framed(b"the first"), framed(b"the second")
    assert frames.pass_on(first[:6], None) == first[:6]
    assert frames.pass_on(first[6:] + second, REPLIES) == first[6:] + 2 * second


def produce(producer_id: int) -> bytes:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0 if producer_id >= 0 else -1)
    builder.append(1, None, b"value")
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    return encode_request(ProduceRequest(acks=-1, timeout_ms=1, topic_data=[topic]), 9, 7, "client")


def test_a_batch_that_no_node_could_know_again_comes_once() -> None:
    """Of a producer without idempotence: to write it twice is right."""
    metadata = encode_request(MetadataRequest(), 12, 6, "client")
    assert is_told_apart(metadata)
    assert is_told_apart(produce(5))
    assert not is_told_apart(produce(-1))
    stream = metadata + produce(-1) + produce(5)
    assert passed(stream, 50, ALL, is_request=True) == 2 * metadata + produce(-1) + 2 * produce(5)
