"""Two samples to rows: what there is, and what changed in between."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.top.sampling import GroupSample, Sample, TopicSample


class TopicRow(NamedTuple):
    topic: str
    partitions: int
    records: int
    """Offsets between the first and the end; compacted topics have fewer records."""
    records_per_second: float | None
    size_bytes: int | None
    bytes_per_second: float | None
    offline_partitions: int
    under_replicated_partitions: int


class GroupRow(NamedTuple):
    group: str
    state: str
    members: int
    topics: int
    lag_records: int
    lag_seconds: float | None
    """How old the oldest record is that was not read; 0 if all are, None if it is not known yet."""
    records_per_second: float | None


class View(NamedTuple):
    brokers: int
    topics: list[TopicRow]
    groups: list[GroupRow]

    def as_json(self) -> dict[str, Any]:
        return {
            "brokers": self.brokers,
            "topics": [row._asdict() for row in self.topics],
            "groups": [row._asdict() for row in self.groups],
        }


def view_of(
    before: Sample | None, now: Sample, unread_ms: Mapping[tuple[TopicPartition, int], int], now_ms: int
) -> View:
    """Busiest topics first, and groups that are furthest behind."""
    seconds = now.at_s - before.at_s if before else 0.0
    topics = [
        _topic_row(name, before.topics.get(name) if before else None, topic, seconds)
        for name, topic in now.topics.items()
    ]
    groups = [
        _group_row(name, before.groups.get(name) if before else None, group, now, unread_ms, now_ms, seconds)
        for name, group in now.groups.items()
    ]
    return View(
        now.brokers,
        sorted(topics, key=lambda row: (-(row.records_per_second or 0), -row.records, row.topic)),
        sorted(groups, key=lambda row: (-row.lag_records, row.group)),
    )


def _topic_row(name: str, before: TopicSample | None, now: TopicSample, seconds: float) -> TopicRow:
    rate = bytes_rate = None
    if before is not None and seconds > 0:
        rate = max(0, sum(now.ends.values()) - sum(before.ends.values())) / seconds
        if now.size_bytes is not None and before.size_bytes is not None:
            bytes_rate = max(0, now.size_bytes - before.size_bytes) / seconds
    return TopicRow(
        name,
        now.partitions,
        sum(max(0, end - now.starts.get(number, 0)) for number, end in now.ends.items()),
        rate,
        now.size_bytes,
        bytes_rate,
        now.offline,
        now.under_replicated,
    )


def _group_row(
    name: str,
    before: GroupSample | None,
    now: GroupSample,
    sample: Sample,
    unread_ms: Mapping[tuple[TopicPartition, int], int],
    now_ms: int,
    seconds: float,
) -> GroupRow:
    lags = {
        partition: max(0, sample.topics[partition.topic].ends.get(partition.partition, 0) - offset)
        for partition, offset in now.committed.items()
        if partition.topic in sample.topics
    }
    behind = [partition for partition, lag in lags.items() if lag]
    times = [unread_ms[place] for one in behind if (place := (one, now.committed[one])) in unread_ms]
    oldest_s = max(0.0, (now_ms - min(times)) / 1000) if times else None
    rate = None
    if before is not None and seconds > 0:
        moved = sum(max(0, at - before.committed.get(one, at)) for one, at in now.committed.items())
        rate = moved / seconds
    return GroupRow(
        name,
        now.state,
        now.members,
        len({partition.topic for partition in now.committed}),
        sum(lags.values()),
        oldest_s if behind else 0.0,
        rate,
    )
