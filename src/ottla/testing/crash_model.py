"""What a power cut leaves of a disk: files whose last writes are lost or torn, directories with their last names gone.
And which calls to a disk are to fail, and which directories.

`ottla.testing.memory_disk` is the disk that is built of these, and says by which rules chance decides.
"""

import errno
from random import Random
from typing import Protocol


class Crashed(BaseException):
    """The machine stopped here. Not an `Exception`, so that no handler can continue after it."""


class Change(Protocol):
    def apply(self, data: bytearray) -> None: ...


class Write:
    __slots__ = ("data", "position")

    def __init__(self, position: int, data: bytes) -> None:
        self.position = position
        self.data = data

    def apply(self, data: bytearray) -> None:
        if len(data) < self.position:
            data.extend(bytes(self.position - len(data)))
        data[self.position : self.position + len(self.data)] = self.data

    def torn(self, random: Random) -> "Write":
        return Write(self.position, self.data[: random.randrange(len(self.data) + 1)])


class Truncate:
    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def apply(self, data: bytearray) -> None:
        if self.size < len(data):
            del data[self.size :]
        else:
            data.extend(bytes(self.size - len(data)))


class Content:
    """A file's bytes, whatever names lead to it: `data` as running programs see them, `synced` as a power cut leaves
    them, and `changes` those whose fate is open."""

    __slots__ = ("changes", "data", "has_lost", "is_cold", "modified_ms", "rotten", "synced")

    def __init__(self, synced: bytes = b"") -> None:
        self.synced = bytearray(synced)
        self.data = bytearray(synced)
        self.changes: list[Change] = []
        self.modified_ms = 0
        self.has_lost = False
        """Whether a failed sync has lost what `data` still shows."""
        self.is_cold = False
        self.rotten: list[tuple[bytearray, int, int]] = []
        """Which bits have turned over, of which of the two."""

    def change(self, change: Change) -> None:
        if self.rotten and not (isinstance(change, Write) and change.position >= len(self.data)):
            self.mend()  # What is written anew is sound.
        change.apply(self.data)
        self.changes.append(change)

    def sync(self) -> None:
        for change in self.changes:
            change.apply(self.synced)
        self.changes.clear()

    def lose_unsynced(self, random: Random) -> None:
        """A sync failed, and the system takes the pages for clean: some are on the disk, the others never will be.

        Running programs still see them, in memory, until they are evicted. No later sync brings them back.
        """
        self.has_lost = True
        for change in self.changes:
            if random.random() < 0.5:
                change.apply(self.synced)
        self.changes.clear()

    def evict(self) -> None:
        """What a failed sync has lost is not in memory any more either."""
        if self.has_lost:
            self.has_lost = False
            self.data[:] = self.synced
            for change in self.changes:
                change.apply(self.data)

    def rot(self, position: int, bit: int) -> None:
        """A bit of what is on the disk turns over, for running programs too."""
        for content in (self.synced, self.data):
            if position < len(content):
                content[position] ^= 1 << bit
                self.rotten.append((content, position, bit))

    def mend(self) -> None:
        """The bits that have turned over turn back."""
        for content, position, bit in self.rotten:
            content[position] ^= 1 << bit
        self.rotten.clear()

    def after_crash(self, random: Random) -> "Content":
        data = bytearray(self.synced)
        for change in self.changes:
            fate = random.random()
            if isinstance(change, Write) and fate < 0.2:
                change.torn(random).apply(data)
            elif fate < 0.7:
                change.apply(data)
        return Content(bytes(data))


class Directory:
    """The names in a directory, as running programs see them and as a power cut would leave them."""

    __slots__ = ("changes", "entries", "synced")

    def __init__(self) -> None:
        self.entries: dict[str, Content | Directory] = {}
        self.synced: dict[str, Content | Directory] = {}
        self.changes: list[dict[str, Content | Directory]] = []

    def change(self, entries: dict[str, "Content | Directory"]) -> None:
        self.entries = entries
        self.changes.append(entries)

    def sync(self) -> None:
        self.synced = self.entries
        self.changes.clear()

    def evict(self) -> None:
        for entry in self.entries.values():
            entry.evict()

    def after_crash(self, random: Random, seen: dict[int, Content]) -> "Directory":
        survivors = random.choice([self.synced, *self.changes])
        directory = Directory()
        for name, entry in survivors.items():
            if isinstance(entry, Directory):
                directory.entries[name] = entry.after_crash(random, seen)
            else:
                if id(entry) not in seen:
                    seen[id(entry)] = entry.after_crash(random)
                directory.entries[name] = seen[id(entry)]
        directory.synced = directory.entries
        return directory


class Faults:
    """The errors that calls are to fail with, by the number of the call or by what it does."""

    __slots__ = ("_at", "_next", "_since", "_sometimes")

    def __init__(self) -> None:
        self._sometimes: tuple[Random, float, int, tuple[str, ...]] | None = None
        self._at: dict[int, int] = {}
        self._since: tuple[int, int] | None = None
        self._next: dict[str, tuple[int, int]] = {}

    def at(self, call: int, error: int, times: int) -> None:
        self._at.update(dict.fromkeys(range(call, call + times), error))

    def since(self, call: int, error: int) -> None:
        self._since = (call, error)

    def next(self, operation: str, error: int, times: int) -> None:
        self._next[operation] = (error, times)

    def sometimes(self, chance: Random, share: float, error: int, operations: tuple[str, ...]) -> None:
        self._sometimes = (chance, share, error, operations)

    def clear(self) -> None:
        self._sometimes = None
        self._at.clear()
        self._next.clear()
        self._since = None

    def error_of(self, call: int, operation: str) -> int | None:
        """What this call fails with, if it is to fail. One that is to fail by its name has then done so once."""
        if self._sometimes is not None:
            chance, share, error, operations = self._sometimes
            if operation.startswith(operations) and chance.random() < share:
                return error
        if not (self._at or self._next or self._since):
            return None
        if call in self._at:
            return self._at[call]
        if self._since and call >= self._since[0]:
            return self._since[1]
        for wanted, (error, times) in self._next.items():
            if operation.startswith(wanted):
                self._next[wanted] = (error, times - 1)
                if times == 1:
                    del self._next[wanted]
                return error
        return None


class DeadDirectories:
    """Directories that are on a disk that answers with errors: nothing in them can be read, written or seen."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def add(self, path: str) -> None:
        self._paths.add(path)

    def remove(self, path: str) -> None:
        self._paths.discard(path)

    def hold(self, path: str) -> bool:
        return bool(self._paths) and any(f"{path}/".startswith(f"{dead}/") for dead in self._paths)

    def check(self, path: str) -> None:
        if self.hold(path):
            raise OSError(errno.EIO, "the directory's disk is dead", path)
