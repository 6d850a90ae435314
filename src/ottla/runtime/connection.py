"""One client's connection: bytes in, requests to the handler, replies out in order.

Theory of operation. All connections read into one large scratch buffer. Whole requests in it are decoded and handled
where they lie; only the beginning of one that is still arriving is copied to the connection, into a buffer that grows
with what has arrived and not with what was announced. So ten thousand idle connections, or a thousand that announce two
gigabytes and send nothing, cost next to nothing.

Requests are handled as they come, several of one connection before the first is answered. Each has a slot; a slot's
reply leaves when all slots before it have left. A connection that has too many unanswered requests, or too many replies
that the client does not take, is not read from until it has fewer; nor is one that a handler holds.
"""

import socket
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any

from ottla.base.errors import RemoteProtocolError
from ottla.base.ports import Buffer
from ottla.runtime.outbox import ColdSend, Outbox, Region, hold, release
from ottla.runtime.request import ClientConnection, RefusedRequest, RequestContext
from ottla.wire.frame import UnsupportedRequestError, decode_request, encode_response_parts
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.server import Server

_INT32 = Struct(">i")
_SIZE = 4
_FIRST_BUFFER = 16 << 10
_GROWTH = 7
_MAX_UNANSWERED = 256
_MAX_UNSENT = 4 << 20


class _Slot:
    """A request's place in the row of replies."""

    __slots__ = ("_connection", "_size", "_version", "context", "parts")

    def __init__(self, connection: "Connection", context: RequestContext, version: int, size: int) -> None:
        self._connection = connection
        self._version = version
        self._size = size
        self.context = context
        self.parts: list[Buffer | Region] | None = None

    def respond(self, message: Message | None) -> None:
        assert self.parts is None, f"a second reply to a request of API {self.context.api_key}"
        self.parts = []
        connection = self._connection
        connection.server.answered(self.context, self._size)
        if message is not None and connection.info.is_open:
            parts: list[Any] = encode_response_parts(message, self._version, self.context.correlation_id)
            # The first part is bytes: it has the header.
            self.parts = parts if len(parts) == 1 else [hold(part) for part in parts if len(part)]
        connection.on_answered()


class Connection:
    """Owned by its server. `on_readable` and `on_writable` are the loop's callbacks."""

    __slots__ = (
        "_backlog",
        "_fd",
        "_is_corked",
        "_is_reading",
        "_is_writing",
        "_outbox",
        "_partial",
        "_received",
        "_slots",
        "_socket",
        "_wants",
        "active_s",
        "info",
        "server",
    )

    def __init__(self, server: "Server", sock: socket.socket, info: ClientConnection) -> None:
        self.server = server
        self.info = info
        self.active_s = server.loop.time()
        self._socket = sock
        self._fd = sock.fileno()
        self._partial: bytearray | None = None
        self._backlog = b""
        self._received = 0
        self._wants = 0
        self._slots: deque[_Slot] = deque()
        self._outbox = Outbox()
        self._is_corked = False
        self._is_reading = False
        self._is_writing = False
        info.line = self
        self.resume_reading()

    # In

    def on_readable(self) -> None:
        self.active_s = self.server.loop.time()
        if self._backlog:
            return  # What was read before comes first.
        self._guarded(self._read_fresh if self._partial is None else self._read_rest)

    def _guarded(self, step: Callable[[], None]) -> None:
        """Takes a step in reading. Replies that it leads to are sent together at its end."""
        try:
            self._is_corked = True
            step()
        except BlockingIOError:
            pass
        except (ConnectionError, TimeoutError):
            self.close()
        except RemoteProtocolError as problem:
            self.hang_up(problem)
        finally:
            self._is_corked = False
        if self.info.is_open:
            self._send_ready()

    def _read_fresh(self) -> None:
        scratch = self.server.scratch
        count = self._socket.recv_into(scratch)
        if count == 0:
            self.close()
            return
        with memoryview(scratch)[:count] as view:
            self._take(view)

    def _take(self, view: memoryview) -> None:
        """Handles the requests in `view`, and keeps what is left of it when they end or the connection is paused."""
        at, count = 0, len(view)
        while count - at >= _SIZE:
            end = at + _SIZE + self._announced(view, at)
            if end > count:
                break
            self._handle(view[at + _SIZE : end])
            at = end
            if not self._is_reading:
                self._backlog = bytes(view[at:])
                return
        if at < count:
            self._keep(view[at:])

    def _announced(self, view: Buffer, at: int) -> int:
        size: int = _INT32.unpack_from(view, at)[0]
        if not 0 <= size <= self.server.limits.max_request_bytes:
            limit = self.server.limits.max_request_bytes
            raise RefusedRequest(f"a request of {size} bytes is not within socket.request.max.bytes={limit}")
        return size

    def _keep(self, rest: memoryview) -> None:
        """Begins to collect a request that has only begun to arrive."""
        self._wants = _SIZE + self._announced(rest, 0) if len(rest) >= _SIZE else _SIZE
        self._partial = bytearray(max(min(self._wants, _FIRST_BUFFER), len(rest)))
        self._partial[: len(rest)] = rest
        self._received = len(rest)

    def _read_rest(self) -> None:
        """Reads no further than the request's end, so that nothing is left over."""
        partial = self._partial
        assert partial is not None
        if self._received == len(partial):
            partial.extend(bytes(min(self._wants - self._received, self._received * _GROWTH)))
        with memoryview(partial)[self._received : self._wants] as room:
            count = self._socket.recv_into(room)
        if count == 0:
            self.close()
            return
        self._received += count
        if self._received < self._wants:
            return
        if self._wants == _SIZE:
            self._wants += self._announced(partial, 0)
            if self._wants > _SIZE:
                return
        self._partial = None
        self._handle(memoryview(partial)[_SIZE : self._wants])

    def _handle(self, frame: memoryview) -> None:
        server = self.server
        try:
            header, message = decode_request(frame)
        except UnsupportedRequestError as problem:
            header, message = problem.header, None
        context = RequestContext(
            header.request_api_key,
            header.request_api_version,
            header.correlation_id,
            header.client_id,
            self.info,
            self.active_s,
        )
        # A reply to a version that we do not know can only be of the oldest, which every client understands.
        slot = _Slot(self, context, 0 if message is None else context.api_version, len(frame))
        self._slots.append(slot)
        server.received(len(frame))
        if message is None:
            server.handle_unsupported(context, slot.respond)
        else:
            server.handle(context, message, slot.respond)
        is_full = len(self._slots) >= _MAX_UNANSWERED or self._outbox.buffered > _MAX_UNSENT or server.is_full
        if is_full or self.info.is_held:
            self._pause_reading()

    # Out

    def on_answered(self) -> None:
        if not self._is_corked and self.info.is_open and self._slots and self._slots[0].parts is not None:
            self._send_ready()

    def _send_ready(self) -> None:
        slots, outbox = self._slots, self._outbox
        while slots and (parts := slots[0].parts) is not None:
            slots.popleft()
            for part in parts:
                outbox.add(part)
        if outbox and not self._is_writing:
            self._send()
        if not self._is_reading and self.info.is_open:
            self._maybe_resume()

    def on_writable(self) -> None:
        self.server.loop.remove_writer(self._fd)
        self._send_on()

    def _send_on(self) -> None:
        self._is_writing = False
        self._send()
        if not self._is_reading and self.info.is_open:
            self._maybe_resume()

    def _send(self) -> None:
        before = self._outbox.sent
        try:
            cold = self._outbox.send(self._socket)
            job = ColdSend(self._socket, cold) if cold is not None else None
        except OSError:
            self.close()
            return
        self.server.sent(self._outbox.sent - before)
        if job is not None:
            self._is_writing = True
            self._send_cold(job)
        elif self._outbox:
            self._is_writing = True
            self.server.loop.add_writer(self._fd, self.on_writable)

    def _send_cold(self, job: ColdSend) -> None:
        def sent(count: int) -> None:
            job.end()
            if self.info.is_open:
                self._outbox.advance(count)
                self.server.sent(count)
                self._send_on()

        def failed(_: Exception) -> None:
            job.end()
            self.close()

        self.server.workers.run(job.run, sent, failed)

    # Stopping and starting

    def _pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self.server.loop.remove_reader(self._fd)
            self.server.paused.add(self)

    def _maybe_resume(self) -> None:
        has_room = len(self._slots) < _MAX_UNANSWERED // 2 and self._outbox.buffered <= _MAX_UNSENT // 2
        if has_room and not self.server.is_full:
            self.resume_reading()

    def on_released(self) -> None:
        if not self._is_reading and self.info.is_open:
            self._maybe_resume()

    def resume_reading(self) -> None:
        if not self._is_reading and self.info.is_open and not self.info.is_held:
            self._is_reading = True
            self.server.paused.discard(self)
            self.server.loop.add_reader(self._fd, self.on_readable)
            if self._backlog:
                self.server.loop.call_soon(self._guarded, self._take_backlog)

    def _take_backlog(self) -> None:
        if self._is_reading:
            backlog, self._backlog = self._backlog, b""
            self._take(memoryview(backlog))

    @property
    def unanswered(self) -> int:
        return len(self._slots)

    @property
    def is_idle(self) -> bool:
        return not self._slots and not self._outbox

    def hang_up(self, problem: RemoteProtocolError) -> None:
        if self.info.is_open:
            self.server.refused(self.info, problem)
            self.close()

    def close(self) -> None:
        if not self.info.is_open:
            return
        self.info.is_open = False
        self.info.line = None
        if self._is_reading:
            self.server.loop.remove_reader(self._fd)
            self._is_reading = False
        self.server.loop.remove_writer(self._fd)
        self._outbox.clear()
        for slot in self._slots:
            for part in slot.parts or ():
                release(part)
        self._slots.clear()
        self._partial = None
        self._socket.close()
        self.server.closed(self)
