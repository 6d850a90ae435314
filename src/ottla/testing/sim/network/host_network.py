"""What one process sees of a simulation's network: listening, connecting, and turns.

A turn comes a moment after something is ready. In it the watchers of everything that is ready are called, in the order
in which it became so; what is still ready then is called again in the next turn.
"""

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.ports import Transport, Watcher
from ottla.testing.sim.hosts.process import Process
from ottla.testing.sim.network.connection_end import ConnectionEnd

if TYPE_CHECKING:
    from ottla.testing.sim.network.fabric import Dialled, Fabric, Host

_TURN_US = 50


class HostListener:
    """An address at which others may connect."""

    reads, writes = True, False
    is_writable = False

    def __init__(self, network: "HostNetwork", address: tuple[str, int]) -> None:
        self.address = address
        self.watcher: Watcher | None = None
        self._network = network
        self._waiting: list[ConnectionEnd] = []

    def accept(self) -> ConnectionEnd:
        if not self._waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        return self._waiting.pop(0)

    def watch(self, watcher: Watcher | None) -> None:
        self.watcher = watcher
        if watcher is not None and self._waiting:
            self._network.note_ready(self)

    def close(self) -> None:
        self.watcher = None
        self._network.host.listeners.pop(self.address[1], None)
        for end in self._waiting:
            end.die(resets=True)

    def make_end(self, peer_host: str) -> ConnectionEnd:
        """The end of one who has just connected."""
        end = self._network.make_end(peer_host, has_dialled=False)
        self._waiting.append(end)
        if self.watcher is not None:
            self._network.note_ready(self)
        return end

    @property
    def is_readable(self) -> bool:
        return bool(self._waiting)


class HostNetwork:
    def __init__(self, fabric: "Fabric", host: "Host", process: Process) -> None:
        self.is_crowded = False
        self.fabric = fabric
        self.host = host
        self.process = process
        self._ends: dict[ConnectionEnd, None] = {}
        self._ready: dict[ConnectionEnd | HostListener, None] = {}
        self._endings: list[Callable[[], None]] = []
        self._has_turn = False

    # The port

    def listen(
        self, host: str, port: int, *, backlog: int, receive_buffer_bytes: int, send_buffer_bytes: int
    ) -> HostListener:
        port = port or self.host.free_port()
        if port in self.host.listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = self.host.listeners[port] = HostListener(self, (host or self.host.address, port))
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
    ) -> "Dialled":
        return self.fabric.dial(self, host, port, then, failed)

    def at_end_of_turn(self, callback: Callable[[], None]) -> None:
        self._endings.append(callback)
        self._come_to_turn()

    def close(self) -> None:
        """As at the end of a process: what is open is closed by the system."""
        self.end(resets=False)

    # For the fabric

    def make_end(self, peer_host: str, *, has_dialled: bool) -> ConnectionEnd:
        end = ConnectionEnd(self, peer_host, has_dialled=has_dialled)
        self._ends[end] = None
        return end

    def forget(self, end: ConnectionEnd) -> None:
        self._ends.pop(end, None)
        self._ready.pop(end, None)

    def note_ready(self, end: ConnectionEnd | HostListener) -> None:
        self._ready[end] = None
        self._come_to_turn()

    def connections(self) -> list[ConnectionEnd]:
        return list(self._ends)

    def end(self, *, resets: bool) -> None:
        """The process is gone. Those at the other ends find out, by a reset or by an end."""
        self._stop_listening()
        for end in list(self._ends):
            end.die(resets=resets)

    def vanish(self) -> None:
        """The machine has no power any more. Nobody is told."""
        self._stop_listening()
        for end in list(self._ends):
            end.vanish()

    def _stop_listening(self) -> None:
        for listener in list(self.host.listeners.values()):
            listener.watcher = None
        self.host.listeners.clear()
        self._ready.clear()
        self._endings.clear()

    def _come_to_turn(self) -> None:
        if not self._has_turn:
            self._has_turn = True
            agenda = self.fabric.agenda
            agenda.call_at(agenda.clock.elapsed_us() + _TURN_US, lambda: self.process.run(self._turn))

    def _turn(self) -> None:
        self._has_turn = False
        ready, self._ready = self._ready, {}
        self.is_crowded = len(ready) > 1
        for end in ready:
            if end.reads and end.watcher is not None and end.is_readable:
                end.watcher.on_readable()
            if end.writes and end.watcher is not None and end.is_writable:
                end.watcher.on_writable()
            if end.watcher is not None and ((end.reads and end.is_readable) or (end.writes and end.is_writable)):
                self.note_ready(end)
        endings, self._endings = self._endings, []
        for ending in endings:
            ending()
