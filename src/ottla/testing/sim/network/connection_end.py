"""One end of a connection in a simulation: a transport, whose bytes take their time to the other end.

Theory of operation. What one end sends is under way until the other has received it, and at most a window of bytes is.
What arrives is in order: a piece never arrives before one that was sent earlier. On a link that repeats, a whole frame
may come a second time, right behind itself. An end is closed by its owner (the
other end reads what is under way, then the end), or is reset, which loses what is under way. An end whose process died
answers what still arrives with a reset. An end whose machine has no power answers nothing.
"""

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ottla.base.ports import Buffer, ColdSend, File, Watcher
from ottla.testing.sim.network.passing_frames import PassingFrames

if TYPE_CHECKING:
    from ottla.testing.sim.network.host_network import HostNetwork
    from ottla.testing.sim.network.links import Link

WINDOW_BYTES: Final = 256 << 10


class ConnectionEnd:
    can_send_files = False
    peer_principal: str | None = None

    def __init__(self, network: "HostNetwork", peer_host: str, *, has_dialled: bool) -> None:
        self.peer_host = peer_host
        self.is_closed = False
        self.watcher: Watcher | None = None
        self.reads = self.writes = False
        self.network = network
        self.peer: ConnectionEnd
        self.link: Link
        """To the other end."""
        self._passing = PassingFrames(is_request=has_dialled)
        self._problem: int | None = None
        self._is_gone = False
        """With its process: what is left of the node's objects may still want to send."""
        self._arrived = bytearray()
        self._has_ended = False
        self._under_way = 0
        """Bytes towards this end that it has not received."""
        self._last_us = 0
        """When the last piece towards this end arrives."""
        self._held_up: list[bytes | None] = []
        """What this end has sent over a link that was cut, and not again since."""

    # The transport

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        self._check()
        count = min(len(self._arrived), len(buffer))
        if not count:
            if self._has_ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing has come")
        buffer[:count] = self._arrived[:count]
        del self._arrived[:count]
        self._under_way -= count
        if self.peer.writes:
            self.peer.network.note_ready(self.peer)
        return count

    def send(self, data: Buffer, /) -> int:
        self._check()
        taken = bytes(memoryview(data)[: self.room])
        if not taken:
            raise BlockingIOError(errno.EAGAIN, "the other end takes no more")
        carried = self._passing.pass_on(taken, self.link.repeating)
        self.peer._under_way += len(carried)
        self._carry(carried)
        return len(taken)

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: File, position: int, size: int) -> int:
        raise AssertionError("a simulated network sends no files")

    def cold_send(self, file: File, position: int, size: int) -> ColdSend:
        raise AssertionError("a simulated network sends no files")

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self.watcher, self.reads, self.writes = watcher, reading, writing
        if watcher is not None and ((reading and self.is_readable) or (writing and self.is_writable)):
            self.network.note_ready(self)

    def close(self) -> None:
        if self.is_closed:
            return
        self._let_go()
        if self._problem is None:
            self._carry(None)

    def _check(self) -> None:
        if self._is_gone:
            raise ConnectionResetError(errno.ECONNRESET, "the process is gone")
        assert not self.is_closed, "the transport was closed"
        if self._problem is not None:
            raise ConnectionResetError(self._problem, "the connection was reset")

    # For the network

    @property
    def room(self) -> int:
        return max(WINDOW_BYTES - self.peer._under_way, 0)

    @property
    def is_readable(self) -> bool:
        return bool(self._arrived) or self._has_ended or self._problem is not None

    @property
    def is_writable(self) -> bool:
        return self.room > 0 or self._problem is not None

    def reset(self) -> None:
        """The connection breaks, at both ends. What is under way is lost."""
        self.on_reset()
        self.peer.on_reset()

    def note_plaintext(self, data: Buffer) -> None:
        """This is encrypted and sent next."""
        self.network.fabric.note(self, data)

    def vanish(self) -> None:
        """Its machine is without power: nobody is told, and nothing is sent again."""
        self._is_gone = True
        self._let_go()
        self._held_up.clear()

    def die(self, *, resets: bool) -> None:
        """Its process is gone; the system tells the other end, in one way or the other."""
        if self.is_closed:
            return
        self._is_gone = True
        self._let_go()
        if resets:
            self._tell_reset()
        elif self._problem is None:
            self._carry(None)

    def _let_go(self) -> None:
        self.is_closed = True
        self.watcher = None
        self.reads = self.writes = False
        self._arrived.clear()
        self.network.forget(self)

    def _carry(self, data: bytes | None) -> None:
        """Brings a piece, or the end, to the other end."""
        if self.link.is_cut or self._held_up:
            if not self._held_up:
                self.link.keep(self._send_again)
            self._held_up.append(data)
            return
        if self.link.breaks and self.link.breaks_now():
            self.reset()
            return
        peer, fabric = self.peer, self.network.fabric
        now_us = fabric.agenda.clock.elapsed_us()
        peer._last_us = max(peer._last_us, now_us + self.link.delay_us(len(data or b"")))
        fabric.note(self, data, is_encrypted=self._passing.is_tls is True)
        fabric.agenda.call_at(peer._last_us, lambda: peer.on_piece(data))

    def _send_again(self) -> None:
        """Its link was mended some time ago."""
        if self.link.is_cut:
            self.link.keep(self._send_again)
            return
        held_up, self._held_up = self._held_up, []
        for data in held_up:
            self._carry(data)

    def on_piece(self, data: bytes | None) -> None:
        if self._problem is not None:
            return
        if self.is_closed:
            self._answer_from_the_grave(data)
            return
        if data is None:
            self._has_ended = True
        else:
            self._arrived += data
        if self.reads:
            self.network.note_ready(self)

    def _answer_from_the_grave(self, data: bytes | None) -> None:
        host = self.network.host
        if not host.is_up:
            host.when_up(lambda: self._answer_from_the_grave(data))
        elif data is not None:
            self._tell_reset()

    def _tell_reset(self) -> None:
        if self.link.is_cut:
            self.link.keep(self._tell_reset)
            return
        agenda = self.network.fabric.agenda
        agenda.call_at(agenda.clock.elapsed_us() + self.link.delay_us(0), self.peer.on_reset)

    def on_reset(self) -> None:
        if self.is_closed or self._problem is not None:
            return
        self._problem = errno.ECONNRESET
        self._arrived.clear()
        if self.watcher is not None:
            self.network.note_ready(self)
