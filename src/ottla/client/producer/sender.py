"""Drains complete batches into Produce requests, and settles or repeats them as the answers say.

Theory of operation. `run` sends all that may be sent now, and is called whenever that may have changed: a batch is
complete, an answer came, a connection is there, a leader moved. It never waits. Each node has a few requests on their
way at most; a request has one batch of each partition, and no more than `max.request.size` altogether.

An attempt that fails is repeated if its error is retriable, the batch is not too old, and there are `retries` left:
after a pause that grows (KIP-580), or at once if the partition has a new leader (KIP-951).

One file because a batch goes round in it: out, answered, and back into its queue; each step leaves what the next needs.
"""

from collections.abc import Callable
from typing import Any

from ottla.base.ports import Timer
from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.view import NO_NODE
from ottla.client.errors import KafkaError, error_for
from ottla.client.producer.accumulator import Accumulator, timed_out
from ottla.client.producer.batch import FATE_UNKNOWN, NO_STAMP, ProducerBatch
from ottla.client.producer.metrics import SendMetrics
from ottla.client.producer.partition_queue import PartitionQueue
from ottla.client.producer.produce_request import ProduceAttempt, new_leader
from ottla.client.producer.producer_settings import ProducerSettings
from ottla.client.producer.sequences import Sequences
from ottla.client.promise import Promise
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode

_LOST = (
    "the broker found the batch too large when it was sent again. Its records may have been written before: "
    "they are not sent once more"
)
_LATE = (
    "a batch before this one was given up. A broker did not answer for both, and may still write them: "
    "this one is not sent once more"
)


class Sender:
    """`sequences` is None without idempotence. `may_write` tells whether a partition is part of the transaction;
    `on_failed` is notified of every batch that was given up, `on_gap` of lost sequences; `identify` gets a producer id.
    """

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, accumulator: Accumulator, sequences: Sequences | None
    ) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._settings = settings
        self._accumulator = accumulator
        self._sequences = sequences
        if sequences is not None:
            sequences.on_rewritten = self._make_ready
        self._in_flight: dict[int, int] = {}
        # Batches that may grow do so while their node has as much as it takes; else it is better to look before.
        can_grow = settings.most_batch_size > settings.batch_size
        self._much_in_flight = settings.max_in_flight if can_grow else settings.max_in_flight // 2
        self._blocked_since_s: dict[int, float] = {}
        self._connecting: set[int] = set()
        self._is_running = False
        self._runs_again = False
        self._expiry: Timer | None = None
        self.metrics = SendMetrics()
        self.is_stopped = False
        self.newest_version: Callable[[], int | None] = lambda: None
        self.may_write: Callable[[PartitionQueue], bool] = lambda queue: True
        self.on_failed: Callable[[KafkaError], None] = lambda error: None
        self.on_gap: Callable[[], None] = lambda: None
        self.identify: Callable[[], None] = lambda: None

    def run(self) -> None:
        """Sends what may be sent. Called from within itself, by an answer that is there at once, it only notes it."""
        self._runs_again = True
        if self._is_running or self.is_stopped:
            return
        self._is_running = True
        try:
            while self._runs_again:
                self._runs_again = False
                self._run_once()
        finally:
            self._is_running = False

    @property
    def has_much_in_flight(self) -> bool:
        """Whether a node has so much on its way that answers are worth looking for when another batch is begun."""
        return max(self._in_flight.values(), default=0) >= self._much_in_flight

    @property
    def in_flight(self) -> int:
        """Requests that are on their way."""
        return sum(self._in_flight.values())

    def is_busy(self, node_id: int) -> bool:
        """Whether a node has as many requests on their way as it may."""
        return self._in_flight.get(node_id, 0) >= self._settings.max_in_flight

    def is_slow(self, node_id: int) -> bool:
        """Whether a node has left complete batches waiting for `partitioner.availability.timeout.ms`."""
        limit_ms = self._settings.availability_timeout_ms
        since_s = self._blocked_since_s.get(node_id)
        return bool(limit_ms) and since_s is not None and (self._world.now_s() - since_s) * 1000 > limit_ms

    # --- out ---

    def _run_once(self) -> None:
        self._watch_ages()  # of batches that wait for an id, too
        if self._sequences is not None and not self._is_identified(self._sequences):
            return
        ready = self._accumulator.ready
        for node_id in list(ready):
            queues = ready.get(node_id)
            if not queues:
                continue
            if node_id == NO_NODE:
                self._find_leaders(queues)
            else:
                self._send_to(node_id, queues)

    def _watch_ages(self) -> None:
        if self._expiry is None and (oldest_s := self._accumulator.oldest_s()) is not None:
            due_s = oldest_s + self._settings.delivery_timeout_ms / 1000
            self._expiry = self._world.timers.after(max(due_s - self._world.now_s(), 0.0), self._on_expiry)

    def _make_ready(self, queue: PartitionQueue) -> None:
        if queue.has_complete:
            self._accumulator.make_ready(queue)

    def _is_identified(self, sequences: Sequences) -> bool:
        if not sequences.resolve():
            self.on_gap()
        is_wanted = sequences.wants_epoch and not sequences.is_transactional and sequences.is_identified
        if is_wanted and sequences.may_take_epoch():
            self._leave_behind(sequences)
            sequences.take_epoch()
        if not sequences.is_identified:
            self.identify()
        return sequences.is_identified

    def _leave_behind(self, sequences: Sequences) -> None:
        """Settles the batches that must not be sent under another epoch."""
        for batch in sequences.known_as_written():
            self._accumulator.withdraw(batch)
            self._complete(batch, -1, -1)
        for batch in sequences.perhaps_late():
            self._accumulator.withdraw(batch)
            self._fail(batch, error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, _LATE), was_refused=False)

    def _send_to(self, node_id: int, queues: dict[PartitionQueue, None]) -> None:
        if self._cluster.known_versions(node_id) is None:
            self._block(node_id)
            self._connect(node_id)
            return
        while queues:
            if self.is_busy(node_id):
                self._block(node_id)
                return
            batches = self._drain(queues)
            if not batches:
                return
            self._blocked_since_s.pop(node_id, None)
            self._send(node_id, batches)

    def _block(self, node_id: int) -> None:
        if self._settings.availability_timeout_ms:
            self._blocked_since_s.setdefault(node_id, self._world.now_s())

    def _drain(self, queues: dict[PartitionQueue, None]) -> list[ProducerBatch]:
        """A batch of each queue, as many as fit into a request. A queue with more to send goes to the end."""
        batches: list[ProducerBatch] = []
        size = 0
        now_s = self._world.now_s()
        for queue in list(queues):
            if not queue.has_complete or not self._may_drain(queue, now_s):
                del queues[queue]
                continue
            batch = queue.waiting[0]
            if batch.encoded is None:
                self._accumulator.note_ratio(queue.topic, self._seal(queue, batch))
            assert batch.encoded is not None
            if batches and size + len(batch.encoded) > self._settings.max_request_size:
                break
            self._accumulator.take(queue)
            self._prepare(queue, batch)
            size += len(batch.encoded)
            batches.append(batch)
            del queues[queue]
            if queue.has_complete:
                queues[queue] = None
        return batches

    def _may_drain(self, queue: PartitionQueue, now_s: float) -> bool:
        """If not, the queue comes back when what stands in the way is over."""
        batch = queue.waiting[0]
        if queue.is_muted or not self.may_write(queue):
            return False
        if batch.not_before_s > now_s:
            if queue.leader_epoch == batch.last_leader_epoch:
                return False
            batch.not_before_s = 0.0
        return self._sequences is None or self._sequences.may_drain(queue, batch)

    def _seal(self, queue: PartitionQueue, batch: ProducerBatch) -> float:
        open_batches = self._accumulator.topics[queue.topic].open
        if open_batches.get(queue.partition) is batch:
            open_batches.put(queue.partition, None)
        return batch.seal(self._settings.codec, self._settings.level)

    def _prepare(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        if self._sequences is not None and not batch.has_sequence:
            batch.put_stamp(self._sequences.assign(queue, batch))
        elif not batch.attempts and not batch.has_sequence:
            batch.put_stamp(NO_STAMP)
        batch.attempts += 1
        batch.is_in_flight = True
        batch.last_leader_epoch = queue.leader_epoch
        queue.is_muted = self._settings.max_in_flight == 1

    def _send(self, node_id: int, batches: list[ProducerBatch]) -> None:
        attempt = ProduceAttempt(batches, self._cluster.view, self._settings, self._cluster.client_id)
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        sent_s = self._world.now_s()
        self.metrics.on_request(batches, sent_s)
        asked = self._cluster.ask(
            node_id,
            attempt.request,
            api_key=ApiKey.PRODUCE,
            timeout_ms=self._settings.request_timeout_ms,
            newest=attempt.newest_version(self.newest_version()),
            has_response=self._settings.acks != 0,
        )
        asked.on_done(lambda done: self._on_answer(node_id, attempt, sent_s, done))

    # --- what stands in the way ---

    def _connect(self, node_id: int) -> None:
        if node_id not in self._connecting:
            self._connecting.add(node_id)
            self._world.start(self._wait_for_connection(node_id))

    async def _wait_for_connection(self, node_id: int) -> None:
        try:
            if self._cluster.is_pausing(node_id):
                self._cluster.refresh()
                await self._world.sleep(self._cluster.backoff.after(0, self._world.entropy))
            else:
                await self._cluster.versions_of(node_id)
        except KafkaError as problem:
            if not problem.retriable:
                raise
            await self._world.sleep(self._cluster.backoff.after(0, self._world.entropy))
        finally:
            self._connecting.discard(node_id)
        self.run()

    def _find_leaders(self, queues: dict[PartitionQueue, None]) -> None:
        """Batches wait for a leader; the answer of a refresh makes their queues ready again."""
        if NO_NODE not in self._connecting:
            self._connecting.add(NO_NODE)
            self._world.start(self._wait_for_leaders())

    async def _wait_for_leaders(self) -> None:
        try:
            await self._cluster.refresh()
            await self._world.sleep(self._cluster.backoff.after(0, self._world.entropy))
        finally:
            self._connecting.discard(NO_NODE)
        self.run()

    def _on_expiry(self) -> None:
        self._expiry = None
        for batch in self._accumulator.expired(self._settings.delivery_timeout_ms / 1000):
            why = self._cluster.last_problem or batch.queue.last_problem
            self._fail(batch, timed_out(batch, self._settings.delivery_timeout_ms, why), was_refused=False)
        self.run()

    # --- answers ---

    def _on_answer(self, node_id: int, attempt: ProduceAttempt, sent_s: float, done: Promise[Any]) -> None:
        """What an answer sets in motion (it may name a new leader) waits until all its batches are in place again: else
        the batch behind one that is to be sent again would be sent before it.
        """
        self._in_flight[node_id] -= 1
        self.metrics.on_answer(self._world.now_s() - sent_s)
        was_running, self._is_running = self._is_running, True
        try:
            self._settle(attempt, done)
        finally:
            self._is_running = was_running
        self.run()

    def _settle(self, attempt: ProduceAttempt, done: Promise[Any]) -> None:
        for batch in attempt.batches:
            batch.queue.is_muted = batch.is_in_flight = False
        if done.error is not None:
            problem = done.error
            assert isinstance(problem, KafkaError), f"an attempt ended with {problem!r}"
            for batch in attempt.batches:
                batch.note_unanswered()
                self._on_error(batch, problem, -1, {})
        elif self._settings.acks == 0:
            for batch in attempt.batches:
                self._complete(batch, -1, -1)
        else:
            self._on_response(attempt, done.value())
        for batch in attempt.batches:
            if batch.queue.has_complete:
                self._accumulator.make_ready(batch.queue)

    def _on_response(self, attempt: ProduceAttempt, response: Any) -> None:
        self.metrics.on_throttle_time(response.throttle_time_ms)
        unanswered = dict.fromkeys(attempt.batches)
        for batch, answer in attempt.answers(response):
            del unanswered[batch]
            if batch.is_done:
                continue  # it was too old already
            if answer.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._complete(batch, answer.base_offset, answer.log_append_time_ms)
                continue
            if (leader := new_leader(answer, response)) is not None:
                self._cluster.note_leader(batch.queue.topic_partition, *leader)
            error = error_for(answer.error_code, answer.error_message)
            refused = {one.batch_index: one.batch_index_error_message for one in answer.record_errors}
            self._on_error(batch, error, answer.log_start_offset, refused)
        for batch in unanswered:
            error = error_for(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker left {batch.queue.topic_partition} unanswered"
            )
            if not batch.is_done:
                self._on_error(batch, error, -1, {})

    def _is_answered_by_another(self, batch: ProducerBatch, error: KafkaError) -> bool:
        """Whether a batch that cannot be sent again is written, as an acknowledgement behind it tells.

        What a coordinator has against a transaction is not for the batch alone to know.
        """
        if self._sequences is None or error.retriable:
            return False
        is_about_batch = error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or not self._sequences.is_transactional
        return is_about_batch and self._sequences.is_written(batch)

    def _complete(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        if batch.is_done:
            return
        if self._sequences is not None:
            self._sequences.on_acked(batch, base_offset)
        if batch.queue.last_problem is not None:
            batch.queue.last_problem = None
            partition = batch.queue.topic_partition
            self._world.log.over(("produce", partition), f"records for {partition} are written")
        has_callbacks = bool(batch.callbacks)
        batch.complete(base_offset, log_append_time_ms)
        self._accumulator.release(batch, has_callbacks=has_callbacks)

    def _on_error(
        self, batch: ProducerBatch, error: KafkaError, log_start_offset: int, refused: dict[int, str | None]
    ) -> None:
        if batch.is_done:
            return
        if self._is_answered_by_another(batch, error):
            self._complete(batch, -1, -1)
            return
        if error.code == ErrorCode.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self._split(batch)
            return
        if self._sequences is not None and self._sequences.is_lost(batch, error.code):
            self._lose(batch, error_for(error.code, _LOST))
            return
        batch.note_refusal(error.code)
        if error.needs_metadata:
            self._cluster.refresh()
        if self._may_retry(batch, error, log_start_offset):
            batch.queue.last_problem = str(error)
            text = f"records for {batch.queue.topic_partition} are not written yet; trying again: {error}"
            self._world.log.trouble(("produce", batch.queue.topic_partition), text, after_s=LONG_S)
            self._retry(batch)
            return
        # The limit may have been lowered since a batch was written.
        is_unknown = error.code in FATE_UNKNOWN or (error.code == ErrorCode.MESSAGE_TOO_LARGE and batch.may_be_written)
        was_refused = not is_unknown and batch.attempts <= self._settings.retries
        self._fail(batch, error, was_refused=was_refused, refused=refused)

    def _may_retry(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        age_s = self._world.now_s() - batch.created_s
        if batch.attempts > self._settings.retries or age_s * 1000 >= self._settings.delivery_timeout_ms:
            return False
        by_sequence = None
        if self._sequences is not None:
            by_sequence = self._sequences.may_retry(batch, error.code, log_start_offset)
        return error.retriable if by_sequence is None else by_sequence

    def _retry(self, batch: ProducerBatch) -> None:
        self.metrics.on_retried(batch)
        batch.is_retried = True
        pause_ms = self._cluster.backoff.after(batch.attempts - 1, self._world.entropy)
        batch.not_before_s = self._world.now_s() + pause_ms / 1000
        self._accumulator.put_back(batch)

        def try_again() -> None:
            batch.not_before_s = min(batch.not_before_s, self._world.now_s())
            if batch.queue.has_complete:
                self._accumulator.make_ready(batch.queue)
                self.run()

        self._world.timers.after(pause_ms / 1000, try_again)

    def _split(self, batch: ProducerBatch) -> None:
        """A broker found a batch too large: its records go again in smaller ones, with its sequences."""
        self.metrics.on_split()
        queue = batch.queue
        parts = self._accumulator.split(batch)
        for part in parts:
            self._seal(queue, part)
        if self._sequences is not None:
            self._sequences.replace(batch, parts)
        for part in reversed(parts):
            self._accumulator.put_back(part)

    def _lose(self, batch: ProducerBatch, error: KafkaError) -> None:
        """A part, and the others of its whole: sent again under another epoch, they might be there twice."""
        assert batch.whole is not None, "only the whole is written without the parts"
        for part in batch.whole.parts():
            if not part.is_done:
                self._accumulator.withdraw(part)
                self._fail(part, error, was_refused=False)

    def _fail(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        *,
        was_refused: bool,
        refused: dict[int, str | None] | None = None,
    ) -> None:
        """A batch may be settled by then: by its parts, if it was split, or by what `on_failed` does with its error."""
        if not batch.is_done:
            self.on_failed(error)
        if batch.is_done:
            return
        if self._sequences is not None:
            if batch.attempts and not was_refused:
                self._sequences.leave_unresolved(batch)
            self._sequences.on_failed(batch, error.code, was_refused=was_refused)
        self.metrics.on_failed(batch)
        has_callbacks = bool(batch.callbacks)
        batch.fail(error, refused)
        self._accumulator.release(batch, has_callbacks=has_callbacks)

    def give_up(self, error: KafkaError, batches: list[ProducerBatch] | None = None) -> None:
        """Fails these, or everything that is not settled: the producer ends, or its transaction is aborted."""
        for batch in self._accumulator.unfinished() if batches is None else batches:
            self._accumulator.withdraw(batch)
            self._fail(batch, error, was_refused=False)

    def give_up_unsent(self, error: KafkaError) -> None:
        """Fails what was never sent; what is on its way is waited for."""
        for batch in self._accumulator.unfinished():
            if not batch.attempts:
                self._accumulator.withdraw(batch)
                self._fail(batch, error, was_refused=False)
