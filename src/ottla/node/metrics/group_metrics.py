"""Consumer groups on the metrics page: under the names of kafka_exporter, whose dashboards then work, and Kafka's own.

Every group is reported by its coordinator, so no two nodes tell of the same one. What there is most of, partitions of
groups, is bounded (`ottla.metrics.max.group.partitions`): those with the largest lag are shown.
"""

from collections.abc import Iterator
from typing import Final

from ottla.broker.broker import Broker
from ottla.machines.group.membership import Group
from ottla.node.metrics.group_lags import GroupLags, Lag
from ottla.runtime.exposition import Exposition

_ROWS_A_PIECE: Final = 2_000
_NONE: Final = (0, 0)


def group_metrics(page: Exposition, broker: Broker, lags: GroupLags) -> Iterator[str]:
    groups = [group for led in list(broker.coordinators.groups.active) for group in led.machine.groups.values()]
    members = ((_labels(group.group_id), len(group.members)) for group in groups)
    yield from page.add_in_pieces("kafka_consumergroup_members", "gauge", members)
    _add_coordinator(page, broker, groups)
    found: list[Lag] = []
    for some in lags.all():
        found += some
        yield page.take()
    most = broker.config.integer("ottla.metrics.max.group.partitions")
    left_out = max(len(found) - most, 0)
    if left_out:
        found = sorted(found, key=lambda lag: -lag.records)[:most]
        yield ""
    page.gauge("ottla_consumergroup_partitions_left_out", left_out)
    prefix = "kafka_consumergroup_"
    labels: list[str] = []
    records: list[int] = []
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for start in range(0, len(found), _ROWS_A_PIECE):
        for lag in found[start : start + _ROWS_A_PIECE]:
            group_id, topic, partition, committed, end_offset = lag
            behind = end_offset - committed if end_offset > committed else 0
            labels.append(_labels(group_id, topic, partition))
            records.append(behind)
            of_topic = sums.get((group_id, topic), _NONE)
            sums[group_id, topic] = of_topic[0] + committed, of_topic[1] + behind
        yield page.take()
    yield from page.add_column(prefix + "current_offset", "gauge", labels, [lag.committed for lag in found])
    yield from page.add_column(prefix + "lag", "gauge", labels, records)
    of_topics = [_labels(group_id, topic) for group_id, topic in sums]
    yield page.take()
    yield from page.add_column(prefix + "current_offset_sum", "gauge", of_topics, [one for one, _ in sums.values()])
    yield from page.add_column(prefix + "lag_sum", "gauge", of_topics, [behind for _, behind in sums.values()])
    for ages in lags.ages(found):
        samples = ((labels[place], age_s) for place, age_s in ages)
        yield from page.add_in_pieces("ottla_consumergroup_lag_seconds", "gauge", samples)


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


def _labels(group_id: str, topic: str | None = None, index: int | None = None) -> str:
    group_id = group_id.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if topic is None:
        return f'{{consumergroup="{group_id}"}}'
    if index is None:
        return f'{{consumergroup="{group_id}",topic="{topic}"}}'
    return f'{{consumergroup="{group_id}",topic="{topic}",partition="{index}"}}'
