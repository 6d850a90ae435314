"""To where kafka-consumer-groups resets offsets, and of which partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse
from ottla.cli.groups.reset_times import datetime_ms, duration_ms
from ottla.cli.options.checks import UsageError
from ottla.cli.options.reading import Given

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

Offsets = dict[TopicPartition, int]

LATEST: Final = -1
EARLIEST: Final = -2


class Reset:
    """The offsets of one command, group by group. Asks the brokers, changes nothing."""

    def __init__(self, admin: Admin, given: Given) -> None:
        self._admin = admin
        self._given = given
        self._timeout_s = given.integer("timeout") / 1000
        self._plan = self._read_plan() if "from-file" in given else None

    def offsets_of(self, group: str) -> Offsets:
        """New offsets by partition. Raises `Terse` or `KafkaError` when one cannot be found."""
        given = self._given
        if self._plan is not None:
            if group not in self._plan:
                print(f"\nError: No reset plan for group {group} found")
                return {}
            return self._within_log(self._plan[group])
        partitions = self._partitions(group)
        if "to-offset" in given:
            return self._within_log(dict.fromkeys(partitions, given.integer("to-offset")))
        if "to-earliest" in given:
            return self._found(partitions, EARLIEST)
        if "to-latest" in given:
            return self._found(partitions, LATEST)
        if "shift-by" in given:
            return self._shifted(group, partitions, given.integer("shift-by"))
        if "to-datetime" in given:
            return self._by_time(partitions, datetime_ms(given.text("to-datetime")))
        if "by-duration" in given:
            import time

            return self._by_time(partitions, int(time.time() * 1000) - duration_ms(given.text("by-duration")))
        committed = self.committed(group)
        new = {partition: committed[partition] for partition in partitions if partition in committed}
        return {**new, **self._found([partition for partition in partitions if partition not in new], LATEST)}

    def committed(self, group: str) -> Offsets:
        found = self._admin.list_consumer_group_offsets(group, timeout=self._timeout_s)[group]
        return {partition: place.offset for partition, place in found.items() if place is not None}

    def _partitions(self, group: str) -> list[TopicPartition]:
        if "all-topics" in self._given:
            return list(self.committed(group))
        return partitions_of(self._admin, self._given.all("topic"), self._timeout_s)

    def _found(self, partitions: Iterable[TopicPartition], where: int) -> Offsets:
        wanted = dict.fromkeys(partitions, where)
        found = self._admin.list_offsets(wanted, timeout=self._timeout_s).raise_first() if wanted else {}
        offsets: Offsets = {}
        for partition, listed in found.items():
            if listed.offset is None:
                raise UsageError(f"Error getting offset of topic partition: {partition.topic}-{partition.partition}")
            offsets[partition] = listed.offset
        return offsets

    def _by_time(self, partitions: list[TopicPartition], time_ms: int) -> Offsets:
        """Where no record is as new, the end."""
        wanted = dict.fromkeys(partitions, time_ms)
        found = self._admin.list_offsets(wanted, timeout=self._timeout_s).raise_first()
        offsets = {partition: listed.offset for partition, listed in found.items() if listed.offset is not None}
        without = [one for one in partitions if one not in offsets]
        for partition in without:
            place = f"Partition {partition.partition} from topic {partition.topic}"
            print(f"\nWarn: {place} is empty. Falling back to latest known offset.")
        return {**offsets, **self._found(without, LATEST)}

    def _shifted(self, group: str, partitions: list[TopicPartition], by: int) -> Offsets:
        committed = self.committed(group)
        for partition in partitions:
            if partition not in committed:
                name = f"{partition.topic}-{partition.partition}"
                raise UsageError(f"Cannot shift offset for partition {name} since there is no current committed offset")
        return self._within_log({partition: committed[partition] + by for partition in partitions})

    def _within_log(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        first, end = self._found(wanted, EARLIEST), self._found(wanted, LATEST)
        return {partition: min(max(offset, first[partition]), end[partition]) for partition, offset in wanted.items()}

    def _read_plan(self) -> dict[str, Offsets]:
        path = self._given.text("from-file")
        with open(path, encoding="utf-8", newline="") as file:
            return parse_plan(file.read(), self._given.all("group"))


def parse_plan(text: str, groups: list[str]) -> dict[str, Offsets]:
    """Lines `topic,partition,offset`, if the command is about one group, or `group,topic,partition,offset`."""
    import csv

    plan: dict[str, Offsets] = {}
    for cells in csv.reader(line for line in text.splitlines() if line.strip()):
        if len(cells) == 3 and len(groups) == 1:
            cells = [groups[0], *cells]
        try:
            group, topic, partition, offset = cells
            plan.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise Terse(f"Not a line of an offsets file: {','.join(cells)}") from None
    return plan


def partitions_of(admin: Admin, topics: Iterable[str], timeout_s: float) -> list[TopicPartition]:
    """`topic:0,1` as they are; of a topic without partitions, all that it has."""
    found: list[TopicPartition] = []
    whole = []
    for text in topics:
        if ":" in text:
            found += parse_partitions(text)
        else:
            whole.append(text)
    if whole:
        described = admin.describe_topics(whole, timeout=timeout_s).raise_first()
        found += [TopicPartition(name, one.partition) for name, topic in described.items() for one in topic.partitions]
    return found


def parse_partitions(text: str) -> list[TopicPartition]:
    topic, _, partitions = text.partition(":")
    if not topic or not partitions:
        raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
    found = []
    for word in partitions.split(","):
        if not word.strip().isdecimal():
            raise UsageError(f"Invalid partition '{word}' specified in topic arg '{text}''")
        found.append(TopicPartition(topic, int(word)))
    return found
