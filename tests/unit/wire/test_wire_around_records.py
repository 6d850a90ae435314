"""What is around the records of a request, by the compiled function and by its twin."""

import pytest

from ottla.wire.around_records import around_records, split, split_in_python
from ottla.wire.frame import encode_request
from ottla.wire.messages import ProduceRequest

VERSIONS = range(3, 14)
AROUND_LENGTHS = [1, 61, 126, 127, 128, 300, 16_382, 16_383, 16_384, 70_000]


def request_of(*records: bytes, **fields: object) -> ProduceRequest:
    data = [ProduceRequest.PartitionProduceData(index=3, records=each) for each in records]
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=data)
    return ProduceRequest(**{"acks": -1, "timeout_ms": 1000, "topic_data": [topic], **fields})


def frame_of(request: ProduceRequest, version: int, correlation_id: int = 0, client: str | None = "c") -> memoryview:
    return memoryview(bytearray(encode_request(request, version, correlation_id, client)))[4:]


@pytest.fixture(params=[split, split_in_python], ids=["as it is", "in Python"])
def splitting(request):
    return request.param


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client", ["c", None])
def test_requests_that_differ_in_records_and_correlation_id_have_the_same_around_them(splitting, version, client):
    around = around_records(request_of(b"x" * 100), version, client)
    assert around is not None
    for size in AROUND_LENGTHS:
        records = bytes(range(256)) * (size // 256) + bytes(size % 256)
        frame = frame_of(request_of(records), version, -7 - size, client)
        surroundings, correlation_id, found = splitting(frame, around.at, around.compact)
        assert (surroundings, correlation_id) == (around.surroundings, -7 - size)
        assert found == records


@pytest.mark.parametrize("version", [3, 8, 9, 12])
@pytest.mark.parametrize("other", [{"acks": 1}, {"timeout_ms": 7}, {"transactional_id": "t"}])
def test_a_request_that_differs_otherwise_has_something_else_around_its_records(splitting, version, other):
    around = around_records(request_of(b"x" * 100), version, "c")
    found = splitting(frame_of(request_of(b"x" * 100, **other), version), around.at, around.compact)
    assert found is None or found[0] != around.surroundings
    of_another_version = splitting(frame_of(request_of(b"x" * 100), version + 1), around.at, around.compact)
    assert of_another_version is None or of_another_version[0] != around.surroundings


@pytest.mark.parametrize("version", [8, 9])
def test_a_frame_that_is_cut_off_or_damaged_is_never_taken_for_another(splitting, version):
    around = around_records(request_of(b"x" * 100), version, "c")
    whole = bytes(frame_of(request_of(b"x" * 100), version))
    for size in range(len(whole)):
        found = splitting(memoryview(whole[:size]), around.at, around.compact)
        assert found is None or found[0] != around.surroundings
    for at in range(around.at, around.at + (1 if around.compact else 4)):
        for value in range(256):
            changed = bytearray(whole)
            changed[at] = value
            found = splitting(memoryview(changed), around.at, around.compact)
            assert changed == whole or found is None or found[0] != around.surroundings
            assert found == split_in_python(memoryview(changed), around.at, around.compact)


@pytest.mark.parametrize("at", [0, 7, 8, 20, 160, 10_000, -1])
def test_a_place_where_no_length_can_be_gives_nothing_or_what_the_twin_gives(at):
    frame = frame_of(request_of(b"\xff" * 100), 9)
    for compact in (True, False):
        assert split(frame, at, compact) == split_in_python(frame, at, compact)


def test_only_a_request_with_one_records_field_has_something_around_it():
    assert around_records(request_of(), 9, "c") is None
    assert around_records(request_of(b"a", b"b"), 9, "c") is None
