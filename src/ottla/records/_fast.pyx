# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The kernel, compiled: everything that is done once per record. `_slow` is its twin and its specification.

Nothing here trusts a length. `parse` is the only reader of record bytes: it checks every variable-length
integer and every span against the end of the record, and the record against the end of the data, before
anything is touched; it reports a fault and its position, and the caller raises. Headers are walked twice
(once by `parse`, once to make objects), and checked both times: the bytes may belong to a buffer that someone
else can write to.
"""

cimport cython
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from functools import partial

from ottla.base.checksum import crc32c as _crc32c

from ottla.records.columns import BinaryColumn, HeaderColumn, RecordColumns, Retained, RetainedRun, Scan
from ottla.records.faults import corrupt as _corrupt
from ottla.records.header import BatchHeader, TimestampType

_as_header = partial(tuple.__new__, BatchHeader)
_CREATE_TIME = TimestampType.CREATE_TIME
_LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME

cdef extern from *:
    """
    #include <structmember.h>
    /* Cython reaches attributes through a getter. A member descriptor is what the interpreter specialises
       attribute access for, which makes reading key, value and headers several times faster. */
    static PyMemberDef ottla_record_members[4];
    static int ottla_add_members(PyTypeObject *type, Py_ssize_t offset) {
        const char *names[3] = {"key", "value", "headers"};
        for (int i = 0; i < 3; i++) {
            PyMemberDef *member = &ottla_record_members[i];
            member->name = names[i];
            member->type = T_OBJECT_EX;
            member->offset = offset + i * (Py_ssize_t)sizeof(PyObject *);
            member->flags = READONLY;
            PyObject *descriptor = PyDescr_NewMember(type, member);
            if (descriptor == NULL) return -1;
            int failed = PyDict_SetItemString(type->tp_dict, names[i], descriptor);
            Py_DECREF(descriptor);
            if (failed) return -1;
        }
        PyType_Modified(type);
        return 0;
    }
    """
    int ottla_add_members(type type, Py_ssize_t offset) except -1


@cython.final
@cython.freelist(256)
@cython.no_gc
cdef class Record:
    """A record with its absolute offset and timestamp (milliseconds).

    Not known to the garbage collector: bytes and headers cannot make a cycle, and a consumer may hold millions.
    """

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef bytes key
    cdef bytes value
    cdef tuple headers

    __match_args__ = ("offset", "timestamp", "key", "value", "headers")

    def __init__(self, int64_t offset, int64_t timestamp, bytes key, bytes value, tuple headers not None=()):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __eq__(self, other):
        if type(other) is not Record:
            return NotImplemented
        return fields(self) == fields(<Record>other)

    def __hash__(self):
        return hash(fields(self))

    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )

    def __reduce__(self):
        return (Record, fields(self))


cdef tuple fields(Record record):
    return (record.offset, record.timestamp, record.key, record.value, record.headers)


cdef int add_members() except -1:
    """The three objects follow the two numbers in memory, in the order in which the class names them."""
    cdef Record probe = Record(0, 0, b"key", b"value", (1,))
    cdef PyObject **objects = <PyObject **>(<char *>&probe.timestamp + sizeof(int64_t))
    assert objects[0] == <PyObject *>probe.key
    assert objects[1] == <PyObject *>probe.value
    assert objects[2] == <PyObject *>probe.headers
    return ottla_add_members(Record, <char *>objects - <char *><PyObject *>probe)


add_members()

# The faults of ottla.records.faults, by number.
cdef enum:
    FIELD_CUT = 1
    VARINT_TOO_LONG = 2
    RECORD_LENGTH = 3
    KEY_LENGTH = 4
    VALUE_LENGTH = 5
    HEADER_COUNT = 6
    HEADER_KEY_LENGTH = 7
    HEADER_VALUE_LENGTH = 8
    RECORD_TOO_LONG = 9
    BYTES_LEFT = 10
    RECORD_COUNT = 11

cdef enum:
    SMALLEST_RECORD = 7

# ---- reading -------------------------------------------------------------------------------------------------------

cdef struct Cursor:
    const uint8_t *data
    Py_ssize_t size
    Py_ssize_t position     # of the next record; after a fault, of the field that is wrong

cdef struct Parsed:
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t header_count
    Py_ssize_t rest         # what follows the timestamp
    Py_ssize_t key
    Py_ssize_t key_size     # -1 for null, here and below
    Py_ssize_t value
    Py_ssize_t value_size
    Py_ssize_t headers
    Py_ssize_t end

# These return a fault or 0. They move `position` past what they read, and on a fault leave it where they began.

cdef int read_long_varint(
    const uint8_t *data, Py_ssize_t *position, Py_ssize_t end, int bits, uint64_t *result
) noexcept nogil:
    cdef Py_ssize_t at = position[0]
    cdef uint64_t raw = 0
    cdef uint8_t byte
    cdef int shift = 0
    while True:
        if at >= end:
            return FIELD_CUT
        byte = data[at]
        at += 1
        raw |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            return VARINT_TOO_LONG
    position[0] = at
    result[0] = raw
    return 0


cdef inline int read_varint(const uint8_t *data, Py_ssize_t *position, Py_ssize_t end, int32_t *result) noexcept nogil:
    cdef uint64_t raw
    cdef uint32_t low
    cdef int failed
    if position[0] < end and data[position[0]] < 0x80:  # one or two bytes are the most usual
        low = data[position[0]]
        position[0] += 1
    elif position[0] + 1 < end and data[position[0] + 1] < 0x80:
        low = (data[position[0]] & 0x7F) | <uint32_t>data[position[0] + 1] << 7
        position[0] += 2
    else:
        failed = read_long_varint(data, position, end, 32, &raw)
        if failed:
            return failed
        low = <uint32_t>raw
    result[0] = <int32_t>((low >> 1) ^ (0 - (low & 1)))
    return 0


cdef inline int read_varlong(const uint8_t *data, Py_ssize_t *position, Py_ssize_t end, int64_t *result) noexcept nogil:
    cdef uint64_t raw
    cdef int failed
    if position[0] < end and data[position[0]] < 0x80:
        raw = data[position[0]]
        position[0] += 1
    elif position[0] + 1 < end and data[position[0] + 1] < 0x80:
        raw = (data[position[0]] & 0x7F) | <uint64_t>data[position[0] + 1] << 7
        position[0] += 2
    else:
        failed = read_long_varint(data, position, end, 64, &raw)
        if failed:
            return failed
    result[0] = <int64_t>((raw >> 1) ^ (0 - (raw & 1)))
    return 0


cdef inline int read_span(
    const uint8_t *data, Py_ssize_t *position, Py_ssize_t end, Py_ssize_t *start, Py_ssize_t *size, int fault
) noexcept nogil:
    """A length and as many bytes; any negative length is null, as in Java."""
    cdef int32_t length
    cdef Py_ssize_t at = position[0]
    cdef int failed = read_varint(data, position, end, &length)
    if failed:
        return failed
    start[0] = position[0]
    if length < 0:
        size[0] = -1
        return 0
    if length > end - position[0]:
        position[0] = at
        return fault
    size[0] = length
    position[0] += length
    return 0


cdef inline int read_header_spans(
    const uint8_t *data, Py_ssize_t *position, Py_ssize_t end,
    Py_ssize_t *key, Py_ssize_t *key_size, Py_ssize_t *value, Py_ssize_t *value_size,
) noexcept nogil:
    cdef Py_ssize_t at = position[0]
    cdef int failed = read_span(data, position, end, key, key_size, HEADER_KEY_LENGTH)
    if failed:
        return failed
    if key_size[0] < 0:
        position[0] = at
        return HEADER_KEY_LENGTH
    return read_span(data, position, end, value, value_size, HEADER_VALUE_LENGTH)


cdef inline int parse_at(const uint8_t *data, Py_ssize_t size, Py_ssize_t *position, Parsed *parsed) noexcept nogil:
    cdef int32_t length, index
    cdef int failed
    cdef Py_ssize_t at = position[0], end, key, key_size, value, value_size
    failed = read_varint(data, position, size, &length)
    if failed:
        return failed
    if length < 0 or length > size - position[0]:
        position[0] = at
        return RECORD_LENGTH
    if length == 0:
        return FIELD_CUT
    end = position[0] + length
    position[0] += 1  # attributes: none are defined
    failed = read_varlong(data, position, end, &parsed.timestamp_delta)
    if failed:
        return failed
    parsed.rest = position[0]
    failed = read_varint(data, position, end, &parsed.offset_delta)
    if failed:
        return failed
    failed = read_span(data, position, end, &parsed.key, &parsed.key_size, KEY_LENGTH)
    if failed:
        return failed
    failed = read_span(data, position, end, &parsed.value, &parsed.value_size, VALUE_LENGTH)
    if failed:
        return failed
    at = position[0]
    failed = read_varint(data, position, end, &parsed.header_count)
    if failed:
        return failed
    if parsed.header_count < 0 or parsed.header_count > end - position[0]:
        position[0] = at
        return HEADER_COUNT
    parsed.headers = position[0]
    parsed.end = end
    for index in range(parsed.header_count):
        failed = read_header_spans(data, position, end, &key, &key_size, &value, &value_size)
        if failed:
            return failed
    return RECORD_TOO_LONG if position[0] != end else 0


cdef inline int parse(Cursor *cursor, Parsed *parsed) noexcept nogil:
    """Reads the record at the cursor and moves past it. After a fault the cursor only tells where it is."""
    cdef Py_ssize_t position = cursor.position
    cdef int failed = parse_at(cursor.data, cursor.size, &position, parsed)
    cursor.position = position
    return failed


cdef inline void start(Cursor *cursor, Py_buffer *view) noexcept nogil:
    cursor.data = <const uint8_t *>view.buf
    cursor.size = view.len
    cursor.position = 0


cdef inline bytes span(const uint8_t *data, Py_ssize_t start, Py_ssize_t size):
    if size < 0:
        return None
    return PyBytes_FromStringAndSize(<const char *>data + start, size)


cdef tuple read_headers(const uint8_t *data, Parsed *parsed, int64_t index):
    cdef Py_ssize_t position = parsed.headers, key, key_size, value, value_size
    cdef int failed
    cdef int32_t _
    cdef list headers = []
    for _ in range(parsed.header_count):
        failed = read_header_spans(data, &position, parsed.end, &key, &key_size, &value, &value_size)
        if failed:
            raise _corrupt(failed, index, position)
        text = PyUnicode_DecodeUTF8(<const char *>data + key, key_size, "replace")
        headers.append((text, span(data, value, value_size)))
    return tuple(headers)


cdef class RecordReader:
    """Iterates over the records of one batch. The data stays exported for as long as the iterator lives."""

    cdef Py_buffer view
    cdef Cursor cursor
    cdef bint open
    cdef int64_t base_offset
    cdef int64_t base_timestamp
    cdef int64_t log_append_time
    cdef bint stamped
    cdef int64_t count
    cdef int64_t index

    def __cinit__(self, data, int64_t base_offset, int64_t base_timestamp, log_append_time, int64_t count):
        if count < 0:
            raise _corrupt(RECORD_COUNT, 0, 0)
        self.stamped = log_append_time is not None
        if self.stamped:
            self.log_append_time = log_append_time
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.open = True
        start(&self.cursor, &self.view)
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self.count = count
        self.index = 0

    def __dealloc__(self):
        if self.open:
            PyBuffer_Release(&self.view)

    def __iter__(self):
        return self

    def __next__(self):
        cdef Parsed parsed
        cdef Cursor *cursor = &self.cursor
        cdef int failed
        cdef int64_t index = self.index
        cdef Record record
        cdef tuple headers
        if index >= self.count:
            raise StopIteration
        failed = parse(cursor, &parsed)
        if failed:
            self.index = self.count
            raise _corrupt(failed, index, cursor.position)
        if index == self.count - 1 and cursor.position != cursor.size:
            self.index = self.count
            raise _corrupt(BYTES_LEFT, index, cursor.position)
        self.index = index + 1
        headers = ()
        if parsed.header_count:
            headers = read_headers(cursor.data, &parsed, index)
        record = Record.__new__(Record)
        record.offset = <int64_t>(<uint64_t>self.base_offset + <uint64_t><int64_t>parsed.offset_delta)
        if self.stamped:
            record.timestamp = self.log_append_time
        else:
            record.timestamp = <int64_t>(<uint64_t>self.base_timestamp + <uint64_t>parsed.timestamp_delta)
        record.key = span(cursor.data, parsed.key, parsed.key_size)
        record.value = span(cursor.data, parsed.value, parsed.value_size)
        record.headers = headers
        return record


def scan(data, int64_t base_timestamp, int64_t count):
    """What a broker has to know about the records of a batch, all of which are checked on the way."""
    cdef Py_buffer view
    cdef Cursor cursor
    cdef Parsed parsed
    cdef int failed = 0
    cdef int64_t index, timestamp, latest = -1, earliest = 0, keyless = -1
    cdef bint any_timestamp = False, in_sequence = True
    if count < 0:
        raise _corrupt(RECORD_COUNT, 0, 0)
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        start(&cursor, &view)
        with nogil:
            for index in range(count):
                failed = parse(&cursor, &parsed)
                if failed:
                    break
                timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>parsed.timestamp_delta)
                if timestamp > latest:
                    latest = timestamp
                if timestamp != -1 and (not any_timestamp or timestamp < earliest):
                    earliest = timestamp
                    any_timestamp = True
                if parsed.key_size < 0 and keyless < 0:
                    keyless = index
                if parsed.offset_delta != index:
                    in_sequence = False
        if failed:
            raise _corrupt(failed, index, cursor.position)
        if cursor.position != cursor.size:
            raise _corrupt(BYTES_LEFT, max(count - 1, 0), cursor.position)
    finally:
        PyBuffer_Release(&view)
    return Scan(earliest if any_timestamp else None, latest, keyless, in_sequence)

# ---- whole batches -------------------------------------------------------------------------------------------------

cdef enum:
    # Where the fields of a batch's header are: see ottla.records.batch.
    LENGTH_AT = 8
    LEADER_EPOCH_AT = 12
    MAGIC_AT = 16
    CRC_AT = 17
    ATTRIBUTES_AT = 21
    LAST_OFFSET_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    MAX_TIMESTAMP_AT = 35
    PRODUCER_ID_AT = 43
    PRODUCER_EPOCH_AT = 51
    BASE_SEQUENCE_AT = 53
    RECORD_COUNT_AT = 57
    RECORDS_AT = 61
    COMPRESSED = 0x07
    STAMPED = 0x08
    TRANSACTIONAL = 0x10
    CONTROL = 0x20


cdef inline uint64_t big_endian(const uint8_t *data, int size) noexcept nogil:
    cdef uint64_t value = 0
    cdef int at
    for at in range(size):
        value = value << 8 | data[at]
    return value


cdef inline void write_big_endian(uint8_t *data, uint64_t value, int size) noexcept nogil:
    cdef int at
    for at in range(size):
        data[size - 1 - at] = <uint8_t>(value >> 8 * at)


@cython.final
cdef class PlainBatches:
    """Knows a batch at a glance that a leader takes as it is: the rules of a topic for such batches. See `_slow`."""

    cdef readonly int64_t max_size, before_ms, after_ms
    cdef readonly bint needs_keys

    def __init__(self, int64_t max_size, int64_t before_ms, int64_t after_ms, bint needs_keys):
        self.max_size = max_size
        self.before_ms = before_ms
        self.after_ms = after_ms
        self.needs_keys = needs_keys

    def header_of(self, data, int64_t now_ms):
        cdef Py_buffer view
        cdef const uint8_t *batch
        cdef Cursor cursor
        cdef Parsed parsed
        cdef int64_t index, timestamp, latest = -1
        cdef int64_t base_timestamp, max_timestamp, producer_id
        cdef int64_t earliest_allowed = INT64_MIN, latest_allowed = INT64_MAX
        cdef int32_t count, base_sequence
        cdef int attributes
        if data is None:
            return None
        if now_ms >= 0 or self.before_ms <= now_ms - INT64_MIN:
            earliest_allowed = now_ms - self.before_ms
        if now_ms <= 0 or self.after_ms <= INT64_MAX - now_ms:
            latest_allowed = now_ms + self.after_ms
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            batch = <const uint8_t *>view.buf
            if view.len < RECORDS_AT or view.len > self.max_size or view.readonly or batch[MAGIC_AT] != 2:
                return None
            attributes = <int>big_endian(batch + ATTRIBUTES_AT, 2)
            count = <int32_t>big_endian(batch + RECORD_COUNT_AT, 4)
            producer_id = <int64_t>big_endian(batch + PRODUCER_ID_AT, 8)
            base_sequence = <int32_t>big_endian(batch + BASE_SEQUENCE_AT, 4)
            if (
                <int64_t>big_endian(batch + LENGTH_AT, 4) != view.len - LENGTH_AT - 4
                or big_endian(batch, 8) != 0
                or attributes & ~TRANSACTIONAL
                or count <= 0
                or <int32_t>big_endian(batch + LAST_OFFSET_DELTA_AT, 4) != count - 1
                or (producer_id != -1 and base_sequence < 0)
            ):
                return None
            base_timestamp = <int64_t>big_endian(batch + BASE_TIMESTAMP_AT, 8)
            max_timestamp = <int64_t>big_endian(batch + MAX_TIMESTAMP_AT, 8)
            start(&cursor, &view)
            cursor.position = RECORDS_AT
            # The interpreter's lock is kept: this takes a microsecond, and getting the lock back may take milliseconds.
            for index in range(count):
                if parse(&cursor, &parsed) or (self.needs_keys and parsed.key_size < 0):
                    return None
                timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>parsed.timestamp_delta)
                if timestamp != -1 and (timestamp < earliest_allowed or timestamp > latest_allowed):
                    return None
                if timestamp > latest:
                    latest = timestamp
            if cursor.position != cursor.size or latest != max_timestamp:
                return None
            return _as_header((
                0, view.len - LENGTH_AT - 4, <int32_t>big_endian(batch + LEADER_EPOCH_AT, 4), 2,
                <int64_t>big_endian(batch + CRC_AT, 4), attributes, count - 1, base_timestamp, max_timestamp,
                producer_id, <int16_t>big_endian(batch + PRODUCER_EPOCH_AT, 2), base_sequence, count,
            ))
        finally:
            PyBuffer_Release(&view)


def is_sound(data, int64_t crc=-1):
    """Whether bytes, which are one whole batch of magic 2, match the checksum in them, and `crc` if it is given."""
    cdef Py_buffer view
    cdef int64_t found
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if view.len < RECORDS_AT:
            return False
        checked = PyMemoryView_FromMemory(<char *>view.buf + ATTRIBUTES_AT, view.len - ATTRIBUTES_AT, PyBUF_READ)
        found = _crc32c(checked)
        return found == <int64_t>big_endian(<const uint8_t *>view.buf + CRC_AT, 4) and (crc < 0 or found == crc)
    finally:
        PyBuffer_Release(&view)

# ---- what a consumer is given --------------------------------------------------------------------------------------

cdef extern from *:
    """
    static PyMemberDef ottla_consumer_record_members[6];
    static int ottla_add_consumer_record_members(PyTypeObject *type, Py_ssize_t offset) {
        const char *names[5] = {"topic", "partition", "key", "value", "headers"};
        for (int i = 0; i < 5; i++) {
            PyMemberDef *member = &ottla_consumer_record_members[i];
            member->name = names[i];
            member->type = T_OBJECT_EX;
            member->offset = offset + i * (Py_ssize_t)sizeof(PyObject *);
            member->flags = READONLY;
            PyObject *descriptor = PyDescr_NewMember(type, member);
            if (descriptor == NULL) return -1;
            int failed = PyDict_SetItemString(type->tp_dict, names[i], descriptor);
            Py_DECREF(descriptor);
            if (failed) return -1;
        }
        PyType_Modified(type);
        return 0;
    }
    """
    int ottla_add_consumer_record_members(type type, Py_ssize_t offset) except -1


@cython.final
@cython.freelist(1024)
@cython.no_gc
cdef class ConsumerRecord:
    """A record that was read from a partition. `key` and `value` are bytes unless a deserializer was given.

    Topic and partition are objects that all records of a fetch share. Not known to the garbage collector, as `Record`.
    """

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef object topic
    cdef object partition
    cdef object key
    cdef object value
    cdef tuple headers
    cdef readonly int32_t serialized_key_size
    cdef readonly int32_t serialized_value_size
    cdef int32_t epoch
    cdef bint stamped

    __match_args__ = ("topic", "partition", "offset", "key", "value")

    def __init__(
        self, topic, partition, int64_t offset, int64_t timestamp=-1, key=None, value=None, tuple headers not None=(),
        timestamp_type=0, leader_epoch=None, serialized_key_size=None, serialized_value_size=None,
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.stamped = timestamp_type == 1
        self.epoch = -1 if leader_epoch is None else leader_epoch
        self.serialized_key_size = _serialized_size(key, serialized_key_size)
        self.serialized_value_size = _serialized_size(value, serialized_value_size)

    @property
    def timestamp_type(self):
        return _LOG_APPEND_TIME if self.stamped else _CREATE_TIME

    @property
    def leader_epoch(self):
        return self.epoch if self.epoch >= 0 else None

    def __eq__(self, other):
        if type(other) is not ConsumerRecord:
            return NotImplemented
        return consumer_fields(self) == consumer_fields(<ConsumerRecord>other)

    def __hash__(self):
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self):
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition!r}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self):
        return (ConsumerRecord, consumer_fields(self))


cdef int32_t _serialized_size(data, size) except? -2:
    if size is not None:
        return size
    return len(data) if isinstance(data, bytes) else -1


cdef tuple consumer_fields(ConsumerRecord record):
    return (
        record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, record.headers,
        record.timestamp_type, record.leader_epoch, record.serialized_key_size, record.serialized_value_size,
    )


cdef int add_consumer_record_members() except -1:
    cdef ConsumerRecord probe = ConsumerRecord("topic", 7, 0, 0, b"key", b"value", (1,))
    cdef PyObject **objects = <PyObject **>(<char *>&probe.timestamp + sizeof(int64_t))
    assert objects[0] == <PyObject *>probe.topic
    assert objects[1] == <PyObject *>probe.partition
    assert objects[2] == <PyObject *>probe.key
    assert objects[3] == <PyObject *>probe.value
    assert objects[4] == <PyObject *>probe.headers
    return ottla_add_consumer_record_members(ConsumerRecord, <char *>objects - <char *><PyObject *>probe)


add_consumer_record_members()


@cython.no_gc
cdef class FetchedRecords:
    """The records of one partition's fetched batches, taken in portions. `_slow` has the contract.

    Not known to the garbage collector, which would take the data away before what is exported of it is released.

    Batches that are neither control batches nor of an older format are opened here, compressed ones with `decompress`;
    `open_batch` is asked about the others, and about all of them when some transaction may have been aborted.
    """

    cdef Py_buffer view
    cdef Py_buffer inner
    cdef bint has_view
    cdef bint has_inner
    cdef bint checks_crcs
    cdef bint asks_always
    cdef readonly object data
    cdef object topic
    cdef object partition
    cdef object open_batch
    cdef object decompress
    cdef object key_deserializer
    cdef object value_deserializer
    cdef readonly int64_t next_offset
    cdef readonly int64_t last_epoch
    cdef readonly int64_t end_offset
    cdef readonly int64_t end_epoch
    cdef readonly int64_t next_batch_bytes
    cdef Py_ssize_t at
    cdef Py_ssize_t open_at
    cdef Cursor cursor
    cdef int64_t base_offset
    cdef int64_t base_timestamp
    cdef int64_t log_append_time
    cdef int64_t batch_end
    cdef int64_t count
    cdef int64_t index
    cdef int32_t epoch
    cdef bint stamped

    def __cinit__(
        self, topic, partition, data, int64_t first_offset, open_batch, decompress, *, bint checks_crcs=True,
        bint asks_always=False, key_deserializer=None, value_deserializer=None,
    ):
        self.topic = topic
        self.partition = partition
        self.data = data
        self.open_batch = open_batch
        self.decompress = decompress
        self.checks_crcs = checks_crcs
        self.asks_always = asks_always
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer
        self.next_offset = first_offset
        self.last_epoch = self.end_epoch = -1
        self.end_offset = first_offset
        PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        self.has_view = True
        self.find_end()

    def __dealloc__(self):
        if self.has_inner:
            PyBuffer_Release(&self.inner)
        if self.has_view:
            PyBuffer_Release(&self.view)

    cdef int find_end(self) except -1:
        """Goes from batch to batch without looking into them."""
        cdef const uint8_t *data = <const uint8_t *>self.view.buf
        cdef Py_ssize_t at = 0, last = -1, left = self.view.len
        cdef int64_t length
        cdef uint64_t end
        while left > MAGIC_AT:
            length = <int32_t>big_endian(data + at + LENGTH_AT, 4)
            if length < MAGIC_AT - LENGTH_AT - 4:
                break
            length += LENGTH_AT + 4
            if length > left:
                self.next_batch_bytes = length
                break
            self.next_batch_bytes = max(self.next_batch_bytes, length)
            last = at
            at += length
            left = self.view.len - at
        if last < 0:
            return 0
        end = big_endian(data + last, 8) + 1
        if data[last + MAGIC_AT] == 2 and at - last >= RECORDS_AT:
            end += <uint64_t><int64_t><int32_t>big_endian(data + last + LAST_OFFSET_DELTA_AT, 4)
            self.end_epoch = <int32_t>big_endian(data + last + LEADER_EPOCH_AT, 4)
        self.end_offset = <int64_t>end
        return 0

    @property
    def bytes_left(self):
        return self.view.len - (self.open_at if self.index < self.count else self.at)

    def take(self, list out not None, Py_ssize_t most):
        cdef Parsed parsed
        cdef Cursor *cursor = &self.cursor
        cdef Py_ssize_t position, fault_at
        cdef int failed
        cdef int64_t offset
        while most > 0:
            if self.index >= self.count:
                if not self.next_batch():
                    break
                continue
            position = cursor.position
            failed = parse(cursor, &parsed)
            if not failed and self.index == self.count - 1 and cursor.position != cursor.size:
                failed = BYTES_LEFT
            if failed:
                fault_at = cursor.position
                cursor.position = position
                raise _corrupt(failed, self.index, fault_at)
            offset = <int64_t>(<uint64_t>self.base_offset + <uint64_t><int64_t>parsed.offset_delta)
            if offset >= self.next_offset:
                try:
                    out.append(self.make(&parsed, offset, self.key_deserializer, self.value_deserializer))
                except BaseException:
                    cursor.position = position
                    raise
                self.next_offset = offset + 1
                most -= 1
            self.index += 1
            if self.index == self.count:
                self.end_batch()

    def next_raw(self):
        """The next record as it is in the bytes, without taking it: the one that `take` has just failed at."""
        cdef Parsed parsed
        cdef Py_ssize_t position = self.cursor.position
        cdef int failed = parse(&self.cursor, &parsed)
        self.cursor.position = position
        assert not failed
        return self.make(
            &parsed, <int64_t>(<uint64_t>self.base_offset + <uint64_t><int64_t>parsed.offset_delta), None, None
        )

    cdef ConsumerRecord make(self, Parsed *parsed, int64_t offset, key_deserializer, value_deserializer):
        cdef const uint8_t *data = self.cursor.data
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        record.offset = offset
        record.stamped = self.stamped
        if self.stamped:
            record.timestamp = self.log_append_time
        else:
            record.timestamp = <int64_t>(<uint64_t>self.base_timestamp + <uint64_t>parsed.timestamp_delta)
        record.topic = self.topic
        record.partition = self.partition
        record.epoch = self.epoch
        record.key = span(data, parsed.key, parsed.key_size)
        record.value = span(data, parsed.value, parsed.value_size)
        record.serialized_key_size = <int32_t>parsed.key_size
        record.serialized_value_size = <int32_t>parsed.value_size
        record.headers = read_headers(data, parsed, self.index) if parsed.header_count else ()
        if key_deserializer is not None and parsed.key_size >= 0:
            record.key = key_deserializer(self.topic, record.key, record.headers)
        if value_deserializer is not None and parsed.value_size >= 0:
            record.value = value_deserializer(self.topic, record.value, record.headers)
        return record

    cdef int end_batch(self) except -1:
        if self.batch_end > self.next_offset:
            self.next_offset = self.batch_end
        self.last_epoch = self.epoch
        if self.has_inner:
            PyBuffer_Release(&self.inner)
            self.has_inner = False
        return 0

    cdef bint next_batch(self) except -1:
        """Opens the batch at `at`, or passes over it; returns whether there was one."""
        cdef const uint8_t *batch = <const uint8_t *>self.view.buf + self.at
        cdef Py_ssize_t left = self.view.len - self.at, size
        cdef int64_t length, delta
        cdef int attributes
        if left <= MAGIC_AT:
            return False
        length = <int32_t>big_endian(batch + LENGTH_AT, 4)
        if length > left - LENGTH_AT - 4:
            return False
        size = length + LENGTH_AT + 4
        if self.asks_always or batch[MAGIC_AT] != 2 or size < RECORDS_AT:
            return self.open_other()
        attributes = <int>big_endian(batch + ATTRIBUTES_AT, 2)
        self.base_offset = <int64_t>big_endian(batch, 8)
        self.epoch = <int32_t>big_endian(batch + LEADER_EPOCH_AT, 4)
        delta = <int32_t>big_endian(batch + LAST_OFFSET_DELTA_AT, 4)
        self.index = self.count = 0
        if delta < 0 or self.base_offset < 0 or self.base_offset > INT64_MAX - 1 - delta:
            return self.open_other()
        self.batch_end = self.base_offset + delta + 1
        if attributes & COMPRESSED and attributes & CONTROL:
            return self.open_other()
        if self.checks_crcs:
            checked = PyMemoryView_FromMemory(<char *>batch + ATTRIBUTES_AT, size - ATTRIBUTES_AT, PyBUF_READ)
            if _crc32c(checked) != big_endian(batch + CRC_AT, 4):
                return self.open_other()
        if attributes & COMPRESSED:
            return self.open_compressed(batch, size, attributes)
        if attributes & CONTROL:
            self.at += size
            return self.end_batch() == 0
        self.count = <int32_t>big_endian(batch + RECORD_COUNT_AT, 4)
        if self.count < 0:
            self.count = 0
            raise _corrupt(RECORD_COUNT, 0, 0)
        self.base_timestamp = <int64_t>big_endian(batch + BASE_TIMESTAMP_AT, 8)
        self.stamped = attributes & STAMPED
        self.log_append_time = <int64_t>big_endian(batch + MAX_TIMESTAMP_AT, 8)
        self.cursor.data = batch + RECORDS_AT
        self.cursor.size = size - RECORDS_AT
        self.cursor.position = 0
        self.open_at = self.at
        self.at += size
        if self.count == 0 or self.batch_end <= self.next_offset:
            self.count = 0
            self.end_batch()
        return True

    cdef bint open_compressed(self, const uint8_t *batch, Py_ssize_t size, int attributes) except -1:
        """One whose checksum is right. Its offsets are known, as those of the batches that `next_batch` opens itself."""
        records = self.decompress(attributes & COMPRESSED, memoryview(self.data)[self.at + RECORDS_AT : self.at + size])
        self.base_timestamp = <int64_t>big_endian(batch + BASE_TIMESTAMP_AT, 8)
        self.stamped = attributes & STAMPED
        self.log_append_time = <int64_t>big_endian(batch + MAX_TIMESTAMP_AT, 8)
        return self.open_inner(records, size, <int32_t>big_endian(batch + RECORD_COUNT_AT, 4))

    cdef bint open_other(self) except -1:
        cdef int64_t count
        size, self.batch_end, self.epoch, opened = self.open_batch(self.data, self.at)
        self.index = self.count = 0
        if opened is None:
            self.at += size
            return self.end_batch() == 0
        records, self.base_offset, self.base_timestamp, log_append_time, count = opened
        self.stamped = log_append_time is not None
        if self.stamped:
            self.log_append_time = log_append_time
        return self.open_inner(records, size, count)

    cdef bint open_inner(self, records, Py_ssize_t size, int64_t count) except -1:
        """The records of a batch are not where the batch is, but in a buffer of their own."""
        if count < 0:
            raise _corrupt(RECORD_COUNT, 0, 0)
        self.open_at = self.at
        self.at += size
        if count == 0 or self.batch_end <= self.next_offset:
            return self.end_batch() == 0
        PyObject_GetBuffer(records, &self.inner, PyBUF_SIMPLE)
        self.has_inner = True
        start(&self.cursor, &self.inner)
        self.count = count
        return True

# ---- columns -------------------------------------------------------------------------------------------------------

@cython.final
cdef class Growing:
    """A buffer that grows."""

    cdef bytearray buffer
    cdef uint8_t *data
    cdef Py_ssize_t used
    cdef Py_ssize_t capacity

    def __cinit__(self):
        self.buffer = bytearray()
        self.used = self.capacity = 0
        self.reserve(256)  # so that the address is always one to copy to

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t capacity
        if self.used + more > self.capacity:
            capacity = max(self.used + more, self.capacity * 2, 256)
            PyByteArray_Resize(self.buffer, capacity)
            self.data = <uint8_t *>PyByteArray_AS_STRING(self.buffer)
            self.capacity = capacity
        return 0

    cdef int put_int32(self, int32_t value) except -1:
        self.reserve(4)
        memcpy(self.data + self.used, &value, 4)
        self.used += 4
        return 0

    cdef bytearray finish(self):
        PyByteArray_Resize(self.buffer, self.used)
        return self.buffer


cdef struct Sink:
    # Where the next rows of a column go. There is room: `GrowingColumn.open` made it.
    uint8_t *bytes
    int32_t *offsets
    uint8_t *validity
    int64_t used
    int64_t rows
    int64_t nulls


cdef inline void put(Sink *sink, const uint8_t *data, Py_ssize_t size) noexcept nogil:
    if size < 0:
        sink.nulls += 1
    else:
        sink.validity[sink.rows >> 3] |= <uint8_t>(1 << (sink.rows & 7))
        memcpy(sink.bytes + sink.used, data, size)
        sink.used += size
    sink.rows += 1
    sink.offsets[sink.rows] = <int32_t>sink.used


@cython.final
cdef class GrowingColumn:
    """A column of byte strings."""

    cdef Growing offsets
    cdef Growing bytes
    cdef Growing validity
    cdef int64_t rows
    cdef int64_t nulls

    def __cinit__(self):
        self.offsets = Growing()
        self.bytes = Growing()
        self.validity = Growing()
        self.rows = self.nulls = 0
        self.offsets.put_int32(0)

    cdef Sink open(self, Py_ssize_t rows, Py_ssize_t size) except *:
        """Room for as many more rows of, together, as many bytes."""
        cdef Sink sink
        cdef Py_ssize_t more = (self.rows + rows + 7) // 8 - self.validity.used
        self.validity.reserve(more)
        memset(self.validity.data + self.validity.used, 0, more)
        self.offsets.reserve(rows * 4)
        self.bytes.reserve(size)
        sink.bytes = self.bytes.data
        sink.offsets = <int32_t *>self.offsets.data
        sink.validity = self.validity.data
        sink.used = self.bytes.used
        sink.rows = self.rows
        sink.nulls = self.nulls
        return sink

    cdef void close(self, Sink *sink) noexcept:
        """Keeps what was put."""
        self.bytes.used = sink.used
        self.rows = sink.rows
        self.nulls = sink.nulls
        self.offsets.used = (sink.rows + 1) * 4
        self.validity.used = (sink.rows + 7) // 8

    cdef int append(self, const uint8_t *data, Py_ssize_t size) except -1:
        cdef Sink sink = self.open(1, max(size, 0))
        put(&sink, data, size)
        self.close(&sink)
        return 0

    cdef object finish(self):
        validity = self.validity.finish() if self.nulls else None
        return BinaryColumn(self.offsets.finish(), self.bytes.finish(), validity, self.nulls)


cdef class ColumnReader:
    """Decodes batches into columns. After an exception the reader is of no more use."""

    cdef GrowingColumn keys
    cdef GrowingColumn values
    cdef GrowingColumn header_keys
    cdef GrowingColumn header_values
    cdef Growing header_offsets
    cdef Growing offsets
    cdef Growing timestamps
    cdef Growing timestamp_types
    cdef readonly int64_t row_count
    cdef Py_ssize_t taken

    def __cinit__(self):
        self.keys = GrowingColumn()
        self.values = GrowingColumn()
        self.header_keys = GrowingColumn()
        self.header_values = GrowingColumn()
        self.header_offsets = Growing()
        self.header_offsets.put_int32(0)
        self.offsets = Growing()
        self.timestamps = Growing()
        self.timestamp_types = Growing()
        self.row_count = 0
        self.taken = 0

    def add(
        self, data, int64_t base_offset, int64_t base_timestamp, log_append_time, int64_t count,
        int64_t first_offset=0, int64_t end_offset=INT64_MAX,
    ):
        """Adds the records of one batch whose offsets are in [`first_offset`, `end_offset`)."""
        cdef Py_buffer view
        if count < 0:
            raise _corrupt(RECORD_COUNT, 0, 0)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            if self.taken + view.len > INT32_MAX:
                raise OverflowError("more than 2 GiB of records do not fit into one Arrow batch")
            self.taken += view.len
            self.add_view(
                &view, base_offset, base_timestamp, log_append_time is not None,
                0 if log_append_time is None else log_append_time, count, first_offset, end_offset,
            )
        finally:
            PyBuffer_Release(&view)

    cdef int add_view(
        self, Py_buffer *view, int64_t base_offset, int64_t base_timestamp, bint stamped, int64_t log_append_time,
        int64_t count, int64_t first_offset, int64_t end_offset,
    ) except -1:
        cdef Cursor cursor
        cdef Parsed parsed
        cdef int failed = 0
        cdef int64_t index = 0, offset, timestamp
        cdef Py_ssize_t rows = <Py_ssize_t>min(count, view.len // SMALLEST_RECORD + 1), row = 0
        cdef Sink keys = self.keys.open(rows, view.len)
        cdef Sink values = self.values.open(rows, view.len)
        cdef int64_t *offsets
        cdef int64_t *timestamps
        cdef int32_t *timestamp_types
        cdef int32_t *header_offsets
        cdef int32_t header_rows = <int32_t>self.header_keys.rows
        self.offsets.reserve(rows * 8)
        self.timestamps.reserve(rows * 8)
        self.timestamp_types.reserve(rows * 4)
        self.header_offsets.reserve(rows * 4)
        offsets = <int64_t *>(self.offsets.data + self.offsets.used)
        timestamps = <int64_t *>(self.timestamps.data + self.timestamps.used)
        timestamp_types = <int32_t *>(self.timestamp_types.data + self.timestamp_types.used)
        header_offsets = <int32_t *>(self.header_offsets.data + self.header_offsets.used)
        start(&cursor, view)
        while index < count:
            failed = parse(&cursor, &parsed)
            if failed:
                raise _corrupt(failed, index, cursor.position)
            offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>parsed.offset_delta)
            if first_offset <= offset < end_offset:
                if stamped:
                    timestamp = log_append_time
                else:
                    timestamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>parsed.timestamp_delta)
                offsets[row] = offset
                timestamps[row] = microseconds(timestamp)
                timestamp_types[row] = stamped
                put(&keys, cursor.data + parsed.key, parsed.key_size)
                put(&values, cursor.data + parsed.value, parsed.value_size)
                if parsed.header_count:
                    self.add_headers(cursor.data, &parsed, index)
                    header_rows = <int32_t>self.header_keys.rows
                header_offsets[row] = header_rows
                row += 1
            index += 1
        if cursor.position != cursor.size:
            raise _corrupt(BYTES_LEFT, max(count - 1, 0), cursor.position)
        self.keys.close(&keys)
        self.values.close(&values)
        self.offsets.used += row * 8
        self.timestamps.used += row * 8
        self.timestamp_types.used += row * 4
        self.header_offsets.used += row * 4
        self.row_count += row
        return 0

    cdef int add_headers(self, const uint8_t *data, Parsed *parsed, int64_t index) except -1:
        cdef Py_ssize_t position = parsed.headers, key, key_size, value, value_size
        cdef int failed
        cdef int32_t _
        for _ in range(parsed.header_count):
            failed = read_header_spans(data, &position, parsed.end, &key, &key_size, &value, &value_size)
            if failed:
                raise _corrupt(failed, index, position)
            if is_ascii(data + key, key_size):
                self.header_keys.append(data + key, key_size)
            else:
                text = PyUnicode_DecodeUTF8(<const char *>data + key, key_size, "replace").encode()
                self.header_keys.append(<const uint8_t *>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
                self.taken += 2 * key_size  # a replacement character has three bytes
            self.header_values.append(data + value, value_size)
        return 0

    def finish(self):
        """The columns of all that was added. The reader is of no more use."""
        headers = HeaderColumn(self.header_offsets.finish(), self.header_keys.finish(), self.header_values.finish())
        return RecordColumns(
            self.row_count, self.keys.finish(), self.values.finish(), self.offsets.finish(),
            self.timestamps.finish(), self.timestamp_types.finish(), headers, self.header_keys.rows,
        )


cdef inline int64_t microseconds(int64_t milliseconds) noexcept nogil:
    """Times beyond the year 294247 become the last (or first) microsecond that there is."""
    if milliseconds > INT64_MAX // 1000:
        return INT64_MAX
    if milliseconds < -(INT64_MAX // 1000):
        return INT64_MIN
    return milliseconds * 1000


cdef inline bint is_ascii(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t index
    for index in range(size):
        if data[index] >= 0x80:
            return False
    return True


cdef class ColumnInput:
    """A column given by a caller; every offset in it is checked before it is followed."""

    def __cinit__(self, column):
        self.exported = 0
        offsets, data, validity, _, first = column
        if first < 0:
            raise ValueError("sizes cannot be negative")
        self.first = first
        PyObject_GetBuffer(offsets, &self.offsets, PyBUF_SIMPLE)
        self.exported = 1
        PyObject_GetBuffer(data, &self.data, PyBUF_SIMPLE)
        self.exported = 2
        self.has_validity = validity is not None
        self.rows = self.offsets.len // 4 - 1
        if self.has_validity:
            PyObject_GetBuffer(validity, &self.validity, PyBUF_SIMPLE)
            self.exported = 3
            self.rows = min(self.rows, self.validity.len * 8)

    def __dealloc__(self):
        if self.exported > 0:
            PyBuffer_Release(&self.offsets)
        if self.exported > 1:
            PyBuffer_Release(&self.data)
        if self.exported > 2:
            PyBuffer_Release(&self.validity)

    cdef int get(self, Py_ssize_t row, const char **data, Py_ssize_t *size) except -1:
        cdef int32_t bounds[2]
        cdef const uint8_t *validity = <const uint8_t *>self.validity.buf
        row += self.first
        if row >= self.rows:
            raise ValueError(f"a column has no row {row}")
        if self.has_validity and not validity[row >> 3] >> (row & 7) & 1:
            data[0] = NULL
            size[0] = -1
            return 0
        memcpy(bounds, <const char *>self.offsets.buf + row * 4, 8)
        if bounds[0] < 0 or bounds[1] < bounds[0] or bounds[1] > self.data.len:
            raise ValueError(f"row {row} of a column is outside its bytes")
        data[0] = <const char *>self.data.buf + bounds[0]
        size[0] = bounds[1] - bounds[0]
        return 0

# ---- writing -------------------------------------------------------------------------------------------------------

cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


cdef inline uint8_t *write_varint(uint8_t *out, int64_t value) noexcept nogil:
    cdef uint64_t raw = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while raw >= 0x80:
        out[0] = <uint8_t>(raw | 0x80)
        out += 1
        raw >>= 7
    out[0] = <uint8_t>raw
    return out + 1


cdef inline Py_ssize_t sized(Py_ssize_t size) noexcept nogil:
    return 1 if size < 0 else varint_size(size) + size


cdef inline uint8_t *write_span(uint8_t *out, const char *data, Py_ssize_t size) noexcept nogil:
    if size < 0:
        return write_varint(out, -1)
    out = write_varint(out, size)
    memcpy(out, data, size)
    return out + size


cdef class RecordWriter:
    """Encodes records behind `reserved` bytes that the caller fills in later.

    With a limit, a record that would make the whole larger is not written, unless it is the first. The base
    timestamp is that of the first record, unless it is given.
    """

    def __init__(self, Py_ssize_t reserved=0, Py_ssize_t limit=0, base_timestamp=None):
        if reserved < 0 or limit < 0:
            raise ValueError("sizes cannot be negative")
        self.has_base = base_timestamp is not None
        self.buffer = bytearray(reserved)
        self.data = <uint8_t *>PyByteArray_AS_STRING(self.buffer)
        self.used = self.capacity = self.reserved = reserved
        self.limit = limit
        self.base_timestamp = self.max_timestamp = self.last_offset_delta = -1
        if self.has_base:
            if base_timestamp < -1:
                raise ValueError(f"a record's timestamp cannot be {base_timestamp}")
            self.base_timestamp = base_timestamp
        self.record_count = 0

    @property
    def size(self):
        return self.used

    def raise_limit(self, Py_ssize_t limit):
        """More may be written than was said at first."""
        self.limit = max(self.limit, limit)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t capacity
        if self.used + more <= self.capacity:
            return 0
        capacity = max(self.used + more, self.capacity * 2, 1024)
        PyByteArray_Resize(self.buffer, capacity)
        self.data = <uint8_t *>PyByteArray_AS_STRING(self.buffer)
        self.capacity = capacity
        return 0

    cdef int write(
        self, int64_t timestamp, int64_t offset_delta,
        const char *key, Py_ssize_t key_size, const char *value, Py_ssize_t value_size,
        list headers, Py_ssize_t headers_size,
    ) except -1:
        """Writes one record and returns 1, or 0 if it would go beyond the limit. `headers_size` is theirs encoded."""
        cdef int64_t timestamp_delta
        cdef Py_ssize_t body
        cdef uint8_t *out
        if timestamp < -1:
            raise ValueError(f"a record's timestamp cannot be {timestamp}")
        if offset_delta <= self.last_offset_delta or offset_delta > INT32_MAX:
            raise ValueError(f"offset delta {offset_delta} does not follow {self.last_offset_delta}")
        timestamp_delta = timestamp - self.base_timestamp if self.has_base else 0
        body = (
            1 + varint_size(timestamp_delta) + varint_size(offset_delta)
            + sized(key_size) + sized(value_size) + headers_size
        )
        if body > INT32_MAX:
            raise ValueError(f"a record of {body} bytes is larger than any batch")
        if self.limit and self.record_count and self.used + varint_size(body) + body > self.limit:
            return 0
        self.reserve(body + 5)
        if not self.has_base:
            self.base_timestamp = timestamp
            self.has_base = True
        out = write_varint(self.data + self.used, body)
        out[0] = 0
        out = write_varint(out + 1, timestamp_delta)
        out = write_varint(out, offset_delta)
        out = write_span(out, key, key_size)
        out = write_span(out, value, value_size)
        if headers is None:
            out[0] = 0
            out += 1
        else:
            out = self.write_headers(out, headers)
        self.used = out - self.data
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.last_offset_delta = offset_delta
        self.record_count += 1
        return 1

    cdef uint8_t *write_headers(self, uint8_t *out, list headers) noexcept:
        """`headers` are pairs of bytes, made by `encoded`, whose size was counted."""
        cdef bytes key
        cdef object value
        out = write_varint(out, len(headers))
        for key, value in headers:
            out = write_span(out, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
            if value is None:
                out = write_varint(out, -1)
            else:
                out = write_span(out, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
        return out

    def append(self, int64_t timestamp, key, value, headers=(), offset_delta=None):
        """Adds a record and says whether it fitted. `offset_delta` is one more than the last, unless it is given."""
        cdef list pairs = None
        cdef Py_ssize_t headers_size = 1
        cdef int64_t delta = self.last_offset_delta + 1
        cdef const char *key_data = NULL
        cdef const char *value_data = NULL
        cdef Py_ssize_t key_size = -1, value_size = -1
        cdef bint plain_key = True, plain_value = True
        if offset_delta is not None:
            delta = offset_delta
        if headers:
            pairs = encoded(headers, &headers_size)
        if key is not None:
            if PyBytes_CheckExact(key):
                key_data = PyBytes_AS_STRING(key)
                key_size = PyBytes_GET_SIZE(key)
            else:
                plain_key = False
        if value is not None:
            if PyBytes_CheckExact(value):
                value_data = PyBytes_AS_STRING(value)
                value_size = PyBytes_GET_SIZE(value)
            else:
                plain_value = False
        if plain_key and plain_value:
            return self.write(timestamp, delta, key_data, key_size, value_data, value_size, pairs, headers_size) == 1
        return self.append(timestamp, as_bytes(key), as_bytes(value), headers, offset_delta)

    def extend(self, timestamps, keys, values, headers=None, Py_ssize_t begin=0):
        """Adds records from sequences of one length, from index `begin` on; returns the index of the first left out.

        `timestamps` may be one number for all; `keys` and `headers` may be None for none.
        """
        cdef list value_list = list(values) if type(values) is not list else values
        cdef list key_list = None if keys is None else (list(keys) if type(keys) is not list else keys)
        cdef list time_list = None
        cdef list header_list = None if headers is None else list(headers)
        cdef Py_ssize_t index, count = len(value_list)
        cdef int64_t timestamp = 0
        cdef object key = None, value
        if isinstance(timestamps, int):
            timestamp = timestamps
        else:
            time_list = list(timestamps) if type(timestamps) is not list else timestamps
            if len(time_list) != count:
                raise ValueError("timestamps and values differ in number")
        if key_list is not None and len(key_list) != count:
            raise ValueError("keys and values differ in number")
        if header_list is not None and len(header_list) != count:
            raise ValueError("headers and values differ in number")
        if begin < 0:
            raise ValueError("sizes cannot be negative")
        for index in range(begin, count):
            value = value_list[index]
            if key_list is not None:
                key = key_list[index]
            if time_list is not None:
                timestamp = time_list[index]
            if header_list is None and (key is None or PyBytes_CheckExact(key)) and PyBytes_CheckExact(value):
                if not self.write(
                    timestamp, self.last_offset_delta + 1,
                    NULL if key is None else PyBytes_AS_STRING(key), -1 if key is None else PyBytes_GET_SIZE(key),
                    PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), None, 1,
                ):
                    return index
            elif not self.append(timestamp, key, value, () if header_list is None else header_list[index]):
                return index
        return max(begin, count)

    def extend_columns(self, timestamps, key, value, headers, Py_ssize_t begin, Py_ssize_t end):
        """As `extend`, from columns: rows `begin` to `end`. `timestamps` is a buffer of int64 milliseconds."""
        cdef ColumnInput keys = None if key is None else ColumnInput(key)
        cdef ColumnInput values = ColumnInput(value)
        cdef HeaderInput header_input = None if headers is None else HeaderInput(headers)
        cdef Py_buffer view
        cdef Py_ssize_t row, key_size = -1, value_size, headers_size = 1
        cdef const char *key_data = NULL
        cdef const char *value_data = NULL
        cdef int64_t timestamp
        cdef list pairs = None
        if begin < 0:
            raise ValueError("sizes cannot be negative")
        PyObject_GetBuffer(timestamps, &view, PyBUF_SIMPLE)
        try:
            if end > view.len // 8:
                raise ValueError("timestamps and values differ in number")
            for row in range(begin, end):
                memcpy(&timestamp, <const char *>view.buf + row * 8, 8)
                if keys is not None:
                    keys.get(row, &key_data, &key_size)
                values.get(row, &value_data, &value_size)
                if header_input is not None:
                    pairs = header_input.get(row, &headers_size)
                if not self.write(
                    timestamp, self.last_offset_delta + 1, key_data, key_size, value_data, value_size,
                    pairs, headers_size,
                ):
                    return row
        finally:
            PyBuffer_Release(&view)
        return max(begin, end)

    def finish(self):
        """The reserved bytes and the records. The writer is of no more use."""
        cdef bytearray buffer = self.buffer
        PyByteArray_Resize(buffer, self.used)
        self.buffer = bytearray()
        self.data = NULL
        self.used = self.capacity = 0
        return buffer

    def finish_batch(self, int64_t base_offset, int32_t leader_epoch, int32_t base_sequence):
        """The records as a batch of no producer, not compressed. Its header goes into the reserved bytes."""
        cdef bytearray buffer
        cdef uint8_t *batch
        cdef Py_ssize_t size = self.used
        if self.record_count == 0:
            raise ValueError("a batch needs at least one record")
        if self.reserved != RECORDS_AT or not RECORDS_AT < size <= INT32_MAX:
            raise ValueError(f"no batch: {size} bytes, {self.reserved} of them for its header")
        buffer = self.finish()
        batch = <uint8_t *>PyByteArray_AS_STRING(buffer)
        write_big_endian(batch, base_offset, 8)
        write_big_endian(batch + LENGTH_AT, size - LENGTH_AT - 4, 4)
        write_big_endian(batch + LEADER_EPOCH_AT, leader_epoch, 4)
        batch[MAGIC_AT] = 2
        write_big_endian(batch + ATTRIBUTES_AT, 0, 2)
        write_big_endian(batch + LAST_OFFSET_DELTA_AT, self.last_offset_delta, 4)
        write_big_endian(batch + BASE_TIMESTAMP_AT, self.base_timestamp, 8)
        write_big_endian(batch + MAX_TIMESTAMP_AT, self.max_timestamp, 8)
        write_big_endian(batch + PRODUCER_ID_AT, <uint64_t>-1, 8)
        write_big_endian(batch + PRODUCER_EPOCH_AT, <uint64_t>-1, 2)
        write_big_endian(batch + BASE_SEQUENCE_AT, base_sequence, 4)
        write_big_endian(batch + RECORD_COUNT_AT, self.record_count, 4)
        checked = PyMemoryView_FromMemory(<char *>batch + ATTRIBUTES_AT, size - ATTRIBUTES_AT, PyBUF_READ)
        write_big_endian(batch + CRC_AT, <uint32_t>_crc32c(checked), 4)
        return buffer


cdef class HeaderInput:
    """A column of header lists given by a caller."""

    cdef Py_buffer offsets
    cdef bint exported
    cdef ColumnInput keys
    cdef ColumnInput values
    cdef Py_ssize_t first

    def __cinit__(self, column):
        self.exported = False
        offsets, keys, values, first = column
        if first < 0:
            raise ValueError("sizes cannot be negative")
        self.keys = ColumnInput(keys)
        self.values = ColumnInput(values)
        self.first = first
        PyObject_GetBuffer(offsets, &self.offsets, PyBUF_SIMPLE)
        self.exported = True

    def __dealloc__(self):
        if self.exported:
            PyBuffer_Release(&self.offsets)

    cdef list get(self, Py_ssize_t row, Py_ssize_t *size):
        """The row's headers as `encoded` gives them, or None for none."""
        cdef int32_t bounds[2]
        cdef const char *data = NULL
        cdef Py_ssize_t length, index, total = 0
        cdef list pairs = []
        row += self.first
        if row >= self.offsets.len // 4 - 1:
            raise ValueError(f"a column has no row {row}")
        memcpy(bounds, <const char *>self.offsets.buf + row * 4, 8)
        if bounds[0] < 0 or bounds[1] < bounds[0]:
            raise ValueError(f"row {row} of a column is outside its bytes")
        size[0] = 1
        if bounds[0] == bounds[1]:
            return None
        for index in range(bounds[0], bounds[1]):
            self.keys.get(index, &data, &length)
            if length < 0:
                raise ValueError("a header's key cannot be null")
            total += sized(length)
            key = span(<const uint8_t *>data, 0, length)
            self.values.get(index, &data, &length)
            total += sized(length)
            pairs.append((key, span(<const uint8_t *>data, 0, length)))
        size[0] = total + varint_size(len(pairs))
        return pairs


cdef object as_bytes(source):
    return None if source is None else bytes(memoryview(source))


cdef list encoded(headers, Py_ssize_t *size):
    """Pairs of bytes, and how many bytes they will take with their count."""
    cdef list pairs = []
    cdef bytes key_bytes
    cdef object value_bytes
    cdef Py_ssize_t total = 0
    for key, value in headers:
        key_bytes = (<str?>key).encode()
        value_bytes = as_bytes(value)
        total += sized(len(key_bytes)) + (1 if value_bytes is None else sized(len(<bytes>value_bytes)))
        pairs.append((key_bytes, value_bytes))
    size[0] = total + varint_size(len(pairs))
    return pairs

# ---- cleaning ------------------------------------------------------------------------------------------------------

cdef enum:
    FIRST_SLOTS = 1024

cdef struct Slot:
    uint64_t high
    uint64_t low
    int64_t after           # one more than the key's latest offset; 0 for a slot that is free

cdef struct Kept:
    Py_ssize_t rest
    Py_ssize_t end
    int64_t timestamp


cdef enum:
    COMPRESSION_OR_TRANSACTION = 0x37
    DELETE_HORIZON = 0x40

cdef struct Batch:
    const uint8_t *data
    Py_ssize_t size
    int64_t base_offset
    int64_t last_offset
    int64_t producer_id
    int32_t record_count


cdef bint read_plain(
    const uint8_t *data, Py_ssize_t left, int64_t next_offset, int64_t limit, int unwanted, Batch *batch
) except -1:
    """Whether a whole batch is here that is sound and has none of the attributes that make it special."""
    if left < RECORDS_AT or data[MAGIC_AT] != 2 or data[ATTRIBUTES_AT + 1] & unwanted:
        return False
    batch.data = data
    batch.size = <Py_ssize_t><int32_t>big_endian(data + LENGTH_AT, 4) + LENGTH_AT + 4
    batch.base_offset = <int64_t>big_endian(data, 8)
    batch.last_offset = <int64_t>(
        <uint64_t>batch.base_offset + <uint64_t><int64_t><int32_t>big_endian(data + LAST_OFFSET_DELTA_AT, 4)
    )
    batch.producer_id = <int64_t>big_endian(data + PRODUCER_ID_AT, 8)
    batch.record_count = <int32_t>big_endian(data + RECORD_COUNT_AT, 4)
    if batch.size < RECORDS_AT or batch.size > left or batch.record_count < 0:
        return False
    if batch.base_offset < next_offset or batch.last_offset < batch.base_offset or batch.last_offset > limit:
        return False
    checked = PyMemoryView_FromMemory(<char *>data + ATTRIBUTES_AT, batch.size - ATTRIBUTES_AT, PyBUF_READ)
    return _crc32c(checked) == big_endian(data + CRC_AT, 4)


cdef inline uint64_t rotated(uint64_t word, int by) noexcept nogil:
    return word << by | word >> (64 - by)


cdef inline void sip_rounds(uint64_t *v, int rounds) noexcept nogil:
    cdef int _
    for _ in range(rounds):
        v[0] += v[1]
        v[2] += v[3]
        v[1] = rotated(v[1], 13) ^ v[0]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] = rotated(v[0], 32)
        v[2] += v[1]
        v[0] += v[3]
        v[1] = rotated(v[1], 17) ^ v[2]
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] = rotated(v[2], 32)


cdef inline void fingerprint(
    const uint64_t *seed, const uint8_t *key, Py_ssize_t size, uint64_t *high, uint64_t *low
) noexcept nogil:
    """SipHash-2-4 with 128 bits: with a secret seed, nobody can make two keys that are taken for one."""
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef Py_ssize_t at = 0
    v[0] = seed[0] ^ <uint64_t>0x736F6D6570736575
    v[1] = seed[1] ^ <uint64_t>0x646F72616E646F6D ^ 0xEE
    v[2] = seed[0] ^ <uint64_t>0x6C7967656E657261
    v[3] = seed[1] ^ <uint64_t>0x7465646279746573
    while at + 8 <= size:
        memcpy(&word, key + at, 8)
        v[3] ^= word
        sip_rounds(v, 2)
        v[0] ^= word
        at += 8
    word = 0
    memcpy(&word, key + at, size - at)
    word |= <uint64_t>size << 56
    v[3] ^= word
    sip_rounds(v, 2)
    v[0] ^= word
    v[2] ^= 0xEE
    sip_rounds(v, 4)
    high[0] = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    sip_rounds(v, 4)
    low[0] = v[0] ^ v[1] ^ v[2] ^ v[3]


cdef class OffsetMap:
    """The latest offset of each key, for at most `capacity` keys.

    Keys are kept as fingerprints of 16 bytes, so that a map of a million takes some tens of megabytes. The table
    grows as it fills, up to `slots`, and is probed one slot after the other.
    """

    cdef Slot *table
    cdef int64_t slots
    cdef int64_t most_slots
    cdef readonly int64_t capacity
    cdef int64_t used
    cdef uint64_t seed[2]
    cdef public int64_t latest_offset

    def __cinit__(self, int64_t slots, int64_t capacity, bytes seed not None):
        if not 0 < capacity <= slots < INT32_MAX or len(seed) != 16:
            raise ValueError("a map needs room for a key, a slot for each, and 16 bytes of seed")
        memcpy(self.seed, PyBytes_AS_STRING(seed), 16)
        self.capacity = capacity
        self.most_slots = slots
        self.latest_offset = -1
        self.used = 0
        self.slots = min(slots + 1, FIRST_SLOTS)  # One is always free, and ends every search.
        self.table = <Slot *>calloc(self.slots, sizeof(Slot))
        if self.table == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.table)

    def __len__(self):
        return self.used

    cdef Slot *find(self, const uint8_t *key, Py_ssize_t size) noexcept nogil:
        """The slot of a key, or the free one where it belongs."""
        cdef uint64_t high, low
        fingerprint(self.seed, key, size, &high, &low)
        return self.find_print(high, low)

    cdef inline Slot *find_print(self, uint64_t high, uint64_t low) noexcept nogil:
        cdef int64_t at = <int64_t>((high >> 32) * <uint64_t>self.slots >> 32)  # As good as a remainder, and quicker.
        cdef Slot *slot = self.table + at
        while slot.after and (slot.high != high or slot.low != low):
            at = at + 1 if at + 1 < self.slots else 0
            slot = self.table + at
        if not slot.after:
            slot.high = high
            slot.low = low
        return slot

    cdef bint grow(self) noexcept nogil:
        """Makes the table larger when it is getting full. False if there is no memory for it."""
        cdef Slot *old = self.table
        cdef int64_t old_slots = self.slots, at
        if self.used * 4 < old_slots * 3 or old_slots > self.most_slots:
            return True
        self.slots = old_slots * 4 if old_slots * 4 <= self.most_slots // 2 else self.most_slots + 1
        self.table = <Slot *>calloc(self.slots, sizeof(Slot))
        if self.table == NULL:
            self.table = old
            self.slots = old_slots
            return False
        for at in range(old_slots):
            if old[at].after:
                self.find_print(old[at].high, old[at].low).after = old[at].after
        free(old)
        return True

    cdef int put_key(self, const uint8_t *key, Py_ssize_t size, int64_t offset) noexcept nogil:
        """1 if it is in, 0 if the map is full, -1 if there is no memory."""
        cdef Slot *slot
        if self.used >= self.capacity:
            return 0
        if not self.grow():
            return -1
        slot = self.find(key, size)
        if not slot.after:
            self.used += 1
        slot.after = offset + 1
        self.latest_offset = offset
        return 1

    def put(self, bytes key not None, int64_t offset):
        """Notes that a key was last seen at `offset`; False if the map is full."""
        cdef int done = self.put_key(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), offset)
        if done < 0:
            raise MemoryError
        return done == 1

    def get(self, bytes key not None):
        """The latest offset of a key, or -1."""
        return self.find(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)).after - 1

    def learn(self, data, int64_t base_offset, int64_t count, int64_t first_offset):
        """Notes every record of a batch that has a key and is not before `first_offset`; False if the map was full."""
        cdef Py_buffer view
        cdef Cursor cursor
        cdef Parsed parsed
        cdef int failed = 0, done = 1
        cdef int64_t index, offset
        if count < 0:
            raise _corrupt(RECORD_COUNT, 0, 0)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start(&cursor, &view)
            if count == 0 and cursor.size:
                raise _corrupt(BYTES_LEFT, 0, 0)
            with nogil:
                for index in range(count):
                    failed = parse(&cursor, &parsed)
                    if not failed and index == count - 1 and cursor.position != cursor.size:
                        failed = BYTES_LEFT
                    if failed:
                        break
                    offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>parsed.offset_delta)
                    if parsed.key_size >= 0 and offset >= first_offset:
                        done = self.put_key(cursor.data + parsed.key, parsed.key_size, offset)
                        if done != 1:
                            break
            if failed:
                raise _corrupt(failed, index, cursor.position)
            if done < 0:
                raise MemoryError
        finally:
            PyBuffer_Release(&view)
        return done == 1

    def learn_run(self, window, int64_t first_offset, int64_t next_offset, int64_t limit):
        """As `learn`, for the batches at the beginning of `window`, up to the first that is not simple and sound.

        Simple is a whole batch of today's format that is not compressed, not of a transaction and not for brokers,
        and for all of whose keys there is room. Offsets rise from `next_offset` up to `limit`. Returns how many bytes
        were gone through, and the offset after them.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef Py_ssize_t taken = 0
        cdef int done = 1
        PyObject_GetBuffer(window, &view, PyBUF_SIMPLE)
        try:
            while read_plain(
                <const uint8_t *>view.buf + taken, view.len - taken, next_offset, limit,
                COMPRESSION_OR_TRANSACTION, &batch,
            ):
                if batch.record_count > self.capacity - self.used:
                    break
                done = self.learn_batch(&batch, first_offset)
                if done != 1:
                    break
                if batch.last_offset >= first_offset:
                    self.latest_offset = batch.last_offset
                next_offset = batch.last_offset + 1
                taken += batch.size
        finally:
            PyBuffer_Release(&view)
        if done < 0:
            raise MemoryError
        return taken, next_offset

    cdef int learn_batch(self, Batch *batch, int64_t first_offset) noexcept nogil:
        """1 if all of it is in; -1 if there is no memory; 0, and nothing of it is in, if its records are not sound."""
        cdef Cursor cursor = Cursor(batch.data + RECORDS_AT, batch.size - RECORDS_AT, 0)
        cdef Parsed parsed
        cdef int32_t _
        cdef int64_t offset
        for _ in range(batch.record_count):
            if parse(&cursor, &parsed):
                return 0
        if cursor.position != cursor.size:
            return 0
        cursor.position = 0
        for _ in range(batch.record_count):
            parse(&cursor, &parsed)
            offset = batch.base_offset + parsed.offset_delta
            if parsed.key_size >= 0 and offset >= first_offset:
                if self.put_key(cursor.data + parsed.key, parsed.key_size, offset) < 0:
                    return -1
        return 1

    def retain_run(self, window, int64_t next_offset, int64_t limit, dict needed not None, bytearray out not None):
        """As `retain`, for the batches at the beginning of `window`, up to the first that is not simple and sound.

        Simple is a batch that stays as it is, and is added to `out`, or goes altogether: none that would be written
        anew, and none that is in `needed`, which has the last offset of each producer and, as -1's, that of all.
        """
        cdef Py_buffer view
        cdef Batch batch
        cdef Py_ssize_t taken = 0, size
        cdef int64_t read = 0, written = 0, keyless = 0, without_key
        cdef int64_t end_offset = needed.get(-1, -2)
        cdef int fate
        PyObject_GetBuffer(window, &view, PyBUF_SIMPLE)
        try:
            while read_plain(
                <const uint8_t *>view.buf + taken, view.len - taken, next_offset, limit,
                COMPRESSION_OR_TRANSACTION | DELETE_HORIZON, &batch,
            ):
                without_key = 0
                fate = self.judge_batch(&batch, &without_key)
                if fate < 0:
                    break
                if fate == 0:
                    if batch.last_offset == end_offset:
                        break
                    if batch.producer_id >= 0 and needed.get(batch.producer_id) == batch.last_offset:
                        break
                else:
                    size = PyByteArray_GET_SIZE(out)
                    PyByteArray_Resize(out, size + batch.size)
                    memcpy(PyByteArray_AS_STRING(out) + size, batch.data, batch.size)
                    written += batch.record_count
                read += batch.record_count
                keyless += without_key
                next_offset = batch.last_offset + 1
                taken += batch.size
        finally:
            PyBuffer_Release(&view)
        return RetainedRun(taken, next_offset, read, written, keyless)

    cdef int judge_batch(self, Batch *batch, int64_t *keyless) noexcept nogil:
        """1 if it stays as it is, 0 if all its records go, -1 if it is not as simple as that."""
        cdef Cursor cursor = Cursor(batch.data + RECORDS_AT, batch.size - RECORDS_AT, 0)
        cdef Parsed parsed
        cdef int32_t _
        cdef int32_t kept = 0
        cdef int64_t offset
        for _ in range(batch.record_count):
            if parse(&cursor, &parsed):
                return -1
            offset = batch.base_offset + parsed.offset_delta
            if offset > self.latest_offset:
                pass
            elif parsed.key_size < 0:
                keyless[0] += 1
                continue
            elif offset < self.find(cursor.data + parsed.key, parsed.key_size).after - 1:
                continue
            if parsed.value_size < 0:
                return -1
            kept += 1
        if cursor.position != cursor.size or (kept and kept != batch.record_count):
            return -1
        return 1 if kept else 0

    def retain(
        self, data, int64_t base_offset, int64_t base_timestamp, log_append_time, int64_t count,
        bint keep_tombstones, bint has_horizon, int64_t horizon_ms, Py_ssize_t reserved,
    ):
        """The records of a batch that are still the latest of their key, or beyond what the map knows.

        They are counted from a new base timestamp: the batch's own if that is a delete horizon, `horizon_ms` if there
        are tombstones among them and it has none, and else the first one's. `reserved` bytes before them are left free.
        """
        cdef Py_buffer view
        cdef Cursor cursor
        cdef Parsed parsed
        cdef Kept *kept = NULL
        cdef Py_ssize_t kept_count = 0, body, size
        cdef int failed = 0
        cdef int64_t index, offset, base, latest = -1, stamp = 0, keyless = 0
        cdef bint stamped = log_append_time is not None, keep, tombstones = False
        cdef bytearray buffer
        cdef uint8_t *out
        if count < 0:
            raise _corrupt(RECORD_COUNT, 0, 0)
        if reserved < 0:
            raise ValueError("sizes cannot be negative")
        if stamped:
            stamp = log_append_time
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            start(&cursor, &view)
            if count == 0 and cursor.size:
                raise _corrupt(BYTES_LEFT, 0, 0)
            kept = <Kept *>malloc((min(count, cursor.size // SMALLEST_RECORD) + 1) * sizeof(Kept))
            if kept == NULL:
                raise MemoryError
            with nogil:
                for index in range(count):
                    failed = parse(&cursor, &parsed)
                    if not failed and index == count - 1 and cursor.position != cursor.size:
                        failed = BYTES_LEFT
                    if failed:
                        break
                    offset = <int64_t>(<uint64_t>base_offset + <uint64_t><int64_t>parsed.offset_delta)
                    if offset > self.latest_offset:
                        keep = True
                    elif parsed.key_size < 0:
                        keep = False
                        keyless += 1
                    else:
                        keep = (parsed.value_size >= 0 or keep_tombstones) and offset >= self.find(
                            cursor.data + parsed.key, parsed.key_size
                        ).after - 1
                    if not keep:
                        continue
                    if parsed.value_size < 0:
                        tombstones = True
                    if not stamped:
                        stamp = <int64_t>(<uint64_t>base_timestamp + <uint64_t>parsed.timestamp_delta)
                    if stamp > latest:
                        latest = stamp
                    kept[kept_count].rest = parsed.rest
                    kept[kept_count].end = parsed.end
                    kept[kept_count].timestamp = stamp
                    kept_count += 1
            if failed:
                raise _corrupt(failed, index, cursor.position)
            if has_horizon or not kept_count:
                base = base_timestamp
            elif tombstones:
                base = horizon_ms
            else:
                base = kept[0].timestamp
            if kept_count == count and (has_horizon or not tombstones):
                return Retained(kept_count, keyless, tombstones, base_timestamp, latest, None)
            size = reserved
            for index in range(kept_count):
                body = kept_size(&kept[index], base)
                size += varint_size(body) + body
            buffer = bytearray(size)
            out = <uint8_t *>PyByteArray_AS_STRING(buffer) + reserved
            for index in range(kept_count):
                out = write_varint(out, kept_size(&kept[index], base))
                out[0] = 0
                out = write_varint(out + 1, <int64_t>(<uint64_t>kept[index].timestamp - <uint64_t>base))
                memcpy(out, cursor.data + kept[index].rest, kept[index].end - kept[index].rest)
                out += kept[index].end - kept[index].rest
            return Retained(kept_count, keyless, tombstones, base, latest, buffer)
        finally:
            free(kept)
            PyBuffer_Release(&view)


cdef inline Py_ssize_t kept_size(Kept *kept, int64_t base) noexcept nogil:
    return 1 + varint_size(<int64_t>(<uint64_t>kept.timestamp - <uint64_t>base)) + kept.end - kept.rest
