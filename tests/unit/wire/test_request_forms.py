"""Requests that are filled in are, byte for byte, what the codec makes of the same request."""

import pytest

from ottla.base.ids import Uuid
from ottla.wire.frame import encode_request, encode_request_parts
from ottla.wire.messages import FetchRequest, MetadataRequest, ProduceRequest
from ottla.wire.request_forms import A_NUMBER, Filled, NumberForm, RecordsForm

TOPIC_ID = Uuid(bytes(range(16)))


def produce(version: int, *records: bytes) -> ProduceRequest:
    named = {"name": "clicks"} if version <= 12 else {"topic_id": TOPIC_ID}
    data = [ProduceRequest.PartitionProduceData(index=index, records=one) for index, one in enumerate(records)]
    topics = [ProduceRequest.TopicProduceData(partition_data=data, **named)]
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)


def fetch(version: int, offset: int) -> FetchRequest:
    named = {"topic": "clicks"} if version <= 12 else {"topic_id": TOPIC_ID}
    asked = FetchRequest.FetchPartition(partition=3, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(partitions=[asked], **named)]
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, session_epoch=-1, topics=topics)


@pytest.mark.parametrize("client_id", [None, "billing"])
@pytest.mark.parametrize("version", range(3, 14))
def test_records_are_filled_in(version: int, client_id: str | None) -> None:
    form = RecordsForm.of(produce(version, b"first"), version, client_id)
    assert form is not None
    for correlation_id, records in [(7, b"x"), (8, b"y" * 126), (0x7FFFFFFF, b"z" * 20_000)]:
        parts = Filled(form, bytearray(records)).parts(correlation_id)
        assert b"".join(parts) == b"".join(
            encode_request_parts(produce(version, records), version, correlation_id, client_id)  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("version", [9, 13])
def test_requests_with_several_records_fields_or_none_have_no_such_form(version: int) -> None:
    assert RecordsForm.of(produce(version, b"one", b"two"), version, None) is None
    assert RecordsForm.of(MetadataRequest(topics=None), 9, None) is None


@pytest.mark.parametrize("client_id", [None, "billing"])
@pytest.mark.parametrize("version", range(7, 19))
def test_a_number_is_filled_in(version: int, client_id: str | None) -> None:
    form = NumberForm(fetch(version, A_NUMBER), version, client_id)
    for correlation_id, offset in [(0, 0), (5, 1 << 40), (0x7FFFFFFF, (1 << 63) - 1)]:
        [whole] = Filled(form, offset).parts(correlation_id)
        assert whole == encode_request(fetch(version, offset), version, correlation_id, client_id)
