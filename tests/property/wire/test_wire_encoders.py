"""The compiled encoder writes what the generated one writes, and refuses what it refuses, in the same words."""

import tracemalloc
from random import Random
from typing import Any

import pytest

from ottla.wire import encoding
from ottla.wire.codec import encode
from ottla.wire.faults import EncodeError
from ottla.wire.frame import decode_response, encode_response, encode_response_parts
from ottla.wire.message import Message, WireStruct
from ottla.wire.messages import FetchResponse, ProduceResponse
from tests.property.wire.wire_values import RandomMessages, every_message

EXAMPLES = 6
ODD = (
    None,
    -1,
    1 << 70,
    "text",
    "x" * 40_000,
    "\ud800",
    b"",
    b"bytes",
    bytes(17),
    0.5,
    [],
    (),
    [None],
    [1 << 40],
    {},
    object(),
)
NOISE_BYTES = 20_000


def outcome(encode_message: Any, message: Message) -> tuple[bytes | str, list[int], list[int]]:
    """What is written between pieces that are there already, or the error; and where the payloads are."""
    pieces: list[Any] = [b"before"]
    payloads: list[int] = []
    try:
        encode_message(message, pieces, payloads)
        sizes = [sum(len(piece) for piece in pieces[:index]) for index in payloads]
        return b"".join(pieces), sizes, [len(pieces[index]) for index in payloads]
    except (EncodeError, TypeError) as problem:
        return f"{type(problem).__name__}: {problem}", [], []


def test_both_encoders_write_the_same() -> None:
    for message, version in every_message():
        random_messages = RandomMessages(Random(f"{message.__name__} {version}"))
        generated = encoding.compile_encoder(message, version)
        for _ in range(EXAMPLES):
            original = random_messages.message(message, version)
            assert outcome(message._encoders[version], original) == outcome(generated, original)


def test_both_encoders_refuse_the_same() -> None:
    random = Random(9)
    for message, version in every_message()[::2]:
        random_messages = RandomMessages(random, tame=True)
        generated = encoding.compile_encoder(message, version)
        for _ in range(EXAMPLES):
            broken = random_messages.message(message, version)
            place = random.choice(list(structs_in(broken)))
            setattr(place, random.choice(place.__slots__), random.choice(ODD))
            assert outcome(message._encoders[version], broken) == outcome(generated, broken)


def structs_in(value: Any) -> Any:
    if isinstance(value, WireStruct):
        yield value
        for name in value.__slots__:
            yield from structs_in(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from structs_in(item)


def test_a_response_in_parts_is_the_response() -> None:
    for message, version in every_message():
        if message.__name__.endswith("Response") and message._schema.api_key >= 0:
            original = RandomMessages(Random(f"{message.__name__} {version}")).message(message, version)
            whole = encode_response(original, version, -7)
            assert b"".join(encode_response_parts(original, version, -7)) == whole  # type: ignore[arg-type]
            assert decode_response(message, whole[4:], version)[0] == -7


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 16_383, 16_384, 70_000])
def test_lengths_of_every_width(size: int) -> None:
    partition = FetchResponse.PartitionData(partition_index=1, records=bytes(size))
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition] * 3)])
    for version in (11, 16):
        assert b"".join(encode_response_parts(response, version, 1)) == encode_response(response, version, 1)  # type: ignore[arg-type]


def test_what_is_encoded_and_dropped_leaves_no_memory_behind() -> None:
    usual = ProduceResponse(responses=[ProduceResponse.TopicProduceResponse(name="t" * 600)])
    unusual = ProduceResponse(unknown_tags=((1000, b"x"),))
    broken = ProduceResponse(throttle_time_ms=1 << 40)

    def encode_all() -> None:
        for _ in range(200):
            encode_response_parts(usual, 9, 1)
            encode(unusual, 9)
            with pytest.raises(EncodeError):
                encode(broken, 9)

    encode_all()
    tracemalloc.start()
    try:
        encode_all()
        before, _ = tracemalloc.get_traced_memory()
        encode_all()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < NOISE_BYTES
