"""A network in memory: no sockets, no waiting, and the same order every time.

Theory of operation: a connection is two pipes of bounded size. Nothing moves by itself. A test (or a simulator) sends
and receives at the client's end and lets the node take a turn; in a turn the watchers of everything that is ready are
called in the order in which they began to watch, and then what waits for the turn's end. A client that does not receive
fills its pipe, and the node finds it unwritable; one that resets, or that `fails` with an error, is found out when the
node next sends or receives.

Nodes connect to each other too. Who is at an address is for the world to say: `find` of each network finds the one that
listens there, and without it a node reaches itself alone. A connection that is dialled is there in the next turn.
"""

import errno
import os
from collections.abc import Callable, Sequence
from itertools import count

from ottla.base.ports import Buffer, ColdSend, File, Transport, Watcher

PIPE_BYTES = 64 << 10
_FIRST_FREE_PORT = 49152


class _Pipe:
    """One direction of a connection."""

    __slots__ = ("capacity", "data", "is_closed")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.data = bytearray()
        self.is_closed = False

    @property
    def room(self) -> int:
        return self.capacity - len(self.data)

    def put(self, data: Buffer) -> int:
        taken = memoryview(data)[: self.room]
        self.data += taken
        return len(taken)

    def get(self, most: int) -> bytes:
        data = bytes(self.data[:most])
        del self.data[:most]
        return data


class MemoryTransport:
    """The node's end of a connection."""

    can_send_files = False
    peer_principal: str | None = None

    def __init__(self, network: "MemoryNetwork", peer_host: str, inward: _Pipe, outward: _Pipe) -> None:
        self.peer_host = peer_host
        self.problem: OSError | None = None
        self.is_closed = False
        self._network = network
        self._inward = inward
        self._outward = outward

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        self._check()
        data = self._inward.get(len(buffer))
        if not data and not self._inward.is_closed:
            raise BlockingIOError(errno.EAGAIN, "nothing has come")
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: Buffer, /) -> int:
        self._check()
        if self._outward.is_closed:
            raise BrokenPipeError(errno.EPIPE, "nobody receives")
        if not self._outward.room:
            raise BlockingIOError(errno.EAGAIN, "the client takes no more")
        return self._outward.put(data)

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: File, position: int, size: int) -> int:
        raise AssertionError("a network in memory sends no files")

    def cold_send(self, file: File, position: int, size: int) -> ColdSend:
        raise AssertionError("a network in memory sends no files")

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self._network.note_watched(self, watcher, reading=reading, writing=writing)

    def close(self) -> None:
        self.is_closed = True
        self._inward.is_closed = self._outward.is_closed = True
        self.watch(None, reading=False, writing=False)

    def _check(self) -> None:
        assert not self.is_closed, "the transport was closed"
        if self.problem is not None:
            raise self.problem

    @property
    def is_readable(self) -> bool:
        return bool(self._inward.data) or self._inward.is_closed or self.problem is not None

    @property
    def is_writable(self) -> bool:
        return bool(self._outward.room) or self._outward.is_closed or self.problem is not None


class MemoryClient:
    """The client's end of a connection. Every method takes effect at once; the node notices in its next turn."""

    def __init__(self, transport: MemoryTransport, inward: _Pipe, outward: _Pipe) -> None:
        self._transport = transport
        self._inward = inward
        self._outward = outward

    def send(self, data: Buffer) -> int:
        """Sends as much as the pipe takes, and says how much that was."""
        if self._outward.is_closed:
            raise BrokenPipeError(errno.EPIPE, "the node has closed the connection")
        return self._outward.put(data)

    def receive(self, most: int = 1 << 30) -> bytes:
        """What has come, at most so much of it; empty if nothing has."""
        return self._inward.get(most)

    @property
    def is_closed(self) -> bool:
        """Whether the node has hung up."""
        return self._transport.is_closed

    def close(self) -> None:
        """Ends in good order: what was sent before still arrives."""
        self._inward.is_closed = self._outward.is_closed = True

    def fail(self, code: int = errno.ECONNRESET) -> None:
        """Breaks the connection: the node's next attempt to send or receive raises this error."""
        self._transport.problem = OSError(code, os.strerror(code))


class MemoryListener:
    def __init__(self, network: "MemoryNetwork", address: tuple[str, int]) -> None:
        self.address = address
        self.backlog: list[MemoryTransport] = []
        self.problems: list[OSError] = []
        """What the next attempts to accept raise."""
        self._network = network

    def accept(self) -> MemoryTransport:
        if self.problems:
            raise self.problems.pop(0)
        if not self.backlog:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        return self.backlog.pop(0)

    def watch(self, watcher: Watcher | None) -> None:
        self._network.note_watched(self, watcher, reading=watcher is not None, writing=False)

    def close(self) -> None:
        self.watch(None)
        self._network.forget(self)

    @property
    def is_readable(self) -> bool:
        return bool(self.backlog or self.problems)

    is_writable = False


class MemoryDialling:
    """A connection in the making, until the next turn."""

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


FindNetwork = Callable[[str, int], "MemoryNetwork | None"]
"""The network of the node that is at an address, if one is."""


class MemoryNetwork:
    """See the module. `turn` lets the node take one turn. `host` is what the other side sees of its connections."""

    def __init__(
        self, pipe_bytes: int = PIPE_BYTES, *, host: str = "127.0.0.1", find: FindNetwork | None = None
    ) -> None:
        self.host = host
        self.find: FindNetwork = find or (lambda _host, _port: self)
        self.is_crowded = False
        self.turns = 0
        self._pipe_bytes = pipe_bytes
        self._ports = count(_FIRST_FREE_PORT)
        self._listeners: dict[tuple[str, int], MemoryListener] = {}
        self._watched: dict[MemoryTransport | MemoryListener, tuple[Watcher, bool, bool]] = {}
        self._endings: list[Callable[[], None]] = []

    # The node's side

    def listen(
        self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int, send_buffer_bytes: int
    ) -> MemoryListener:
        address = host, port or next(self._ports)
        if address in self._listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = self._listeners[address] = MemoryListener(self, address)
        return listener

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> MemoryDialling:
        dialling = MemoryDialling()

        def connect() -> None:
            if dialling.is_cancelled:
                return
            network = self.find(host, port)
            listener = network.listener_at(host, port) if network is not None else None
            if network is None or listener is None:
                failed(ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}:{port}"))
                return
            inward, outward = _Pipe(self._pipe_bytes), _Pipe(self._pipe_bytes)
            listener.backlog.append(MemoryTransport(network, self.host, outward, inward))
            then(MemoryTransport(self, host, inward, outward))

        self._endings.append(connect)
        return dialling

    def at_end_of_turn(self, callback: Callable[[], None]) -> None:
        self._endings.append(callback)

    def note_watched(
        self, end: MemoryTransport | MemoryListener, watcher: Watcher | None, *, reading: bool, writing: bool
    ) -> None:
        if watcher is None or not (reading or writing):
            self._watched.pop(end, None)
        else:
            self._watched[end] = watcher, reading, writing

    def forget(self, listener: MemoryListener) -> None:
        self._listeners.pop(listener.address, None)

    def close(self) -> None:
        self._watched.clear()
        self._endings.clear()

    # The world's side

    def listener_at(self, host: str, port: int) -> MemoryListener | None:
        return self._listeners.get((host, port))

    def connect(self, host: str, port: int, client_host: str = "127.0.0.1") -> MemoryClient:
        """Raises `ConnectionRefusedError` where nobody listens."""
        listener = self.listener_at(host, port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens at {host}:{port}")
        to_node, to_client = _Pipe(self._pipe_bytes), _Pipe(self._pipe_bytes)
        transport = MemoryTransport(self, client_host, to_node, to_client)
        listener.backlog.append(transport)
        return MemoryClient(transport, to_client, to_node)

    def turn(self) -> bool:
        """Calls the watchers of what is ready now, then what waits for the end. Returns whether anything was done."""
        ready = [
            (end, reading and end.is_readable, writing and end.is_writable)
            for end, (_, reading, writing) in self._watched.items()
        ]
        ready = [one for one in ready if one[1] or one[2]]
        if not ready and not self._endings:
            return False
        self.turns += 1
        self.is_crowded = len(ready) > 1
        for end, is_readable, is_writable in ready:
            if is_readable and end in self._watched:
                self._watched[end][0].on_readable()
            if is_writable and end in self._watched:
                self._watched[end][0].on_writable()
        endings, self._endings = self._endings, []
        for ending in endings:
            ending()
        return True

    def run(self, most_turns: int = 10_000) -> None:
        """Turns until nothing is ready."""
        for _ in range(most_turns):
            if not self.turn():
                return
        raise AssertionError(f"not at rest after {most_turns} turns")
