"""A node's metrics page, under the names that the usual JMX-exporter rules give Apache Kafka's.

`kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=orders` is there as
`kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}`: lower case, joined with underscores, counters of a rate
as `_total`, histograms as quantiles with a `_count`. So dashboards that were made for Kafka work unchanged.
"""

import os
import resource
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from ottla.broker.broker import Broker
from ottla.broker.partitions.traffic import TopicTraffic
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import NO_LEADER, PartitionImage
from ottla.machines.quota.token_bucket import TokenBuckets
from ottla.node.metrics.group_metrics import add_groups
from ottla.node.metrics.quota_metrics import add_connection_rates, client_quotas, mutation_quotas
from ottla.node.metrics.transaction_metrics import add_transactions
from ottla.runtime.exposition import Exposition, Sample, label_text
from ottla.runtime.request_metrics import AUTHENTICATION_OUTCOMES, RequestMetrics
from ottla.wire.apis import api

RUNNING = 3

_OF_TOPICS = {
    "bytes_in": "bytesin",
    "bytes_out": "bytesout",
    "messages_in": "messagesin",
    "produce_requests": "totalproducerequests",
    "fetch_requests": "totalfetchrequests",
    "failed_produce_requests": "failedproducerequests",
    "failed_fetch_requests": "failedfetchrequests",
    "produce_conversions": "producemessageconversions",
}


_OF_LOGS: dict[str, Callable[[PartitionLog], int]] = {
    "size": lambda log: log.size,
    "logstartoffset": lambda log: log.log_start_offset,
    "logendoffset": lambda log: log.log_end_offset,
    "numlogsegments": lambda log: len(log.segments),
}


class MetadataProgress(Protocol):
    """What the metadata log tells of itself."""

    @property
    def is_active(self) -> bool: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def last_timestamp_ms(self) -> int: ...


def metrics_page(
    broker: Broker, requests: RequestMetrics, metadata: MetadataProgress, mutations: TokenBuckets
) -> Iterator[str]:
    """In pieces, none of which takes long: the node has more to do, and a metric of every partition is a lot."""
    page = Exposition()
    _add_traffic(page, broker)
    _add_requests(page, requests)
    yield page.take()
    _add_replicas(page, broker)
    yield page.take()
    yield from _logs(page, broker)
    _add_cleaner(page, broker)
    _add_controller(page, broker.image, metadata)
    yield page.take()
    add_groups(page, broker)
    add_transactions(page, broker)
    yield from client_quotas(page, broker.client_quotas)
    yield from mutation_quotas(page, mutations, requests.now_ms())
    _add_waiting(page, broker)
    _add_process(page)
    yield page.take()


def controller_metrics_page(
    image: MetadataImage, requests: RequestMetrics, metadata: MetadataProgress, mutations: TokenBuckets
) -> Iterator[str]:
    """Of a node that is a controller alone."""
    page = Exposition()
    _add_requests(page, requests)
    _add_controller(page, image, metadata)
    yield from mutation_quotas(page, mutations, requests.now_ms())
    _add_process(page)
    yield page.take()


def _add_traffic(page: Exposition, broker: Broker) -> None:
    total = broker.partitions.traffic.total
    for counter, name in _OF_TOPICS.items():
        samples: list[Sample] = [({}, getattr(total, counter))]
        samples += [
            ({"topic": topic}, _count(traffic, counter)) for topic, traffic in broker.partitions.traffic.topics.items()
        ]
        page.add(f"kafka_server_brokertopicmetrics_{name}_total", "counter", samples)


def _count(traffic: TopicTraffic, counter: str) -> int:
    count: int = getattr(traffic, counter)
    return count


def _add_requests(page: Exposition, requests: RequestMetrics) -> None:
    page.add(
        "kafka_network_requestmetrics_requests_total",
        "counter",
        [
            ({"request": _api_name(key), "version": str(version)}, count)
            for key, found in sorted(requests.apis.items())
            for version, count in sorted(found.versions.items())
        ],
    )
    page.add(
        "ottla_network_request_bytes_total",
        "counter",
        [({"request": _api_name(key)}, found.bytes) for key, found in sorted(requests.apis.items())],
    )
    page.add("kafka_network_requestmetrics_totaltimems", "gauge", _quantiles(requests))
    page.add(
        "kafka_network_requestmetrics_totaltimems_count",
        "counter",
        [({"request": _api_name(key)}, found.times.count) for key, found in sorted(requests.apis.items())],
    )
    page.add(
        "kafka_network_requestmetrics_totaltimems_sum",
        "counter",
        [({"request": _api_name(key)}, found.times.total_s * 1000) for key, found in sorted(requests.apis.items())],
    )
    page.gauge("kafka_network_requestchannel_requestqueuesize", requests.unanswered())
    page.add(
        "kafka_server_socket_server_metrics_connection_count",
        "gauge",
        [({"listener": listener}, count) for listener, count in requests.connections.items()],
    )
    page.add(
        "kafka_server_socket_server_metrics_connection_creation_total",
        "counter",
        [({"listener": listener}, count) for listener, count in requests.connections_created.items()],
    )
    if requests.connection_rates is not None:
        add_connection_rates(page, requests.connection_rates, requests.now_ms())
    for outcome in AUTHENTICATION_OUTCOMES:
        page.add(
            f"kafka_server_socket_server_metrics_{outcome}_total",
            "counter",
            [
                ({"listener": listener}, count)
                for (listener, happened), count in sorted(requests.authentications.items())
                if happened == outcome
            ],
        )
    page.add(
        "ottla_connections_refused_total",
        "counter",
        [({"reason": reason}, count) for reason, count in requests.refused.items()],
    )
    page.add(
        "ottla_faults_total", "counter", [({"where": where}, count) for where, count in sorted(requests.faults.items())]
    )


def _quantiles(requests: RequestMetrics) -> Iterable[Sample]:
    for key, found in sorted(requests.quantiles().items()):
        for quantile, seconds in found.items():
            yield {"request": _api_name(key), "quantile": str(quantile)}, seconds * 1000


def _api_name(key: int) -> str:
    return api(key).name


def _add_replicas(page: Exposition, broker: Broker) -> None:
    leaders = [partition for partition in broker.partitions.values() if partition.is_leader]
    images = [(partition, broker.image.topics.partition(*partition.name)) for partition in leaders]
    known = [(partition, image) for partition, image in images if image is not None]
    page.gauge("kafka_server_replicamanager_partitioncount", len(broker.partitions))
    page.gauge("kafka_server_replicamanager_leadercount", len(leaders))
    page.gauge("kafka_server_replicamanager_offlinereplicacount", len(broker.partitions.offline))
    page.gauge(
        "kafka_server_replicamanager_underreplicatedpartitions",
        sum(1 for _, image in known if len(image.isr) < len(image.replicas)),
    )
    minimum = {partition.name: partition.settings.min_insync_replicas for partition, _ in known}
    page.gauge(
        "kafka_server_replicamanager_underminisrpartitioncount",
        sum(1 for partition, image in known if len(image.isr) < minimum[partition.name]),
    )
    page.gauge(
        "kafka_server_replicamanager_atminisrpartitioncount",
        sum(1 for partition, image in known if len(image.isr) == minimum[partition.name]),
    )
    page.counter("kafka_server_replicamanager_isrshrinks_total", broker.isr_changes.shrinks)
    page.counter("kafka_server_replicamanager_isrexpands_total", broker.isr_changes.expansions)
    page.gauge("kafka_log_logmanager_offlinelogdirectorycount", len(broker.partitions.logs.offline))


def _logs(page: Exposition, broker: Broker) -> Iterator[str]:
    logs = [
        (label_text({"topic": topic, "partition": str(index)}), partition.log)
        for (topic, index), partition in broker.partitions.items()
    ]
    yield page.take()
    for name, value in _OF_LOGS.items():
        yield from page.add_in_pieces(f"kafka_log_log_{name}", "gauge", ((labels, value(log)) for labels, log in logs))
    lags = ((labels, log.high_watermark - log.last_stable_offset) for labels, log in logs)
    yield from page.add_in_pieces("kafka_cluster_partition_laststableoffsetlag", "gauge", lags)


def _add_cleaner(page: Exposition, broker: Broker) -> None:
    cleaner = broker.cleaner
    if cleaner is None:
        return
    uncleanable = cleaner.uncleanable
    by_directory = {
        path: [one for one in uncleanable if one.directory == path] for path in broker.partitions.logs.online
    }
    manager, prefix = "kafka_log_logcleanermanager_", "kafka_log_logcleaner_"
    page.add(
        manager + "uncleanable_partitions_count",
        "gauge",
        [({"logDirectory": path}, len(partitions)) for path, partitions in by_directory.items()],
    )
    page.add(
        manager + "uncleanable_bytes",
        "gauge",
        [
            ({"logDirectory": path}, sum(map(cleaner.uncleanable_bytes, partitions)))
            for path, partitions in by_directory.items()
        ],
    )
    stats = cleaner.last_stats
    page.gauge(manager + "max_dirty_percent", int(100 * cleaner.max_dirty_ratio))
    page.gauge(manager + "time_since_last_run_ms", broker.clock.now_ms() - cleaner.last_look_ms)
    page.gauge(prefix + "max_buffer_utilization_percent", int(100 * stats.map_utilization))
    page.gauge(prefix + "cleaner_recopy_percent", int(100 * stats.bytes_written / max(stats.bytes_read, 1)))
    page.gauge(prefix + "max_clean_time_secs", int(stats.elapsed_s))
    page.gauge(prefix + "max_compaction_delay_secs", cleaner.max_overdue_ms // 1000)
    page.gauge(prefix + "deadthreadcount", 0)


def _add_controller(page: Exposition, image: MetadataImage, metadata: MetadataProgress) -> None:
    brokers = image.brokers.by_id.values()
    partitions = [partition for topic in image.topics.by_id.values() for partition in topic.partitions.values()]
    prefix = "kafka_controller_kafkacontroller_"
    page.gauge(prefix + "activecontrollercount", int(metadata.is_active))
    page.gauge(prefix + "activebrokercount", sum(not broker.fenced for broker in brokers))
    page.gauge(prefix + "fencedbrokercount", sum(broker.fenced for broker in brokers))
    page.gauge(prefix + "globaltopiccount", len(image.topics.by_id))
    page.gauge(prefix + "globalpartitioncount", len(partitions))
    page.gauge(prefix + "offlinepartitionscount", sum(partition.leader == NO_LEADER for partition in partitions))
    page.gauge(prefix + "preferredreplicaimbalancecount", sum(map(_is_imbalanced, partitions)))
    page.gauge(prefix + "lastcommittedrecordoffset", metadata.committed_offset - 1)
    page.gauge(prefix + "lastappliedrecordoffset", metadata.committed_offset - 1)
    page.gauge(prefix + "lastappliedrecordtimestamp", metadata.last_timestamp_ms)


def _is_imbalanced(partition: PartitionImage) -> bool:
    return partition.leader != partition.preferred_leader


def _add_waiting(page: Exposition, broker: Broker) -> None:
    page.gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", len(broker.fetch_sessions))
    page.gauge(
        "kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", broker.fetch_sessions.partition_count
    )
    coordinators = broker.coordinators
    offline = {
        "groups": sum(len(led.offline) for led in coordinators.groups.active),
        "transactions": sum(len(led.offline) for led in coordinators.transactions.active),
    }
    page.add("ottla_coordinator_offline", "gauge", [({"coordinator": name}, count) for name, count in offline.items()])
    page.gauge("kafka_server_kafkaserver_brokerstate", RUNNING)


def _add_process(page: Exposition) -> None:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    page.counter("process_cpu_seconds_total", round(usage.ru_utime + usage.ru_stime, 3))
    try:
        with open("/proc/self/statm") as file:
            page.gauge("process_resident_memory_bytes", int(file.read().split()[1]) * resource.getpagesize())
        page.gauge("process_open_fds", len(os.listdir("/proc/self/fd")))
    except OSError:
        return  # Not Linux.
