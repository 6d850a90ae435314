"""The shape of a log-backed machine: it decides on records, and only records change it.

This is the controller's. Coordinators have their own (`coordinator_machine`): decision 22 says why.
"""

from typing import Generic, NamedTuple, TypeVar

from ottla.wire.message import Message

ReplyT = TypeVar("ReplyT")


class VersionedRecord(NamedTuple):
    """A metadata record, and the version it is to be written in."""

    message: Message
    version: int


class Decision(Generic[ReplyT]):
    """What a command leads to. The reply is given out when the records are committed, at once if there are none.

    `atomic` records go into one batch, or are bracketed as a metadata transaction (KIP-868) where they do not fit.
    """

    __slots__ = ("atomic", "records", "reply")

    def __init__(self, reply: ReplyT, records: list[VersionedRecord] | None = None, atomic: bool = True) -> None:
        self.reply = reply
        self.records = [] if records is None else records
        self.atomic = atomic

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and (self.reply, self.records, self.atomic) == (
            other.reply,
            other.records,
            other.atomic,
        )

    def __repr__(self) -> str:
        return f"Decision({self.reply!r}, {self.records!r}, atomic={self.atomic})"
