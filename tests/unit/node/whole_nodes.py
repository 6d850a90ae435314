"""A whole node in a world of its own: disk and network in memory, time that is told."""

from typing import Any

from ottla.node.config import read_config
from ottla.node.node import Node
from ottla.runtime.procedure import Procedure
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.memory_network import MemoryClient, MemoryNetwork
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_world import step_world
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message

HOST = "127.0.0.1"
PORT, CONTROLLER_PORT = 9092, 9093
ALONE = {"process.roles": "controller", "listeners": f"CONTROLLER://{HOST}:{CONTROLLER_PORT}"}
COMBINED = {
    "process.roles": "broker,controller",
    "listeners": f"PLAINTEXT://{HOST}:{PORT},CONTROLLER://{HOST}:{CONTROLLER_PORT}",
}


class WholeNode:
    """Started. Another on `node.disk` is the same node, started again."""

    def __init__(self, roles: dict[str, str], disk: MemoryDisk | None = None, **settings: str) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.network = MemoryNetwork()
        self.ended = False
        given = {
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{HOST}:{CONTROLLER_PORT}",
            "log.dirs": "/data",
            **roles,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        world = step_world(self.disk, self.clock, timers=self.timers, network=self.network)
        self.node = Node(world, read_config(given), may_format=True, failed=self._on_failed)
        self._do(self.node.start())

    def _on_failed(self) -> None:
        self.ended = True

    def _do(self, procedure: Any) -> None:
        done: list[None] = []
        problems: list[Exception] = []
        Procedure(procedure, StepTimers(self.clock, self.timers.agenda), done.append, problems.append)
        for _ in range(100):
            if done or problems:
                break
            self.network.run()
            self.timers.advance(1)
        if problems:
            raise problems[0]
        assert done, "it takes for ever"

    def stop(self) -> None:
        self._do(self.node.stop())
        self.node.abandon()

    def connect(self, port: int = CONTROLLER_PORT) -> MemoryClient:
        return self.network.connect(HOST, port)

    def ask(self, request: Message, version: int, port: int = CONTROLLER_PORT) -> Any:
        """Sends a request over a connection of its own, and waits for the reply."""
        client = self.connect(port)
        client.send(encode_request(request, version, 7, "the test"))
        received = b""
        for _ in range(100):
            self.network.run()
            received += client.receive()
            if received or client.is_closed:
                break
            self.timers.advance(1)
        assert received, "no reply"
        client.close()
        self.network.run()
        return decode_response(response_type(request._schema.api_key), received[4:], version)[1]
