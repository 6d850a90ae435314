"""Frames: the size in front, the header of the right version, and what can be said about unknown requests."""

import pytest

from ottla.wire.apis import ApiKey
from ottla.wire.faults import TrailingBytesError, TruncatedError
from ottla.wire.frame import (
    UnsupportedRequestError,
    correlation_id_of,
    decode_request,
    decode_response,
    encode_request,
    encode_request_parts,
    encode_response,
    encode_response_parts,
    request_header_version,
    response_header_version,
)
from ottla.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
)


def test_a_request_starts_with_its_size_and_header() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    sent = encode_request(request, 0, correlation_id=7, client_id="c")
    assert sent.hex(" ") == "00 00 00 15 00 0c 00 00 00 00 00 07 00 01 63 00 01 67 00 00 00 01 00 01 6d"


@pytest.mark.parametrize("version", range(5))
def test_a_request_comes_back_as_it_was(version: int) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    header, message = decode_request(encode_request(request, version, correlation_id=7, client_id=None)[4:])
    assert message == request
    assert (header.request_api_key, header.request_api_version) == (ApiKey.HEARTBEAT, version)
    assert (header.correlation_id, header.client_id) == (7, None)


@pytest.mark.parametrize("version", range(5))
def test_a_response_comes_back_as_it_was(version: int) -> None:
    frame = encode_response(HeartbeatResponse(error_code=27), version, correlation_id=7)[4:]
    assert correlation_id_of(frame) == 7
    assert decode_response(HeartbeatResponse, frame, version) == (7, HeartbeatResponse(error_code=27))


def test_headers_are_flexible_when_messages_are() -> None:
    assert (request_header_version(ApiKey.HEARTBEAT, 3), request_header_version(ApiKey.HEARTBEAT, 4)) == (1, 2)
    assert (response_header_version(ApiKey.HEARTBEAT, 3), response_header_version(ApiKey.HEARTBEAT, 4)) == (0, 1)


def test_the_response_to_api_versions_always_has_the_oldest_header() -> None:
    assert [request_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [1, 1, 1, 2, 2]
    assert [response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5
    frame = encode_response(ApiVersionsResponse(error_code=35), 3, correlation_id=9)[4:]
    assert frame.hex(" ") == "00 00 00 09 00 23 01 00 00 00 00 00"


def test_parts_announce_the_size_of_all_of_them() -> None:
    class FileSpan:
        def __len__(self) -> int:
            return 1000

    partition = FetchResponse.PartitionData(records=FileSpan())
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    before, span, after = encode_response_parts(response, 12, correlation_id=1)
    assert span is partition.records
    partition.records = bytes(1000)
    whole = encode_response(response, 12, correlation_id=1)
    assert whole == before + bytes(1000) + after  # type: ignore[operator]
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4


def test_a_request_can_be_sent_in_parts_too() -> None:
    batch = memoryview(b"batch")
    partition = ProduceRequest.PartitionProduceData(records=batch)
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(partition_data=[partition])])
    parts = encode_request_parts(request, 13, correlation_id=1, client_id="c")
    assert parts[1] is batch
    assert b"".join(parts) == encode_request(request, 13, correlation_id=1, client_id="c")  # type: ignore[arg-type]


@pytest.mark.parametrize(("api_key", "version"), [(18, 99), (18, -1), (4242, 0), (6, 0), (0, 2)])
def test_the_header_of_an_unsupported_request_can_still_be_read(api_key: int, version: int) -> None:
    key, number = (value.to_bytes(2, "big", signed=True) for value in (api_key, version))
    with pytest.raises(UnsupportedRequestError) as caught:
        decode_request(key + number + bytes.fromhex("0000002a 0003") + b"new" + b"\x00 what is to come")
    assert caught.value.header.correlation_id == 42
    assert caught.value.header.client_id == "new"
    assert caught.value.version == version


@pytest.mark.parametrize("size", range(8))
def test_a_frame_without_a_whole_header_is_truncated(size: int) -> None:
    with pytest.raises(TruncatedError):
        decode_request(encode_request(ApiVersionsRequest(), 3, 1, None)[4:][:size])
    with pytest.raises(TruncatedError):
        correlation_id_of(bytes(size)[:3])


def test_bytes_after_a_request_are_passed_over_as_kafka_does() -> None:
    """librdkafka sends three more than a MetadataRequest needs."""
    request = ApiVersionsRequest(client_software_name="librdkafka")
    assert decode_request(encode_request(request, 3, 1, None)[4:] + b"!!!").message == request


def test_bytes_after_a_response_are_an_error() -> None:
    with pytest.raises(TrailingBytesError):
        decode_response(HeartbeatResponse, encode_response(HeartbeatResponse(), 0, 1)[4:] + b"!", 0)
