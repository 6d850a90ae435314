"""A batch's decision: which transactions of tasks it is made of. The record that makes a batch exactly once.

One record for each query, its newest: the key is the query's id, the value JSON, deflated. From the moment that it is
committed the batch is written, whatever happens to processes: its transactions are committed, by the driver or by the
driver after it.
"""

import json
import zlib
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError

_VERSION: Final = 1
MOST_BYTES: Final = 64 << 20
"""Of one decision: a batch of 10,000 tasks that write to 100 partitions each fits, compressed."""
_MOST_BYTES_OPENED: Final = 1 << 30


class NewerVersion(OttlaError, ValueError):
    """A newer ottla has written for this query."""


class Piece(NamedTuple):
    """Rows in a partition's log. All batches of their producer between the two offsets, and nothing else of it."""

    topic: str
    partition: int
    first_offset: int
    last_offset: int
    row_count: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}, offsets {self.first_offset} to {self.last_offset}"


class TaskTransaction(NamedTuple):
    """A transaction that a task has filled, flushed and left open. One task attempt has one (producer id, epoch)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_v2: bool
    pieces: tuple[Piece, ...]

    @property
    def row_count(self) -> int:
        return sum(piece.row_count for piece in self.pieces)


class Decision(NamedTuple):
    batch_id: int
    run_id: str
    """Which start of the query decided."""
    transactions: tuple[TaskTransaction, ...]
    """Those that have to be committed. What the driver wrote itself came with the decision, in one transaction."""
    row_count: int | None = None
    """Of the whole batch: a replay has as many. Decisions of older versions do not say."""
    rows_digest: int | None = None
    """Of the whole batch: a replay has the same rows. Decisions of older versions do not say."""

    def encode(self) -> bytes:
        value = {
            "version": _VERSION,
            "batch": self.batch_id,
            "run": self.run_id,
            "rows": self.row_count,
            "xxh64_sum": self.rows_digest,
            "transactions": [
                [one.transactional_id, one.producer_id, one.producer_epoch, one.is_v2, one.pieces]
                for one in self.transactions
            ],
        }
        return zlib.compress(json.dumps(value, separators=(",", ":")).encode(), level=1)

    @classmethod
    def decode(cls, value: bytes) -> "Decision":
        read: dict[str, Any] = json.loads(_opened(value))
        if read["version"] != _VERSION:
            raise NewerVersion(f"a decision of version {read['version']}: a newer ottla has written for this query")
        return cls(
            read["batch"],
            read["run"],
            tuple(
                TaskTransaction(
                    transactional_id, producer_id, producer_epoch, is_v2, tuple(Piece(*piece) for piece in pieces)
                )
                for transactional_id, producer_id, producer_epoch, is_v2, pieces in read["transactions"]
            ),
            read.get("rows"),
            read.get("xxh64_sum"),
        )


def _opened(value: bytes) -> bytes:
    opening = zlib.decompressobj()
    opened = opening.decompress(value, _MOST_BYTES_OPENED)
    if not opening.eof:
        raise ValueError(f"it is cut off, or larger than {_MOST_BYTES_OPENED} bytes")
    return opened
