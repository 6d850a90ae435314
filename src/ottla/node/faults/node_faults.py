"""The faults of one node, over its restarts: the world that it is given, what is around its handler, the control port.

A node that is restarted is another node on the same loop, at the same addresses; the control port stays open. It starts
without faults, and at the real time.
"""

from collections.abc import Callable

from ottla.base.errors import OttlaError
from ottla.broker.broker import Broker
from ottla.node.faults.commands import Commands, NotNow
from ottla.node.faults.control_server import ControlServer
from ottla.node.faults.coordinator_faults import CoordinatorFaults
from ottla.node.faults.faulty_disk import FaultyDisk
from ottla.node.faults.moved_time import MovedClock, MovedTimers
from ottla.node.faults.request_faults import RequestFaults
from ottla.node.real_world import real_world
from ottla.runtime.loop import Loop
from ottla.runtime.procedure import wait_until
from ottla.runtime.request import Handler
from ottla.runtime.world import World


class NoBroker(OttlaError):
    """Faults were asked for on a node that is a controller alone."""


class NodeFaults:
    """`on_restart` is called when the node is to be stopped, or (not clean) let go of, and another to be started."""

    def __init__(self, loop: Loop, port: int, token: str) -> None:
        self.address = ""
        self.on_restart: Callable[[bool], None] = _nobody_listens
        self._loop = loop
        self._port = port
        self._control = ControlServer(loop, Commands(self), token)
        self._requests: RequestFaults | None = None
        self._coordinators: CoordinatorFaults | None = None
        self._down_s = 0.0
        self._on_up: Callable[[], None] | None = None
        self.world = self._make_world()

    def listen(self) -> None:
        """Opens the control port, if it is not open from an earlier start. Raises `OSError` when it is taken."""
        if not self.address:
            try:
                self.address = f"http://127.0.0.1:{self._control.listen(self._port)}"
            except OSError as problem:
                raise OSError(problem.errno, f"--faults {self._port}: {problem.strerror}") from problem

    def close(self) -> None:
        self._control.close()

    # The node

    def _make_world(self) -> World:
        self.disk, self.clock = FaultyDisk(), MovedClock()
        self.timers = MovedTimers(self._loop, self.clock)
        return real_world(self._loop)._replace(disk=self.disk, clock=self.clock, timers=self.timers)

    def around(self, handler: Handler, broker: Broker | None) -> Handler:
        """What a node calls with its requests in place of `handler`."""
        if broker is None:
            raise NoBroker("--faults is for nodes with a broker, and process.roles has none")
        self._coordinators = CoordinatorFaults(handler, broker)
        self._requests = RequestFaults(self._coordinators.handle, broker, self.timers)
        return self._requests.handle

    @property
    def requests(self) -> RequestFaults:
        if self._requests is None:
            raise NotNow("the node is down")
        return self._requests

    @property
    def coordinators(self) -> CoordinatorFaults:
        if self._coordinators is None:
            raise NotNow("the node is down")
        return self._coordinators

    def clear(self) -> None:
        """As if nothing had been asked for; time stays where it is."""
        self.disk.is_full = False
        self.coordinators.settle()
        self.requests.clear()

    # Restarting

    async def restart(self, *, clean: bool, down_ms: int) -> None:
        """Comes back when the node is up again."""
        if self._on_up is not None:
            raise NotNow("the node is being restarted")

        def begin(done: Callable[[], None]) -> None:
            self._on_up = done
            self._down_s = down_ms / 1000
            self.clear()
            self.on_restart(clean)

        await wait_until(begin)

    def on_down(self) -> None:
        """The node is gone. The next one has a world of its own."""
        self._requests = self._coordinators = None
        self.world = self._make_world()

    async def stay_down(self, when_stopping: Callable[[Callable[[], None]], None]) -> None:
        """Waits as long as the node was to be down, or until it is to stop for good."""
        down_s, self._down_s = self._down_s, 0.0
        if down_s:

            def begin(done: Callable[[], None]) -> None:
                self._loop.call_later(down_s, done)
                when_stopping(done)

            await wait_until(begin)

    def on_up(self) -> None:
        if self._on_up is not None:
            on_up, self._on_up = self._on_up, None
            on_up()


def _nobody_listens(_clean: bool) -> None:
    """No node runs."""
