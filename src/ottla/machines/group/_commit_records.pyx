# cython: language_level=3
"""The offsets of a commit to records and back, compiled: see `commits`, whose functions are the twins of these."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from ottla.base.slots cimport copy_of, number_at, put, slot, value_at

cdef extern from *:
    """
    #define OTTLA_ALLOCATE_TUPLE(type, size) (((PyTypeObject *)(type))->tp_alloc((PyTypeObject *)(type), (size)))
    """
    object ALLOCATE_TUPLE "OTTLA_ALLOCATE_TUPLE"(object type, Py_ssize_t size)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    VALUE_VERSION = 4
    RECORD_OVERHEAD = 32


cdef class CommitRecords:
    """Made with the classes of requests and responses, and of a committed offset. See `commits`."""

    cdef object taken, of_topic, key_up_to_partition, too_large
    cdef type topic_class, partition_class, committed_class
    cdef bytes no_id
    cdef Py_ssize_t name, topic_id, partitions, index, offset, leader_epoch, metadata
    cdef Py_ssize_t told_name, told_id, told_partitions, told_index, told_error

    def __init__(self, request, response, type committed, taken, of_topic, key_up_to_partition, too_large, bytes no_id):
        self.taken, self.of_topic, self.key_up_to_partition = taken, of_topic, key_up_to_partition
        self.too_large, self.no_id, self.committed_class = too_large, no_id, committed
        self.topic_class = request.OffsetCommitRequestTopic
        self.partition_class = request.OffsetCommitRequestPartition
        self.name = slot(self.topic_class, "name")
        self.topic_id = slot(self.topic_class, "topic_id")
        self.partitions = slot(self.topic_class, "partitions")
        self.index = slot(self.partition_class, "partition_index")
        self.offset = slot(self.partition_class, "committed_offset")
        self.leader_epoch = slot(self.partition_class, "committed_leader_epoch")
        self.metadata = slot(self.partition_class, "committed_metadata")
        self.told_name = slot(response.OffsetCommitResponseTopic, "name")
        self.told_id = slot(response.OffsetCommitResponseTopic, "topic_id")
        self.told_partitions = slot(response.OffsetCommitResponseTopic, "partitions")
        self.told_index = slot(response.OffsetCommitResponsePartition, "partition_index")
        self.told_error = slot(response.OffsetCommitResponsePartition, "error_code")

    def name_all(self, list topics, dict known, bint by_id):
        """See `commits.name_all_in_python`."""
        cdef PyObject *found
        for topic in topics:
            if type(topic) is not self.topic_class:
                raise TypeError(f"not a topic of a commit: {topic!r}")
            found = PyDict_GetItem(known, <object> value_at(topic, self.topic_id if by_id else self.name))
            if found == NULL:
                return False
            partitions = (<object> found).partitions
            for partition in <object> value_at(topic, self.partitions):
                if type(partition) is not self.partition_class:
                    raise TypeError(f"not a partition of a commit: {partition!r}")
                if <object> value_at(partition, self.index) not in partitions:
                    return False
            put(topic, self.name, (<object> found).name)
            put(topic, self.topic_id, (<object> found).id)
        return True

    def encode(self, str group_id, list topics, int64_t now_ms, Py_ssize_t longest):
        """See `commits.encode_in_python`."""
        cdef list encoded = [], committed = [], told = [], answers
        cdef int64_t size = 0
        cdef bytes prefix, key, value
        for topic in topics:
            if type(topic) is not self.topic_class:
                raise TypeError(f"not a topic of a commit: {topic!r}")
            name, topic_id = <object> value_at(topic, self.name), <object> value_at(topic, self.topic_id)
            prefix = self.key_up_to_partition(group_id, name)
            answers = []
            for partition in <object> value_at(topic, self.partitions):
                if type(partition) is not self.partition_class:
                    raise TypeError(f"not a partition of a commit: {partition!r}")
                answer = copy_of(self.taken)
                put(answer, self.told_index, <object> value_at(partition, self.index))
                answers.append(answer)
                metadata = <object> value_at(partition, self.metadata) or ""
                if len(<str> metadata) > longest:
                    put(answer, self.told_error, self.too_large)
                    continue
                key = self.encode_key(prefix, number_at(partition, self.index))
                value = self.encode_value(
                    number_at(partition, self.offset), number_at(partition, self.leader_epoch), metadata, now_ms, topic_id
                )
                encoded.append((key, value))
                size += PyBytes_GET_SIZE(key) + PyBytes_GET_SIZE(value) + RECORD_OVERHEAD
                committed.append((name, topic_id, partition))
            of_topic = copy_of(self.of_topic)
            put(of_topic, self.told_name, name)
            put(of_topic, self.told_id, topic_id)
            put(of_topic, self.told_partitions, answers)
            told.append(of_topic)
        return told, encoded, size, committed

    cdef bytes encode_key(self, bytes prefix, int64_t index):
        cdef Py_ssize_t size = PyBytes_GET_SIZE(prefix)
        key = PyBytes_FromStringAndSize(NULL, size + 4)
        memcpy(PyBytes_AS_STRING(key), PyBytes_AS_STRING(prefix), size)
        write_big_endian(<uint8_t *> PyBytes_AS_STRING(key) + size, <uint64_t> index, 4)
        return key

    cdef bytes encode_value(self, int64_t offset, int64_t leader_epoch, metadata, int64_t now_ms, topic_id):
        """As `OffsetCommitValue` version 4 is written."""
        cdef Py_ssize_t length, tags = 1 if topic_id == self.no_id else 19
        cdef const char *text = PyUnicode_AsUTF8AndSize(metadata, &length)
        cdef uint64_t announced = <uint64_t> length + 1
        cdef uint8_t *at
        value = PyBytes_FromStringAndSize(NULL, 2 + 8 + 4 + varint_size(announced) + length + 8 + tags)
        at = <uint8_t *> PyBytes_AS_STRING(value)
        write_big_endian(at, VALUE_VERSION, 2)
        write_big_endian(at + 2, <uint64_t> offset, 8)
        write_big_endian(at + 10, <uint64_t> leader_epoch, 4)
        at += 14
        while announced > 127:
            at[0] = <uint8_t> (announced & 127 | 128)
            announced >>= 7
            at += 1
        at[0] = <uint8_t> announced
        memcpy(at + 1, text, length)
        at += 1 + length
        write_big_endian(at, <uint64_t> now_ms, 8)
        at += 8
        at[0] = 0
        if tags > 1:
            at[0], at[1], at[2] = 1, 0, 16
            memcpy(at + 3, PyBytes_AS_STRING(topic_id), 16)
        return value

    def replay(self, dict topics, list committed, now_ms, expires_ms, int64_t order):
        """See `commits.replay_in_python`."""
        cdef dict of_topic = None
        last_name = None
        for name, topic_id, partition in committed:
            if name is not last_name:
                last_name = name
                of_topic = <dict?> topics.setdefault(name, {})
            order += 1
            found = ALLOCATE_TUPLE(self.committed_class, 7)
            set_item(found, 0, <object> value_at(partition, self.offset))
            set_item(found, 1, <object> value_at(partition, self.leader_epoch))
            set_item(found, 2, <object> value_at(partition, self.metadata) or "")
            set_item(found, 3, now_ms)
            set_item(found, 4, expires_ms)
            set_item(found, 5, topic_id)
            set_item(found, 6, order)
            of_topic[<object> value_at(partition, self.index)] = found
        return order


cdef inline void set_item(object made, Py_ssize_t place, object value):
    Py_INCREF(value)
    PyTuple_SET_ITEM(made, place, value)


cdef inline Py_ssize_t varint_size(uint64_t value) noexcept:
    cdef Py_ssize_t size = 1
    while value > 127:
        value >>= 7
        size += 1
    return size


cdef inline void write_big_endian(uint8_t *data, uint64_t value, int size) noexcept:
    cdef int at
    for at in range(size):
        data[size - 1 - at] = <uint8_t> (value >> 8 * at)
