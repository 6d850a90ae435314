"""Consumer groups on the metrics page: under the names of kafka_exporter, whose dashboards then work, and Kafka's own.

Every group is reported by its coordinator, so no two nodes tell of the same one. What there is most of, partitions of
groups, is bounded (`ottla.metrics.max.group.partitions`): those with the largest lag are shown.
"""

from collections.abc import Iterator
from typing import Final

from ottla.broker.broker import Broker
from ottla.machines.group.membership import Group
from ottla.node.metrics.group_lags import Committed, GroupLags
from ottla.runtime.exposition import Exposition, escaped

_ROWS_A_PIECE: Final = 2_000


def group_metrics(page: Exposition, broker: Broker, lags: GroupLags) -> Iterator[str]:
    groups = [group for led in list(broker.coordinators.groups.active) for group in led.machine.groups.values()]
    ids = [f'{{consumergroup="{escaped(group.group_id)}"}} ' for group in groups]
    yield from page.add_column("kafka_consumergroup_members", "gauge", ids, [len(group.members) for group in groups])
    _add_coordinator(page, broker, groups)
    found: list[Committed] = []
    records: list[int] = []
    for some, ends in lags.all():
        found += some
        records += [end - row[3] if end > row[3] else 0 for row, end in zip(some, ends, strict=True)]
        yield page.take()
    most = broker.config.integer("ottla.metrics.max.group.partitions")
    left_out = max(len(found) - most, 0)
    if left_out:
        largest = sorted(range(len(found)), key=records.__getitem__, reverse=True)[:most]
        found, records = [found[place] for place in largest], [records[place] for place in largest]
        yield ""
    page.gauge("ottla_consumergroup_partitions_left_out", left_out)
    prefix = "kafka_consumergroup_"
    labels: list[str] = []
    of_topics: dict[tuple[str, str], int] = {}
    topic_labels: list[str] = []
    offset_sums: list[int] = []
    lag_sums: list[int] = []
    last_group, group = None, ""
    for start in range(0, len(found), _ROWS_A_PIECE):
        end = start + _ROWS_A_PIECE
        for (group_id, topic, partition, committed), behind in zip(found[start:end], records[start:end], strict=True):
            if group_id != last_group:
                last_group, group = group_id, escaped(group_id)
            labels.append(f'{{consumergroup="{group}",topic="{topic}",partition="{partition}"}} ')
            place = of_topics.setdefault((group_id, topic), len(offset_sums))
            if place == len(offset_sums):
                topic_labels.append(f'{{consumergroup="{group}",topic="{topic}"}} ')
                offset_sums.append(committed)
                lag_sums.append(behind)
            else:
                offset_sums[place] += committed
                lag_sums[place] += behind
        yield page.take()
    yield from page.add_column(prefix + "current_offset", "gauge", labels, [row[3] for row in found])
    yield from page.add_column(prefix + "lag", "gauge", labels, records)
    yield from page.add_column(prefix + "current_offset_sum", "gauge", topic_labels, offset_sums)
    yield from page.add_column(prefix + "lag_sum", "gauge", topic_labels, lag_sums)
    for places, ages in lags.ages(found, records):
        at_places = [labels[place] for place in places]
        yield from page.add_column("ottla_consumergroup_lag_seconds", "gauge", at_places, ages)


def _add_coordinator(page: Exposition, broker: Broker, groups: list[Group]) -> None:
    prefix = "kafka_server_group_coordinator_metrics_"
    counts: dict[str, int] = {}
    states: dict[str, int] = {}
    for group in groups:
        counts[group.TYPE] = counts.get(group.TYPE, 0) + 1
        states[group.state_name] = states.get(group.state_name, 0) + 1
    page.add(prefix + "group_count", "gauge", [({"protocol": type}, count) for type, count in sorted(counts.items())])
    page.add("ottla_consumergroups", "gauge", [({"state": state}, count) for state, count in sorted(states.items())])
    loaded = [led.state.value for led in broker.coordinators.groups.partitions.values()]
    page.add(
        prefix + "num_partitions",
        "gauge",
        [({"state": state}, loaded.count(state)) for state in ("loading", "active")],
    )
