"""Where a copy continues after it was stopped: the next offset of each partition of the source.

A state file is replaced as a whole, so that a crash leaves the old or the new one. A group keeps the same at the
source's coordinator. With transactions the offsets are committed together with the records, at the destination: there
they are offsets of the destination's partitions in name, since a broker takes offsets of partitions that it knows.

Each of them keeps what it is the place of (`CopyOf`), groups in the metadata of their offsets. A place of another copy
is refused.
"""

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.records.copied_topics import CannotCopy, CopyOf

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer
    from ottla.client.topic_partition import OffsetAndMetadata

Offsets = Mapping[TopicPartition, int]


class BadState(OttlaError):
    """The state file is no state of a copy, or damaged."""


class CopyProgress(Protocol):
    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """What is known; partitions that are not in it begin anew. Raises `CannotCopy` for a place of another copy."""
        ...

    def save(self, offsets: Offsets) -> None:
        """Called when all records before these offsets are delivered."""
        ...


class NoProgress:
    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {}

    def save(self, offsets: Offsets) -> None:
        pass


class FileProgress:
    def __init__(self, path: str, of: CopyOf) -> None:
        self._path = path
        self._of = of
        self._offsets: dict[str, int] = {}

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        try:
            with open(self._path, encoding="utf-8") as file:
                state = json.load(file)
            offsets = {str(number): int(offset) for number, offset in state["offsets"].items()}
            self._of.check_kept(state, self._path, "Without the file, everything is copied")
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise BadState(f"{self._path} is not the state of a copy: {problem}") from problem
        self._offsets = offsets
        return {
            partition: offsets[str(partition.partition)]
            for partition in partitions
            if str(partition.partition) in offsets
        }

    def save(self, offsets: Offsets) -> None:
        self._offsets |= {str(partition.partition): offset for partition, offset in offsets.items()}
        new = f"{self._path}.new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump({**self._of.as_kept(), "offsets": self._offsets}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)


class GroupProgress:
    """Commits to the consumer's own group, at the source."""

    def __init__(self, consumer: "Consumer", group: str, of: CopyOf, tell: Callable[[str], None]) -> None:
        self._consumer = consumer
        self._group = group
        self._of = of
        self._tell = tell

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = _known(self._consumer.committed(partitions))
        others = _kept_by_others(found, self._group, self._of)
        for partition in others:  # offsets of the source, of another reader: a place to begin at
            self._tell(f"the group {self._group} is at offset {found[partition].offset} of {partition}: begins there")
        return {partition: place.offset for partition, place in found.items()}

    def save(self, offsets: Offsets) -> None:
        self._consumer.commit(_with_metadata(offsets, self._of))


class TransactionProgress:
    """Commits with the transaction, at the destination. `reader` is a consumer of the same group there."""

    def __init__(self, producer: "Producer", reader: "Consumer", group: str, of: CopyOf) -> None:
        self._producer = producer
        self._reader = reader
        self._group = group
        self._of = of

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = _known(self._reader.committed([self._stored(partition) for partition in partitions]))
        if others := _kept_by_others(found, self._group, self._of):
            # Of one that reads the destination: as a place in the source it would be any number.
            raise CannotCopy(
                f"the group {self._group} is at offset {found[others[0]].offset} of {others[0]}, and no copy kept it. "
                "Use another group"
            )
        return {
            partition: found[self._stored(partition)].offset
            for partition in partitions
            if self._stored(partition) in found
        }

    def save(self, offsets: Offsets) -> None:
        kept = {self._stored(partition): offset for partition, offset in offsets.items()}
        self._producer.send_offsets(_with_metadata(kept, self._of), self._group)

    def _stored(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self._of.destination.topic, partition.partition)


def _known(
    found: "Mapping[TopicPartition, OffsetAndMetadata | None]",
) -> "dict[TopicPartition, OffsetAndMetadata]":
    return {partition: place for partition, place in found.items() if place is not None}


def _with_metadata(offsets: Offsets, of: CopyOf) -> "dict[TopicPartition, OffsetAndMetadata | int]":
    from ottla.client.topic_partition import OffsetAndMetadata

    metadata = json.dumps(of.as_kept(), separators=(",", ":"))
    return {partition: OffsetAndMetadata(offset, metadata) for partition, offset in offsets.items()}


def _kept_by_others(
    found: "Mapping[TopicPartition, OffsetAndMetadata]", group: str, of: CopyOf
) -> list[TopicPartition]:
    """Where the group's offsets are no copy's. Raises `CannotCopy` where they are another copy's."""
    others = []
    for partition, place in found.items():
        try:
            of.check_kept(json.loads(place.metadata), f"the group {group}", "Use another group")
        except (ValueError, KeyError, TypeError):
            others.append(partition)
    return others
