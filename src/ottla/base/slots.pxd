# cython: language_level=3
"""Objects of Python classes with `__slots__`, read and written where their slots are.

For compiled code on the way of every request: it costs a tenth of what asking for an attribute does, and the objects
stay those of Python. Nothing here is compiled by itself; it becomes part of the modules that use it.

A class is asked once where a slot is (`slot`), which refuses an attribute that is none. An object has to be of that
class, or of one derived from it: who reads a slot has made sure of that. A `NamedTuple` has its fields where a tuple has
its items: they are read in the same way, and never written.
"""

from cpython.long cimport PyLong_AsLongLong
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <structmember.h>
    #define OTTLA_IS_SLOT(descriptor) (Py_TYPE(descriptor) == &PyMemberDescr_Type \
        && ((PyMemberDescrObject *)(descriptor))->d_member->type == T_OBJECT_EX)
    #define OTTLA_SLOT_OFFSET(descriptor) (((PyMemberDescrObject *)(descriptor))->d_member->offset)
    #define OTTLA_BASIC_SIZE(type) (((PyTypeObject *)(type))->tp_basicsize)
    #define OTTLA_TUPLE_ITEMS offsetof(PyTupleObject, ob_item)
    #define OTTLA_ALLOCATE(type) (((PyTypeObject *)(type))->tp_alloc((PyTypeObject *)(type), 0))
    """
    bint IS_SLOT "OTTLA_IS_SLOT"(object descriptor)
    Py_ssize_t SLOT_OFFSET "OTTLA_SLOT_OFFSET"(object descriptor)
    Py_ssize_t BASIC_SIZE "OTTLA_BASIC_SIZE"(object type)
    Py_ssize_t TUPLE_ITEMS "OTTLA_TUPLE_ITEMS"
    object ALLOCATE "OTTLA_ALLOCATE"(object type)
    # As Cython would declare it this takes an owned object; here it must not.
    void DECREF "Py_DECREF"(PyObject *value)


cdef inline Py_ssize_t slot(type cls, str name) except -1:
    """Where objects of that class have an attribute."""
    if issubclass(cls, tuple):
        return TUPLE_ITEMS + <Py_ssize_t> cls._fields.index(name) * sizeof(PyObject *)
    descriptor = getattr(cls, name)
    if not IS_SLOT(descriptor):
        raise TypeError(f"{cls.__name__}.{name} is no slot")
    return SLOT_OFFSET(descriptor)


cdef inline PyObject *value_at(object owner, Py_ssize_t offset) noexcept:
    """Borrowed; NULL if the slot is empty."""
    return (<PyObject **> (<char *> <PyObject *> owner + offset))[0]


cdef inline int64_t number_at(object owner, Py_ssize_t offset) except? -1:
    return PyLong_AsLongLong(<object> value_at(owner, offset))


cdef inline void put(object owner, Py_ssize_t offset, object value) noexcept:
    cdef PyObject **place = <PyObject **> (<char *> <PyObject *> owner + offset)
    cdef PyObject *old = place[0]
    Py_INCREF(value)
    place[0] = <PyObject *> value
    if old != NULL:
        DECREF(old)


cdef inline object copy_of(object prototype):
    """Another object of the same slotted class, with the same values, which the two share."""
    cdef Py_ssize_t offset = sizeof(PyObject), size = BASIC_SIZE(type(prototype))
    cdef PyObject *value
    target = ALLOCATE(type(prototype))
    while offset < size:
        value = value_at(prototype, offset)
        if value != NULL:
            Py_INCREF(<object> value)
            (<PyObject **> (<char *> <PyObject *> target + offset))[0] = value
        offset += sizeof(PyObject *)
    return target
