"""Syncing a whole file system at once (`syncfs`), where that is as good as syncing each of its files.

It is only where two things are so: the kernel reports a failed write to a sync of the file system (Linux 5.8), and
there is nothing behind the file system that a sync of the whole does not reach, such as the server of FUSE or of a
network file system, or the layers of an overlay. Where that is not known, the caller syncs its files one by one.

A failed write is reported to a descriptor only if that was open when it failed, or if nobody has been told of it yet:
somebody else's sync of the same file system may come before ours. So the descriptor has to be one that is older than
everything that is to be synced.
"""

import os
import sys

from ottla.base.ports import SyncFailed

_REPORTS_ERRORS = (5, 8)
_TRUSTED = frozenset({"ext3", "ext4", "xfs", "btrfs", "f2fs", "tmpfs"})
_MOUNTS = "/proc/self/mountinfo"


def sync_file_system(fd: int) -> bool:
    """Makes all that is on the file system of this file durable. Returns False, having done nothing, where it cannot.

    `fd` was opened before anything of it was written, and reports what has failed since then, once.
    """
    if not sys.platform.startswith("linux") or _kernel_version() < _REPORTS_ERRORS:
        return False
    if file_system_type(os.fstat(fd).st_dev) not in _TRUSTED:
        return False
    import ctypes  # Costs a start of the node more than it is worth: most stops have few logs to sync.

    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return False
    if syncfs(fd):
        error = ctypes.get_errno()
        raise SyncFailed(OSError(error, os.strerror(error)))
    return True


def _kernel_version() -> tuple[int, ...]:
    return tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2] if number.isdecimal())


def file_system_type(device: int) -> str:
    """The type of the mounted file system that is this device; "" if that cannot be told."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS) as mounts:
            for line in mounts:
                mount, _, source = line.partition(" - ")
                if mount.split()[2] == wanted:
                    return source.split()[0]
    except OSError:
        pass
    return ""
