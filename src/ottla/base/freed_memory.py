"""Memory that is freed and soon needed again, kept by the C library's allocator.

A consumer hands out half a megabyte of records at a time and frees it with the next call. glibc gives the end of its
heap back to the system as soon as 128 KB of it are free, and the system hands it out again page by page, each cleared:
that was two fifths of the processor time of reading records of 1 KB. glibc raises that threshold by itself when a large
block is freed, to twice the block's size; but a client keeps its large buffers for their next use, and frees none.
"""

from typing import Final

_KEPT_BYTES: Final = 8 << 20
"""At most so much more stays with a process after it has freed everything."""


def keep_freed_memory() -> None:
    """Once is enough for a process; more often does no harm. Nothing is touched, so it costs two system calls."""
    bytearray(_KEPT_BYTES // 2)
