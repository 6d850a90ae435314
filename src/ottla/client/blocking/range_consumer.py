"""A consumer of ranges: for jobs that know from which offset to which they read, and want Arrow's record batches.

Theory of operation. A range is read to its end even if no record is there: batches of aborted transactions, control
batches and what compaction took away are passed over, and it is the position that counts. The fetches stop at the end
of the range; what is fetched ahead is bounded as any consumer's is.
"""

from collections.abc import Iterable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.client.blocking.consumer import Consumer
from ottla.client.consumer import cluster_queries
from ottla.client.consumer.cluster_queries import TopicFound
from ottla.client.consumer.subscription import FetchPosition
from ottla.client.errors import RequestTimedOut

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
        self._call(lambda: self._begin_with({partition: (begin, end)}))
        position = begin
        deadline_s = monotonic() + patience_s
        while position < end:
            self._loop.check()
            with self._lock, self._step:
                chunk = self._core.poll_chunk()
            if chunk is None:
                self._handle_answers()
                if not self._wait_for_activity(deadline_s):
                    raise RequestTimedOut(
                        f"nothing came from {partition} at offset {position} for {patience_s:g} s; "
                        f"it was to be read to {end}"
                    )
                continue
            # The next chunk is received while this one is decoded, and while the caller works on it.
            self._loop.hand_over()
            position = chunk.records.end_offset
            batch = to_arrow(chunk, check_crcs=check_crcs, end_offset=end)
            with self._lock, self._step:
                self._core.chunks.read_up(chunk)
                self._core.metrics.records_consumed += batch.num_rows
            if batch.num_rows:
                yield batch
            deadline_s = monotonic() + patience_s

    def wait_at(self, offsets: Mapping[TopicPartition, int], timeout: float) -> bool:
        """Waits until there is a record at one of these offsets, or behind it. False if none came in time."""
        deadline_s = monotonic() + timeout
        self._call(lambda: self._begin_with({one: (offset, offset + 1) for one, offset in offsets.items()}))
        while True:
            self._handle_answers()
            with self._lock, self._step:
                chunk = self._core.poll_chunk() if offsets else None
                if chunk is not None:
                    self._core.chunks.read_up(chunk)
                    return True
            if not self._wait_for_activity(deadline_s):
                return False

    def bytes_per_offset(self, partition: TopicPartition, begin: int, timeout: float) -> float:
        """How large the records are that begin at this offset, with the gaps between them, as far as a fetch shows."""
        deadline_s = monotonic() + timeout
        self._call(lambda: self._begin_with({partition: (begin, begin + 1)}))
        while True:
            self._handle_answers()
            with self._lock, self._step:
                chunk = self._core.poll_chunk()
                if chunk is not None:
                    size = chunk.size / max(chunk.records.end_offset - begin, 1)
                    self._core.chunks.read_up(chunk)
                    return size
            if not self._wait_for_activity(deadline_s):
                raise RequestTimedOut(f"nothing came from {partition} at offset {begin} for {timeout:g} s")

    def _begin_with(self, ranges: Mapping[TopicPartition, tuple[int, int]]) -> None:
        self._assign(ranges)
        for partition, (begin, end) in ranges.items():
            self._begin_at(partition, begin, end)
        self._core.stir()

    def _assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        core = self._core
        core.subscription.assign(wanted)
        if any(core.cluster.view.leader_of(partition) is None for partition in wanted):
            core.cluster.set_topics(sorted({partition.topic for partition in wanted}))
            core.cluster.refresh()

    def _begin_at(self, partition: TopicPartition, begin: int, end: int) -> None:
        subscription = self._core.subscription
        state = subscription.state_of(partition)
        if state.position != FetchPosition(begin) or state.fetch_position != state.position or state.fetch_end != end:
            subscription.seek(partition, FetchPosition(begin))
            state.fetch_end = end

    def existing_topics(self, topics: Iterable[str] | None = None) -> dict[str, TopicFound]:
        """Those of these topics that there are, asked anew; or all, internal ones too."""
        wanted = None if topics is None else list(topics)
        return self._ask(lambda: cluster_queries.find_topics(self._core.cluster, self._ms(None), wanted), None)
