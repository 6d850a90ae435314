# cython: language_level=3
from libc.stdint cimport int64_t


cdef class PartitionEnd:
    """See `partition_end.pyx`. `NOT_NOW` is -1."""

    cdef object is_sound
    cdef type partition_class, state_class, settings_class, log_class, segment_class, epochs_class
    cdef type producers_class, producer_class
    # The partition
    cdef Py_ssize_t state, settings, log, leader_epoch, fresh, fresh_segment, awaits_flush
    cdef Py_ssize_t flush_messages
    cdef Py_ssize_t has_enough_replicas, followers, local_end_offset, state_high_watermark
    # The log
    cdef Py_ssize_t segments, config, unfinished, log_start_offset, log_end_offset, high_watermark, recovery_point
    cdef Py_ssize_t epochs, entries, producers, by_id, unreplicated
    cdef Py_ssize_t producer_epoch, open_transaction, batches
    cdef Py_ssize_t size, base_offset, file, room_config, room_size, room_timestamp
    cdef Py_ssize_t known_max_timestamp, since_entry, interval, reserved_to

    cdef int64_t append(
        self, partition, data, int64_t last_offset_delta, int64_t max_timestamp, tuple header
    ) except? -2
    cdef object sender_of_next(self, producers, tuple header)
    cdef int assign(self, data, int64_t base_offset, int64_t leader_epoch) except -1
    cdef int on_grown(
        self, partition, state, log, segment, int64_t base_offset, int64_t position, int64_t end_offset
    ) except -1
