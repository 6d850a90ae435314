"""What one client writes, every client reads: every compression, null and empty parts, headers, times and sizes."""

from collections.abc import Callable
from types import ModuleType

import pytest

from tests.clients.every_client import CLIENTS
from tests.clients.records import COMPRESSIONS, T0_MS, Placed, Record, Refused, a_variety


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_record_comes_back_as_it_was_written_whoever_reads_it(
    client: ModuleType, compression: str, bootstrap: str, topic: str
) -> None:
    written = a_variety(null_headers=client.NULL_HEADERS)
    client.write(bootstrap, topic, written, compression)
    expected = [Placed(offset, record) for offset, record in enumerate(written)]
    for reader in CLIENTS:
        assert reader.read(bootstrap, topic, len(written)) == expected, reader.NAME


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_records_of_a_megabyte(
    client: ModuleType, compression: str, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(max_message_bytes="3000000")
    written = [Record(bytes([number]) * 1_000_000, b"large") for number in range(4)]
    client.write(bootstrap, topic, written, compression)
    assert [placed.record for placed in client.read(bootstrap, topic, len(written))] == written


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_topic_may_want_another_compression_than_the_producer(
    compression: str, client: ModuleType, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(compression_type="uncompressed" if compression == "none" else compression)
    written = a_variety(null_headers=client.NULL_HEADERS)
    client.write(bootstrap, topic, written, "gzip")
    assert [placed.record for placed in client.read(bootstrap, topic, len(written))] == written


def test_reading_from_the_middle(client: ModuleType, bootstrap: str, topic: str) -> None:
    client.write(bootstrap, topic, [Record(b"%d" % number) for number in range(1000)])
    assert client.bounds(bootstrap, topic) == (0, 1000)
    read = client.read(bootstrap, topic, 100, offset=567)
    assert read == [Placed(number, Record(b"%d" % number)) for number in range(567, 667)]


def test_an_offset_is_found_by_time(client: ModuleType, bootstrap: str, topic: str) -> None:
    written = [Record(b"%d" % number, timestamp_ms=T0_MS + 10 * number) for number in range(500)]
    client.write(bootstrap, topic, written)
    assert client.offset_for_time(bootstrap, topic, 0) == 0
    assert client.offset_for_time(bootstrap, topic, T0_MS + 3210) == 321
    assert client.offset_for_time(bootstrap, topic, T0_MS + 3211) == 322
    assert client.offset_for_time(bootstrap, topic, T0_MS + 100_000_000) is None


def test_the_broker_stamps_the_time_where_the_topic_says_so(
    client: ModuleType, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    client.write(bootstrap, topic, [Record(b"old", timestamp_ms=T0_MS)], "lz4")
    (read,) = client.read(bootstrap, topic, 1)
    assert read.record.timestamp_ms > T0_MS + 1_000_000


def test_each_partition_has_its_own_offsets(client: ModuleType, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        client.write(bootstrap, topic, [Record(b"of %d" % partition)] * (partition + 1), partition=partition)
    for partition in range(3):
        read = client.read(bootstrap, topic, partition + 1, partition=partition)
        assert read == [Placed(offset, Record(b"of %d" % partition)) for offset in range(partition + 1)]


def test_a_record_that_is_too_large_is_refused(
    client: ModuleType, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(max_message_bytes="10000")
    with pytest.raises(Refused, match="MESSAGE_TOO_LARGE"):
        client.write(bootstrap, topic, [Record(b"x" * 20_000)])
    assert client.bounds(bootstrap, topic) == (0, 0)


def test_an_unknown_topic_is_made_by_writing_to_it(client: ModuleType, bootstrap: str) -> None:
    topic = f"made-by-{client.NAME}"
    client.write(bootstrap, topic, [Record(b"first")])
    assert [placed.record.value for placed in client.read(bootstrap, topic, 1)] == [b"first"]
