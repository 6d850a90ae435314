"""Memory that ends where no page is: a read past the end is the end of the process. For programs that tests run."""

import ctypes
import mmap

_PAGES = 64


class Guarded:
    """Memory behind which there is none."""

    def __init__(self) -> None:
        self._size = _PAGES * mmap.PAGESIZE
        memory = mmap.mmap(-1, self._size + mmap.PAGESIZE)
        self._view = memoryview(memory)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + self._size
        if ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")

    def hold(self, data: bytes | bytearray) -> memoryview:
        """A view of these bytes, right before the end."""
        self._view[self._size - len(data) : self._size] = data
        return self._view[self._size - len(data) : self._size]
