"""Keys and certificates in files: read with care, and made for OpenSSL, which takes keys from files only.

A path may come from an administrator of the cluster, over the network. So nothing but a regular file is read, and not
more of it than a store of keys has: a FIFO would hold a thread for ever, a device would never end.

Where the system has files in memory that have no name, a key for OpenSSL never touches a disk. Elsewhere it is in a
file that its owner alone may read, and that is gone when it has been read.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ottla.base.errors import OttlaError

_DESCRIPTORS: Final = "/proc/self/fd"
MOST_BYTES: Final = 8 << 20


class UnreadableFile(OttlaError):
    """The message says why, to follow the path."""


def read_file(path: str) -> bytes:
    """What is in a regular file of at most `MOST_BYTES`. Raises `UnreadableFile`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # A FIFO is not waited for.
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableFile("not a regular file")
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as problem:
        raise UnreadableFile(getattr(problem, "strerror", None) or str(problem)) from problem
    if len(data) > MOST_BYTES:
        raise UnreadableFile(f"more than {MOST_BYTES >> 20} MiB")
    return data


@contextmanager
def key_file(data: bytes) -> Iterator[str]:
    """The path of a file with these bytes."""
    if hasattr(os, "memfd_create") and os.path.isdir(_DESCRIPTORS):
        descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"{_DESCRIPTORS}/{descriptor}"
        finally:
            os.close(descriptor)
        return
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(prefix="ottla-") as file:
        file.write(data)
        file.flush()
        yield file.name
