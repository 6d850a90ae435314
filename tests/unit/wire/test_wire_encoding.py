"""What encoders write, hand on uncopied, and refuse."""

import pytest

from ottla.base.errors import LocalProtocolError
from ottla.wire.codec import encode, encode_parts
from ottla.wire.faults import EncodeError
from ottla.wire.messages import (
    CreateTopicsRequest,
    FetchRequest,
    FetchResponse,
    JoinGroupRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)


class FileSpan:
    """What the log gives out for `sendfile`: a place and a length, and no bytes."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def produce(records: object) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(index=3, records=records)  # type: ignore[arg-type]
    return ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])


def test_plain_and_flexible_versions_of_the_same_message() -> None:
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="ab")])
    assert encode(request, 0) == b"\x00\x00\x00\x01\x00\x02ab"
    assert encode(request, 9) == b"\x02\x03ab\x00\x01\x00\x00\x00"


def test_records_are_passed_through_and_the_rest_is_joined() -> None:
    batch = bytearray(b"batch")
    parts = encode_parts(produce(batch), 9)
    assert len(parts) == 3
    assert parts[1] is batch
    assert parts[0] + b"batch" + parts[2] == encode(produce(b"batch"), 9)  # type: ignore[operator]


def test_records_can_be_a_span_of_a_file() -> None:
    span = FileSpan(300)
    before, passed, after = encode_parts(produce(span), 9)
    assert passed is span
    assert encode(produce(bytes(300)), 9) == before + bytes(300) + after  # type: ignore[operator]


def test_a_span_cannot_be_part_of_one_byte_string() -> None:
    with pytest.raises(EncodeError, match="FileSpan"):
        encode(produce(FileSpan(300)), 9)


def test_a_message_without_records_is_one_part() -> None:
    assert encode_parts(MetadataRequest(topics=None), 13) == [encode(MetadataRequest(topics=None), 13)]


def test_empty_records_are_not_null() -> None:
    response = FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse(partitions=[FetchResponse.PartitionData()])]
    )
    null = encode(response, 12)
    response.responses[0].partitions[0].records = b""
    assert encode(response, 12) == null.replace(b"\xff\xff\xff\xff\x00\x00", b"\xff\xff\xff\xff\x01\x00")


def test_a_set_field_that_the_version_does_not_have_is_refused() -> None:
    request = JoinGroupRequest(group_instance_id="static-1")
    encode(request, 5)
    with pytest.raises(EncodeError) as caught:
        encode(request, 4)
    assert (caught.value.message, caught.value.version, caught.value.field) == (
        "JoinGroupRequest",
        4,
        "group_instance_id",
    )


def test_an_ignorable_field_that_the_version_does_not_have_is_dropped() -> None:
    assert encode(FetchRequest(rack_id="eu-1"), 10) == encode(FetchRequest(), 10)


def test_unknown_tags_need_a_version_that_has_tags() -> None:
    request = MetadataRequest(topics=[], unknown_tags=[(5, b"five")])
    assert encode(request, 9).endswith(b"\x01\x05\x04five")
    with pytest.raises(EncodeError, match="unknown_tags"):
        encode(request, 8)


def test_tags_are_written_in_ascending_order() -> None:
    response = FetchResponse(
        node_endpoints=[FetchResponse.NodeEndpoint(node_id=1)], unknown_tags=[(9, b"nine"), (5, b"five")]
    )
    data = encode(response, 16)
    assert data.index(b"\x03\x00") < data.index(b"\x05\x04five") < data.index(b"\x09\x04nine")


def test_the_wrong_value_is_found_and_named() -> None:
    partition = MetadataResponse.MetadataResponsePartition
    response = MetadataResponse(
        topics=[
            MetadataResponse.MetadataResponseTopic(name="a"),
            MetadataResponse.MetadataResponseTopic(name="b", partitions=[partition(), partition(leader_id=1 << 31)]),
        ]
    )
    with pytest.raises(EncodeError, match=r"topics\[1\]\.partitions\[1\]\.leader_id: is 2147483648"):
        encode(response, 13)


@pytest.mark.parametrize(
    ("topic", "complaint"),
    [
        ({"name": None}, "name: is null"),
        ({"name": b"bytes"}, "name: is no string"),
        ({"name": "\ud800"}, "name: cannot be UTF-8"),
        ({"name": "x" * 40_000}, "name: is longer than 32767 bytes"),
        ({"num_partitions": "3"}, "num_partitions: is no integer"),
        ({"replication_factor": 1 << 15}, "replication_factor: is 32768, out of the range of int16"),
        ({"assignments": 5}, "assignments: is no sequence"),
        ({"configs": [3]}, r"configs\[0\]: is no CreatableTopicConfig"),
    ],
)
def test_values_that_cannot_be_encoded_are_refused(topic: dict[str, object], complaint: str) -> None:
    request = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(**topic)])  # type: ignore[arg-type]
    for version in (4, 7):
        with pytest.raises(EncodeError, match=complaint):
            encode(request, version)


def test_a_uuid_of_another_length_is_refused() -> None:
    topic = MetadataRequest.MetadataRequestTopic(topic_id=b"short")  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="topic_id"):
        encode(MetadataRequest(topics=[topic]), 12)


def test_a_version_that_does_not_exist_is_the_callers_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="MetadataRequest version 99"):
        encode(MetadataRequest(), 99)
