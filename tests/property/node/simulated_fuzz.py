"""The structured fuzz of a node in the simulator: from its seed a run is the same again, to the byte.

What a live node answers depends on the moment, and so do the ids that later requests carry: a seed leads a fuzz of it
near what it found, and no more. Here time, chance and the order of everything come from the seed, so that a finding is
there again, at the same request. What it cannot find is what takes too long, or too much memory.
"""

import logging
from collections import deque
from random import Random
from types import TracebackType
from typing import Any, Self

from ottla.node.config import read_config
from ottla.node.node import Node
from ottla.testing.sim.simulated_client import SimulatedClient
from ottla.testing.sim.simulation import Simulation
from ottla.wire.message import Message
from ottla.wire.messages import ApiVersionsRequest
from tests.property.node.fuzz_known import Known
from tests.property.node.fuzz_lines import Sent
from tests.property.node.fuzz_load import Load
from tests.property.node.fuzz_messages import FuzzMessages
from tests.property.node.fuzz_run import SETTINGS

_BROKER, _CONTROLLER = 9092, 9093
_NODE_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": f"PLAINTEXT://127.0.0.1:{_BROKER},CONTROLLER://127.0.0.1:{_CONTROLLER}",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": f"1@127.0.0.1:{_CONTROLLER}",
    "log.dirs": "/data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
_PORTS = (_BROKER, _CONTROLLER)
_LINES, _IN_FLIGHT, _ROUND_MS, _MOST_ROUNDS_PARKED = 4, 3, 20, 10
_ROUNDS_BETWEEN_LOADS = 100


class Found(AssertionError):
    """A fault of the node; the run of the same seed has it at the same request."""


class _Faults(logging.Handler):
    """What the node logs with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(logging.Formatter().format(record))


class _Asking:
    """A connection as `Load` wants it."""

    def __init__(self, client: SimulatedClient) -> None:
        self._client = client
        self.ask = client.ask

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._client.close()


class _Line:
    """A connection with a few requests in flight. `rounds` is for how long the oldest has waited."""

    def __init__(self, client: SimulatedClient) -> None:
        self.client = client
        self.waiting: deque[Sent] = deque()
        self.rounds = 0


class SimulatedFuzz:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.simulation = Simulation(seed)
        config = read_config({**_NODE_SETTINGS, **SETTINGS})
        self._node = self.simulation.start(lambda world: Node(world, config, may_format=True, failed=self._on_end))
        self._known = Known(Random(seed))
        self._known.directory, self._known.now_ms = "/data", self.simulation.clock.now_ms
        self._count = 0
        self._load = Load(self._asking, self._known, lambda pause_s: self.simulation.run_for(int(pause_s * 1000)))
        self._load.put()
        self._messages = {port: FuzzMessages(self._known.random, self._known, self._served(port)) for port in _PORTS}
        self._lines = {port: [self._line(port) for _ in range(_LINES)] for port in _PORTS}
        self.sent = self.answered = 0

    def run(self, requests: int) -> None:
        faults = _Faults()
        logger = logging.getLogger("ottla")
        logger.addHandler(faults)
        try:
            rounds = 0
            while self.sent < requests:
                rounds += 1
                if rounds % _ROUNDS_BETWEEN_LOADS == 0:
                    self._load.put()
                self._round()
                if faults.found:
                    raise Found(f"seed {self.seed}, request {self.sent}: {faults.found[0]}")
        finally:
            logger.removeHandler(faults)

    def _on_end(self) -> None:
        raise Found(f"seed {self.seed}, request {self.sent}: the node cannot go on")

    def _round(self) -> None:
        for port, lines in self._lines.items():
            for place, line in enumerate(lines):
                if line.client.is_closed or line.rounds > _MOST_ROUNDS_PARKED:
                    line.client.close()
                    line = lines[place] = self._line(port)
                if not line.waiting:
                    for _ in range(_IN_FLIGHT):
                        self._send(line, port)
        self.simulation.run_for(_ROUND_MS)
        for lines in self._lines.values():
            for line in lines:
                self._take(line)

    def _send(self, line: _Line, port: int) -> None:
        self.sent += 1
        message, version, frame = self._messages[port].request(self.sent)
        sent = Sent(self.sent, message, version, frame)
        line.client.send(message, version, has_response=sent.is_answered)
        if sent.is_answered:
            line.waiting.append(sent)

    def _take(self, line: _Line) -> None:
        line.rounds = 0 if line.client.responses or not line.waiting else line.rounds + 1
        for reply in line.client.responses:
            sent = line.waiting.popleft()
            self.answered += 1
            self._known.learn(sent.message, reply)
        line.client.responses.clear()

    # Connections

    def _connect(self, port: int) -> SimulatedClient:
        self._count += 1
        return self._node.connect(port=port, name=f"fuzz-{self._count}")

    def _line(self, port: int) -> _Line:
        return _Line(self._connect(port))

    def _asking(self) -> Any:
        return _Asking(self._connect(_BROKER))

    def _served(self, port: int) -> list[tuple[int, int]]:
        request: Message = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
        with _Asking(self._connect(port)) as connection:
            keys = connection.ask(request, 3).api_keys
        return [
            (api.api_key, version)
            for api in keys
            for version in range(api.min_version, api.max_version + 1)
            if not (api.api_key == 0 and version < 3)
        ]
