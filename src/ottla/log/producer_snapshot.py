"""The `.snapshot` files: what a partition knows of its producers as of the offset in the file's name.

    int16 version (1), uint32 CRC-32C of the rest, int32 count, then 46 bytes a producer

A snapshot that does not read back is thrown away, and the state rebuilt from an older one and the log.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from ottla.base.checksum import crc32c
from ottla.base.ports import Buffer
from ottla.log.errors import CorruptFile

_VERSION = 1
_HEAD = Struct(">hIi")
_CHECKED_FROM = 6
_ENTRY = Struct(">qhiqiqiq")
_JAVA_MIN_TABLE = 16


class ProducerRecord(NamedTuple):
    """One producer as a snapshot keeps it; -1 stands for none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int


def format_snapshot(producers: Iterable[ProducerRecord]) -> bytes:
    records = _in_java_order(list(producers))
    body = b"".join(_ENTRY.pack(*record) for record in records)
    head = bytearray(_HEAD.pack(_VERSION, 0, len(records)))
    checksum = crc32c(body, crc32c(bytes(head[_CHECKED_FROM:])))
    head[2:_CHECKED_FROM] = checksum.to_bytes(4, "big")
    return bytes(head) + body


def parse_snapshot(data: Buffer, path: str) -> Iterator[ProducerRecord]:
    if len(data) < _HEAD.size:
        raise CorruptFile(f"{path}: {len(data)} bytes are too few for a producer snapshot")
    version, checksum, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptFile(f"{path}: a producer snapshot has version {_VERSION}, not {version}")
    if crc32c(memoryview(data)[_CHECKED_FROM:]) != checksum:
        raise CorruptFile(f"{path}: the checksum does not match the content")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptFile(f"{path}: announces {count} producers but has {len(data)} bytes")
    return map(ProducerRecord._make, _ENTRY.iter_unpack(memoryview(data)[_HEAD.size :]))


def _in_java_order(records: list[ProducerRecord]) -> list[ProducerRecord]:
    """The order in which Java's HashMap hands out these producer ids, so that the bytes are Apache Kafka's."""
    table = _JAVA_MIN_TABLE
    while len(records) > table * 3 // 4:
        table *= 2

    def bucket(record: ProducerRecord) -> int:
        hash_code = (record.producer_id ^ (record.producer_id >> 32)) & 0xFFFFFFFF
        return (hash_code ^ (hash_code >> 16)) & (table - 1)

    return sorted(records, key=bucket)
