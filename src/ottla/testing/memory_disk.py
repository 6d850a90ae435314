"""A disk in memory that forgets, tears and fails like a real one.

Theory of operation: the disk counts every call that a real one could fail in. `crash_at(n)` makes the n-th call the
last: it raises `Crashed`, and so does every call after it. `survivor(random)` is then the disk as the next start finds
it. What was synced is there. Of everything else, chance decides:

- writes to a file since its last sync persist or not each on its own, in whole or up to a torn point, and what lies
  between them reads as zeros;
- names in a directory (creations, renames, removals) since its last sync persist up to some point, in order, each
  directory on its own, as journalling file systems do it.

A file's content and its name are separate: a synced file whose name is lost is lost. `fail_at(n, errno)` makes one call
fail, or some in a row, and the disk continue; `fail_next(operation, errno)` does so by what the call does. A write that
fails may have written any part of its data. A sync that fails may have lost what it was to make durable: see
`syncs_lose_pages`. Reads are counted on their own (`reads`), since no crash is special for coming in one.

`fail_directory(path)` has everything in a directory fail, what is open too, as when it is on a disk of its own that
dies. It is `mend_directory` or `empty_directory` that ends it: another disk in its place, with what a power cut would
have left, or with nothing.

`usable_bytes` is how much may still be written before the disk is full. `clock` is what files are stamped with.
"""

import errno
from collections.abc import Callable, Sequence
from random import Random

from ottla.base.ports import Clock, Space, SyncFailed
from ottla.testing.crash_model import Content, Crashed, DeadDirectories, Directory, Faults
from ottla.testing.memory_file import MemoryFile

__all__ = ["Crashed", "MemoryDisk", "MemoryFile"]

_SPACE = Space(1 << 40, 1 << 39)


class _MemoryLock:
    def __init__(self, disk: "MemoryDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locks.discard(self._path)


class MemoryDisk:
    """See the module's theory of operation. `calls` and `reads` count what can fail; `open_files` finds leaks."""

    def __init__(self, random: Random | None = None, root: Directory | None = None) -> None:
        self.calls = 0
        self.reads = 0
        self.open_files = 0
        self.clock: Clock | None = None
        self.on_call: Callable[[str], None] | None = None
        """Called for every call before it does anything, and of a sync when it is done, too: what another thread does
        may come in between."""
        self.syncs_lose_pages = False
        """Whether a file's sync that fails takes the unsynced changes with it, as Linux does it."""
        self.usable_bytes: int | None = None
        """How much more files may grow; None without an end."""
        self._now_ms = 0
        self.locks: set[str] = set()
        self.may_wait = True
        self._random = random or Random(0)
        self._root = root or Directory()
        self._crash_at = -1
        self._crashed = False
        self._faults = Faults()
        self._read_faults = Faults()
        self.dead = DeadDirectories()

    @property
    def now_ms(self) -> int:
        return self._now_ms if self.clock is None else self.clock.now_ms()

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def take_space(self, growth: int) -> None:
        """Raises `OSError` when a file cannot grow by so much. What is removed gives nothing back."""
        if self.usable_bytes is None or growth <= 0:
            return
        if growth > self.usable_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.usable_bytes -= growth

    def crash_at(self, call: int) -> None:
        self._crash_at = call

    def fail_at(self, call: int, error: int, times: int = 1) -> None:
        """The n-th call fails with this errno, and with `times` those after it; the others succeed."""
        self._faults.at(call, error, times)

    def fail_next(self, operation: str, error: int, times: int = 1) -> None:
        """The next call whose name begins so fails: "write", "sync file", "sync_dir", "create 000", "rename 000", …"""
        self._faults.next(operation, error, times)

    def fail_from(self, call: int, error: int) -> None:
        """Every call from the n-th on fails: a full disk, or a dead one."""
        self._faults.since(call, error)

    def fail_read_at(self, read: int, error: int, times: int = 1) -> None:
        """As `fail_at`, for the n-th read of a file's content."""
        self._read_faults.at(read, error, times)

    def fail_sometimes(self, chance: Random, share: float, error: int, operations: tuple[str, ...]) -> None:
        """From now on this share of the calls whose names begin so fail: "open", "create", "write", "sync", …"""
        self._faults.sometimes(chance, share, error, operations)
        self._read_faults.sometimes(chance, share, error, operations)

    def fail_directory(self, path: str) -> None:
        """Everything in it fails from now on."""
        self.dead.add(path)

    def mend_directory(self, path: str) -> None:
        """It answers again. What was not synced when it died is lost, torn or there."""
        self.dead.remove(path)
        parent, name = self._parent(path)
        survivor = self._directory(path).after_crash(self._random, {})
        parent.change({**parent.entries, name: survivor})
        parent.sync()

    def empty_directory(self, path: str) -> None:
        """There is an empty one in its place."""
        self.dead.remove(path)
        parent, name = self._parent(path)
        parent.change({**parent.entries, name: Directory()})
        parent.sync()

    def check_sync(self, path: str, lose: Callable[[Random], object]) -> None:
        """Raises `OSError` where the disk of a file is dead. What was to be made durable may be lost."""
        if self.dead.hold(path):
            lose(self._random)
            self.dead.check(path)

    def cool(self, path: str) -> None:
        """The file is not in the system's memory: reading it waits for the disk, once."""
        self._file(path).is_cold = True

    def reads_may_wait(self, may_wait: bool) -> None:
        self.may_wait = may_wait

    def repair(self) -> None:
        self._faults.clear()
        self._read_faults.clear()
        self.usable_bytes = None

    def rot(self, path: str, position: int, bit: int = 0) -> None:
        """A bit of a file turns over where nobody wrote."""
        self._file(path).rot(position, bit)

    def mend(self, path: str) -> None:
        """What has rotted of a file reads well again, if the file is still there."""
        file = self._find(path)
        if isinstance(file, Content):
            file.mend()

    def replace(self, path: str, content: bytes | None) -> None:
        """A file has other content where nobody wrote, durably; without any it is gone."""
        parent, name = self._parent(path)
        self._file(path)
        entries = {key: entry for key, entry in parent.entries.items() if key != name}
        if content is not None:
            entries[name] = Content(content)
        parent.change(entries)
        parent.sync()

    def restore(self, path: str, content: bytes) -> None:
        """A file is there with this content, durably, whether there was one or not."""
        parent, name = self._parent(path)
        parent.change({**parent.entries, name: Content(content)})
        parent.sync()

    def survivor(self, random: Random) -> "MemoryDisk":
        """The disk as the next start finds it after a power cut now."""
        return MemoryDisk(random, self._root.after_crash(random, {}))

    def survivor_of_kill(self) -> "MemoryDisk":
        """The disk as the next start finds it when only the process died: nothing is lost but what a sync has lost."""
        self._root.evict()
        return MemoryDisk(self._random, self._root)

    def call(self, operation: str) -> None:
        """At the beginning of every call."""
        if self.on_call is not None:
            self.on_call(operation)

    def look(self, operation: str) -> None:
        """At the beginning of every call that changes nothing. Raises if this one is to fail."""
        self.call(operation)
        error = self._read_faults.error_of(-1, operation)
        if error is not None:
            raise OSError(error, f"injected at {operation}")

    def step(self, operation: str, partly: Callable[[Random], object] | None = None) -> None:
        """Before every call that can fail. Raises if this one does, after what `partly` says it has done of it."""
        self.check_running()
        self.calls += 1
        error = self._faults.error_of(self.calls, operation)
        crashes = self.calls == self._crash_at
        if not crashes and error is None:
            return
        if partly is not None:
            partly(self._random)
        if crashes:
            self._crashed = True
            raise Crashed(f"at call {self.calls}, {operation}")
        problem = OSError(error, f"injected at call {self.calls}, {operation}")
        raise SyncFailed(problem) if operation.startswith("sync") else problem

    def step_of_reading(self) -> None:
        self.reads += 1
        error = self._read_faults.error_of(self.reads, "read")
        if error is not None:
            raise OSError(error, f"injected at read {self.reads}")

    def check_running(self) -> None:
        if self._crashed:
            raise Crashed("the machine has already stopped")

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        self.look("open")
        self.dead.check(path)
        parent, name = self._parent(path)
        entry = parent.entries.get(name)
        if entry is None and create:
            self.step(f"create {name}")
            entry = Content()
            entry.modified_ms = self.now_ms
            parent.change({**parent.entries, name: entry})
        if not isinstance(entry, Content):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.check_running()
        self.open_files += 1
        return MemoryFile(self, entry, path)

    def exists(self, path: str) -> bool:
        """As Python has it: False where the disk cannot say."""
        self.call("exists")
        return not self.dead.hold(path) and self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        self.call("is_dir")
        return not self.dead.hold(path) and isinstance(self._find(path), Directory)

    def size(self, path: str) -> int:
        self.look("size")
        self.dead.check(path)
        return len(self._file(path).data)

    def modified_ms(self, path: str) -> int:
        self.look("modified_ms")
        self.dead.check(path)
        return self._file(path).modified_ms

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.call("set_modified_ms")
        self.dead.check(path)
        file = self._file(path)
        self.step("utime")
        file.modified_ms = modified_ms

    def space(self, path: str) -> Space:
        self.look("space")
        self.dead.check(path)
        self._directory(path)
        return _SPACE if self.usable_bytes is None else Space(_SPACE.total_bytes, self.usable_bytes)

    def files(self) -> dict[str, bytes]:
        """Every file that is there now, by its path: for comparing disks."""
        found: dict[str, bytes] = {}
        directories = [("", self._root)]
        for path, directory in directories:
            for name, entry in sorted(directory.entries.items()):
                if isinstance(entry, Directory):
                    directories.append((f"{path}/{name}", entry))
                else:
                    found[f"{path}/{name}"] = bytes(entry.data)
        return found

    def list_dir(self, path: str) -> list[str]:
        self.look("list_dir")
        self.dead.check(path)
        return sorted(self._directory(path).entries)

    def make_dirs(self, path: str) -> None:
        self.call("make_dirs")
        self.dead.check(path)
        directory = self._root
        for name in path.strip("/").split("/"):
            entry = directory.entries.get(name)
            if entry is None:
                self.step(f"mkdir {name}")
                entry = Directory()
                directory.change({**directory.entries, name: entry})
            if not isinstance(entry, Directory):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
            directory = entry

    def rename(self, source: str, target: str) -> None:
        self.call("rename")
        self.dead.check(source)
        parent, name = self._parent(source)
        target_parent, target_name = self._parent(target)
        if name not in parent.entries:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        assert parent is target_parent, "renames stay within a directory: only those are atomic after a power cut"
        self.step(f"rename {name} to {target_name}")
        entries = dict(parent.entries)
        entries[target_name] = entries.pop(name)
        parent.change(entries)

    def remove(self, path: str) -> None:
        self.call("remove")
        self.dead.check(path)
        self._file(path)
        self._unlink(path)

    def remove_dir(self, path: str) -> None:
        self.call("remove_dir")
        self.dead.check(path)
        if self._directory(path).entries:
            raise OSError(errno.ENOTEMPTY, "directory not empty", path)
        self._unlink(path)

    def sync_dir(self, path: str) -> None:
        self.call("sync_dir")
        self.dead.check(path)
        directory = self._directory(path)
        self.step("sync_dir")
        directory.sync()
        self.call("after sync_dir")

    def sync_all(self, paths: Sequence[str]) -> None:
        """A crash or a failure comes when some of them are synced, and chance decides which."""
        self.call("sync_all")
        for path in paths:
            self.dead.check(path)
        entries = [self._entry(path) for path in paths]
        self.step("sync_all", partly=lambda random: [entry.sync() for entry in entries if random.random() < 0.5])
        for entry in entries:
            entry.sync()
        self.call("after sync_all")

    def lock(self, path: str) -> _MemoryLock:
        if path in self.locks:
            raise BlockingIOError(errno.EAGAIN, f"{path} is locked")
        self.open(path, create=True).close()
        self.locks.add(path)
        return _MemoryLock(self, path)

    def _unlink(self, path: str) -> None:
        parent, name = self._parent(path)
        self.step(f"remove {name}")
        parent.change({key: entry for key, entry in parent.entries.items() if key != name})

    def _parent(self, path: str) -> tuple[Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name

    def _find(self, path: str) -> Content | Directory | None:
        entry: Content | Directory | None = self._root
        for name in path.split("/"):
            if name:
                if not isinstance(entry, Directory):
                    return None
                entry = entry.entries.get(name)
        return entry

    def _entry(self, path: str) -> Content | Directory:
        entry = self._find(path)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory", path)
        return entry

    def _file(self, path: str) -> Content:
        entry = self._find(path)
        if not isinstance(entry, Content):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return entry

    def _directory(self, path: str) -> Directory:
        entry = self._find(path)
        if not isinstance(entry, Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return entry
