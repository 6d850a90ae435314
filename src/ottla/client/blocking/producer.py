"""The blocking producer. Any number of threads may use it.

Theory of operation. `send` puts the record straight into its batch; that is all, most of the time, and where it is
compiled it takes no lock for it. The thread that completes a batch also sends it, and handles answers that have come
(`LoopThread.drive`): Python gives a busy thread's processor away only every 5 ms, and the producer's own thread would
wait that long for each of its turns. That thread does the rest: linger, retries, and answers while no one sends.

Callbacks run on the producer's own thread, without the lock, one at a time and in the order of the answers. Never on a
caller's, because it may hold a lock that the callback wants, too, and may have a time limit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ottla.base.ids import TopicPartition
from ottla.client.blocking.callbacks import Callbacks
from ottla.client.errors import ClientClosed, KafkaError, RequestTimedOut
from ottla.client.interceptors import Interceptors, RecordToSend
from ottla.client.io.locks import ClientLock
from ottla.client.io.loop_thread import LoopThread
from ottla.client.io.real_ports import log_problem
from ottla.client.producer.append import IS_COMPILED, Appender, Delivery, OnDelivery
from ottla.client.producer.core import ProducerCore
from ottla.client.producer.serializing import Serializing
from ottla.client.promise import Promise, all_settled
from ottla.client.serialization import Header
from ottla.client.settings import ClientSettings, read_settings, read_settings_file
from ottla.client.topic_partition import OffsetAndMetadata, PartitionInfo
from ottla.config.scopes import Scope

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.client.keywords import ProducerKeywords
    from ottla.client.producer.arrow_rows import ArrowDelivery
    from ottla.client.producer.transaction_requests import GroupMember
    from ottla.client.producer.transactions import TransactionIdentity

T = TypeVar("T")


class Producer:
    """Sends records.

        with Producer(bootstrap_servers="localhost:9092") as producer:
            delivery = producer.send("clicks", b"value", key=b"key")
            print(delivery.result().offset)

    Idempotent by default: a record that is sent again after an error is there once, and in order. Leaving the `with`
    block waits until everything is delivered.
    """

    def __init__(self, settings: Mapping[str, object] | None = None, /, **keywords: "Unpack[ProducerKeywords]") -> None:
        self._begin(read_settings(Scope.PRODUCER, settings, keywords))

    @classmethod
    def from_properties(cls, path: "str | Path", /, **keywords: "Unpack[ProducerKeywords]") -> "Producer":
        """Settings from a properties file, with keywords over them."""
        producer = cls.__new__(cls)
        with open(path, "rb") as file:
            producer._begin(read_settings_file(Scope.PRODUCER, file.read(), keywords))
        return producer

    def _begin(self, settings: ClientSettings) -> None:
        settings.warn(stacklevel=4)
        self._serialize = Serializing(settings)
        self._serializes = self._serialize.is_needed
        self._interceptors = Interceptors(settings, log_problem)
        self._is_plain = not self._serializes and not self._interceptors
        """Records go as they come, as mostly: looked at once for each of them."""
        self._loop = LoopThread("ottla-producer", settings)
        self._lock, self._step = self._loop.lock, self._loop.step
        self._callbacks = Callbacks(self._loop.nudge)
        self._loop.run_callbacks = self._callbacks.run
        self._loop.has_callbacks = self._callbacks.are_due
        try:
            with self._lock, self._step:
                self._core = ProducerCore(self._loop.world, settings, _ThreadWaiter(self._loop, self._callbacks))
        except BaseException:
            self._loop.stop()
            raise
        self._loop.end_with(self, self._core.finish)
        self._loop.on_torn = partial(_give_up, self._core)
        self._loop.at_exit = partial(_deliver_at_exit, self._loop, self._core)
        appender = Appender(self._core.now_ns, self._core.appender.topics)
        self._append = appender.append
        self._loop.on_forked = appender.topics.clear
        appender.send_slowly = self._send_slowly
        if IS_COMPILED and self._is_plain and type(self).send is Producer.send:
            # Nothing is between a user and the compiled code then: a third of what sending a record costs.
            self.send = appender.send  # type: ignore[method-assign]
        self._max_block_s = self._core.settings.max_block_ms / 1000

    # --- sending ---

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Hands a record over, and returns what will become of it; `on_delivery` is called with the same.

        Waits at most `max.block.ms`, for metadata of a topic that was not used before or for room in `buffer.memory`.
        Without a partition, the key decides; without a key, records go to one partition for a batch's worth.
        """
        if not self._is_plain:
            if self._interceptors:
                record = RecordToSend(topic, value, key, partition, timestamp_ms, headers)
                topic, value, key, partition, timestamp_ms, headers = self._interceptors.on_send(record)
                on_delivery = self._interceptors.acknowledging(on_delivery)
            if self._serializes:
                value, key, headers = self._serialize(topic, value, key, headers)
        if IS_COMPILED:
            delivery = self._append(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        else:
            self._loop.check()
            with self._lock, self._step:
                delivery = self._append(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is None:
            return self._send_slowly(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        return delivery

    def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[Header] | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        self._loop.check()
        is_plain = value.__class__ is bytes and key is None and headers is None
        if not self._serializes and not is_plain:
            value, key, headers = self._serialize(topic, value, key, headers)
        accumulator, sender = self._core.accumulator, self._core.sender
        opened, had_much_in_flight = accumulator.opened, sender.has_much_in_flight
        with self._lock:
            try:
                outcome = self._core.send(topic, value, key, partition, timestamp_ms, headers, on_delivery)
            except BaseException as raised:
                self._step.on_raised(raised)
                raise
        if isinstance(outcome, Promise):
            outcome = self._until(
                lambda: self._core.send(topic, value, key, partition, timestamp_ms, headers, on_delivery),
                topic,
                monotonic() + self._max_block_s,
                partition,
            )
        # As long as the batch grows instead, fewer and larger ones are sent.
        self._loop.note_use(wants_answers=had_much_in_flight and accumulator.opened != opened)
        return outcome

    def send_arrow(self, topic: str, rows: Any, *, partition: int | None = None) -> "ArrowDelivery":
        """Sends the rows of a `pyarrow.RecordBatch` or `Table`, and returns what will become of all of them.

        Column `value`, and `key`, `timestamp` and `headers` where there are such. Waits for room as `send` does.
        """
        self._loop.check()
        deadline_s = monotonic() + self._max_block_s
        made = self._until(lambda: self._core.begin_arrow(topic, rows, partition), topic, deadline_s, partition)
        outcome = self._until(lambda: self._core.continue_arrow(topic, made), topic, deadline_s)
        self._loop.drive()
        return outcome

    def _until(
        self, attempt: Callable[[], T | Promise[None]], topic: str, deadline_s: float, partition: int | None = None
    ) -> T:
        """Tries until there is an outcome, waiting for what each attempt says it lacks."""
        while True:
            with self._lock, self._step:
                outcome = attempt()
            if not isinstance(outcome, Promise):
                return outcome
            self._callbacks.check_may_wait()
            if not self._loop.wait(outcome, max(deadline_s - monotonic(), 0.0)):
                raise self._core.too_late(topic, partition)
            outcome.value()

    def flush(self, timeout: float | None = None) -> None:
        """Waits until every record that was sent before is delivered or has failed, and its callback has run.

        Raises `TimeoutError` after `timeout` seconds.
        """
        self._callbacks.check_may_wait()
        deadline_s = None if timeout is None else monotonic() + timeout
        self._loop.ask(self._core.flush, timeout)
        if not self._callbacks.all_run(_left_s(deadline_s)):
            raise TimeoutError(f"callbacks of deliveries still run after {timeout} s")

    def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, which is looked up if need be: for `timeout` seconds, or `max.block.ms`."""
        self._loop.check()
        deadline_s = monotonic() + (self._max_block_s if timeout is None else timeout)
        return self._until(lambda: self._core.partitions_for(topic), topic, deadline_s)

    def on_error(self, callback: Callable[[KafkaError], None]) -> None:
        """Calls back with every connection that is lost or cannot be made, where callbacks of deliveries run.

        Most errors pass, and deliveries tell what did not: this is for logs and alarms.
        """
        self._loop.check()
        with self._lock, self._step:
            self._core.on_error(callback)

    def on_statistics(self, callback: Callable[[dict[str, float]], None], interval: float) -> None:
        """Calls back with `metrics()` every `interval` seconds, where callbacks of deliveries run."""
        self._loop.check()
        with self._lock, self._step:
            self._core.on_statistics(callback, interval)

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's `producer-metrics`."""
        self._loop.check_not_forked()
        with self._lock, self._step:
            return self._core.metrics()

    # --- transactions ---

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything that is sent within is there altogether, or not at all.

        Leaving the block commits. An exception aborts, and propagates; a commit that fails aborts too. Only after
        `RequestTimedOut` of the commit the outcome is open: call `commit` again.
        """
        self.begin()
        try:
            yield
        except BaseException as error:
            self._abort_after(error)
            raise
        try:
            self.commit()
        except RequestTimedOut:
            raise
        except KafkaError as error:
            self._abort_after(error)
            raise

    def _abort_after(self, error: BaseException) -> None:
        """Aborts, if there is something to abort. What was raised first is what the caller has to know."""
        if isinstance(error, KafkaError) and error.fatal:
            return
        try:
            self.abort()
        except KafkaError as problem:
            log_problem(problem)

    def init_transactions(self) -> None:
        """Fences off older producers of the same `transactional.id`. The first `begin` does it, if nobody has."""
        self._wait_for(lambda: self._core.the_transactions().init())

    def begin(self) -> None:
        self.init_transactions()
        with self._lock, self._step:
            self._core.the_transactions().begin()

    def commit(self) -> None:
        """Waits until all records are delivered and the transaction is committed.

        After `RequestTimedOut` the outcome is open: call `commit` again.
        """
        self._wait_for(lambda: self._core.the_transactions().commit())

    def abort(self) -> None:
        self._wait_for(lambda: self._core.the_transactions().abort())

    def transaction_identity(self) -> "TransactionIdentity":
        """Under which the coordinator knows the transaction of now: who has it can end it, from anywhere."""
        self._loop.check()
        with self._lock, self._step:
            return self._core.the_transactions().identity()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: "GroupMember | str"
    ) -> None:
        """Commits the offsets of a group with the transaction: those of the next records to read.

        `group` is the consumer's `group_metadata()`, so that one who has lost the partitions is refused (KIP-447); or
        the group's name.
        """
        self._wait_for(lambda: self._core.send_offsets(offsets, group))

    def _wait_for(self, begin: Callable[[], Promise[None]]) -> None:
        try:
            self._loop.ask(begin, self._max_block_s)
        except TimeoutError:
            raise self._core.the_transactions().too_late(self._max_block_s) from None

    begin_transaction = begin
    """By the names of Java's producer, and of others after it, too."""
    commit_transaction = commit
    abort_transaction = abort
    send_offsets_to_transaction = send_offsets

    # --- the end ---

    def close(self, timeout: float | None = None) -> None:
        """Waits up to `timeout` seconds for what was sent and for callbacks, then ends connections and thread.

        What is not delivered by then fails with `ClientClosed`. An open transaction is aborted, unless `timeout` is 0:
        then it is left to time out. So it is by a callback, which cannot wait.
        """
        if self._core.is_closed or self._loop.is_forked or self._loop.step.is_torn:
            self._loop.stop()
            self._interceptors.close()
            return
        if self._callbacks.is_running_here:
            timeout = 0.0
        deadline_s = None if timeout is None else monotonic() + timeout
        try:
            if timeout is None or timeout > 0:
                self._end_transaction(deadline_s)
                self.flush(_left_s(deadline_s))
        except (TimeoutError, ClientClosed):
            pass  # what is left fails below
        finally:
            self._loop.end(self._core.close)
            try:
                if not self._callbacks.is_running_here:
                    self._callbacks.all_run(_left_s(deadline_s))
            finally:
                self._interceptors.close()
                self._loop.stop(*[] if self._callbacks.are_idle else [_left_s(deadline_s) or 0.0])

    def _end_transaction(self, deadline_s: float | None) -> None:
        """Of a producer that is being closed: aborts what it has begun, and waits for what it is about to end."""
        with self._lock, self._step:
            ending = self._core.end_transaction()
        if ending is None:
            return
        left_s = _left_s(deadline_s)
        self._loop.wait(ending, self._max_block_s if left_s is None else left_s)
        with self._lock, self._step:
            problem = self._core.open_transaction() if ending.error is None else ending.error
        if problem is not None:
            log_problem(problem)

    def __enter__(self) -> "Producer":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()


def _deliver_at_exit(loop: LoopThread, core: ProducerCore, timeout_s: float) -> None:
    """The program ends and did not close its producer. What it has sent is delivered, or it is said what was not."""
    with loop.lock, loop.step:
        if core.is_closed:
            return
        is_uncommitted = core.transactions is not None and core.transactions.has_uncommitted
        ending = core.end_transaction()
        over = all_settled([core.flush(), *([] if ending is None else [ending])])
    loop.wait(over, timeout_s)
    with loop.lock, loop.step:
        losses = core.losses("the program has ended without Producer.close()")
        core.close()
    if is_uncommitted:
        log_problem(ClientClosed("the program has ended in a transaction that it has not committed: it is aborted"))
    for problem in losses:
        log_problem(problem)


def _give_up(core: ProducerCore) -> None:
    """An interrupt has cut the core's work short: what it has not delivered is lost, and that is said."""
    try:
        for problem in core.losses("the producer was interrupted in the middle of its work"):
            log_problem(problem)
    finally:
        core.close()


def _left_s(deadline_s: float | None) -> float | None:
    return None if deadline_s is None else max(deadline_s - monotonic(), 0.0)


class _ThreadWaiter:
    def __init__(self, loop: LoopThread, callbacks: Callbacks) -> None:
        self._loop = loop
        self.call_back = callbacks.add
        self.nudge = loop.nudge
        self._callbacks = callbacks

    @property
    def lock(self) -> ClientLock:
        """Not in a fork, where nobody may be left to release it."""
        self._loop.check_not_forked()
        return self._loop.lock

    def wait(self, promise: Promise[Any], timeout_s: float | None) -> None:
        self._callbacks.check_may_wait()
        if not self._loop.wait(promise, timeout_s):
            raise TimeoutError(f"not delivered within {timeout_s} s")

    async def awaited(self, promise: Promise[Any]) -> None:
        raise TypeError("a delivery of ottla.Producer cannot be awaited: use ottla.aio.Producer")
