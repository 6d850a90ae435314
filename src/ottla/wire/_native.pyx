# cython: language_level=3
"""The compiled codec: walks a plan of a struct's fields, without Python code per field; `plans` makes the plans.

The decoder fills new objects. It is the twin of the decoders that `decoding` generates and accepts exactly the same
bytes. The encoder writes what is usual, to the same bytes as the encoders that `encoding` generates; a message with
anything else about it (a tagged field that is set, a value that does not fit) it leaves to them.

Objects are allocated without calling their constructor, and values are stored at their slots' offsets. An object under
construction has empty slots, which its deallocation allows for, so an error half-way leaks nothing.

Rules that keep it safe: every read is preceded by `need`, every count by a check against the bytes left.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_Clear
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.sequence cimport PySequence_GetSlice
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from ottla.base.slots cimport ALLOCATE, DECREF, copy_of, put, slot, value_at

from ottla.wire.faults import (
    InvalidTextError,
    OversizeError,
    TagSizeError,
    TruncatedError,
    UnexpectedNullError,
    VarintError,
)

cdef extern from *:
    # As Cython would declare it this gives an owned object; here it must not.
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    PyObject *DECODE_UTF8 "PyUnicode_DecodeUTF8"(const char *at, Py_ssize_t size, const char *errors)

cdef enum Kind:
    BOOL, INT8, INT16, UINT16, INT32, INT64, FLOAT64, UUID, STRING, BYTES, RECORDS, STRUCT

KINDS = {
    "bool": BOOL, "int8": INT8, "int16": INT16, "uint16": UINT16, "int32": INT32, "int64": INT64,
    "float64": FLOAT64, "uuid": UUID, "string": STRING, "bytes": BYTES, "records": RECORDS,
}
cdef Py_ssize_t[8] WIDTHS = [1, 1, 2, 2, 4, 8, 8, 16]
cdef Py_ssize_t MAX_STRING_BYTES = 0x7FFF
# What is sent in one piece with what is around it.
cdef Py_ssize_t LITTLE_BYTES = 16384

cdef struct Reader:
    const unsigned char *base
    Py_ssize_t position
    Py_ssize_t size
    PyObject *buffer  # borrowed
    PyObject *view  # owned: a view of the whole buffer, of which records are slices; made for the first of them

cdef struct FieldPlan:
    Kind kind
    bint is_array
    bint nullable
    bint compact
    bint tagged
    uint32_t tag
    Py_ssize_t offset
    Py_ssize_t least_size  # of a struct that is an element
    PyObject *struct  # borrowed from `StructPlan.kept`


cdef class StructPlan:
    """How to read one struct in one version.

    `fields` and `tagged` are tuples of (attribute, kind, is_array, nullable, compact, tag, struct plan, least size), in
    wire order; `defaults` are (attribute, value) pairs for what may not be on the wire, where a value is an
    immutable object, the type `list` for a new list, or a plan for a new struct.
    """

    cdef object cls
    cdef bint flexible
    cdef FieldPlan *fields
    cdef Py_ssize_t field_count
    cdef Py_ssize_t tagged_count
    cdef Py_ssize_t *default_offsets
    cdef tuple default_values
    cdef Py_ssize_t unknown_tags_offset
    cdef list kept

    def __cinit__(self, type cls, bint flexible, fields, tagged, defaults):
        self.cls = cls
        self.flexible = flexible
        self.kept = []
        self.field_count = len(fields)
        self.tagged_count = len(tagged)
        self.fields = <FieldPlan *> PyMem_Calloc(len(fields) + len(tagged) + 1, sizeof(FieldPlan))
        self.default_offsets = <Py_ssize_t *> PyMem_Calloc(len(defaults) + 1, sizeof(Py_ssize_t))
        if self.fields == NULL or self.default_offsets == NULL:
            raise MemoryError
        cdef Py_ssize_t index
        for index, given in enumerate((*fields, *tagged)):
            self.set_field(&self.fields[index], given, index >= len(fields))
        self.default_values = tuple(value for _, value in defaults)
        for index, (attribute, _) in enumerate(defaults):
            self.default_offsets[index] = slot(cls, attribute)
        self.unknown_tags_offset = slot(cls, "unknown_tags")

    cdef set_field(self, FieldPlan *field, tuple given, bint tagged):
        attribute, kind, is_array, nullable, compact, tag, struct, least_size = given
        field.kind = STRUCT if struct is not None else KINDS[kind]
        field.is_array = is_array
        field.nullable = nullable
        field.compact = compact
        field.tagged = tagged
        field.tag = max(tag, 0)
        field.offset = slot(self.cls, attribute)
        field.least_size = least_size
        if struct is not None:
            self.kept.append(<StructPlan?> struct)
            field.struct = <PyObject *> struct

    def __dealloc__(self):
        PyMem_Free(self.fields)
        PyMem_Free(self.default_offsets)

    def decode(self, buffer, Py_ssize_t position):
        """The struct that starts at `position` of `buffer`, and the position after it."""
        cdef Py_buffer view
        cdef Reader reader
        if position < 0:
            raise ValueError(f"a negative position: {position}")
        reader.buffer = <PyObject *> buffer
        reader.view = NULL
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            reader.base = <const unsigned char *> view.buf
            reader.size = view.len
            reader.position = position
            value = read_struct(&reader, self)
            return value, reader.position
        finally:
            if reader.view != NULL:
                DECREF(reader.view)
            PyBuffer_Release(&view)


cdef object set_defaults(object target, StructPlan plan):
    cdef Py_ssize_t index
    for index in range(len(plan.default_values)):
        value = <object> plan.default_values[index]
        if value is list:
            value = []
        elif type(value) is StructPlan:
            value = set_defaults(ALLOCATE((<StructPlan> value).cls), <StructPlan> value)
        put(target, plan.default_offsets[index], value)
    return target


cdef object read_struct(Reader *reader, StructPlan plan):
    cdef Py_ssize_t index
    target = ALLOCATE(plan.cls)
    set_defaults(target, plan)
    for index in range(plan.field_count):
        put(target, plan.fields[index].offset, read_field(reader, &plan.fields[index]))
    if plan.flexible:
        need(reader, 1)
        if reader.base[reader.position] == 0:
            reader.position += 1
        else:
            read_tags(reader, plan, target)
    return target


cdef object read_tags(Reader *reader, StructPlan plan, object target):
    cdef Py_ssize_t count = read_varint(reader)
    cdef Py_ssize_t index, size, end
    cdef uint32_t tag
    cdef FieldPlan *field
    check_count(reader, count, 2)
    unknown = []
    for _ in range(count):
        tag = <uint32_t> read_varint(reader)
        size = read_varint(reader)
        need(reader, size)
        end = reader.position + size
        for index in range(plan.field_count, plan.field_count + plan.tagged_count):
            field = &plan.fields[index]
            if field.tag == tag:
                put(target, field.offset, read_field(reader, field))
                break
        else:
            unknown.append((tag, read_bytes(reader, size)))
        if reader.position != end:
            raise TagSizeError(f"tag {tag} announced {size} bytes and ends elsewhere", reader.position)
    put(target, plan.unknown_tags_offset, tuple(unknown))


cdef object read_field(Reader *reader, FieldPlan *field):
    cdef Py_ssize_t length
    if field.is_array:
        length = read_length(reader, field.compact, False)
        if length == -1:
            return null(reader, field)
        return read_array(reader, field, length)
    if field.kind < STRING:
        need(reader, WIDTHS[<int> field.kind])
        return read_fixed(reader, field.kind)
    if field.kind == STRUCT:
        if field.nullable and not read_presence(reader, field.tagged):
            return None
        return read_struct(reader, <StructPlan> field.struct)
    length = read_length(reader, field.compact, field.kind == STRING)
    if length == -1:
        return null(reader, field)
    if field.kind == STRING:
        return read_text(reader, length)
    if field.kind == BYTES:
        return read_bytes(reader, length)
    return read_view(reader, length)


cdef object read_array(Reader *reader, FieldPlan *field, Py_ssize_t count):
    cdef Py_ssize_t index
    cdef list structs
    if field.kind == STRUCT:
        check_count(reader, count, field.least_size)
        structs = []
        for index in range(count):
            structs.append(read_struct(reader, <StructPlan> field.struct))
        return structs
    if field.kind == STRING:
        check_count(reader, count, 1 if field.compact else 2)
        texts = []
        for index in range(count):
            length = read_length(reader, field.compact, True)
            if length == -1:
                raise UnexpectedNullError("null where the schema allows none", reader.position)
            texts.append(read_text(reader, length))
        return tuple(texts)
    check_count(reader, count, WIDTHS[<int> field.kind])
    numbers = PyTuple_New(count)
    for index in range(count):
        value = read_fixed(reader, field.kind)
        Py_INCREF(value)
        PyTuple_SET_ITEM(numbers, index, value)
    return numbers


cdef inline uint64_t big_endian(const unsigned char *at, int width) noexcept:
    cdef uint64_t value = 0
    cdef int index
    for index in range(width):
        value = value << 8 | at[index]
    return value


cdef object read_fixed(Reader *reader, Kind kind):
    """A value of fixed width, for which there must be bytes enough."""
    cdef const unsigned char *at = reader.base + reader.position
    cdef uint64_t bits
    cdef double number
    reader.position += WIDTHS[<int> kind]
    if kind == INT32:
        return <int32_t> big_endian(at, 4)
    if kind == INT64:
        return <int64_t> big_endian(at, 8)
    if kind == INT16:
        return <int16_t> big_endian(at, 2)
    if kind == INT8:
        return <int8_t> at[0]
    if kind == BOOL:
        return True if at[0] else False
    if kind == UINT16:
        return <uint16_t> big_endian(at, 2)
    if kind == UUID:
        return PyBytes_FromStringAndSize(<const char *> at, 16)
    bits = big_endian(at, 8)
    memcpy(&number, &bits, 8)
    return PyFloat_FromDouble(number)


cdef object read_text(Reader *reader, Py_ssize_t size):
    cdef PyObject *text
    if size > MAX_STRING_BYTES:
        raise OversizeError(f"a string of {size} bytes", reader.position)
    need(reader, size)
    text = DECODE_UTF8(<const char *> reader.base + reader.position, size, NULL)
    if text == NULL:
        PyErr_Clear()
        raise_invalid_text(reader, size)
    reader.position += size
    value = <object> text
    DECREF(text)
    return value


cdef int raise_invalid_text(Reader *reader, Py_ssize_t size) except -1:
    start = reader.position
    try:
        read_bytes(reader, size).decode()
    except UnicodeDecodeError as error:
        raise InvalidTextError("a string is not UTF-8", start + error.start) from None
    raise MemoryError


cdef object read_bytes(Reader *reader, Py_ssize_t size):
    need(reader, size)
    content = PyBytes_FromStringAndSize(<const char *> reader.base + reader.position, size)
    reader.position += size
    return content


cdef object read_view(Reader *reader, Py_ssize_t size):
    need(reader, size)
    if reader.view == NULL:
        whole = <object> reader.buffer
        if type(whole) is not memoryview:
            whole = memoryview(whole)
        Py_INCREF(whole)
        reader.view = <PyObject *> whole
    view = PySequence_GetSlice(<object> reader.view, reader.position, reader.position + size)
    reader.position += size
    return view


cdef object null(Reader *reader, FieldPlan *field):
    if not field.nullable:
        raise UnexpectedNullError("null where the schema allows none", reader.position)
    return None


cdef bint read_presence(Reader *reader, bint tagged) except -1:
    """The marker of a nullable struct (KIP-893): a signed byte or, in a tagged field, an unsigned varint."""
    if tagged:
        return read_varint(reader) != 0
    need(reader, 1)
    reader.position += 1
    return <int8_t> reader.base[reader.position - 1] >= 0


cdef Py_ssize_t read_length(Reader *reader, bint compact, bint is_text) except -2:
    """A length or count; -1 for null."""
    cdef Py_ssize_t length
    if compact:
        return read_varint(reader) - 1
    if is_text:
        need(reader, 2)
        length = <int16_t> big_endian(reader.base + reader.position, 2)
        reader.position += 2
    else:
        need(reader, 4)
        length = <int32_t> big_endian(reader.base + reader.position, 4)
        reader.position += 4
    if length < -1:
        raise OversizeError(f"a negative size of {length}", reader.position)
    return length


cdef Py_ssize_t read_varint(Reader *reader) except -1:
    cdef uint64_t value = 0
    cdef int index
    cdef unsigned char byte
    for index in range(5):
        need(reader, 1)
        byte = reader.base[reader.position]
        reader.position += 1
        value |= <uint64_t> (byte & 127) << 7 * index
        if byte < 128:
            if value >> 32:
                raise VarintError("a varint has more than 32 bits", reader.position - 5)
            return value
    raise VarintError("a varint has more than 5 bytes", reader.position - 5)


cdef inline int need(Reader *reader, Py_ssize_t size) except -1:
    if size > reader.size - reader.position:
        too_short(reader, size)
    return 0


cdef int too_short(Reader *reader, Py_ssize_t size) except -1:
    left = max(0, reader.size - reader.position)
    raise TruncatedError(f"{size} bytes are needed and {left} are left", reader.position)


cdef inline int check_count(Reader *reader, Py_ssize_t count, Py_ssize_t least_size) except -1:
    if count > (reader.size - reader.position) // least_size:
        left = reader.size - reader.position
        raise OversizeError(f"a count of {count} with {left} bytes left", reader.position)
    return 0

# ---- whole requests ------------------------------------------------------------------------------------------------

def whole_frames(received, Py_ssize_t at, Py_ssize_t most_bytes, Py_ssize_t most):
    """See `frames.whole_frames_in_python`."""
    cdef Py_buffer view
    cdef Py_ssize_t size
    cdef list frames = []
    if at < 0:
        raise ValueError(f"a negative position: {at}")
    PyObject_GetBuffer(received, &view, PyBUF_SIMPLE)
    try:
        while view.len - at >= 4 and len(frames) < most:
            size = <int32_t> big_endian(<const unsigned char *> view.buf + at, 4)
            if size < 0 or size > most_bytes or size > view.len - at - 4:
                break
            frames.append(PySequence_GetSlice(received, at + 4, at + 4 + size))
            at += 4 + size
        return frames, at
    finally:
        PyBuffer_Release(&view)


cdef class RequestReader:
    """Makes a request of a frame in one step: an object like a prototype, with what the header and the message say.

    `cls` is the class of the prototypes, with slots for the fields of the header, for `message` and for `size`. `find`
    gives the plan of the message that a frame is of, or raises.
    """

    cdef type cls
    cdef object find
    cdef dict plans
    cdef Py_ssize_t api_key_at, api_version_at, correlation_id_at, client_id_at, message_at, size_at

    def __cinit__(self, type cls, find):
        self.cls = cls
        self.find = find
        self.plans = {}
        self.api_key_at = slot(cls, "api_key")
        self.api_version_at = slot(cls, "api_version")
        self.correlation_id_at = slot(cls, "correlation_id")
        self.client_id_at = slot(cls, "client_id")
        self.message_at = slot(cls, "message")
        self.size_at = slot(cls, "size")

    def read(self, prototype, frame):
        """Bytes after the message are passed over."""
        cdef Py_buffer view
        cdef Reader reader
        cdef Py_ssize_t length
        cdef PyObject *found
        if type(prototype) is not self.cls:
            raise TypeError(f"not a {self.cls.__name__}: {prototype!r}")
        reader.buffer = <PyObject *> frame
        reader.view = NULL
        reader.position = 0
        PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
        try:
            reader.base = <const unsigned char *> view.buf
            reader.size = view.len
            if view.len < 4:
                self.find(frame)
            route = <object> <uint32_t> big_endian(reader.base, 4)
            found = PyDict_GetItem(self.plans, route)
            if found == NULL:
                self.plans[route] = <StructPlan?> self.find(frame)
                found = PyDict_GetItem(self.plans, route)
            need(&reader, 10)
            request = copy_of(prototype)
            put(request, self.api_key_at, <int16_t> big_endian(reader.base, 2))
            put(request, self.api_version_at, <int16_t> big_endian(reader.base + 2, 2))
            put(request, self.correlation_id_at, <int32_t> big_endian(reader.base + 4, 4))
            reader.position = 8
            length = read_length(&reader, False, True)
            put(request, self.client_id_at, None if length == -1 else read_text(&reader, length))
            if (<StructPlan> found).flexible:
                skip_tags(&reader)
            put(request, self.message_at, read_struct(&reader, <StructPlan> found))
            put(request, self.size_at, view.len)
            return request
        finally:
            if reader.view != NULL:
                DECREF(reader.view)
            PyBuffer_Release(&view)


cdef int skip_tags(Reader *reader) except -1:
    """Tagged fields of a request's header: none is known."""
    cdef Py_ssize_t count = read_varint(reader), size
    check_count(reader, count, 2)
    for _ in range(count):
        read_varint(reader)
        size = read_varint(reader)
        need(reader, size)
        reader.position += size
    return 0

# ---- copying -------------------------------------------------------------------------------------------------------

def like(prototype):
    """Another struct with the same values, which the two share. See `message.like`."""
    return copy_of(prototype)

# ---- encoding ------------------------------------------------------------------------------------------------------

cdef struct Writer:
    unsigned char *data
    Py_ssize_t used
    Py_ssize_t capacity
    Py_ssize_t before  # bytes in pieces that are done, payloads included
    PyObject *pieces  # borrowed
    PyObject *payloads  # borrowed; None if nobody asks which pieces are payloads

cdef struct EncodedField:
    Kind kind
    bint is_array
    bint nullable
    bint compact
    Py_ssize_t offset
    uint32_t tag
    PyObject *struct  # borrowed from `EncodePlan.kept`

cdef enum Outcome:
    DONE = 0
    # Something is unusual, or cannot be encoded: the generated encoder is to do it, or to say what is wrong.
    UNUSUAL = 1


cdef class EncodePlan:
    """How to write one struct in one version, if nothing about it is unusual: `slow` encodes what is.

    `fields` are tuples of (attribute, kind, is_array, nullable, compact, struct plan, tag), in wire order. `tagged` are
    pairs of such a field and its default, in the order of their tags: a field that has its default is left out. `unset`
    are (attribute, default) pairs of fields that must have their default, as this version does not have them. A default
    is a value, the type `list` for an empty array, or a plan without fields for a struct of defaults.
    """

    cdef object cls
    cdef bint flexible
    cdef EncodedField *fields  # the tagged ones last
    cdef Py_ssize_t field_count
    cdef Py_ssize_t tagged_count
    cdef tuple tagged_defaults
    cdef Py_ssize_t *unset_offsets
    cdef tuple unset_values
    cdef Py_ssize_t unknown_tags_offset
    cdef list kept
    cdef object slow

    def __cinit__(self, type cls, bint flexible, fields, tagged, unset, slow=None):
        self.cls = cls
        self.flexible = flexible
        self.slow = slow
        self.kept = []
        self.field_count = len(fields)
        self.tagged_count = len(tagged)
        self.tagged_defaults = tuple(default for _, default in tagged)
        self.fields = <EncodedField *> PyMem_Calloc(len(fields) + len(tagged) + 1, sizeof(EncodedField))
        self.unset_offsets = <Py_ssize_t *> PyMem_Calloc(len(unset) + 1, sizeof(Py_ssize_t))
        if self.fields == NULL or self.unset_offsets == NULL:
            raise MemoryError
        cdef Py_ssize_t index
        every = [*fields, *(field for field, _ in tagged)]
        for index, (attribute, kind, is_array, nullable, compact, struct, tag) in enumerate(every):
            self.fields[index].kind = STRUCT if struct is not None else KINDS[kind]
            self.fields[index].is_array = is_array
            self.fields[index].nullable = nullable
            self.fields[index].compact = compact
            self.fields[index].offset = slot(cls, attribute)
            self.fields[index].tag = max(tag, 0)
            if struct is not None:
                self.kept.append(<EncodePlan?> struct)
                self.fields[index].struct = <PyObject *> struct
        self.unset_values = tuple(value for _, value in unset)
        for index, (attribute, _) in enumerate(unset):
            self.unset_offsets[index] = slot(cls, attribute)
        self.unknown_tags_offset = slot(cls, "unknown_tags")

    def __dealloc__(self):
        PyMem_Free(self.fields)
        PyMem_Free(self.unset_offsets)

    def encode(self, message, list pieces, list payloads):
        """Appends the message's pieces, and to `payloads` the index of each that is a records payload."""
        cdef Py_ssize_t piece_count = len(pieces), payload_count = len(payloads)
        if self.write(message, pieces, payloads, 0, 0) == NULL:
            del pieces[piece_count:]
            del payloads[payload_count:]
            self.slow(message, pieces, payloads)

    cdef PyObject *write(self, message, list pieces, list payloads, Py_ssize_t header_size, int32_t correlation_id):
        """Anything but NULL if it is written. With a header, the size that goes into it is known only at the end."""
        cdef Writer writer
        cdef int outcome
        cdef Py_ssize_t size
        cdef unsigned char *start
        writer.capacity = 512
        writer.used = header_size
        writer.before = 0
        writer.pieces = <PyObject *> pieces
        writer.payloads = <PyObject *> payloads
        writer.data = <unsigned char *> PyMem_Malloc(writer.capacity)
        if writer.data == NULL:
            return NULL
        try:
            if header_size:
                store_big_endian(writer.data + 4, <uint64_t> correlation_id, 4)
                if header_size == 9:
                    writer.data[8] = 0
            outcome = write_struct(&writer, message, self)
            if outcome == DONE and (writer.used or not pieces):
                end_piece(&writer)
            size = writer.before - 4
            if outcome != DONE or size > 0x7FFFFFFF:
                return NULL
            if header_size:
                # Nobody else has seen the first piece yet.
                start = <unsigned char *> PyBytes_AS_STRING(pieces[0])
                store_big_endian(start, <uint64_t> size, 4)
            return <PyObject *> self
        except Exception:
            return NULL
        finally:
            PyMem_Free(writer.data)


cdef class ResponseWriter:
    """Encodes responses with their headers, each by the plan of its class and version.

    `find` gives a message and a version their plan, and whether the header has tagged fields; None if there is no such
    version. `slow` encodes what has no plan, or is unusual.
    """

    cdef object find
    cdef object slow
    cdef dict plans

    def __cinit__(self, find, slow):
        self.find = find
        self.slow = slow
        self.plans = {}

    def parts(self, message, version, correlation_id):
        """The response as parts to be sent one after the other, its size and header in front."""
        cdef PyObject *found
        cdef list pieces = []
        cdef tuple key = (type(message), version)
        found = PyDict_GetItem(self.plans, key)
        if found == NULL:
            plan = self.find(message, version)
            if plan is None:
                return self.slow(message, version, correlation_id)
            self.plans[key] = plan
            found = PyDict_GetItem(self.plans, key)
        if (<EncodePlan> (<tuple> found)[0]).write(
            message, pieces, None, 9 if <object> (<tuple> found)[1] is True else 8, correlation_id
        ) == NULL:
            return self.slow(message, version, correlation_id)
        return pieces


cdef inline void store_big_endian(unsigned char *at, uint64_t value, int width) noexcept:
    cdef int index
    for index in range(width):
        at[index] = <unsigned char> (value >> 8 * (width - 1 - index))


cdef inline int reserve(Writer *writer, Py_ssize_t more) except -1:
    cdef Py_ssize_t capacity
    cdef void *grown
    if writer.used + more > writer.capacity:
        capacity = max(writer.used + more, writer.capacity * 2)
        grown = PyMem_Realloc(writer.data, capacity)
        if grown == NULL:
            raise MemoryError
        writer.data = <unsigned char *> grown
        writer.capacity = capacity
    return 0


cdef inline int put_number(Writer *writer, uint64_t value, int width) except -1:
    reserve(writer, width)
    store_big_endian(writer.data + writer.used, value, width)
    writer.used += width
    return 0


cdef int put_varint(Writer *writer, uint64_t value) except -1:
    reserve(writer, 5)
    while value > 127:
        writer.data[writer.used] = <unsigned char> (value & 127 | 128)
        writer.used += 1
        value >>= 7
    writer.data[writer.used] = <unsigned char> value
    writer.used += 1
    return 0


cdef inline int put_bytes(Writer *writer, const void *data, Py_ssize_t size) except -1:
    reserve(writer, size)
    memcpy(writer.data + writer.used, data, size)
    writer.used += size
    return 0


cdef int put_length(Writer *writer, EncodedField *field, bint is_text, Py_ssize_t length) except -1:
    """A length or count; -1 for null."""
    if length > 0x7FFFFFFE:
        return UNUSUAL
    if field.compact:
        put_varint(writer, <uint64_t> (length + 1))
    elif is_text:
        put_number(writer, <uint64_t> length, 2)
    else:
        put_number(writer, <uint64_t> length, 4)
    return DONE


cdef int end_piece(Writer *writer) except -1:
    (<list> writer.pieces).append(PyBytes_FromStringAndSize(<char *> writer.data, writer.used))
    writer.before += writer.used
    writer.used = 0
    return 0


cdef bint is_unset(object value, object default) except -1:
    """Whether a field has its default."""
    if type(default) is EncodePlan:
        return type(value) is (<EncodePlan> default).cls and are_unset(value, <EncodePlan> default)
    if default is list:
        return (type(value) is list or type(value) is tuple) and len(value) == 0
    return value is default or (default is not None and value == default)


cdef bint are_unset(object target, EncodePlan plan) except -1:
    cdef Py_ssize_t index
    cdef PyObject *value = value_at(target, plan.unknown_tags_offset)
    if value == NULL or type(<object> value) is not tuple or len(<tuple> value):
        return False
    for index in range(len(plan.unset_values)):
        value = value_at(target, plan.unset_offsets[index])
        if value == NULL or not is_unset(<object> value, <object> plan.unset_values[index]):
            return False
    return True


cdef int write_struct(Writer *writer, object target, EncodePlan plan) except -1:
    cdef Py_ssize_t index
    cdef PyObject *value
    if type(target) is not plan.cls or not are_unset(target, plan):
        return UNUSUAL
    for index in range(plan.field_count):
        value = value_at(target, plan.fields[index].offset)
        if value == NULL or write_field(writer, &plan.fields[index], <object> value):
            return UNUSUAL
    return write_tags(writer, target, plan) if plan.flexible else DONE


cdef int write_tags(Writer *writer, object target, EncodePlan plan) except -1:
    cdef Py_ssize_t index, count = 0
    cdef EncodedField *field
    cdef PyObject *value
    for index in range(plan.tagged_count):
        value = value_at(target, plan.fields[plan.field_count + index].offset)
        if value == NULL:
            return UNUSUAL
        count += not is_unset(<object> value, <object> plan.tagged_defaults[index])
    put_varint(writer, <uint64_t> count)
    if count == 0:
        return DONE
    for index in range(plan.tagged_count):
        field = &plan.fields[plan.field_count + index]
        value = value_at(target, field.offset)
        if is_unset(<object> value, <object> plan.tagged_defaults[index]):
            continue
        put_varint(writer, field.tag)
        if write_tagged(writer, field, <object> value):
            return UNUSUAL
    return DONE


cdef int write_tagged(Writer *writer, EncodedField *field, object value) except -1:
    """A size, and the content behind it, which is written first and then moved to make room for its size."""
    cdef Py_ssize_t start = writer.used, size, room
    cdef EncodedField present
    if field.kind == RECORDS:
        return UNUSUAL
    if field.kind == STRUCT and field.nullable and not field.is_array:
        # Here alone the marker of a nullable struct is an unsigned varint: 0 for null, 1 for what follows.
        put_number(writer, 0 if value is None else 1, 1)
        present = field[0]
        present.nullable = False
        if value is not None and write_field(writer, &present, value):
            return UNUSUAL
    elif write_field(writer, field, value):
        return UNUSUAL
    size = writer.used - start
    put_varint(writer, <uint64_t> size)
    room = writer.used - start - size
    memmove(writer.data + start + room, writer.data + start, size)
    writer.used = start
    put_varint(writer, <uint64_t> size)
    writer.used += size
    return DONE


cdef int write_field(Writer *writer, EncodedField *field, object value) except -1:
    if field.is_array:
        if value is None:
            return put_length(writer, field, False, -1) if field.nullable else UNUSUAL
        return write_array(writer, field, value)
    if field.kind < STRING:
        return write_fixed(writer, field.kind, value)
    if field.kind == STRUCT:
        if field.nullable:
            put_number(writer, 0xFF if value is None else 1, 1)
            if value is None:
                return DONE
        return write_struct(writer, value, <EncodePlan> field.struct)
    if value is None:
        return put_length(writer, field, field.kind == STRING, -1) if field.nullable else UNUSUAL
    if field.kind == STRING:
        return write_text(writer, field, value)
    if field.kind == BYTES:
        return write_content(writer, field, value)
    return write_payload(writer, field, value)


cdef int write_array(Writer *writer, EncodedField *field, object values) except -1:
    cdef EncodedField element
    if type(values) is not list and type(values) is not tuple:
        return UNUSUAL
    if put_length(writer, field, False, len(values)):
        return UNUSUAL
    element = field[0]
    element.is_array = element.nullable = False
    for value in values:
        if write_field(writer, &element, value):
            return UNUSUAL
    return DONE


cdef int write_fixed(Writer *writer, Kind kind, object value) except -1:
    cdef int overflow = 0
    cdef int64_t number
    cdef double real
    cdef uint64_t bits
    if kind == BOOL:
        if value is not True and value is not False:
            return UNUSUAL
        return put_number(writer, 1 if value is True else 0, 1)
    if kind == UUID:
        if not isinstance(value, bytes) or len(<bytes> value) != 16:
            return UNUSUAL
        return put_bytes(writer, PyBytes_AS_STRING(value), 16)
    if kind == FLOAT64:
        if type(value) is not float:
            return UNUSUAL
        real = value
        memcpy(&bits, &real, 8)
        return put_number(writer, bits, 8)
    if not isinstance(value, int):
        return UNUSUAL
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        return UNUSUAL
    if kind == INT64:
        return put_number(writer, <uint64_t> number, 8)
    if kind == INT32:
        return UNUSUAL if number != <int32_t> number else put_number(writer, <uint64_t> number, 4)
    if kind == INT16:
        return UNUSUAL if number != <int16_t> number else put_number(writer, <uint64_t> number, 2)
    if kind == UINT16:
        return UNUSUAL if number != <uint16_t> number else put_number(writer, <uint64_t> number, 2)
    return UNUSUAL if number != <int8_t> number else put_number(writer, <uint64_t> number, 1)


cdef int write_text(Writer *writer, EncodedField *field, object value) except -1:
    cdef Py_ssize_t size
    cdef const char *text
    if not isinstance(value, str):
        return UNUSUAL
    text = PyUnicode_AsUTF8AndSize(value, &size)
    if size > MAX_STRING_BYTES:
        return UNUSUAL
    put_length(writer, field, True, size)
    return put_bytes(writer, text, size)


cdef int write_content(Writer *writer, EncodedField *field, object value) except -1:
    cdef Py_buffer view
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return UNUSUAL
    PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
    try:
        if view.itemsize != 1 or put_length(writer, field, False, view.len):
            return UNUSUAL
        return put_bytes(writer, view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef int write_payload(Writer *writer, EncodedField *field, object value) except -1:
    cdef Py_ssize_t size = value.nbytes if type(value) is memoryview else len(value)
    if put_length(writer, field, False, size):
        return UNUSUAL
    if writer.payloads == <PyObject *> None and type(value) is bytes and size <= LITTLE_BYTES:
        return put_bytes(writer, PyBytes_AS_STRING(value), size)
    end_piece(writer)
    if writer.payloads != <PyObject *> None:
        (<list> writer.payloads).append(len(<list> writer.pieces))
    (<list> writer.pieces).append(value)
    writer.before += size
    return DONE
