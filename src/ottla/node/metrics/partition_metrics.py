"""Partitions on the metrics page: Kafka's names of replicas and logs, and kafka_exporter's of topics.

There may be ten thousand, with fifteen metrics each. So all of a partition's numbers are gathered at once, lines are
joined by columns over labels that were made once (`Exposition.add_column`), and after some thousand lines the loop gets
a turn. Of how partitions are placed (`_Placed`) there are few kinds: each partition has one of them, not a number in
eight lists. What is about a partition, and not about a replica of it, is reported by its leader alone, so that sums
over the nodes of a cluster are right.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ottla.broker.broker import Broker
from ottla.broker.partitions.partition import Partition
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.node.metrics.transaction_metrics import OpenTransactions
from ottla.runtime.exposition import Exposition

ROWS_A_PIECE: Final = 1_000

_OF_LOGS: Final = (
    "kafka_log_log_size",
    "kafka_log_log_logstartoffset",
    "kafka_log_log_logendoffset",
    "kafka_log_log_numlogsegments",
    "kafka_cluster_partition_laststableoffsetlag",
)


class _Placed(NamedTuple):
    """Where a partition lives, as far as its metrics tell."""

    leader: int
    replicas: int
    in_sync: int
    is_preferred: bool
    min_insync_replicas: int

    @property
    def needed(self) -> int:
        """As for writes: a partition with fewer replicas than that needs all of them, and no more."""
        return min(self.min_insync_replicas, self.replicas)

    @property
    def is_under_replicated(self) -> bool:
        return self.in_sync < self.replicas

    @property
    def is_under_min_isr(self) -> bool:
        return self.in_sync < self.needed

    @property
    def is_at_min_isr(self) -> bool:
        return self.in_sync == self.needed


_OF_PLACES: Final[dict[str, Callable[[_Placed], int]]] = {
    "kafka_topic_partition_leader": lambda placed: placed.leader,
    "kafka_topic_partition_replicas": lambda placed: placed.replicas,
    "kafka_topic_partition_in_sync_replica": lambda placed: placed.in_sync,
    "kafka_topic_partition_leader_is_preferred": lambda placed: int(placed.is_preferred),
    "kafka_topic_partition_under_replicated_partition": lambda placed: int(placed.is_under_replicated),
    "kafka_cluster_partition_underreplicated": lambda placed: int(placed.is_under_replicated),
    "kafka_cluster_partition_underminisr": lambda placed: int(placed.is_under_min_isr),
    "kafka_cluster_partition_atminisr": lambda placed: int(placed.is_at_min_isr),
}


class _Columns:
    """A list of numbers for each metric, beside the labels. Lists of numbers and text, because the garbage collector
    looks into whatever else there would be ten thousand of."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.of_logs: tuple[list[int], ...] = tuple([] for _ in _OF_LOGS)
        self.led: list[str] = []
        self.high_watermarks: list[int] = []
        self.start_offsets: list[int] = []
        self.places: list[tuple[int, int, int, bool, int]] = []
        """As in `_Placed`: equal ones are one object."""
        self.topics: dict[str, int] = {}
        self.leader_count = 0
        self.transactions = OpenTransactions()
        self.kinds: dict[tuple[int, int, int, bool, int], tuple[int, int, int, bool, int]] = {}

    def of_places(self, value: Callable[[_Placed], int]) -> list[int]:
        """For each partition that is led here."""
        values = {kind: value(_Placed(*kind)) for kind in self.kinds}
        if len(values) == 1:
            return list(values.values()) * len(self.places)
        return [values[placed] for placed in self.places]

    def count(self, holds: Callable[[_Placed], bool]) -> int:
        return sum(self.places.count(kind) for kind in self.kinds if holds(_Placed(*kind)))


def partition_metrics(page: Exposition, broker: Broker) -> Iterator[str]:
    columns = _Columns()
    partitions = list(broker.partitions.values())
    for start in range(0, len(partitions), ROWS_A_PIECE):
        _gather(columns, broker, partitions[start : start + ROWS_A_PIECE])
        yield page.take()
    _add_sums(page, broker, columns)
    columns.transactions.add_to(page, broker)
    for name, values in zip(_OF_LOGS, columns.of_logs, strict=True):
        yield from page.add_column(name, "gauge", columns.held, values)
    yield from page.add_column("kafka_topic_partition_current_offset", "gauge", columns.led, columns.high_watermarks)
    yield from page.add_column("kafka_topic_partition_oldest_offset", "gauge", columns.led, columns.start_offsets)
    for name, value in _OF_PLACES.items():
        yield from page.add_column(name, "gauge", columns.led, columns.of_places(value))
    labels = [f'{{topic="{topic}"}} ' for topic in columns.topics]
    yield from page.add_column("kafka_topic_partitions", "gauge", labels, list(columns.topics.values()))


def _gather(columns: _Columns, broker: Broker, some: list[Partition]) -> None:
    """One loop, with few calls in it: it is most of what a page costs a node with ten thousand partitions."""
    held_here, topics = broker.partitions, broker.image.topics.by_name
    held, led, place = columns.held.append, columns.led.append, columns.places.append
    sizes, starts, ends, segment_counts, lags = (column.append for column in columns.of_logs)
    high_watermarks, start_offsets = columns.high_watermarks.append, columns.start_offsets.append
    kinds, producer_count = columns.kinds, 0
    last_topic: str | None = None
    known_partitions: dict[int, PartitionImage] = {}
    for partition in some:
        name = partition.name
        if held_here.get(name) is not partition:
            continue  # It has gone since the page was begun.
        topic, index = name
        log = partition.log
        segments, producers = log.segments, log.producers
        start, high_watermark = log.log_start_offset, log.high_watermark
        labels = f'{{topic="{topic}",partition="{index}"}} '
        held(labels)
        sizes(segments[0].size if len(segments) == 1 else log.size)
        starts(start)
        ends(log.log_end_offset)
        segment_counts(len(segments))
        producer_count += len(producers)
        if producers.has_transactions:
            lags(high_watermark - log.last_stable_offset)
            columns.transactions.note(partition)
        else:
            lags(0)
        if partition.state is None:
            continue
        columns.leader_count += 1
        if topic != last_topic:
            last_topic, known = topic, topics.get(topic)
            known_partitions = {} if known is None else known.partitions
        image = known_partitions.get(index)
        if image is None:
            continue
        if index == 0:
            columns.topics[topic] = len(known_partitions)
        leader, replicas = image.leader, image.replicas
        placed = (
            leader,
            len(replicas),
            len(image.isr),
            bool(replicas) and replicas[0] == leader,
            partition.settings.min_insync_replicas,
        )
        led(labels)
        high_watermarks(high_watermark)
        start_offsets(start)
        place(kinds.setdefault(placed, placed))
    columns.transactions.producers += producer_count


def _add_sums(page: Exposition, broker: Broker, columns: _Columns) -> None:
    prefix = "kafka_server_replicamanager_"
    page.gauge(prefix + "partitioncount", len(broker.partitions))
    page.gauge(prefix + "leadercount", columns.leader_count)
    page.gauge(prefix + "offlinereplicacount", len(broker.partitions.offline))
    page.gauge(prefix + "underreplicatedpartitions", columns.count(lambda placed: placed.is_under_replicated))
    page.gauge(prefix + "underminisrpartitioncount", columns.count(lambda placed: placed.is_under_min_isr))
    page.gauge(prefix + "atminisrpartitioncount", columns.count(lambda placed: placed.is_at_min_isr))
    page.counter(prefix + "isrshrinks_total", broker.isr_changes.shrinks)
    page.counter(prefix + "isrexpands_total", broker.isr_changes.expansions)
    page.gauge("kafka_log_logmanager_offlinelogdirectorycount", len(broker.partitions.logs.offline))
