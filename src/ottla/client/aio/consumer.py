"""The asyncio consumer. Everything happens in the loop in which it was made, and one task at a time may use it.

The methods are those of the blocking consumer: those that may have to wait are to be awaited, the others are called.
A rebalance listener may have coroutines.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from inspect import isawaitable
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ottla.base.ids import TopicPartition
from ottla.client.consumer import cluster_queries
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import (
    ConsumerFace,
    Offsets,
    committable,
    found_times,
    make_member,
    partitions_of,
)
from ottla.client.consumer.offsets.offset_reset import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.client.errors import ClientClosed, RequestTimedOut
from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.membership.member import LeaveBehaviour
from ottla.client.promise import Promise, first_settled, spawn
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.client.topic_partition import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo
from ottla.config.scopes import Scope
from ottla.records.kernel import ConsumerRecord

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.client.keywords import ConsumerKeywords

T = TypeVar("T")
_CLOSE_TIMEOUT_S = 30.0
_GRACE_S = 5.0
_PATIENCE_S = 1.0
_LEAST_PATIENCE_S = 0.01
_TURN_S = 0.005
"""How long a consumer that always finds records ready may keep the loop to itself."""


class Consumer(ConsumerFace):
    """Reads records, from the event loop that runs when it is made.

        async with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            async for record in consumer:
                print(record.value)

    Timeouts are in seconds. A call that waits takes at most `default.api.timeout.ms` if it is given none.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **keywords: "Unpack[ConsumerKeywords]") -> None:
        self._begin(read_settings(Scope.CONSUMER, settings, keywords))

    @classmethod
    def from_properties(cls, path: "str | PathLike[str]", /, **keywords: "Unpack[ConsumerKeywords]") -> "Consumer":
        """Settings from a properties file, with keywords over them."""
        consumer = cls.__new__(cls)
        with open(path, "rb") as file:
            consumer._begin(read_settings_file(Scope.CONSUMER, file.read(), keywords))
        return consumer

    def _begin(self, settings: ClientSettings) -> None:
        settings.warn(stacklevel=4)
        self._io = AsyncioWorld(settings)
        self._core = ConsumerCore(self._io.world, settings, make_member)
        # What was handed out may not be processed, so a consumer that is dropped commits nothing.
        self._io.end_with(self, None, self._core.stop)
        self._most = self._core.settings.max_poll_records
        self._patience_s = max(self._core.settings.patience_s, _LEAST_PATIENCE_S)
        self._api_timeout_s = self._core.settings.api_timeout_ms / 1000
        self._yielded_s = monotonic()

    # --- records ---

    async def poll(self, timeout: float = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records of one or more partitions, those of each in order; waits for some for at most `timeout` seconds.

        At most `max_records`, or `max.poll.records`. Rebalance listeners and callbacks of commits run within. Raises
        what has gone wrong since the last call.
        """
        self._io.check()
        most = self._most if max_records is None else max_records
        deadline_s = monotonic() + timeout if timeout > 0 else 0.0
        await self._let_others()
        while True:
            if self._core.tasks:
                await self._run_tasks()
            records = self._core.poll(most)
            if records and self._core.interceptors:
                return self._core.intercepted(records)
            if records or not await self._wait_for_activity(deadline_s):
                return records

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records one by one, for ever: polls when it needs to. Ends when the consumer is closed.

        Those behind the one of this turn are not consumed yet: they are not committed, and `break` does not lose them.
        """
        hand_out = self._core.subscription.unread.hand_out
        while not self._core.is_closed:
            for record in hand_out(await self.poll(_PATIENCE_S)):
                yield record

    async def poll_arrow(self, timeout: float = 0.0) -> "pa.RecordBatch | None":
        """What was fetched of one partition, as one `pyarrow.RecordBatch`; None if nothing came in time.

        The columns are those of Spark's Kafka source. `max.poll.records` does not limit it; `max.partition.fetch.bytes`
        does. Deserializers are not used.
        """
        from ottla.client.consumer.fetching.arrow_chunks import to_arrow  # only for those who have pyarrow

        self._io.check()
        deadline_s = monotonic() + timeout if timeout > 0 else 0.0
        await self._let_others()
        while True:
            if self._core.tasks:
                await self._run_tasks()
            chunk = self._core.poll_chunk()
            if chunk is not None:
                try:
                    batch = to_arrow(chunk, check_crcs=self._core.settings.check_crcs)
                except BaseException:  # It is damaged, or an interrupt struck: the chunk is not handed out.
                    self._core.put_back_chunk(chunk)
                    raise
                self._core.chunks.read_up(chunk)
                self._core.metrics.records_consumed += batch.num_rows
                if batch.num_rows:
                    return batch
            elif not await self._wait_for_activity(deadline_s):
                return None

    async def arrow(self) -> "AsyncIterator[pa.RecordBatch]":
        """Record batches one by one, for ever. Ends when the consumer is closed."""
        while not self._core.is_closed:
            batch = await self.poll_arrow(_PATIENCE_S)
            if batch is not None:
                yield batch

    async def _let_others(self) -> None:
        """A poll with records ready need not wait; other tasks, and our own sockets, need their turns all the same."""
        now_s = monotonic()
        if now_s - self._yielded_s > _TURN_S:
            await asyncio.sleep(0)
            self._yielded_s = monotonic()

    async def _wait_for_activity(self, deadline_s: float) -> bool:
        """Returns whether to poll again."""
        left_s = deadline_s - monotonic() if deadline_s else 0.0
        if left_s <= 0:
            await asyncio.sleep(0)
            self._yielded_s = monotonic()
            if self._core.tasks:
                await self._run_tasks()
            return False
        await self._io.settled(self._core.activity(), min(left_s, self._patience_s))
        self._yielded_s = monotonic()
        return True

    # --- what has to be asked ---

    async def unsubscribe(self) -> None:
        """Gives up all topics or partitions, and leaves the group."""
        await self._ask(self._core.unsubscribe, None)

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record to hand out."""
        return await self._ask(lambda: self._core.position(partition, self._ms(timeout)), timeout)

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record with that timestamp (in milliseconds) or a later one."""
        return found_times(await self._ask(lambda: self._core.look_up(times, self._ms(timeout)), timeout))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        return await self._ends(partitions, EARLIEST_TIMESTAMP, timeout)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will have; with read committed, the last stable offsets."""
        return await self._ends(partitions, LATEST_TIMESTAMP, timeout)

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partitions_of(partitions), timestamp)
        found = await self._ask(lambda: self._core.look_up(wanted, self._ms(timeout)), timeout)
        return {partition: one.offset for partition, one in found.items()}

    # --- committing ---

    async def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Has the group remember where to continue, and waits for it: behind what was handed out, or these offsets.

        Raises `CommitFailed` when the group has given the partitions to others.
        """
        wanted = committable(offsets)
        await self._ask(lambda: self._core.offsets.commit(wanted, self._ms(timeout)), timeout)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group remembers; None where it has nothing."""
        wanted = partitions_of(partitions)
        return await self._ask(lambda: self._core.offsets.committed(wanted, self._ms(timeout)), timeout)

    async def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        return await self._ask(
            lambda: cluster_queries.partitions_for(self._core.cluster, topic, self._ms(timeout)), timeout
        )

    async def list_topics(self, timeout: float | None = None) -> dict[str, tuple[PartitionInfo, ...]]:
        return await self._ask(lambda: cluster_queries.list_topics(self._core.cluster, self._ms(timeout)), timeout)

    # --- the end ---

    async def close(self, timeout: float | None = None, *, leave: LeaveBehaviour = LeaveBehaviour.DEFAULT) -> None:
        """Commits if `enable.auto.commit`, leaves the group and ends connections; in `timeout` seconds (30)."""
        if self._core.is_closed:
            return
        if not self._io.may_finish():  # its event loop is closed: nothing can be committed or reported
            self._core.stop()
            self._io.close()
            return
        try:
            closing = spawn(self._core.close(leave))
            await self._wait_and_run(closing, _CLOSE_TIMEOUT_S if timeout is None else timeout)
            await self._run_tasks()
        finally:
            self._core.stop()
            self._io.close()

    async def __aenter__(self) -> "Consumer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- how calls wait ---

    def _call(self, work: Callable[[], T]) -> T:
        self._io.check()
        if self._core.is_closed:
            raise ClientClosed("the consumer was closed")
        return work()

    _look = _call

    def _unsubscribe_at_once(self) -> None:
        self._call(lambda: self._core.world.start(self._core.unsubscribe()))

    async def _ask(self, begin: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
        """What a coroutine of the core returns. It keeps to the timeout itself; the grace is for a lost cause."""
        promise = self._call(lambda: spawn(begin()))
        await self._wait_and_run(promise, self._ms(timeout) / 1000 + _GRACE_S)
        if not promise.is_done:
            raise RequestTimedOut
        return promise.value()

    async def _wait_and_run(self, promise: Promise[Any], timeout_s: float) -> None:
        """Waits, and runs what is the application's to run meanwhile."""
        deadline_s = monotonic() + timeout_s
        while not promise.is_done and (left_s := deadline_s - monotonic()) > 0:
            await self._io.settled(first_settled((promise, self._core.stirred())), left_s)
            await self._run_tasks()

    async def _run_tasks(self) -> None:
        tasks = self._core.tasks
        while tasks:
            task = tasks.popleft()
            problem: Exception | None = None
            try:
                outcome = task.run()
                if isawaitable(outcome):
                    await outcome
            except Exception as raised:
                problem = raised
            finally:  # a cancelled task, too, must not leave the group waiting for this listener
                task.done(problem)
            if problem is not None:
                raise problem
