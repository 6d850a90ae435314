"""A producer without I/O: what `ottla.Producer` and `ottla.aio.Producer` are faces of.

Called by one thread at a time. Nothing here waits: `send` returns a `Delivery`, or a promise of the moment at which to
try again, because the topic is not known yet or memory is full; the faces wait for it, up to `max.block.ms`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.base.ids import TopicPartition
from ottla.base.ports import Buffer, Clock
from ottla.client.cluster.application_callbacks import ApplicationCallback, Statistics
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.view import ClusterView
from ottla.client.errors import (
    BufferExhausted,
    ClientClosed,
    InvalidState,
    KafkaError,
    RequestTimedOut,
    UnknownTopicOrPartition,
    error_for,
)
from ottla.client.producer.accumulator import Accumulator, Headers
from ottla.client.producer.append import Appender, Delivery, OnDelivery, partition_for_key
from ottla.client.producer.batch import Waiter
from ottla.client.producer.partition_queue import Identity
from ottla.client.producer.partitioning import StickyPartitioner, partition_by
from ottla.client.producer.producer_settings import producer_settings
from ottla.client.producer.sender import Sender
from ottla.client.producer.sequences import Sequences
from ottla.client.producer.topic_queues import TopicQueues
from ottla.client.promise import Promise, spawn
from ottla.client.settings import ClientSettings
from ottla.client.topic_partition import OffsetAndMetadata, PartitionInfo, with_epoch
from ottla.client.world import ClientWorld
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import InitProducerIdRequest

if TYPE_CHECKING:
    from ottla.client.producer.arrow_rows import ArrowDelivery, ArrowRows
    from ottla.client.producer.forwarded_batch import ForwardedBatch
    from ottla.client.producer.transaction_requests import GroupMember
    from ottla.client.producer.transactions import Transactions
    from ottla.records.header import BatchHeader


class ProducerCore:
    def __init__(self, world: ClientWorld, settings: ClientSettings, waiting: Waiter) -> None:
        self.settings = producer_settings(settings)
        self.world = world
        self.cluster = Cluster(world, settings, creates_topics=True)
        self.is_closed = False
        self.fatal_error: KafkaError | None = None
        self.now_ns = _nanoseconds(world.clock)
        self.appender = Appender(self.now_ns)
        self.accumulator = Accumulator(self.settings, world, waiting, self.appender)
        self._waiting = waiting
        self._statistics = Statistics(world.timers)
        self.sequences = Sequences(self.settings.transactional_id is not None) if self.settings.is_idempotent else None
        self.sender = Sender(self.cluster, self.settings, self.accumulator, self.sequences)
        self.sender.identify = self._identify
        self.sender.on_failed = self._on_failed
        self.transactions = None if self.settings.transactional_id is None else self._make_transactions()
        self._sticky = StickyPartitioner(
            world.entropy, self.settings.is_adaptive, self.settings.batch_size, self.sender.is_slow
        )
        self._is_identifying = False
        self.accumulator.on_due = self.sender.run
        self.accumulator.is_busy = self.sender.is_busy
        self.cluster.on_update(self._on_view)
        self.cluster.offer_metrics("producer", self.metrics)
        world.timers.every(self.settings.metadata_max_idle_ms / 1000, self._forget_idle_topics)

    # --- sending ---

    def send(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery | Promise[None]:
        """The long way of a record that `appender` did not take. A promise: wait for it, and call again."""
        self._check_may_send()
        known = self._usable_topic(topic)
        if known is None:
            return self._wait_for_topic(topic)
        if partition is None:
            partition = self._partition(known, key, value)
        elif not 0 <= partition < len(known.queues):
            return self._wait_for_partition(topic, partition, len(known.queues))
        if self.transactions is not None:
            self.transactions.add(known.queues[partition])
        if timestamp_ms is None:
            timestamp_ms = self.world.clock.now_ms()
        delivery = self.accumulator.add(known, partition, timestamp_ms, key, value, headers or (), on_delivery)
        if delivery is None:
            room = self.accumulator.wait_for_room()
            self.sender.run()
            return room
        if self.accumulator.ready:
            self.sender.run()
        return delivery

    def begin_arrow(self, topic: str, rows: Any, partition: int | None) -> "ArrowRows | Promise[None]":
        """Rows that `continue_arrow` puts into batches; a promise as `send` gives it."""
        from ottla.client.producer.arrow_rows import ArrowRows  # pyarrow, only for those who use it

        known = self._topic_with(topic, partition)
        if isinstance(known, Promise):
            return known
        sticky = self._sticky.choose(known.queues)
        now_ms = self.world.clock.now_ms()
        return ArrowRows(rows, partition, sticky, len(known.queues), now_ms, self.settings.ignores_keys)

    def continue_arrow(self, topic: str, rows: "ArrowRows") -> "ArrowDelivery | Promise[None]":
        """Puts as many rows into batches as there is memory for. A promise: wait for it, and call again."""
        from ottla.client.producer.arrow_rows import ArrowDelivery

        self._check_may_send()
        known = self.accumulator.topics[topic]
        if self.transactions is not None:
            for partition in rows.partitions():
                self.transactions.add(known.queues[partition])
        is_all_in = rows.put(self.accumulator, known, self.settings)
        waits = None if is_all_in else self.accumulator.wait_for_room()
        self.sender.run()
        return ArrowDelivery(rows.batches, rows.row_count) if waits is None else waits

    def forward(
        self, topic: str, partition: int, header: "BatchHeader", encoded: memoryview
    ) -> "ForwardedBatch | Promise[None]":
        """Sends a batch that `can_be_forwarded`. A promise: wait for it, and call again."""
        from ottla.client.producer.forwarded_batch import put_forwarded  # few producers forward

        known = self._topic_with(topic, partition)
        if isinstance(known, Promise):
            return known
        if self.transactions is not None:
            self.transactions.add(known.queues[partition])
        batch = put_forwarded(self.accumulator, known, partition, header, encoded)
        outcome = self.accumulator.wait_for_room() if batch is None else batch
        self.sender.run()
        return outcome

    def _topic_with(self, topic: str, partition: int | None) -> TopicQueues | Promise[None]:
        """Of a producer that may send: the topic, if it is known and has that partition."""
        self._check_may_send()
        known = self._usable_topic(topic)
        if known is None:
            return self._wait_for_topic(topic)
        if partition is not None and not 0 <= partition < len(known.queues):
            return self._wait_for_partition(topic, partition, len(known.queues))
        return known

    def _usable_topic(self, name: str) -> TopicQueues | None:
        known = self.accumulator.topics.get(name) or self._learn_topic(name)
        if known is not None:
            known.used_s = self.world.now_s()
            if not known.is_wanted:
                self._want_again(known)
        return known

    def _check_may_send(self) -> None:
        if self.is_closed:
            raise ClientClosed("the producer was closed")
        if self.fatal_error is not None:
            raise self.fatal_error.with_traceback(None)  # else it grows with every record that is refused
        if self.transactions is not None:
            self.transactions.check_may_send()

    def _partition(self, topic: TopicQueues, key: Buffer | None, value: Buffer | None) -> int:
        if self.settings.partitioner is not None:
            key_bytes, value_bytes = _as_bytes(key), _as_bytes(value)
            return partition_by(self.settings.partitioner, topic.name, key_bytes, value_bytes, topic.queues)
        if key is not None and not self.settings.ignores_keys:
            return partition_for_key(bytes(key), len(topic.queues))
        size = (0 if key is None else len(key)) + (0 if value is None else len(value))
        return self._sticky.partition_for(topic, size)

    # --- topics ---

    def _learn_topic(self, name: str) -> TopicQueues | None:
        view = self.cluster.view
        known = view.topics.get(name)
        if known is None or not known.partitions:
            return None
        is_simple = self.settings.partitioner is None
        return self.accumulator.add_topic(name, len(known.partitions), view, is_open=is_simple)

    def _want_again(self, topic: TopicQueues) -> None:
        """A topic that nothing was sent to for `metadata.max.idle.ms`. Its sequences continue."""
        topic.is_wanted = True
        self.cluster.add_topics([topic.name])
        if self.settings.partitioner is None:
            self.appender.topics[topic.name] = topic.open

    def _wait_for_topic(self, name: str) -> Promise[None]:
        """Rejected when the topic cannot be used; else done when metadata said something new."""
        self.cluster.add_topics([name])
        known = self.cluster.view.topics.get(name)
        if known is not None and known.error and not (error := error_for(known.error, f"the topic {name}")).retriable:
            return Promise.rejected(error)
        return self._refreshed(pause=known is not None)

    def _wait_for_partition(self, topic: str, partition: int, count: int) -> Promise[None]:
        if partition < 0:
            raise UnknownTopicOrPartition(f"{topic} has no partition {partition}")
        return self._refreshed(pause=True)

    def _refreshed(self, *, pause: bool) -> Promise[None]:
        async def refresh() -> None:
            if pause:
                await self.world.sleep(self.cluster.backoff.after(0, self.world.entropy))
            await self.cluster.refresh()

        return spawn(refresh())

    def too_late(self, topic: str, partition: int | None = None) -> KafkaError:
        """Why a `send` that waited for `max.block.ms` gives up."""
        limit_ms = self.settings.max_block_ms
        known_here = self.accumulator.topics.get(topic)
        if known_here is not None and partition is not None and partition >= len(known_here.queues):
            there = f"the topic has {len(known_here.queues)}, numbered from 0"
            return UnknownTopicOrPartition(f"{topic} has no partition {partition} after {limit_ms} ms: {there}")
        if known_here is None:
            known = self.cluster.view.topics.get(topic)
            if known is not None and known.error:
                return error_for(known.error, f"the topic {topic} is not there after {limit_ms} ms")
            return RequestTimedOut(
                f"nothing is known of the topic {topic} after {limit_ms} ms: {self.cluster.no_metadata().message}"
            )
        return BufferExhausted(f"no room in the buffer within {limit_ms} ms")

    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...] | Promise[None]:
        """What is known of a topic; a promise as `send` gives it, if nothing is yet."""
        if self.is_closed:
            raise ClientClosed("the producer was closed")
        known = self.cluster.view.topics.get(topic)
        if known is None or not known.partitions:
            return self._wait_for_topic(topic)
        return tuple(
            PartitionInfo(
                topic, one.partition, one.leader if one.leader >= 0 else None, one.replicas, one.isr, one.offline
            )
            for _, one in sorted(known.partitions.items())
        )

    def _on_view(self, view: ClusterView) -> None:
        if gone := self.accumulator.learn(view):
            error = UnknownTopicOrPartition("the topic was made again, and has fewer partitions")
            self.sender.give_up(error, gone)
        self.sender.run()

    def _forget_idle_topics(self) -> None:
        limit_s = self.world.now_s() - self.settings.metadata_max_idle_ms / 1000
        for name, topic in list(self.accumulator.topics.items()):
            is_idle = not any(queue.waiting or queue.unacked or queue.is_in_transaction for queue in topic.queues)
            if topic.used_s < limit_s and is_idle:
                topic.is_wanted = False
                self.appender.topics.pop(name, None)
        self.cluster.set_topics(name for name, topic in self.accumulator.topics.items() if topic.is_wanted)

    # --- identity ---

    def _identify(self) -> None:
        """Gets an id for a producer without transactions, from any broker."""
        if self.transactions is None and not self._is_identifying and not self.is_closed:
            self._is_identifying = True
            self.world.start(self._get_identity())

    async def _get_identity(self) -> None:
        assert self.sequences is not None, "only idempotent producers have ids"
        failures = 0
        while True:
            try:
                response = await self.cluster.ask_any(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0x7FFFFFFF)
                )
                if not response.error_code:
                    break
                raise error_for(response.error_code)
            except KafkaError as problem:
                if not problem.retriable:
                    self._is_identifying = False
                    self._become_fatal(problem)
                    return
            await self.world.sleep(self.cluster.backoff.after(failures, self.world.entropy))
            failures += 1
        self._is_identifying = False
        self.sequences.become(Identity(response.producer_id, response.producer_epoch))
        self.sender.run()

    def _on_failed(self, error: KafkaError) -> None:
        if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED and self.sequences is not None:
            self._become_fatal(error)

    def _become_fatal(self, error: KafkaError) -> None:
        if self.fatal_error is None and not self.is_closed:
            self.fatal_error = error
            self.appender.topics.clear()
            self.sender.give_up(error)

    # --- transactions ---

    def _make_transactions(self) -> "Transactions":
        from ottla.client.cluster.coordinators import Coordinators  # only for those who have transactions
        from ottla.client.producer.transaction_requests import TransactionRequests
        from ottla.client.producer.transactions import Transactions

        assert self.sequences is not None, "transactions are idempotent"
        requests = TransactionRequests(self.cluster, Coordinators(self.cluster), self.settings)
        return Transactions(self.cluster, requests, self.accumulator, self.sender, self.sequences)

    def the_transactions(self) -> "Transactions":
        if self.is_closed:
            raise ClientClosed("the producer was closed")
        if self.transactions is None:
            raise InvalidState("a producer without transactional.id has no transactions")
        return self.transactions

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: "GroupMember | str"
    ) -> Promise[None]:
        from ottla.client.producer.transaction_requests import GroupOnly

        consumed = dict(getattr(group, "consumed", ()))
        places = {
            partition: with_epoch(
                OffsetAndMetadata(place) if isinstance(place, int) else place, consumed.get(partition)
            )
            for partition, place in offsets.items()
        }
        transactions = self.the_transactions()
        if not places:
            return Promise.resolved(None)
        return transactions.send_offsets(places, GroupOnly(group) if isinstance(group, str) else group)

    def end_transaction(self) -> Promise[None] | None:
        """Before the producer is closed; None if it has no transaction to end."""
        return None if self.transactions is None else self.transactions.end()

    def open_transaction(self) -> KafkaError | None:
        """Of a producer that is closed now: what there is to say of a transaction that it has not ended in time."""
        return None if self.transactions is None or self.is_closed else self.transactions.left_open()

    # --- the end ---

    def flush(self) -> Promise[None]:
        """Sends everything at once. Done when all records that were sent before it are settled."""
        self.accumulator.complete_all()
        done = self.accumulator.all_done()
        self.sender.run()
        return done

    def close(self) -> None:
        """At once: what is not delivered fails with `ClientClosed`."""
        if self.is_closed:
            return
        self.is_closed = True
        self.appender.topics.clear()
        self.sender.is_stopped = True
        self.sender.give_up(ClientClosed("the producer was closed before the record was delivered"))
        self._statistics.stop()
        self.cluster.close()

    def losses(self, why: str) -> list[KafkaError]:
        """What a producer that is closed now will lose: how many records of each topic, and whether a transaction."""
        lost: Counter[str] = Counter()
        for batch in self.accumulator.unfinished():
            lost[batch.topic] += batch.record_count
        problems: list[KafkaError] = [
            ClientClosed(f"{why}, and {count} records for {topic} that were sent could not be delivered: they are lost")
            for topic, count in lost.items()
        ]
        if (left_open := self.open_transaction()) is not None:
            problems.append(left_open)
        return problems

    def finish(self) -> bool:
        """Ends as soon as everything is delivered that was sent. Returns whether it has: else call again."""
        if self.accumulator.unfinished() and not self.is_closed:
            self.accumulator.complete_all()
            self.sender.run()
            return False
        self.close()
        return True

    def on_error(self, callback: Callable[[KafkaError], None]) -> None:
        self.cluster.on_problem = ApplicationCallback(callback, self._waiting.call_back)

    def on_statistics(self, callback: Callable[[dict[str, float]], None], interval_s: float) -> None:
        self._statistics.tell(ApplicationCallback(callback, self._waiting.call_back), self.metrics, interval_s)

    def metrics(self) -> dict[str, float]:
        """By the names of Kafka's `producer-metrics`."""
        total = self.settings.buffer_memory
        return {
            **self.sender.metrics.values(),
            "requests-in-flight": self.sender.in_flight,
            "buffer-total-bytes": total,
            "buffer-available-bytes": self.accumulator.free_bytes,
        }


def _nanoseconds(clock: Clock) -> Callable[[], int]:
    """The real clock has a function of the interpreter's own for it, which saves a call for each record."""
    clock_ns: Callable[[], int] = getattr(clock, "now_ns", lambda: clock.now_ms() * 1_000_000)
    return clock_ns


def _as_bytes(value: Buffer | None) -> bytes | None:
    return None if value is None else bytes(value)
