"""The world of a real client in a simulation: its cores run against simulated nodes, on simulated time.

client = ClientInSimulation(simulation, lambda: node)
cluster = Cluster(client.world, settings)
simulation.run_for(1000)
client.kill()                 # its connections break and its timers are gone, as if its process had died
"""

import errno
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from ottla.base.ports import Buffer, Transport, Watcher
from ottla.client.world import ClientWorld
from ottla.testing.memory_network import MemoryClient
from ottla.testing.sim.simulated_node import SimulatedNode
from ottla.testing.sim.simulation import Simulation
from ottla.testing.step_timers import StepTimers

FindNode = Callable[[], SimulatedNode | None]
"""The node that is up now, if one is."""


class SimulatedTransport:
    """A client's end of a connection. It breaks when its node ends, and then it is the client's to close."""

    can_send_files = False

    def __init__(
        self, simulation: Simulation, connection: MemoryClient, node: SimulatedNode, find_node: FindNode, host: str
    ) -> None:
        self.peer_host = host
        self.is_closed = False
        self._simulation = simulation
        simulation.serve(self)
        self._connection = connection
        self._node = node
        self._find_node = find_node
        self._is_broken = False
        self._watcher: Watcher | None = None
        self._reads = self._writes = False
        self._read_ahead = b""

    def receive_into(self, buffer: bytearray | memoryview, /) -> int:
        data = self._read_ahead[: len(buffer)] or self._connection.receive(len(buffer))
        self._read_ahead = self._read_ahead[len(data) :]
        if not data and self._is_gone:
            raise ConnectionResetError(errno.ECONNRESET, "the node is gone")
        if not data and not self._connection.is_closed:
            raise BlockingIOError(errno.EAGAIN, "nothing has come")
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: Buffer, /) -> int:
        if self._is_gone:
            raise BrokenPipeError(errno.EPIPE, "the node is gone")
        taken = self._connection.send(data)
        if not taken:
            raise BlockingIOError(errno.EAGAIN, "the node takes no more")
        return taken

    def send_parts(self, parts: Sequence[Buffer], *, more: bool) -> int:
        return self.send(b"".join(parts))

    def send_file(self, file: Any, position: int, size: int) -> int:
        raise AssertionError("a client sends no files")

    def cold_send(self, file: Any, position: int, size: int) -> Any:
        raise AssertionError("a client sends no files")

    def watch(self, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self._watcher, self._reads, self._writes = watcher, reading, writing

    def close(self) -> None:
        self.is_closed = True
        self._watcher = None
        self._connection.close()
        self._simulation.forget(self)

    @property
    def _is_gone(self) -> bool:
        return self._is_broken or self._find_node() is not self._node

    def break_off(self) -> None:
        """What is under way in either direction is lost, or not: the client cannot know."""
        self._is_broken = True
        self._connection.close()

    def exchange(self) -> bool:
        """Calls the watcher for what is ready. The simulation calls it all the time."""
        if self._watcher is None:
            return False
        if not self._read_ahead:
            self._read_ahead = self._connection.receive()
        is_over = self._is_gone or self._connection.is_closed
        if self._reads and (self._read_ahead or is_over):
            self._watcher.on_readable()
            return True
        if self._writes and not is_over:
            self._watcher.on_writable()
            return not self._writes
        return False


class _Dialling:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ClientInSimulation:
    """`problems` is what was reported as a bug."""

    def __init__(self, simulation: Simulation, find_node: FindNode) -> None:
        self.problems: list[Exception] = []
        self.timers = StepTimers(simulation.clock, simulation.agenda)
        chance = Random(simulation.random.getrandbits(64))
        self.world = ClientWorld(simulation.clock, self.timers, chance, self, self.problems.append)
        self._simulation = simulation
        self._find_node = find_node
        self._transports: list[SimulatedTransport] = []

    def dial(
        self,
        host: str,
        port: int,
        *,
        receive_buffer_bytes: int,
        send_buffer_bytes: int,
        then: Callable[[Transport], None],
        failed: Callable[[OSError], None],
    ) -> _Dialling:
        dialling = _Dialling()

        def connect() -> None:
            if dialling.is_cancelled:
                return
            node = self._find_node()
            try:
                if node is None:
                    raise ConnectionRefusedError(errno.ECONNREFUSED, "no node is up")
                connection = node.network.connect(host, port)
            except ConnectionRefusedError as problem:
                failed(problem)
                return
            self._transports = [one for one in self._transports if not one.is_closed]
            transport = SimulatedTransport(self._simulation, connection, node, self._find_node, host)
            self._transports.append(transport)
            then(transport)

        self.timers.after(0.0, connect)
        return dialling

    def drop_connections(self) -> None:
        """All of them break. The client may connect again."""
        for transport in self._transports:
            transport.break_off()

    def kill(self) -> None:
        self.timers.close()
        for transport in self._transports:
            if not transport.is_closed:
                transport.close()
