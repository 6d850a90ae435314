"""Decoding in steps gives the same messages, with something else to do in between, and refuses too many entries."""

from random import Random

import pytest

from ottla.wire import decoding
from ottla.wire.apis import all_apis
from ottla.wire.codec import encode
from ottla.wire.faults import DecodeError, OversizeError
from ottla.wire.frame import UnsupportedRequestError, decode_request, decode_request_in_steps, encode_request
from ottla.wire.frame import request_type as type_of
from ottla.wire.messages import DeleteGroupsRequest, FetchRequest, ListOffsetsRequest, MetadataRequest
from tests.property.wire.wire_values import RandomMessages


def decoded(frame: bytes) -> tuple[object, int]:
    steps, count = decode_request_in_steps(frame), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(all_apis()))
def test_every_request_is_decoded_as_at_once(key: int) -> None:
    random = Random(key)
    for version in type_of(key)._schema.versions:
        for _ in range(3):
            message = RandomMessages(random).message(type_of(key), version)
            frame = encode_request(message, version, 7, "client")[4:]
            assert decoded(frame)[0] == decode_request(frame)
            with pytest.raises(DecodeError):
                decoded(frame[: random.randrange(4, max(5, len(frame) - 1))] if len(frame) > 60 else frame[:5])


def test_there_is_a_step_for_each_entry_at_every_depth() -> None:
    partitions = [ListOffsetsRequest.ListOffsetsPartition(partition_index=number) for number in range(10)]
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=str(number), partitions=partitions) for number in range(5)]
    _, count = decoded(encode_request(ListOffsetsRequest(topics=topics), 7, 1, None)[4:])
    assert count == 1 + 5 + 50


def test_more_entries_than_are_allowed_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MOST_ENTRIES", 100)
    for message, version, fine in (
        (MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="")] * 101), 9, 100),
        (DeleteGroupsRequest(groups_names=[""] * 101), 2, 100),
    ):
        decode = decoding.compile_step_decoder(type(message), version)
        (field,) = [name for name in ("topics", "groups_names") if hasattr(message, name)]
        setattr(message, field, getattr(message, field)[:fine])
        list(decode(encode(message, version), 0))
        setattr(message, field, [*getattr(message, field), getattr(message, field)[0]])
        with pytest.raises(OversizeError, match="entries"):
            list(decode(encode(message, version), 0))
    numbers = FetchRequest.ForgottenTopic(topic="t", partitions=list(range(200)))
    with pytest.raises(OversizeError, match="200 numbers"):
        list(
            decoding.compile_step_decoder(FetchRequest, 11)(
                encode(FetchRequest(forgotten_topics_data=[numbers]), 11), 0
            )
        )


def test_a_version_that_is_not_known_is_found_at_the_first_step() -> None:
    frame = bytearray(encode_request(MetadataRequest(topics=[]), 9, 7, "client")[4:])
    frame[2:4] = b"\x03\xe7"
    with pytest.raises(UnsupportedRequestError):
        next(decode_request_in_steps(frame))
