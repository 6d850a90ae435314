"""Blocks of the disk for the end of a file that grows, before it has grown (`fallocate` that keeps the file's size).

Appending to a file whose blocks are there already is a fifth cheaper: the system need not keep account of what it will
have to find room for. Python's `posix_fallocate` would make the file longer, and a log has to end with its last batch;
the request that XFS once brought along, and that Linux knows for every file system, leaves the size alone.

Only file systems are asked for which that is known to be of use. Where files are compressed, or in memory, it is not.
"""

import fcntl
import sys
from struct import Struct

from ottla.log.file_system_sync import file_system_type

_RESERVE = 0x4030_582A  # FS_IOC_RESVSP64
_SPACE = Struct("=hhiqqiI4i").pack
_FROM_START = 0
_USEFUL = frozenset({"ext4", "xfs"})

_is_useful: dict[int, bool] = {}
"""By device."""


def reserve_blocks(fd: int, device: int, position: int, size: int) -> bool:
    """Returns False if that is of no use on this device. Raises `OSError` if it cannot be done."""
    if device not in _is_useful:
        _is_useful[device] = sys.platform.startswith("linux") and file_system_type(device) in _USEFUL
    if not _is_useful[device]:
        return False
    fcntl.ioctl(fd, _RESERVE, _SPACE(0, _FROM_START, 0, position, size, 0, 0, 0, 0, 0, 0))
    return True
