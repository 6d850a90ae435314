"""Fetch, versions 4 to 18: reading records, at once or when there are some.

Left out: tiered storage. A consumer may read from a follower (KIP-392): what the leader says is committed counts as
committed there.

A request reads its partitions in order until `max_bytes` are used up; the first batch of the first partition that has
one comes whole, however large (KIP-74). If there is less than `min_bytes`, no partition has an error and time is left,
the request waits at all of its partitions, and each append there makes it look at that partition again. What it replies
is read anew at the end. What is not in memory of that which says where records are, a worker reads first
(`cold_reads`); the records themselves are sent from their file, by a worker too if they are cold (`runtime.outbox`).
"""

from functools import partial
from math import ceil

from ottla.base.ids import ZERO_UUID
from ottla.base.ports import ColdRead, File
from ottla.broker.data.fetch_lookup import look_in_steps, look_up
from ottla.broker.data.fetch_reader import NOT_IN_METADATA, FetchReader
from ottla.broker.data.fetch_replies import RESPONSE, put_partitions
from ottla.broker.data.fetch_sessions import FetchContext, FetchSessions, PartitionKey, Read, Wanted
from ottla.broker.data.follower_progress import FollowerProgress
from ottla.broker.data.leader_hints import current_leader, node_endpoints
from ottla.broker.data.plain_fetch import (
    HAS_REPLICA_STATE,
    USES_TOPIC_IDS,
    AtEnd,
    WaitingFetch,
    count_plain,
    read_plain,
)
from ottla.broker.data.plain_fetch import Read as PlainRead
from ottla.broker.data.replica_selector import chooses_replicas, selector_of
from ottla.broker.partitions.cold_reads import MOST_ROUNDS, warm
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.partitions.purgatory import MayRead, Operation, Place
from ottla.broker.quotas.client_quotas import FREE, ClientQuotas, FetchCharge
from ottla.log.errors import STORAGE_PROBLEMS
from ottla.log.outcomes import FileSlice
from ottla.runtime.large_requests.parts import MOST_BYTES_AT_ONCE, MOST_ENTRIES_AT_ONCE
from ottla.runtime.large_requests.slow_lane import Steps, let_go
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import FetchRequest, FetchResponse

_UNKNOWN_EPOCH = -1
_HAS_LEADER_HINTS = 16

_STEP = 100
"""Partitions that are read between two turns of others, where there are very many."""

# What a reply has for a partition but its records, about.
_BYTES_BESIDE_RECORDS = 40

_LEADER_IS_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def handle_fetch(
    partitions: Partitions,
    world: World,
    partition_events: PartitionEvents,
    fetch_sessions: FetchSessions,
    node_settings: NodeSettings,
    client_quotas: ClientQuotas,
    context: RequestContext,
    request: FetchRequest,
    respond: Respond,
) -> None:
    quotas = client_quotas if client_quotas.counts_fetch(context) else None
    max_bytes = min(request.max_bytes, node_settings.fetch_max_bytes)
    if context.size > MOST_BYTES_AT_ONCE:
        begin = partial(
            _begin, partitions, world, partition_events, fetch_sessions, max_bytes, quotas, context, request, respond
        )
        context.go_through(look_in_steps(partitions, context.api_version, request, begin))
        return
    if quotas is None:
        at_end: AtEnd = {}
        read: PlainRead = []
        plain = read_plain(partitions, world.disk, context, request, max_bytes, at_end, read)
        if plain is not None:
            topics, size = plain
            if size >= min(request.min_bytes, max_bytes) or request.max_wait_ms <= 0:
                response = like(RESPONSE)
                response.responses = topics
                respond(response)
                count_plain(read)
                return
            if at_end and not size and request.min_bytes == 1:
                services = partitions, world, partition_events, fetch_sessions, node_settings, client_quotas
                given = *services, context, request, respond
                waiting = WaitingFetch(context, request, at_end, handle_fetch, given)
                partitions.purgatory.park(waiting, list(at_end), request.max_wait_ms)
                return
    wanted = look_up(partitions, context.api_version, request)
    _begin(partitions, world, partition_events, fetch_sessions, max_bytes, quotas, context, request, respond, wanted)


def _begin(
    partitions: Partitions,
    world: World,
    events: PartitionEvents,
    fetch_sessions: FetchSessions,
    max_bytes: int,
    quotas: ClientQuotas | None,
    context: RequestContext,
    request: FetchRequest,
    respond: Respond,
    wanted: dict[PartitionKey, Wanted],
) -> None:
    by_id = context.api_version >= USES_TOPIC_IDS
    session = fetch_sessions.begin(request, wanted, by_id=by_id, now_ms=world.clock.now_ms())
    if session.error:
        respond(FetchResponse(error_code=session.error))
    else:
        Fetch(partitions, world, events, context, request, session, max_bytes, respond, quotas).begin()


class Fetch(Operation):
    """One request, from the first look at the logs to the reply. `_places` and `_available` are for waiting."""

    __slots__ = (
        "_available",
        "_by_id",
        "_context",
        "_is_follower",
        "_max_bytes",
        "_max_wait_ms",
        "_min_bytes",
        "_partitions",
        "_places",
        "_progress",
        "_quotas",
        "_reader",
        "_respond",
        "_rounds",
        "_session",
        "_tells_high_watermarks",
        "_wanted",
        "_world",
    )

    def __init__(
        self,
        partitions: Partitions,
        world: World,
        events: PartitionEvents,
        context: RequestContext,
        request: FetchRequest,
        session: FetchContext,
        max_bytes: int,
        respond: Respond,
        quotas: ClientQuotas | None = None,
    ) -> None:
        super().__init__(context.connection)
        version = context.api_version
        replica_id, replica_epoch = request.replica_id, _UNKNOWN_EPOCH
        if version >= HAS_REPLICA_STATE:
            replica_id, replica_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
        self._partitions = partitions
        self._world = world
        self._context = context
        self._session = session
        self._respond = respond
        self._by_id = version >= USES_TOPIC_IDS
        self._is_follower = replica_id >= 0
        self._tells_high_watermarks = self._is_follower and chooses_replicas(partitions)
        self._quotas = None if self._is_follower else quotas
        self._max_bytes = max_bytes if self._quotas is None else self._quotas.most_to_fetch(context, max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_wait_ms = request.max_wait_ms
        self._wanted = list(session.partitions.items())
        self._reader = FetchReader(
            partitions,
            world.disk,
            version,
            replica_id,
            request.isolation_level,
            leaves_out_known=session.session is not None,
            rack=request.rack_id,
            selector=selector_of(partitions, context.connection.listener, request.rack_id),
            may_read=context.may_use,
        )
        self._progress: FollowerProgress | None = None
        """Until it has been answered: see there."""
        if self._is_follower:
            self._progress = FollowerProgress(partitions, world.clock, events, replica_id, replica_epoch)
        self._rounds = 0
        self._places: dict[Partition, Wanted] = {}
        self._available: dict[Partition, int] = {}

    def begin(self) -> None:
        if self._max_wait_ms > 0 and self._min_bytes > 0 and self._is_at_the_end():
            self._partitions.purgatory.park(self, list(self._places), self._max_wait_ms)
            return
        self._read_and_reply(may_park=True)

    def _read_and_reply(self, *, may_park: bool, may_wait: bool = False) -> None:
        """Reads all partitions and replies, or waits, at once if all that is read is in memory."""
        if len(self._wanted) > MOST_ENTRIES_AT_ONCE:
            self._context.go_through(
                self._read_and_reply_in_steps(may_park=may_park, may_wait=may_wait), in_order=False
            )
            return
        cold: list[ColdRead] = []
        read: Read = []
        self._reader.may_wait = may_wait
        size, is_urgent = self._read_some(self._wanted, read, cold)
        if cold:
            self._warm(cold, may_park)
        elif not (may_park and self._parks(read, size, is_urgent)):
            self._reply(read)

    def _parks(self, read: Read, size: int, is_urgent: bool) -> bool:
        """Whether the request waits at its partitions, where it is now."""
        if self._max_wait_ms <= 0 or size >= self._min_bytes or is_urgent or not self._find_places(read):
            return False
        if self._tells_high_watermarks and any(self._has_old_high_watermark(place) for place in self._places):
            return False
        self._partitions.purgatory.park(self, list(self._places), self._wait_ms())
        return True

    def _wait_ms(self) -> int:
        """A follower that is throttled is answered as soon as it may be sent more, and not when its wait is over."""
        if self._is_follower and any(map(self._reader.has_to_wait, self._places)):
            return min(self._max_wait_ms, ceil(self._partitions.replication_quotas.leader.wait_s * 1000))
        return self._max_wait_ms

    def _warm(self, cold: list[ColdRead], may_park: bool) -> None:
        """Reads anew when a worker has read what was not in memory."""
        self._rounds += 1
        self._progress = None
        warm(
            self._world.workers,
            cold,
            lambda is_warm: self._read_and_reply(
                may_park=may_park, may_wait=not is_warm or self._rounds >= MOST_ROUNDS
            ),
        )

    def _read_and_reply_in_steps(self, *, may_park: bool, may_wait: bool) -> Steps:
        """As `_read_and_reply`, of very many partitions. Their files stay open until the reply has been given."""
        cold: list[ColdRead] = []
        read: Read = []
        size, is_urgent, pinned = 0, False, list[File]()
        try:
            for start in range(0, len(self._wanted), _STEP):
                self._reader.may_wait = may_wait
                some: Read = []
                size, urgent = self._read_some(self._wanted[start : start + _STEP], some, cold, size)
                is_urgent |= urgent
                for _, _, data in some:
                    if isinstance(data.records, FileSlice) and data.records.file is not None:
                        data.records.file.pin()
                        pinned.append(data.records.file)
                read += some
                yield None
            if cold:
                self._warm(cold, may_park)
            elif not (may_park and self._parks(read, size, is_urgent)):
                yield None
                yield from self._reply_in_steps(read)
        finally:
            for file in pinned:
                file.unpin()

    def _read_some(
        self, some: list[tuple[PartitionKey, Wanted]], read: Read, cold: list[ColdRead], size: int = 0
    ) -> tuple[int, bool]:
        """Reads partitions of which those before had `size` bytes. Returns how many bytes there are now, and whether
        some of it must not wait. With anything in `cold`, it is not all of that.
        """
        left, is_urgent = max(self._max_bytes - size, 0), False
        for key, wanted in some:
            try:
                data = self._read(wanted, left, min_one_batch=size == 0)
            except ColdRead as read_later:
                cold.append(read_later)
                continue
            if data is None:
                continue
            if data.error_code:
                # What the metadata does not know may be known soon: it does not end the wait of the other partitions.
                is_urgent |= data.error_code not in NOT_IN_METADATA
            elif count := len(data.records):  # type: ignore[arg-type]
                size += count
                left = max(left - count, 0)
            elif data.diverging_epoch.end_offset >= 0 or data.preferred_read_replica >= 0:
                is_urgent = True
            read.append((key, wanted, data))
        return size, is_urgent

    def _read(self, wanted: Wanted, left: int, *, min_one_batch: bool) -> FetchResponse.PartitionData | None:
        """At most `left` bytes of a partition, or its error. A follower that asks for the first time tells how far it
        is, which may move the high watermark that the reply has.
        """
        reader = self._reader
        found = reader.find(wanted)
        if not isinstance(found, Partition):
            return found
        if self._progress is not None and (error := self._progress.note(found, wanted)):
            return reader.error(wanted, error)
        return reader.read(found, wanted, left, min_one_batch)

    # Waiting

    def _is_at_the_end(self) -> bool:
        """Whether it is a consumer's that follows the end of one partition, where there is nothing new: most wait so.

        It has found its place then, without anything having been read.
        """
        if len(self._wanted) != 1 or self._is_follower or self._reader.chooses_replicas:
            return False
        wanted = self._wanted[0][1]
        if not self._reader.may_read(wanted):
            return False
        place = self._partitions.get((wanted.topic, wanted.index))  # type: ignore[arg-type]  # no partition has no name
        if place is None or (place.topic_id != wanted.topic_id and wanted.topic_id != ZERO_UUID):
            return False
        if wanted.last_fetched_epoch >= 0 or self._reader.check(place, wanted.current_leader_epoch):
            return False
        if self._reader.end_of(place) != wanted.offset:
            return False
        self._places[place] = wanted
        self._available[place] = 0
        return True

    def _find_places(self, read: Read) -> bool:
        partitions = self._partitions
        sizes = {key: len(data.records) for key, _, data in read}  # type: ignore[arg-type]
        for key, wanted in self._wanted:
            place = partitions.get((wanted.topic, wanted.index))  # type: ignore[arg-type]
            if place is not None:
                self._places[place] = wanted
                self._available[place] = sizes.get(key, 0)
        return bool(self._places)

    def is_done(self, place: Place) -> bool:
        assert isinstance(place, Partition)
        wanted = self._places[place]
        if self._reader.check(place, wanted.current_leader_epoch):
            return True
        if self._tells_high_watermarks and self._has_old_high_watermark(place):
            return True
        end_offset = self._reader.end_of(place)
        if end_offset == wanted.offset or self._reader.has_to_wait(place):
            return False
        if self._min_bytes <= 1 or not place.log.log_start_offset <= wanted.offset < end_offset:
            return True
        disk = self._world.disk
        disk.reads_may_wait(False)
        try:
            records = place.read(wanted.offset, wanted.max_bytes, end_offset, min_one_batch=False)
        except (*STORAGE_PROBLEMS, ColdRead):
            return True  # Reading it for the reply says what is wrong, or has it read by a worker.
        finally:
            disk.reads_may_wait(True)
        self._available[place] = records.size
        return sum(self._available.values()) >= self._min_bytes

    def _has_old_high_watermark(self, place: Partition) -> bool:
        """Whether a follower has yet to hear what consumers may read of it."""
        return -1 < self._places[place].sent_high_watermark < place.log.high_watermark

    def loses_rights(self, may_read: MayRead) -> bool:
        topics = [None] if self._is_follower else {wanted.topic for _, wanted in self._wanted} - {None}
        if all(may_read(self.client, topic) for topic in topics):
            return False
        self._reader.restrict(lambda topic: not self._is_follower and may_read(self.client, topic))
        return True

    def complete(self) -> None:
        self._progress = None
        self._read_and_reply(may_park=False)

    # Replying

    def _reply(self, read: Read) -> None:
        charged = self._charge(read)
        if charged.is_refused:
            self._reply_empty(charged.throttle_ms)
            return
        response, news = self._finish(read)
        response.throttle_time_ms = charged.throttle_ms
        self._put(response, news)
        self._count(read)
        self._respond(response)

    def _charge(self, read: Read) -> FetchCharge:
        """Counts the reply against its client's quotas, which may want it empty (KIP-219)."""
        if self._quotas is None:
            return FREE
        size = sum(len(data.records) for _, _, data in read)  # type: ignore[misc,arg-type]
        return self._quotas.charge_fetch(self._context, size + len(read) * _BYTES_BESIDE_RECORDS)

    def _reply_empty(self, throttle_ms: int) -> None:
        session_id, error = self._session.throttled()
        response = like(RESPONSE)
        response.error_code, response.session_id, response.responses = error, session_id, []
        response.throttle_time_ms = throttle_ms
        self._respond(response)

    def _reply_in_steps(self, read: Read) -> Steps:
        charged = self._charge(read)
        if charged.is_refused:
            self._reply_empty(charged.throttle_ms)
            return
        response, news = self._finish(read)
        response.throttle_time_ms = charged.throttle_ms
        for start in range(0, len(news), _STEP):
            yield None
            self._put(response, news[start : start + _STEP])
        for start in range(0, len(read), _STEP):
            yield None
            self._count(read[start : start + _STEP])
        self._respond(response)
        yield from let_go(response.responses, read, news, self._wanted)

    def _finish(self, read: Read) -> tuple[FetchResponse, Read]:
        """A response without partitions, and those that belong into it."""
        session_id, error, news = self._session.finish(
            read, self._world.clock.now_ms(), by_id=self._by_id, follower=self._is_follower
        )
        response = like(RESPONSE)
        response.error_code, response.session_id, response.responses = error, session_id, []
        return response, news

    def _put(self, response: FetchResponse, news: Read) -> None:
        put_partitions(response, news, by_id=self._by_id)
        if self._context.api_version >= _HAS_LEADER_HINTS:
            self._add_hints(response, news)

    def _count(self, read: Read) -> None:
        partitions = self._partitions
        for _, wanted, data in read:
            partition = partitions.get((wanted.topic, wanted.index))  # type: ignore[arg-type]
            if partition is not None:
                partition.traffic.fetch_requests += 1
                partition.traffic.bytes_out += len(data.records)  # type: ignore[arg-type]

    def _add_hints(self, response: FetchResponse, news: Read) -> None:
        leaders: set[int] = set()
        for _, wanted, data in news:
            if data.error_code in _LEADER_IS_ELSEWHERE:
                assert wanted.topic is not None, "a topic without a name has another error"
                leader, epoch = current_leader(self._partitions, wanted.topic, wanted.index)
                data.current_leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
                leaders.add(leader)
        if leaders:
            leaders -= {node.node_id for node in response.node_endpoints}
            found = node_endpoints(
                self._partitions, leaders, self._context.connection.listener, FetchResponse.NodeEndpoint
            )
            response.node_endpoints = [*response.node_endpoints, *found]
