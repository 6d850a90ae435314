# cython: language_level=3
"""What is done most often of all at a partition's end, compiled: see `quick_append`.

What it does for a batch is what `Partition.append_as_leader` would do, and `Partition.append_made_here`. Whatever is not
as usual, it leaves to them. Everything that may make it say no is looked at before anything is changed.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_Clear, PyDict_GetItem, PyDict_SetItem, PyDict_Size
from cpython.object cimport PyObject
from cpython.sequence cimport PySequence_GetItem
from libc.stdint cimport int64_t, uint8_t, uint64_t

from ottla.base.slots cimport number_at, put, slot, value_at

cdef enum:
    # Of a header, which is a tuple.
    LENGTH = 1
    CRC = 4
    ATTRIBUTES = 5
    LAST_OFFSET_DELTA = 6
    MAX_TIMESTAMP = 8
    PRODUCER_ID = 9
    PRODUCER_EPOCH = 10
    BASE_SEQUENCE = 11
    # Of a batch.
    LEADER_EPOCH_AT = 12
    LOG_OVERHEAD = 12
    FRESH_BATCHES = 8

cdef int64_t MAX_RELATIVE_OFFSET = 0x7FFFFFFF
cdef int64_t MAX_SEQUENCE = 0x7FFFFFFF
cdef int64_t NO_EPOCH = -1
cdef int64_t NOT_NOW = -1


cdef class PartitionEnd:
    """Made with the classes of all that it reads."""

    def __init__(
        self, type partition, type state, type settings, type log, type segment, type epochs, type producers,
        type producer, is_sound,
    ):
        self.is_sound = is_sound
        self.partition_class, self.state_class, self.settings_class = partition, state, settings
        self.log_class, self.segment_class, self.epochs_class = log, segment, epochs
        self.producers_class, self.producer_class = producers, producer
        self.state = slot(partition, "state")
        self.settings = slot(partition, "settings")
        self.log = slot(partition, "log")
        self.leader_epoch = slot(partition, "leader_epoch")
        self.fresh = slot(partition, "_fresh")
        self.fresh_segment = slot(partition, "_fresh_segment")
        self.awaits_flush = slot(partition, "awaits_flush")
        self.flush_messages = slot(settings, "flush_messages")
        self.has_enough_replicas = slot(state, "has_enough_replicas")
        self.followers = slot(state, "followers")
        self.local_end_offset = slot(state, "local_end_offset")
        self.state_high_watermark = slot(state, "high_watermark")
        self.segments = slot(log, "segments")
        self.config = slot(log, "config")
        self.unfinished = slot(log, "_unfinished")
        self.log_start_offset = slot(log, "log_start_offset")
        self.log_end_offset = slot(log, "log_end_offset")
        self.high_watermark = slot(log, "high_watermark")
        self.recovery_point = slot(log, "recovery_point")
        self.epochs = slot(log, "epochs")
        self.entries = slot(epochs, "_entries")
        self.producers = slot(log, "producers")
        self.by_id = slot(producers, "_producers")
        self.unreplicated = slot(producers, "unreplicated")
        self.producer_epoch = slot(producer, "epoch")
        self.open_transaction = slot(producer, "current_txn_first_offset")
        self.batches = slot(producer, "batches")
        self.size = slot(segment, "size")
        self.base_offset = slot(segment, "base_offset")
        self.file = slot(segment, "_file")
        self.room_config = slot(segment, "_room_config")
        self.room_size = slot(segment, "_room_size")
        self.room_timestamp = slot(segment, "_room_timestamp")
        self.known_max_timestamp = slot(segment, "_known_max_timestamp")
        self.since_entry = slot(segment, "_bytes_since_index_entry")
        self.interval = slot(segment, "_index_interval_bytes")
        self.reserved_to = slot(segment, "_reserved_to")

    def append_made_here(self, partition, data, int64_t record_count, int64_t max_timestamp):
        """See `quick_append.append_never`."""
        if type(partition) is not self.partition_class:
            return NOT_NOW
        return self.append(partition, data, record_count - 1, max_timestamp, None)

    def append_produced(self, partition, data, header):
        """See `quick_append.append_never`."""
        if type(partition) is not self.partition_class or header[ATTRIBUTES] != 0:
            return NOT_NOW
        return self.append(partition, data, header[LAST_OFFSET_DELTA], header[MAX_TIMESTAMP], <tuple> header)

    cdef int64_t append(
        self, partition, data, int64_t last_offset_delta, int64_t max_timestamp, tuple header
    ) except? -2:
        """Appends a batch to a segment with room for it: of no producer, or the next of its producer. One with a header
        is given its offset and its leader's epoch; one without, which was made here, has them.

        Returns its offset; NOT_NOW if it is not as simple as that, and nothing has been done.
        """
        cdef int64_t size, position, base_offset, last_offset, leader_epoch
        cdef list segments, entries
        log = <object> value_at(partition, self.log)
        state = <object> value_at(partition, self.state)
        if type(log) is not self.log_class or state is None or <object> value_at(log, self.unfinished) is not None:
            return NOT_NOW
        segments = <list> value_at(log, self.segments)
        segment = segments[len(segments) - 1]
        epochs = <object> value_at(log, self.epochs)
        producers = <object> value_at(log, self.producers)
        if (
            type(segment) is not self.segment_class
            or type(epochs) is not self.epochs_class
            or type(producers) is not self.producers_class
        ):
            return NOT_NOW
        entries = <list> value_at(epochs, self.entries)
        leader_epoch = number_at(partition, self.leader_epoch)
        if leader_epoch > (<int64_t> (<tuple> entries[len(entries) - 1])[0] if entries else NO_EPOCH):
            return NOT_NOW
        size = len(data)
        position = number_at(segment, self.size)
        base_offset = number_at(log, self.log_end_offset)
        last_offset = base_offset + last_offset_delta
        known = <object> value_at(segment, self.known_max_timestamp)
        file = <object> value_at(segment, self.file)
        if (
            position == 0
            or known is None
            or file is None
            or value_at(segment, self.room_config) != value_at(log, self.config)
            or position + size > number_at(segment, self.room_size)
            or max_timestamp > number_at(segment, self.room_timestamp)
            or last_offset - number_at(segment, self.base_offset) > MAX_RELATIVE_OFFSET
        ):
            return NOT_NOW
        producer = None
        if header is None:
            if not self.is_sound(data):
                return NOT_NOW
        else:
            if <int64_t> header[PRODUCER_ID] >= 0:
                producer = self.sender_of_next(producers, header)
                if producer is None:
                    return NOT_NOW
            assert size == <int64_t> header[LENGTH] + LOG_OVERHEAD, "header and bytes of an append do not agree"
            self.assign(data, base_offset, leader_epoch)
            if not self.is_sound(data, header[CRC]):
                self.assign(data, 0, -1)
                return NOT_NOW
        try:
            file.write_at(position, data)
        except OSError:
            segment.undo_write(file, position)
            raise
        if position > number_at(segment, self.reserved_to):
            segment.reserve(file, position + size)
        if number_at(segment, self.since_entry) > number_at(segment, self.interval):
            segment.index_one(size, last_offset, max_timestamp, position)
        else:
            if max_timestamp > <int64_t> (<tuple> known)[0]:
                put(segment, self.known_max_timestamp, (max_timestamp, last_offset))
            put(segment, self.since_entry, number_at(segment, self.since_entry) + size)
        put(segment, self.size, position + size)
        put(log, self.log_end_offset, last_offset + 1)
        if producer is not None:
            producer.take(header, last_offset)
        self.on_grown(partition, state, log, segment, base_offset, position, last_offset + 1)
        return base_offset

    cdef object sender_of_next(self, producers, tuple header):
        """The producer of this batch, if the batch comes right after its last one, outside of transactions."""
        cdef PyObject *found = PyDict_GetItem(<dict> value_at(producers, self.by_id), header[PRODUCER_ID])
        if found == NULL or type(<object> found) is not self.producer_class:
            return None
        producer = <object> found
        batches = <object> value_at(producer, self.batches)
        if (
            number_at(producer, self.producer_epoch) != <int64_t> header[PRODUCER_EPOCH]
            or number_at(producer, self.open_transaction) >= 0
            or not batches
        ):
            return None
        last = <tuple> PySequence_GetItem(batches, -1)
        if <int64_t> header[BASE_SEQUENCE] != <int64_t> last[0] + 1 & MAX_SEQUENCE:
            return None
        return producer

    cdef int assign(self, data, int64_t base_offset, int64_t leader_epoch) except -1:
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_WRITABLE)
        write_big_endian(<uint8_t *> view.buf, <uint64_t> base_offset, 8)
        write_big_endian(<uint8_t *> view.buf + LEADER_EPOCH_AT, <uint64_t> leader_epoch, 4)
        PyBuffer_Release(&view)
        return 0

    cdef int on_grown(
        self, partition, state, log, segment, int64_t base_offset, int64_t position, int64_t end_offset
    ) except -1:
        """See `Partition._on_grown`."""
        fresh = <dict> value_at(partition, self.fresh)
        settings = <object> value_at(partition, self.settings)
        if value_at(partition, self.fresh_segment) != <PyObject *> segment or PyDict_Size(fresh) >= FRESH_BATCHES:
            PyDict_Clear(fresh)
            put(partition, self.fresh_segment, segment)
        PyDict_SetItem(fresh, base_offset, position)
        if end_offset - number_at(log, self.recovery_point) >= number_at(settings, self.flush_messages):
            put(partition, self.awaits_flush, True)
        elif <object> value_at(partition, self.awaits_flush) is not True:
            if <object> value_at(state, self.followers) or PyDict_Size(
                <dict> value_at(<object> value_at(log, self.producers), self.unreplicated)
            ):
                if state.on_local_end(end_offset):
                    log.advance_high_watermark(<object> value_at(state, self.state_high_watermark))
            else:
                end = <object> value_at(log, self.log_end_offset)
                put(state, self.local_end_offset, end)
                if end_offset > number_at(state, self.state_high_watermark):
                    put(state, self.state_high_watermark, end)
                    put(log, self.high_watermark, end)
        return 0


cdef inline void write_big_endian(uint8_t *data, uint64_t value, int size) noexcept:
    cdef int at
    for at in range(size):
        data[size - 1 - at] = <uint8_t> (value >> 8 * at)
