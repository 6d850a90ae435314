"""The blocking consumer. One thread at a time may use it, and a second one gets an error (`OneUser`); `wakeup` and
`metrics` may be called from any.

Theory of operation. `poll` takes the client's lock, takes records that were fetched, and is done: no other thread is
waited for. If there are none, it waits by taking the turns of the client's loop itself (`LoopThread.wait`). While the
application works, the loop's own thread fetches ahead and keeps up the membership in the group.
"""

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from itertools import starmap
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

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
from ottla.client.errors import ClientClosed, RequestTimedOut, Wakeup
from ottla.client.io.locks import OneUser, taken_surely
from ottla.client.io.loop_thread import LoopThread
from ottla.client.membership.member import LeaveBehaviour
from ottla.client.promise import Promise, first_settled, spawn
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.client.topic_partition import OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo
from ottla.config.scopes import Scope
from ottla.records.kernel import ConsumerRecord

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

    from ottla.client.consumer.fetching.fetched_chunks import Chunk
    from ottla.client.keywords import ConsumerKeywords

T = TypeVar("T")
_CLOSE_TIMEOUT_S = 30.0
_GRACE_S = 5.0
_PATIENCE_S = 1.0
"""How long iterating waits at a time."""
_LEAST_PATIENCE_S = 0.01


class Consumer(ConsumerFace):
    """Reads records.

        with Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
            consumer.subscribe(["orders"])
            for record in consumer:
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
        self._loop = LoopThread("ottla-consumer", settings)
        self._lock, self._step = self._loop.lock, self._loop.step
        self._user = OneUser()
        try:
            with self._lock, self._step:
                self._core = ConsumerCore(self._loop.world, settings, make_member)
        except BaseException:
            self._loop.stop()
            raise
        if self._core.settings.key_deserializer is not None or self._core.settings.value_deserializer is not None:
            self._core.chunks.unlocked = partial(self._step.outside, self._lock)
        # What was handed out may not be processed, so a consumer that is dropped commits nothing.
        self._loop.end_with(self, self._core.stop)
        self._loop.on_torn = self._core.stop
        self._most = self._core.settings.max_poll_records
        self._patience_s = max(self._core.settings.patience_s, _LEAST_PATIENCE_S)
        self._api_timeout_s = self._core.settings.api_timeout_ms / 1000

    # --- records ---

    def poll(self, timeout: float = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records of one or more partitions, those of each in order; waits for some for at most `timeout` seconds.

        At most `max_records`, or `max.poll.records`. Rebalance listeners and callbacks of commits run within. Raises
        what has gone wrong since the last call, `Wakeup`, and `ConcurrentUse` while another thread uses the consumer.
        """
        with self._user:
            records = self._poll(timeout, max_records)
            return self._core.intercepted(records) if records and self._core.interceptors else records

    def _poll(self, timeout: float, max_records: int | None) -> list[ConsumerRecord]:
        most = self._most if max_records is None else max_records
        deadline_s = monotonic() + timeout if timeout > 0 else 0.0
        is_up_to_date = timeout <= 0
        self._loop.check()
        if is_up_to_date:
            self._loop.drive()
        while True:
            if self._core.tasks:
                self._run_tasks()
            records: list[ConsumerRecord] = []
            try:
                with self._lock:
                    self._step.check()
                    try:
                        self._core.poll(most, records)
                        activity = None if records else self._core.activity()
                    except BaseException as raised:
                        self._step.on_raised(raised)
                        raise
                if records and not is_up_to_date:
                    self._loop.drive()
            except BaseException:  # An interrupt: what was taken is not handed out.
                if records:
                    self._core.subscription.unread.hand_out(records)
                raise
            if activity is None or not self._wait_for(activity, deadline_s):
                return records
            is_up_to_date = True

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records one by one, for ever: polls when it needs to. Ends when the consumer is closed.

        Those behind the one of this turn are not consumed yet: they are not committed, and `break` does not lose them.
        """
        hand_out = self._core.subscription.unread.hand_out
        while not self._core.is_closed:
            yield from hand_out(self.poll(_PATIENCE_S))

    def poll_arrow(self, timeout: float = 0.0) -> "pa.RecordBatch | None":
        """What was fetched of one partition, as one `pyarrow.RecordBatch`; None if nothing came in time.

        The columns are those of Spark's Kafka source. `max.poll.records` does not limit it; `max.partition.fetch.bytes`
        does. Deserializers are not used.
        """
        with self._user:
            return self._poll_arrow(timeout)

    def _poll_arrow(self, timeout: float) -> "pa.RecordBatch | None":
        from ottla.client.consumer.fetching.arrow_chunks import to_arrow  # only for those who have pyarrow

        deadline_s = monotonic() + timeout if timeout > 0 else 0.0
        while True:
            self._handle_answers()
            chunk: Chunk | None = None
            try:
                with self._lock, self._step:
                    chunk = self._core.poll_chunk()
                if chunk is not None:
                    batch = to_arrow(chunk, check_crcs=self._core.settings.check_crcs)
                    with self._lock, self._step:
                        self._core.chunks.read_up(chunk)
                        self._core.metrics.records_consumed += batch.num_rows
            except BaseException:  # It is damaged, or an interrupt struck: the chunk is not handed out.
                if chunk is not None and not self._step.is_torn:
                    with self._lock, self._step:
                        self._core.put_back_chunk(chunk)
                raise
            if chunk is None:
                if not self._wait_for_activity(deadline_s):
                    return None
            elif batch.num_rows:
                return batch

    def arrow(self) -> "Iterator[pa.RecordBatch]":
        """Record batches one by one, for ever. Ends when the consumer is closed."""
        while not self._core.is_closed:
            batch = self.poll_arrow(_PATIENCE_S)
            if batch is not None:
                yield batch

    def _handle_answers(self) -> None:
        """Takes up what has come, so that the loop's thread need not, and runs what is the application's to run."""
        self._loop.check()
        self._loop.drive()
        if self._core.tasks:
            self._run_tasks()

    def _wait_for_activity(self, deadline_s: float) -> bool:
        """Returns whether to poll again."""
        with self._lock, self._step:
            activity = self._core.activity()
        return self._wait_for(activity, deadline_s)

    def _wait_for(self, activity: Promise[None], deadline_s: float) -> bool:
        """Returns whether to poll again."""
        left_s = deadline_s - monotonic() if deadline_s else 0.0
        if left_s <= 0:
            if self._core.tasks:
                self._run_tasks()
            return False
        self._loop.wait(activity, min(left_s, self._patience_s))
        return True

    # --- what has to be asked ---

    def unsubscribe(self) -> None:
        """Gives up all topics or partitions, and leaves the group."""
        self._ask(self._core.unsubscribe, None)

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record to hand out."""
        return self._ask(lambda: self._core.position(partition, self._ms(timeout)), timeout)

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record with that timestamp (in milliseconds) or a later one."""
        return found_times(self._ask(lambda: self._core.look_up(times, self._ms(timeout)), timeout))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        return self._ends(partitions, EARLIEST_TIMESTAMP, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offsets that the next records will have; with read committed, the last stable offsets."""
        return self._ends(partitions, LATEST_TIMESTAMP, timeout)

    def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(partitions_of(partitions), timestamp)
        found = self._ask(lambda: self._core.look_up(wanted, self._ms(timeout)), timeout)
        return {partition: one.offset for partition, one in found.items()}

    # --- committing ---

    def commit(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Has the group remember where to continue, and waits for it: behind what was handed out, or these offsets.

        Raises `CommitFailed` when the group has given the partitions to others.
        """
        wanted = committable(offsets)
        self._ask(lambda: self._core.offsets.commit(wanted, self._ms(timeout)), timeout)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group remembers; None where it has nothing."""
        wanted = partitions_of(partitions)
        return self._ask(lambda: self._core.offsets.committed(wanted, self._ms(timeout)), timeout)

    def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        return self._ask(lambda: cluster_queries.partitions_for(self._core.cluster, topic, self._ms(timeout)), timeout)

    def list_topics(self, timeout: float | None = None) -> dict[str, tuple[PartitionInfo, ...]]:
        return self._ask(lambda: cluster_queries.list_topics(self._core.cluster, self._ms(timeout)), timeout)

    def wakeup(self) -> None:
        """Ends a call that waits, or the next one, with `Wakeup`. From any thread, or a signal's handler."""
        self._loop.loop.call(self._core.wakeup)

    # --- the end ---

    def close(self, timeout: float | None = None, *, leave: LeaveBehaviour = LeaveBehaviour.DEFAULT) -> None:
        """Commits if `enable.auto.commit`, leaves the group, ends connections and thread; in `timeout` seconds (30)."""
        if self._core.is_closed or self._loop.is_forked or self._loop.step.is_torn:
            self._loop.stop()
            return
        with self._user:
            self._close(timeout, leave)

    def _close(self, timeout: float | None, leave: LeaveBehaviour) -> None:
        try:
            with self._lock, self._step:
                closing = spawn(self._core.close(leave))
            self._wait_and_run(closing, _CLOSE_TIMEOUT_S if timeout is None else timeout, can_be_woken=False)
            self._run_tasks()
        finally:
            self._loop.end(self._core.stop)
            self._loop.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- how calls wait ---

    def _call(self, work: Callable[[], T]) -> T:
        with self._user:
            return self._look(work)

    def _look(self, work: Callable[[], T]) -> T:
        self._loop.check()
        if self._core.is_closed:
            raise ClientClosed("the consumer was closed")
        with self._lock, self._step:
            return work()

    def _unsubscribe_at_once(self) -> None:
        self.unsubscribe()

    def _ask(self, begin: Callable[[], Coroutine[Any, Any, T]], timeout: float | None) -> T:
        """What a coroutine of the core returns. It keeps to the timeout itself; the grace is for a lost cause."""
        with self._user:
            promise = self._look(lambda: spawn(begin()))
            self._wait_and_run(promise, self._ms(timeout) / 1000 + _GRACE_S)
            if not promise.is_done:
                raise RequestTimedOut
            return promise.value()

    def _wait_and_run(self, promise: Promise[Any], timeout_s: float, *, can_be_woken: bool = True) -> None:
        """Waits, and runs what is the application's to run meanwhile."""
        deadline_s = monotonic() + timeout_s
        while not promise.is_done and (left_s := deadline_s - monotonic()) > 0:
            with self._lock, self._step:
                either = first_settled((promise, self._core.stirred()))
            self._loop.wait(either, left_s)
            self._run_tasks()
            with self._lock, self._step:
                if not promise.is_done and self._core.take_wakeup() and can_be_woken:
                    raise Wakeup

    def _run_tasks(self) -> None:
        """Wherever Ctrl-C strikes, a task stays where it is, or its end is reported (`io.locks` says why so)."""
        tasks = self._core.tasks
        while tasks:
            taking = taken_surely(self._lock)
            for task in starmap(tasks.popleft, ((),)):
                problem: Exception | None = None
                try:
                    task.run()
                except Exception as raised:
                    problem = raised
                    raise
                finally:  # an interrupt, too, must not leave the group waiting for this listener
                    for _ in taking:  # and no `with`: an interrupt could strike while it waits for the lock
                        try:
                            task.done(problem)
                        except BaseException as raised:
                            self._step.on_raised(raised)
                            raise
                        finally:
                            self._lock.release()
