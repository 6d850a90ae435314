"""The network of a node that runs on a loop: sockets, and the turns in which they are served.

Theory of operation. A reply that is sent wakes its client at once, and where node and clients share processors the two
then take turns at every request. So the sockets are in an epoll of their own, whose readiness is one callback of the
loop: a turn. In a turn every socket that is ready is served, and what waits for `at_end_of_turn`, the sending of
replies, comes when all of them have been. A turn is bounded in sockets and in time, so that timers and what disk
threads bring back are not kept waiting; sockets that it did not come to are the first of the next one.

Where there is no epoll, the loop tells of each socket by itself, and a turn is what came together in one round of it.
"""

import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from ottla.base.ports import Dialling, Transport, Watcher
from ottla.runtime.loop import Loop
from ottla.runtime.tcp import TcpListener, TcpTransport, listening_socket

if TYPE_CHECKING:
    from ottla.base.tcp_connect import AddressInfo

_SOCKETS_PER_TURN = 256
_TURN_S = 0.004
_READ, _WRITE = 1, 4  # as in epoll: EPOLLIN and EPOLLOUT
_ONLY_READ_AND_WRITE = _READ | _WRITE


class Poller(Protocol):
    """Tells which sockets are ready."""

    def register(self, fd: int, events: int) -> None: ...
    def modify(self, fd: int, events: int) -> None: ...
    def unregister(self, fd: int) -> None: ...
    def poll(self) -> list[tuple[int, int]]: ...
    def close(self) -> None: ...


class EpollPoller:
    """An epoll, which the loop watches as one of its descriptors."""

    def __init__(self, loop: Loop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self.register = self._epoll.register
        self.modify = self._epoll.modify
        self.unregister = self._epoll.unregister
        loop.add_reader(self._epoll.fileno(), on_ready)

    def poll(self) -> list[tuple[int, int]]:
        return self._epoll.poll(0, _SOCKETS_PER_TURN)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()


class LoopPoller:
    """The loop's own selector (kqueue on macOS): what it tells of in one round is gathered."""

    def __init__(self, loop: Loop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._is_announced = False
        self._ready: dict[int, int] = {}

    def register(self, fd: int, events: int) -> None:
        self.modify(fd, events)

    def modify(self, fd: int, events: int) -> None:
        if events & _READ:
            self._loop.add_reader(fd, self._note, fd, _READ)
        else:
            self._loop.remove_reader(fd)
        if events & _WRITE:
            self._loop.add_writer(fd, self._note, fd, _WRITE)
        else:
            self._loop.remove_writer(fd)

    def unregister(self, fd: int) -> None:
        self.modify(fd, 0)
        self._ready.pop(fd, None)

    def _note(self, fd: int, event: int) -> None:
        if not self._is_announced:
            self._is_announced = True
            self._loop.call_soon(self._tell)
        self._ready[fd] = self._ready.get(fd, 0) | event

    def _tell(self) -> None:
        self._is_announced = False
        self._on_ready()

    def poll(self) -> list[tuple[int, int]]:
        ready, self._ready = self._ready, {}
        return list(ready.items())

    def close(self) -> None:
        """Every socket has been closed by now."""


class LoopNetwork:
    """See the module. Everything is called on the loop's thread."""

    def __init__(
        self,
        loop: Loop,
        make_poller: Callable[[Loop, Callable[[], None]], Poller] | None = None,
    ) -> None:
        self.is_crowded = False
        self.loop = loop
        self._poller = (make_poller or default_poller())(loop, self._take_turn)
        self._watchers: dict[int, Watcher] = {}
        self._watched: dict[int, int] = {}
        self._left: deque[tuple[int, int]] = deque()
        self._endings: list[Callable[[], None]] = []
        self._is_in_turn = False
        self._is_ending = False

    def listen(
        self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int, send_buffer_bytes: int
    ) -> TcpListener:
        sock = listening_socket(host, port, backlog=backlog, receive_buffer_bytes=receive_buffer_bytes)
        return TcpListener(self, sock, send_buffer_bytes)

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
        # A node that is alone dials nobody.
        from ottla.base.tcp_connect import TcpDialling

        return TcpDialling(
            self,
            host,
            port,
            receive_buffer_bytes=receive_buffer_bytes,
            send_buffer_bytes=send_buffer_bytes,
            then=lambda sock, peer_host: then(TcpTransport(self, sock, peer_host)),
            failed=failed,
        )

    def resolve(
        self, host: str, port: int, then: "Callable[[Sequence[AddressInfo]], None]", failed: Callable[[OSError], None]
    ) -> None:
        from ottla.base.tcp_connect import resolve

        resolve(host, port, then, failed, self.loop.call_soon_threadsafe)

    def watch(self, fd: int, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        """For transports and listeners. A socket that nobody watches is not known here."""
        events = (_READ if reading else 0) | (_WRITE if writing else 0)
        before = self._watched.get(fd)
        if watcher is None or not events:
            if before is not None:
                del self._watched[fd], self._watchers[fd]
                self._poller.unregister(fd)
            return
        self._watchers[fd] = watcher
        if before != events:
            self._watched[fd] = events
            if before is None:
                self._poller.register(fd, events)
            else:
                self._poller.modify(fd, events)

    # Turns

    def _take_turn(self) -> None:
        """One turn; after one with several sockets another at once, while there is time: to go around the loop costs
        half as much as a request.
        """
        left = self._left
        ends_s = monotonic() + _TURN_S
        if not left:
            left.extend(self._poller.poll())
        self._serve(ends_s)
        while self.is_crowded and not left and monotonic() < ends_s:
            left.extend(self._poller.poll())
            if not left:
                break
            self._serve(ends_s)

    def _serve(self, ends_s: float) -> None:
        """Serves the sockets that are ready, and what waits for the end of the turn."""
        left, watchers = self._left, self._watchers
        self.is_crowded = len(left) > 1
        self._is_in_turn = True
        try:
            while left:
                fd, event = left.popleft()
                watcher = watchers.get(fd)
                if watcher is not None:
                    if event > _ONLY_READ_AND_WRITE:
                        event = self._watched[fd]  # The other side has gone, which is found by trying.
                    if event & _READ:
                        watcher.on_readable()
                    if event & _WRITE and watchers.get(fd) is watcher:
                        watcher.on_writable()
                if left and monotonic() > ends_s:
                    break
        finally:
            self._is_in_turn = False
            self._end_turn()

    def at_end_of_turn(self, callback: Callable[[], None]) -> None:
        self._endings.append(callback)
        if not self._is_in_turn:
            self._end_soon()

    def _end_soon(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self.loop.call_soon(self._end)

    def _end(self) -> None:
        self._is_ending = False
        self._end_turn()

    def _end_turn(self) -> None:
        endings, self._endings = self._endings, []
        if len(endings) == 1:
            self._call(endings[0])
            return
        ends_s = monotonic() + _TURN_S
        for place, ending in enumerate(endings):
            self._call(ending)
            if monotonic() > ends_s and place + 1 < len(endings):
                self._endings[:0] = endings[place + 1 :]
                self._end_soon()
                return

    def _call(self, ending: Callable[[], None]) -> None:
        """One that breaks must not keep the others from their end."""
        try:
            ending()
        except Exception as problem:
            self.loop.call_exception_handler({"message": "end-of-turn callback failed", "exception": problem})

    def close(self) -> None:
        """Sockets are closed by their owners."""
        self._left.clear()
        self._poller.close()


def default_poller() -> Callable[[Loop, Callable[[], None]], Poller]:
    return EpollPoller if hasattr(select, "epoll") else LoopPoller


# The system's resolver.


class SystemHostNames:
    __slots__ = ()

    def addresses_of(self, name: str) -> list[str]:
        try:
            found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except UnicodeError as problem:
            raise OSError(f"{name!r} is not a host name: {problem}") from problem
        return [str(address[0]) for *_, address in found]

    def own_name(self) -> str:
        return socket.getfqdn()
