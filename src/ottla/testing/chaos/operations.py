"""What one program asked of a cluster, and what it got.

A process is one client, from its start to its end: a client that is made anew has another name. Its operations are in
the order in which it began them. Values are unique in a history, so that a record that is read tells who wrote it.
"""

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple, TextIO


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    """It did not happen, for certain: the transaction was aborted."""
    UNKNOWN = "unknown"
    """It may have happened, or may happen yet: a timeout, a lost connection."""


class Sent(NamedTuple):
    partition: str
    value: int
    offset: int | None = None
    """As the cluster acknowledged it; None if it did not."""


class Polled(NamedTuple):
    partition: str
    offset: int
    value: int


class Operation(NamedTuple):
    """A send, a poll, or a transaction with any number of both."""

    process: str
    outcome: Outcome
    began_us: int
    ended_us: int
    sends: tuple[Sent, ...] = ()
    polls: tuple[Polled, ...] = ()
    """What a consumer was given, in that order: it was given it whatever became of the transaction."""
    commit_began_us: int | None = None
    """When a transaction was first asked to commit. Nobody may read its records before."""
    assigned: tuple[str, ...] = ()
    """Partitions that the process was given just before this poll: it may begin anywhere in them."""
    reads_to_the_end: bool = False
    """The polls are all that the partitions held when the run was over."""
    is_transaction: bool = False


def write_operation(operation: Operation, file: TextIO) -> None:
    given = {name: value for name, value in operation._asdict().items() if value != _DEFAULTS.get(name)}
    file.write(json.dumps(given, separators=(",", ":")) + "\n")


def read_operations(lines: Iterable[str]) -> Iterator[Operation]:
    for line in lines:
        given = json.loads(line)
        given["outcome"] = Outcome(given["outcome"])
        given["sends"] = tuple(Sent(*sent) for sent in given.get("sends", ()))
        given["polls"] = tuple(Polled(*polled) for polled in given.get("polls", ()))
        given["assigned"] = tuple(given.get("assigned", ()))
        yield Operation(**given)


_DEFAULTS = Operation._field_defaults
