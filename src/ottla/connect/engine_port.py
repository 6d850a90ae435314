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

How far connectors are the worker asks when it wants to know (`progress`): for metrics, and for `run --once`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


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


@dataclass(frozen=True, slots=True)
class Progress:
    """What one run of a connector has done, by its own account; counted from its start, as Kafka Connect's tasks do.

    A source reads from its system and writes to Kafka; a sink reads from Kafka and writes to its target.
    """

    read: int = 0
    written: int = 0
    """Records that are committed, with where they came from."""
    skipped: int = 0
    """Records that `errors.tolerance=all` left out."""
    under_way: int = 0
    """Records that were read and are not written yet."""
    polls: int = 0
    poll_ms: float = 0.0
    """Of all polls together. A poll is one question to a source, or one look at the ends of a sink's topics."""
    longest_poll_ms: float = 0.0
    batches: int = 0
    batch_ms: float = 0.0
    longest_batch_ms: float = 0.0
    last_batch: int = 0
    """Records of it."""
    partitions: int = 0
    """Of a sink's topics."""
    lag_records: int | None = None
    """What a sink still has before it; None where nobody knows."""
    lag_s: float | None = None
    """How old the newest record was when it was written, by its own time; of a sink, how long what it has not put is
    there. None where nobody knows."""
    is_at_end: bool | None = None
    """Whether all that there was is written. None where nobody knows."""
    own: Mapping[str, float] = field(default_factory=dict)
    """What the connector itself counts (`Source.metrics`)."""


class Measured(NamedTuple):
    """The progress of a run, and how fast it is: over the last half minute or so."""

    progress: Progress
    read_per_s: float
    written_per_s: float


class Engine(Protocol):
    """Runs connectors. One object for a worker; its methods are called from one thread."""

    def start(self, spec: ConnectorSpec, listener: EngineListener) -> None:
        """Returns at once; what becomes of it is told to the listener. A configuration that cannot run is told by
        `on_failed`, not raised."""

    def stop(self, name: str) -> None:
        """Returns at once; `on_stopped` follows, also for a connector that has failed or never started."""

    def progress(self, name: str) -> Measured | None:
        """None if it does not run, or has not said anything yet. Quick; from any thread."""

    def close(self) -> None:
        """Stops all connectors and waits for them, then ends Spark."""
