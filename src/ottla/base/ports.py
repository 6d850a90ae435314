"""The ports through which the world comes in: everything below `runtime` sees only these.

Each has a real implementation and one for tests, so that a crash, a full disk or a clock that
jumps is an ordinary test case.
"""

from collections.abc import Callable, Hashable, Sequence
from errno import EIO
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from ottla.base.errors import OttlaError
from ottla.base.lent import Buffer as Buffer
from ottla.base.lent import Seen

ItemT = TypeVar("ItemT")


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, as records carry them. May jump."""
        ...

    def elapsed_s(self) -> float:
        """Seconds since some moment: monotonic."""
        ...

    def thread_s(self) -> float:
        """Seconds that the calling thread has kept a processor busy."""
        ...


class Entropy(Protocol):
    """Chance. The real one cannot be foretold; a test's comes from a seed. Has the methods of `random.Random`."""

    def randbytes(self, count: int, /) -> bytes: ...

    def randrange(self, stop: int, /) -> int:
        """At least 0, and less than `stop`."""
        ...

    def shuffle(self, items: list[ItemT], /) -> None: ...


class Timer(Protocol):
    """One that was set: it fires once, or again and again, until it is cancelled."""

    def cancel(self) -> None: ...


class Timers(Protocol):
    """Calls back on the node's one thread, never from within the call that sets a timer."""

    @property
    def is_closed(self) -> bool: ...

    def now_s(self) -> float:
        """The time that delays are counted in: that of `Clock.elapsed_s`."""
        ...

    def after(self, delay_s: float, callback: Callable[[], None]) -> Timer: ...

    def every(self, interval_s: float, callback: Callable[[], None], *, first_s: float | None = None) -> Timer: ...

    def close(self) -> None:
        """Cancels every timer that is set. One that is set after this never fires: what would is about to be closed."""
        ...


class Workers(Protocol):
    """Threads that wait for the disk, so that the node's one thread does not have to.

    Jobs with the same key run one after the other, in the order given; others side by side.
    """

    def run(
        self,
        function: Callable[[], ItemT],
        then: Callable[[ItemT], None],
        failed: Callable[[Exception], None] | None = None,
        *,
        key: Hashable = None,
    ) -> None:
        """Has `function` done, and what it returns or raises given to `then` or `failed` on the node's one thread.

        Without `failed`, an exception is raised there.
        """
        ...

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Calls back once no job is under way."""
        ...

    def close(self) -> None:
        """Takes no more jobs. Of those that are under way nothing is reported any more."""
        ...


class HostNames(Protocol):
    """What the system's resolver knows. Asking may wait for the network: not for the loop."""

    def addresses_of(self, name: str) -> Sequence[str]:
        """The addresses of a host. Raises `OSError` when there are none."""
        ...

    def own_name(self) -> str:
        """What other machines call this one."""
        ...


class Space(NamedTuple):
    """How large a file system is, and how much of it is left."""

    total_bytes: int
    usable_bytes: int


class ColdRead(OttlaError):
    """A read that would have had to wait for the disk, on a thread that may not: see `Disk.reads_may_wait`.

    `warm` reads what was missing and waits for it, so that it is in memory then: once, on any thread, whatever becomes
    of the file meanwhile. Raises `OSError` when the disk fails.
    """

    def __init__(self, warm: Callable[[], None]) -> None:
        super().__init__("not in memory")
        self.warm = warm


class SyncFailed(OttlaError, OSError):
    """A sync has failed: what it was to make durable is lost, or not, and nobody can say which part of it.

    The system takes the pages that it could not write for written, so the next sync succeeds and means nothing. That is
    so whatever the reason was; a disk that is full for a sync (a quota, a thin volume) is not one that is full for a
    write, of which nothing was accepted. So its errno is EIO, always, and the reason is in the message.
    """

    def __init__(self, reason: OSError) -> None:
        super().__init__(EIO, f"cannot sync: {reason}")


class File(Protocol):
    """One open file. Positions are explicit, so one handle serves concurrent readers."""

    def read_at(self, position: int, size: int) -> bytes:
        """At most `size` bytes from `position`; fewer only at the end of the file."""
        ...

    def read_into(self, position: int, buffer: bytearray | memoryview) -> int:
        """Fills `buffer` from `position`; returns how many bytes there were."""
        ...

    def write_at(self, position: int, data: Seen) -> None:
        """Writes all of `data`, or raises `OSError` having written any part of it."""
        ...

    def size(self) -> int: ...

    def truncate(self, size: int) -> None:
        """Ends the file there, and gives back what was reserved beyond, even if the size stays the same."""
        ...

    def reserve(self, position: int, size: int) -> bool:
        """Asks for room on the disk for bytes that are to be written there; the file's size stays as it is.

        A hint, for a file that grows: it raises nothing, and returns whether there is any use in asking again.
        """
        ...

    def sync(self) -> None:
        """Returns once the file's bytes and size would survive a power cut. Its name needs `Disk.sync_dir`.

        Raises `SyncFailed` if the disk fails.
        """
        ...

    def fileno(self) -> int:
        """The descriptor, for `sendfile`. Raises `OSError` where there is none."""
        ...

    def pin(self) -> None:
        """Keeps the file open beyond `close`, until `unpin`: a part of it is on its way to a client."""
        ...

    def unpin(self) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    """The file operations the log needs, and no others. Paths are absolute strings.

    Every method raises `OSError` (with `errno`) when the operating system does. Creations, renames and
    removals survive a power cut only after `sync_dir` of their directory.
    """

    def open(self, path: str, *, create: bool = False) -> File:
        """Opens for reading and writing; with `create`, makes an empty file if there is none."""
        ...

    def reads_may_wait(self, may_wait: bool) -> None:
        """Whether `File.read_at`, on the calling thread, may wait for the disk; otherwise it raises `ColdRead`.

        As long as nobody says so, reads wait. Where the system cannot tell what is in memory, they wait anyway.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Makes a file as old as another that it stands for."""
        ...

    def space(self, path: str) -> Space:
        """Of the file system that a directory is on."""
        ...

    def list_dir(self, path: str) -> Sequence[str]:
        """Names in a directory, sorted."""
        ...

    def make_dirs(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces a `target` file."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """Removes an empty directory."""
        ...

    def sync_dir(self, path: str) -> None:
        """Raises `SyncFailed` as `File.sync` does; `sync_all` too."""
        ...

    def sync_all(self, paths: Sequence[str]) -> None:
        """Syncs each of these, files as `File.sync` does and directories as `sync_dir`, in any order.

        Thousands at once cost little more than one, where the system can sync a whole file system.
        """
        ...

    def lock(self, path: str) -> Lock:
        """Takes the advisory lock on a file, creating it; raises `BlockingIOError` when another process holds it."""
        ...


class Watcher(Protocol):
    """What a network calls when a transport or a listener is ready. It must not raise."""

    def on_readable(self) -> None:
        """There is something to receive or to accept, or the other side has gone."""
        ...

    def on_writable(self) -> None:
        """There is room to send."""
        ...


class ColdSend(Protocol):
    """A part of a file that a disk thread sends, as far as the other side takes it at once."""

    def run(self) -> int:
        """On a disk thread, where it may wait for the disk; returns how many bytes were sent. May raise `OSError`."""
        ...

    def end(self) -> None:
        """On the loop's thread, when `run` is over: lets go of what it holds."""
        ...


class Transport(Protocol):
    """One connection's bytes. Nothing here waits.

    Sending and receiving raise `BlockingIOError` where they would wait, and any other `OSError` when the connection is
    of no use any more.
    """

    peer_host: str
    peer_principal: str | None
    """Who the other side has proved to be while it connected (`User:CN=…`); None if that takes more than connecting."""
    can_send_files: bool
    """Whether `send_file` and `cold_send` may be called. If not, files are read, and sent as bytes."""

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        """How many bytes came; 0 when the other side has ended."""
        ...

    def send(self, data: Buffer, /) -> int:
        """How many bytes were taken."""
        ...

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        """As `send`, of several at once. `more`: what comes next follows at once, and may share a packet with this."""
        ...

    def send_file(self, file: File, position: int, size: int) -> int:
        """Sends from a file, without the bytes passing through this process."""
        ...

    def cold_send(self, file: File, position: int, size: int) -> ColdSend:
        """The same for a disk thread. Raises `OSError` when there are no descriptors for it."""
        ...

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        """Has `watcher` called, from the next turn on, for as long as the transport is ready for what is wanted."""
        ...

    def close(self) -> None: ...


class Listener(Protocol):
    """An address at which clients may connect."""

    address: tuple[str, int]

    def accept(self) -> Transport:
        """The next client. Raises `BlockingIOError` when none waits, another `OSError` when it cannot be taken."""
        ...

    def watch(self, watcher: Watcher | None) -> None:
        """Has `on_readable` called for as long as somebody waits; with None, nobody is called, and clients wait."""
        ...

    def close(self) -> None: ...


class Dialling(Protocol):
    """A connection in the making."""

    def cancel(self) -> None:
        """Gives up. Neither callback is called after that."""
        ...


class Dialer(Protocol):
    """Connecting to others."""

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> Dialling:
        """Calls `then` with a transport that is connected, or `failed`: one of them, once, and never within this call.

        The addresses of a host are tried one after the other. A size of -1 is the system's choice.
        """
        ...


class Network(Dialer, Protocol):
    """Listening, connecting, and turns: in one turn the watchers of all that is ready are called, one after another."""

    is_crowded: bool
    """Whether several watchers are called in this turn: then replies are better sent together at its end."""

    def listen(
        self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int, send_buffer_bytes: int
    ) -> Listener:
        """Port 0 picks a free one. Raises `OSError` when the address is taken. A size of -1 is the system's choice."""
        ...

    def at_end_of_turn(self, callback: Callable[[], None]) -> None:
        """Calls back once, when all that is ready in this turn has been handled; soon, if there is no turn now."""
        ...

    def close(self) -> None: ...
