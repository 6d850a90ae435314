"""Which rows a batch has, in 64 bits and a count: by that a replay is known to have the rows that were decided.

A replay may have other tasks, and its rows another order, so the digest depends on neither: it is a sum over rows. It
is no signature: somebody who knows all rows of a batch can compute it.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.records.kernel import IS_COMPILED

if TYPE_CHECKING or not IS_COMPILED:
    from ottla.spark.sink._slow_digest import rows_digest
else:
    from ottla.spark.sink._fast_digest import rows_digest  # it reads columns with the compiled kernel

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.spark.sink.rows import Routing

__all__ = ["DigestedRows", "RowsDigest", "rows_digest"]


class RowsDigest(NamedTuple):
    """Of any number of rows."""

    row_count: int = 0
    total: int = 0

    def plus(self, other: "RowsDigest") -> "RowsDigest":
        return RowsDigest(self.row_count + other.row_count, (self.total + other.total) % (1 << 64))


class DigestedRows:
    """The rows of a task on their way; `digest` is that of those that have passed."""

    def __init__(self, routing: "Routing", batches: Iterable["pa.RecordBatch"]) -> None:
        self.digest = RowsDigest()
        self._routing = routing
        self._batches = batches

    def __iter__(self) -> Iterator["pa.RecordBatch"]:
        for batch in self._batches:
            self.digest = self.digest.plus(RowsDigest(batch.num_rows, self._routing.digest(batch)))
            yield batch
