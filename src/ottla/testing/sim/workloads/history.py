"""What the clients of a simulation have done and seen. Invariants listen to it, and look at it at the end."""

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.testing.sim.invariants.invariant import Invariant

ALL: Final = -1
"""`acks=all`"""


class Fate(Enum):
    """What is known of a record."""

    OPEN = "sent, and nothing is known of it"
    ACKNOWLEDGED = "acknowledged"
    TAKEN = "taken by its leader alone, and lost if that is"
    FAILED = "given up; it may be in the log or not"


class Ending(Enum):
    """What is known of a transaction."""

    OPEN = "begun; nobody has asked to commit it"
    COMMITTING = "asked to commit, and nothing is known of that"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Care(NamedTuple):
    """What a writer asks for: how many replicas have a record before it hears of it, and whether it may come twice."""

    acks: int = ALL
    is_once: bool = True
    """The record is there once at most: its producer is idempotent, or never sends anything again."""
    is_in_order: bool = True
    """It is not behind later ones: its producer is idempotent. Another gives a request up and sends the next over a
    new connection, while a broker may still carry out what came over the old one."""


CAREFUL: Final = Care()


class Transaction:
    def __init__(self, name: str) -> None:
        self.name = name
        self.ending = Ending.OPEN
        self.records: list[SentRecord] = []


class SentRecord:
    """`writer` is one life of a writer, `number` counts what that life has sent."""

    __slots__ = ("care", "fate", "key", "number", "offset", "partition", "transaction", "value", "writer")

    def __init__(
        self,
        writer: str,
        number: int,
        partition: TopicPartition,
        value: bytes,
        transaction: Transaction | None,
        care: Care = CAREFUL,
        key: bytes | None = None,
    ) -> None:
        self.writer = writer
        self.number = number
        self.partition = partition
        self.value = value
        self.transaction = transaction
        self.care = care
        self.key = key
        self.fate = Fate.OPEN
        self.offset = -1

    def __repr__(self) -> str:
        return f"{self.writer} #{self.number} of {self.partition} ({self.fate.value})"

    @property
    def must_be_there(self) -> bool:
        """Whether a consumer of committed records has to find it."""
        if self.transaction is None:
            return self.fate is Fate.ACKNOWLEDGED
        return self.transaction.ending is Ending.COMMITTED

    @property
    def must_be_hidden(self) -> bool:
        """Whether no consumer of committed records may find it."""
        return self.transaction is not None and self.transaction.ending in (Ending.OPEN, Ending.ABORTED)


class History:
    """`violations` is what invariants have found: a run is over when there is one."""

    def __init__(self) -> None:
        self.sent: dict[bytes, SentRecord] = {}
        self.transactions: list[Transaction] = []
        self.invariants: list[Invariant] = []
        self.violations: list[str] = []
        self.acknowledged = 0
        self.read = 0
        self.may_be_deleted: dict[TopicPartition, int] = {}
        """Before which offset somebody has asked to delete records, whatever the answer was."""
        self.is_deleted: dict[TopicPartition, int] = {}
        """Before which offset somebody was told that all is deleted."""

    def violated(self, invariant: str, what: str) -> None:
        self.violations.append(f"{invariant}: {what}")

    # For writers

    def begin_transaction(self, name: str) -> Transaction:
        transaction = Transaction(name)
        self.transactions.append(transaction)
        return transaction

    def send(
        self,
        writer: str,
        number: int,
        partition: TopicPartition,
        transaction: Transaction | None = None,
        *,
        care: Care = CAREFUL,
        key: bytes | None = None,
        padding: bytes = b"",
    ) -> SentRecord:
        """A record whose value nobody else sends. `padding` makes it longer."""
        value = b"%s #%d%s" % (writer.encode(), number, b" " + padding if padding else b"")
        record = self.sent[value] = SentRecord(writer, number, partition, value, transaction, care, key)
        if transaction is not None:
            transaction.records.append(record)
        return record

    def acknowledge(self, record: SentRecord, offset: int | None) -> None:
        """The cluster has said where it is. With `acks=0` nobody has, and with 1 only its leader has promised.

        Of a batch that its broker has and no longer knows, only that it is there is known: one behind it was
        acknowledged. It is looked for in the end.
        """
        self.acknowledged += 1
        if record.care.acks != ALL:
            record.fate = Fate.TAKEN
            return
        record.fate = Fate.ACKNOWLEDGED
        if offset is None:
            return
        record.offset = offset
        for invariant in self.invariants:
            invariant.on_acknowledged(record)

    def note_deletion_asked(self, partition: TopicPartition, offset: int) -> None:
        self.may_be_deleted[partition] = max(offset, self.may_be_deleted.get(partition, 0))

    def note_deleted(self, partition: TopicPartition, offset: int) -> None:
        self.is_deleted[partition] = max(offset, self.is_deleted.get(partition, 0))

    # For readers

    def note_read(self, group: str, reader: str, partition: TopicPartition, offset: int, value: bytes) -> None:
        self.read += 1
        for invariant in self.invariants:
            invariant.on_read(group, reader, partition, offset, value)

    def note_assigned(self, group: str, reader: str, generation: int, partitions: Sequence[TopicPartition]) -> None:
        for invariant in self.invariants:
            invariant.on_assigned(group, reader, generation, partitions)

    def note_commit_sent(self, group: str, partition: TopicPartition, offset: int) -> None:
        for invariant in self.invariants:
            invariant.on_commit_sent(group, partition, offset)

    def note_committed(self, group: str, partition: TopicPartition, offset: int) -> None:
        for invariant in self.invariants:
            invariant.on_committed(group, partition, offset)
