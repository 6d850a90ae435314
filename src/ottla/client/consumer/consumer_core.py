"""A consumer without I/O: what its blocking and its asyncio face call, one thread at a time.

Theory of operation. `poll` hands out what was fetched, and sees to it that more is: it finds missing positions and asks
brokers ahead of the application. When there is nothing to hand out, `activity` is done as soon as there may be; a face
waits for it and polls again. What must run in the application's own call (its rebalance listener, callbacks of commits)
waits in `tasks`. An error that no call is waiting for waits for the next `poll`, which raises it.

One file because all calls of the application meet here, and each decides what the next poll may hand out.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from ottla.base.freed_memory import keep_freed_memory
from ottla.base.ids import TopicPartition
from ottla.client.cluster.application_callbacks import ApplicationCallback, Statistics
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.cluster.view import ClusterView
from ottla.client.consumer.consumer_metrics import ConsumerMetrics
from ottla.client.consumer.consumer_settings import ConsumerSettings
from ottla.client.consumer.fetching.fetch_errors import FetchErrors
from ottla.client.consumer.fetching.fetched_chunks import Chunk, FetchedChunks, RecordReading
from ottla.client.consumer.fetching.fetcher import Fetcher
from ottla.client.consumer.group_bond import GroupBond, RebalanceListener, UserTask
from ottla.client.consumer.offsets.committing import Committer
from ottla.client.consumer.offsets.consumed_offsets import ConsumedOffsets
from ottla.client.consumer.offsets.offset_lookup import FoundOffset, look_up_offsets
from ottla.client.consumer.offsets.offset_reset import EARLIEST, LATEST
from ottla.client.consumer.offsets.positions import Positions
from ottla.client.consumer.subscription import NO_EPOCH, FetchPosition, Mode, Subscription
from ottla.client.errors import (
    ClientClosed,
    InvalidGroupId,
    InvalidState,
    KafkaError,
    NoOffsetForPartition,
    RequestTimedOut,
    Wakeup,
    error_for,
)
from ottla.client.interceptors import Interceptors
from ottla.client.membership.member import NO_GENERATION, Identity, LeaveBehaviour, Member
from ottla.client.promise import Promise
from ottla.client.settings import ClientSettings
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.client.world import ClientWorld
from ottla.records.kernel import ConsumerRecord
from ottla.wire.errors import ErrorCode

MakeMember = Callable[[Cluster, Coordinators, ClientSettings, GroupBond], Member]

_FATAL_TOPIC_ERRORS: Final = frozenset((ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED))


class ConsumerCore:
    """`make_member` makes the member of a consumer that has a group and subscribes."""

    def __init__(self, world: ClientWorld, client_settings: ClientSettings, make_member: MakeMember) -> None:
        self.settings = settings = ConsumerSettings.of(client_settings)
        self.world = world
        self.metrics = ConsumerMetrics()
        self.cluster = Cluster(world, client_settings, creates_topics=settings.creates_topics)
        self.coordinators = Coordinators(self.cluster)
        reading = RecordReading(
            check_crcs=settings.check_crcs,
            key_deserializer=settings.key_deserializer,
            value_deserializer=settings.value_deserializer,
        )
        self.chunks = FetchedChunks(reading, self.cluster.spare_buffers, settings.max_partition_fetch_bytes)
        self.subscription = Subscription(self.chunks.discard)
        self.is_closed = False
        self._errors: deque[Exception] = deque()
        self._activity: Promise[None] = Promise()
        self._is_woken = False
        self._is_started = False
        """Whether the application has polled: nothing is looked up or fetched before."""
        self._is_work_due = True
        self._client_settings = client_settings
        self._make_member = make_member
        self._member: Member | None = None
        self._committer: Committer | None = None
        if settings.group_id is not None:
            self._committer = Committer(
                self.cluster,
                self.coordinators,
                settings.group_id,
                self.metrics,
                is_new_protocol=client_settings.text("group.protocol").lower() == "consumer",
                identity=lambda: self.identity,
                on_refused=self._on_commit_refused,
            )
        self.interceptors = Interceptors(client_settings, world.report)
        self._statistics = Statistics(world.timers)
        self.bond = GroupBond(
            world,
            self.subscription,
            self.metrics,
            commit=(lambda revoked: self.offsets.commit_partitions(revoked)) if settings.auto_commits else None,
            is_member=lambda: self.identity.generation != NO_GENERATION,
            tell=self.tell,
            on_activity=self.stir,
        )
        self.offsets = ConsumedOffsets(
            world,
            settings,
            self.subscription,
            self._committer,
            self.bond.tasks,
            identity=lambda: self.identity,
            on_task=self._settle_activity,
            on_commit=self.interceptors.on_commit if self.interceptors else None,
        )
        errors = FetchErrors(self.cluster, self.subscription, settings.offset_reset, tell=self.tell, retry=self.work)
        self._positions = Positions(
            self.cluster,
            settings,
            self.subscription,
            self.chunks,
            self._committer,
            tell=self.tell,
            on_found=self.stir,
        )
        self._fetcher = Fetcher(
            self.cluster,
            settings,
            self.subscription,
            self.chunks,
            errors,
            self.metrics,
            is_validated=self._positions.is_validated,
            on_arrival=self._settle_activity,
        )
        keep_freed_memory()
        self.cluster.on_update(self._on_view)
        self.cluster.offer_metrics("consumer", self.snapshot)

    # --- polling ---

    @property
    def tasks(self) -> deque[UserTask]:
        """To be run, one after the other, in the application's call."""
        return self.bond.tasks

    def poll(self, most: int, records: list[ConsumerRecord] | None = None) -> list[ConsumerRecord]:
        """At most so many records; none if none are there. Raises what went wrong since the last call.

        `records` is the list that they go into: a caller who is interrupted has those that were taken by then.
        """
        self._begin_poll()
        records = [] if records is None else records
        self.chunks.take(records, most)
        self.metrics.records_consumed += len(records)
        if self.chunks.has_new_room() and not (records and self._fetcher.is_late):
            self._fetcher.fetch()
        return records

    def poll_chunk(self) -> Chunk | None:
        """The oldest chunk of one partition, whole, to be decoded in another way."""
        self._begin_poll()
        chunk = self.chunks.take_chunk()
        if chunk is not None:
            self._fetcher.fetch()
        return chunk

    def put_back_chunk(self, chunk: Chunk) -> None:
        """A chunk that was not handed out after all is fetched again, unless its partition was moved since."""
        if chunk.moves == chunk.state.moves:
            self.subscription.seek(chunk.state.partition, chunk.start)
            self.work()

    def _begin_poll(self) -> None:
        if self.is_closed:
            raise ClientClosed("the consumer was closed")
        if self._is_woken:
            self._is_woken = False
            raise Wakeup
        while self._errors:
            self._is_work_due = True  # what failed is tried again by the poll after this one
            error = self._errors.popleft()
            if not self._is_settled(error):
                raise error
        if self.subscription.mode is Mode.NONE:
            raise InvalidState("there is nothing to poll: subscribe to topics or assign partitions first")
        self.subscription.take_back_unread()
        now_s = self.world.now_s()
        self.metrics.on_poll(now_s)
        self.bond.on_poll()
        if self._member is not None and self.subscription.mode is not Mode.ASSIGNED:
            self._member.on_poll()
        self.offsets.on_poll(now_s)
        if self._is_work_due:
            self._is_started, self._is_work_due = True, False
            self.work()
        elif self._fetcher.is_late and not self.chunks.is_ready:
            self._fetcher.fetch()

    def _is_settled(self, error: Exception) -> bool:
        """Whether the application has said meanwhile where to read: between `assign` and `seek` no poll looks on."""
        if not isinstance(error, NoOffsetForPartition):
            return False
        states = map(self.subscription.partitions.get, error.partitions)
        return all(state is None or state.position is not None or state.reset is not None for state in states)

    def activity(self) -> Promise[None]:
        """Done when another `poll` may bring something."""
        if self._errors or self.tasks or self._is_woken or self.chunks.is_ready:
            return Promise.resolved(None)
        return self._activity

    def stirred(self) -> Promise[None]:
        """For a call that waits for something else: done when there is a task or a `wakeup` to look at."""
        return Promise.resolved(None) if self.tasks or self._is_woken else self._activity

    def work(self) -> None:
        """Begins all that can begin now. Only once the application has polled."""
        if self._is_started and not self.is_closed:
            self._positions.find_missing()
            self._fetcher.fetch()

    def stir(self) -> None:
        """Something has changed: there may be work, and there may be something for the application."""
        self.work()
        self._settle_activity()

    def tell(self, error: Exception) -> None:
        """For the next `poll`. What is reported again and again is raised once, however long nobody polls."""
        if not isinstance(error, ClientClosed):
            if not any(type(known) is type(error) and str(known) == str(error) for known in self._errors):
                self._errors.append(error)
            self._settle_activity()

    def wakeup(self) -> None:
        self._is_woken = True
        self._settle_activity()

    def take_wakeup(self) -> bool:
        """For a call that is not a poll, and waits: whether it is to end with `Wakeup`."""
        woken, self._is_woken = self._is_woken, False
        return woken

    def _settle_activity(self) -> None:
        waiting, self._activity = self._activity, Promise()
        waiting.resolve(None)

    # --- what is read ---

    def subscribe(self, topics: Collection[str], listener: RebalanceListener | None) -> None:
        member = self._subscribing(listener)
        self.subscription.subscribe_topics(topics)
        self.cluster.set_topics(sorted(topics))
        self.cluster.refresh()
        member.subscribe(sorted(topics))
        self.stir()

    def subscribe_pattern(
        self, pattern: str, matches: Callable[[str], object], listener: RebalanceListener | None
    ) -> None:
        """Topics that match, as metadata tells of them."""
        self._subscribing(listener)
        self.subscription.subscribe_pattern(pattern, matches)
        self.cluster.want_all_topics()
        self.cluster.refresh()
        self._match_topics(self.cluster.view)
        self.stir()

    def subscribe_server_pattern(self, pattern: str, listener: RebalanceListener | None) -> None:
        """The coordinator matches (KIP-848); we learn topics by being assigned their partitions."""
        member = self._subscribing(listener)
        member.subscribe_pattern(pattern)
        self.subscription.subscribe_server_pattern(pattern)
        self.cluster.want_all_topics()
        self.cluster.refresh()
        self.stir()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        self.subscription.take_back_unread()
        self.subscription.assign(wanted)
        self.cluster.set_topics(sorted({partition.topic for partition in wanted}))
        self.cluster.refresh()
        self.stir()

    async def unsubscribe(self) -> None:
        """Gives up everything; a member leaves its group."""
        self.subscription.take_back_unread()
        if self._member is not None and self.subscription.mode is not Mode.ASSIGNED:
            await self._leave(LeaveBehaviour.DEFAULT)
        self.subscription.clear()
        self._errors.clear()

    def _subscribing(self, listener: RebalanceListener | None) -> Member:
        if self.settings.group_id is None:
            raise InvalidGroupId("a consumer that subscribes needs a group.id; without one, assign partitions")
        if self._member is None:
            self._member = self._make_member(self.cluster, self.coordinators, self._client_settings, self.bond)
        self.bond.listener = listener
        return self._member

    def _on_view(self, view: ClusterView) -> None:
        for name in sorted(self.subscription.topics):
            topic = view.topics.get(name)
            if topic is not None and topic.error in _FATAL_TOPIC_ERRORS:
                self.tell(error_for(topic.error, f"topic {name!r} cannot be read"))
        if self.subscription.mode is Mode.PATTERN:
            self._match_topics(view)
        self.work()

    def _match_topics(self, view: ClusterView) -> None:
        matches = self.subscription.matches
        assert matches is not None
        assert self._member is not None
        found = frozenset(
            name
            for name, topic in view.topics.items()
            if not (topic.is_internal and self.settings.excludes_internal_topics) and matches(name)
        )
        if found != self.subscription.topics or not self._is_started:
            self.subscription.topics = found
            self._member.subscribe(sorted(found))

    # --- positions ---

    def seek(self, partition: TopicPartition, offset: OffsetAndMetadata) -> None:
        epoch = NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch
        self.subscription.take_back_unread()
        self.subscription.seek(partition, FetchPosition(offset.offset, epoch))
        self.stir()

    def seek_to_end_of(self, partitions: Collection[TopicPartition], *, beginning: bool) -> None:
        """Both ends are found when the position is needed. No partitions stands for all."""
        self.subscription.take_back_unread()
        for partition in partitions or list(self.subscription.partitions):
            self.subscription.reset(partition, EARLIEST if beginning else LATEST)
        self.stir()

    def pause(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        self.subscription.take_back_unread()
        for partition in partitions:
            state = self.subscription.state_of(partition)
            state.is_paused = is_paused
            if is_paused:
                self.chunks.on_paused(state)
        self.stir()

    async def position(self, partition: TopicPartition, timeout_ms: float) -> int:
        """Where the consumer stands, looked up if it is not known. Raises `RequestTimedOut`."""
        state = self.subscription.state_of(partition)
        deadline_s = self.world.now_s() + timeout_ms / 1000
        while state.position is None:
            self._positions.find_missing()
            if state.position is not None:
                break
            if self._errors:
                raise self._errors.popleft()
            left_ms = max((deadline_s - self.world.now_s()) * 1000, 0)
            await self.world.within(
                self._activity, left_ms, lambda: RequestTimedOut(f"the position in {partition} was not found in time")
            )
        return self.subscription.unread.offsets().get(partition, state.position.offset)

    async def look_up(
        self, wanted: Mapping[TopicPartition, int], timeout_ms: float
    ) -> dict[TopicPartition, FoundOffset]:
        """As ListOffsets does: the first offset of that time or later; -2 and -1 stand for the ends."""
        deadline_s = self.world.now_s() + timeout_ms / 1000
        return await look_up_offsets(self.cluster, wanted, self.settings.isolation_level, deadline_s)

    def lag(self, partition: TopicPartition) -> int | None:
        """As far as fetches have reported; with read committed, up to the last stable offset."""
        return self.subscription.state_of(partition).lag(is_committed=self.settings.isolation_level != 0)

    # --- the group ---

    @property
    def identity(self) -> Identity:
        return Identity() if self._member is None else self._member.identity

    def _on_commit_refused(self, code: ErrorCode, identity: Identity) -> None:
        if self._member is not None:
            self._member.on_commit_refused(code, identity)

    def enforce_rebalance(self, reason: str) -> None:
        if self._member is None:
            raise InvalidState("only a consumer that is a member of a group can have it rebalance")
        self._member.request_rejoin(reason)

    def intercepted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """What interceptors make of records that are about to be handed out. After an interrupt they still are."""
        try:
            return self.interceptors.on_consume(records)
        except BaseException:
            self.subscription.unread.hand_out(records)
            raise

    # --- the end ---

    async def close(self, behaviour: LeaveBehaviour = LeaveBehaviour.DEFAULT) -> None:
        """Commits if it does so by itself, leaves the group, ends the sessions. Afterwards `stop` ends the rest."""
        self.subscription.take_back_unread()
        await self.offsets.all_made()
        if self._member is not None:
            await self._leave(behaviour)
        elif self.settings.auto_commits:
            await self.offsets.commit_quietly()
        await self._fetcher.close()

    async def _leave(self, behaviour: LeaveBehaviour) -> None:
        """Revoking commits what was consumed; a member that stays in the group has nothing revoked, so commit first."""
        assert self._member is not None
        if self.settings.auto_commits:
            await self.offsets.commit_quietly()
        self.bond.is_leaving = True
        self.bond.on_poll()
        await self._member.leave(behaviour)
        self.bond.is_leaving = False

    def stop(self) -> None:
        """At once. What is asked and not answered is rejected."""
        if not self.is_closed:
            self.interceptors.close()
        self.is_closed = True
        self._statistics.stop()
        self.subscription.clear()
        self.cluster.close()
        self._settle_activity()

    def _call_in_poll(self, callback: Callable[[Any], None], argument: Any) -> None:
        """Has the application's own call run it, as soon as there is one."""
        self.tasks.append(UserTask(lambda: callback(argument), lambda problem: None))
        self._settle_activity()

    def on_error(self, callback: Callable[[KafkaError], None]) -> None:
        self.cluster.on_problem = ApplicationCallback(callback, self._call_in_poll)

    def on_statistics(self, callback: Callable[[dict[str, float]], None], interval_s: float) -> None:
        self._statistics.tell(ApplicationCallback(callback, self._call_in_poll), self.snapshot, interval_s)

    def snapshot(self) -> dict[str, float]:
        return self.metrics.snapshot(self.subscription, self.chunks.handed_out_bytes, self.world.now_s())

    def group_identity(self) -> tuple[str, Identity]:
        """For a transaction that commits this consumer's offsets."""
        if self.settings.group_id is None:
            raise InvalidGroupId("a consumer without a group.id has no group")
        return self.settings.group_id, self.identity
