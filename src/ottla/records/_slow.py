"""The kernel in Python: what the compiled one must do, to the byte and to the word. See `ottla.records.kernel`.

A record (KIP-98), all numbers variable-length and zig-zag, lengths of -1 (or less) meaning null:

    length           of what follows
    attributes       one byte, none defined
    timestamp delta  up to 64 bits, from the batch's base_timestamp
    offset delta     from the batch's base_offset
    key length, key, value length, value
    header count, then for each header: key length, key (UTF-8), value length, value

Longer than most files, because the compiled twin is one module and the two are read side by side. Reading comes
first (`_parse` is the only reader of record bytes), then columns, writing, and cleaning.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final, NamedTuple

from ottla.base.checksum import crc32c
from ottla.base.lent import Seen
from ottla.base.ports import Buffer
from ottla.records.columns import (
    BinaryColumn,
    Decompress,
    Deserialize,
    Header,
    HeaderColumn,
    Headers,
    OpenBatch,
    RecordColumns,
    Retained,
    RetainedRun,
    Scan,
)
from ottla.records.faults import (
    BYTES_LEFT,
    FIELD_CUT,
    HEADER_COUNT,
    HEADER_KEY_LENGTH,
    HEADER_VALUE_LENGTH,
    KEY_LENGTH,
    RECORD_COUNT,
    RECORD_LENGTH,
    RECORD_TOO_LONG,
    VALUE_LENGTH,
    VARINT_TOO_LONG,
    corrupt,
)
from ottla.records.header import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC_POSITION,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptBatch,
    TimestampType,
)

_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1
_INT64_MIN: Final = -(1 << 63)
_MAGIC: Final = 2
_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")
_BOUNDS = Struct("=ii")
_INT64 = Struct("=q")


class Record:
    """A record with its absolute offset and timestamp (milliseconds)."""

    __match_args__ = ("offset", "timestamp", "key", "value", "headers")
    __slots__ = ("_fields",)

    _fields: tuple[int, int, bytes | None, bytes | None, Headers]

    def __init__(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> None:
        self._fields = (offset, timestamp, key, value, headers)

    @property
    def offset(self) -> int:
        return self._fields[0]

    @property
    def timestamp(self) -> int:
        return self._fields[1]

    @property
    def key(self) -> bytes | None:
        return self._fields[2]

    @property
    def value(self) -> bytes | None:
        return self._fields[3]

    @property
    def headers(self) -> Headers:
        """A key that is not UTF-8 is shown with replacement characters, as Java does."""
        return self._fields[4]

    def __eq__(self, other: object) -> bool:
        return self._fields == other._fields if type(other) is Record else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields)

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )

    def __reduce__(self) -> tuple[type["Record"], tuple[object, ...]]:
        return Record, self._fields


class _RecordError(Exception):
    """A fault and where it is; the index of the record is not known yet."""

    def __init__(self, fault: int, position: int) -> None:
        self.fault = fault
        self.position = position

    def at(self, index: int) -> CorruptBatch:
        return corrupt(self.fault, index, self.position)


class _Parsed(NamedTuple):
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[bytes, bytes | None]]
    rest: int
    """Where what follows the timestamp begins."""
    end: int


def _read_varint(data: bytes, position: int, end: int, bits: int = 32) -> tuple[int, int]:
    """A number and the position after it. Bits beyond the width are dropped, as Java drops them."""
    raw = shift = 0
    cursor = position
    while True:
        if cursor >= end:
            raise _RecordError(FIELD_CUT, position)
        byte = data[cursor]
        cursor += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise _RecordError(VARINT_TOO_LONG, position)
    raw &= (1 << bits) - 1
    return (raw >> 1) ^ -(raw & 1), cursor


def _read_span(data: bytes, position: int, end: int, fault: int) -> tuple[bytes | None, int]:
    length, start = _read_varint(data, position, end)
    if length < 0:
        return None, start
    if length > end - start:
        raise _RecordError(fault, position)
    return data[start : start + length], start + length


def _parse(data: bytes, position: int) -> _Parsed:
    length, cursor = _read_varint(data, position, len(data))
    if length < 0 or length > len(data) - cursor:
        raise _RecordError(RECORD_LENGTH, position)
    end = cursor + length
    if length == 0:
        raise _RecordError(FIELD_CUT, cursor)
    timestamp_delta, rest = _read_varint(data, cursor + 1, end, 64)
    offset_delta, cursor = _read_varint(data, rest, end)
    key, cursor = _read_span(data, cursor, end, KEY_LENGTH)
    value, cursor = _read_span(data, cursor, end, VALUE_LENGTH)
    count, headers_at = _read_varint(data, cursor, end)
    if count < 0 or count > end - headers_at:
        raise _RecordError(HEADER_COUNT, cursor)
    headers: list[tuple[bytes, bytes | None]] = []
    cursor = headers_at
    for _ in range(count):
        header_key, after_key = _read_span(data, cursor, end, HEADER_KEY_LENGTH)
        if header_key is None:
            raise _RecordError(HEADER_KEY_LENGTH, cursor)
        header_value, cursor = _read_span(data, after_key, end, HEADER_VALUE_LENGTH)
        headers.append((header_key, header_value))
    if cursor != end:
        raise _RecordError(RECORD_TOO_LONG, cursor)
    return _Parsed(timestamp_delta, offset_delta, key, value, headers, rest, end)


def _parse_all(data: Buffer, count: int) -> Iterator[tuple[int, _Parsed]]:
    """Every record with its index. Like Java, finds bytes after the last record before it gives that record out."""
    if count < 0:
        raise corrupt(RECORD_COUNT, 0, 0)
    whole = bytes(data)
    position = 0
    for index in range(count):
        try:
            parsed = _parse(whole, position)
        except _RecordError as fault:
            raise fault.at(index) from None
        position = parsed.end
        if index == count - 1 and position != len(whole):
            raise corrupt(BYTES_LEFT, index, position)
        yield index, parsed


def _wrap(value: int) -> int:
    """As 64 bits, like the sums of a base and a delta in Java and C."""
    return ((value - _INT64_MIN) & 0xFFFFFFFFFFFFFFFF) + _INT64_MIN


def _check_int64(value: int) -> int:
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise OverflowError("a number does not fit into 64 bits")
    return value


class RecordReader:
    """Iterates over the records of one batch."""

    def __init__(
        self, data: Buffer, base_offset: int, base_timestamp: int, log_append_time: int | None, count: int
    ) -> None:
        if count < 0:
            raise corrupt(RECORD_COUNT, 0, 0)
        self._records = _parse_all(data, count)
        self._base_offset = _check_int64(base_offset)
        self._base_timestamp = _check_int64(base_timestamp)
        self._log_append_time = log_append_time

    def __iter__(self) -> "RecordReader":
        return self

    def __next__(self) -> Record:
        _, parsed = next(self._records)
        timestamp = self._log_append_time
        if timestamp is None:
            timestamp = _wrap(self._base_timestamp + parsed.timestamp_delta)
        headers: Headers = ()
        if parsed.headers:
            headers = tuple((key.decode("utf-8", "replace"), value) for key, value in parsed.headers)
        return Record(_wrap(self._base_offset + parsed.offset_delta), timestamp, parsed.key, parsed.value, headers)


class ConsumerRecord:
    """A record that was read from a partition. `key` and `value` are bytes unless a deserializer was given."""

    __match_args__ = ("topic", "partition", "offset", "key", "value")
    __slots__ = ("_fields",)

    _fields: tuple[str, int, int, int, Any, Any, Headers, TimestampType, int | None, int, int]

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        key: Any = None,
        value: Any = None,
        headers: Headers = (),
        timestamp_type: int = 0,
        leader_epoch: int | None = None,
        serialized_key_size: int | None = None,
        serialized_value_size: int | None = None,
    ) -> None:
        self._fields = (
            topic,
            partition,
            offset,
            timestamp,
            key,
            value,
            headers,
            TimestampType(timestamp_type),
            leader_epoch,
            _serialized_size(key, serialized_key_size),
            _serialized_size(value, serialized_value_size),
        )

    @property
    def topic(self) -> str:
        return self._fields[0]

    @property
    def partition(self) -> int:
        return self._fields[1]

    @property
    def offset(self) -> int:
        return self._fields[2]

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 if the record has none."""
        return self._fields[3]

    @property
    def key(self) -> Any:
        return self._fields[4]

    @property
    def value(self) -> Any:
        return self._fields[5]

    @property
    def headers(self) -> Headers:
        return self._fields[6]

    @property
    def timestamp_type(self) -> TimestampType:
        return self._fields[7]

    @property
    def leader_epoch(self) -> int | None:
        """Of the leader that took the record; None in the formats before 2.0."""
        return self._fields[8]

    @property
    def serialized_key_size(self) -> int:
        """In bytes; -1 for null."""
        return self._fields[9]

    @property
    def serialized_value_size(self) -> int:
        return self._fields[10]

    def __eq__(self, other: object) -> bool:
        return self._fields == other._fields if type(other) is ConsumerRecord else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields[:3])

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition!r}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self) -> tuple[type["ConsumerRecord"], tuple[object, ...]]:
        return ConsumerRecord, self._fields


def _serialized_size(data: object, size: int | None) -> int:
    if size is not None:
        return size
    return len(data) if isinstance(data, bytes) else -1


class FetchedRecords:
    """The records of one partition's fetched batches from an offset on, taken in portions.

    The last batch may be cut off, and is then left out. After an exception, the bytes' or a deserializer's, nothing
    has changed but that the records before the faulty one are taken: `take` raises the same again.

    `open_batch` opens all batches here. What is given besides (`decompress`, `checks_crcs`, `asks_always`) is for the
    compiled kernel, which opens most of them without asking.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        data: Buffer,
        first_offset: int,
        open_batch: OpenBatch,
        decompress: Decompress,
        *,
        checks_crcs: bool = True,
        asks_always: bool = False,
        key_deserializer: Deserialize | None = None,
        value_deserializer: Deserialize | None = None,
    ) -> None:
        self.data = data
        self.next_offset = first_offset
        """Where to read on. Beyond the last record if batches without visible records follow it."""
        self.last_epoch = -1
        """The leader epoch of the last batch that was taken whole; -1 if there was none."""
        self.end_offset = first_offset
        """Where the next fetch has to begin: after the last batch that is whole."""
        self.end_epoch = -1
        """The leader epoch of that batch."""
        self.next_batch_bytes = 0
        """The size of the batch behind them, if its head came with them; else of the largest of them, as a guess."""
        self._topic = topic
        self._partition = partition
        self._open_batch = open_batch
        self._deserializers = key_deserializer, value_deserializer
        self._at = self._open_at = 0
        self._position = self._index = self._count = 0
        self._records = b""
        self._base_offset = self._base_timestamp = self._batch_end = 0
        self._epoch = -1
        self._log_append_time: int | None = None
        self._find_end()

    def _find_end(self) -> None:
        """Goes from batch to batch without looking into them."""
        at, last, size = 0, -1, len(self.data)
        while size - at > MAGIC_POSITION:
            length = int.from_bytes(self.data[at + 8 : at + 12], "big", signed=True)
            if length < MAGIC_POSITION - LOG_OVERHEAD:
                break
            if length > size - at - LOG_OVERHEAD:
                self.next_batch_bytes = length + LOG_OVERHEAD
                break
            self.next_batch_bytes = max(self.next_batch_bytes, length + LOG_OVERHEAD)
            last, at = at, at + length + LOG_OVERHEAD
        if last < 0:
            return
        head = bytes(self.data[last : min(at, last + HEADER_SIZE)])
        self.end_offset = int.from_bytes(head[:8], "big", signed=True) + 1
        if len(head) == HEADER_SIZE and head[MAGIC_POSITION] == 2:
            self.end_offset += int.from_bytes(head[23:27], "big", signed=True)
            self.end_epoch = int.from_bytes(head[12:16], "big", signed=True)
        self.end_offset = _wrap(self.end_offset)

    @property
    def bytes_left(self) -> int:
        """Of batches that are not taken whole."""
        return len(self.data) - (self._open_at if self._index < self._count else self._at)

    def take(self, out: list[ConsumerRecord], most: int) -> None:
        """Appends at most so many records."""
        while most > 0:
            if self._index >= self._count:
                if not self._next_batch():
                    break
                continue
            parsed = self._parse()
            offset = _wrap(self._base_offset + parsed.offset_delta)
            if offset >= self.next_offset:
                out.append(self._make(parsed, offset, *self._deserializers))
                self.next_offset = offset + 1
                most -= 1
            self._position = parsed.end
            self._index += 1
            if self._index == self._count:
                self._end_batch()

    def next_raw(self) -> ConsumerRecord:
        """The next record as it is in the bytes, without taking it: the one that `take` has just failed at."""
        parsed = self._parse()
        return self._make(parsed, _wrap(self._base_offset + parsed.offset_delta), None, None)

    def _parse(self) -> _Parsed:
        try:
            parsed = _parse(self._records, self._position)
        except _RecordError as error:
            raise error.at(self._index) from None
        if self._index == self._count - 1 and parsed.end != len(self._records):
            raise corrupt(BYTES_LEFT, self._index, parsed.end)
        return parsed

    def _make(
        self, parsed: _Parsed, offset: int, key_deserializer: Deserialize | None, value_deserializer: Deserialize | None
    ) -> ConsumerRecord:
        stamp = self._log_append_time
        key, value = parsed.key, parsed.value
        headers: Headers = tuple((key.decode(errors="replace"), value) for key, value in parsed.headers)
        return ConsumerRecord(
            self._topic,
            self._partition,
            offset,
            _wrap(self._base_timestamp + parsed.timestamp_delta) if stamp is None else stamp,
            key if key is None or key_deserializer is None else key_deserializer(self._topic, key, headers),
            value if value is None or value_deserializer is None else value_deserializer(self._topic, value, headers),
            headers,
            0 if stamp is None else 1,
            self._epoch if self._epoch >= 0 else None,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
        )

    def _next_batch(self) -> bool:
        left = len(self.data) - self._at
        if left <= MAGIC_POSITION:
            return False
        if int.from_bytes(self.data[self._at + 8 : self._at + 12], "big", signed=True) > left - LOG_OVERHEAD:
            return False
        size, self._batch_end, self._epoch, opened = self._open_batch(self.data, self._at)
        self._index = self._count = 0
        if opened is not None and opened[4] < 0:
            raise corrupt(RECORD_COUNT, 0, 0)
        self._open_at = self._at
        self._at += size
        if opened is None or opened[4] == 0 or self._batch_end <= self.next_offset:
            self._end_batch()
            return True
        records, self._base_offset, self._base_timestamp, self._log_append_time, self._count = opened
        self._records = bytes(records)
        self._position = 0
        return True

    def _end_batch(self) -> None:
        self.next_offset = max(self.next_offset, self._batch_end)
        self.last_epoch = self._epoch


def scan(data: Buffer, base_timestamp: int, count: int) -> Scan:
    """What a broker has to know about the records of a batch, all of which are checked on the way."""
    earliest: int | None = None
    latest = keyless = -1
    in_sequence = True
    for index, parsed in _parse_all(data, count):
        timestamp = _wrap(base_timestamp + parsed.timestamp_delta)
        latest = max(latest, timestamp)
        if timestamp != -1 and (earliest is None or timestamp < earliest):
            earliest = timestamp
        if parsed.key is None and keyless < 0:
            keyless = index
        in_sequence = in_sequence and parsed.offset_delta == index
    if count == 0 and len(data):
        raise corrupt(BYTES_LEFT, 0, 0)
    return Scan(earliest, latest, keyless, in_sequence)


class PlainBatches:
    """Knows a batch at a glance that a leader takes as it is, by what a topic allows.

    Such a batch is *plain*: it is whole and alone, not compressed, of a client, may be written to, and nothing in it
    has to be changed. No record of it is more than `before_ms` older than now, or more than `after_ms` newer.
    """

    def __init__(self, max_size: int, before_ms: int, after_ms: int, needs_keys: bool) -> None:
        self.max_size = max_size
        self.before_ms = before_ms
        self.after_ms = after_ms
        self.needs_keys = needs_keys

    def header_of(self, data: Seen | None, now_ms: int) -> BatchHeader | None:
        """The header of a plain batch, found in one pass; None if it takes a closer look to know whether it is one.

        Whether it matches its checksum is for the log to see, where it is written, or for the caller (`is_sound`).

        Here every batch gets the closer look: without a compiler there is no quicker one.
        """
        return None


def is_sound(data: Seen, crc: int = -1) -> bool:
    """Whether bytes, which are one whole batch of magic 2, match the checksum in them, and `crc` if it is given."""
    if len(data) < HEADER_SIZE:
        return False
    whole = memoryview(data)
    found = crc32c(whole[ATTRIBUTES_POSITION:])
    return found == int.from_bytes(whole[CRC_POSITION:ATTRIBUTES_POSITION], "big") and crc in (-1, found)


class _GrowingColumn:
    def __init__(self) -> None:
        self._offsets = array("i", [0])
        self._data = bytearray()
        self._validity = bytearray()
        self._nulls = 0
        self.rows = 0

    def put(self, value: bytes | None) -> None:
        if self.rows & 7 == 0:
            self._validity.append(0)
        if value is None:
            self._nulls += 1
        else:
            self._validity[-1] |= 1 << (self.rows & 7)
            self._data += value
        self._offsets.append(len(self._data))
        self.rows += 1

    def finish(self) -> BinaryColumn:
        validity = self._validity if self._nulls else None
        return BinaryColumn(self._offsets.tobytes(), self._data, validity, self._nulls)


class ColumnReader:
    """Decodes batches into columns. After an exception the reader is of no more use."""

    def __init__(self) -> None:
        self._keys = _GrowingColumn()
        self._values = _GrowingColumn()
        self._header_keys = _GrowingColumn()
        self._header_values = _GrowingColumn()
        self._header_offsets = array("i", [0])
        self._offsets = array("q")
        self._timestamps = array("q")
        self._timestamp_types = array("i")
        self._taken = 0

    @property
    def row_count(self) -> int:
        return self._values.rows

    def add(
        self,
        data: Buffer,
        base_offset: int,
        base_timestamp: int,
        log_append_time: int | None,
        count: int,
        first_offset: int = 0,
        end_offset: int = _INT64_MAX,
    ) -> None:
        """Adds the records of one batch whose offsets are in [`first_offset`, `end_offset`)."""
        if count < 0:
            raise corrupt(RECORD_COUNT, 0, 0)
        if self._taken + len(data) > _INT32_MAX:
            raise OverflowError("more than 2 GiB of records do not fit into one Arrow batch")
        self._taken += len(data)
        if count == 0 and len(data):
            raise corrupt(BYTES_LEFT, 0, 0)
        for _, parsed in _parse_all(data, count):
            offset = _wrap(base_offset + parsed.offset_delta)
            if not first_offset <= offset < end_offset:
                continue
            timestamp = log_append_time
            if timestamp is None:
                timestamp = _wrap(base_timestamp + parsed.timestamp_delta)
            self._offsets.append(offset)
            self._timestamps.append(_microseconds(timestamp))
            self._timestamp_types.append(log_append_time is not None)
            self._keys.put(parsed.key)
            self._values.put(parsed.value)
            for key, value in parsed.headers:
                if not key.isascii():
                    self._taken += 2 * len(key)  # a replacement character has three bytes
                    key = key.decode("utf-8", "replace").encode()
                self._header_keys.put(key)
                self._header_values.put(value)
            self._header_offsets.append(self._header_keys.rows)

    def finish(self) -> RecordColumns:
        """The columns of all that was added. The reader is of no more use."""
        headers = HeaderColumn(self._header_offsets.tobytes(), self._header_keys.finish(), self._header_values.finish())
        return RecordColumns(
            self.row_count,
            self._keys.finish(),
            self._values.finish(),
            self._offsets.tobytes(),
            self._timestamps.tobytes(),
            self._timestamp_types.tobytes(),
            headers,
            self._header_keys.rows,
        )


def _microseconds(milliseconds: int) -> int:
    """Times beyond the year 294247 become the last (or first) microsecond that there is."""
    if milliseconds > _INT64_MAX // 1000:
        return _INT64_MAX
    if milliseconds < -(_INT64_MAX // 1000):
        return _INT64_MIN
    return milliseconds * 1000


def _varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return raw.to_bytes(1, "little")
    encoded = bytearray()
    while raw >= 0x80:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)


_NULL = _varint(-1)


def _span(value: Buffer | None) -> bytes:
    if value is None:
        return _NULL
    value = bytes(memoryview(value))
    return _varint(len(value)) + value


class RecordWriter:
    """Encodes records behind `reserved` bytes that the caller fills in later.

    With a limit, a record that would make the whole larger is not written, unless it is the first. The base
    timestamp is that of the first record, unless it is given.
    """

    def __init__(self, reserved: int = 0, limit: int = 0, base_timestamp: int | None = None) -> None:
        if reserved < 0 or limit < 0:
            raise ValueError("sizes cannot be negative")
        self._has_base = base_timestamp is not None
        self._buffer = bytearray(reserved)
        self._reserved = reserved
        self._limit = limit
        self.base_timestamp = self.max_timestamp = self.last_offset_delta = -1
        if base_timestamp is not None:
            if base_timestamp < -1:
                raise ValueError(f"a record's timestamp cannot be {base_timestamp}")
            self.base_timestamp = base_timestamp
        self.record_count = 0

    @property
    def size(self) -> int:
        return len(self._buffer)

    def raise_limit(self, limit: int) -> None:
        """More may be written than was said at first."""
        self._limit = max(self._limit, limit)

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Iterable[tuple[str, Buffer | None]] = (),
        offset_delta: int | None = None,
    ) -> bool:
        """Adds a record and says whether it fitted. `offset_delta` is one more than the last, unless it is given."""
        parts = [_varint(0)]
        if headers:
            pairs = [_span(name.encode()) + _span(content) for name, content in headers]
            parts = [_varint(len(pairs)), *pairs]
        return self._write(timestamp, offset_delta, _span(key), _span(value), b"".join(parts))

    def _write(self, timestamp: int, offset_delta: int | None, key: bytes, value: bytes, headers: bytes) -> bool:
        _check_int64(timestamp)
        if offset_delta is None:
            offset_delta = self.last_offset_delta + 1
        if timestamp < -1:
            raise ValueError(f"a record's timestamp cannot be {timestamp}")
        if offset_delta <= self.last_offset_delta or offset_delta > _INT32_MAX:
            raise ValueError(f"offset delta {offset_delta} does not follow {self.last_offset_delta}")
        timestamp_delta = timestamp - self.base_timestamp if self._has_base else 0
        body = b"".join((b"\x00", _varint(timestamp_delta), _varint(offset_delta), key, value, headers))
        if len(body) > _INT32_MAX:
            raise ValueError(f"a record of {len(body)} bytes is larger than any batch")
        length = _varint(len(body))
        if self._limit and self.record_count and len(self._buffer) + len(length) + len(body) > self._limit:
            return False
        if not self._has_base:
            self.base_timestamp = timestamp
            self._has_base = True
        self._buffer += length
        self._buffer += body
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.last_offset_delta = offset_delta
        self.record_count += 1
        return True

    def extend(
        self,
        timestamps: Sequence[int] | int,
        keys: Sequence[Buffer | None] | None,
        values: Sequence[Buffer | None],
        headers: Sequence[Sequence[Header]] | None = None,
        begin: int = 0,
    ) -> int:
        """Adds records from sequences of one length, from index `begin` on; returns the index of the first left out.

        `timestamps` may be one number for all; `keys` and `headers` may be None for none.
        """
        count = len(values)
        if not isinstance(timestamps, int) and len(timestamps) != count:
            raise ValueError("timestamps and values differ in number")
        if keys is not None and len(keys) != count:
            raise ValueError("keys and values differ in number")
        if headers is not None and len(headers) != count:
            raise ValueError("headers and values differ in number")
        if begin < 0:
            raise ValueError("sizes cannot be negative")
        for index in range(begin, count):
            timestamp = timestamps if isinstance(timestamps, int) else timestamps[index]
            key = None if keys is None else keys[index]
            if not self.append(timestamp, key, values[index], () if headers is None else headers[index]):
                return index
        return max(begin, count)

    def extend_columns(
        self,
        timestamps: Buffer,
        key: BinaryColumn | None,
        value: BinaryColumn,
        headers: HeaderColumn | None,
        begin: int,
        end: int,
    ) -> int:
        """As `extend`, from columns: rows `begin` to `end`. `timestamps` is a buffer of int64 milliseconds."""
        firsts = [begin, value.first]
        if key is not None:
            firsts.append(key.first)
        if headers is not None:
            firsts += headers.first, headers.keys.first, headers.values.first
        if min(firsts) < 0:
            raise ValueError("sizes cannot be negative")
        if end > len(timestamps) // 8:
            raise ValueError("timestamps and values differ in number")
        for row in range(begin, end):
            (timestamp,) = _INT64.unpack_from(timestamps, row * 8)
            row_key = None if key is None else cell(key, row)
            row_value = cell(value, row)
            row_headers = _varint(0) if headers is None else _header_cells(headers, row)
            if not self._write(timestamp, None, _span(row_key), _span(row_value), row_headers):
                return row
        return max(begin, end)

    def finish(self) -> bytearray:
        """The reserved bytes and the records. The writer is of no more use."""
        buffer, self._buffer = self._buffer, bytearray()
        return buffer

    def finish_batch(self, base_offset: int, leader_epoch: int, base_sequence: int) -> bytearray:
        """The records as a batch of no producer, not compressed. Its header goes into the reserved bytes."""
        if self.record_count == 0:
            raise ValueError("a batch needs at least one record")
        size = len(self._buffer)
        if self._reserved != HEADER_SIZE or not HEADER_SIZE < size <= _INT32_MAX:
            raise ValueError(f"no batch: {size} bytes, {self._reserved} of them for its header")
        batch = self.finish()
        _HEADER.pack_into(
            batch,
            0,
            base_offset,
            size - LOG_OVERHEAD,
            leader_epoch,
            _MAGIC,
            0,
            0,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            NO_PRODUCER_ID,
            NO_PRODUCER_EPOCH,
            base_sequence,
            self.record_count,
        )
        _CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
        return batch


def cell(column: BinaryColumn, row: int) -> bytes | None:
    """A row of a column given by a caller; every offset in it is checked before it is followed."""
    row += column.first
    rows = len(column.offsets) // 4 - 1
    if column.validity is not None:
        rows = min(rows, len(column.validity) * 8)
    if row >= rows:
        raise ValueError(f"a column has no row {row}")
    if column.validity is not None and not column.validity[row >> 3] >> (row & 7) & 1:
        return None
    start, end = _BOUNDS.unpack_from(column.offsets, row * 4)
    if not 0 <= start <= end <= len(column.data):
        raise ValueError(f"row {row} of a column is outside its bytes")
    return bytes(column.data[start:end])


def _header_cells(headers: HeaderColumn, row: int) -> bytes:
    row += headers.first
    if row >= len(headers.offsets) // 4 - 1:
        raise ValueError(f"a column has no row {row}")
    start, end = _BOUNDS.unpack_from(headers.offsets, row * 4)
    if not 0 <= start <= end:
        raise ValueError(f"row {row} of a column is outside its bytes")
    parts = [_varint(end - start)]
    for index in range(start, end):
        key = cell(headers.keys, index)
        if key is None:
            raise ValueError("a header's key cannot be null")
        parts.append(_span(key))
        parts.append(_span(cell(headers.values, index)))
    return b"".join(parts)


_COMPRESSION_OR_TRANSACTION: Final = COMPRESSION_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG


def _plain_batches(
    window: Buffer, next_offset: int, limit: int, unwanted: int
) -> Iterator[tuple[BatchHeader, list[_Parsed]]]:
    """The batches at the beginning of `window` that are whole, sound, and have no attribute that makes them special."""
    position = 0
    while len(window) - position >= HEADER_SIZE:
        header = BatchHeader._make(_HEADER.unpack_from(window, position))
        end = position + header.size
        if (
            header.magic != 2
            or header.attributes & unwanted
            or not HEADER_SIZE <= end - position <= len(window) - position
        ):
            return
        if header.record_count < 0 or not next_offset <= header.base_offset <= header.last_offset <= limit:
            return
        if crc32c(memoryview(window)[position + ATTRIBUTES_POSITION : end]) != header.crc:
            return
        records = window[position + HEADER_SIZE : end]
        try:
            found = [parsed for _, parsed in _parse_all(records, header.record_count)]
        except CorruptBatch:
            return
        if not found and len(records):
            return
        yield header, found
        position, next_offset = end, header.next_offset


class OffsetMap:
    """The latest offset of each key, for at most `capacity` keys."""

    def __init__(self, slots: int, capacity: int, seed: bytes) -> None:
        if not 0 < capacity <= slots < _INT32_MAX or len(seed) != 16:
            raise ValueError("a map needs room for a key, a slot for each, and 16 bytes of seed")
        self.capacity = capacity
        self.latest_offset = -1
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Notes that a key was last seen at `offset`; False if the map is full."""
        if len(self._offsets) >= self.capacity:
            return False
        self._offsets[key] = self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """The latest offset of a key, or -1."""
        return self._offsets.get(key, -1)

    def learn(self, data: Buffer, base_offset: int, count: int, first_offset: int) -> bool:
        """Notes every record of a batch that has a key and is not before `first_offset`; False if the map was full."""
        if count == 0 and len(data):
            raise corrupt(BYTES_LEFT, 0, 0)
        for _, parsed in _parse_all(data, count):
            offset = _wrap(base_offset + parsed.offset_delta)
            if parsed.key is not None and offset >= first_offset and not self.put(parsed.key, offset):
                return False
        return True

    def learn_run(self, window: Buffer, first_offset: int, next_offset: int, limit: int) -> tuple[int, int]:
        """As `learn`, for the batches at the beginning of `window`, up to the first that is not simple and sound.

        Simple is a whole batch of today's format that is not compressed, not of a transaction and not for brokers,
        and for all of whose keys there is room. Offsets rise from `next_offset` up to `limit`. Returns how many bytes
        were gone through, and the offset after them.
        """
        taken = 0
        for header, records in _plain_batches(window, next_offset, limit, _COMPRESSION_OR_TRANSACTION):
            if header.record_count > self.capacity - len(self._offsets):
                break
            for parsed in records:
                offset = header.base_offset + parsed.offset_delta
                if parsed.key is not None and offset >= first_offset:
                    self.put(parsed.key, offset)
            if header.last_offset >= first_offset:
                self.latest_offset = header.last_offset
            taken, next_offset = taken + header.size, header.next_offset
        return taken, next_offset

    def retain_run(
        self, window: Buffer, next_offset: int, limit: int, needed: dict[int, int], out: bytearray
    ) -> RetainedRun:
        """As `retain`, for the batches at the beginning of `window`, up to the first that is not simple and sound.

        Simple is a batch that stays as it is, and is added to `out`, or goes altogether: none that would be written
        anew, and none that is in `needed`, which has the last offset of each producer and, as -1's, that of all.
        """
        taken = read = written = keyless = 0
        unwanted = _COMPRESSION_OR_TRANSACTION | DELETE_HORIZON_FLAG
        for header, records in _plain_batches(window, next_offset, limit, unwanted):
            known = [(header.base_offset + parsed.offset_delta <= self.latest_offset, parsed) for parsed in records]
            kept = [parsed for is_known, parsed in known if not is_known or self._is_latest(header.base_offset, parsed)]
            if any(parsed.value is None for parsed in kept) or len(kept) not in (0, len(records)):
                break
            if kept:
                out += window[taken : taken + header.size]
                written += len(kept)
            elif header.last_offset == needed.get(-1) or (
                header.producer_id >= 0 and needed.get(header.producer_id) == header.last_offset
            ):
                break
            read += header.record_count
            keyless += sum(is_known and parsed.key is None for is_known, parsed in known)
            taken, next_offset = taken + header.size, header.next_offset
        return RetainedRun(taken, next_offset, read, written, keyless)

    def _is_latest(self, base_offset: int, parsed: _Parsed) -> bool:
        return parsed.key is not None and base_offset + parsed.offset_delta >= self.get(parsed.key)

    def retain(
        self,
        data: Buffer,
        base_offset: int,
        base_timestamp: int,
        log_append_time: int | None,
        count: int,
        keep_tombstones: bool,
        has_horizon: bool,
        horizon_ms: int,
        reserved: int,
    ) -> Retained:
        """The records of a batch that are still the latest of their key, or beyond what the map knows.

        They are counted from a new base timestamp: the batch's own if that is a delete horizon, `horizon_ms` if there
        are tombstones among them and it has none, and else the first one's. `reserved` bytes before them are left free.
        """
        if count < 0:
            raise corrupt(RECORD_COUNT, 0, 0)
        if reserved < 0:
            raise ValueError("sizes cannot be negative")
        if count == 0 and len(data):
            raise corrupt(BYTES_LEFT, 0, 0)
        kept: list[tuple[int, _Parsed]] = []
        keyless = 0
        for _, parsed in _parse_all(data, count):
            offset = _wrap(base_offset + parsed.offset_delta)
            if offset <= self.latest_offset:
                if parsed.key is None:
                    keyless += 1
                    continue
                if offset < self.get(parsed.key) or (parsed.value is None and not keep_tombstones):
                    continue
            stamp = log_append_time
            kept.append((_wrap(base_timestamp + parsed.timestamp_delta) if stamp is None else stamp, parsed))
        has_tombstones = any(parsed.value is None for _, parsed in kept)
        latest = max([-1, *(timestamp for timestamp, _ in kept)])
        if len(kept) == count and (has_horizon or not has_tombstones):
            return Retained(count, keyless, has_tombstones, base_timestamp, latest, None)
        base = base_timestamp
        if kept and not has_horizon:
            base = horizon_ms if has_tombstones else kept[0][0]
        whole, records = bytes(data), bytearray(reserved)
        for timestamp, parsed in kept:
            body = b"\x00" + _varint(_wrap(timestamp - base)) + whole[parsed.rest : parsed.end]
            records += _varint(len(body)) + body
        return Retained(len(kept), keyless, has_tombstones, base, latest, records)
