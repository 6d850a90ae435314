"""A node's metrics page, under the names that the usual JMX-exporter rules give Apache Kafka's.

`kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=orders` is there as
`kafka_server_brokertopicmetrics_bytesin_total{topic="orders"}`: lower case, joined with underscores, counters of a rate
as `_total`, histograms as quantiles with a `_count`. So dashboards that were made for Kafka, and for kafka_exporter,
work unchanged.
"""

import os
import resource
import time
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Protocol

from ottla import __version__
from ottla.broker.broker import Broker
from ottla.log.cleaning.job import CleaningStats
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import NO_LEADER
from ottla.machines.quota.limits import TokenBuckets
from ottla.node.metrics.client_metrics_page import client_metrics_page
from ottla.node.metrics.group_lags import GroupLags
from ottla.node.metrics.group_metrics import group_metrics
from ottla.node.metrics.metric_help import METRIC_HELP
from ottla.node.metrics.node_watch import NodeWatch
from ottla.node.metrics.partition_metrics import ROWS_A_PIECE, partition_metrics
from ottla.node.metrics.quota_metrics import add_connection_rates, client_quotas, mutation_quotas
from ottla.node.metrics.transaction_metrics import add_transactions
from ottla.node.metrics.watch_metrics import add_histogram, add_node, add_quorum
from ottla.runtime.exposition import Exposition, Sample, label_text
from ottla.runtime.request_metrics import AUTHENTICATION_OUTCOMES, REFUSALS, RequestMetrics
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


class MetadataProgress(Protocol):
    """What the metadata log tells of itself."""

    @property
    def is_active(self) -> bool: ...
    @property
    def committed_offset(self) -> int: ...
    @property
    def last_timestamp_ms(self) -> int: ...


def metrics_page(
    broker: Broker,
    requests: RequestMetrics,
    metadata: MetadataProgress,
    mutations: TokenBuckets,
    watch: NodeWatch | None = None,
    *,
    is_controller: bool = True,
) -> Iterator[str]:
    """In pieces, none of which takes long: the node has more to do, and a metric of every partition is a lot.

    As in Kafka, `kafka_controller_…` is of controllers alone; `is_controller`: the node is one too.
    """
    page = Exposition(METRIC_HELP)
    yield from _traffic(page, broker)
    _add_requests(page, requests)
    yield page.take()
    yield from partition_metrics(page, broker)
    _add_cleaner(page, broker)
    yield page.take()
    if is_controller:
        yield from _controller(page, broker.image, metadata)
    _add_broker(page, broker, metadata)
    yield from group_metrics(page, broker, GroupLags(broker) if watch is None or watch.lags is None else watch.lags)
    add_transactions(page, broker)
    yield page.take()
    yield from client_quotas(page, broker.client_quotas)
    yield from mutation_quotas(page, mutations, requests.now_ms())
    _add_waiting(page, broker)
    if watch is not None:
        yield from client_metrics_page(page, broker.client_metrics, broker.clock.now_ms())
        add_quorum(page, watch, is_controller=is_controller)
        add_node(page, watch, requests.now_ms() / 1000)
    _add_process(page)
    yield page.take()


def controller_metrics_page(
    image: MetadataImage,
    requests: RequestMetrics,
    metadata: MetadataProgress,
    mutations: TokenBuckets,
    watch: NodeWatch | None = None,
) -> Iterator[str]:
    """Of a node that is a controller alone."""
    page = Exposition(METRIC_HELP)
    _add_requests(page, requests)
    yield from _controller(page, image, metadata)
    yield from mutation_quotas(page, mutations, requests.now_ms())
    if watch is not None:
        add_quorum(page, watch, is_controller=True)
        add_node(page, watch, requests.now_ms() / 1000)
    _add_process(page)
    yield page.take()


def process_page() -> Iterator[str]:
    """Of a node that starts or stops: it has no more to tell."""
    page = Exposition(METRIC_HELP)
    _add_process(page)
    yield page.take()


def _traffic(page: Exposition, broker: Broker) -> Iterator[str]:
    traffic = broker.partitions.traffic
    topics = list(traffic.topics.items())
    labels: list[str] = []
    for start in range(0, len(topics), ROWS_A_PIECE):
        labels += [label_text({"topic": topic}) + " " for topic, _ in topics[start : start + ROWS_A_PIECE]]
        yield page.take()
    for counter, name in _OF_TOPICS.items():
        read = attrgetter(counter)
        values = [read(one) for _, one in topics]
        metric = f"kafka_server_brokertopicmetrics_{name}_total"
        page.counter(metric, sum(values) + read(traffic.gone))
        yield page.take()
        yield from page.add_column(metric, "counter", labels, values)


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
    add_histogram(
        page,
        "ottla_request_duration_seconds",
        ((f'request="{_api_name(key)}"', found.times) for key, found in sorted(requests.apis.items())),
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
            # A counter that begins with its first event would hide it: nothing has increased then.
            [
                ({"listener": listener}, requests.authentications[listener, outcome])
                for listener in requests.connections
            ],
        )
    page.add(
        "ottla_connections_refused_total",
        "counter",
        [({"reason": reason}, requests.refused[reason]) for reason in dict.fromkeys((*REFUSALS, *requests.refused))],
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
    stats = cleaner.last_stats or CleaningStats()
    page.gauge(manager + "max_dirty_percent", int(100 * cleaner.max_dirty_ratio))
    page.gauge(manager + "time_since_last_run_ms", broker.clock.now_ms() - cleaner.last_look_ms)
    page.gauge(prefix + "max_buffer_utilization_percent", int(100 * stats.map_utilization))
    page.gauge(prefix + "cleaner_recopy_percent", int(100 * stats.bytes_written / max(stats.bytes_read, 1)))
    page.gauge(prefix + "max_clean_time_secs", int(stats.elapsed_s))
    page.gauge(prefix + "max_compaction_delay_secs", cleaner.max_overdue_ms // 1000)
    page.gauge(prefix + "deadthreadcount", 0)


def _controller(page: Exposition, image: MetadataImage, metadata: MetadataProgress) -> Iterator[str]:
    brokers = image.brokers.by_id.values()
    prefix = "kafka_controller_kafkacontroller_"
    page.gauge(prefix + "activecontrollercount", int(metadata.is_active))
    page.gauge(prefix + "activebrokercount", sum(not broker.fenced for broker in brokers))
    page.gauge(prefix + "fencedbrokercount", sum(broker.fenced for broker in brokers))
    page.gauge(prefix + "globaltopiccount", len(image.topics.by_id))
    count = leaderless = imbalanced = seen = 0
    for topic in list(image.topics.by_id.values()):
        count += len(topic.partitions)
        for partition in topic.partitions.values():
            leader, replicas = partition.leader, partition.replicas
            if not replicas or replicas[0] != leader:
                leaderless += leader == NO_LEADER
                imbalanced += leader != partition.preferred_leader
        if count - seen > ROWS_A_PIECE:
            seen = count
            yield page.take()
    page.gauge(prefix + "globalpartitioncount", count)
    page.gauge(prefix + "offlinepartitionscount", leaderless)
    page.gauge(prefix + "preferredreplicaimbalancecount", imbalanced)
    page.gauge(prefix + "lastcommittedrecordoffset", metadata.committed_offset - 1)
    page.gauge(prefix + "lastappliedrecordoffset", metadata.committed_offset - 1)
    page.gauge(prefix + "lastappliedrecordtimestamp", metadata.last_timestamp_ms)
    yield page.take()


def _add_broker(page: Exposition, broker: Broker, metadata: MetadataProgress) -> None:
    """What Kafka's brokers tell of their metadata, and kafka_exporter of brokers."""
    prefix = "kafka_server_broker_metadata_metrics_last_applied_record_"
    page.gauge(prefix + "offset", metadata.committed_offset - 1)
    page.gauge(prefix + "timestamp", metadata.last_timestamp_ms)
    page.gauge(prefix + "lag_ms", max(broker.clock.now_ms() - metadata.last_timestamp_ms, 0))
    brokers = broker.image.brokers.by_id
    page.gauge("kafka_brokers", sum(not one.fenced for one in brokers.values()))
    known = brokers.get(broker.identity.node_id)
    if known is not None and known.endpoints:
        address = f"{known.endpoints[0].host}:{known.endpoints[0].port}"
        page.gauge("kafka_broker_info", 1, id=str(known.id), address=address)


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
    page.gauge("ottla_build_info", 1, version=__version__)
    page.counter("process_cpu_seconds_total", round(usage.ru_utime + usage.ru_stime, 3))
    page.gauge("process_start_time_seconds", _STARTED_S)
    page.gauge("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    try:
        with open("/proc/self/statm") as file:
            page.gauge("process_resident_memory_bytes", int(file.read().split()[1]) * resource.getpagesize())
        page.gauge("process_open_fds", _open_descriptors())
        with open("/proc/self/io") as file:
            counts = dict(line.split(": ") for line in file.read().splitlines())
        page.counter("kafka_server_kafkaserver_linux_disk_read_bytes", int(counts["read_bytes"]))
        page.counter("kafka_server_kafkaserver_linux_disk_write_bytes", int(counts["write_bytes"]))
    except (OSError, KeyError, ValueError):
        return  # Not Linux, or a container that does not let us see.


def _open_descriptors() -> int:
    """The system has counted them since Linux 6.2. To list twenty thousand would take a tenth of a page's time."""
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd")) - 1


def _start_time_s() -> float:
    """Of this process, where the system tells; or else of this module, which is loaded with the first page."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        with open("/proc/uptime") as file:
            up_s = float(file.read().split()[0])
        return round(time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK"), 2)
    except (OSError, ValueError, IndexError):
        return round(time.time(), 2)


_STARTED_S = _start_time_s()
