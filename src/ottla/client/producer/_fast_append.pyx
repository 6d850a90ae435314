# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""What is done once per sent record, compiled. `_slow_append` is its twin and its specification."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from ottla.records._fast cimport ColumnInput, RecordWriter

cdef enum:
    MULTIPLIER = 0x5bd1e995
    SEED = 0x9747b28c


cdef inline uint32_t hash_of(const uint8_t *data, Py_ssize_t size) noexcept nogil:
    cdef uint32_t hashed = <uint32_t>SEED ^ <uint32_t>size
    cdef uint32_t word
    cdef Py_ssize_t at = 0
    while at + 4 <= size:
        word = data[at] | <uint32_t>data[at + 1] << 8 | <uint32_t>data[at + 2] << 16 | <uint32_t>data[at + 3] << 24
        word *= <uint32_t>MULTIPLIER
        word ^= word >> 24
        word *= <uint32_t>MULTIPLIER
        hashed = hashed * <uint32_t>MULTIPLIER ^ word
        at += 4
    if size - at == 3:
        hashed ^= <uint32_t>data[at + 2] << 16
    if size - at >= 2:
        hashed ^= <uint32_t>data[at + 1] << 8
    if size - at >= 1:
        hashed ^= data[at]
        hashed *= <uint32_t>MULTIPLIER
    hashed ^= hashed >> 13
    hashed *= <uint32_t>MULTIPLIER
    return hashed ^ hashed >> 15


cdef inline int32_t partition_of(const uint8_t *data, Py_ssize_t size, int32_t count) noexcept nogil:
    return <int32_t>((hash_of(data, size) & 0x7FFFFFFF) % <uint32_t>count)


def murmur2(bytes key not None):
    """The 32-bit hash that Kafka's clients place keys by, without a sign."""
    return hash_of(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))


def partition_for_key(bytes key not None, int32_t partition_count):
    """Where every Kafka client of Java's kind puts a key."""
    if partition_count <= 0:
        raise ValueError("a topic needs a partition")
    return partition_of(<const uint8_t *>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), partition_count)


def partitions_for_column(column, Py_ssize_t rows, int32_t partition_count, int32_t keyless):
    """An int32 for each row: the partition of its key, or `keyless` where that is null."""
    cdef ColumnInput keys = ColumnInput(column)
    cdef bytes partitions
    cdef char *out
    cdef const char *data = NULL
    cdef Py_ssize_t size = 0, row
    cdef int32_t partition
    if partition_count <= 0:
        raise ValueError("a topic needs a partition")
    partitions = PyBytes_FromStringAndSize(NULL, rows * 4)
    out = PyBytes_AS_STRING(partitions)
    for row in range(rows):
        keys.get(row, &data, &size)
        partition = keyless if size < 0 else partition_of(<const uint8_t *>data, size, partition_count)
        memcpy(out + row * 4, &partition, 4)
    return partitions


@cython.final
@cython.freelist(1024)
@cython.no_gc
cdef class Delivery:
    """What becomes of one record. See `_slow_append`.

    Not known to the garbage collector: a program may hold millions. The cycle of a callback and its batch ends when the
    batch is done, which it is in the end.
    """

    cdef object batch
    cdef readonly int64_t timestamp_ms
    cdef readonly int32_t index
    cdef readonly int32_t key_size
    cdef readonly int32_t value_size

    def __init__(self, batch, int32_t index, int64_t timestamp_ms, int32_t key_size, int32_t value_size):
        self.batch = batch
        self.index = index
        self.timestamp_ms = timestamp_ms
        self.key_size = key_size
        self.value_size = value_size

    @property
    def topic(self):
        return self.batch.topic

    @property
    def partition(self):
        return self.batch.partition

    def done(self):
        return self.batch.is_done

    def cancelled(self):
        return False

    def running(self):
        return not self.batch.is_done

    def cancel(self):
        return False

    def result(self, timeout=None):
        if not self.batch.is_done:
            self.batch.wait(timeout)
        return self.batch.outcome(self)

    def exception(self, timeout=None):
        if not self.batch.is_done:
            self.batch.wait(timeout)
        return self.batch.error_of(self.index)

    def add_done_callback(self, callback):
        self.batch.call_when_done(self, callback)

    def __await__(self):
        return self.batch.awaited(self).__await__()

    def __repr__(self):
        return self.batch.describe(self.index)


def put(RecordWriter batch not None, int64_t timestamp_ms, key, value, headers, on_delivery):
    """Appends a record to a batch. See `_slow_append`.

    From the end of `append` to that of this function no Python code runs: the record is the batch's last.
    """
    cdef Delivery delivery
    cdef int32_t key_size = -1 if key is None else len(key), value_size = -1 if value is None else len(value)
    delivery = Delivery.__new__(Delivery)
    callback = None if on_delivery is None else (delivery, on_delivery)
    if not batch.append(timestamp_ms, key, value, headers):
        return None
    delivery.batch = batch
    delivery.index = <int32_t>batch.record_count - 1
    delivery.timestamp_ms = timestamp_ms
    delivery.key_size = key_size
    delivery.value_size = value_size
    if callback is not None:
        (<list>(<object>batch).callbacks).append(callback)
    return delivery


@cython.final
cdef class OpenBatches:
    """One topic's: the batch of each partition that takes records, and where records without a key go now."""

    cdef readonly int32_t partition_count
    cdef public int32_t sticky
    cdef public int64_t sticky_bytes
    cdef int64_t most_sticky_bytes
    cdef public bint ignores_keys
    cdef list batches

    def __init__(self, int32_t partition_count, int64_t most_sticky_bytes, bint ignores_keys):
        self.batches = [None] * partition_count
        self.partition_count = partition_count
        self.sticky = -1
        self.sticky_bytes = 0
        self.most_sticky_bytes = most_sticky_bytes
        self.ignores_keys = ignores_keys

    def get(self, Py_ssize_t partition):
        if not 0 <= partition < self.partition_count:
            raise IndexError(partition)
        return self.batches[partition]

    def put(self, Py_ssize_t partition, RecordWriter batch):
        if not 0 <= partition < self.partition_count:
            raise IndexError(partition)
        self.batches[partition] = batch

    def grow(self, int32_t partition_count):
        self.batches += [None] * (partition_count - self.partition_count)
        self.partition_count = partition_count

    def count_sticky(self, int64_t size):
        """So many bytes have gone to the sticky partition."""
        self.sticky_bytes += size
        if self.sticky_bytes >= self.most_sticky_bytes:
            self.sticky = -1


@cython.final
cdef class Appender:
    """Puts a record into the open batch of its partition, if it is as simple as that. See `_slow_append`.

    From the look-up of the batch to the end of `append` no Python code runs, so no other thread does: the lock of the
    interpreter is lock enough. That is why time is read and objects are made before it.
    """

    cdef readonly dict topics
    cdef object now_ns
    cdef public object send_slowly
    cdef public dict runs_in

    def __init__(self, now_ns, dict topics=None):
        self.topics = {} if topics is None else topics
        self.now_ns = now_ns

    def send(
        self, topic, value=None, key=None, *, partition=None, timestamp_ms=None, headers=None, on_delivery=None
    ):
        cdef object delivery = self.append(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is None:
            return self.send_slowly(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        return delivery

    cpdef append(self, topic, value, key, partition, timestamp_ms, headers, on_delivery):
        cdef OpenBatches open_batches
        cdef RecordWriter batch
        cdef Delivery delivery
        cdef int32_t index = 0
        cdef int64_t stamp, before
        cdef const char *key_data = NULL
        cdef const char *value_data = NULL
        cdef Py_ssize_t key_size = -1, value_size = -1
        cdef bint sticks = False
        cdef tuple callback = None
        if self.runs_in is not None:
            thread = self.runs_in.get("_thread_id")
            if thread is None or <unsigned long>thread != <unsigned long>PyThread_get_thread_ident():
                return None
        if headers or not PyUnicode_CheckExact(topic):
            return None
        if key is not None:
            if not PyBytes_CheckExact(key):
                return None
            key_data = PyBytes_AS_STRING(key)
            key_size = PyBytes_GET_SIZE(key)
        if value is not None:
            if not PyBytes_CheckExact(value):
                return None
            value_data = PyBytes_AS_STRING(value)
            value_size = PyBytes_GET_SIZE(value)
        if partition is not None:
            index = partition
        if timestamp_ms is None:
            stamp = <int64_t>self.now_ns() // 1000000
        else:
            stamp = timestamp_ms
        delivery = Delivery.__new__(Delivery)
        if on_delivery is not None:
            callback = (delivery, on_delivery)
        found = self.topics.get(topic)
        if found is None:
            return None
        open_batches = <OpenBatches>found
        if partition is None:
            if key_size >= 0 and not open_batches.ignores_keys:
                index = partition_of(<const uint8_t *>key_data, key_size, open_batches.partition_count)
            else:
                index = open_batches.sticky
                sticks = True
        if not 0 <= index < open_batches.partition_count:
            return None
        found = open_batches.batches[index]
        if found is None:
            return None
        batch = <RecordWriter>found
        before = batch.used
        if not batch.write(stamp, batch.last_offset_delta + 1, key_data, key_size, value_data, value_size, None, 1):
            return None
        if sticks:
            open_batches.sticky_bytes += batch.used - before
            if open_batches.sticky_bytes >= open_batches.most_sticky_bytes:
                open_batches.sticky = -1
        delivery.batch = batch
        delivery.index = <int32_t>batch.record_count - 1
        delivery.timestamp_ms = stamp
        delivery.key_size = <int32_t>key_size
        delivery.value_size = <int32_t>value_size
        if callback is not None:
            (<list>(<object>batch).callbacks).append(callback)
        return delivery
