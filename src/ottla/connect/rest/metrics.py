"""The worker's metrics, as one page: by the names that Kafka Connect's have with Prometheus' exporter, and our own.

The exporter's plain rules make `kafka_connect_GROUP_ATTRIBUTE` of Kafka's MBean `kafka.connect:type=GROUP` and its
attribute, with its other keys as labels: `kafka_connect_source_task_metrics_source_record_poll_total{connector="c",
task="0"}`. What this worker cannot know is left out, rather than shown as 0. Counts are of a task's last start, as
Kafka Connect's are.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from ottla.connect.engine_port import Measured, Progress
from ottla.connect.worker.records import RunState, Status
from ottla.connect.worker.worker import Worker
from ottla.runtime.exposition import Exposition, Labels, Sample

MOST_CONNECTORS: Final = 2_000
"""Of a page: the others are counted in what is said of the worker, and not shown one by one."""
_OWN_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,60}")
_WORKER: Final = "kafka_connect_connect_worker_metrics"
_TASK: Final = "kafka_connect_connector_task_metrics"
_SOURCE: Final = "kafka_connect_source_task_metrics"
_SINK: Final = "kafka_connect_sink_task_metrics"
_ERRORS: Final = "kafka_connect_task_error_metrics"

HELPS: Final[Mapping[str, str]] = {
    "ottla_connect_ready": "Whether the worker has read its topics.",
    "ottla_connect_leads": "Whether this worker leads and runs the connectors.",
    "ottla_connect_leader_known": "Whether a worker leads, this one or another.",
    "ottla_connect_tasks": "Tasks of all connectors, by state.",
    "ottla_connect_requests_total": "Replies of the REST interface, by method and status.",
    "ottla_connect_rows_per_second": "Records that a connector has written, a second, over the last half minute.",
    "ottla_connect_lag_seconds": (
        "Of a source, how old its newest record was when it was written; of a sink, how long records wait for it."
    ),
    "ottla_connect_at_end": "Whether a connector has moved all that there was, by its own account.",
    "ottla_connect_wal_retained_bytes": "WAL that a database keeps for the connector's replication slot.",
    "kafka_connect_worker_connector_count": "Connectors that run on this worker.",
    "kafka_connect_worker_task_count": "Tasks that run on this worker.",
    "kafka_connect_connector_status": "The state of a connector: 1 for the one that it is in.",
    "kafka_connect_connector_task_status": "The state of a task: 1 for the one that it is in.",
    "kafka_connect_connector_metrics": "1 for each connector: its class, type, version and state.",
    f"{_WORKER}_connector_count": "Connectors that run on this worker.",
    f"{_WORKER}_task_count": "Tasks that run on this worker.",
    f"{_WORKER}_connector_startup_attempts_total": "Starts of connectors that this worker has tried.",
    f"{_WORKER}_connector_startup_success_total": "Starts of connectors that succeeded.",
    f"{_WORKER}_connector_startup_failure_total": "Starts of connectors that failed.",
    f"{_WORKER}_task_startup_attempts_total": "Starts of tasks that this worker has tried.",
    f"{_WORKER}_task_startup_success_total": "Starts of tasks that succeeded.",
    f"{_WORKER}_task_startup_failure_total": "Starts of tasks that failed.",
    f"{_WORKER}_connector_total_task_count": "Tasks of a connector.",
    f"{_WORKER}_connector_running_task_count": "Tasks of a connector that run.",
    f"{_WORKER}_connector_paused_task_count": "Tasks of a connector that are paused.",
    f"{_WORKER}_connector_failed_task_count": "Tasks of a connector that have failed.",
    f"{_WORKER}_connector_restarting_task_count": "Tasks of a connector that are being started again.",
    f"{_WORKER}_connector_unassigned_task_count": "Tasks of a connector that no worker runs.",
    f"{_WORKER}_connector_destroyed_task_count": "Tasks of a connector that were taken away.",
    f"{_TASK}_batch_size_avg": "Records of a task's batch, on average.",
    f"{_TASK}_running_ratio": "1 while the task runs.",
    f"{_TASK}_pause_ratio": "1 while the task is paused.",
    f"{_TASK}_offset_commit_avg_time_ms": "Time of a batch with the commit of its offsets, on average.",
    f"{_TASK}_offset_commit_max_time_ms": "The longest time of a batch with the commit of its offsets.",
    f"{_SOURCE}_source_record_poll_total": "Records that the source has given.",
    f"{_SOURCE}_source_record_poll_rate": "Records that the source gives, a second, over the last half minute.",
    f"{_SOURCE}_source_record_write_total": "Records that were written to Kafka, behind transforms.",
    f"{_SOURCE}_source_record_write_rate": "Records that are written to Kafka, a second, over the last half minute.",
    f"{_SOURCE}_source_record_active_count": "Records that the source has given and that are not written yet.",
    f"{_SOURCE}_poll_batch_avg_time_ms": "Time of a question to the source, on average; it may wait for data in there.",
    f"{_SOURCE}_poll_batch_max_time_ms": "The longest time of a question to the source.",
    f"{_SOURCE}_transaction_size_avg": "Records of a transaction, on average.",
    f"{_SINK}_sink_record_read_total": "Records that were read from Kafka, by their offsets.",
    f"{_SINK}_sink_record_read_rate": "Records that are read from Kafka, a second, over the last half minute.",
    f"{_SINK}_sink_record_send_total": "Records that were put, by their offsets.",
    f"{_SINK}_sink_record_send_rate": "Records that are put, a second, over the last half minute.",
    f"{_SINK}_sink_record_active_count": "Records that were read and are not put yet.",
    f"{_SINK}_sink_record_lag_max": "Records in the sink's topics that it has not put, of all partitions together.",
    f"{_SINK}_partition_count": "Partitions that the sink reads.",
    f"{_SINK}_put_batch_avg_time_ms": "Time of a batch, on average.",
    f"{_SINK}_put_batch_max_time_ms": "The longest time of a batch.",
    f"{_SINK}_offset_commit_completion_total": "Batches whose offsets were committed.",
    f"{_ERRORS}_total_records_skipped": "Records that errors.tolerance=all has left out.",
    f"{_ERRORS}_total_record_failures": "Records that a converter or a transform has refused.",
}
"""One row for each metric of the page."""


class _Shown(NamedTuple):
    """A task, with all that is known of it."""

    name: str
    labels: Labels
    type: str
    status: Status
    measured: Measured | None


def metrics_page(worker: Worker, replies: Mapping[tuple[str, int], int]) -> str:
    """`replies` are counted by method and status."""
    page = Exposition(HELPS)
    tasks = list(islice(_tasks(worker), MOST_CONNECTORS))
    _add_worker(page, worker, tasks)
    _add_states(page, worker, tasks)
    _add_tasks(page, tasks)
    page.add(
        "ottla_connect_requests_total",
        "counter",
        [
            ({"method": method, "status": str(status)}, float(count))
            for (method, status), count in sorted(replies.items())
        ],
    )
    return page.take()


def _tasks(worker: Worker) -> Iterator[_Shown]:
    for name, of_it in sorted(worker.state.task_statuses.items()):
        type = worker.type_of(name)
        for task, status in of_it.items():
            measured = worker.progress(name) if status.state is RunState.RUNNING and worker.leads else None
            yield _Shown(name, {"connector": name, "task": str(task)}, type, status, measured)


def _add_worker(page: Exposition, worker: Worker, tasks: list[_Shown]) -> None:
    page.gauge("ottla_connect_ready", float(worker.is_loaded))
    page.gauge("ottla_connect_leads", float(worker.leads))
    page.gauge("ottla_connect_leader_known", float(worker.leads or worker.leader is not None))
    counts = Counter(status.state for of_it in worker.state.task_statuses.values() for status in of_it.values())
    page.add("ottla_connect_tasks", "gauge", [({"status": one.value.lower()}, float(counts[one])) for one in RunState])
    connectors, own_tasks = (len(worker.state.connectors), counts.total()) if worker.leads else (0, 0)
    for prefix in ("kafka_connect_worker", _WORKER):
        page.gauge(f"{prefix}_connector_count", connectors)
        page.gauge(f"{prefix}_task_count", own_tasks)
    starts = worker.starts
    for kind in ("connector", "task"):
        page.counter(f"{_WORKER}_{kind}_startup_attempts_total", starts.attempts)
        page.counter(f"{_WORKER}_{kind}_startup_success_total", starts.successes)
        page.counter(f"{_WORKER}_{kind}_startup_failure_total", starts.failures)


def _add_states(page: Exposition, worker: Worker, tasks: list[_Shown]) -> None:
    state = worker.state
    statuses = list(islice(sorted(state.connector_statuses.items()), MOST_CONNECTORS))
    page.add(
        "kafka_connect_connector_status",
        "gauge",
        [
            ({"connector": name, "type": worker.type_of(name), "status": status.state.value.lower()}, 1.0)
            for name, status in statuses
        ],
    )
    page.add(
        "kafka_connect_connector_metrics",
        "gauge",
        [
            (
                {
                    "connector": name,
                    "connector_class": (found.config.get("connector.class") if found is not None else None) or "",
                    "connector_type": worker.type_of(name),
                    "connector_version": status.version or "",
                    "status": status.state.value.lower(),
                },
                1.0,
            )
            for name, status in statuses
            for found in (state.connectors.get(name),)
        ],
    )
    page.add(
        "kafka_connect_connector_task_status",
        "gauge",
        [
            ({**one.labels, "status": one.status.state.value.lower()}, 1.0)
            for one in tasks
            if not isinstance(one.labels, str)
        ],
    )
    by_name: dict[str, Counter[RunState]] = {}
    for one in tasks:
        by_name.setdefault(one.name, Counter())[one.status.state] += 1
    shown = {
        "total": tuple(RunState),
        "running": (RunState.RUNNING,),
        "paused": (RunState.PAUSED,),
        "failed": (RunState.FAILED,),
        "restarting": (RunState.RESTARTING,),
        "unassigned": (RunState.UNASSIGNED,),
        "destroyed": (RunState.DESTROYED,),
    }
    for word, states in shown.items():
        page.add(
            f"{_WORKER}_connector_{word}_task_count",
            "gauge",
            [({"connector": name}, float(sum(found[state] for state in states))) for name, found in by_name.items()],
        )


def _add_tasks(page: Exposition, tasks: list[_Shown]) -> None:
    def add(name: str, kind: str, values: Iterable[tuple[_Shown, float | None]]) -> None:
        page.add(name, kind, [(one.labels, value) for one, value in values if value is not None])

    add(f"{_TASK}_running_ratio", "gauge", [(one, float(one.status.state is RunState.RUNNING)) for one in tasks])
    add(f"{_TASK}_pause_ratio", "gauge", [(one, float(one.status.state is RunState.PAUSED)) for one in tasks])
    known = [(one, one.measured, one.measured.progress) for one in tasks if one.measured is not None]
    add(f"{_TASK}_batch_size_avg", "gauge", [(one, _mean(p.written, p.batches)) for one, _, p in known])
    add(f"{_TASK}_offset_commit_avg_time_ms", "gauge", [(one, _mean(p.batch_ms, p.batches)) for one, _, p in known])
    add(f"{_TASK}_offset_commit_max_time_ms", "gauge", [(one, p.longest_batch_ms) for one, _, p in known])

    sources = [found for found in known if found[0].type == "source"]
    add(f"{_SOURCE}_source_record_poll_total", "counter", [(one, p.read) for one, _, p in sources])
    add(f"{_SOURCE}_source_record_poll_rate", "gauge", [(one, m.read_per_s) for one, m, _ in sources])
    add(f"{_SOURCE}_source_record_write_total", "counter", [(one, p.written) for one, _, p in sources])
    add(f"{_SOURCE}_source_record_write_rate", "gauge", [(one, m.written_per_s) for one, m, _ in sources])
    add(f"{_SOURCE}_source_record_active_count", "gauge", [(one, p.under_way) for one, _, p in sources])
    add(f"{_SOURCE}_poll_batch_avg_time_ms", "gauge", [(one, _mean(p.poll_ms, p.polls)) for one, _, p in sources])
    add(f"{_SOURCE}_poll_batch_max_time_ms", "gauge", [(one, p.longest_poll_ms) for one, _, p in sources])
    for name in ("total_records_skipped", "total_record_failures"):
        add(f"{_ERRORS}_{name}", "counter", [(one, p.skipped) for one, _, p in sources])
    add(f"{_SOURCE}_transaction_size_avg", "gauge", [(one, _mean(p.written, p.batches)) for one, _, p in sources])

    sinks = [found for found in known if found[0].type == "sink"]
    add(f"{_SINK}_sink_record_read_total", "counter", [(one, p.read) for one, _, p in sinks])
    add(f"{_SINK}_sink_record_read_rate", "gauge", [(one, m.read_per_s) for one, m, _ in sinks])
    add(f"{_SINK}_sink_record_send_total", "counter", [(one, p.written) for one, _, p in sinks])
    add(f"{_SINK}_sink_record_send_rate", "gauge", [(one, m.written_per_s) for one, m, _ in sinks])
    add(f"{_SINK}_sink_record_active_count", "gauge", [(one, p.under_way) for one, _, p in sinks])
    add(f"{_SINK}_sink_record_lag_max", "gauge", [(one, p.lag_records) for one, _, p in sinks])
    add(f"{_SINK}_partition_count", "gauge", [(one, p.partitions) for one, _, p in sinks])
    add(f"{_SINK}_put_batch_avg_time_ms", "gauge", [(one, _mean(p.batch_ms, p.batches)) for one, _, p in sinks])
    add(f"{_SINK}_put_batch_max_time_ms", "gauge", [(one, p.longest_batch_ms) for one, _, p in sinks])
    add(f"{_SINK}_offset_commit_completion_total", "counter", [(one, p.batches) for one, _, p in sinks])

    add("ottla_connect_rows_per_second", "gauge", [(one, m.written_per_s) for one, m, _ in known])
    add("ottla_connect_lag_seconds", "gauge", [(one, p.lag_s) for one, _, p in known])
    add("ottla_connect_at_end", "gauge", [(one, float(bool(p.is_at_end))) for one, _, p in known])
    _add_own(page, known)


def _add_own(page: Exposition, known: "list[tuple[_Shown, Measured, Progress]]") -> None:
    """What connectors count themselves: each under its name."""
    samples: dict[str, list[Sample]] = {}
    for one, measured, _ in known:
        for name, value in measured.progress.own.items():
            metric = f"ottla_connect_{name}"
            if _OWN_NAME.fullmatch(name) and name != "lag_seconds" and metric not in _OURS:
                samples.setdefault(metric, []).append((one.labels, value))
    for metric, found in sorted(samples.items()):
        page.head(metric, "gauge", HELPS.get(metric, "As the connectors that have it count it."))
        page.add(metric, "gauge", found)


_OURS: Final = frozenset(HELPS) - {"ottla_connect_wal_retained_bytes"}


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None
