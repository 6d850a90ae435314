# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Avro values from bytes and to bytes, and rows to columns, compiled. `_slow` is the twin and the specification.

Nothing here trusts a length: every number and every span is checked against the end of the bytes before it is touched, and
what is nested, or takes no bytes, is counted. What is wrong is only noticed here: the twin is asked once more for the same
bytes or the same value, and says what it is. So both say the same.

Columns are memory in Arrow's layout, which is handed out whole when a batch is finished, and never copied.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.datetime cimport (
    PyDateTime_CheckExact,
    date_new,
    datetime_day,
    datetime_hour,
    datetime_microsecond,
    datetime_minute,
    datetime_month,
    datetime_new,
    datetime_second,
    datetime_tzinfo,
    datetime_year,
    import_datetime,
)
from cpython.dict cimport PyDict_CheckExact, PyDict_GetItem, PyDict_SetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import sys
from datetime import UTC

from ottla.schemas.avro import _slow
from ottla.schemas.faults import CannotDecode, CannotEncode

if sys.byteorder != "little":
    raise ImportError("numbers are copied as they lie in memory, which is the wrong way round here")

cdef extern from "Python.h":
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    bint PyUnicode_CheckExact(object value)

import_datetime()

cdef object _UTC = UTC

# As in `plan`.
cdef enum:
    NULL_ = 0
    BOOLEAN = 1
    INT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    BYTES = 6
    STRING = 7
    FIXED = 8
    ENUM = 9
    ARRAY = 10
    MAP = 11
    UNION = 12
    RECORD = 13
    LONG_AS_FLOAT = 14
    LONG_AS_DOUBLE = 15
    FLOAT_AS_DOUBLE = 16
    BRANCH = 17
    ERROR = 18
    MOST_NESTED = 128
    MOST_EMPTY = 1 << 20

# As in `columns`.
cdef enum:
    C_NULLS = 0
    C_BOOLEANS = 1
    C_INTS = 2
    C_LONGS = 3
    C_FLOATS = 4
    C_DOUBLES = 5
    C_VARIABLE = 6
    C_FIXED = 7
    C_DECIMALS = 8
    C_LISTS = 9
    C_MAPS = 10
    C_STRUCTS = 11
    C_INTERVALS = 12


class _Wrong(Exception):
    """Something is wrong, and the twin will say what."""


cdef object _WRONG = _Wrong()

cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end
    int depth
    int64_t empty


cdef int wrong() except -1:
    raise _WRONG


cdef class Step:
    """A plan for decoding, in C."""

    cdef int code
    cdef int logical
    cdef int scale
    cdef int reader_branch
    cdef bint takes_nothing
    cdef bint in_order
    cdef bint simple
    cdef Py_ssize_t size
    cdef Py_ssize_t count
    cdef Step inner
    cdef list names
    cdef list symbols
    cdef list kept
    cdef PyObject** steps
    cdef PyObject** givens
    cdef int32_t* places
    cdef object factory
    cdef object plan

    def __dealloc__(self):
        PyMem_Free(self.steps)
        PyMem_Free(self.givens)
        PyMem_Free(self.places)

    cdef int allocate(self, Py_ssize_t count) except -1:
        self.count = count
        self.steps = <PyObject**>PyMem_Malloc((count + 1) * sizeof(PyObject*))
        self.givens = <PyObject**>PyMem_Malloc((count + 1) * sizeof(PyObject*))
        self.places = <int32_t*>PyMem_Malloc((count + 1) * sizeof(int32_t))
        if self.steps == NULL or self.givens == NULL or self.places == NULL:
            raise MemoryError
        return 0


cdef Step make_step(object plan, dict made, dict factories, bint as_raw):
    cdef Step step = made.get(id(plan))
    cdef Py_ssize_t index
    if step is not None:
        return step
    step = Step.__new__(Step)
    made[id(plan)] = step
    step.plan = plan
    step.code = plan.code
    step.logical = 0 if as_raw else plan.logical
    step.scale = plan.scale
    step.size = plan.size
    step.reader_branch = plan.reader_branch
    step.takes_nothing = plan.takes_nothing
    step.names = [sys.intern(name) for name in plan.names]
    step.symbols = list(plan.symbols)
    step.factory = factories.get(plan.name) if plan.code == RECORD else None
    step.kept = []
    if plan.inner is not None:
        step.inner = make_step(plan.inner, made, factories, as_raw)
    if plan.branches:
        step.allocate(len(plan.branches))
        for index, branch in enumerate(plan.branches):
            inner = make_step(branch, made, factories, as_raw)
            step.kept.append(inner)
            step.steps[index] = <PyObject*>inner
    if plan.steps:
        step.allocate(len(plan.steps))
        expected = 0
        step.in_order = True
        for index, (place, part, given) in enumerate(plan.steps):
            inner = make_step(part, made, factories, as_raw)
            step.kept.append(inner)
            step.steps[index] = <PyObject*>inner
            step.givens[index] = NULL
            if given is not None:
                step.kept.append(given)
                step.givens[index] = <PyObject*>given
            step.places[index] = place
            if place >= 0:
                step.in_order = step.in_order and place == expected
                expected += 1
    return step


cdef inline int64_t read_long(Cursor* cursor) except? -1:
    cdef uint64_t number = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        if cursor.at >= cursor.end:
            wrong()
        byte = cursor.at[0]
        cursor.at += 1
        number |= (<uint64_t>(byte & 0x7F)) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            wrong()
    return <int64_t>(number >> 1) ^ -<int64_t>(number & 1)


cdef inline int need(Cursor* cursor, int64_t count) except -1:
    if count < 0 or count > cursor.end - cursor.at:
        wrong()
    return 0


cdef inline int64_t read_block(Step step, Cursor* cursor) except? -1:
    cdef int64_t count = read_long(cursor)
    if count < 0:
        count = -count
        if count < 0 or read_long(cursor) < 0:
            wrong()
    if step.inner.takes_nothing and step.code == ARRAY:
        if count > MOST_EMPTY:
            wrong()
        cursor.empty += count
        if cursor.empty > MOST_EMPTY:
            wrong()
    elif count > cursor.end - cursor.at:
        wrong()
    return count


cdef int64_t days_of(int64_t year, int64_t month, int64_t day) noexcept:
    """Days since 1970 of a date of the Gregorian calendar, for years from 1 on. A year begins in March here, so that the
    leap day is its last."""
    cdef int64_t era, year_of_era, day_of_year
    if month <= 2:
        year -= 1
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


cdef int date_of(int64_t days, int* year, int* month, int* day) except -1:
    """The other way round, for days of the years 1 to 9999."""
    cdef int64_t era, day_of_era, year_of_era, day_of_year, shifted
    if days < -719162 or days > 2932896:
        wrong()
    days += 719468
    era = days // 146097
    day_of_era = days - era * 146097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day[0] = <int>(day_of_year - (153 * shifted + 2) // 5 + 1)
    month[0] = <int>(shifted + 3 if shifted < 10 else shifted - 9)
    year[0] = <int>(year_of_era + era * 400 + (1 if month[0] <= 2 else 0))
    return 0


cdef object moment(int64_t value, int64_t in_a_second, object zone):
    cdef int year, month, day
    cdef int64_t seconds = value // in_a_second, rest, days
    if value % in_a_second < 0:
        seconds -= 1
    rest = value - seconds * in_a_second
    days = seconds // 86400
    if seconds % 86400 < 0:
        days -= 1
    seconds -= days * 86400
    date_of(days, &year, &month, &day)
    return datetime_new(
        year, month, day, <int>(seconds // 3600), <int>(seconds // 60 % 60), <int>(seconds % 60),
        <int>(rest * (1_000_000 // in_a_second)), zone,
    )


cdef object logical_number(int64_t value, int logical):
    cdef int year, month, day
    if logical == 4:
        return moment(value, 1_000, _UTC)
    if logical == 5:
        return moment(value, 1_000_000, _UTC)
    if logical == 7:
        return moment(value, 1_000, None)
    if logical == 8:
        return moment(value, 1_000_000, None)
    if logical == 1:
        date_of(value, &year, &month, &day)
        return date_new(year, month, day)
    if logical == 2:
        return _slow._time_of_day(value * 1_000)
    if logical == 3:
        return _slow._time_of_day(value)
    return value


cdef object logical_bytes(bytes content, Step step):
    if step.logical == 10:
        return _slow._decimal(content, step.scale)
    if step.logical == 11:
        return _slow._big_decimal(content)
    if step.logical == 12:
        return _slow.UUID(bytes=content)
    return _slow.Duration(*_slow._DURATION.unpack(content))


cdef object read_text(Cursor* cursor, Py_ssize_t length):
    cdef object text = PyUnicode_DecodeUTF8(<const char*>cursor.at, length, NULL)
    cursor.at += length
    return text


cdef object read_value(Step step, Cursor* cursor, bint tagged):
    cdef int code = step.code
    cdef int64_t number
    cdef float single
    cdef double double_
    cdef bytes content
    if code == STRING:
        number = read_long(cursor)
        need(cursor, number)
        text = read_text(cursor, number)
        return _slow.UUID(text) if step.logical == 12 else text
    if code == LONG:
        number = read_long(cursor)
        return logical_number(number, step.logical) if step.logical else number
    if code == INT:
        number = read_long(cursor)
        if number > INT32_MAX or number < INT32_MIN:
            wrong()
        return logical_number(number, step.logical) if step.logical else number
    if code == RECORD:
        return read_record(step, cursor, tagged)
    if code == UNION:
        number = read_long(cursor)
        if number < 0 or number >= step.count:
            wrong()
        enter(cursor)
        value = read_value(<Step>step.steps[number], cursor, tagged)
        cursor.depth -= 1
        return value
    if code == BRANCH:
        value = read_value(step.inner, cursor, tagged)
        return (step.reader_branch, value) if tagged else value
    if code == NULL_:
        return None
    if code == DOUBLE:
        need(cursor, 8)
        memcpy(&double_, cursor.at, 8)
        cursor.at += 8
        return double_
    if code == FLOAT or code == FLOAT_AS_DOUBLE:
        need(cursor, 4)
        memcpy(&single, cursor.at, 4)
        cursor.at += 4
        return <double>single
    if code == BOOLEAN:
        need(cursor, 1)
        number = cursor.at[0]
        if number > 1:
            wrong()
        cursor.at += 1
        return number == 1
    if code == BYTES or code == FIXED:
        number = read_long(cursor) if code == BYTES else step.size
        need(cursor, number)
        content = PyBytes_FromStringAndSize(<const char*>cursor.at, number)
        cursor.at += number
        return logical_bytes(content, step) if step.logical else content
    if code == ENUM:
        number = read_long(cursor)
        if number < 0 or number >= len(step.symbols):
            wrong()
        symbol = step.symbols[number]
        if symbol is None:
            wrong()
        return symbol
    if code == ARRAY:
        return read_array(step, cursor, tagged)
    if code == MAP:
        return read_map(step, cursor, tagged)
    if code == LONG_AS_DOUBLE:
        return <double>read_long(cursor)
    if code == LONG_AS_FLOAT:
        return <double><float>read_long(cursor)
    wrong()


cdef inline int enter(Cursor* cursor) except -1:
    cursor.depth += 1
    if cursor.depth > MOST_NESTED:
        wrong()
    return 0


cdef object read_array(Step step, Cursor* cursor, bint tagged):
    cdef list values = []
    cdef int64_t count
    enter(cursor)
    while True:
        count = read_block(step, cursor)
        if count == 0:
            break
        while count > 0:
            values.append(read_value(step.inner, cursor, tagged))
            count -= 1
    cursor.depth -= 1
    return values


cdef object read_map(Step step, Cursor* cursor, bint tagged):
    cdef dict values = {}
    cdef list pairs = []
    cdef int64_t count, length
    enter(cursor)
    while True:
        count = read_block(step, cursor)
        if count == 0:
            break
        while count > 0:
            length = read_long(cursor)
            need(cursor, length)
            key = read_text(cursor, length)
            value = read_value(step.inner, cursor, tagged)
            if tagged:
                pairs.append((key, value))
            else:
                values[key] = value
            count -= 1
    cursor.depth -= 1
    return pairs if tagged else values


cdef object read_record(Step step, Cursor* cursor, bint tagged):
    cdef dict values
    cdef Py_ssize_t index
    cdef int32_t place
    cdef Step part
    cdef Cursor inner
    enter(cursor)
    values = {} if step.in_order else dict.fromkeys(step.names)
    for index in range(step.count):
        part = <Step>step.steps[index]
        place = step.places[index]
        if step.givens[index] != NULL:
            inner.at = <const uint8_t*>PyBytes_AS_STRING(<bytes>step.givens[index])
            inner.end = inner.at + PyBytes_GET_SIZE(<bytes>step.givens[index])
            inner.depth = cursor.depth
            inner.empty = cursor.empty
            PyDict_SetItem(values, step.names[place], read_value(part, &inner, tagged))
            cursor.empty = inner.empty
        elif place < 0:
            skip_value(part, cursor)
        else:
            PyDict_SetItem(values, step.names[place], read_value(part, cursor, tagged))
    cursor.depth -= 1
    return values if step.factory is None else step.factory(values)


cdef int skip_span(Cursor* cursor, bint is_text) except -1:
    cdef int64_t length = read_long(cursor)
    need(cursor, length)
    if is_text and not is_utf_8(cursor.at, length):
        wrong()
    cursor.at += length
    return 0


cdef int skip_value(Step step, Cursor* cursor) except -1:
    cdef int code = step.code
    cdef int64_t number
    cdef Py_ssize_t index
    if code == INT or code == LONG or code == LONG_AS_FLOAT or code == LONG_AS_DOUBLE:
        number = read_long(cursor)
        if code == INT and (number > INT32_MAX or number < INT32_MIN):
            wrong()
        if step.logical:
            logical_number(number, step.logical)
    elif code == STRING or code == BYTES:
        if step.logical:
            read_value(step, cursor, False)  # It is refused if it is wrong, as in the twin.
        else:
            skip_span(cursor, code == STRING)
    elif code == FLOAT or code == FLOAT_AS_DOUBLE:
        need(cursor, 4)
        cursor.at += 4
    elif code == DOUBLE:
        need(cursor, 8)
        cursor.at += 8
    elif code == BOOLEAN or code == ENUM or code == FIXED:
        read_value(step, cursor, False)
    elif code == NULL_:
        pass
    elif code == BRANCH:
        skip_value(step.inner, cursor)
    elif code == UNION:
        number = read_long(cursor)
        if number < 0 or number >= step.count:
            wrong()
        enter(cursor)
        skip_value(<Step>step.steps[number], cursor)
        cursor.depth -= 1
    elif code == ARRAY or code == MAP:
        enter(cursor)
        while True:
            number = read_block(step, cursor)
            if number == 0:
                break
            while number > 0:
                if code == MAP:
                    skip_span(cursor, True)
                skip_value(step.inner, cursor)
                number -= 1
        cursor.depth -= 1
    elif code == RECORD:
        enter(cursor)
        for index in range(step.count):
            if step.givens[index] == NULL:
                skip_value(<Step>step.steps[index], cursor)
        cursor.depth -= 1
    else:
        wrong()
    return 0


cdef class Decoder:
    """As `_slow.Decoder`."""

    cdef Step step
    cdef object twin
    cdef bint tagged

    def __init__(self, plan, factories=None, as_raw=False, as_tree=False):
        self.step = make_step(plan, {}, dict(factories or {}), as_raw)
        self.twin = _slow.Decoder(plan, factories, as_raw, as_tree)
        self.tagged = as_tree

    def decode(self, content, Py_ssize_t start=0):
        cdef Cursor cursor
        cdef Py_buffer view
        if PyBytes_CheckExact(content):
            if start < 0 or start > PyBytes_GET_SIZE(content):
                return self.twin.decode(content, start)
            cursor.at = <const uint8_t*>PyBytes_AS_STRING(content) + start
            cursor.end = <const uint8_t*>PyBytes_AS_STRING(content) + PyBytes_GET_SIZE(content)
            cursor.depth = 0
            cursor.empty = 0
            try:
                return read_value(self.step, &cursor, self.tagged)
            except (_Wrong, UnicodeDecodeError, ValueError, OverflowError, CannotDecode):
                return self.twin.decode(content, start)
        PyObject_GetBuffer(content, &view, PyBUF_SIMPLE)
        try:
            if start < 0 or start > view.len:
                return self.twin.decode(content, start)
            cursor.at = <const uint8_t*>view.buf + start
            cursor.end = <const uint8_t*>view.buf + view.len
            cursor.depth = 0
            cursor.empty = 0
            try:
                return read_value(self.step, &cursor, self.tagged)
            except (_Wrong, UnicodeDecodeError, ValueError, OverflowError, CannotDecode):
                return self.twin.decode(content, start)
        finally:
            PyBuffer_Release(&view)

    def decode_all(self, content, start=0):
        return self.twin.decode_all(content, start)


# Encoding.

cdef struct Out:
    uint8_t* data
    Py_ssize_t length
    Py_ssize_t capacity
    bint is_own


cdef int grow(Out* out, Py_ssize_t more) except -1:
    cdef Py_ssize_t capacity = out.capacity * 2
    cdef uint8_t* data
    if capacity < out.length + more:
        capacity = out.length + more
    if out.is_own:
        data = <uint8_t*>PyMem_Realloc(out.data, capacity)
        if data == NULL:
            raise MemoryError
    else:
        data = <uint8_t*>PyMem_Malloc(capacity)
        if data == NULL:
            raise MemoryError
        memcpy(data, out.data, out.length)
    out.data = data
    out.capacity = capacity
    out.is_own = True
    return 0


cdef inline int put(Out* out, const void* data, Py_ssize_t length) except -1:
    if out.length + length > out.capacity:
        grow(out, length)
    memcpy(out.data + out.length, data, length)
    out.length += length
    return 0


cdef inline int put_long(Out* out, int64_t value) except -1:
    cdef uint64_t number = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    if out.length + 10 > out.capacity:
        grow(out, 10)
    while number > 0x7F:
        out.data[out.length] = <uint8_t>((number & 0x7F) | 0x80)
        out.length += 1
        number >>= 7
    out.data[out.length] = <uint8_t>number
    out.length += 1
    return 0


cdef class WriteStep:
    """A plan for encoding, in C."""

    cdef int code
    cdef int logical
    cdef Py_ssize_t size
    cdef Py_ssize_t count
    cdef int nullable
    cdef WriteStep inner
    cdef list names
    cdef list kept
    cdef dict numbers
    cdef PyObject** steps
    cdef PyObject** defaults
    cdef object plan

    def __dealloc__(self):
        PyMem_Free(self.steps)
        PyMem_Free(self.defaults)


cdef WriteStep make_write_step(object plan, dict made):
    cdef WriteStep step = made.get(id(plan))
    cdef Py_ssize_t index
    if step is not None:
        return step
    step = WriteStep.__new__(WriteStep)
    made[id(plan)] = step
    step.plan = plan
    step.code = plan.code
    step.logical = plan.logical
    step.size = plan.size
    step.names = [sys.intern(name) for name in plan.names]
    step.numbers = plan.numbers
    step.kept = []
    step.nullable = -1
    if plan.inner is not None:
        step.inner = make_write_step(plan.inner, made)
    parts = plan.branches or plan.steps
    step.count = len(parts)
    step.steps = <PyObject**>PyMem_Malloc((step.count + 1) * sizeof(PyObject*))
    step.defaults = <PyObject**>PyMem_Malloc((step.count + 1) * sizeof(PyObject*))
    if step.steps == NULL or step.defaults == NULL:
        raise MemoryError
    for index, part in enumerate(parts):
        inner = make_write_step(part, made)
        step.kept.append(inner)
        step.steps[index] = <PyObject*>inner
        step.defaults[index] = NULL
    for index, default in enumerate(plan.defaults):
        if default is not None:
            step.kept.append(default)
            step.defaults[index] = <PyObject*>default
    if plan.code == UNION:
        nulls = [index for index, branch in enumerate(plan.branches) if branch.code == NULL_]
        if len(nulls) == 1 and len(plan.branches) == 2:
            step.nullable = nulls[0]
    return step


cdef int write_value(WriteStep step, object value, Out* out, int depth) except -1:
    cdef int code = step.code
    cdef int overflow
    cdef int64_t number
    cdef Py_ssize_t size
    cdef double double_
    cdef float single
    cdef const char* text
    cdef PyObject* found
    if depth > MOST_NESTED:
        wrong()
    if code == STRING:
        if not PyUnicode_CheckExact(value):
            return write_other(step, value, out)
        text = PyUnicode_AsUTF8AndSize(value, &size)
        put_long(out, size)
        return put(out, text, size)
    if code == LONG or code == INT:
        if not PyLong_CheckExact(value):
            if step.logical >= 4 and step.logical <= 9 and PyDateTime_CheckExact(value):
                return write_moment(step, value, out)
            return write_other(step, value, out)
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow or (code == INT and (number > INT32_MAX or number < INT32_MIN)):
            wrong()
        return put_long(out, number)
    if code == RECORD:
        return write_record(step, value, out, depth)
    if code == UNION:
        return write_union(step, value, out, depth)
    if code == DOUBLE:
        if not PyFloat_CheckExact(value):
            return write_other(step, value, out)
        double_ = PyFloat_AS_DOUBLE(value)
        return put(out, &double_, 8)
    if code == FLOAT:
        if not PyFloat_CheckExact(value):
            return write_other(step, value, out)
        double_ = PyFloat_AS_DOUBLE(value)
        single = <float>double_
        if single - single != 0 and double_ - double_ == 0:
            wrong()
        return put(out, &single, 4)
    if code == BOOLEAN:
        if value is not True and value is not False:
            wrong()
        if out.length + 1 > out.capacity:
            grow(out, 1)
        out.data[out.length] = value is True
        out.length += 1
        return 0
    if code == NULL_:
        if value is not None:
            wrong()
        return 0
    if code == BYTES:
        if not PyBytes_CheckExact(value):
            return write_other(step, value, out)
        put_long(out, PyBytes_GET_SIZE(value))
        return put(out, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    if code == ENUM:
        if not PyUnicode_CheckExact(value):
            return write_other(step, value, out)
        found = PyDict_GetItem(step.numbers, value)
        if found == NULL:
            wrong()
        return put_long(out, <object>found)
    if code == ARRAY:
        if not PyList_CheckExact(value) and not isinstance(value, (list, tuple)):
            wrong()
        if len(value):
            put_long(out, len(value))
            for one in value:
                write_value(step.inner, one, out, depth + 1)
        return put_long(out, 0)
    if code == MAP:
        return write_map(step, value, out, depth)
    return write_other(step, value, out)


cdef int write_other(WriteStep step, object value, Out* out) except -1:
    """Values that are rare, through the twin: those of logical types, subclasses, what has to be converted."""
    cdef bytearray content = bytearray()
    _slow._write(step.plan, value, content, 0)
    return put(out, <const char*><char*>content, len(content))


cdef int write_moment(WriteStep step, object value, Out* out) except -1:
    cdef object zone = datetime_tzinfo(value)
    cdef int64_t seconds, micros
    if step.logical <= 6 and zone is not None and zone is not _UTC:
        return write_other(step, value, out)
    seconds = days_of(datetime_year(value), datetime_month(value), datetime_day(value)) * 86400
    seconds += datetime_hour(value) * 3600 + datetime_minute(value) * 60 + datetime_second(value)
    micros = seconds * 1_000_000 + datetime_microsecond(value)
    if step.logical == 5 or step.logical == 8:
        return put_long(out, micros)
    if step.logical == 4 or step.logical == 7:
        return put_long(out, seconds * 1_000 + datetime_microsecond(value) // 1_000)
    if micros > 9_223_372_036_854_775 or micros < -9_223_372_036_854_775:
        wrong()
    return put_long(out, micros * 1_000)


cdef int write_map(WriteStep step, object value, Out* out, int depth) except -1:
    cdef Py_ssize_t size
    cdef const char* text
    if not PyDict_CheckExact(value):
        if not isinstance(value, _slow.Mapping):
            wrong()
        value = dict(value)
    if value:
        put_long(out, len(value))
        for key, one in (<dict>value).items():
            if not isinstance(key, str):
                wrong()
            text = PyUnicode_AsUTF8AndSize(key, &size)
            put_long(out, size)
            put(out, text, size)
            write_value(step.inner, one, out, depth + 1)
    return put_long(out, 0)


cdef int write_union(WriteStep step, object value, Out* out, int depth) except -1:
    cdef Py_ssize_t index
    if step.nullable >= 0 and type(value) is not tuple:
        if value is None:
            return put_long(out, step.nullable)
        put_long(out, 1 - step.nullable)
        return write_value(<WriteStep>step.steps[1 - step.nullable], value, out, depth + 1)
    index, value = _slow._branch(step.plan, value)
    put_long(out, index)
    return write_value(<WriteStep>step.steps[index], value, out, depth + 1)


cdef int write_record(WriteStep step, object value, Out* out, int depth) except -1:
    cdef Py_ssize_t index
    cdef PyObject* found
    cdef bint is_mapping
    if PyDict_CheckExact(value):
        for index in range(step.count):
            found = PyDict_GetItem(value, step.names[index])
            if found != NULL:
                write_value(<WriteStep>step.steps[index], <object>found, out, depth + 1)
            elif step.defaults[index] != NULL:
                put(out, PyBytes_AS_STRING(<bytes>step.defaults[index]), PyBytes_GET_SIZE(<bytes>step.defaults[index]))
            else:
                wrong()
        return 0
    is_mapping = isinstance(value, _slow.Mapping)
    if not is_mapping and (value is None or isinstance(value, (str, bytes, int, float, list, tuple))):
        wrong()
    for index in range(step.count):
        name = step.names[index]
        part = value.get(name, _slow._MISSING) if is_mapping else getattr(value, name, _slow._MISSING)
        if part is not _slow._MISSING:
            write_value(<WriteStep>step.steps[index], part, out, depth + 1)
        elif step.defaults[index] != NULL:
            put(out, PyBytes_AS_STRING(<bytes>step.defaults[index]), PyBytes_GET_SIZE(<bytes>step.defaults[index]))
        else:
            wrong()
    return 0


cdef class Encoder:
    """As `_slow.Encoder`."""

    cdef WriteStep step
    cdef object twin

    def __init__(self, plan):
        self.step = make_write_step(plan, {})
        self.twin = _slow.Encoder(plan)

    def encode(self, value, bytes prefix=b""):
        cdef uint8_t start[1024]
        cdef Out out
        out.data = start
        out.length = 0
        out.capacity = sizeof(start)
        out.is_own = False
        try:
            put(&out, PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix))
            write_value(self.step, value, &out, 0)
            return PyBytes_FromStringAndSize(<const char*>out.data, out.length)
        except (_Wrong, CannotEncode, UnicodeEncodeError):
            return self.twin.encode(value, prefix)
        finally:
            if out.is_own:
                PyMem_Free(out.data)


# Columns.

cdef class Memory:
    """Bytes of a finished column. Whoever has a view of it keeps it."""

    cdef uint8_t* data
    cdef Py_ssize_t length

    def __dealloc__(self):
        PyMem_Free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.length, 1, flags)


cdef Memory memory(uint8_t* data, Py_ssize_t length):
    cdef Memory made = Memory.__new__(Memory)
    if data == NULL:
        data = <uint8_t*>PyMem_Malloc(1)  # Arrow takes no address of nothing.
        if data == NULL:
            raise MemoryError
    made.data = data
    made.length = length
    return made


cdef class Column:
    """A column that grows. `values` has values of one width (booleans: a byte each), or offsets; `data` what they lead to."""

    cdef int kind
    cdef Py_ssize_t width
    cdef Py_ssize_t length
    cdef Py_ssize_t nulls
    cdef Py_ssize_t capacity
    cdef Py_ssize_t data_length
    cdef Py_ssize_t data_capacity
    cdef uint8_t* values
    cdef uint8_t* data
    cdef uint8_t* valid
    """A byte for each value, once there is a null; they are made bits in the end."""
    cdef bint is_text
    cdef bytes beyond
    """Of decimals: the first number that has too many digits, little-endian."""
    cdef list children
    cdef Py_ssize_t child_count
    cdef PyObject** parts
    cdef list branches

    def __cinit__(self):
        self.capacity = 0

    def __dealloc__(self):
        PyMem_Free(self.values)
        PyMem_Free(self.data)
        PyMem_Free(self.valid)
        PyMem_Free(self.parts)

    cdef int start(self) except -1:
        """Offsets begin with one 0."""
        cdef Column child
        if self.kind == C_VARIABLE or self.kind == C_LISTS or self.kind == C_MAPS:
            self.reserve()
            (<int32_t*>self.values)[0] = 0
        for child in self.children:
            child.start()
        return 0

    cdef int reserve(self) except -1:
        cdef Py_ssize_t capacity = self.capacity * 2 if self.capacity else 64
        cdef uint8_t* grown
        if self.width:
            grown = <uint8_t*>PyMem_Realloc(self.values, (capacity + 1) * self.width)
            if grown == NULL:
                raise MemoryError
            self.values = grown
        if self.valid != NULL:
            grown = <uint8_t*>PyMem_Realloc(self.valid, capacity + 1)
            if grown == NULL:
                raise MemoryError
            self.valid = grown
        self.capacity = capacity
        return 0

    cdef int reserve_data(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t capacity = self.data_capacity * 2 if self.data_capacity else 1024
        cdef uint8_t* grown
        if capacity < self.data_length + more:
            capacity = self.data_length + more
        grown = <uint8_t*>PyMem_Realloc(self.data, capacity)
        if grown == NULL:
            raise MemoryError
        self.data = grown
        self.data_capacity = capacity
        return 0

    cdef int add_null(self) except -1:
        """One more value, which is null. What is below it has something all the same, where the layout wants it."""
        cdef Py_ssize_t index
        if self.length >= self.capacity:
            self.reserve()
        if self.kind != C_NULLS:
            if self.valid == NULL:
                self.valid = <uint8_t*>PyMem_Malloc(self.capacity + 1)
                if self.valid == NULL:
                    raise MemoryError
                memset(self.valid, 1, self.length)
            self.valid[self.length] = 0
        if self.kind == C_VARIABLE or self.kind == C_LISTS or self.kind == C_MAPS:
            (<int32_t*>self.values)[self.length + 1] = (<int32_t*>self.values)[self.length]
        elif self.kind == C_STRUCTS:
            for index in range(self.child_count):
                (<Column>self.parts[index]).add_null()
        elif self.width:
            memset(self.values + self.length * self.width, 0, self.width)
        self.length += 1
        self.nulls += 1
        return 0

    cdef inline int begin(self) except -1:
        """Room for one more value."""
        if self.length >= self.capacity:
            self.reserve()
        if self.valid != NULL:
            self.valid[self.length] = 1
        return 0

    cdef int truncate(self, Py_ssize_t length) except -1:
        """The column as it was when it had `length` values."""
        cdef Py_ssize_t index
        if self.length > length:
            if self.kind == C_NULLS:
                self.nulls = length
            elif self.valid != NULL:
                for index in range(length, self.length):
                    self.nulls -= self.valid[index] == 0
            self.length = length
        if self.kind == C_VARIABLE:
            self.data_length = (<int32_t*>self.values)[self.length]
        elif self.kind == C_LISTS or self.kind == C_MAPS:
            for index in range(self.child_count):
                (<Column>self.parts[index]).truncate((<int32_t*>self.values)[self.length])
        elif self.kind == C_STRUCTS:
            for index in range(self.child_count):
                (<Column>self.parts[index]).truncate(self.length)
        return 0

    cdef object bits(self, uint8_t* source):
        """A bit for each byte."""
        cdef Py_ssize_t index, size = (self.length + 7) // 8
        cdef uint8_t* packed = <uint8_t*>PyMem_Malloc(size + 1)
        if packed == NULL:
            raise MemoryError
        memset(packed, 0, size)
        for index in range(self.length):
            packed[index >> 3] |= <uint8_t>((source[index] & 1) << (index & 7))
        return memory(packed, size)

    def finish(self):
        """(length, nulls, buffers, children) of all that there is; the column is empty afterwards."""
        cdef list buffers = []
        cdef Py_ssize_t length = self.length, nulls = self.nulls
        buffers.append(self.bits(self.valid) if self.nulls and self.valid != NULL else None)
        if self.kind == C_BOOLEANS:
            buffers.append(self.bits(self.values))
        elif self.kind == C_VARIABLE:
            buffers.append(memory(self.values, (self.length + 1) * 4))
            self.values = NULL
            buffers.append(memory(self.data, self.data_length))
            self.data = NULL
        elif self.kind == C_LISTS or self.kind == C_MAPS:
            buffers.append(memory(self.values, (self.length + 1) * 4))
            self.values = NULL
        elif self.kind != C_NULLS and self.kind != C_STRUCTS:
            buffers.append(memory(self.values, self.length * self.width))
            self.values = NULL
        children = [(<Column>child).finish() for child in self.children]
        PyMem_Free(self.values)
        PyMem_Free(self.valid)
        PyMem_Free(self.data)
        self.values = NULL
        self.valid = NULL
        self.data = NULL
        self.length = self.nulls = self.capacity = self.data_length = self.data_capacity = 0
        return length, nulls, buffers, children


cdef Column make_column(object plan):
    cdef Column column = Column.__new__(Column)
    cdef Py_ssize_t index
    column.kind = plan.kind
    column.is_text = plan.is_text
    if plan.kind == C_DECIMALS:
        column.beyond = (10**plan.precision).to_bytes(plan.width, "little")
    column.width = 4 if plan.kind in (C_VARIABLE, C_LISTS, C_MAPS) else plan.width
    column.children = [make_column(child) for child in plan.children]
    column.child_count = len(column.children)
    column.parts = <PyObject**>PyMem_Malloc((column.child_count + 1) * sizeof(PyObject*))
    if column.parts == NULL:
        raise MemoryError
    for index in range(column.child_count):
        column.parts[index] = <PyObject*>column.children[index]
    column.branches = plan.branches
    return column


cdef int is_utf_8(const uint8_t* at, Py_ssize_t length) noexcept:
    """Whether bytes are UTF-8: no overlong form, no surrogate, nothing above U+10FFFF."""
    cdef const uint8_t* end = at + length
    cdef uint64_t eight
    cdef uint8_t byte
    while end - at >= 8:
        memcpy(&eight, at, 8)
        if eight & <uint64_t>0x8080808080808080:
            break
        at += 8
    while at < end:
        byte = at[0]
        if byte < 0x80:
            at += 1
        elif byte < 0xC2:
            return 0
        elif byte < 0xE0:
            if end - at < 2 or (at[1] & 0xC0) != 0x80:
                return 0
            at += 2
        elif byte < 0xF0:
            if end - at < 3 or (at[1] & 0xC0) != 0x80 or (at[2] & 0xC0) != 0x80:
                return 0
            if (byte == 0xE0 and at[1] < 0xA0) or (byte == 0xED and at[1] > 0x9F):
                return 0
            at += 3
        elif byte < 0xF5:
            if end - at < 4 or (at[1] & 0xC0) != 0x80 or (at[2] & 0xC0) != 0x80 or (at[3] & 0xC0) != 0x80:
                return 0
            if (byte == 0xF0 and at[1] < 0x90) or (byte == 0xF4 and at[1] > 0x8F):
                return 0
            at += 4
        else:
            return 0
    return 1


cdef int add_span(Column column, const uint8_t* at, Py_ssize_t length) except -1:
    """A value of variable length."""
    if column.is_text and not is_utf_8(at, length):
        wrong()
    if length > INT32_MAX - column.data_length:
        raise OverflowError("a column would have more than 2 GiB: decode fewer rows at a time")
    column.begin()
    if column.data_length + length > column.data_capacity:
        column.reserve_data(length)
    memcpy(column.data + column.data_length, at, length)
    column.data_length += length
    column.length += 1
    (<int32_t*>column.values)[column.length] = <int32_t>column.data_length
    return 0


cdef int add_decimal(Column column, const uint8_t* at, Py_ssize_t length) except -1:
    """A big-endian number in two's complement, as a little-endian one of the column's width."""
    cdef uint8_t sign = 0xFF if length and at[0] & 0x80 else 0
    cdef uint8_t* target
    cdef Py_ssize_t index
    while length > column.width:
        if at[0] != sign or (at[1] & 0x80) != (sign & 0x80):
            wrong()
        at += 1
        length -= 1
    column.begin()
    target = column.values + column.length * column.width
    for index in range(length):
        target[index] = at[length - 1 - index]
    memset(target + length, sign, column.width - length)
    if not is_below(target, <const uint8_t*>PyBytes_AS_STRING(column.beyond), column.width):
        wrong()
    column.length += 1
    return 0


cdef bint is_below(const uint8_t* number, const uint8_t* beyond, Py_ssize_t width) noexcept:
    """Whether a number is nearer to 0 than `beyond`."""
    cdef bint is_negative = number[width - 1] & 0x80
    cdef Py_ssize_t index
    cdef int carry = 1
    cdef int digit
    cdef uint8_t positive[32]
    for index in range(width):
        if is_negative:
            digit = <int>(<uint8_t>~number[index]) + carry
            carry = digit >> 8
            positive[index] = <uint8_t>digit
        else:
            positive[index] = number[index]
    for index in range(width - 1, -1, -1):
        if positive[index] != beyond[index]:
            return positive[index] < beyond[index]
    return False


cdef int add_duration(Column column, const uint8_t* at) except -1:
    """Months, days and milliseconds of 32 bits, unsigned, as months, days and nanoseconds."""
    cdef uint32_t parts[3]
    cdef int32_t* target
    cdef int64_t nanoseconds
    memcpy(parts, at, 12)
    if parts[0] > <uint32_t>INT32_MAX or parts[1] > <uint32_t>INT32_MAX:
        wrong()
    column.begin()
    target = <int32_t*>(column.values + column.length * 16)
    target[0] = <int32_t>parts[0]
    target[1] = <int32_t>parts[1]
    nanoseconds = <int64_t>parts[2] * 1_000_000
    memcpy(target + 2, &nanoseconds, 8)
    column.length += 1
    return 0


cdef int read_into(Step step, Column column, Cursor* cursor) except -1:
    cdef int code = step.code
    cdef int64_t number
    cdef float single
    cdef double double_
    if code == RECORD:
        return read_struct(step, column, cursor)
    if code == STRING or code == BYTES:
        number = read_long(cursor)
        need(cursor, number)
        if column.kind == C_DECIMALS:
            add_decimal(column, cursor.at, number)
        else:
            add_span(column, cursor.at, number)
        cursor.at += number
        return 0
    if code == LONG:
        number = read_long(cursor)
        column.begin()
        (<int64_t*>column.values)[column.length] = number
        column.length += 1
        return 0
    if code == INT:
        number = read_long(cursor)
        if number > INT32_MAX or number < INT32_MIN:
            wrong()
        column.begin()
        (<int32_t*>column.values)[column.length] = <int32_t>number
        column.length += 1
        return 0
    if code == UNION:
        number = read_long(cursor)
        if number < 0 or number >= step.count:
            wrong()
        enter(cursor)
        read_into(<Step>step.steps[number], column, cursor)
        cursor.depth -= 1
        return 0
    if code == BRANCH:
        return read_branch(step, column, cursor)
    if code == NULL_:
        return column.add_null()
    if code == DOUBLE:
        need(cursor, 8)
        column.begin()
        memcpy(column.values + column.length * 8, cursor.at, 8)
        column.length += 1
        cursor.at += 8
        return 0
    if code == FLOAT:
        need(cursor, 4)
        column.begin()
        memcpy(column.values + column.length * 4, cursor.at, 4)
        column.length += 1
        cursor.at += 4
        return 0
    if code == FLOAT_AS_DOUBLE or code == LONG_AS_DOUBLE:
        if code == LONG_AS_DOUBLE:
            double_ = <double>read_long(cursor)
        else:
            need(cursor, 4)
            memcpy(&single, cursor.at, 4)
            cursor.at += 4
            double_ = single
        column.begin()
        (<double*>column.values)[column.length] = double_
        column.length += 1
        return 0
    if code == LONG_AS_FLOAT:
        single = <float>read_long(cursor)
        column.begin()
        (<float*>column.values)[column.length] = single
        column.length += 1
        return 0
    if code == BOOLEAN:
        need(cursor, 1)
        if cursor.at[0] > 1:
            wrong()
        column.begin()
        column.values[column.length] = cursor.at[0]
        column.length += 1
        cursor.at += 1
        return 0
    if code == FIXED:
        need(cursor, step.size)
        if column.kind == C_DECIMALS:
            add_decimal(column, cursor.at, step.size)
        elif column.kind == C_INTERVALS:
            add_duration(column, cursor.at)
        else:
            column.begin()
            memcpy(column.values + column.length * column.width, cursor.at, step.size)
            column.length += 1
        cursor.at += step.size
        return 0
    if code == ENUM:
        number = read_long(cursor)
        if number < 0 or number >= len(step.symbols):
            wrong()
        symbol = step.symbols[number]
        if symbol is None:
            wrong()
        return add_span(column, <const uint8_t*>PyBytes_AS_STRING(symbol), PyBytes_GET_SIZE(symbol))
    if code == ARRAY or code == MAP:
        return read_list(step, column, cursor)
    return wrong()


cdef int read_branch(Step step, Column column, Cursor* cursor) except -1:
    cdef int goes_to
    cdef Py_ssize_t index
    if column.branches is None:
        return read_into(step.inner, column, cursor)
    goes_to = column.branches[step.reader_branch]
    if goes_to == -1:
        return column.add_null()
    if goes_to == -2:
        return read_into(step.inner, column, cursor)
    column.begin()
    for index in range(column.child_count):
        if index == goes_to:
            read_into(step.inner, <Column>column.parts[index], cursor)
        else:
            (<Column>column.parts[index]).add_null()
    column.length += 1
    return 0


cdef int read_list(Step step, Column column, Cursor* cursor) except -1:
    cdef int64_t count, length
    cdef Column child = <Column>column.parts[column.child_count - 1]
    cdef Column keys = <Column>column.parts[0]
    enter(cursor)
    column.begin()
    while True:
        count = read_block(step, cursor)
        if count == 0:
            break
        if count > INT32_MAX - child.length:
            raise OverflowError("a column would have more than 2 Gi of elements: decode fewer rows at a time")
        while count > 0:
            if step.code == MAP:
                length = read_long(cursor)
                need(cursor, length)
                add_span(keys, cursor.at, length)
                cursor.at += length
            read_into(step.inner, child, cursor)
            count -= 1
    cursor.depth -= 1
    column.length += 1
    (<int32_t*>column.values)[column.length] = <int32_t>child.length
    return 0


cdef int read_struct(Step step, Column column, Cursor* cursor) except -1:
    cdef Py_ssize_t index
    cdef int32_t place
    cdef Step part
    cdef Cursor inner
    enter(cursor)
    column.begin()
    for index in range(step.count):
        part = <Step>step.steps[index]
        place = step.places[index]
        if step.givens[index] != NULL:
            inner.at = <const uint8_t*>PyBytes_AS_STRING(<bytes>step.givens[index])
            inner.end = inner.at + PyBytes_GET_SIZE(<bytes>step.givens[index])
            inner.depth = cursor.depth
            inner.empty = cursor.empty
            read_into(part, <Column>column.parts[place], &inner)
            cursor.empty = inner.empty
        elif place < 0:
            skip_value(part, cursor)
        else:
            read_into(part, <Column>column.parts[place], cursor)
    cursor.depth -= 1
    column.length += 1
    return 0


cdef class Binding:
    """A writer's schema, bound to columns."""

    cdef Step step
    cdef object twin


cdef class Columns:
    """Rows to columns. Several writers' schemas may be bound, each read as the one reader's."""

    cdef Column root

    def __init__(self, plan):
        self.root = make_column(plan)
        self.root.start()

    def __len__(self):
        return self.root.length

    def bind(self, plan):
        """What `append` wants for rows of one writer's schema."""
        cdef Binding binding = Binding.__new__(Binding)
        made = {}
        binding.step = make_step(plan, made, {}, True)
        for step in made.values():
            (<Step>step).symbols = [None if one is None else one.encode() for one in (<Step>step).symbols]
        binding.twin = _slow.Decoder(plan, None, True)
        return binding

    def append(self, Binding binding, content, Py_ssize_t start=0):
        """One more row. Raises `CannotDecode`, and is then as it was."""
        cdef Py_buffer view
        cdef Cursor cursor
        cdef Py_ssize_t before = self.root.length
        PyObject_GetBuffer(content, &view, PyBUF_SIMPLE)
        try:
            if start < 0 or start > view.len:
                raise CannotDecode("the value ends before it begins")
            cursor.at = <const uint8_t*>view.buf + start
            cursor.end = <const uint8_t*>view.buf + view.len
            cursor.depth = 0
            cursor.empty = 0
            try:
                read_into(binding.step, self.root, &cursor)
            except BaseException as error:
                self.root.truncate(before)
                if isinstance(error, OverflowError):
                    raise
                self._tell(binding, content, start)
        finally:
            PyBuffer_Release(&view)

    def _tell(self, Binding binding, content, start):
        binding.twin.decode(content, start)
        raise CannotDecode("the value has no place in its column")

    def append_null(self):
        self.root.add_null()

    def append_framed(self, content, offsets, Py_ssize_t first, Py_ssize_t last, dict bindings):
        """Rows `first` to `last` of values that begin with a zero and the id of their schema. `offsets`, of 32 bits, say
        where in `content` each begins and ends. It continues until a row that it cannot read: one whose id is not among
        `bindings`, one that is not framed, or one whose bytes are wrong. Returns the row that it came to."""
        cdef Py_buffer data, ends
        cdef Cursor cursor
        cdef const int32_t* places
        cdef const uint8_t* at
        cdef Py_ssize_t row = first, before
        cdef int32_t start, end
        cdef uint32_t id, known = 0
        cdef Binding binding = None
        PyObject_GetBuffer(content, &data, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(offsets, &ends, PyBUF_SIMPLE)
            try:
                if first < 0 or (last + 1) * 4 > ends.len:
                    raise ValueError("there are not that many rows")
                places = <const int32_t*>ends.buf
                while row < last:
                    start = places[row]
                    end = places[row + 1]
                    if start < 0 or end < start or end > data.len:
                        raise ValueError("offsets lead out of the bytes")
                    at = <const uint8_t*>data.buf + start
                    if end - start < 5 or at[0] != 0:
                        return row
                    id = (<uint32_t>at[1] << 24) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 8) | at[4]
                    if binding is None or id != known:
                        binding = bindings.get(id)
                        if binding is None:
                            return row
                        known = id
                    cursor.at = at + 5
                    cursor.end = <const uint8_t*>data.buf + end
                    cursor.depth = 0
                    cursor.empty = 0
                    before = self.root.length
                    try:
                        read_into(binding.step, self.root, &cursor)
                    except _Wrong:
                        self.root.truncate(before)
                        return row
                    except BaseException:
                        self.root.truncate(before)
                        raise
                    row += 1
                return row
            finally:
                PyBuffer_Release(&ends)
        finally:
            PyBuffer_Release(&data)

    def finish(self):
        """(length, nulls, buffers, children), in the order of the plan. There are no rows afterwards."""
        made = self.root.finish()
        self.root.start()
        return made
