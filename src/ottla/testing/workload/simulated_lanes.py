"""Conversations in the simulator: all lanes at once, each with a connection to a simulated node, in simulated time."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, TypeVar

from ottla.testing.sim.simulated_client import HungUp, SimulatedClient
from ottla.testing.sim.simulation import Simulation
from ottla.testing.workload.conversations import Ask

T = TypeVar("T")
_MOMENT_MS = 20
_MOST_MS = 600_000


class SimulatedLane:
    """One conversation. `connect` gives a new connection to a node."""

    def __init__(
        self,
        simulation: Simulation,
        connect: Callable[[int], SimulatedClient],
        conversation: Generator[Sequence[Ask], list[Any], Any],
    ) -> None:
        self.is_over = False
        self.result: Any = None
        self._simulation = simulation
        self._connect = connect
        self._conversation = conversation
        self._clients: dict[int, SimulatedClient] = {}
        self._asked: Sequence[Ask] = ()
        self._next_us = 0
        self._resume(None)

    def step(self) -> None:
        """Goes on if all replies are here. Raises `HungUp`, and whatever the conversation raises."""
        if self.is_over or self._simulation.clock.elapsed_us() < self._next_us:
            return
        expected: dict[int, int] = {}
        for asked in self._asked:
            expected[asked.node] = expected.get(asked.node, 0) + asked.has_response
        for node, count in expected.items():
            client = self._clients[node]
            if len(client.responses) < count:
                if client.is_closed:
                    raise HungUp(f"{client.name}: the node hung up")
                return
        self._resume([self._clients[one.node].responses.pop(0) if one.has_response else None for one in self._asked])

    def _resume(self, replies: list[Any] | None) -> None:
        try:
            self._asked = next(self._conversation) if replies is None else self._conversation.send(replies)
        except StopIteration as end:
            self.is_over, self.result = True, end.value
            for client in self._clients.values():
                client.close()
            return
        if not self._asked:
            self._next_us = self._simulation.clock.elapsed_us() + _MOMENT_MS * 1000
            # Something has to happen then, for time to get there.
            self._simulation.agenda.call_at(self._next_us, lambda: None)
        for node, request, version, has_response in self._asked:
            if node not in self._clients:
                self._clients[node] = self._connect(node)
            self._clients[node].send(request, version, has_response=has_response)


def run_lanes(
    simulation: Simulation,
    connect: Callable[[str, int], SimulatedClient],
    conversations: Mapping[str, Generator[Sequence[Ask], list[Any], T]],
) -> dict[str, T]:
    """All conversations side by side, to their ends; what they return. `connect` is given a lane's name and a node."""
    lanes = {
        name: SimulatedLane(simulation, lambda node, name=name: connect(name, node), conversation)  # type: ignore[misc]
        for name, conversation in conversations.items()
    }

    def all_are_over() -> bool:
        for lane in lanes.values():
            lane.step()
        return all(lane.is_over for lane in lanes.values())

    simulation.run_until(all_are_over, _MOST_MS)
    return {name: lane.result for name, lane in lanes.items()}
