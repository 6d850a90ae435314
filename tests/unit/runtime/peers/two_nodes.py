"""Two nodes on networks in memory: one asks, the other answers as the test says. Time passes when it is moved."""

from collections.abc import Callable
from typing import Any

from ottla.runtime.peers.node_connections import NodeAddress, NodeConnections, PeerSettings
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.server import Server
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.testing.step_world import step_world
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ApiVersionsResponse

ADDRESS = NodeAddress("two", 9092)
SERVED = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.METADATA: (0, 12),
    ApiKey.ENVELOPE: (0, 0),
    ApiKey.BROKER_HEARTBEAT: (0, 1),
}


class TwoNodes:
    """What the second node is asked waits in `waiting`; ApiVersions is answered from `served`."""

    def __init__(self, *, request_timeout_ms: int = 30_000) -> None:
        self.timers = StepTimers(FixedClock())
        self.here = MemoryNetwork(host="one", find=lambda host, _: self.there if host == "two" else None)
        self.there = MemoryNetwork(host="two")
        self.served = dict(SERVED)
        self.waiting: list[tuple[RequestContext, Any, Respond]] = []
        self.told: list[Any] = []
        self.server: Server | None = None
        self.world = step_world(timers=self.timers, network=self.here)
        settings = PeerSettings(request_timeout_ms=request_timeout_ms)
        self.connections = NodeConnections(self.world, "1", settings)
        self.start_other()

    def start_other(self) -> None:
        self.server = Server(self.there, self.timers, StepWorkers(), self._handle, _unsupported)
        self.server.listen(ADDRESS.host, ADDRESS.port, "PLAINTEXT")
        self.server.start_accepting()

    def stop_other(self) -> None:
        assert self.server is not None
        self.server.stop_listening()
        self.server.close()
        self.run()

    def run(self) -> None:
        while self.here.turn() | self.there.turn():
            pass

    def advance(self, by_ms: int) -> None:
        self.timers.advance(by_ms)
        self.run()

    def then(self, reply: Any) -> None:
        self.told.append(reply)

    def failed(self, error: ErrorCode) -> None:
        self.told.append(error)

    def answer(self, reply: Any) -> None:
        """The oldest request that waits is answered."""
        self.waiting.pop(0)[2](reply)
        self.run()

    def _handle(self, context: RequestContext, message: Any, respond: Respond) -> None:
        if context.api_key == ApiKey.API_VERSIONS:
            respond(
                ApiVersionsResponse(
                    api_keys=[
                        ApiVersionsResponse.ApiVersion(api_key=key, min_version=first, max_version=last)
                        for key, (first, last) in self.served.items()
                    ]
                )
            )
        else:
            self.waiting.append((context, message, respond))


def _unsupported(_context: RequestContext, respond: Callable[..., None]) -> None:
    raise AssertionError("a request in a version that is not known")
