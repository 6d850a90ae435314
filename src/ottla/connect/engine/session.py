"""Spark for connectors: one session for all of them, and another one if its Java process dies.

The worker's properties that begin with `spark.` are Spark's settings. `spark.master` says where tasks run: in this
machine's processes unless it is given.
"""

import threading
from collections.abc import Mapping
from contextlib import suppress
from logging import getLogger
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

import ottla.spark
from ottla.connect.engine.data_source import ConnectDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = getLogger(__name__)
_MASTER: Final = "local[4]"
"""More tasks than a small machine has processors: most of a batch is waiting for a broker or a database."""
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.minBatchesToRetain": "2",
    # Batches of some thousand rows go through Java whole.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.memory": "1g",
}
_REPORTED_BY_US: Final = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.v2",
    "org.apache.spark.sql.execution.streaming",
)
"""What these log of a query that fails or stops, the worker says in a line of its own, and its status has the trace."""


class Session:
    """The session, made when it is first asked for."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        given = {key: value for key, value in worker.items() if key.startswith("spark.")}
        self._master = given.pop("spark.master", _MASTER)
        self._settings = {**_SETTINGS, **given}
        self._lock = threading.Lock()
        self._session: SparkSession | None = None
        self._java: Any = None
        self._closed = False
        self._is_ours = True
        """Whether nobody else in this process had a session before; it is closed then."""

    def get(self) -> "SparkSession":
        """The running session; a new one if there is none, or if it has ended: its Java process is gone, or Spark's
        context has stopped in it, as it does after a failure of its own that it cannot survive."""
        with self._lock:
            assert not self._closed, "the engine is closed"
            if self._session is not None and self._has_ended():
                code, java = self._java.poll(), self._java
                what = "context has stopped" if code is None else f"Java process has ended with code {code}"
                _log.error("Spark's %s; starting another", what)
                self._forget()
                if self._is_ours:
                    _end_java(java)
            if self._session is None:
                self._session = self._made()
                self._java = getattr(self._session.sparkContext._gateway, "proc", None)
                self._session.dataSource.register(ConnectDataSource)
                if self._is_ours:
                    self._silence()
            activate(self._session)
            return self._session

    def _made(self) -> "SparkSession":
        """Where this process has a session already, one beside it: settings of connectors are not those of others."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        self._is_ours = SparkContext._active_spark_context is None
        if self._is_ours:
            return ottla.spark.session("ottla connect", master=self._master, **self._settings)
        made = SparkSession.builder.getOrCreate().newSession()
        for name, value in self._settings.items():
            if name.startswith("spark.sql."):
                made.conf.set(name, value)
        return made

    def _silence(self) -> None:
        assert self._session is not None
        java: Any = self._session._jvm
        log4j = java.org.apache.logging.log4j
        for name in _REPORTED_BY_US:
            log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)

    @property
    def java_pid(self) -> int | None:
        return None if self._java is None else int(self._java.pid)

    def has_ended(self) -> bool:
        with self._lock:
            return self._session is not None and self._has_ended()

    def _has_ended(self) -> bool:
        return self._java is not None and (self._java.poll() is not None or self._has_stopped())

    def _has_stopped(self) -> bool:
        assert self._session is not None
        context: Any = self._session.sparkContext._jsc
        try:
            return context is None or bool(context.sc().isStopped())
        except Exception:  # Java cannot be asked: that it has ended, its process says a moment later.
            return False

    def _forget(self) -> None:
        """PySpark keeps the session, the context and the way to Java in its classes, and would use them again."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        gateway: Any = SparkContext._gateway
        with suppress(Exception):
            gateway.shutdown()
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        self._session = self._java = None

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._session is None:
                return
            if not self._is_ours:
                return
            with suppress(Exception):
                self._session.stop()
            java = self._java
            self._forget()
            if java is not None:
                _end_java(java)


def _end_java(java: Any) -> None:
    """Java ends when this process closes its standard input."""
    with suppress(Exception):
        java.stdin.close()
    try:
        java.wait(10)
    except TimeoutExpired:
        java.kill()
        java.wait(10)


def activate(session: "SparkSession") -> None:
    """For this thread: Java looks in the session of its thread for data sources that were registered."""
    java: Any = session._jvm
    java.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
