# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The digest of rows, compiled. `_slow_digest` is its twin and its specification."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from ottla.records._fast cimport ColumnInput

cdef enum:
    STRIPE = 32

cdef uint64_t PRIME_1 = 0x9E3779B185EBCA87
cdef uint64_t PRIME_2 = 0xC2B2AE3D27D4EB4F
cdef uint64_t PRIME_3 = 0x165667B19E3779F9
cdef uint64_t PRIME_4 = 0x85EBCA77C2B2AE63
cdef uint64_t PRIME_5 = 0x27D4EB2F165667C5


cdef inline uint64_t rotated(uint64_t value, int bits) noexcept nogil:
    return value << bits | value >> (64 - bits)


cdef inline uint32_t word_of(const uint8_t *at) noexcept nogil:
    return at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24


cdef inline uint64_t long_of(const uint8_t *at) noexcept nogil:
    return (
        <uint64_t>at[0] | <uint64_t>at[1] << 8 | <uint64_t>at[2] << 16 | <uint64_t>at[3] << 24
        | <uint64_t>at[4] << 32 | <uint64_t>at[5] << 40 | <uint64_t>at[6] << 48 | <uint64_t>at[7] << 56
    )


cdef inline uint64_t taken(uint64_t lane, uint64_t value) noexcept nogil:
    return rotated(lane + value * PRIME_2, 31) * PRIME_1


cdef inline uint64_t merged(uint64_t hashed, uint64_t lane) noexcept nogil:
    return (hashed ^ taken(0, lane)) * PRIME_1 + PRIME_4


cdef uint64_t xxh64(const uint8_t *at, Py_ssize_t size, uint64_t seed) noexcept nogil:
    """https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md"""
    cdef const uint8_t *end = at + size
    cdef uint64_t hashed, first, second, third, fourth
    if size >= STRIPE:
        first, second, third, fourth = seed + PRIME_1 + PRIME_2, seed + PRIME_2, seed, seed - PRIME_1
        while end - at >= STRIPE:
            first = taken(first, long_of(at))
            second = taken(second, long_of(at + 8))
            third = taken(third, long_of(at + 16))
            fourth = taken(fourth, long_of(at + 24))
            at += STRIPE
        hashed = rotated(first, 1) + rotated(second, 7) + rotated(third, 12) + rotated(fourth, 18)
        hashed = merged(merged(merged(merged(hashed, first), second), third), fourth)
    else:
        hashed = seed + PRIME_5
    hashed += <uint64_t>size
    while end - at >= 8:
        hashed = rotated(hashed ^ taken(0, long_of(at)), 27) * PRIME_1 + PRIME_4
        at += 8
    if end - at >= 4:
        hashed = rotated(hashed ^ word_of(at) * PRIME_1, 23) * PRIME_2 + PRIME_3
        at += 4
    while at < end:
        hashed = rotated(hashed ^ at[0] * PRIME_5, 11) * PRIME_1
        at += 1
    hashed = (hashed ^ hashed >> 33) * PRIME_2
    hashed = (hashed ^ hashed >> 29) * PRIME_3
    return hashed ^ hashed >> 32


cdef inline uint64_t folded(uint64_t hashed, ColumnInput column, Py_ssize_t row) except? 0:
    cdef const char *data = NULL
    cdef Py_ssize_t size = 0
    column.get(row, &data, &size)
    return xxh64(NULL, 0, ~hashed) if size < 0 else xxh64(<const uint8_t *>data, size, hashed)


def rows_digest(Py_ssize_t row_count, columns, headers):
    """See `_slow_digest`."""
    cdef list inputs = [None if one is None else ColumnInput(one) for one in columns]
    cdef ColumnInput header_keys = None, header_values = None, column
    cdef Py_ssize_t first = 0, row, entry
    cdef uint64_t total = 0, hashed
    cdef const int32_t *bounds = NULL
    cdef Py_buffer offsets
    if headers is not None:
        first = headers.first
        header_keys, header_values = ColumnInput(headers.keys), ColumnInput(headers.values)
        PyObject_GetBuffer(headers.offsets, &offsets, PyBUF_SIMPLE)
        bounds = <const int32_t *>offsets.buf
    try:
        if bounds != NULL and (first < 0 or first + row_count >= offsets.len // 4):
            raise ValueError(f"a column has no row {first + row_count}")
        for row in range(row_count):
            hashed = 0
            for column in inputs:
                hashed = xxh64(NULL, 0, ~hashed) if column is None else folded(hashed, column, row)
            if bounds != NULL:
                for entry in range(bounds[first + row], bounds[first + row + 1]):
                    hashed = folded(hashed, header_keys, entry)
                    hashed = folded(hashed, header_values, entry)
            total += hashed
        return total
    finally:
        if bounds != NULL:
            PyBuffer_Release(&offsets)
