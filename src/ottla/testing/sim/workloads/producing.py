"""A producer's core in a simulation, as a program uses it."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from ottla.client.errors import KafkaError
from ottla.client.producer.append import Delivery
from ottla.client.producer.core import ProducerCore
from ottla.client.promise import Promise
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.workloads.history import Fate, History, SentRecord


class _NoWaiter:
    """Nothing waits in a simulation: deliveries are reported by callbacks."""

    lock = nullcontext()

    def wait(self, promise: Promise[Any], timeout_s: float | None) -> None:
        raise AssertionError("nothing waits in a simulation")

    async def awaited(self, promise: Promise[Any]) -> None:
        await promise

    def call_back(self, callback: Callable[[Any], None], argument: Any) -> None:
        callback(argument)

    def nudge(self) -> None:
        """Callbacks run at once."""


class SimulatedProducer:
    """Notes in the history what becomes of records."""

    def __init__(self, client: ClientInSimulation, history: History, settings: Mapping[str, object]) -> None:
        self.core = ProducerCore(client.world, read_settings(Scope.PRODUCER, settings, {}), _NoWaiter())
        self.on_error: Callable[[Exception], None] = lambda error: None
        self._history = history

    async def send(self, record: SentRecord) -> None:
        """Done when the record is in a batch. Raises what keeps it from that."""

        def settle(delivery: Delivery) -> None:
            error = delivery.exception()
            if error is None:
                self._history.acknowledge(record, delivery.result().offset)
            else:
                record.fate = Fate.FAILED
                self.on_error(error)

        while True:
            try:
                outcome = self.core.send(
                    record.partition.topic, record.value, record.key, record.partition.partition, None, None, settle
                )
                if not isinstance(outcome, Promise):
                    return
                await outcome
            except KafkaError as error:
                if not error.retriable:
                    raise
                await self.core.world.sleep(100)
