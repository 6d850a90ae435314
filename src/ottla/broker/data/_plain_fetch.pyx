# cython: language_level=3
"""Reads the partitions of a plain fetch, compiled: see `plain_fetch`.

What it does for a partition is what `Fetch` would do. Whatever is not as usual, it leaves to `Fetch`, and what it has
read until then is of no consequence. A fetch that names something twice is not as usual.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_DelItem, PyDict_GetItem, PyDict_SetItem, PyDict_Size
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from ottla.base.slots cimport copy_of, number_at, put, slot, value_at

cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    LENGTH_AT = 8
    MAGIC_AT = 16
    LAST_OFFSET_DELTA_AT = 23
    FIND_WINDOW = 8192
    MOST_STARTS = 64

    FINAL_EPOCH = -1
    NO_SESSION = 0
    USES_TOPIC_IDS = 13
    HAS_REPLICA_STATE = 15

cdef int64_t LITTLE_BYTES = 16384
# Of a reply, so much is bytes that were read; the rest is sent from its files. A client that takes no replies keeps that
# much memory for each.
cdef int64_t MOST_READ_BYTES = 1 << 20


cdef class PlainReads:
    """Made with the classes of all that it reads, and prototypes of what it answers with. See `plain_fetch`."""

    cdef object of_topic, of_partition, nothing, begins_with_a_cut_batch
    cdef type partition_class, state_class, traffic_class, log_class, segment_class, producers_class
    cdef type request_class, topic_class, asked_class
    # The request
    cdef Py_ssize_t session_epoch, session_id, replica_state, state_replica_id, replica_id, rack_id, isolation_level
    cdef Py_ssize_t topics, topic_name, topic_id, asked_partitions, asked_index, asked_epoch, asked_offset, asked_fetched
    cdef Py_ssize_t asked_bytes
    # The reply
    cdef Py_ssize_t told_name, told_id, told_partitions, told_index, told_high_watermark, told_stable, told_start
    cdef Py_ssize_t told_aborted, told_records
    # The partition
    cdef Py_ssize_t state, partition_topic_id, leader_epoch, log, fresh, fresh_segment, traffic
    cdef Py_ssize_t fetch_requests, bytes_out
    # The log
    cdef Py_ssize_t segments, log_start_offset, log_end_offset, high_watermark, producers, ongoing, unreplicated
    cdef Py_ssize_t size, base_offset, file, starts
    cdef Py_ssize_t slice_file, slice_position, slice_size, slice_data

    def __init__(
        self, request, response, type partition, type state, type traffic, type log, type segment, type producers,
        of_topic, of_partition, nothing, begins_with_a_cut_batch,
    ):
        self.of_topic, self.of_partition, self.nothing = of_topic, of_partition, nothing
        self.begins_with_a_cut_batch = begins_with_a_cut_batch
        self.partition_class, self.state_class, self.traffic_class = partition, state, traffic
        self.log_class, self.segment_class, self.producers_class = log, segment, producers
        self.topic_class, self.asked_class = request.FetchTopic, request.FetchPartition
        self.request_class = request
        self.session_epoch = slot(request, "session_epoch")
        self.session_id = slot(request, "session_id")
        self.replica_state = slot(request, "replica_state")
        self.state_replica_id = slot(request.ReplicaState, "replica_id")
        self.replica_id = slot(request, "replica_id")
        self.rack_id = slot(request, "rack_id")
        self.isolation_level = slot(request, "isolation_level")
        self.topics = slot(request, "topics")
        self.topic_name = slot(request.FetchTopic, "topic")
        self.topic_id = slot(request.FetchTopic, "topic_id")
        self.asked_partitions = slot(request.FetchTopic, "partitions")
        self.asked_index = slot(request.FetchPartition, "partition")
        self.asked_epoch = slot(request.FetchPartition, "current_leader_epoch")
        self.asked_offset = slot(request.FetchPartition, "fetch_offset")
        self.asked_fetched = slot(request.FetchPartition, "last_fetched_epoch")
        self.asked_bytes = slot(request.FetchPartition, "partition_max_bytes")
        self.told_name = slot(response.FetchableTopicResponse, "topic")
        self.told_id = slot(response.FetchableTopicResponse, "topic_id")
        self.told_partitions = slot(response.FetchableTopicResponse, "partitions")
        self.told_index = slot(response.PartitionData, "partition_index")
        self.told_high_watermark = slot(response.PartitionData, "high_watermark")
        self.told_stable = slot(response.PartitionData, "last_stable_offset")
        self.told_start = slot(response.PartitionData, "log_start_offset")
        self.told_aborted = slot(response.PartitionData, "aborted_transactions")
        self.told_records = slot(response.PartitionData, "records")
        self.state = slot(partition, "state")
        self.partition_topic_id = slot(partition, "topic_id")
        self.leader_epoch = slot(partition, "leader_epoch")
        self.log = slot(partition, "log")
        self.fresh = slot(partition, "_fresh")
        self.fresh_segment = slot(partition, "_fresh_segment")
        self.traffic = slot(partition, "traffic")
        self.fetch_requests = slot(traffic, "fetch_requests")
        self.bytes_out = slot(traffic, "bytes_out")
        self.segments = slot(log, "segments")
        self.log_start_offset = slot(log, "log_start_offset")
        self.log_end_offset = slot(log, "log_end_offset")
        self.high_watermark = slot(log, "high_watermark")
        self.producers = slot(log, "producers")
        self.ongoing = slot(producers, "_ongoing")
        self.unreplicated = slot(producers, "unreplicated")
        self.size = slot(segment, "size")
        self.base_offset = slot(segment, "base_offset")
        self.file = slot(segment, "_file")
        self.starts = slot(segment, "_starts")
        self.slice_file = slot(type(nothing), "file")
        self.slice_position = slot(type(nothing), "position")
        self.slice_size = slot(type(nothing), "size")
        self.slice_data = slot(type(nothing), "data")

    def read_all(self, partitions, disk, request, int64_t version, int64_t max_bytes, dict at_end, list read):
        """See `plain_fetch.read_none`."""
        cdef int64_t replica_id
        if type(request) is not self.request_class:
            return None
        if number_at(request, self.session_epoch) != FINAL_EPOCH or number_at(request, self.session_id) != NO_SESSION:
            return None
        if version >= HAS_REPLICA_STATE:
            replica_id = number_at(<object> value_at(request, self.replica_state), self.state_replica_id)
        else:
            replica_id = number_at(request, self.replica_id)
        if replica_id >= 0 or len(<str> value_at(request, self.rack_id)):
            return None
        try:
            return self.read_topics(
                partitions, disk, <list> value_at(request, self.topics), version >= USES_TOPIC_IDS,
                number_at(request, self.isolation_level), max_bytes, at_end, read,
            )
        finally:
            disk.reads_may_wait(True)

    cdef object read_topics(
        self, partitions, disk, list topics, bint uses_ids, int64_t isolation_level, int64_t max_bytes, dict at_end,
        list read,
    ):
        cdef list told = [], of_topic
        cdef set named = set() if len(topics) > 1 else None
        cdef set indexes
        cdef int64_t total = 0
        disk.reads_may_wait(False)
        for topic in topics:
            if type(topic) is not self.topic_class or type(<object> value_at(topic, self.asked_partitions)) is not list:
                return None
            topic_id = None
            if uses_ids:
                topic_id = <object> value_at(topic, self.topic_id)
                name = partitions.metadata.topic_name(topic_id)
            else:
                name = <object> value_at(topic, self.topic_name)
            if name is None:
                return None
            if named is not None:
                if name in named:
                    return None
                named.add(name)
            indexes = set() if len(<list> value_at(topic, self.asked_partitions)) > 1 else None
            of_topic = []
            for asked in <list> value_at(topic, self.asked_partitions):
                partition = self.find(partitions, name, topic_id, asked)
                if partition is None:
                    return None
                if indexes is not None:
                    if <object> value_at(asked, self.asked_index) in indexes:
                        return None
                    indexes.add(<object> value_at(asked, self.asked_index))
                data = self.tell(
                    partition, asked, isolation_level, max(max_bytes - total, 0), total == 0, at_end, &total
                )
                if data is None:
                    return None
                of_topic.append(data)
                read.append((partition, data))
            if not of_topic:
                continue  # A topic of which nothing is asked has no place in the reply.
            answer = copy_of(self.of_topic)
            if uses_ids:
                put(answer, self.told_id, topic_id)
            else:
                put(answer, self.told_name, name)
            put(answer, self.told_partitions, of_topic)
            told.append(answer)
        return told, total

    def count(self, list read):
        """The reply is given: its partitions are counted."""
        for partition, data in read:
            traffic = <object> value_at(partition, self.traffic)
            if type(traffic) is self.traffic_class:
                put(traffic, self.fetch_requests, number_at(traffic, self.fetch_requests) + 1)
                size = len(<object> value_at(data, self.told_records))
                put(traffic, self.bytes_out, number_at(traffic, self.bytes_out) + <int64_t> size)

    cdef object find(self, partitions, name, topic_id, asked):
        """The partition that is asked for, if there is nothing to say about it but what is in it."""
        cdef PyObject *found
        cdef int64_t epoch
        if type(asked) is not self.asked_class:
            return None
        found = PyDict_GetItem(partitions, (name, <object> value_at(asked, self.asked_index)))
        if found == NULL or type(<object> found) is not self.partition_class:
            return None
        partition = <object> found
        if (
            type(<object> value_at(partition, self.state)) is not self.state_class
            or type(<object> value_at(partition, self.log)) is not self.log_class
            or (topic_id is not None and topic_id != <object> value_at(partition, self.partition_topic_id))
        ):
            return None
        epoch = number_at(asked, self.asked_epoch)
        if epoch != -1 and epoch != number_at(partition, self.leader_epoch):
            return None
        return partition if number_at(asked, self.asked_fetched) < 0 else None

    cdef object tell(
        self, partition, asked, int64_t isolation_level, int64_t left, bint min_one_batch, dict at_end, int64_t *total
    ):
        """At most `left` bytes of a partition, and where it ends for readers; None if its offset is out of range, or
        there are aborted transactions in it.
        """
        cdef int64_t offset = number_at(asked, self.asked_offset), end_offset, most = number_at(asked, self.asked_bytes)
        log = <object> value_at(partition, self.log)
        high_watermark = <object> value_at(log, self.high_watermark)
        stable = self.last_stable_offset(log, high_watermark)
        end_offset = stable if isolation_level else high_watermark
        records = b""
        if offset == end_offset:
            PyDict_SetItem(at_end, partition, asked)
        elif offset < number_at(log, self.log_start_offset) or offset > end_offset:
            return None
        elif left > 0 or min_one_batch:
            most = min(most, left)
            part = self.read(partition, log, offset, most, end_offset, min_one_batch, total[0] < MOST_READ_BYTES)
            if isolation_level and log.aborted_in(offset, part, end_offset):
                return None
            if min_one_batch or len(part) < most or not self.begins_with_a_cut_batch(part):
                records = part
                if total[0] < MOST_READ_BYTES:
                    records = <object> value_at(part, self.slice_data) or part
                total[0] += len(part)
        data = copy_of(self.of_partition)
        put(data, self.told_index, <object> value_at(asked, self.asked_index))
        put(data, self.told_high_watermark, high_watermark)
        put(data, self.told_stable, stable)
        put(data, self.told_start, <object> value_at(log, self.log_start_offset))
        if isolation_level:
            put(data, self.told_aborted, [])
        put(data, self.told_records, records)
        return data

    cdef object last_stable_offset(self, log, high_watermark):
        """See `ReadableLog.last_stable_offset`."""
        producers = <object> value_at(log, self.producers)
        if type(producers) is self.producers_class and not (
            PyDict_Size(<dict> value_at(producers, self.ongoing))
            or PyDict_Size(<dict> value_at(producers, self.unreplicated))
        ):
            return high_watermark
        return log.last_stable_offset

    cdef object read(
        self, partition, log, int64_t offset, int64_t max_bytes, int64_t end_offset, bint min_one_batch, bint may_copy
    ):
        """As `Partition.read`. The bytes themselves are read only if it `may_copy` them, and they are few."""
        cdef list segments = <list> value_at(log, self.segments)
        cdef PyObject *known
        cdef int64_t position, size
        segment = segments[len(segments) - 1]
        if type(segment) is self.segment_class and end_offset == number_at(log, self.log_end_offset):
            known = NULL
            if value_at(partition, self.fresh_segment) == <PyObject *> segment:
                known = PyDict_GetItem(<dict> value_at(partition, self.fresh), offset)
            if known != NULL:
                position = <object> known
                size = number_at(segment, self.size) - position
                if size <= max_bytes:
                    return self.slice(
                        segment, position, size, self.little(segment, position, size) if may_copy else b""
                    )
            elif offset >= number_at(segment, self.base_offset):
                found = self.find_batch(segment, offset, max_bytes, min_one_batch)
                if found is not None:
                    return found
        return partition.read(offset, max_bytes, end_offset, min_one_batch=min_one_batch)

    cdef object little(self, segment, int64_t position, int64_t size):
        """The bytes themselves, if they are few: what is all bytes is sent in one call."""
        file = <object> value_at(segment, self.file)
        if size > LITTLE_BYTES or file is None:
            return b""
        data = file.read_at(position, size)
        return data if len(data) == size else b""

    cdef object slice(self, segment, int64_t position, int64_t size, data):
        part = copy_of(self.nothing)
        file = <object> value_at(segment, self.file)
        put(part, self.slice_file, segment.file if file is None else file)
        put(part, self.slice_position, position)
        put(part, self.slice_size, size)
        put(part, self.slice_data, data)
        return part

    cdef object find_batch(self, segment, int64_t offset, int64_t max_bytes, bint min_one_batch):
        """What is from a batch on in the active segment, of which all may be read; None if it takes more to find it.

        As `Segment.find` and `Segment.slice`: if it has been read already, where a reader of it continues is noted.
        """
        cdef dict starts = <dict> value_at(segment, self.starts)
        cdef PyObject *known = PyDict_GetItem(starts, offset)
        cdef int64_t start, end = number_at(segment, self.size), at = 0, length, wanted, base_offset
        cdef Py_ssize_t window_size
        cdef const uint8_t *batch
        cdef bytes window
        file = <object> value_at(segment, self.file)
        if file is None:
            return None
        if known != NULL:
            start = <object> known
            PyDict_DelItem(starts, offset)
        else:
            start = segment.offset_index.position_before(offset)
        window = file.read_at(start, min(<int64_t> FIND_WINDOW, end - start))
        window_size = PyBytes_GET_SIZE(window)
        while at <= window_size - HEADER_SIZE:
            batch = <const uint8_t *> PyBytes_AS_STRING(window) + at
            base_offset = <int64_t> big_endian(batch, 8)
            length = <int32_t> big_endian(batch + LENGTH_AT, 4)
            if batch[MAGIC_AT] != 2 or length < HEADER_SIZE - LOG_OVERHEAD or start + at + LOG_OVERHEAD + length > end:
                return None  # of an older format, or damaged
            if base_offset + <int32_t> big_endian(batch + LAST_OFFSET_DELTA_AT, 4) >= offset:
                break
            at += LOG_OVERHEAD + length
        else:
            return None
        wanted = max(max_bytes, LOG_OVERHEAD + length) if min_one_batch else max_bytes
        wanted = max(min(wanted, end - start - at), 0)  # A client may ask for less than nothing.
        if wanted > window_size - at:
            return self.slice(segment, start + at, wanted, b"")
        data = window[at:at + wanted]
        self.note_following(starts, data, start + at)
        return self.slice(segment, start + at, wanted, data)

    cdef int64_t note_following(self, dict starts, bytes data, int64_t position) except -1:
        """Where the batch begins that a reader of `data`, which is at `position`, will ask for next."""
        cdef int64_t at = 0, length, next_offset = -1
        cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
        cdef const uint8_t *batch
        while at <= size - HEADER_SIZE:
            batch = <const uint8_t *> PyBytes_AS_STRING(data) + at
            length = <int32_t> big_endian(batch + LENGTH_AT, 4)
            if batch[MAGIC_AT] != 2 or length < HEADER_SIZE - LOG_OVERHEAD or at + LOG_OVERHEAD + length > size:
                break
            next_offset = <int64_t> big_endian(batch, 8) + <int32_t> big_endian(batch + LAST_OFFSET_DELTA_AT, 4) + 1
            at += LOG_OVERHEAD + length
        if at:
            if PyDict_Size(starts) >= MOST_STARTS:
                PyDict_DelItem(starts, next(iter(starts)))
            PyDict_SetItem(starts, next_offset, position + at)
        return 0


cdef inline uint64_t big_endian(const uint8_t *data, int size) noexcept:
    cdef uint64_t value = 0
    cdef int at
    for at in range(size):
        value = value << 8 | data[at]
    return value
