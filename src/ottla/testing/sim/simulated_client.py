"""A client's connection to a simulated node: a request is asked, and time passes until its response is there."""

from typing import TYPE_CHECKING, Any

from ottla.testing.memory_network import MemoryClient
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.testing.sim.simulation import Simulation

_MAX_RESPONSE_BYTES = 100 << 20


class HungUp(ConnectionError):
    """The node has closed the connection, or is gone."""


class SimulatedClient:
    """All that goes over it is in the simulation's transcript under `name`."""

    def __init__(self, simulation: "Simulation", connection: MemoryClient, name: str) -> None:
        self.name = name
        self.responses: list[Any] = []
        """Those that have come and were not taken by `ask`, the oldest first."""
        self._simulation = simulation
        self._connection = connection
        self._correlation: Correlation[None] = Correlation(name)
        self._frames = Frames(_MAX_RESPONSE_BYTES, "the simulated client's limit")
        self._unsent = bytearray()

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    def send(self, request: Message, version: int, *, has_response: bool = True) -> None:
        """Sends a request and does not wait; what comes back is in `responses`."""
        for part in self._correlation.ask(request, version, None, has_response=has_response):
            self._unsent += part  # type: ignore[arg-type]
        self.exchange()

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

    def exchange(self) -> bool:
        """Sends and receives what the pipes take and have; returns whether there was something.

        The simulation calls it all the time.
        """
        taken = 0
        if self._unsent and not self.is_closed:
            taken = self._connection.send(self._unsent)
            self._simulation.note(f"{self.name} sends", self._unsent[:taken])
            del self._unsent[:taken]
        if received := self._connection.receive():
            self._simulation.note(f"{self.name} receives", received)
            self._take(memoryview(received))
        return bool(taken or received)

    def _take(self, received: memoryview) -> None:
        while received:
            if not self._frames.has_begun:
                self._frames.take(received, self._on_frame)
                return
            with self._frames.room() as room:
                count = min(len(room), len(received))
                room[:count] = received[:count]
            self._frames.fill(count, self._on_frame)
            received = received[count:]

    def _on_frame(self, frame: memoryview) -> bool:
        self.responses.append(self._correlation.on_frame(bytes(frame))[1])
        return True

    def close(self) -> None:
        self._connection.close()
        self._simulation.forget(self)
