"""Two ends of a connection in memory, with TLS above it. A test sees and changes what is under way."""

from collections import deque
from collections.abc import Callable, Sequence

from ottla.base.ports import Buffer, ColdSend, File, Watcher
from ottla.security.tls.handshake import Handshake, HandshakeFailed
from ottla.security.tls.transport import TlsTransport


class Pipe:
    """One direction: bytes that are under way, no more than `capacity` of them."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.data = bytearray()
        self.is_closed = False


class End:
    """One end, as a transport. `watcher` and `wants` are what it was last told to watch for."""

    can_send_files = False
    peer_host = "in.memory"
    peer_principal: str | None = None

    def __init__(self, inward: Pipe, outward: Pipe) -> None:
        self.inward, self.outward = inward, outward
        self.watcher: Watcher | None = None
        self.wants = (False, False)
        self.is_closed = False

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        data = self.inward.data[: len(buffer)]
        if not data and not self.inward.is_closed:
            raise BlockingIOError
        buffer[: len(data)] = data
        del self.inward.data[: len(data)]
        return len(data)

    def send(self, data: Buffer, /) -> int:
        if self.outward.is_closed:
            raise BrokenPipeError
        room = self.outward.capacity - len(self.outward.data)
        if room <= 0:
            raise BlockingIOError
        self.outward.data += data[:room]
        return min(room, len(data))

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: File, position: int, size: int) -> int:
        raise AssertionError("no files here")

    def cold_send(self, file: File, position: int, size: int) -> ColdSend:
        raise AssertionError("no files here")

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self.watcher, self.wants = watcher, (reading, writing)

    def close(self) -> None:
        self.is_closed = True
        self.watcher = None
        self.inward.is_closed = self.outward.is_closed = True

    def turn(self) -> bool:
        """Calls the watcher if this end is ready for what is wanted. Returns whether it was."""
        reading, writing = self.wants
        is_ready = False
        if self.watcher and reading and (self.inward.data or self.inward.is_closed):
            is_ready = True
            self.watcher.on_readable()
        if self.watcher and writing and self.wants[1] and len(self.outward.data) < self.outward.capacity:
            is_ready = True
            self.watcher.on_writable()
        return is_ready


class Wire:
    """Both ends, and what is to be called soon."""

    def __init__(self, capacity: int = 64 << 10) -> None:
        to_server, to_client = Pipe(capacity), Pipe(capacity)
        self.client, self.server = End(to_client, to_server), End(to_server, to_client)
        self.soon: deque[Callable[[], None]] = deque()

    def run(self) -> None:
        """Turns until nothing is ready any more."""
        for _ in range(10_000):
            was_ready = self.client.turn() | self.server.turn()
            while self.soon:
                was_ready = True
                self.soon.popleft()()
            if not was_ready:
                return
        raise AssertionError("it never ends")


class Side:
    """What became of one end's handshake."""

    def __init__(self) -> None:
        self.transport: TlsTransport | None = None
        self.problem: HandshakeFailed | None = None

    def then(self, transport: TlsTransport) -> None:
        assert self.transport is None
        assert self.problem is None
        self.transport = transport

    def failed(self, problem: HandshakeFailed) -> None:
        assert self.transport is None
        assert self.problem is None
        self.problem = problem

    @property
    def up(self) -> TlsTransport:
        assert self.transport is not None, self.problem
        return self.transport


def server_side(wire: Wire, context: object, **given: object) -> tuple[Side, Handshake]:
    side = Side()
    handshake = Handshake(
        wire.server, context, later=wire.soon.append, then=side.then, failed=side.failed, is_server=True, **given
    )  # type: ignore[arg-type]
    handshake.start()
    return side, handshake


def client_side(wire: Wire, context: object, host: str = "localhost", **given: object) -> tuple[Side, Handshake]:
    side = Side()
    handshake = Handshake(
        wire.client, context, later=wire.soon.append, then=side.then, failed=side.failed, host=host, **given
    )  # type: ignore[arg-type]
    handshake.start()
    return side, handshake
