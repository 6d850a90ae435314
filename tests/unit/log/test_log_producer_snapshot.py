"""The bytes of a producer snapshot."""

import pytest
from crc32c import crc32c

from ottla.log.errors import CorruptFile
from ottla.log.producer_state import ProducerRecord, format_snapshot, parse_snapshot

PATH = "/data/orders-0/00000000000000000100.snapshot"
PRODUCER = ProducerRecord(
    producer_id=1000,
    epoch=3,
    last_sequence=41,
    last_offset=99,
    offset_delta=4,
    timestamp=1_700_000_000_000,
    coordinator_epoch=2,
    current_txn_first_offset=90,
)


def with_checksum(version: int, rest: bytes) -> bytes:
    return version.to_bytes(2, "big") + crc32c(rest).to_bytes(4, "big") + rest


def test_a_producer_takes_46_bytes_after_a_head_of_ten() -> None:
    content = format_snapshot([PRODUCER])
    assert content[:2] == b"\x00\x01"
    assert content[2:6] == crc32c(content[6:]).to_bytes(4, "big")
    assert content[6:10] == b"\x00\x00\x00\x01"
    assert content[10:].hex(" ") == " ".join(
        field.to_bytes(size, "big").hex(" ") for field, size in zip(PRODUCER, (8, 2, 4, 8, 4, 8, 4, 8), strict=True)
    )


def test_producers_are_read_back() -> None:
    other = PRODUCER._replace(producer_id=1001, current_txn_first_offset=-1, last_sequence=-1, last_offset=-1)
    assert list(parse_snapshot(format_snapshot([PRODUCER, other]), PATH)) == [PRODUCER, other]


def test_no_producers_are_a_snapshot_too() -> None:
    content = format_snapshot([])
    assert len(content) == 10
    assert list(parse_snapshot(content, PATH)) == []


def test_producers_come_in_the_order_of_a_java_hash_map() -> None:
    # Sixteen buckets: 17 shares the bucket of 1 and came first, 2 is in the next; above 32 bits the halves are mixed.
    ids = [17, 2, 1, 1 << 32]
    records = parse_snapshot(format_snapshot([PRODUCER._replace(producer_id=number) for number in ids]), PATH)
    assert [record.producer_id for record in records] == [17, 1, 1 << 32, 2]


def test_the_hash_map_grows_when_three_quarters_are_full() -> None:
    ids = [16, *range(12)]  # thirteen: thirty-two buckets, and 16 has its own
    records = parse_snapshot(format_snapshot([PRODUCER._replace(producer_id=number) for number in ids]), PATH)
    assert [record.producer_id for record in records] == [*range(12), 16]


def test_every_flipped_bit_is_noticed() -> None:
    content = format_snapshot([PRODUCER])
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        with pytest.raises(CorruptFile, match=PATH):
            parse_snapshot(damaged, PATH)


def test_every_cut_is_noticed() -> None:
    content = format_snapshot([PRODUCER])
    for size in range(len(content)):
        with pytest.raises(CorruptFile, match=PATH):
            parse_snapshot(content[:size], PATH)


@pytest.mark.parametrize(
    "content",
    [
        with_checksum(2, format_snapshot([PRODUCER])[6:]),
        with_checksum(1, (2).to_bytes(4, "big") + bytes(46)),
        with_checksum(1, (-1).to_bytes(4, "big", signed=True)),
        with_checksum(1, (2**31 - 1).to_bytes(4, "big")),
    ],
    ids=["another version", "too few producers", "a negative count", "a huge count"],
)
def test_a_checksum_does_not_make_a_wrong_content_right(content: bytes) -> None:
    with pytest.raises(CorruptFile, match=PATH):
        parse_snapshot(content, PATH)
