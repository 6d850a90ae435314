"""A consumer of ranges: for jobs that know from which offset to which they read, and want Arrow's record batches.

Theory of operation. A range is read to its end even if no record is there: batches of aborted transactions, control
batches and what compaction took away are passed over, and it is the position that counts. The fetches stop at the end
of the range; what is fetched ahead is bounded as any consumer's is.
"""

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.client.blocking.consumer import Consumer
from ottla.client.consumer import cluster_queries
from ottla.client.consumer.subscription import FetchPosition
from ottla.client.errors import RequestTimedOut
from ottla.client.topic_partition import PartitionInfo

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types


class RangeConsumer(Consumer):
    """May be used for many ranges, one after the other: connections and metadata are kept."""

    def read_range(
        self, partition: TopicPartition, begin: int, end: int, timeout: float | None = None
    ) -> "Iterator[pa.RecordBatch]":
        """The records with offsets in [`begin`, `end`), as they come.

        Raises `OffsetOutOfRange` if the log does not have `begin`, and `RequestTimedOut` if nothing comes for
        `timeout` seconds.
        """
        from ottla.client.consumer.fetching.arrow_chunks import to_arrow  # it needs pyarrow

        patience_s = self._api_timeout_s if timeout is None else timeout
        check_crcs = self._core.settings.check_crcs
        with self._checked():
            self._assign_range(partition, begin, end)
        position = begin
        deadline_s = monotonic() + patience_s
        while position < end:
            self._take_up()
            with self._lock:
                chunk = self._core.poll_chunk()
            if chunk is None:
                if not self._wait_for_activity(deadline_s):
                    raise RequestTimedOut(
                        f"nothing came from {partition} at offset {position} for {patience_s:g} s; "
                        f"it was to be read to {end}"
                    )
                continue
            position = chunk.records.end_offset
            batch = to_arrow(chunk, check_crcs=check_crcs, end_offset=end)
            with self._lock:
                self._core.chunks.read_up(chunk)
                self._core.metrics.records_consumed += batch.num_rows
            if batch.num_rows:
                yield batch
            deadline_s = monotonic() + patience_s

    def _assign_range(self, partition: TopicPartition, begin: int, end: int) -> None:
        core = self._core
        core.subscription.assign([partition])
        core.subscription.seek(partition, FetchPosition(begin))
        core.subscription.state_of(partition).fetch_end = end
        if core.cluster.view.leader_of(partition) is None:
            core.cluster.set_topics([partition.topic])
            core.cluster.refresh()
        core.stir()

    def existing_topics(self, topics: Iterable[str]) -> dict[str, tuple[PartitionInfo, ...]]:
        """Those of these topics that there are, asked anew."""
        wanted = list(topics)
        return self._ask(lambda: cluster_queries.list_topics(self._core.cluster, self._ms(None), wanted), None)
