"""What a connector is: a `Source`, which reads a system outside, or a `Sink`, which writes to one.

A connector is a class with a table of settings. One object of it is made for each run of a connector, in the process
that reads or writes, and used by one thread. Everything about Kafka is done around it: transforms, converters, records
and offsets in one transaction, restarts, dead letters. A source of one's own in thirty lines is in
docs/connect/connectors.md.

    context  →  start  →  poll, committed, poll, …  →  stop          a source
    context  →  start  →  positions  →  put, put, …  →  stop         a sink

What fails is raised: `Retriable` if a new try may help, and any other exception if not. The run is over then, `stop` is
called, and the next run is another object. A process may also be killed without a word at any moment: what a source
must know again it says in its offsets, and what a sink must know again it keeps in its target.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from logging import Logger
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from ottla.base.ids import TopicPartition
from ottla.config.parse import Values
from ottla.config.setting import Setting
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError, DataError, Retriable
from ottla.connect.options import read_options

__all__ = [
    "ConnectError",
    "Offset",
    "Partition",
    "Place",
    "Problem",
    "Refusal",
    "Retriable",
    "Sink",
    "SinkContext",
    "Source",
    "SourceContext",
    "SourceRecords",
    "TopicPartition",
]

Partition: TypeAlias = Mapping[str, Any]
"""A part of a source that has an offset of its own, as a JSON object: a file, a database, a table."""
Offset: TypeAlias = Mapping[str, Any]
"""Where a source is in one of its partitions, as a JSON object that only the source understands."""
Problem: TypeAlias = tuple[str, str]
"""A setting, and what is wrong with it."""

BATCH_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """Records of one topic and schema, and where their source is when they are written.

    `records` has no `source_partition` and `source_offset` columns: `partition` and `offset` say it once for the whole
    batch, the offset being the one after the last record. No records and an offset is allowed: the source went on, and
    there was nothing to write.
    """

    records: Records
    partition: Partition
    offset: Offset


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source is given of the world."""

    connector: str
    """The connector's name."""
    log: Logger
    offset: Callable[[Partition], dict[str, Any] | None]
    """Where the source was in a partition when it last wrote, or None: the offsets topic's word, which is the truth."""
    now_ms: Callable[[], int]
    max_bytes: int = BATCH_BYTES
    """About how much one `poll` may return."""
    worker: Mapping[str, str] = field(default_factory=dict)
    """The worker's properties, for what concerns all connectors (`file.allowed.paths`)."""


class Place(NamedTuple):
    """Where a record stands in Kafka, whatever a transform made of its topic since (KIP-793)."""

    topic: str
    partition: int
    offset: int


class Refusal(NamedTuple):
    """A record of the put under way that the target refuses."""

    position: int
    """The record's, of `Records.position`."""
    reason: str


def _own_places(records: Records) -> list[Place]:
    pairs = zip(records.partition.to_pylist(), records.offset.to_pylist(), strict=True)
    return [Place(records.topic, partition, offset) for partition, offset in pairs]


def _refuse(refusals: Sequence[Refusal]) -> None:
    for one in refusals:
        raise DataError(one.reason)


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink is given of the world."""

    connector: str
    log: Logger
    now_ms: Callable[[], int]
    worker: Mapping[str, str] = field(default_factory=dict)
    places: Callable[[Records], list[Place]] = _own_places
    """Where the records of a batch of the put under way stand in Kafka."""
    refuse: Callable[[Sequence[Refusal]], None] = _refuse
    """Reports records that the target refuses, within `put` (KIP-610). It raises if none may be left out
    (`errors.tolerance=none`), and the put must let it. If it returns, their dead letters are durable."""


class Source(ABC):
    """Reads a system outside. One object for one run of a connector, used by one thread, in the process that reads."""

    settings: ClassVar[Sequence[Setting]] = ()
    """Its options, beside those that every connector has."""

    def __init__(self, config: Mapping[str, str], context: SourceContext) -> None:
        self.config = config
        self.context = context

    def options(self) -> Values:
        """The values of `settings`. Raises `InvalidOption`."""
        return read_options(self.settings, self.config)

    def start(self) -> None:  # noqa: B027  # some need nothing
        """Connects. Raises `Retriable`, or another `ConnectError` that names the setting and the remedy."""

    @abstractmethod
    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        """Waits for data, up to `timeout_s`; nothing if none came. Bounded in bytes by `context.max_bytes`.

        What is returned is in order: of one source partition, a later batch has a later offset.
        """

    def committed(self, offsets: Sequence[tuple[Partition, Offset]]) -> None:  # noqa: B027  # some need nothing
        """These are durable with their records: what the source system keeps for us may go (a replication slot)."""

    def is_at_end(self) -> bool | None:
        """Whether `poll` has handed out all that there was: `ottla connect run --once` ends then. Asked after polls.

        False is "not yet", and is waited for however long it lasts. A source that has no end, or does not know, says
        None; `--once` then waits until nothing comes for a while.
        """
        return None

    def metrics(self) -> Mapping[str, float]:
        """What else is worth watching, by name, as `ottla_connect_NAME` shows it: `lag_seconds`, `wal_retained_bytes`.
        Asked after each poll, so it must cost nothing."""
        return {}

    def stop(self) -> None:  # noqa: B027  # some need nothing
        """Always called, also after a failed `start`, unless the process is killed."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        """What is wrong beyond what `settings` say: settings that contradict each other, and the outside world where
        asking it is cheap."""
        return ()


class Sink(ABC):
    """Writes to a system outside. One object for one run of a connector, used by one thread, where it writes."""

    settings: ClassVar[Sequence[Setting]] = ()

    def __init__(self, config: Mapping[str, str], context: SinkContext) -> None:
        self.config = config
        self.context = context

    def options(self) -> Values:
        """The values of `settings`. Raises `InvalidOption`."""
        return read_options(self.settings, self.config)

    def start(self) -> None:  # noqa: B027  # some need nothing
        """Connects. Raises `Retriable`, or another `ConnectError` that names the setting and the remedy."""

    def positions(self) -> Mapping[TopicPartition, int] | None:
        """The next offset to write of each partition, by the target's own account; after `start`. Partitions that it
        does not know begin where the group was, or at the topic's beginning.

        None if the target keeps no account: then the group's commits count, and a crash repeats (at least once).
        """
        return None

    @abstractmethod
    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        """Writes rows, and the positions behind them, in one transaction of the target: both or neither.

        The records have `partition` and `offset` columns; in each batch they are in the order of `position`, and
        records of several batches are in order when merged by it. `positions` may name partitions that have no records
        here, whose records were dropped on the way.

        A target that another worker may write to at the same time must see to it, in that transaction, that its
        positions are still those that this sink has read or put last, and raise `Retriable` if not.
        """

    def stop(self) -> None:  # noqa: B027  # some need nothing
        """Always called, also after a failed `start`, unless the process is killed."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        """As of a source."""
        return ()
