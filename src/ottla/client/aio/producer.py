"""The producer for asyncio: everything happens in the loop that runs when it is made, without threads."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from ottla.base.ids import TopicPartition
from ottla.client.errors import ClientClosed, InvalidState, KafkaError, RequestTimedOut
from ottla.client.interceptors import Interceptors, RecordToSend
from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.io.real_ports import log_problem
from ottla.client.producer.append import Delivery, OnDelivery
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

T = TypeVar("T")

_SENDS_PER_TURN = 64
"""Batches that one task may complete before others, and the network, have a turn."""


class Producer:
    """Sends records, from the event loop that runs when it is made.

        async with Producer(bootstrap_servers="localhost:9092") as producer:
            delivery = await producer.send("clicks", b"value", key=b"key")
            print((await delivery).offset)

    The blocking `ottla.Producer` has the same methods.
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
        self._interceptors = Interceptors(settings, log_problem)
        self._io = AsyncioWorld(settings)
        self._core = ProducerCore(self._io.world, settings, _TaskWaiter(self._io))
        self._io.end_with(self, partial(_finish, self._core), partial(_stop, self._core))
        self._io.guard(self._core.appender)
        goes_as_it_comes = not self._serialize.is_needed and not self._interceptors
        self._append = self._core.appender.append if goes_as_it_comes else _never_at_once
        self._max_block_s = self._core.settings.max_block_ms / 1000
        self._completed = 0

    # --- sending ---

    async def send(
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
        """Hands a record over, and returns what will become of it, which may be awaited.

        Waits at most `max.block.ms`, for metadata of a topic that was not used before or for room in `buffer.memory`.
        """
        delivery = self._append(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is None:
            return await self._send_slowly(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        return delivery

    async def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Sequence[Header] | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        self._io.check()
        if self._interceptors:
            record = RecordToSend(topic, value, key, partition, timestamp_ms, headers)
            topic, value, key, partition, timestamp_ms, headers = self._interceptors.on_send(record)
            on_delivery = self._interceptors.acknowledging(on_delivery)
        value, key, headers = self._serialize(topic, value, key, headers)
        delivery = self._core.appender.append(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is not None:
            return delivery
        outcome = self._core.send(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if isinstance(outcome, Promise):
            outcome = await self._until(
                lambda: self._core.send(topic, value, key, partition, timestamp_ms, headers, on_delivery),
                topic,
                self._io.loop.time() + self._max_block_s,
                partition,
            )
        self._completed += 1
        if self._completed % _SENDS_PER_TURN == 0:
            await asyncio.sleep(0)
        return outcome

    async def send_arrow(self, topic: str, rows: Any, *, partition: int | None = None) -> "ArrowDelivery":
        """Sends the rows of a `pyarrow.RecordBatch` or `Table`: see `ottla.Producer.send_arrow`. May be awaited."""
        self._io.check()
        deadline_s = self._io.loop.time() + self._max_block_s
        made = await self._until(lambda: self._core.begin_arrow(topic, rows, partition), topic, deadline_s, partition)
        return await self._until(lambda: self._core.continue_arrow(topic, made), topic, deadline_s)

    async def _until(
        self, attempt: Callable[[], T | Promise[None]], topic: str, deadline_s: float, partition: int | None = None
    ) -> T:
        """Tries until there is an outcome, waiting for what each attempt says it lacks."""
        while True:
            outcome = attempt()
            if not isinstance(outcome, Promise):
                return outcome
            await self._wait_until(outcome, deadline_s, lambda: self._core.too_late(topic, partition))

    async def send_and_wait(self, topic: str, value: Any = None, key: Any = None, **options: Any) -> Any:
        """Sends a record and waits until it is delivered: returns where it is."""
        return await (await self.send(topic, value, key, **options))

    async def flush(self, timeout: float | None = None) -> None:
        """Waits until every record that was sent before is delivered or has failed, and its callback has run.

        Raises `TimeoutError` after `timeout` seconds.
        """
        self._io.check()
        try:
            async with asyncio.timeout(timeout):
                await self._io.future(self._core.flush())
        except TimeoutError:
            raise TimeoutError(f"not everything was delivered within {timeout} s") from None

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic, which is looked up if need be."""
        self._io.check()
        deadline_s = self._io.loop.time() + self._max_block_s
        return await self._until(lambda: self._core.partitions_for(topic), topic, deadline_s)

    def on_error(self, callback: Callable[[KafkaError], None]) -> None:
        """Calls back with every connection that is lost or cannot be made, where callbacks of deliveries run.

        Most errors pass, and deliveries tell what did not: this is for logs and alarms.
        """
        self._io.check()
        self._core.on_error(callback)

    def on_statistics(self, callback: Callable[[dict[str, float]], None], interval: float) -> None:
        """Calls back with `metrics()` every `interval` seconds, where callbacks of deliveries run."""
        self._io.check()
        self._core.on_statistics(callback, interval)

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's `producer-metrics`."""
        return self._core.metrics()

    # --- transactions ---

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Everything that is sent within is there altogether, or not at all.

        Leaving the block commits. An exception aborts, and propagates; a commit that fails aborts too. Only after
        `RequestTimedOut` of the commit the outcome is open: call `commit` again.
        """
        await self.begin()
        try:
            yield
        except BaseException as error:
            await self._abort_after(error)
            raise
        try:
            await self.commit()
        except RequestTimedOut:
            raise
        except KafkaError as error:
            await self._abort_after(error)
            raise

    async def _abort_after(self, error: BaseException) -> None:
        """Aborts, if there is something to abort. What was raised first is what the caller has to know."""
        if isinstance(error, KafkaError) and error.fatal:
            return
        try:
            await self.abort()
        except KafkaError as problem:
            log_problem(problem)

    async def init_transactions(self) -> None:
        """Fences off older producers of the same `transactional.id`. The first `begin` does it, if nobody has."""
        await self._wait_for(lambda: self._core.the_transactions().init())

    async def begin(self) -> None:
        await self.init_transactions()
        self._core.the_transactions().begin()

    async def commit(self) -> None:
        """Waits until all records are delivered and the transaction is committed.

        After `RequestTimedOut` the outcome is open: call `commit` again.
        """
        await self._wait_for(lambda: self._core.the_transactions().commit())

    async def abort(self) -> None:
        await self._wait_for(lambda: self._core.the_transactions().abort())

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: "GroupMember | str"
    ) -> None:
        """Commits the offsets of a group with the transaction: see `ottla.Producer.send_offsets`."""
        await self._wait_for(lambda: self._core.send_offsets(offsets, group))

    async def _wait_for(self, begin: Callable[[], Promise[None]]) -> None:
        self._io.check()
        deadline_s = self._io.loop.time() + self._max_block_s
        await self._wait_until(
            begin(),
            deadline_s,
            lambda: self._core.the_transactions().too_late(self._max_block_s),
        )

    async def _wait_until(self, promise: Promise[Any], deadline_s: float, error: Callable[[], Exception]) -> None:
        try:
            async with asyncio.timeout_at(deadline_s):
                await self._io.future(promise)
        except TimeoutError:
            raise error() from None

    begin_transaction = begin
    """By the names of Java's producer, and of others after it, too."""
    commit_transaction = commit
    abort_transaction = abort
    send_offsets_to_transaction = send_offsets

    # --- the end ---

    async def close(self, timeout: float | None = None) -> None:
        """Waits up to `timeout` seconds for what was sent, then ends connections.

        What is not delivered by then fails with `ClientClosed`. An open transaction is aborted, unless `timeout` is 0:
        then it is left to time out. If the producer's event loop is closed, nothing can be waited for any more: what
        was not delivered is logged.
        """
        if self._core.is_closed:
            return
        if not self._io.may_finish():
            _stop(self._core)
            self._io.close()
            self._interceptors.close()
            return
        try:
            async with asyncio.timeout(timeout):
                if timeout is None or timeout > 0:
                    await self._end_transaction()
                    await self.flush()
        except (TimeoutError, ClientClosed):
            pass  # what is left fails below
        finally:
            self._core.close()
            self._io.close()
            await asyncio.sleep(0)  # callbacks of what has failed now
            self._interceptors.close()

    async def _end_transaction(self) -> None:
        """Of a producer that is being closed: aborts what it has begun, and waits for what it is about to end."""
        ending = self._core.end_transaction()
        if ending is not None:
            try:
                async with asyncio.timeout(self._max_block_s):
                    await self._io.future(ending)
            except KafkaError as problem:
                log_problem(problem)
            finally:
                if (left_open := self._core.open_transaction()) is not None:
                    log_problem(left_open)

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self.close()


def _never_at_once(*_: Any) -> None:
    """Instead of appending: for a record that is not yet what it will be."""


def _finish(core: ProducerCore) -> Promise[Any]:
    """The producer was dropped without `close`: what it has sent is delivered, and its transaction aborted."""
    if core.transactions is not None and core.transactions.has_uncommitted:
        log_problem(
            ClientClosed("ottla.aio.Producer was dropped in a transaction that is not committed: it is aborted")
        )
    ending = core.end_transaction()
    return all_settled([core.flush(), *([] if ending is None else [ending])])


def _stop(core: ProducerCore) -> None:
    """Ends a producer that cannot wait any more, and says what it has lost."""
    for problem in core.losses("the event loop has ended without Producer.close()"):
        log_problem(problem)
    core.close()


class _TaskWaiter:
    lock = nullcontext()

    def __init__(self, io: AsyncioWorld) -> None:
        self._io = io
        self._due: deque[tuple[Callable[[Any], None], Any]] = deque()

    def wait(self, promise: Promise[Any], timeout_s: float | None) -> None:
        raise InvalidState("the record is not delivered yet: await the delivery")

    async def awaited(self, promise: Promise[Any]) -> None:
        self._io.check()
        await self._io.future(promise)

    def call_back(self, callback: Callable[[Any], None], argument: Any) -> None:
        """Not within the call that settles the delivery: what the callback raises must not keep others from it."""
        self._due.append((callback, argument))
        if self._io.loop.is_closed():
            self._run_callbacks()
        elif len(self._due) == 1:
            self._io.loop.call_soon(self._run_callbacks)

    def _run_callbacks(self) -> None:
        """Raises `KeyboardInterrupt` and `SystemExit`, which end the event loop; the others run if it continues."""
        try:
            while self._due:
                callback, argument = self._due.popleft()
                try:
                    callback(argument)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as problem:  # `CancelledError` of a future that it looked at, for instance
                    log_problem(problem)
        finally:
            if self._due:
                self._io.loop.call_soon(self._run_callbacks)

    def nudge(self) -> None:
        """The event loop comes to callbacks by itself."""
