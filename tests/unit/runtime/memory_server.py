"""A server on a network in memory, with time and disk threads under control: nothing happens behind a test's back."""

from collections.abc import Callable
from typing import Any

from ottla.runtime.admission import Admission
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.request_metrics import RequestMetrics
from ottla.runtime.server import Limits, Server
from ottla.testing.clock import FixedClock
from ottla.testing.memory_network import MemoryClient, MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames
from ottla.wire.message import Message

LISTENER = "PLAINTEXT"


class Client:
    """A client that sends whole requests and reads whole replies."""

    def __init__(self, scene: "Scene", end: MemoryClient) -> None:
        self._scene = scene
        self.end = end
        self._correlation: Correlation[int] = Correlation("client")
        self._frames = Frames(1 << 30, "the client's limit")
        self._asked = 0

    def bytes_of(self, *requests: tuple[Message, int]) -> bytes:
        """The requests as bytes. What they are asked as is counted from 0."""
        sent = bytearray()
        for request, version in requests:
            for part in self._correlation.ask(request, version, self._asked):
                sent += part  # type: ignore[operator]
            self._asked += 1
        return bytes(sent)

    def ask(self, *requests: tuple[Message, int]) -> None:
        """Sends requests, and lets the node take them."""
        data = self.bytes_of(*requests)
        assert self.end.send(data) == len(data), "the pipe is full"
        self._scene.network.run()

    def replies(self) -> list[tuple[int, Any]]:
        """What has come since: which request it answers, and the reply."""
        found: list[tuple[int, Any]] = []

        def take(frame: memoryview) -> bool:
            found.append(self._correlation.on_frame(bytes(frame)))
            return True

        while data := self.end.receive():
            while data:
                if self._frames.has_begun:
                    with self._frames.room() as room:
                        count = min(len(room), len(data))
                        room[:count] = data[:count]
                    self._frames.fill(count, take)
                    data = data[count:]
                else:
                    self._frames.take(memoryview(data), take)
                    data = b""
            self._scene.network.run()
        return found


class Scene:
    """A server whose requests `handle` answers; by default they wait in `waiting`."""

    def __init__(
        self,
        limits: Limits | None = None,
        admission: Admission | None = None,
        pipe_bytes: int = 64 << 10,
        timers: StepTimers | None = None,
    ) -> None:
        self.network = MemoryNetwork(pipe_bytes)
        self.timers = StepTimers(FixedClock()) if timers is None else timers
        self.workers = StepWorkers()
        self.workers.hold()
        self.metrics = RequestMetrics(self.timers.now_s)
        self.waiting: list[tuple[RequestContext, Any, Respond]] = []
        self.handle: Callable[[RequestContext, Any, Respond], None] = self.wait
        self.server = Server(
            self.network,
            self.timers,
            self.workers,
            lambda *request: self.handle(*request),
            lambda context, respond: self.handle(context, None, respond),
            limits,
            self.metrics,
            admission,
        )
        self.address = self.server.listen("node", 9092, LISTENER)
        self.server.start_accepting()

    def wait(self, context: RequestContext, message: Message, respond: Respond) -> None:
        self.waiting.append((context, message, respond))

    def connect(self) -> Client:
        client = Client(self, self.network.connect(*self.address))
        self.network.run()
        return client
