"""Fetched bytes to a consumer's records: which batches are shown, and how those are opened that the kernel leaves.

The kernel opens most batches by itself. Those of the older formats, and all of a fetch in which some transaction was
aborted are opened here, once per batch.
"""

from collections.abc import Iterable

from ottla.base.ports import Buffer
from ottla.records import legacy
from ottla.records.batch import MAGIC, checksum_matches, read_header
from ottla.records.columns import Deserialize, OpenedRecords
from ottla.records.compression import DEFAULT_LIMIT, decompress
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.kernel import FetchedRecords, RecordWriter
from ottla.records.reader import record_bytes
from ottla.records.visibility import Visibility

_LARGEST_OFFSET = (1 << 63) - 1


def fetched_records(
    topic: str,
    partition: int,
    data: Buffer,
    first_offset: int,
    *,
    aborted: Iterable[tuple[int, int]] = (),
    check_crcs: bool = True,
    key_deserializer: Deserialize | None = None,
    value_deserializer: Deserialize | None = None,
    limit: int = DEFAULT_LIMIT,
) -> FetchedRecords:
    """The records in `data` from `first_offset` on, without those of the `aborted` transactions.

    These are (producer id, first offset) pairs, as a fetch names them. A batch may decompress to `limit` bytes.
    """
    aborted = list(aborted)
    visibility = Visibility(aborted)

    def open_batch(data: Buffer, position: int) -> tuple[int, int, int, OpenedRecords | None]:
        header = read_header(data, position)
        if check_crcs and not checksum_matches(data, position, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} does not match its checksum {header.crc}")
        if header.base_offset < 0 or header.last_offset_delta < 0 or header.next_offset > _LARGEST_OFFSET:
            raise CorruptBatch(f"the batch at offset {header.base_offset} ends before it begins")
        opened: OpenedRecords | None = None
        if visibility.shows(data, position, header):
            records, base_timestamp = current_record_bytes(data, position, header, limit)
            opened = records, header.base_offset, base_timestamp, header.log_append_time, header.record_count
        return header.size, header.next_offset, header.partition_leader_epoch, opened

    return FetchedRecords(
        topic,
        partition,
        data,
        first_offset,
        open_batch,
        decompress if limit == DEFAULT_LIMIT else lambda codec, encoded: decompress(codec, encoded, limit),
        checks_crcs=check_crcs,
        asks_always=bool(aborted),
        key_deserializer=key_deserializer,
        value_deserializer=value_deserializer,
    )


def current_record_bytes(
    data: Buffer, position: int, header: BatchHeader, limit: int = DEFAULT_LIMIT
) -> tuple[Buffer, int]:
    """Encoded records and the timestamp they count from; those of the older formats are written anew."""
    if header.magic == MAGIC:
        return record_bytes(data, position, header, limit), header.base_timestamp
    writer = RecordWriter()
    for record in legacy.read_records(data, position, limit):
        writer.append(record.timestamp, record.key, record.value, (), record.offset - header.base_offset)
    return writer.finish(), writer.base_timestamp
