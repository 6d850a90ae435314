"""Records that wait to be sent, in a queue of batches for each partition.

Theory of operation. A record goes into the open batch of its partition; `Appender` does that where it is simple. A
batch is complete when the next record does not fit, when it is `linger.ms` old, or when somebody flushes. A queue whose
first batch is complete is in `ready`, under the node that leads its partition, until the sender has drained it. Batches
take their room out of `buffer.memory` when they are opened and give it back when they are settled.
"""

from collections import deque
from collections.abc import Callable, Sequence

from ottla.base.ports import Buffer, Timer
from ottla.client.cluster.view import NO_NODE, ClusterView
from ottla.client.errors import DeliveryTimedOut, RecordTooLarge
from ottla.client.producer.append import Appender, Delivery, OnDelivery, put
from ottla.client.producer.batch import ProducerBatch, Waiter
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.producer_settings import ProducerSettings
from ottla.client.producer.topic_queues import TopicQueues
from ottla.client.promise import Promise, all_settled
from ottla.client.world import ClientWorld
from ottla.records.header import HEADER_SIZE, Compression

Headers = Sequence[tuple[str, Buffer | None]]

_RECORD_OVERHEAD = 26
"""Most bytes that a record takes besides its key, value and headers: lengths, deltas, attributes."""
_RATIO_WORSENS = 0.05
_RATIO_IMPROVES = 0.005
_RATIO_MARGIN = 1.05


class Accumulator:
    def __init__(self, settings: ProducerSettings, world: ClientWorld, waiting: Waiter, appender: Appender) -> None:
        self.topics: dict[str, TopicQueues] = {}
        self.ready: dict[int, dict[PartitionQueue, None]] = {}
        self.free_bytes = settings.buffer_memory
        self.opened = 0
        """How many batches were begun."""
        self._settings = settings
        self._world = world
        self.now_s = world.now_s
        self.waiting = waiting
        self._appender = appender
        self._linger_s = settings.linger_ms / 1000
        self._unfinished: deque[ProducerBatch] = deque()
        self._lingering: deque[ProducerBatch] = deque()
        self._linger_timer: Timer | None = None
        self._room: Promise[None] | None = None
        self.is_busy: Callable[[int], bool] = lambda node_id: False
        """Whether a node has as many requests on their way as it may."""
        self.on_due: Callable[[], None] = lambda: None
        """Is called when a timer has made queues ready."""

    # --- topics ---

    def learn(self, view: ClusterView) -> list[ProducerBatch]:
        """Takes over how many partitions topics have, and who leads them. Returns the batches that have none any more.

        Only a topic that was deleted and made again has fewer than before; else the broker is behind.
        """
        gone: list[ProducerBatch] = []
        for name, topic in self.topics.items():
            known = view.topics.get(name)
            if known is None or not known.partitions:
                continue
            if len(known.partitions) > len(topic.queues):
                topic.grow(len(known.partitions))
            elif len(known.partitions) < len(topic.queues) and known.topic_id != topic.topic_id:
                gone += topic.cut(len(known.partitions))
                if name in self._appender.topics:
                    self._appender.topics[name] = topic.open
            topic.topic_id = known.topic_id
        for queue in self.all_queues():
            leader = view.leader_of(queue.topic_partition)
            queue.leader, queue.leader_epoch = (NO_NODE, queue.leader_epoch) if leader is None else leader
        self.ready = {}
        for queue in self.all_queues():
            if queue.has_complete:
                self.make_ready(queue)
        return gone

    def add_topic(self, name: str, partition_count: int, view: ClusterView, *, is_open: bool) -> TopicQueues:
        """`is_open`: records may go straight into its batches; else every record takes the long way."""
        topic = self.topics[name] = TopicQueues(name, partition_count, self._settings)
        topic.topic_id = view.topics[name].topic_id
        for queue in topic.queues:
            leader = view.leader_of(queue.topic_partition)
            if leader is not None:
                queue.leader, queue.leader_epoch = leader
        if is_open:
            self._appender.topics[name] = topic.open
        return topic

    def all_queues(self) -> list[PartitionQueue]:
        return [queue for topic in self.topics.values() for queue in topic.queues]

    # --- records in ---

    def add(
        self,
        topic: TopicQueues,
        partition: int,
        timestamp_ms: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers,
        on_delivery: OnDelivery | None,
    ) -> Delivery | None:
        """Appends a record, to a new batch if need be. None if there is no memory for one."""
        batch = topic.open.get(partition)
        if batch is not None:
            delivery = put(batch, timestamp_ms, key, value, headers, on_delivery)
            if delivery is None and self._grow(batch):
                delivery = put(batch, timestamp_ms, key, value, headers, on_delivery)
            if delivery is not None:
                return delivery
        batch = self._next_batch(topic, partition, _most_bytes(key, value, headers))
        if batch is None:
            return None
        delivery = put(batch, timestamp_ms, key, value, headers, on_delivery)
        assert delivery is not None, "the first record of a batch always fits"
        self._open(topic, batch)
        return delivery

    def _grow(self, batch: ProducerBatch) -> bool:
        """Lets a batch hold more, if its node takes no more requests now. It is sent as soon as there is a place."""
        more = batch.held_bytes
        if batch.size + more > self._settings.most_batch_size or more > self.free_bytes:
            return False
        if not self.is_busy(batch.queue.leader):
            return False
        self.free_bytes -= more
        batch.held_bytes += more
        batch.raise_limit(batch.held_bytes)
        batch.is_due = True
        self.make_ready(batch.queue)
        return True

    def _next_batch(self, topic: TopicQueues, partition: int, record_bytes: int) -> ProducerBatch | None:
        limit = self._settings.batch_size
        if self._settings.codec != Compression.NONE:
            limit = int(limit / min(topic.ratio * _RATIO_MARGIN, 1.0))
        limit = max(min(limit, self._settings.max_request_size), HEADER_SIZE + 1)
        return self.new_batch(topic.queues[partition], limit, max(limit, HEADER_SIZE + record_bytes))

    def _open(self, topic: TopicQueues, batch: ProducerBatch) -> None:
        """Lines a batch up that has its first record, and lets others append to it.

        Not before it has the record: an `Appender` takes no lock, and could fill the batch until there is no room for
        the record that it was made for.
        """
        before = topic.open.get(batch.partition)
        if before is not None:
            self.close(before)
        self.line_up(batch)
        if self._settings.batch_size == 0 or batch.size >= self._settings.batch_size:
            self.close(batch)
        else:
            topic.open.put(batch.partition, batch)

    def new_batch(self, queue: PartitionQueue, limit: int, held_bytes: int) -> ProducerBatch | None:
        """An empty batch, which `line_up` takes once it has records; None if there is no memory for it.

        It is in no queue yet: a caller who cannot fill it, because a record is refused, leaves nothing behind.
        """
        largest = min(self._settings.max_request_size, self._settings.buffer_memory)
        if held_bytes > max(largest, limit):
            reason = (
                f"a record of {held_bytes - HEADER_SIZE} bytes is beyond max.request.size={largest} of this producer"
            )
            raise RecordTooLarge(reason)
        if not self.has_room(held_bytes):
            return None
        return ProducerBatch(queue, limit, held_bytes, self.now_s(), self.waiting)

    def has_room(self, held_bytes: int) -> bool:
        """A batch that is larger than all of the memory has room alone."""
        return held_bytes <= self.free_bytes or self.free_bytes == self._settings.buffer_memory

    def line_up(self, batch: ProducerBatch) -> None:
        """Puts a new batch at the end of its queue. It takes its memory from now on."""
        assert batch.record_count, "a batch without a record could neither be sent nor expire"
        queue = batch.queue
        self.free_bytes -= batch.held_bytes
        self.opened += 1
        queue.waiting.append(batch)
        self._unfinished.append(batch)
        if not self._linger_s:
            batch.is_due = True
            self.make_ready(queue)
        else:
            self._lingering.append(batch)
            if self._linger_timer is None:
                self._linger_timer = self._world.timers.after(self._linger_s, self._on_linger)
            if len(queue.waiting) > 1:
                self.make_ready(queue)

    def line_up_closed(self, topic: TopicQueues, batch: ProducerBatch) -> None:
        """Lines a batch up that takes no more records. What was sent before is closed too, so that order is kept."""
        before = topic.open.get(batch.partition)
        if before is not None:
            self.close(before)
        batch.is_closed = True
        self.line_up(batch)
        self.make_ready(batch.queue)

    def fit(self, batch: ProducerBatch) -> None:
        """A batch holds no more memory than it needs: nothing will be added to it."""
        unused = batch.held_bytes - batch.size
        batch.held_bytes -= unused
        self.free_bytes += unused

    def close(self, batch: ProducerBatch) -> None:
        """A batch takes no more records."""
        batch.is_closed = True
        open_batches = self.topics[batch.topic].open
        if open_batches.get(batch.partition) is batch:
            open_batches.put(batch.partition, None)
        self.make_ready(batch.queue)

    def wait_for_room(self) -> Promise[None]:
        """Done when memory was given back. All that waits for more records is sent meanwhile."""
        self.complete_all()
        if self._room is None:
            self._room = Promise()
        return self._room

    # --- batches out ---

    def make_ready(self, queue: PartitionQueue) -> None:
        self.ready.setdefault(queue.leader, {})[queue] = None

    def complete_all(self) -> None:
        """Closes every batch that has a record, so that all can be sent."""
        for topic in self.topics.values():
            for queue in topic.queues:
                if queue.waiting:
                    last = queue.waiting[-1]
                    if last.is_closed:
                        self.make_ready(queue)
                    else:
                        self.close(last)

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """The first batch of a queue, which is closed by it."""
        batch = queue.waiting.popleft()
        if not batch.is_closed:
            batch.is_closed = True
            self.topics[queue.topic].open.put(queue.partition, None)
        return batch

    def put_back(self, batch: ProducerBatch) -> None:
        batch.queue.put_back(batch)

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """The parts of a batch that was too large. They take its memory over; where they go is for the caller."""
        topic = self.topics[batch.topic]
        topic.ratio = 1.0
        assert batch.encoded is not None, "only what was sent can be too large"
        parts = batch.split(max(min(self._settings.batch_size, batch.raw_bytes // 2), HEADER_SIZE + 1))
        parts[0].held_bytes, batch.held_bytes = batch.held_bytes, 0
        place = self._unfinished.index(batch)  # by age, and parts before what they settle: so `expired` looks at them
        for part in reversed(parts):
            self._unfinished.insert(place, part)
        return parts

    def note_ratio(self, topic: str, ratio: float) -> None:
        """What a batch was compressed to: the next one may hold as much more (KIP-126)."""
        known = self.topics[topic]
        if ratio > known.ratio:
            known.ratio = max(known.ratio + _RATIO_WORSENS, ratio)
        elif ratio < known.ratio:
            known.ratio = max(known.ratio - _RATIO_IMPROVES, ratio)

    # --- the end of batches ---

    def release(self, batch: ProducerBatch, *, has_callbacks: bool) -> None:
        """A batch is settled: its memory is free again, once its callbacks have run.

        They hold their records. Were it free at once, callbacks that are slower than the broker would pile up.
        """
        unfinished = self._unfinished
        while unfinished and unfinished[0].is_done:
            unfinished.popleft()
        if has_callbacks:
            self.waiting.call_back(self._free_after_callbacks, batch)
        else:
            self._free(batch)

    def _free_after_callbacks(self, batch: ProducerBatch) -> None:
        with self.waiting.lock:
            is_waited_for = self._room is not None
            self._free(batch)
        if is_waited_for:
            self.waiting.nudge()

    def _free(self, batch: ProducerBatch) -> None:
        self.free_bytes += batch.held_bytes
        batch.held_bytes = 0
        room, self._room = self._room, None
        if room is not None:
            room.resolve(None)

    def unfinished(self) -> list[ProducerBatch]:
        return [batch for batch in self._unfinished if not batch.is_done]

    def all_done(self) -> Promise[None]:
        """Done when every batch of now is settled."""
        return all_settled([batch.when_settled() for batch in self.unfinished()])

    def expired(self, timeout_s: float) -> list[ProducerBatch]:
        """The batches that are older than that. They are out of the queues, and the caller fails them."""
        now_s = self._world.now_s()
        late = []
        for batch in self._unfinished:
            # As the timer counts: subtracted from now, the rounding could say that a batch which is due is not.
            if batch.created_s + timeout_s > now_s:
                break
            if not batch.is_done:
                late.append(batch)
        for batch in late:
            self.withdraw(batch)
        return late

    def withdraw(self, batch: ProducerBatch) -> None:
        """Takes a batch out of its queue, if it is in it. Those behind it may have waited for it alone."""
        queue = batch.queue
        if not batch.is_closed:
            self.close(batch)
        if batch in queue.waiting:
            queue.waiting.remove(batch)
        if queue.has_complete:
            self.make_ready(queue)

    def oldest_s(self) -> float | None:
        """When the oldest batch that is not settled was made."""
        return next((batch.created_s for batch in self._unfinished if not batch.is_done), None)

    def _on_linger(self) -> None:
        self._linger_timer = None
        now_s = self._world.now_s() + 0.0005
        lingering = self._lingering
        while lingering and (lingering[0].is_closed or lingering[0].created_s + self._linger_s <= now_s):
            batch = lingering.popleft()
            if not batch.is_closed:
                batch.is_due = True
                self.make_ready(batch.queue)
        if lingering:
            left_s = lingering[0].created_s + self._linger_s - now_s + 0.0005
            self._linger_timer = self._world.timers.after(left_s, self._on_linger)
        self.on_due()


def timed_out(batch: ProducerBatch, timeout_ms: int, why: str | None) -> DeliveryTimedOut:
    """`why` is what stood in the way last, if that is known."""
    count = "1 record" if batch.record_count == 1 else f"{batch.record_count} records"
    reason = f"; the last problem was: {why}" if why else ""
    return DeliveryTimedOut(
        f"{count} for {batch.queue.topic_partition} could not be delivered within {timeout_ms} ms{reason}"
    )


def _most_bytes(key: Buffer | None, value: Buffer | None, headers: Headers) -> int:
    size = _RECORD_OVERHEAD + (0 if key is None else len(key)) + (0 if value is None else len(value))
    for name, content in headers:
        size += 10 + 4 * len(name) + (0 if content is None else len(content))
    return size
