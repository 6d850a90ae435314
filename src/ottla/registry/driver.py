"""Drives the machine: reads the topic into the state, and, while this registry leads, writes what is decided.

Theory of operation. A reader replays every record of `_schemas` into `state`, which is what is served. While it leads,
a registry has a term: a second state, `ahead`, in which what was decided counts at once. A command decides there, its
records are appended, and its reply is given when they are committed and replayed into `state`. So a reply never tells
of what may still be lost, and commands need not wait for each other.

A term begins with the next producer epoch and a NOOP (`log_writer`), and with reading up to it: then nothing can be
written before it that was not read. It ends when another registry is elected, when a broker says that another epoch is
newer, or when a write fails: `ahead` is thrown away, and commands that wait are passed on to the next leader. One
whose records may have been written is passed on only if doing it twice is doing it once.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import make_member
from ottla.client.errors import ClientClosed
from ottla.client.promise import Promise, spawn
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.registry.api import NotLeader
from ottla.registry.decisions import Command, Register, SetConfig, SetMode
from ottla.registry.election import Election, ElectionSettings, Identity
from ottla.registry.log_writer import LogWriter, TooLarge, WriterSettings, WritingEnded
from ottla.registry.records import Record, noop_record
from ottla.registry.refusals import Refused, schema_too_large, store_failed, timed_out
from ottla.registry.state import State
from ottla.registry.texts import Texts

_log = logging.getLogger(__name__)

_POLLED: Final = 500
_MOST_CHANGES: Final = 10_000
"""That may be under way."""
_TWICE_IS_ONCE: Final = (Register, SetConfig, SetMode)
_LATEST: Final = -1


class DriverSettings(NamedTuple):
    writer: WriterSettings = WriterSettings()
    election: ElectionSettings = ElectionSettings()
    timeout_ms: int = 10_000
    """How long a change may take (`kafkastore.timeout.ms`)."""
    default_level: str = "BACKWARD"


class _TermOver(Exception):
    """What was decided is not written, or not known to be: it is decided on again, here or elsewhere."""


class Driver:
    """`on_changed` is notified of every record that has changed the state."""

    def __init__(
        self,
        world: ClientWorld,
        consumer_settings: ClientSettings,
        admin_settings: ClientSettings,
        settings: DriverSettings,
        identity: Identity,
        texts: Texts,
        on_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._world = world
        self._settings = settings
        self._texts = texts
        self._on_changed = on_changed
        self.state = State(settings.default_level)
        self.is_loaded = False
        self.loading_s = 0.0
        """How long the topic took to load."""
        self.next_offset = 0
        """All before it is replayed."""
        self.end_offset = 0
        """Where the topic ended when it was loaded."""
        self.leader: Identity | None = None
        """Who decides on changes, as far as the group has reported."""
        self._partition = TopicPartition(settings.writer.topic, 0)
        self._core = ConsumerCore(world, consumer_settings, make_member)
        self._read_last = -1
        self.cluster = Cluster(world, admin_settings)
        coordinators = Coordinators(self.cluster)
        self.election = Election(self.cluster, coordinators, settings.election, identity, self._on_leader)
        self.writer = LogWriter(
            self.cluster,
            coordinators,
            settings.writer,
            may_write=lambda: self.election.has_lease,
        )
        self.writer.on_ended = self._on_writing_ended
        self._ahead: State | None = None
        self._term = 0
        self._leading: Promise[None] = Promise.resolved(None)
        """Done when changes can be decided on here, or when that is another's to do."""
        self._changing = 0
        self._own: set[int] = set()
        """Offsets of records that this registry wrote and has still to read."""
        self._waits: list[tuple[int, Promise[None]]] = []
        self._is_closed = False

    # --- the beginning and the end ---

    async def load(self, timeout_s: float) -> None:
        """Reads the topic to its end. Raises `KafkaError` or `TimeoutError`."""
        world, partition = self._world, self._partition
        began_s = world.now_s()
        self._core.assign([partition])
        self._core.seek_to_end_of([partition], beginning=True)
        world.start(self._read())
        found = await self._core.look_up({partition: _LATEST}, timeout_s * 1000)
        self.end_offset = found[partition].offset
        left_ms = max(timeout_s - (world.now_s() - began_s), 0.0) * 1000
        await world.within(
            self.reached(self.end_offset - 1),
            left_ms,
            lambda: TimeoutError(f"{partition.topic} was not read to its end within {timeout_s:.0f} s"),
        )
        self.is_loaded = True
        self.loading_s = world.now_s() - began_s

    def start(self) -> None:
        """Takes part in the election from now on."""
        self.election.start()

    async def stop(self) -> None:
        """Gives the lead up, and tells the others."""
        self._end_term("the registry stops")
        await self.election.stop()
        self.close()

    def close(self) -> None:
        """Lets go of everything at once."""
        if self._is_closed:
            return
        self._is_closed = True
        self._end_term("the registry stops")
        self._core.stop()
        self.cluster.close()
        waits, self._waits = self._waits, []
        for _, waiting in waits:
            waiting.reject_if_waiting(ClientClosed("the registry stops"))

    # --- reading ---

    async def _read(self) -> None:
        failures = 0
        while not self._is_closed:
            try:
                records = self._core.poll(_POLLED)
            except ClientClosed:
                return
            except OttlaError as problem:
                if failures == 0:
                    _log.warning("cannot read %s: %s; trying again", self._partition.topic, problem)
                await self._world.sleep(self.cluster.backoff.after(failures, self._world.entropy))
                failures += 1
                continue
            for record in records:
                self._on_record(record.offset, record.key, record.value, record.timestamp)
            self._on_position()
            if records:
                failures = 0
                await self._world.sleep(0)  # Other work has its turn.
            else:
                await self._core.activity()

    def _on_record(self, offset: int, key: Any, value: Any, timestamp_ms: int) -> None:
        if offset <= self._read_last:
            self._begin_again()
        self._read_last = offset
        if offset < self.next_offset:
            return  # One of our own, applied when it was acknowledged.
        key, value = None if key is None else bytes(key), None if value is None else bytes(value)
        is_own = offset in self._own or self.writer.is_under_way(key, value)
        self._own.discard(offset)
        if self._take(offset, key, value, timestamp_ms) and self._ahead is not None and not is_own:
            # Another registry has written, one that cannot be fenced. What was decided may rest on what does not hold
            # any more.
            _log.warning("another registry has written to %s at offset %d", self._partition.topic, offset)
            self._begin_term()

    def _take(self, offset: int, key: bytes | None, value: bytes | None, timestamp_ms: int) -> bool:
        self.next_offset = offset + 1
        has_changed = self.state.replay(key, value, timestamp_ms, self._ahead) is not None
        if has_changed:
            self._on_changed()
        return has_changed

    def _on_position(self) -> None:
        """Offsets without a record count as read: the last of a log may have been compacted away."""
        position = self._core.subscription.state_of(self._partition).position
        if position is not None and position.offset > self.next_offset:
            self.next_offset = position.offset
        self._tell_reached()

    def _begin_again(self) -> None:
        _log.error("reading %s from its beginning: it was deleted and created again", self._partition.topic)
        if not self.election.leads:
            self._end_term("the topic begins anew")
        self.state = State(self._settings.default_level)
        self.next_offset = 0
        self._own.clear()
        self._on_changed()
        if self.election.leads:
            self._begin_term()

    def reached(self, offset: int) -> Promise[None]:
        """Done when the record at this offset was replayed."""
        if offset < self.next_offset:
            return Promise.resolved(None)
        promise: Promise[None] = Promise()
        self._waits.append((offset, promise))
        return promise

    def _tell_reached(self) -> None:
        if any(offset < self.next_offset for offset, _ in self._waits):
            done = [promise for offset, promise in self._waits if offset < self.next_offset]
            self._waits = [one for one in self._waits if one[0] >= self.next_offset]
            for promise in done:
                promise.resolve_if_waiting(None)

    # --- leading ---

    @property
    def leads(self) -> bool:
        """Whether changes are decided on here, now."""
        return self._ahead is not None

    def _on_leader(self, leader: Identity | None, is_self: bool) -> None:
        before, self.leader = self.leader, leader
        if is_self:
            if self._ahead is None and self._leading.is_done:
                self._begin_term()
            return
        if (leader and leader.url) != (before and before.url):
            _log.info("%s leads", "no registry" if leader is None else leader.url)
        self._end_term("another registry leads")

    def _begin_term(self, pause_ms: float = 0.0) -> None:
        if self._leading.is_done:
            self._leading = Promise()
        self._ahead = None
        self._term += 1
        self.writer.end("a new term begins")
        self._world.start(self._take_over(self._term, pause_ms))

    async def _take_over(self, term: int, pause_ms: float) -> None:
        failures = 0
        while term == self._term:
            if pause_ms:
                await self._world.sleep(pause_ms)
                if term != self._term:
                    return
            try:
                offset = await self.writer.begin(noop_record(self.state.max_ids_to_keep()))
                await self.reached(offset)
            except (WritingEnded, ClientClosed) as problem:
                if term == self._term:
                    _log.warning("cannot become the leader: %s; trying again", problem)
                pause_ms = self.cluster.backoff.after(failures, self._world.entropy)
                failures += 1
                continue
            if term == self._term:
                self._ahead = self.state.copy()
                _log.info("this registry is the leader, in epoch %d", self.writer.epoch)
                self._leading.resolve_if_waiting(None)
            return

    def _end_term(self, why: str) -> None:
        if self._ahead is not None:
            _log.info("this registry is no longer the leader: %s", why)
        self._term += 1
        self._ahead = None
        self.writer.end(why)
        self._leading.resolve_if_waiting(None)

    def _on_writing_ended(self, why: str) -> None:
        """A write has failed for good. If this registry is still the one that was elected, it takes the next epoch."""
        _log.warning("writing to %s ended: %s", self._partition.topic, why)
        if self.election.leads and not self._is_closed:
            self._begin_term(self.cluster.backoff.after(0, self._world.entropy))
        else:
            self._end_term(why)

    # --- changes ---

    def change(self, command: Command[Any]) -> Promise[Any]:
        """Rejected with `Refused`, or with `NotLeader` if another registry has to decide."""
        if self._changing >= _MOST_CHANGES:
            return Promise.rejected(store_failed("Too many changes are under way"))
        self._changing += 1
        outcome = self._world.within(
            spawn(self._change(command)),
            self._settings.timeout_ms,
            lambda: timed_out("Write to the Kafka store timed out"),
        )
        outcome.on_done(self._on_change_done)
        return outcome

    def _on_change_done(self, _: Promise[Any]) -> None:
        self._changing -= 1

    async def _change(self, command: Command[Any]) -> Any:
        while True:
            if self._ahead is None and self.election.leads:
                await self._leading
            if self._is_closed:
                raise store_failed("the registry stops")
            ahead, term = self._ahead, self._term
            if ahead is None:
                raise NotLeader
            try:
                return await self._decide(command, ahead, term)
            except _TermOver:
                continue

    async def _decide(self, command: Command[Any], ahead: State, term: int) -> Any:
        try:
            while True:
                basis = command.basis(ahead)
                prepared = await command.prepare(ahead, self._texts)
                self._check(term)
                if command.basis(ahead) == basis:
                    break
            decision = command.decide(ahead, prepared)
        except Refused:
            await self._settle(term)
            raise
        if not decision.records:
            await self._settle(term)
            return decision.reply
        if self.writer.is_too_large(decision.records):
            raise schema_too_large()
        now_ms = self._world.clock.now_ms()
        for record in decision.records:
            ahead.replay(record.key, record.value, now_ms)
        await self._write(command, decision.records, now_ms)
        return decision.reply

    def _check(self, term: int) -> None:
        if term != self._term:
            raise _TermOver

    async def _settle(self, term: int) -> None:
        """Until all that was decided before is committed and replayed: a reply may rest on it."""
        self._check(term)
        last = self.writer.last
        if last is not None:
            try:
                await self.reached(await last)
            except WritingEnded:
                raise _TermOver from None

    async def _write(self, command: Command[Any], records: tuple[Record, ...], now_ms: int) -> None:
        """Many records go in several batches. What is there if only the first of them are written is a state, too: each
        command orders its records so that doing it once more completes it."""
        under_way = []
        for part in self.writer.parts(records):
            written = self.writer.append(part, now_ms)
            written.on_done(partial(self._on_written, part, now_ms))
            under_way.append((part, written))
        is_begun = False
        for part, written in under_way:
            try:
                last = await written
            except WritingEnded as problem:
                if isinstance(problem, TooLarge) and len(part) == 1:
                    raise schema_too_large() from None
                if (problem.is_uncertain or is_begun) and not isinstance(command, _TWICE_IS_ONCE):
                    raise store_failed(f"Error while writing to the Kafka store: {problem}") from None
                raise _TermOver from None
            is_begun = True
        await self.reached(last)

    def _on_written(self, records: tuple[Record, ...], now_ms: int, written: Promise[int]) -> None:
        if written.error is not None:
            return
        last = written.value()
        first = last - len(records) + 1
        if first == self.next_offset:
            # It is acknowledged, so it is committed; and nothing before it has to be read first.
            for place, record in enumerate(records):
                self._take(first + place, record.key, record.value, now_ms)
            self._tell_reached()
        elif first > self.next_offset:
            self._own.update(range(first, last + 1))
