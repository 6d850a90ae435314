"""The worker's metrics, as one page: by the names that Kafka Connect's have with Prometheus' exporter, and our own."""

from collections import Counter
from collections.abc import Mapping

from ottla.connect.worker.records import RunState
from ottla.connect.worker.worker import Worker
from ottla.runtime.exposition import Exposition


def metrics_page(worker: Worker, replies: Mapping[tuple[str, int], int]) -> str:
    """`replies` are counted by method and status."""
    state, page = worker.state, Exposition()
    tasks = [
        (name, task, status) for name, of_it in sorted(state.task_statuses.items()) for task, status in of_it.items()
    ]
    page.gauge("ottla_connect_ready", float(worker.is_loaded))
    page.gauge("ottla_connect_leads", float(worker.leads))
    page.gauge("ottla_connect_leader_known", float(worker.leads or worker.leader is not None))
    page.gauge("kafka_connect_worker_connector_count", len(state.connectors) if worker.leads else 0)
    page.gauge("kafka_connect_worker_task_count", len(tasks) if worker.leads else 0)
    page.add(
        "kafka_connect_connector_status",
        "gauge",
        [
            ({"connector": name, "type": worker.type_of(name), "status": status.state.value.lower()}, 1.0)
            for name, status in sorted(state.connector_statuses.items())
        ],
    )
    page.add(
        "kafka_connect_connector_task_status",
        "gauge",
        [
            ({"connector": name, "task": str(task), "status": status.state.value.lower()}, 1.0)
            for name, task, status in tasks
        ],
    )
    counts = Counter(status.state for _, _, status in tasks)
    page.add("ottla_connect_tasks", "gauge", [({"status": one.value.lower()}, float(counts[one])) for one in RunState])
    page.add(
        "ottla_connect_requests_total",
        "counter",
        [
            ({"method": method, "status": str(status)}, float(count))
            for (method, status), count in sorted(replies.items())
        ],
    )
    return page.take()
