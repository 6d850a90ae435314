"""Partitions on the metrics page: Kafka's names of replicas and logs, and kafka_exporter's of topics.

There may be ten thousand, with fifteen metrics each. So all of a partition's numbers are gathered at once, every line
is one f-string over labels that were made once, and after some thousand lines the loop gets a turn. What is about a
partition, and not about a replica of it, is reported by its leader alone, so that sums over the nodes of a cluster are
right.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.broker.broker import Broker
from ottla.runtime.exposition import Exposition

ROWS_A_PIECE: Final = 1_000

_OF_LOGS: Final = (
    "kafka_log_log_size",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_logendoffset",
    "kafka_log_log_numlogsegments",
    "kafka_cluster_partition_laststableoffsetlag",
)
_CURRENT_OFFSET: Final = "kafka_topic_partition_current_offset"
_OLDEST_OFFSET: Final = "kafka_topic_partition_oldest_offset"
_LEADER: Final = "kafka_topic_partition_leader"
_REPLICAS: Final = "kafka_topic_partition_replicas"
_IN_SYNC: Final = "kafka_topic_partition_in_sync_replica"
_IS_PREFERRED: Final = "kafka_topic_partition_leader_is_preferred"
_UNDER_REPLICATED: Final = "kafka_topic_partition_under_replicated_partition"
_UNDER_REPLICATED_OF_KAFKA: Final = "kafka_cluster_partition_underreplicated"
_UNDER_MIN_ISR: Final = "kafka_cluster_partition_underminisr"
_AT_MIN_ISR: Final = "kafka_cluster_partition_atminisr"


class _Columns:
    """A list of numbers for each metric, beside the labels. Lists of numbers and text, because the garbage collector
    looks into whatever else there would be ten thousand of."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.of_logs: tuple[list[int], ...] = tuple([] for _ in _OF_LOGS)
        self.led: list[str] = []
        self.high_watermarks: list[int] = []
        self.start_offsets: list[int] = []
        self.leaders: list[int] = []
        self.replicas: list[int] = []
        self.in_sync: list[int] = []
        self.preferred: list[int] = []
        self.under_replicated: list[int] = []
        self.under_min_isr: list[int] = []
        self.at_min_isr: list[int] = []
        self.topics: dict[str, int] = {}
        self.leader_count = 0


def partition_metrics(page: Exposition, broker: Broker) -> Iterator[str]:
    columns = _Columns()
    remaining = iter([partition.name for partition in broker.partitions.values()])
    while some := list(islice(remaining, ROWS_A_PIECE)):
        _gather(columns, broker, some)
        yield page.take()
    _add_sums(page, broker, columns)
    for name, values in zip(_OF_LOGS, columns.of_logs, strict=True):
        yield from page.add_column(name, "gauge", columns.held, values)
    for name, values in (
        (_CURRENT_OFFSET, columns.high_watermarks),
        (_OLDEST_OFFSET, columns.start_offsets),
        (_LEADER, columns.leaders),
        (_REPLICAS, columns.replicas),
        (_IN_SYNC, columns.in_sync),
        (_IS_PREFERRED, columns.preferred),
        (_UNDER_REPLICATED, columns.under_replicated),
        (_UNDER_REPLICATED_OF_KAFKA, columns.under_replicated),
        (_UNDER_MIN_ISR, columns.under_min_isr),
        (_AT_MIN_ISR, columns.at_min_isr),
    ):
        yield from page.add_column(name, "gauge", columns.led, values)
    labels = [f'{{topic="{topic}"}}' for topic in columns.topics]
    yield from page.add_column("kafka_topic_partitions", "gauge", labels, list(columns.topics.values()))


def _gather(columns: _Columns, broker: Broker, names: list[TopicPartition]) -> None:
    partitions, topics = broker.partitions, broker.image.topics.by_name
    held, led = columns.held.append, columns.led.append
    sizes, starts, ends, segments, lags = (column.append for column in columns.of_logs)
    for name in names:
        partition = partitions.get(name)
        if partition is None:
            continue  # It has gone since the page was begun.
        topic, index = name
        log = partition.log
        labels = f'{{topic="{topic}",partition="{index}"}}'
        start, high_watermark = log.log_start_offset, log.high_watermark
        held(labels)
        sizes(log.size)
        starts(start)
        ends(log.log_end_offset)
        segments(len(log.segments))
        lags(high_watermark - log.last_stable_offset)
        if not partition.is_leader:
            continue
        columns.leader_count += 1
        known = topics.get(topic)
        image = known.partitions.get(index) if known is not None else None
        if known is None or image is None:
            continue
        if index == 0:
            columns.topics[topic] = len(known.partitions)
        leader, replicas, in_sync = image.leader, len(image.replicas), len(image.isr)
        # As for writes: a partition with fewer replicas than that needs all of them, and no more.
        needed = min(partition.settings.min_insync_replicas, replicas)
        led(labels)
        columns.high_watermarks.append(high_watermark)
        columns.start_offsets.append(start)
        columns.leaders.append(leader)
        columns.replicas.append(replicas)
        columns.in_sync.append(in_sync)
        columns.preferred.append(1 if image.replicas and image.replicas[0] == leader else 0)
        columns.under_replicated.append(1 if in_sync < replicas else 0)
        columns.under_min_isr.append(1 if in_sync < needed else 0)
        columns.at_min_isr.append(1 if in_sync == needed else 0)


def _add_sums(page: Exposition, broker: Broker, columns: _Columns) -> None:
    prefix = "kafka_server_replicamanager_"
    page.gauge(prefix + "partitioncount", len(broker.partitions))
    page.gauge(prefix + "leadercount", columns.leader_count)
    page.gauge(prefix + "offlinereplicacount", len(broker.partitions.offline))
    page.gauge(prefix + "underreplicatedpartitions", sum(columns.under_replicated))
    page.gauge(prefix + "underminisrpartitioncount", sum(columns.under_min_isr))
    page.gauge(prefix + "atminisrpartitioncount", sum(columns.at_min_isr))
    page.counter(prefix + "isrshrinks_total", broker.isr_changes.shrinks)
    page.counter(prefix + "isrexpands_total", broker.isr_changes.expansions)
    page.gauge("kafka_log_logmanager_offlinelogdirectorycount", len(broker.partitions.logs.offline))
