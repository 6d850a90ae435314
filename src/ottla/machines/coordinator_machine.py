"""The shape of a coordinator's machine: a log-backed state whose decisions are records, answers and timers.

Theory of operation. A command is a method of the machine: it reads the state and the time, and returns a
`CoordinatorDecision`. The driver (`broker.coordination`) takes the decision's records up: it replays them into the
machine at once, gathers them with those of other decisions into one batch, appends the batch to the coordinator's
partition, and gives the replies out when it is committed. A decision without records waits for what was decided before
it, since it may have seen that. So no client ever gets what could still be lost, and the next command sees
everything that was decided before it.

What is in the log is changed by `replay` alone. What is not in the log (who waits for a rebalance, when a member was
last heard of) is *soft*: the machine changes it as it decides. Soft state obeys three rules.

    1. It is gone with the coordinator. Clients that counted on it get an error on which they ask again, and ask the
    next one. 2. Records that the driver refuses (they do not fit into a batch, too few replicas are in sync) were never
    replayed.
       The driver calls `on_refused`, and soft state that the decision has changed goes back to what the log says.
    3. Records that were accepted and could not be appended have been replayed. Nothing is undone: everybody who waits
       gets an error, and the driver loads a new machine from the log.

Timers have names. A timer that is set again is moved; one that is set to None is dropped. What it does when it fires is
another command. If that could not be written, the driver lets the timer fire again a little later.

Every record is about one subject: a group, a transactional id. A command, a record or a timer of a subject that raises
has found a broken invariant, or may leave soft state half changed. The driver names it in its log and takes that
subject offline (`take_offline`): nothing is decided about it any more until the partition is loaded anew. The others
are served as before. A command that only reads state while it decides, as all do of a machine without soft state, costs
its own client an error and no more, unless it was an assertion that failed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from ottla.records.kernel import Record
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.record_values import encode_key, encode_versioned

ItemT = TypeVar("ItemT")
ReplyT = TypeVar("ReplyT")


class CoordinatorRecord(NamedTuple):
    """A record of a coordinator's topic. No value: a tombstone, the key is forgotten."""

    key: Message
    value: Message | None = None
    version: int = 0
    """The version that the value is written in."""


EncodedRecord = tuple[bytes, bytes | None]
_RECORD_OVERHEAD = 32
"""More than a record has beside its key and value: six varints and an attributes byte."""


def size_of(records: Iterable[EncodedRecord]) -> int:
    """At least what these take in a batch, before compression."""
    size = 0
    for key, value in records:
        size += len(key) + _RECORD_OVERHEAD
        if value is not None:
            size += len(value)
    return size


class TransactionStamp(NamedTuple):
    """The producer in whose transaction records are written: they count once it is committed."""

    producer_id: int
    producer_epoch: int


class Waiter(Protocol):
    """Somebody who waits for an answer that a later decision brings. To a machine it is a token and nothing more."""

    def then(self, reply: Any, /) -> None: ...

    def failed(self, error: ErrorCode, /) -> None: ...


class Answer(NamedTuple):
    """What a waiter gets once the decision is committed: a reply, or, where that is an `ErrorCode`, the failure."""

    waiter: Waiter
    reply: Any


TimerName = tuple[str, str | None, str | None]
"""What a timer is for, the subject that it belongs to (None: the whole partition), and the member, if it has one."""


class Timer(NamedTuple):
    """`expire` is called as any command, with the machine and the time, `delay_ms` from now. None: it is dropped."""

    name: TimerName
    delay_ms: int = 0
    expire: "Callable[[Any, int], CoordinatorDecision[Any]] | None" = None


class Broken(NamedTuple):
    """A subject whose state contradicts itself, and how that was noticed."""

    subject: str
    problem: Exception


class CoordinatorDecision(NamedTuple, Generic[ReplyT]):
    """What a command leads to. Records that are `atomic` go into one batch; others into as many as they need.

    `followed_by` is a command that is carried out next, before any other, once the records have been replayed. If they
    are refused it never is. `broken` are subjects that a command for the whole partition came upon.
    """

    reply: ReplyT
    records: Sequence[CoordinatorRecord] = ()
    answers: Sequence[Answer] = ()
    timers: Sequence[Timer] = ()
    transaction: TransactionStamp | None = None
    atomic: bool = True
    followed_by: "Callable[[Any, int], CoordinatorDecision[None]] | None" = None
    broken: Sequence[Broken] = ()


class EncodedRecords(Protocol):
    """Records about one subject that are bytes already, and what replaying them does: `machine` is the one that has
    decided on them. `size` is at least what they take in a batch.
    """

    size: int

    @property
    def encoded(self) -> Sequence[EncodedRecord]: ...

    def __len__(self) -> int: ...

    def replay(self, machine: Any, /) -> None: ...


class EncodedCommand(Protocol):
    """A command that is given so often that its records are made as bytes: in no transaction, all in one batch.

    It reads while it decides, and changes nothing. `decide` returns its reply, its records and the timers that are set
    with them. Once all that it rests on is committed it hears so (`tell`), and gives its reply out; or it is refused.
    """

    subject: str
    reply: Any

    def decide(self, machine: Any, now_ms: int, /) -> tuple[Any, EncodedRecords | None, Sequence[Timer]]: ...
    def tell(self) -> None: ...
    def refuse(self, error: ErrorCode, /) -> None: ...


class CoordinatorMachine:
    """The state of one partition of a coordinator's topic. See the module."""

    has_soft_state: ClassVar[bool] = True
    """Whether commands may change something while they decide. An entry that nothing refers to is no change."""

    def subject_of(self, key: Message) -> str | None:
        """The group or transactional id that records with this key are about; None if the kind is not known."""
        raise NotImplementedError

    def encode(self, record: CoordinatorRecord) -> EncodedRecord:
        """A record's key and value as the log has them. Raises if they have no form there."""
        key, value, version = record
        return encode_key(key), None if value is None else encode_versioned(value, version)

    def replay(self, key: Message, value: Message | None) -> None:
        """A record has been decided on, or is found in the log while loading."""
        raise NotImplementedError

    def replay_encoded(self, records: Iterator[Record]) -> Iterator[Record]:
        """A batch is found in the log while loading, outside of transactions. Gives out those that are to be decoded.

        For kinds of records that are too many to make messages of each. The others are replayed as they come, in
        their place among those that are given out.
        """
        return records

    def replay_in_transaction(self, stamp: TransactionStamp, key: Message, value: Message | None) -> None:
        """The same, within a transaction that is not decided yet."""
        raise NotImplementedError(f"{type(self).__name__} has no transactional records")

    def replay_end_of_transaction(self, stamp: TransactionStamp, *, committed: bool) -> None:
        """The producer's marker is in the log: what it wrote counts, or never was."""

    def on_refused(
        self, decision: CoordinatorDecision[Any], error: ErrorCode, now_ms: int
    ) -> CoordinatorDecision[None]:
        """The records of a decision are not written. Leads to soft state as the log has it, and to no records."""
        return CoordinatorDecision(None, answers=[Answer(waiter, error) for waiter, _ in decision.answers])

    def take_offline(self, subject: str) -> Sequence[Waiter]:
        """Forgets a subject that is broken. Returns everybody who waits for it."""
        raise NotImplementedError

    def on_loaded(self, now_ms: int) -> CoordinatorDecision[None]:
        """The log has been replayed, and commands come from now on: the time to set timers."""
        return CoordinatorDecision(None)

    def on_unloaded(self) -> Sequence[Waiter]:
        """Another node coordinates from now on: everybody who still waits here, to be sent there."""
        return ()


def each_unbroken(
    subjects: Iterable[tuple[str, ItemT]], visit: Callable[[str, ItemT], None], broken: list[Broken]
) -> None:
    """Visits every subject of a partition. One that raises is added to `broken`, and the others are visited."""
    for subject, state in subjects:
        try:
            visit(subject, state)
        except Exception as problem:
            broken.append(Broken(subject, problem))
