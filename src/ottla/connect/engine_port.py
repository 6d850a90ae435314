"""What a worker asks of the engine that runs connectors, and what it hears from it.

The worker knows configurations, states and offsets; the engine knows how a connector runs (Spark, in
`ottla.connect.engine`). This file is all that they know of each other.

    worker                          engine
    start(spec, listener)   ──────▶ begins, and returns at once
                            ◀────── on_running(name)
                            ◀────── on_failed(name, trace, retry_in_s=4.0)     it starts again by itself then
                            ◀────── on_failed(name, trace, retry_in_s=None)    it has ended: FAILED
    stop(name)              ──────▶ begins to stop, and returns at once
                            ◀────── on_stopped(name)

A connector that runs is stopped before it is started again, and `on_stopped` comes before the next `start` of its name.
After `on_failed` without a retry nothing of the connector runs, and `stop` of it is answered by `on_stopped` all the
same. A listener belongs to one start: what it hears after `on_stopped` is a fault of the engine's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """One start of a connector.

    `config` is the connector's own, with what config providers stand for already put in: it may hold secrets, and goes
    into no log. `worker` has the worker's properties: bootstrap.servers, converters, offset.storage.topic, group.id.
    `generation` counts this worker's starts; it goes into nothing but logs.
    """

    name: str
    config: Mapping[str, str]
    worker: Mapping[str, str]
    generation: int


class EngineListener(Protocol):
    """Called from any thread; it never blocks and never raises."""

    def on_running(self, name: str) -> None:
        """The connector has started, or has started again after a failure."""

    def on_failed(self, name: str, trace: str, *, retry_in_s: float | None) -> None:
        """With `retry_in_s` the engine starts it again by itself then. Without, it has ended."""

    def on_stopped(self, name: str) -> None:
        """Nothing of it runs any more, and its last transaction is committed or aborted."""

    def on_topics(self, name: str, topics: Iterable[str]) -> None:
        """Records of these topics went through it; each topic is told once in a start (KIP-558). It may be left out:
        then `GET /connectors/NAME/topics` is empty."""


class Engine(Protocol):
    """Runs connectors. One object for a worker; its methods are called from one thread."""

    def start(self, spec: ConnectorSpec, listener: EngineListener) -> None:
        """Returns at once; what becomes of it is told to the listener. A configuration that cannot run is told by
        `on_failed`, not raised."""

    def stop(self, name: str) -> None:
        """Returns at once; `on_stopped` follows, also for a connector that has failed or never started."""

    def close(self) -> None:
        """Stops all connectors and waits for them, then ends Spark."""
