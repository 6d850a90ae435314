"""A client's connection to a simulated node: a request is asked, and time passes until its response is there."""

from typing import TYPE_CHECKING, Any

from ottla.base.lent import Lent, lend
from ottla.base.ports import Transport
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.testing.sim.simulation import Simulation

_MAX_RESPONSE_BYTES = 100 << 20
_RECEIVED_AT_ONCE = 64 << 10


class HungUp(ConnectionError):
    """The node has closed the connection, or is gone."""


class SimulatedClient:
    """All that goes over it is in the simulation's transcript under `name`: with TLS, what goes into it."""

    def __init__(self, simulation: "Simulation", name: str) -> None:
        self.name = name
        self.responses: list[Any] = []
        """Those that have come and were not taken by `ask`, the oldest first."""
        self.is_closed = False
        self._simulation = simulation
        self._connection: Transport | None = None
        """None while the handshake is not over; requests wait for it."""
        self._correlation: Correlation[None] = Correlation(name)
        self._frames = Frames(_MAX_RESPONSE_BYTES, "the simulated client's limit")
        self._unsent = bytearray()

    def on_connected(self, connection: Transport) -> None:
        if self.is_closed:
            connection.close()
            return
        self._connection = connection
        self.on_writable()

    def send(self, request: Message, version: int, *, has_response: bool = True) -> None:
        """Sends a request and does not wait; what comes back is in `responses`."""
        for part in self._correlation.ask(request, version, None, has_response=has_response):
            self._unsent += part  # type: ignore[arg-type]
        self.on_writable()

    def ask(self, request: Message, version: int, most_ms: int = 60_000) -> Any:
        """The response to a request, which has all earlier ones before it. Raises `HungUp`."""
        assert not self.responses, "responses that nobody has taken"
        self.send(request, version)
        self._simulation.run_until(lambda: not len(self._correlation) or self.is_closed, most_ms)
        if len(self._correlation):
            raise HungUp(f"{self.name}: the node hung up")
        *_, response = self.responses
        self.responses.clear()
        return response

    def on_writable(self) -> None:
        """Sends what the connection takes."""
        if self.is_closed or self._connection is None:
            return
        try:
            taken = self._connection.send(self._unsent) if self._unsent else 0
        except BlockingIOError:
            taken = 0
        except OSError:
            self.close()
            return
        if taken:
            self._simulation.note(f"{self.name} sends", self._unsent[:taken])
            del self._unsent[:taken]
        self._connection.watch(self, reading=True, writing=bool(self._unsent))

    def on_readable(self) -> None:
        room = bytearray(_RECEIVED_AT_ONCE)
        while not self.is_closed and self._connection is not None:
            try:
                count = self._connection.receive_into(room)
            except BlockingIOError:
                return
            except OSError:
                count = 0
            if not count:
                self.close()
                return
            received = bytes(room[:count])
            self._simulation.note(f"{self.name} receives", received)
            self._take(memoryview(received))

    def _take(self, received: memoryview) -> None:
        while received:
            if not self._frames.has_begun:
                self._frames.take(lend(received), self._on_frame)
                return
            with self._frames.room() as room:
                count = min(len(room), len(received))
                room[:count] = received[:count]
            self._frames.fill(count, self._on_frame)
            received = received[count:]

    def _on_frame(self, frame: Lent | memoryview) -> bool:
        self.responses.append(self._correlation.on_frame(bytes(frame))[1])
        return True

    def close(self) -> None:
        """What was sent before still arrives."""
        self.is_closed = True
        if self._connection is not None:
            self._connection.close()
