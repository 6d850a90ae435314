"""The three topics on a cluster: read into the state, and, while this worker leads, written in transactions.

Theory of operation. One consumer follows all partitions of the topics, in what is committed, and replays every record
into the state; nothing else changes it. `to_end` is done when everything that was committed by then is replayed.

The leader has a producer with the transactional id `connect-cluster-GROUP`, as a leader of Kafka Connect's with exactly
once has. `lead` takes the next epoch: brokers refuse what a former leader still sends, and abort what it left open, so
after `to_end` nothing can come that was not read. Records that are given together go in one transaction, and what comes
while one is on its way goes together in the next. When a transaction fails for good the lead is lost (`on_lost`), and
everything that waits is rejected: it is decided on again by whoever leads then.

A topic that has no name is kept in memory alone: configurations and states of a standalone worker.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import make_member
from ottla.client.errors import ClientClosed, KafkaError
from ottla.client.producer.append import Delivery
from ottla.client.producer.core import ProducerCore
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.connect.errors import ConnectError
from ottla.connect.worker.records import Fact, LogRecord, Topic
from ottla.connect.worker.state import State

_log = logging.getLogger(__name__)

_POLLED: Final = 500
_LATEST: Final = -1
_WRITE_MS: Final = 60_000
_INIT_MS: Final = 30_000
_READ_MS: Final = 30_000


class LeadLost(ConnectError):
    """Nothing can be written by this worker any more, until it leads again."""


Ends = Mapping[TopicPartition, int]
"""Offsets behind the last record of something."""


class _Entry(NamedTuple):
    records: tuple[LogRecord, ...]
    written: Promise[Ends]


class SharedLog:
    """`on_fact` is told of each record that was replayed, in its order."""

    def __init__(
        self,
        world: ClientWorld,
        consumer: ClientSettings,
        producer: ClientSettings,
        topics: Mapping[Topic, str | None],
        state: State,
        on_fact: Callable[[Fact], None],
    ) -> None:
        self._world = world
        self._producer_settings = producer
        self._names = {topic: name for topic, name in topics.items() if name is not None}
        self._topics = {name: topic for topic, name in self._names.items()}
        self._state = state
        self._on_fact = on_fact
        self._core = ConsumerCore(world, consumer, make_member)
        self._partitions: list[TopicPartition] = []
        self._waits: list[tuple[Ends, Promise[None]]] = []
        self._producer: ProducerCore | None = None
        self._initializing: ProducerCore | None = None
        self._waiting: deque[_Entry] = deque()
        self._is_writing = False
        self._is_closed = False
        self.on_lost: Callable[[str], None] = lambda why: None

    # --- reading ---

    async def load(self, partition_counts: Mapping[Topic, int]) -> None:
        """Reads the topics to their ends. Raises `KafkaError` or `TimeoutError`."""
        self._partitions = [
            TopicPartition(self._names[topic], number)
            for topic, count in partition_counts.items()
            for number in range(count)
        ]
        self._core.assign(self._partitions)
        self._core.seek_to_end_of(self._partitions, beginning=True)
        self._world.start(self._read())
        await self.to_end()

    async def _read(self) -> None:
        failures = 0
        while not self._is_closed:
            try:
                records = self._core.poll(_POLLED)
            except ClientClosed:
                return
            except OttlaError as problem:
                if failures == 0:
                    _log.warning("cannot read the worker's topics: %s; trying again", problem)
                await self._world.sleep(self._core.cluster.backoff.after(failures, self._world.entropy))
                failures += 1
                continue
            for record in records:
                self._replay(
                    LogRecord(
                        self._topics[record.topic],
                        b"" if record.key is None else bytes(record.key),
                        None if record.value is None else bytes(record.value),
                    )
                )
            self._tell_reached()
            if records:
                failures = 0
                await self._world.sleep(0)  # Other work has its turn.
            else:
                await self._core.activity()

    def _replay(self, record: LogRecord) -> None:
        """A record that nobody foresaw costs itself alone: a worker that stopped to read would stand still for ever."""
        try:
            fact = self._state.replay(record)
            if fact is not None:
                self._on_fact(fact)
        except Exception:
            _log.exception("a record of %s is left out: %.200r", self._names.get(record.topic), record.key)

    async def to_end(self, *topics: Topic) -> None:
        """Until what is committed now, in these topics or in all, is replayed. Raises `KafkaError`, `TimeoutError`."""
        names = {self._names[topic] for topic in topics or Topic if topic in self._names}
        partitions = {one: _LATEST for one in self._partitions if one.topic in names}
        if not partitions:
            return
        found = await self._core.look_up(partitions, _READ_MS)
        await self.reached({partition: one.offset for partition, one in found.items()})

    async def reached(self, ends: Ends) -> None:
        """Until everything before these offsets is replayed. Raises `TimeoutError`."""
        reached: Promise[None] = Promise()
        self._waits.append((ends, reached))
        self._tell_reached()
        await self._world.within(
            reached, _READ_MS, lambda: TimeoutError("the worker's topics were not read to their ends in time")
        )

    def _tell_reached(self) -> None:
        if not self._waits:
            return
        waits, self._waits = self._waits, []
        for ends, promise in waits:
            if all(self._position(partition) >= end for partition, end in ends.items()):
                promise.resolve_if_waiting(None)
            elif not promise.is_done:
                self._waits.append((ends, promise))

    def _position(self, partition: TopicPartition) -> int:
        position = self._core.subscription.state_of(partition).position
        return -1 if position is None else position.offset

    # --- writing ---

    @property
    def may_write(self) -> bool:
        return self._producer is not None

    async def lead(self) -> None:
        """Fences whoever led before. Raises `KafkaError`."""
        self.give_up("a new term begins")
        producer = self._initializing = ProducerCore(self._world, self._producer_settings, _NoWaiter(self._world))
        try:
            await self._world.within(
                producer.the_transactions().init(),
                _INIT_MS,
                lambda: producer.the_transactions().too_late(_INIT_MS / 1000),
            )
        except Exception:
            producer.close()
            raise
        finally:
            self._initializing = None
        self._producer = producer

    def give_up(self, why: str) -> None:
        """Nothing more is written; a transaction that is on its way may still be."""
        producers = (self._producer, self._initializing)
        self._producer = self._initializing = None
        for producer in producers:
            if producer is not None:
                producer.close()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            entry.written.reject_if_waiting(LeadLost(why))

    def write(self, records: Sequence[LogRecord]) -> Promise[Ends]:
        """Where they end, when all are committed. They are read a moment later: a broker answers a commit before its
        markers are written, and until then `to_end` does not know of them. Rejected with `LeadLost`.
        """
        for record in records:
            if record.topic not in self._names:
                self._replay(record)
        kept = tuple(record for record in records if record.topic in self._names)
        if not kept:
            return Promise.resolved({})
        if self._producer is None:
            return Promise.rejected(LeadLost("this worker does not lead"))
        entry = _Entry(kept, Promise())
        self._waiting.append(entry)
        if not self._is_writing:
            self._is_writing = True
            self._world.start(self._write_all())
        return entry.written

    async def _write_all(self) -> None:
        await self._world.sleep(0)  # What comes in one turn goes together.
        try:
            while self._waiting and self._producer is not None:
                entries = list(self._waiting)
                self._waiting.clear()
                await self._write_entries(self._producer, entries)
        finally:
            self._is_writing = False

    async def _write_entries(self, producer: ProducerCore, entries: list[_Entry]) -> None:
        transactions = producer.the_transactions()
        try:
            transactions.begin()
            deliveries = [(entry, await self._send(producer, record)) for entry in entries for record in entry.records]
            await self._world.within(transactions.commit(), _WRITE_MS, lambda: transactions.too_late(_WRITE_MS / 1000))
        except (KafkaError, ClientClosed) as problem:
            for entry in entries:
                entry.written.reject_if_waiting(LeadLost(str(problem)))
            if producer is self._producer:
                self.give_up(str(problem))
                self.on_lost(str(problem))
            return
        for entry in entries:
            ends: dict[TopicPartition, int] = {}
            for given, delivery in deliveries:
                if given is entry:
                    place = delivery.result()
                    assert place.offset is not None, "what is committed has an offset"
                    partition = TopicPartition(place.topic, place.partition)
                    ends[partition] = max(ends.get(partition, 0), place.offset + 1)
            entry.written.resolve_if_waiting(ends)

    async def _send(self, producer: ProducerCore, record: LogRecord) -> Delivery:
        name = self._names[record.topic]
        deadline_s = self._world.now_s() + _WRITE_MS / 1000
        while True:
            outcome = producer.send(name, record.value, record.key, None, None, None, None)
            if not isinstance(outcome, Promise):
                return outcome
            left_ms = (deadline_s - self._world.now_s()) * 1000
            await self._world.within(outcome, left_ms, lambda: producer.too_late(name))

    # --- the end ---

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.give_up("the worker stops")
            self._core.stop()
            waits, self._waits = self._waits, []
            for _, promise in waits:
                promise.reject_if_waiting(ClientClosed("the worker stops"))


class _NoWaiter:
    """For a producer whose records are waited for by their transaction alone."""

    lock = nullcontext()

    def __init__(self, world: ClientWorld) -> None:
        self._world = world

    def wait(self, promise: Promise[Any], timeout_s: float | None) -> None:
        raise AssertionError("nothing waits for a single record")

    async def awaited(self, promise: Promise[Any]) -> None:
        raise AssertionError("nothing waits for a single record")

    def call_back(self, callback: Callable[[Any], None], argument: Any) -> None:
        self._world.timers.after(0, lambda: callback(argument))

    def nudge(self) -> None:
        """Callbacks come by themselves."""
