"""Metrics that clients have pushed to this broker (KIP-714), under names that Prometheus takes.

`org.apache.kafka.producer.record.queue.time.avg` is there as `kafka_client_producer_record_queue_time_avg`, with the
client's id and the id of its instance as labels.
"""

import re
from collections.abc import Iterator
from typing import Final

from ottla.base.ids import uuid_text
from ottla.broker.telemetry.client_metrics import ClientMetrics
from ottla.runtime.exposition import Exposition, label_text

_MOST_SERIES: Final = 20_000
_KAFKAS: Final = "org.apache.kafka."
_NOT_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")


def client_metrics_page(page: Exposition, pushed: ClientMetrics, now_ms: int) -> Iterator[str]:
    pushed.forget_stale(now_ms)
    page.gauge("ottla_client_metrics_instances", len(pushed.instances))
    page.counter("ottla_client_metrics_pushes_total", pushed.pushes)
    series: dict[tuple[str, str], list[tuple[str, float]]] = {}
    count = 0
    for instance_id, client in list(pushed.instances.items()):
        own = {"client_id": client.client_id, "client_instance_id": uuid_text(instance_id)}
        for kind, values in (("gauge", client.gauges), ("counter", client.sums)):
            for (name, attributes), value in values.items():
                count += 1
                if count > _MOST_SERIES:
                    break
                more = {_NOT_A_NAME.sub("_", key): text for key, text in attributes}
                series.setdefault((_shown(name), kind), []).append((label_text({**more, **own}), value))
        yield page.take()
    shown: set[str] = set()
    for (name, kind), samples in sorted(series.items()):
        if name not in shown:  # A name has one type.
            shown.add(name)
            page.head(name, kind, "Pushed by clients (KIP-714).")
            yield from page.add_in_pieces(name, kind, samples)


def _shown(name: str) -> str:
    return _NOT_A_NAME.sub("_", f"kafka_client_{name.removeprefix(_KAFKAS)}")
