"""How far consumer groups are behind: in records under the names of kafka_exporter, whose dashboards then work, and in
seconds, which neither it nor Apache Kafka can tell.

A node knows the groups that it coordinates and the partitions that it leads; where both are here, so is the lag. Lag in
seconds is the age of the oldest record that the group has not read. To know it, the head of a batch is looked up in the
log, so of each page only the largest lags get it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.ports import ColdRead
from ottla.broker.broker import Broker
from ottla.broker.partitions.cold_reads import warm
from ottla.broker.partitions.partition import Partition
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.reading import slot_of
from ottla.machines.group.membership import Group
from ottla.runtime.exposition import Exposition, Sample

MOST_LOOKED_UP = 200


class Lag(NamedTuple):
    group_id: str
    partition: Partition
    committed: int

    @property
    def records(self) -> int:
        return max(self.partition.log.high_watermark - self.committed, 0)

    @property
    def labels(self) -> dict[str, str]:
        topic, index = self.partition.name
        return {"consumergroup": self.group_id, "topic": topic, "partition": str(index)}


def add_groups(page: Exposition, broker: Broker) -> None:
    groups = list(_groups(broker))
    committed = list(_committed(broker))
    lags = [Lag(group_id, partition, offset) for group_id, partition, offset in committed if partition is not None]
    page.add(
        "kafka_consumergroup_members",
        "gauge",
        [({"consumergroup": group.group_id}, len(group.members)) for group in groups],
    )
    page.add("kafka_consumergroup_current_offset", "gauge", [(lag.labels, lag.committed) for lag in lags])
    page.add("kafka_consumergroup_lag", "gauge", [(lag.labels, lag.records) for lag in lags])
    page.add("kafka_consumergroup_current_offset_sum", "gauge", _sums((lag, lag.committed) for lag in lags))
    page.add("kafka_consumergroup_lag_sum", "gauge", _sums((lag, lag.records) for lag in lags))
    page.add("ottla_consumergroup_lag_seconds", "gauge", _ages(lags, broker))
    _add_coordinator(page, broker, groups)


def _add_coordinator(page: Exposition, broker: Broker, groups: list[Group]) -> None:
    prefix = "kafka_server_group_coordinator_metrics_"
    counts: dict[str, int] = {}
    for group in groups:
        counts[group.TYPE] = counts.get(group.TYPE, 0) + 1
    page.add(prefix + "group_count", "gauge", [({"protocol": type}, count) for type, count in sorted(counts.items())])
    states = [led.state.value for led in broker.coordinators.groups.partitions.values()]
    page.add(
        prefix + "num_partitions",
        "gauge",
        [({"state": state}, states.count(state)) for state in ("loading", "active")],
    )


def _groups(broker: Broker) -> Iterator[Group]:
    for led in broker.coordinators.groups.active:
        yield from led.machine.groups.values()


def _committed(broker: Broker) -> Iterator[tuple[str, Partition | None, int]]:
    for led in broker.coordinators.groups.active:
        for group_id, topic, index, offset in led.machine.offsets.each():
            partition = broker.partitions.get((topic, index))
            is_led = partition is not None and partition.is_leader
            yield group_id, partition if is_led else None, offset


def _sums(values: Iterable[tuple[Lag, int]]) -> Iterator[Sample]:
    sums: dict[tuple[str, str], int] = {}
    for lag, value in values:
        key = lag.group_id, lag.partition.name.topic
        sums[key] = sums.get(key, 0) + value
    for (group_id, topic), value in sums.items():
        yield {"consumergroup": group_id, "topic": topic}, value


def _ages(lags: list[Lag], broker: Broker) -> Iterator[Sample]:
    """What would have to be waited for is left out of this page, and read for the next."""
    now_ms = broker.clock.now_ms()
    cold: list[ColdRead] = []
    behind = sorted((lag for lag in lags if lag.records), key=lambda lag: -lag.records)
    yield from ((lag.labels, 0) for lag in lags if not lag.records)
    for lag in behind[:MOST_LOOKED_UP]:
        broker.world.disk.reads_may_wait(False)
        try:
            timestamp_ms = _timestamp_of(lag.partition, lag.committed)
        except ColdRead as read_later:
            cold.append(read_later)
            continue
        finally:
            broker.world.disk.reads_may_wait(True)
        if timestamp_ms is not None:
            yield lag.labels, max(now_ms - timestamp_ms, 0) / 1000
    if cold:
        warm(broker.world.workers, cold, lambda _: None)


def _timestamp_of(partition: Partition, offset: int) -> int | None:
    """Of the first record at or after an offset: that of its batch's first, which may be a little older."""
    log = partition.log
    offset = max(offset, log.log_start_offset)
    try:
        for segment in log.segments[slot_of(log.segments, offset) :]:
            found = segment.find(offset)
            if found is not None:
                header = found[1]
                stamped = header.is_log_append_time or header.has_delete_horizon
                return header.max_timestamp if stamped else header.base_timestamp
    except STORAGE_PROBLEMS:
        return None  # The consumer that reads the partition is told.
    return None
