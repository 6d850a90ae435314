"""A private key as a file for as long as OpenSSL reads it: it takes keys from files only.

Where the system has files in memory that have no name, the key never touches a disk. Elsewhere it is in a file that
its owner alone may read, and that is gone when it has been read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_DESCRIPTORS: Final = "/proc/self/fd"


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
