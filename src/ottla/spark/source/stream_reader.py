"""`spark.readStream.format("ottla")`: what the driver decides for each micro-batch, and what its tasks read.

Theory of operation. Spark keeps the offsets behind the last micro-batch in its checkpoint, in the form of its own Kafka
connector, and asks `latestOffset` how far the next one goes. The answer is what the cluster has now, cut to the limits
of the options. If it has nothing new, the answer waits a little inside: Spark would ask again in 10 ms, for ever. It
waits longer each time, up to `idleWaitMs`; but not while the query works on another source's records, which it would
hold up (then `commit` is called in between).

A query that begins at the end must find its beginning again after a crash in its first micro-batch, and only what
`latestOffset` answers is kept. So its first answer is the beginning itself: the first micro-batch is empty.
"""

import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from ottla.base.ids import TopicPartition
from ottla.client.errors import KafkaError
from ottla.spark.plain_errors import tells_plainly
from ottla.spark.source.admission import limited_in_bytes, limited_in_rows, waiting
from ottla.spark.source.lookups import Lookups, SourceError
from ottla.spark.source.offsets_json import (
    LATEST,
    Offsets,
    OffsetsJson,
    TopicIds,
    from_json,
    ids_from_json,
    to_json,
)
from ottla.spark.source.probing_fetches import Prober
from ottla.spark.source.ranges import TaskRanges, ranges_between, tasks_for
from ottla.spark.source.source_options import Boundary, SourceOptions
from ottla.spark.source.task import RowReading, data_loss, read_rows
from ottla.spark.worker_process import end_quietly_if_java_left

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

_FIRST_WAIT_S: Final = 0.05


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark sends a copy to the executors, before it has asked anything of it: then there are no connections in it."""

    def __init__(self, options: SourceOptions, reading: RowReading) -> None:
        self._options = options
        self._reading = reading
        self._lookups: Lookups | None = None
        self._prober: Prober | None = None
        self._initial: Offsets | None = None
        self._is_beginning_kept = True
        self._known_ends: Offsets | None = None
        self._target: Offsets | None = None
        """With the trigger AvailableNow: where the query ends."""
        self._committed: Offsets | None = None
        self._wait_s = 0.0
        self._last_trigger_s = float("-inf")

    # --- how far ---

    @tells_plainly
    def initialOffset(self) -> OffsetsJson:  # noqa: N802
        lookups = self._open()
        options = self._options
        there = lookups.required_partitions()
        self._initial = lookups.at(options.starting, there, none_is_latest=options.no_timestamp_is_latest)
        self._is_beginning_kept = not _moves_with_time(options.starting, options.no_timestamp_is_latest)
        return to_json(self._initial, lookups.ids)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Spark takes one. `latestOffset` holds to all that were given, unless Spark asks for everything."""
        options = self._options
        if options.max_offsets_per_trigger is not None:
            return ReadMaxRows(options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        if options.min_offsets_per_trigger is not None:
            return ReadMinRows(options.min_offsets_per_trigger)
        return ReadAllAvailable()

    @tells_plainly
    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:  # noqa: N802
        begins = from_json(start)
        self._commit_progress(begins)
        known_ids = ids_from_json(start)
        if not self._is_beginning_kept:
            self._is_beginning_kept = True
            if begins == self._initial:
                return start
        deadline_s = monotonic() + self._wait_s
        while True:
            lookups = self._open()
            ends = self._ends(lookups)
            begins = self._begins_anew(begins, known_ids, lookups.ids)
            known_ids = {**known_ids, **lookups.ids}
            if self._target is not None:  # what a checkpoint has beyond the target was read before
                ends = {one: max(end, begins.get(one, 0)) for one, end in ends.items()}
            self._check_loss(begins, ends)
            admitted = self._admitted(begins, ends, limit)
            if admitted != begins:
                self._wait_s = 0.0
                self._last_trigger_s = monotonic()
                return to_json(admitted, lookups.ids)
            left_s = deadline_s - monotonic()
            if self._target is not None or left_s <= 0:
                break
            self._open_prober().wait_for_records(ends, left_s)
        self._wait_s = min(max(self._wait_s * 2, _FIRST_WAIT_S), self._options.idle_wait_ms / 1000)
        return start

    def reportLatestOffset(self) -> OffsetsJson | None:  # noqa: N802
        return None if self._known_ends is None else to_json(self._known_ends, self._open().ids)

    @tells_plainly
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        lookups = self._open()
        fails = self._options.fails_on_data_loss
        self._target = lookups.latest(lookups.required_partitions() if fails else lookups.partitions())

    def _ends(self, lookups: Lookups) -> Offsets:
        """Of all partitions that there are now."""
        self._known_ends = lookups.latest(lookups.partitions()) if self._target is None else self._target
        return self._known_ends

    def _admitted(self, begins: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
        """`begins` itself if there is nothing to read, or too little."""
        if isinstance(limit, ReadAllAvailable):
            return ends
        options = self._options
        known = {**begins, **self._open().earliest([one for one in ends if one not in begins])}
        least = options.min_offsets_per_trigger
        if least is not None and self._target is None and sum(waiting(known, ends).values()) < least:
            waited_s = monotonic() - self._last_trigger_s
            if waited_s < options.max_trigger_delay_ms / 1000:
                return begins
        if options.max_offsets_per_trigger is not None:
            ends = limited_in_rows(known, ends, options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            there = {one: known[one] for one in waiting(known, ends)}
            sizes = self._open_prober().bytes_per_offset(there)
            ends = limited_in_bytes(known, ends, options.max_bytes_per_trigger, sizes)
        return ends

    # --- what is read ---

    @tells_plainly
    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        begins, ends = from_json(start), from_json(end)
        from_ids, to_ids = ids_from_json(start), ids_from_json(end)
        if begins == ends and not _renewed(from_ids, to_ids):
            return []
        if begins == self._initial and _moves_with_time(self._options.starting, True):
            # The first micro-batch again, after a crash: it was empty, and the end is elsewhere by now.
            begins = {one: min(offset, ends.get(one, offset)) for one, offset in begins.items()}
        begins, ends = self._still_there(begins, ends, from_ids, to_ids)
        self._check_loss(begins, ends)
        added = [one for one in ends if one not in begins]
        if added:
            first = self._open().earliest(added)
            if late := [f"{one} at {offset}" for one, offset in sorted(first.items()) if offset > 0]:
                self._tell_loss(f"partitions were added that begin later than 0: {', '.join(late)}")
            begins |= first
        return tasks_for(
            ranges_between(begins, ends),
            lambda small: self._open_prober().bytes_by_topic(small),
            max_records=self._options.max_records_per_partition,
            min_partitions=self._options.min_partitions,
        )

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        assert isinstance(partition, TaskRanges)
        return read_rows(self._options, self._reading, partition.ranges)

    # --- what is done when something is gone ---

    def _begins_anew(self, begins: Offsets, known: TopicIds, present: TopicIds) -> Offsets:
        """Where to read on. In a topic that was deleted and made anew that is its beginning, if data may be lost."""
        if renewed := _renewed(known, present):
            self._tell_loss(f"the topic {', '.join(renewed)} was deleted and created again: it has another id")
            parts = [one for one in begins if one.topic in renewed]
            there = set(self._open().partitions())
            kept = {one: offset for one, offset in begins.items() if one not in parts}
            return kept | self._open().earliest([one for one in parts if one in there])
        return begins

    def _still_there(
        self, begins: Offsets, ends: Offsets, from_ids: TopicIds, to_ids: TopicIds
    ) -> tuple[Offsets, Offsets]:
        """The offsets of a micro-batch that was planned, perhaps before a crash, when topics were others."""
        if not to_ids:
            return begins, ends
        lookups = self._open()
        if not lookups.ids:  # `latestOffset` has just looked, unless the micro-batch is from before a crash
            lookups.partitions()
        if gone := _renewed(to_ids, lookups.ids):
            self._tell_loss(f"the topic {', '.join(gone)} was created again after the micro-batch was planned")
            return (
                {one: offset for one, offset in begins.items() if one.topic not in gone},
                {one: offset for one, offset in ends.items() if one.topic not in gone},
            )
        return self._begins_anew(begins, from_ids, to_ids), ends

    def _check_loss(self, begins: Offsets, ends: Offsets) -> None:
        if gone := sorted(set(begins) - set(ends)):
            self._tell_loss(f"{_named(gone)} cannot be found any more")
        if back := sorted(one for one, begin in begins.items() if ends.get(one, begin) < begin):
            moved = ", ".join(f"{one} from {begins[one]} to {ends[one]}" for one in back)
            self._tell_loss(f"the end of the log has moved back, as when a topic was created again: {moved}")

    def _tell_loss(self, what: str) -> None:
        if self._options.fails_on_data_loss:
            raise SourceError(data_loss(what))
        warnings.warn(what, stacklevel=2)

    # --- progress ---

    def commit(self, end: OffsetsJson) -> None:
        """Spark calls it for all sources of the query when it has begun the next micro-batch: one of them is busy."""
        self._wait_s = 0.0

    def _commit_progress(self, begins: Offsets) -> None:
        """All before `begins` is done. Whether the group hears of it decides nothing: the checkpoint does.

        `commit` comes later than this, and for the last micro-batch never.
        """
        if self._options.group_id is not None and begins != self._committed:
            try:
                self._open().consumer.commit(begins)
                self._committed = begins
            except KafkaError as problem:
                warnings.warn(
                    f"the progress was not committed to the group of option kafka.group.id: {problem}", stacklevel=2
                )

    def stop(self) -> None:
        end_quietly_if_java_left(sys.exc_info()[1])
        for opened in (self._prober, self._lookups):
            if opened is not None:
                opened.close()
        self._prober = self._lookups = None

    def __getstate__(self) -> dict[str, Any]:
        assert self._lookups is None, "a reader that is in use cannot be sent"
        return self.__dict__.copy()

    def _open(self) -> Lookups:
        if self._lookups is None:
            self._lookups = Lookups(self._options)
        return self._lookups

    def _open_prober(self) -> Prober:
        if self._prober is None:
            self._prober = Prober(self._options.client)
        return self._prober


def _moves_with_time(starting: Boundary, none_is_latest: bool) -> bool:
    """Whether the same options may name other offsets a moment later."""
    if starting.everywhere is not None:
        return starting.everywhere == LATEST
    return none_is_latest if starting.offsets is None else LATEST in starting.offsets.values()


def _renewed(known: TopicIds, present: TopicIds) -> list[str]:
    """The topics that had another id before."""
    return sorted(topic for topic, before in known.items() if present.get(topic, before) != before)


def _named(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, partitions))
