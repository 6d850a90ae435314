"""The shape of a coordinator's machine: a log-backed state whose decisions are records, answers and timers.

Theory of operation. A command is a method of the machine: it reads the state and the time, and returns a
`CoordinatorDecision`. The driver (`broker.coordination`) appends the decision's records to the coordinator's partition
in one batch, replays them into the machine at once, and gives the reply out when they are committed; a decision
without records waits for what was written before it, since it may have seen that. So nobody is ever told what could
still be lost, and the next command sees everything that was decided before it.

`replay` is the only thing that changes what is in the log. What never is in the log (who waits for a rebalance, when a
member was last heard of) is the machine's to change as it decides, and is gone with the coordinator: whoever counted on
it comes back to the next one.

Timers have names. A timer that is set again is moved; one that is set to None is dropped. What it does when it fires is
another command.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ottla.base.dataclass import dataclass
from ottla.records.kernel import Record
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

ReplyT = TypeVar("ReplyT")


class CoordinatorRecord(NamedTuple):
    """A record of a coordinator's topic. No value: a tombstone, the key is forgotten."""

    key: Message
    value: Message | None = None
    version: int = 0
    """The version that the value is written in."""


class TransactionStamp(NamedTuple):
    """The producer in whose transaction records are written: they count once it is committed."""

    producer_id: int
    producer_epoch: int


class Waiter(Protocol):
    """Somebody who waits for an answer that a later decision brings. To a machine it is a token and nothing more."""

    def then(self, reply: Any, /) -> None: ...

    def failed(self, error: ErrorCode, /) -> None: ...


class Answer(NamedTuple):
    """What a waiter is told once the decision is committed: a reply, or, where that is an `ErrorCode`, the failure."""

    waiter: Waiter
    reply: Any


class Timer(NamedTuple):
    """`expire` is called as any command, with the machine and the time, `delay_ms` from now. None: it is dropped."""

    name: Hashable
    delay_ms: int = 0
    expire: "Callable[[Any, int], CoordinatorDecision[Any]] | None" = None


@dataclass(frozen=True, slots=True)
class CoordinatorDecision(Generic[ReplyT]):
    """What a command leads to. Records that are `atomic` go into one batch; others into as many as they need.

    `undo` is called instead of giving answers out if the records cannot be written: it says what is to happen then.
    """

    reply: ReplyT
    records: Sequence[CoordinatorRecord] = ()
    answers: Sequence[Answer] = ()
    timers: Sequence[Timer] = ()
    transaction: TransactionStamp | None = None
    atomic: bool = True
    undo: "Callable[[ErrorCode, int], CoordinatorDecision[Any]] | None" = None


class CoordinatorMachine:
    """The state of one partition of a coordinator's topic. See the module."""

    def replay(self, key: Message, value: Message | None) -> None:
        """A record has been written, or is found in the log while loading."""
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

    def on_loaded(self, now_ms: int) -> CoordinatorDecision[None]:
        """The log has been replayed, and commands come from now on: the time to set timers."""
        return CoordinatorDecision(None)

    def on_unloaded(self) -> Sequence[Waiter]:
        """Another node coordinates from now on: everybody who still waits here, to be sent there."""
        return ()
