"""What a leader checks in a produced batch before it takes it, and what it changes in it.

The outcomes are Apache Kafka's: the same batches are taken, and the refused ones get the same error code (held
against Kafka 4.3.1 in `tests/unit/records/test_validate.py`). There is one difference on purpose: where Kafka stumbles
over a client's bytes and answers UNKNOWN_SERVER_ERROR (a codec that does not exist, data that does not
decompress, a compressed batch whose offsets have gaps), we answer INVALID_RECORD, which says whose fault it is.

Kafka looks at every record of every batch, and so do we; the kernel's `scan` makes that one pass of about ten
nanoseconds a record. Only when it finds something to refuse are records looked at one by one, to name them.
The records themselves are copied only when the topic's `compression.type` asks for another codec.
"""

from typing import NamedTuple

from ottla.base.errors import RemoteProtocolError
from ottla.base.lent import Seen, Writable
from ottla.base.ports import Buffer
from ottla.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    checksum_matches,
    complete_batches,
    read_header,
    set_max_timestamp,
    write_header,
)
from ottla.records.columns import Scan
from ottla.records.compression import DEFAULT_LIMIT, DecompressionBomb, compress
from ottla.records.header import (
    COMPRESSION_MASK,
    DELETE_HORIZON_FLAG,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
    CorruptBatch,
    TimestampType,
)
from ottla.records.kernel import PlainBatches, RecordReader, RecordWriter, is_sound, scan
from ottla.records.reader import record_bytes

_FOREVER = (1 << 63) - 1
MAX_PLAIN_BYTES = 4 << 20
"""A larger batch takes milliseconds to look at, plain or not."""


class ProduceRules:
    """The topic settings that decide what may be produced to it; the defaults are Kafka's."""

    __slots__ = (
        "compacted",
        "compression",
        "compression_level",
        "max_message_bytes",
        "plain",
        "timestamp_after_max_ms",
        "timestamp_before_max_ms",
        "timestamp_type",
    )

    def __init__(
        self,
        compression: Compression | None = None,
        compression_level: int | None = None,
        max_message_bytes: int = 1_048_588,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        timestamp_before_max_ms: int = _FOREVER,
        timestamp_after_max_ms: int = 3_600_000,
        compacted: bool = False,
    ) -> None:
        self.compression = compression
        """`compression.type`; None is `producer`: whatever the batch came with."""
        self.compression_level = compression_level
        self.max_message_bytes = max_message_bytes
        self.timestamp_type = timestamp_type
        self.timestamp_before_max_ms = timestamp_before_max_ms
        self.timestamp_after_max_ms = timestamp_after_max_ms
        self.compacted = compacted
        changes_all = timestamp_type is not TimestampType.CREATE_TIME or compression
        max_size = 0 if changes_all else min(max_message_bytes, MAX_PLAIN_BYTES)
        self.plain = PlainBatches(max_size, timestamp_before_max_ms, timestamp_after_max_ms, compacted)
        """Of which none is where a batch has to be compressed, or stamped with the broker's time."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProduceRules) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__ if name != "plain"
        )

    __hash__ = None  # type: ignore[assignment]

    def timestamps_around(self, now_ms: int) -> tuple[int, int]:
        """The earliest and the latest time that a record may have."""
        return now_ms - self.timestamp_before_max_ms, min(now_ms + self.timestamp_after_max_ms, _FOREVER)


class RecordError(NamedTuple):
    """A record that is the reason for a refusal (KIP-467)."""

    batch_index: int
    message: str


class InvalidBatch(RemoteProtocolError):
    """A produced batch that is refused. `error` is the name of Kafka's error code for the reply."""

    def __init__(self, error: str, message: str, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(message)
        self.error = error
        self.record_errors = record_errors

    @property
    def is_bomb(self) -> bool:
        """Whether it is refused for expanding to more than the limit, and for nothing else."""
        return isinstance(self.__cause__, DecompressionBomb)


class Validated(NamedTuple):
    """A batch that may be appended, as its header says. Nothing in here is a view of what came, which is only lent.

    `replacement` is what to append in place of the bytes that came: if they were converted, or could not be changed in
    place.
    """

    header: BatchHeader
    replacement: bytearray | None = None
    converted: bool = False

    def to_append(self, came: Seen) -> Writable:
        """The bytes to append. `came` is what was checked, or a copy of it."""
        if self.replacement is not None:
            return self.replacement
        assert not isinstance(came, bytes), "what cannot be written to is replaced"
        size = self.header.size
        return came if len(came) == size else memoryview(came)[:size]  # A cut-off batch may come after it.


def validate_produced(
    data: Seen, rules: ProduceRules, now_ms: int, decompressed_limit: int = DEFAULT_LIMIT
) -> Validated:
    """Checks what a client sent for one partition and makes it ready for `batch.assign`, or raises `InvalidBatch`.

    Bytes that can be written to are changed in place; a read-only buffer is copied first. A batch whose bytes were
    changed in place is not to be checked again: it has the broker's marks by then.
    """
    plain = rules.plain.header_of(data, now_ms)
    if plain is not None and is_sound(data):
        return Validated(plain)
    header = check_headers(data, rules.max_message_bytes)
    batch, replacement = memoryview(data)[: header.size], None
    if batch.readonly:
        replacement = bytearray(batch)
        batch = memoryview(replacement)
    try:
        encoded = record_bytes(batch, 0, header, decompressed_limit)
        found = scan(encoded, header.base_timestamp, header.record_count)
    except CorruptBatch as fault:
        raise InvalidBatch("INVALID_RECORD", str(fault)) from fault
    if header.is_log_append_time:
        found = found._replace(earliest_timestamp=header.max_timestamp, latest_timestamp=header.max_timestamp)
    if _has_record_errors(header, found, rules, now_ms):
        _raise_record_errors(encoded, header, rules, now_ms)
    target = header.compression if rules.compression is None else rules.compression
    if target != header.compression:
        return _convert(encoded, header, found, target, rules, now_ms)
    if header.compression != Compression.NONE and not found.in_sequence:
        raise InvalidBatch("INVALID_RECORD", "the offsets of a compressed batch have gaps")
    max_timestamp = _max_timestamp(found, rules, now_ms)
    return Validated(set_max_timestamp(batch, 0, header, rules.timestamp_type, max_timestamp), replacement)


def check_headers(data: Seen, max_message_bytes: int) -> BatchHeader:
    """The cheap part: everything that the header of the batch and its checksum show."""
    header = _only_header(data)
    count = header.record_count
    if header.base_offset != 0:
        raise InvalidBatch("INVALID_RECORD", f"the base offset is {header.base_offset}; a producer's is 0")
    if header.size > max_message_bytes:
        raise InvalidBatch("MESSAGE_TOO_LARGE", f"{header.size} bytes; at most {max_message_bytes} are allowed")
    if not checksum_matches(data, 0, header):
        raise InvalidBatch("CORRUPT_MESSAGE", f"the batch does not match its checksum {header.crc}")
    if header.compression > Compression.ZSTD:
        raise InvalidBatch("INVALID_RECORD", f"no compression codec has the number {header.compression}")
    if count <= 0 or header.last_offset_delta != count - 1:
        raise InvalidBatch(
            "INVALID_RECORD", f"{count} records do not go with a last offset delta of {header.last_offset_delta}"
        )
    if header.is_control:
        raise InvalidBatch("INVALID_RECORD", "clients may not write control records")
    if header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        raise InvalidBatch("INVALID_RECORD", f"producer {header.producer_id} gave the sequence {header.base_sequence}")
    return header


def _only_header(data: Seen) -> BatchHeader:
    """The header of the one batch that a partition's records must be. A cut-off batch after it does not count."""
    if len(data) > MAGIC_POSITION and data[MAGIC_POSITION] < MAGIC:
        raise InvalidBatch("INVALID_RECORD", "batches of magic 0 and 1 can only be read, not produced")
    try:
        if len(data) >= HEADER_SIZE and int.from_bytes(data[8:12], "big") == len(data) - LOG_OVERHEAD:
            return read_header(data)
        found = [header for _, header in complete_batches(data)]
    except CorruptBatch as fault:
        raise InvalidBatch("CORRUPT_MESSAGE", str(fault)) from fault
    if len(found) != 1:
        raise InvalidBatch("INVALID_RECORD", f"a partition's records must be one whole batch, not {len(found)}")
    return found[0]


def _has_record_errors(header: BatchHeader, found: Scan, rules: ProduceRules, now_ms: int) -> bool:
    if rules.compacted and found.first_keyless >= 0:
        return True
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.is_log_append_time
    if found.earliest_timestamp is None:
        return False
    earliest, latest = rules.timestamps_around(now_ms)
    return found.earliest_timestamp < earliest or found.latest_timestamp > latest


def _raise_record_errors(encoded: Buffer, header: BatchHeader, rules: ProduceRules, now_ms: int) -> None:
    errors: list[RecordError] = []
    any_timestamp_error = False
    earliest, latest = rules.timestamps_around(now_ms)
    reader = RecordReader(encoded, 0, header.base_timestamp, header.log_append_time, header.record_count)
    for index, record in enumerate(reader):
        if rules.compacted and record.key is None:
            errors.append(RecordError(index, "a record in a compacted topic needs a key"))
        elif rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
            if header.is_log_append_time:
                any_timestamp_error = True
                errors.append(RecordError(index, "a producer may not set log append time"))
        elif record.timestamp != NO_TIMESTAMP and not earliest <= record.timestamp <= latest:
            any_timestamp_error = True
            errors.append(RecordError(index, f"timestamp {record.timestamp} is not within [{earliest}, {latest}]"))
    assert errors, "the scan found a record to refuse, and the records do not have one"
    error = "INVALID_TIMESTAMP" if any_timestamp_error else "INVALID_RECORD"
    raise InvalidBatch(error, f"{len(errors)} records were refused; the first: {errors[0].message}", tuple(errors))


def _max_timestamp(found: Scan, rules: ProduceRules, now_ms: int) -> int:
    return now_ms if rules.timestamp_type is TimestampType.LOG_APPEND_TIME else found.latest_timestamp


def _convert(
    encoded: Buffer, header: BatchHeader, found: Scan, target: int, rules: ProduceRules, now_ms: int
) -> Validated:
    """The same records in another codec. They are written anew only if their offsets have to be."""
    if not found.in_sequence:
        writer = RecordWriter(base_timestamp=header.base_timestamp)
        for record in RecordReader(encoded, 0, header.base_timestamp, None, header.record_count):
            writer.append(record.timestamp, record.key, record.value, record.headers)
        encoded = writer.finish()
    batch = bytearray(HEADER_SIZE)
    batch += compress(target, encoded, rules.compression_level)
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_FLAG) | target
    new_header = write_header(batch, header._replace(attributes=attributes))
    if new_header.size > rules.max_message_bytes:
        raise InvalidBatch(
            "MESSAGE_TOO_LARGE",
            f"{new_header.size} bytes once converted; at most {rules.max_message_bytes} are allowed",
        )
    max_timestamp = _max_timestamp(found, rules, now_ms)
    stamped = set_max_timestamp(batch, 0, new_header, rules.timestamp_type, max_timestamp)
    return Validated(stamped, batch, converted=True)
