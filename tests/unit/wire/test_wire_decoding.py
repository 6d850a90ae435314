"""What decoders make of good bytes and of bad ones. Bytes are spelt out: these are the format's examples."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.wire import codec, faults
from ottla.wire.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberMetadataValue,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    RequestHeader,
)

Decode = Callable[..., Any]

API_VERSIONS_V3 = b"\x05java\x064.3.1\x00"
PRODUCE_V13 = bytes.fromhex("00 ffff 00007530 02 000102030405060708090a0b0c0d0e0f 02 00000003 06 6261746368 00 00 00")


def test_a_request_of_a_flexible_version(decode: Decode) -> None:
    expected = ApiVersionsRequest(client_software_name="java", client_software_version="4.3.1")
    assert decode(ApiVersionsRequest, API_VERSIONS_V3, 3) == expected


def test_a_request_of_a_plain_version(decode: Decode) -> None:
    data = b"\x00\x00\x00\x02\x00\x01a\x00\x02bc"
    request = decode(MetadataRequest, data, 0)
    assert [topic.name for topic in request.topics] == ["a", "bc"]


def test_what_a_version_does_not_have_is_at_its_default(decode: Decode) -> None:
    request = decode(MetadataRequest, b"\x00\x00\x00\x00", 0)
    assert request.allow_auto_topic_creation is True
    request = decode(OffsetForLeaderEpochRequest, b"\x00\x00\x00\x00", 2)
    assert request.replica_id == -2


def test_the_client_id_of_a_header_is_never_compact(decode: Decode) -> None:
    header = decode(RequestHeader, bytes.fromhex("0012 0003 0000002a 0004") + b"java" + b"\x00", 2)
    assert (header.request_api_key, header.correlation_id, header.client_id) == (18, 42, "java")


def test_records_are_a_view_of_the_input(decode: Decode) -> None:
    data = bytearray(PRODUCE_V13)
    records = decode(ProduceRequest, data, 13).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records == b"batch"
    data[data.index(b"batch")] = ord("B")
    assert records == b"Batch"


def test_a_uuid_is_sixteen_bytes(decode: Decode) -> None:
    assert decode(ProduceRequest, PRODUCE_V13, 13).topic_data[0].topic_id == bytes(range(16))


def test_any_buffer_will_do(decode: Decode) -> None:
    expected = decode(ProduceRequest, PRODUCE_V13, 13)
    assert decode(ProduceRequest, memoryview(b"--" + PRODUCE_V13)[2:], 13) == expected


def test_unknown_tags_are_kept_and_written_again(decode: Decode) -> None:
    data = API_VERSIONS_V3[:-1] + b"\x02" + b"\x07\x02hi" + b"\xac\x02\x00"
    request = decode(ApiVersionsRequest, data, 3)
    assert request.unknown_tags == ((7, b"hi"), (300, b""))
    assert codec.encode(request, 3) == data


def test_a_struct_can_be_null(decode: Decode) -> None:
    fields = bytes(4 + 2) + b"\x00" + b"\x00" + bytes(4 + 4)
    assert decode(ConsumerGroupHeartbeatResponse, fields + b"\xff\x00", 0).assignment is None
    assert decode(ConsumerGroupHeartbeatResponse, fields + b"\x01\x01\x00\x00", 0).assignment.topic_partitions == []


def test_a_tagged_struct_can_be_null_by_a_marker_of_its_own(decode: Decode) -> None:
    value = ConsumerGroupMemberMetadataValue(
        classic_member_metadata=ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(session_timeout_ms=9)
    )
    data = codec.encode(value, 0)
    assert data.endswith(b"\x01" + b"\x00\x07" + b"\x01" + b"\x00\x00\x00\x09" + b"\x01\x00")
    assert decode(ConsumerGroupMemberMetadataValue, data, 0) == value
    null = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    assert codec.encode(null, 0).endswith(b"\x01" + b"\x00\x01" + b"\x00")
    assert decode(ConsumerGroupMemberMetadataValue, codec.encode(null, 0), 0) == null


def test_a_varint_may_take_more_bytes_than_it_needs(decode: Decode) -> None:
    """Found by the fuzz: Kafka reads them, so a null of two bytes is a null."""
    broker = bytes.fromhex("00000001 02 61 00002384")
    data = bytes(4) + b"\x02" + broker + b"\x80\x00" + b"\x00" + b"\x00" + bytes(4) + b"\x01" + bytes(2) + b"\x00"
    response = decode(MetadataResponse, data, 13)
    assert response.brokers[0].rack is None


@pytest.mark.parametrize(
    ("data", "error", "position"),
    [
        pytest.param(b"", faults.TruncatedError, 0, id="nothing"),
        pytest.param(b"\x05ja", faults.TruncatedError, 1, id="a string cut off"),
        pytest.param(b"\x00\x064.3.1\x00", faults.UnexpectedNullError, 1, id="null in a field that has none"),
        pytest.param(b"\x05ja\xffa\x064.3.1\x00", faults.InvalidTextError, 3, id="not UTF-8"),
        pytest.param(b"\xff\xff\xff\xff\x07", faults.OversizeError, 5, id="a string over the limit"),
        pytest.param(b"\xff\xff\xff\xff\xff\x01", faults.VarintError, 0, id="a varint of six bytes"),
        pytest.param(b"\xff\xff\xff\xff\x1f", faults.VarintError, 0, id="a varint of 33 bits"),
        pytest.param(b"\x01\x01\xff\xff\xff\xff\x0f", faults.OversizeError, 7, id="four billion tags"),
        pytest.param(b"\x01\x01\x01\x00\x7f", faults.DecodeError, 5, id="a tag longer than the rest"),
        pytest.param(b"\x01\x01\x01\x00", faults.OversizeError, 3, id="a tag in less than two bytes"),
        pytest.param(b"\x01\x01\x01\x80\x01", faults.TruncatedError, 5, id="a tag without a size"),
    ],
)
def test_bad_bytes_are_an_error_with_a_position(
    decode: Decode, data: bytes, error: type[faults.DecodeError], position: int
) -> None:
    with pytest.raises(error) as caught:
        decode(ApiVersionsRequest, data, 3)
    assert caught.value.position == position
    assert str(position) in str(caught.value)


def test_an_end_inside_a_run_of_fields_is_reported_no_later_than_it_is(decode: Decode) -> None:
    """The generated decoder reads several fields at once and knows where these start; the compiled one goes singly."""
    with pytest.raises(faults.TruncatedError) as caught:
        decode(ApiVersionsRequest, API_VERSIONS_V3[:-1], 3)
    assert 6 <= caught.value.position <= len(API_VERSIONS_V3) - 1


@pytest.mark.parametrize("version", [0, 13])
def test_a_count_larger_than_the_bytes_left_is_refused_before_anything_is_made(decode: Decode, version: int) -> None:
    huge = b"\xff\xff\xff\xff\x07" if version else b"\x7f\xff\xff\xff"
    with pytest.raises(faults.OversizeError, match="2147483"):
        decode(MetadataRequest, huge + bytes(100), version)


def test_a_count_is_held_against_the_least_size_of_its_elements(decode: Decode) -> None:
    """A topic of Metadata version 0 takes at least two bytes, so fifty bytes hold no more than 25."""
    assert len(decode(MetadataRequest, b"\x00\x00\x00\x19" + bytes(50), 0).topics) == 25
    with pytest.raises(faults.OversizeError, match="26"):
        decode(MetadataRequest, b"\x00\x00\x00\x1a" + bytes(50), 0)


def test_negative_counts_and_sizes_are_refused(decode: Decode) -> None:
    with pytest.raises(faults.OversizeError, match="negative"):
        decode(MetadataRequest, b"\xff\xff\xff\xfe", 0)
    with pytest.raises(faults.OversizeError, match="negative"):
        decode(MetadataRequest, b"\x00\x00\x00\x01\xff\xfe", 0)


def test_a_tagged_field_must_fill_its_size(decode: Decode) -> None:
    fetched = codec.encode(FetchResponse(node_endpoints=[FetchResponse.NodeEndpoint(node_id=1, host="a")]), 16)
    size_at = len(fetched) - 13 - 1
    assert fetched[size_at] == 13
    with pytest.raises(faults.TagSizeError):
        decode(FetchResponse, fetched[:size_at] + b"\x0e" + fetched[size_at + 1 :] + b"\x00", 16)


def test_trailing_bytes_are_an_error() -> None:
    with pytest.raises(faults.TrailingBytesError) as caught:
        codec.decode(ApiVersionsRequest, API_VERSIONS_V3 + b"!", 3)
    assert caught.value.position == len(API_VERSIONS_V3)


def test_a_version_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(faults.UnsupportedVersionError, match="ApiVersionsRequest has no version 99"):
        codec.decode(ApiVersionsRequest, API_VERSIONS_V3, 99)
