"""What queries of a session do, reported to a topic: a listener of Spark's, and a producer.

    ottla.spark.report_pipelines(spark, "broker:9092")

Reports decide nothing. One that cannot be sent is warned of once, and the query continues; the next one has everything
that is to be known. Spark calls listeners on a thread of its own, so a query never waits for a broker here.
"""

import json
import math
import re
import socket
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.errors import KafkaError, TopicAlreadyExists
from ottla.spark.pipeline_reports import ENDED, FAILED, IDLE, REPORTS_TOPIC, RUNNING, STARTED, PipelineReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_ERROR: Final = 2000
_PATIENCE_MS: Final = 5_000


def report_pipelines(
    spark: "SparkSession",
    bootstrap_servers: str,
    *,
    topic: str = REPORTS_TOPIC,
    settings: Mapping[str, object] | None = None,
) -> "PipelineListener":
    """From now on every streaming query of the session tells that topic what it does: see `ottla pipelines`.

    The topic is made if it is not there. `settings` are the client's, for a cluster that wants a login. The listener
    that is returned can be taken away with `spark.streams.removeListener`, and closed.
    """
    listener = PipelineListener(spark.sparkContext.appName or "", bootstrap_servers, topic, settings or {})
    spark.streams.addListener(listener)
    return listener


class PipelineListener(StreamingQueryListener):
    def __init__(self, application: str, bootstrap_servers: str, topic: str, settings: Mapping[str, object]) -> None:
        from ottla.client.blocking.producer import Producer

        given = {**settings, "bootstrap.servers": bootstrap_servers}
        _create_topic(topic, given)
        self._producer = Producer({"max.block.ms": _PATIENCE_MS, **given})
        self._topic = topic
        self._application = application
        self._host = socket.gethostname()
        self._last: dict[str, PipelineReport] = {}
        self._has_warned = False

    def close(self) -> None:
        """Waits for what was reported."""
        self._producer.close()

    # --- what Spark calls ---

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's names
        query, now_ms = str(event.id), _now_ms()
        before = self._last.get(query)
        self._tell(
            PipelineReport(
                query, str(event.runId), event.name, self._application, self._host, STARTED, now_ms, now_ms,
                error=before.error if before is not None else None,
            )
        )  # fmt: skip

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if (known := self._last.get(str(event.progress.id))) is not None:
            self._tell(with_progress(known, json.loads(event.progress.json), _now_ms()))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        if (known := self._last.get(str(event.id))) is not None:
            self._tell(known._replace(state=IDLE, at_ms=_now_ms(), rows=0, input_rows_per_s=0.0, rows_per_s=0.0))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        if (known := self._last.pop(str(event.id), None)) is None:
            return
        error = _in_short(event.exception) if event.exception else None
        self._tell(known._replace(state=FAILED if error else ENDED, at_ms=_now_ms(), error=error), is_last=True)

    def _tell(self, report: PipelineReport, *, is_last: bool = False) -> None:
        if not is_last:
            self._last[report.id] = report
        try:
            sent = self._producer.send(self._topic, report.encode(), report.id.encode())
            if is_last:  # the program may end now
                sent.result(_PATIENCE_MS / 1000)
        except (KafkaError, TimeoutError) as problem:
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(f"cannot report on pipelines to topic {self._topic}: {problem}", stacklevel=2)


def with_progress(known: PipelineReport, progress: Mapping[str, Any], now_ms: int) -> PipelineReport:
    """`progress` is Spark's, as it is in JSON."""
    operators = progress.get("stateOperators") or []
    return known._replace(
        state=RUNNING,
        at_ms=now_ms,
        batch=int(progress["batchId"]),
        rows=int(progress.get("numInputRows") or 0),
        input_rows_per_s=_number(progress.get("inputRowsPerSecond")),
        rows_per_s=_number(progress.get("processedRowsPerSecond")),
        batch_ms=int((progress.get("durationMs") or {}).get("triggerExecution") or 0),
        offsets=known.offsets | _offsets(progress.get("sources") or []),
        state_rows=sum(int(one.get("numRowsTotal") or 0) for one in operators),
        state_bytes=sum(int(one.get("memoryUsedBytes") or 0) for one in operators),
        watermark=(progress.get("eventTime") or {}).get("watermark"),
        sink=str((progress.get("sink") or {}).get("description") or ""),
        error=None,
    )


def _offsets(sources: list[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Of those sources whose offsets are a topic's."""
    found: dict[str, dict[str, int]] = {}
    for source in sources:
        end = source.get("endOffset")
        if isinstance(end, str):
            try:
                end = json.loads(end)
            except ValueError:
                continue
        if isinstance(end, dict):
            found |= {topic: partitions for topic, partitions in end.items() if _are_offsets(partitions)}
    return found


def _are_offsets(partitions: Any) -> bool:
    return isinstance(partitions, dict) and all(
        name.isdecimal() and type(offset) is int for name, offset in partitions.items()
    )


def _number(value: Any) -> float:
    """Spark has NaN and infinities where no time has passed, and JSON has none of them."""
    number = float(value or 0.0)
    return number if math.isfinite(number) else 0.0


def _in_short(error: str) -> str:
    """The error in its own words: without Java's stack, and without the lines of a program."""
    lines = [line for line in error.split("\n\tat ", 1)[0].splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"(\w+\.)+\w*(Error|Exception|[a-z][A-Z]\w*): ", line)]
    return (named[-1] if named else lines[0] if lines else error).strip()[:_MOST_ERROR]


def _create_topic(topic: str, settings: Mapping[str, object]) -> None:
    from ottla.admin import NewTopic
    from ottla.client.blocking.admin import Admin
    from ottla.config.scopes import Scope
    from ottla.config.scopes import settings as settings_of

    known = settings_of(Scope.ADMIN)
    with Admin({name: value for name, value in settings.items() if name.replace("_", ".") in known}) as admin:
        try:
            admin.create_topics([NewTopic(topic, 1, config={"cleanup.policy": "compact"})]).raise_first()
        except TopicAlreadyExists:
            return


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
