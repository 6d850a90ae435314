"""The real disk: the `Disk` port on POSIX calls."""

import fcntl
import os
import sys
from collections.abc import Sequence
from errno import EACCES, EAGAIN
from functools import partial
from struct import Struct
from threading import get_ident

from ottla.base.lent import Seen
from ottla.base.ports import ColdRead, Space, SyncFailed

# Syncing a whole file system at once (`syncfs`), where that is as good as syncing each of its files.
#
# It is only where two things are so: the kernel reports a failed write to a sync of the file system (Linux 5.8), and
# there is nothing behind the file system that a sync of the whole does not reach, such as the server of FUSE or of a
# network file system, or the layers of an overlay. Where that is not known, the caller syncs its files one by one.
#
# A failed write is reported to a descriptor only if that was open when it failed, or if nobody has heard of it yet:
# somebody else's sync of the same file system may come before ours. So the descriptor has to be one that is older than
# everything that is to be synced.

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
    """The type of the mounted file system that is this device; "" if that cannot be determined."""
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


# Blocks of the disk for the end of a file that grows, before it has grown (`fallocate` that keeps the file's size).
#
# Appending to a file whose blocks are there already is a fifth cheaper: the system need not keep account of what it
# will have to find room for. Python's `posix_fallocate` would make the file longer, and a log has to end with its last
# batch; the request that XFS once brought along, and that Linux knows for every file system, leaves the size alone.
#
# Only file systems are asked for which that is known to be of use. Where files are compressed, or in memory, it is not.

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


# fdatasync leaves out the access time; a file's size is synced with its data, which is all we need.
_sync_file = getattr(os, "fdatasync", os.fsync)
_CLOSED = -1
# What one file has reserved is missing to the others: nothing is, on a disk with less room than so many times as much.
_LEFT_TO_OTHERS = 100
MANY_PATHS = 256


class _NoWaitRule:
    """The thread that may not wait for the disk now, or 0. Only a node's one thread ever may not."""

    __slots__ = ("forbidden_to",)

    def __init__(self) -> None:
        self.forbidden_to = 0


_waiting = _NoWaitRule()
_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)
_WARMED_BYTES = 64 << 10


class OsFile:
    """A descriptor. One that is pinned is closed with its last pin: a number reused meanwhile would be another file.

    So is one that nobody has any more: two threads that open a file at the same time keep the one or the other.
    """

    __slots__ = ("_fd", "_pins")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pins = 1

    def read_at(self, position: int, size: int) -> bytes:
        if _waiting.forbidden_to and _waiting.forbidden_to == get_ident():
            return self._read_ready(position, size)
        return self._read(position, size)

    def _read_ready(self, position: int, size: int) -> bytes:
        """As `read_at`, and raises `ColdRead` where that would wait."""
        buffer = bytearray(size)
        try:
            count = os.preadv(self._fd, [buffer], position, _NO_WAIT)
        except BlockingIOError:
            count = 0
        except OSError:
            return self._read(position, size)  # A file system that cannot tell.
        if count == size:
            return bytes(buffer)
        if position + count >= self.size():
            return bytes(buffer[:count])
        try:
            own = OsFile(os.dup(self._fd))
        except OSError:
            return self._read(position, size)  # No more descriptors: that is worse than waiting.
        raise ColdRead(partial(_warm, own, position, max(size, _WARMED_BYTES)))

    def _read(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        while data and len(data) < size:
            more = os.pread(self._fd, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        view = memoryview(buffer)
        done = 0
        while done < len(view):
            count = os.preadv(self._fd, [view[done:]], position + done)
            if not count:
                break
            done += count
        return done

    def write_at(self, position: int, data: Seen) -> None:
        written = os.pwrite(self._fd, data, position)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], position + written)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def reserve(self, position: int, size: int) -> bool:
        try:
            found = os.fstatvfs(self._fd)
            if found.f_bavail * found.f_frsize < size * _LEFT_TO_OTHERS:
                return False
            return reserve_blocks(self._fd, os.fstat(self._fd).st_dev, position, size)
        except OSError:
            return False

    def sync(self) -> None:
        try:
            _sync_file(self._fd)
        except OSError as problem:
            raise SyncFailed(problem) from problem

    def fileno(self) -> int:
        return self._fd

    def pin(self) -> None:
        assert self._pins > 0, "a closed file cannot be pinned"
        self._pins += 1

    def unpin(self) -> None:
        self._pins -= 1
        if self._pins == 0:
            fd, self._fd = self._fd, _CLOSED
            os.close(fd)

    def close(self) -> None:
        self.unpin()

    def __del__(self) -> None:
        if self._fd != _CLOSED:
            os.close(self._fd)


def _warm(file: OsFile, position: int, size: int) -> None:
    try:
        file.read_at(position, size)
    finally:
        file.close()


class OsLock:
    __slots__ = ("_directory", "_fd", "_file")

    def __init__(self, fd: int, file: tuple[int, int], directory: str) -> None:
        self._fd = fd
        self._file = file
        self._directory = directory

    def release(self) -> None:
        _locked_here.discard(self._file)
        _lock_fds.pop(self._directory, None)
        os.close(self._fd)


# Device and inode of every file that this process has locked: the system's locks are between processes only.
_locked_here: set[tuple[int, int]] = set()
# The descriptor of each lock, by the directory that it is in: it is older than all that is written there.
_lock_fds: dict[str, int] = {}


class OsDisk:
    """Stateless: one instance serves every directory."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OsFile:
        try:
            return OsFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644))
        except PermissionError:
            if create:
                raise
            return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))  # Kafka's metadata snapshots may only be read.

    def reads_may_wait(self, may_wait: bool) -> None:
        _waiting.forbidden_to = 0 if may_wait or not _NO_WAIT else get_ident()

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def space(self, path: str) -> Space:
        found = os.statvfs(path)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def list_dir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def sync_dir(self, path: str) -> None:
        _sync_path(path, os.O_DIRECTORY)

    def sync_all(self, paths: Sequence[str]) -> None:
        """Few are synced one by one: a sync of the file system also waits for what others have written there."""
        if len(paths) >= MANY_PATHS:
            fds = dict.fromkeys(map(_lock_fd_over, paths))
            if None not in fds and all(sync_file_system(fd) for fd in fds if fd is not None):
                return
        for path in paths:
            _sync_path(path)

    def lock(self, path: str) -> OsLock:
        """A record lock, as Java's FileChannel takes, so that each system keeps the other out of its directory."""
        if os.path.exists(path) and _identity(os.stat(path)) in _locked_here:
            # Looked for before opening: closing any descriptor of a file lets go of this process's lock on it.
            raise BlockingIOError(EAGAIN, f"{path} is locked by this process")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(fd)
            if problem.errno in (EACCES, EAGAIN):
                raise BlockingIOError(problem.errno, f"{path} is locked by another process") from problem
            raise
        file = _identity(os.fstat(fd))
        directory = os.path.dirname(path)
        _locked_here.add(file)
        _lock_fds[directory] = fd
        return OsLock(fd, file, directory)


def _lock_fd_over(path: str) -> int | None:
    """The descriptor of the lock of the directory that a path is in, if they are on the same file system."""
    directory = path
    while directory and directory not in _lock_fds:
        directory = directory.rpartition("/")[0]
    fd = _lock_fds.get(directory)
    # A partition may be a link to another disk.
    return fd if fd is not None and os.stat(path).st_dev == os.fstat(fd).st_dev else None


def _sync_path(path: str, flags: int = 0) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(fd)
    except OSError as problem:
        raise SyncFailed(problem) from problem
    finally:
        os.close(fd)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
