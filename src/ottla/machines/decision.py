"""The shape of a log-backed machine: it decides on records, and only records change it."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ottla.wire.message import Message

ReplyT = TypeVar("ReplyT")


@dataclass(frozen=True, slots=True)
class VersionedRecord:
    """A metadata or coordinator record, and the version it is to be written in."""

    message: Message
    version: int


@dataclass(frozen=True, slots=True)
class Decision(Generic[ReplyT]):
    """What a command leads to. The reply is given out when the records are committed, at once if there are none.

    `atomic` records go into one batch, or are bracketed as a metadata transaction (KIP-868) where they do not fit.
    """

    reply: ReplyT
    records: list[VersionedRecord] = field(default_factory=list)
    atomic: bool = True
