"""A server on a network in memory, with time and disk threads under control: nothing happens behind a test's back."""

from collections.abc import Callable
from typing import Any

from ottla.runtime.admission import Admission
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.request_metrics import RequestMetrics
from ottla.runtime.server import Limits, Server
from ottla.testing.memory_network import MemoryClient, MemoryNetwork
from ottla.wire.exchange.correlation import Correlation
from ottla.wire.exchange.frames import Frames
from ottla.wire.message import Message

LISTENER = "PLAINTEXT"


class ToldTimers:
    """Timers that fire when time is moved."""

    def __init__(self) -> None:
        self._now_s = 1000.0
        self._set: list[ToldTimer] = []

    def now_s(self) -> float:
        return self._now_s

    def after(self, delay_s: float, callback: Callable[[], None]) -> "ToldTimer":
        timer = ToldTimer(self, self._now_s + delay_s, callback, None)
        self._set.append(timer)
        return timer

    def every(self, interval_s: float, callback: Callable[[], None]) -> "ToldTimer":
        timer = ToldTimer(self, self._now_s + interval_s, callback, interval_s)
        self._set.append(timer)
        return timer

    def advance(self, by_s: float) -> None:
        end_s = self._now_s + by_s
        while due := [timer for timer in self._set if timer.due_s <= end_s]:
            timer = min(due, key=lambda timer: timer.due_s)
            self._now_s = timer.due_s
            if timer.interval_s is None:
                self._set.remove(timer)
            else:
                timer.due_s += timer.interval_s
            timer.callback()
        self._now_s = end_s


class ToldTimer:
    def __init__(
        self, timers: ToldTimers, due_s: float, callback: Callable[[], None], interval_s: float | None
    ) -> None:
        self.timers, self.due_s, self.callback, self.interval_s = timers, due_s, callback, interval_s

    def cancel(self) -> None:
        if self in self.timers._set:
            self.timers._set.remove(self)


class HeldWorkers:
    """Disk threads that work when they are told to."""

    def __init__(self) -> None:
        self.held: list[Callable[[], None]] = []

    def run(self, function: Any, then: Any, failed: Any = None, *, key: Any = None) -> None:
        def job() -> None:
            try:
                result = function()
            except Exception as problem:
                failed(problem)
            else:
                then(result)

        self.held.append(job)

    def work(self) -> None:
        held, self.held = self.held, []
        for job in held:
            job()


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
        self, limits: Limits | None = None, admission: Admission | None = None, pipe_bytes: int = 64 << 10
    ) -> None:
        self.network = MemoryNetwork(pipe_bytes)
        self.timers = ToldTimers()
        self.workers = HeldWorkers()
        self.metrics = RequestMetrics(self.timers.now_s)
        self.waiting: list[tuple[RequestContext, Any, Respond]] = []
        self.handle: Callable[[RequestContext, Any, Respond], None] = self.wait
        self.server = Server(
            self.network,
            self.timers,  # type: ignore[arg-type]
            self.workers,  # type: ignore[arg-type]
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
