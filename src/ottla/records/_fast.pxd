"""What other compiled modules use of the kernel: writing records, and reading columns that a caller gives."""

from libc.stdint cimport int64_t, uint8_t


cdef class RecordWriter:
    cdef bytearray buffer
    cdef uint8_t *data
    cdef Py_ssize_t reserved
    cdef Py_ssize_t used
    cdef Py_ssize_t capacity
    cdef Py_ssize_t limit
    cdef bint has_base
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t last_offset_delta
    cdef readonly int64_t record_count

    cdef int reserve(self, Py_ssize_t more) except -1
    cdef int write(
        self, int64_t timestamp, int64_t offset_delta,
        const char *key, Py_ssize_t key_size, const char *value, Py_ssize_t value_size,
        list headers, Py_ssize_t headers_size,
    ) except -1
    cdef uint8_t *write_headers(self, uint8_t *out, list headers) noexcept


cdef class ColumnInput:
    cdef Py_buffer offsets
    cdef Py_buffer data
    cdef Py_buffer validity
    cdef int exported
    cdef bint has_validity
    cdef Py_ssize_t first
    cdef Py_ssize_t rows

    cdef int get(self, Py_ssize_t row, const char **data, Py_ssize_t *size) except -1
