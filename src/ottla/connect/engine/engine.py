"""Runs connectors as Spark's streaming queries: one query for each, supervised by one thread each.

Theory of operation. A connector's thread starts its query, waits for its end, and starts it again: after a pause that
grows if the failure may pass, at once if Spark's Java process died for the first time, and not at all after any other
failure. A query that ends though nobody stopped it is a failure that may pass. A start has nothing from the one before:
it fences it, and asks the offsets topic or the target where it is. So the thread may be interrupted, and a query
killed, at any point.
"""

import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from logging import getLogger
from random import SystemRandom
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ottla.base.pacing import Backoff
from ottla.connect.class_names import class_name_of
from ottla.connect.connectors.spark_format import SparkSink, SparkSource
from ottla.connect.engine.data_source import NAME, START, TYPE
from ottla.connect.engine.failures import Failure, failure_in, is_retriable
from ottla.connect.engine.offsets_log import end_transaction
from ottla.connect.engine.progress import Heard
from ottla.connect.engine.run import Run, new_run
from ottla.connect.engine.session import Session
from ottla.connect.engine.spark_formats import start_sink, start_source
from ottla.connect.engine_port import ConnectorSpec, EngineListener, Measured
from ottla.connect.errors import ConnectError
from ottla.connect.plugins import find_connector

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_log = getLogger(__name__)
_BACKOFF: Final = Backoff(first_ms=1_000, most_ms=120_000)
_STEADY_S: Final = 60.0
"""A connector that ran so long has recovered: its next pause is the shortest again."""
_STARTING_S: Final = 0.05
_ASYNC_LOGS: Final = {
    "asyncProgressTrackingEnabled": "true",
    "asyncProgressTrackingCheckpointIntervalMs": "60000",
    "_asyncProgressTrackingOverrideSinkSupportCheck": "true",
}
"""Spark writes its two logs beside the batches and not between them: half of what a small batch takes. It asks whether
the sink is one that may see a batch twice after a restart; no start of ours ever reads these logs."""
_ENDED: Final = Failure(True, "the connector's query has ended in Spark, and nobody stopped it")
_WATCHING_S: Final = 5
_STOPPING_S: Final = 90.0


class SparkEngine:
    """Runs connectors in one Spark session (see `ottla.connect.engine_port`)."""

    def __init__(self, worker_properties: Mapping[str, str]) -> None:
        self.session = Session(worker_properties)
        self._supervisors: dict[str, _Supervisor] = {}

    def start(self, spec: ConnectorSpec, listener: EngineListener) -> None:
        before = self._supervisors.get(spec.name)
        if before is not None:
            before.stop()
        made = _Supervisor(self.session, spec, listener, before)
        self._supervisors[spec.name] = made
        made.begin()

    def stop(self, name: str) -> None:
        found = self._supervisors.get(name)
        if found is not None:
            found.stop()

    def progress(self, name: str) -> Measured | None:
        found = self._supervisors.get(name)
        heard = None if found is None else found.heard
        return None if heard is None else heard.measured()

    def close(self) -> None:
        for one in self._supervisors.values():
            one.stop()
        deadline_s = monotonic() + _STOPPING_S
        for one in self._supervisors.values():
            one.join(max(deadline_s - monotonic(), 0.1))
        self.session.close()


class _Supervisor:
    """One start that a worker asked for, with all that it takes."""

    def __init__(
        self, session: Session, spec: ConnectorSpec, listener: EngineListener, before: "_Supervisor | None"
    ) -> None:
        self._session = session
        self._spec = spec
        self._listener = listener
        self._before = before
        self._ends = threading.Event()
        self._lock = threading.Lock()
        self._query: StreamingQuery | None = None
        self._failures = 0
        self.heard: Heard | None = None
        """Of the run that is under way."""
        self.thread = threading.Thread(target=self._supervise, name=f"connector {spec.name}", daemon=True)

    def begin(self) -> None:
        """A machine may have no more threads: the connector has failed then, and nothing of it runs."""
        try:
            self.thread.start()
        except RuntimeError:
            self._listener.on_failed(self._spec.name, traceback.format_exc(), retry_in_s=None)

    @property
    def _has_begun(self) -> bool:
        return self.thread.ident is not None

    def stop(self) -> None:
        """Returns at once: another thread stops the query, and wakes the supervisor by it. Without one the supervisor
        sees it a little later."""
        self._ends.set()
        if not self._has_begun:
            self._listener.on_stopped(self._spec.name)
        with self._lock:
            query, self._query = self._query, None
        if query is not None:
            aside = threading.Thread(target=self._end, args=(query,), name=f"stop {self._spec.name}", daemon=True)
            with suppress(RuntimeError):
                aside.start()

    def join(self, timeout_s: float) -> None:
        if self._has_begun:
            self.thread.join(timeout_s)

    def _supervise(self) -> None:
        name = self._spec.name
        try:
            if self._before is not None:
                self._before.join(_STOPPING_S)
                self._before = None
            while not self._ends.is_set():
                failure = self._run_once() or _ENDED
                if self._ends.is_set():
                    break
                if not failure.retriable:
                    _log.debug("connector %s has failed:\n%s", name, failure.trace)
                    self._listener.on_failed(name, failure.trace, retry_in_s=None)
                    self._ends.wait()
                    break
                pause_s = self._pause_s()
                _log.debug("connector %s stopped and is started again in %.1f s:\n%s", name, pause_s, failure.trace)
                self._listener.on_failed(name, failure.trace, retry_in_s=pause_s)
                self._ends.wait(pause_s)
        except Exception:
            _log.exception("connector %s: its supervisor failed", name)
            self._listener.on_failed(name, traceback.format_exc(), retry_in_s=None)
            self._ends.wait()
        finally:
            self._listener.on_stopped(name)

    def _pause_s(self) -> float:
        if self._session.has_ended() and self._failures == 0:
            self._failures = 1
            return 0.0
        pause_s = _BACKOFF.after(self._failures, SystemRandom()) / 1000
        self._failures += 1
        return pause_s

    def _run_once(self) -> Failure | None:
        """One start, until its end. None if it was stopped."""
        spec = self._spec
        run: Run | None = None
        try:
            kind = find_connector(class_name_of(spec.config) or "")
            run = new_run(spec.name, kind.type, spec.config, spec.worker)
            self.heard = Heard(run)
            query = self._started(run)
            started_s = monotonic()
            try:
                return self._watched(run, query)
            finally:
                if monotonic() - started_s > _STEADY_S:
                    self._failures = 0
                self._end(query)
                if self._ends.is_set() and run.type == "source":
                    end_transaction(run)
        except Exception as error:
            if self._session.has_ended():
                return Failure(True, "Spark has ended: its Java process, or its context in it; another one is started")
            is_ours = isinstance(error, ConnectError | OSError)
            found = failure_in(str(error))
            text = found.trace if run is None else run.without_secrets(found.trace)
            return Failure(is_retriable(error) if is_ours else found.retriable, text)
        finally:
            self.heard = None
            if run is not None:
                run.forget()

    def _started(self, run: Run) -> "StreamingQuery":
        path = str(run.spec_path)
        spark = self._session.get()
        connector = run.connector()
        if issubclass(connector, SparkSource):
            return start_source(spark, run)
        if issubclass(connector, SparkSink):
            return start_sink(spark, run)
        kind = "direct" if run.type == "source" and run.is_direct else run.type
        rows = spark.readStream.format(NAME).option(START, path).option(TYPE, kind).load()
        if kind == "direct":
            writing = rows.writeStream.format("noop")
        else:
            one_task = rows.coalesce(1) if kind == "sink" else rows
            writing = one_task.writeStream.format(NAME).option(START, path).option(TYPE, kind)
        return (
            writing.options(**_ASYNC_LOGS)
            .option("checkpointLocation", run.checkpoint)
            .queryName(f"{run.name} {run.id}")
            .start()
        )

    def _watched(self, run: Run, query: Any) -> Failure | None:
        """Waits until the query ends. Raises what it failed with."""
        with self._lock:
            self._query = query
        while not self._ends.is_set() and not run.is_marked_running:
            if query.awaitTermination(_STARTING_S):
                return None
        if not self._ends.is_set():
            self._listener.on_running(run.name)
        told: frozenset[str] = frozenset()
        heard = self.heard
        assert heard is not None, "a run is under way"
        while not self._ends.is_set():
            ended = query.awaitTermination(_WATCHING_S)
            heard.sample()
            if new := run.noted_topics() - told:
                told |= new
                self._listener.on_topics(run.name, sorted(new))
            if ended:
                break
        return None

    def _end(self, query: Any) -> None:
        with self._lock:
            self._query = None
        with suppress(Exception):  # a query that failed, or whose Java is gone, has ended
            query.stop()


__all__ = ["SparkEngine"]
