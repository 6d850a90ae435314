"""Where a copy goes on after it was stopped: the next offset of each partition of the source.

A state file is replaced as a whole, so that a crash leaves the old or the new one. A group keeps the same at the
source's coordinator. With transactions the offsets are committed together with the records, at the destination: there
they are offsets of the destination's partitions in name, since a broker takes offsets of partitions that it knows.
"""

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.blocking.consumer import Consumer
    from ottla.client.blocking.producer import Producer

Offsets = Mapping[TopicPartition, int]


class BadState(OttlaError):
    """The state file is of another copy, or damaged."""


class CopyProgress(Protocol):
    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """What is known; partitions that are not in it begin anew."""
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
    def __init__(self, path: str, source: str, destination: str) -> None:
        self._path = path
        self._of = {"source": source, "destination": destination}
        self._offsets: dict[str, int] = {}

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        try:
            with open(self._path, encoding="utf-8") as file:
                state = json.load(file)
            self._offsets = {str(number): int(offset) for number, offset in state["offsets"].items()}
            mismatched = [name for name, value in self._of.items() if state[name] != value]
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise BadState(f"{self._path} is no state of a copy: {problem}") from problem
        if mismatched:
            name = mismatched[0]
            raise BadState(f"{self._path} is of a copy with the {name} {state[name]}, not {self._of[name]}")
        return {
            partition: self._offsets[str(partition.partition)]
            for partition in partitions
            if str(partition.partition) in self._offsets
        }

    def save(self, offsets: Offsets) -> None:
        self._offsets |= {str(partition.partition): offset for partition, offset in offsets.items()}
        new = f"{self._path}.new"
        with open(new, "w", encoding="utf-8") as file:
            json.dump({**self._of, "offsets": self._offsets}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)


class GroupProgress:
    """Commits to the consumer's own group, at the source."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._consumer.committed(partitions)
        return {partition: place.offset for partition, place in found.items() if place is not None}

    def save(self, offsets: Offsets) -> None:
        self._consumer.commit(dict(offsets))


class TransactionProgress:
    """Commits with the transaction, at the destination. `reader` is a consumer of the same group there."""

    def __init__(self, producer: "Producer", reader: "Consumer", group: str, destination: str) -> None:
        self._producer = producer
        self._reader = reader
        self._group = group
        self._destination = destination

    def load(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._reader.committed([self._stored(partition) for partition in partitions])
        known = {partition: found.get(self._stored(partition)) for partition in partitions}
        return {partition: place.offset for partition, place in known.items() if place is not None}

    def save(self, offsets: Offsets) -> None:
        self._producer.send_offsets(
            {self._stored(partition): offset for partition, offset in offsets.items()}, self._group
        )

    def _stored(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self._destination, partition.partition)
