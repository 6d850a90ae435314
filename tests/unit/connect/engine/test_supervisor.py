"""What the engine says of a connector's run, with queries that are no Spark's."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.base.pacing import Backoff
from ottla.connect.engine import engine as module
from ottla.connect.engine.engine import SparkEngine, _Supervisor
from ottla.connect.engine_port import ConnectorSpec
from tests.unit.connect.worker.worker_in_a_thread import wait_for


class Said:
    """The port `EngineListener`, which remembers."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.pauses_s: list[float | None] = []

    def on_running(self, name: str) -> None:
        self.events.append("running")

    def on_failed(self, name: str, trace: str, *, retry_in_s: float | None) -> None:
        self.events.append(f"failed: {trace.strip().rpartition(chr(10))[2]}")
        self.pauses_s.append(retry_in_s)

    def on_stopped(self, name: str) -> None:
        self.events.append("stopped")

    def on_topics(self, name: str, topics: Iterable[str]) -> None: ...


class Ended:
    """A query that has ended without a failure."""

    def awaitTermination(self, timeout_s: float) -> bool:  # noqa: N802  # Spark's name
        return True

    def stop(self) -> None: ...


@pytest.fixture
def engine() -> Iterator[SparkEngine]:
    engine = SparkEngine({})
    yield engine
    engine.close()


@pytest.fixture
def spec(tmp_path: Path) -> ConnectorSpec:
    config = {"connector.class": "FileStreamSource", "file": "/in.txt", "topic": "lines"}
    worker = {"bootstrap.servers": "127.0.0.1:1", "ottla.connect.state.dir": str(tmp_path)}
    return ConnectorSpec("lines", config, worker, 1)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BACKOFF", Backoff(first_ms=1, most_ms=10))
    monkeypatch.setattr(module, "end_transaction", lambda run: None)


@pytest.mark.usefixtures("quick")
def test_a_query_that_ends_though_nobody_stopped_it_is_started_again(
    engine: SparkEngine, spec: ConnectorSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark ends queries in silence when its context is stopped."""
    starts: list[str] = []

    def started(self: _Supervisor, run: Any) -> Ended:
        starts.append(run.id)
        return Ended()

    monkeypatch.setattr(_Supervisor, "_started", started)
    said = Said()
    engine.start(spec, said)
    wait_for(lambda: len(starts) > 2, "it is started again")
    assert "stopped" not in said.events
    assert said.events[0].startswith("failed: the connector's query has ended")
    assert None not in said.pauses_s
    engine.stop("lines")
    wait_for(lambda: said.events[-1] == "stopped", "it is stopped")


@pytest.mark.usefixtures("quick")
def test_a_connector_that_ends_java_at_each_start_is_started_after_growing_pauses(
    engine: SparkEngine, spec: ConnectorSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once the first time; if each start ends it, the others are to run in the pauses."""
    monkeypatch.setattr(_Supervisor, "_started", lambda self, run: Ended())
    monkeypatch.setattr(engine.session, "has_ended", lambda: True)
    said = Said()
    engine.start(spec, said)
    wait_for(lambda: len(said.pauses_s) > 2, "it is started again")
    assert said.pauses_s[0] == 0.0
    assert all(pause_s for pause_s in said.pauses_s[1:])
    engine.stop("lines")
    wait_for(lambda: said.events[-1] == "stopped", "it is stopped")


def test_a_connector_for_which_there_is_no_thread_has_failed_and_can_be_stopped_and_started(
    engine: SparkEngine, spec: ConnectorSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    said = Said()
    with monkeypatch.context() as without_threads:
        without_threads.setattr(threading.Thread, "start", start)
        engine.start(spec, said)
    engine.stop("lines")
    assert said.events == ["failed: RuntimeError: can't start new thread", "stopped"]
    monkeypatch.setattr(_Supervisor, "_run_once", lambda self: self._ends.wait() and None)
    again = Said()
    engine.start(spec, again)
    engine.stop("lines")
    wait_for(lambda: again.events == ["stopped"], "it is stopped")
