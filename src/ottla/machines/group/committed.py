"""How far a group has come in a partition."""

from functools import partial
from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.messages import OffsetCommitValue


class CommittedOffset(NamedTuple):
    """A committed offset as it is kept. `order` is its place among all records that were replayed: later is newer."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = -1
    topic_id: Uuid = ZERO_UUID
    order: int = 0

    @staticmethod
    def of_record(value: OffsetCommitValue, order: int) -> "CommittedOffset":
        return as_committed(
            (
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                value.topic_id,
                order,
            )
        )

    def is_expired(self, since_ms: int, now_ms: int, retention_ms: int) -> bool:
        """Whether it is kept no longer; `since_ms` is when its time began to run.

        A commit that said for how long it is to be kept (before version 5 of OffsetCommit) is kept for that long.
        """
        if self.expire_timestamp_ms >= 0:
            return now_ms >= self.expire_timestamp_ms
        return now_ms - since_ms >= retention_ms


as_committed = partial(tuple.__new__, CommittedOffset)
"""All fields as one tuple: half the time of the constructor, and two are made for every commit."""

Partitions = dict[int, CommittedOffset]
Topics = dict[str, Partitions]
