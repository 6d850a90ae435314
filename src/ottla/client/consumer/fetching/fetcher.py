"""Fetches out, chunks of records in.

Theory of operation. At most one Fetch is under way with each broker, and a broker is asked again as soon as it has
answered, ahead of what the application reads: one whole response waits while the next is under way. What is kept and
what is asked for stay together within two chunks of `max.partition.fetch.bytes` for a partition, and within
`fetch.max.bytes` for a broker, which is asked again when half of that is free. All partitions of a broker are in each
of its requests, so a request that waits for records waits for all of them, and is not sent while one has no room.

A broker sends one batch at least, however large. The head of the next batch mostly comes with the chunk before it,
which is cut off there: so its size is known (`PartitionState.next_batch_bytes`), and one larger than what may be asked
for is waited for until there is room. If nothing is kept there always is: then it comes, whatever its size.

A few records, as they come to a consumer at the end of a partition, are handed out first: the caller that waits for
them need not wait for the next request to be sent. It is sent when the application polls again, or a moment later.

A partition is read at its leader, or at the replica that the leader names for our rack (KIP-392), for as long as
metadata may be old. What was asked before a partition was moved, and comes after, is dropped.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.view import Leader
from ottla.client.consumer.consumer_metrics import ConsumerMetrics
from ottla.client.consumer.consumer_settings import ConsumerSettings
from ottla.client.consumer.fetching.fetch_errors import FetchErrors
from ottla.client.consumer.fetching.fetch_sessions import FetchSession, PartitionFetch, SessionRequest
from ottla.client.consumer.fetching.fetched_chunks import FetchedChunks
from ottla.client.consumer.subscription import PartitionState, Subscription
from ottla.client.errors import ClientClosed, KafkaError
from ottla.client.network.connections import Purpose
from ottla.client.promise import Promise, all_settled
from ottla.client.topic_partition import Broker
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest
from ottla.wire.request_forms import A_NUMBER, Filled, NumberForm

_LAST_WITH_TOPIC_NAMES: Final = 12
_FIRST_WITH_RACK: Final = 11
_NO_REPLICA: Final = -1
_TIMERS_EARLY_S: Final = 0.001
"""So much before its time a timer may fire, by rounding: a pause whose end it marks is over then."""
_FEW_BYTES: Final = 4096
"""Of records that are handed out before the next request is sent."""
_A_MOMENT_S: Final = 0.001


class _Plan(NamedTuple):
    """What to ask of one broker."""

    wanted: dict[TopicPartition, PartitionFetch]
    states: list[PartitionState]


class Fetcher:
    """`is_validated` says whether a partition may be read from that leader; `on_arrival` is notified of new chunks."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        subscription: Subscription,
        chunks: FetchedChunks,
        errors: FetchErrors,
        metrics: ConsumerMetrics,
        *,
        is_validated: Callable[[PartitionState, Leader], bool],
        on_arrival: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._settings = settings
        self._subscription = subscription
        self._chunks = chunks
        self._errors = errors
        self._metrics = metrics
        self._is_validated = is_validated
        self._on_arrival = on_arrival
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight: dict[int, None] = {}
        self._is_closed = False
        self.is_late = False
        """Whether a broker is not asked again before the application polls, or a moment has passed."""
        self._is_timer_set = False
        self._form: NumberForm | None = None
        self._form_kind: tuple[Any, ...] = ()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def fetch(self) -> None:
        """Asks every broker that can be asked."""
        self.is_late = False
        if self._is_closed:
            return
        for node_id, plan in self._plans().items():
            if plan.wanted and (max_bytes := self._bytes_to_ask(plan)) is not None:
                self._world.start(self._fetch_from(node_id, plan.wanted, max_bytes))

    def _fetch_late(self) -> None:
        """When the application polls, and a moment later at the latest."""
        self.is_late = True
        if not self._is_timer_set:
            self._is_timer_set = True
            self._world.timers.after(_A_MOMENT_S, self._on_moment)

    def _on_moment(self) -> None:
        self._is_timer_set = False
        if self.is_late:
            self.fetch()

    def close(self) -> Promise[None]:
        """Ends the sessions, so that brokers need not remember them."""
        self._is_closed = True
        endings = []
        for node_id, session in self._sessions.items():
            if session.is_open and node_id not in self._in_flight and node_id in self._cluster.view.brokers:
                endings.append(self._end(node_id, session.last_request()))
        return all_settled(endings)

    def _end(self, node_id: int, last: SessionRequest) -> Promise[Any]:
        return self._cluster.ask(
            node_id, lambda version: self._request(last, 1, version), api_key=ApiKey.FETCH, line=Purpose.FETCH
        )

    # --- which partitions where ---

    def _plans(self) -> dict[int, _Plan]:
        plans: dict[int, _Plan] = {}
        full: dict[int, None] = {}
        now_s = self._world.now_s() + _TIMERS_EARLY_S
        view = self._cluster.view
        lacks_leader = False
        max_bytes = self._settings.max_partition_fetch_bytes
        for partition, state in self._subscription.partitions.items():
            leader = view.leader_of(partition)
            if leader is None:
                lacks_leader |= state.can_fetch
                continue
            node_id = self._replica_for(state, leader, now_s)
            if node_id in self._in_flight:
                continue
            plan = plans.get(node_id)
            if plan is None:
                plan = plans[node_id] = _Plan({}, [])
            plan.states.append(state)
            position = state.fetch_position
            if position is None or not state.can_fetch or state.error_until_s > now_s:
                continue
            if not self._is_validated(state, leader):
                continue
            kept = state.buffered_bytes
            if kept and kept + max(max_bytes, state.next_batch_bytes) > 2 * max_bytes:
                full[node_id] = None
            plan.wanted[partition] = PartitionFetch(
                view.topics[partition.topic].topic_id, position.offset, max_bytes, leader.epoch
            )
        for node_id in full:
            del plans[node_id]
        if lacks_leader:
            self._errors.want_metadata()
        return plans

    def _bytes_to_ask(self, plan: _Plan) -> int | None:
        """As many as the broker may send; None if there is not enough room yet."""
        settings, partitions = self._settings, self._subscription.partitions
        most = settings.fetch_max_bytes
        least = max(most - most // 2, *(partitions[one].next_batch_bytes for one in plan.wanted))
        buffered = sum(state.buffered_bytes for state in plan.states)
        if buffered and most - buffered < least:
            buffered -= self._drop_paused(plan.states)
        if buffered and most - buffered < least:
            return None
        return min(most - buffered, len(plan.wanted) * settings.max_partition_fetch_bytes)

    def _replica_for(self, state: PartitionState, leader: Leader, now_s: float) -> int:
        preferred = state.preferred_replica
        if preferred is None:
            return leader.node_id
        if state.preferred_until_s > now_s and preferred in self._cluster.view.brokers:
            return preferred
        state.preferred_replica = None
        return leader.node_id

    def _drop_paused(self, states: list[PartitionState]) -> int:
        """What paused partitions keep must not stop the others; it is fetched again when they are resumed."""
        dropped = 0
        for state in states:
            if state.is_paused:
                dropped += state.buffered_bytes
                self._chunks.discard(state)
        return dropped

    # --- one request ---

    async def _fetch_from(self, node_id: int, wanted: dict[TopicPartition, PartitionFetch], max_bytes: int) -> None:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = FetchSession()
        partitions = self._subscription.partitions
        moves = {partition: partitions[partition].moves for partition in wanted}
        asked = session.request(wanted)
        self._in_flight[node_id] = None
        began_s = self._world.now_s()
        try:
            response = await self._cluster.ask(
                node_id,
                lambda version: self._request(asked, max_bytes, version),
                api_key=ApiKey.FETCH,
                newest=None if asked.has_topic_ids else _LAST_WITH_TOPIC_NAMES,
                timeout_ms=self._settings.request_timeout_ms,
                line=Purpose.FETCH,
            )
        except KafkaError as problem:
            session.on_failure()
            self._in_flight.pop(node_id, None)
            if not isinstance(problem, ClientClosed):
                self._errors.on_request_failed(problem, [partitions[one] for one in wanted if one in partitions])
            return
        self._in_flight.pop(node_id, None)
        self._metrics.on_fetched(began_s, self._world.now_s(), response.throttle_time_ms)
        if session.on_response(response):
            if 0 < self._take(node_id, session, response, moves) <= _FEW_BYTES:
                self._fetch_late()
                return
        elif response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
            self._errors.want_metadata()
        self.fetch()

    def _request(self, asked: SessionRequest, max_bytes: int, version: int) -> FetchRequest | Filled:
        """One that differs from the last only in its offset takes its form."""
        if asked.session_id or asked.forgotten or len(asked.fetched) != 1:
            return self._message(asked, max_bytes, version)
        [(partition, fetch)] = asked.fetched.items()
        kind = version, max_bytes, asked.epoch, partition, fetch.topic_id, fetch.max_bytes, fetch.leader_epoch
        if self._form is None or self._form_kind != kind:
            like = asked._replace(fetched={partition: fetch._replace(fetch_offset=A_NUMBER)})
            message = self._message(like, max_bytes, version)
            self._form_kind, self._form = kind, NumberForm(message, version, self._cluster.client_id)
        return Filled(self._form, fetch.fetch_offset)

    def _message(self, asked: SessionRequest, max_bytes: int, version: int) -> FetchRequest:
        settings = self._settings
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=max_bytes,
            isolation_level=settings.isolation_level,
            session_id=asked.session_id,
            session_epoch=asked.epoch,
            topics=asked.topics(version),
            forgotten_topics_data=asked.forgotten_topics(version),
        )
        if settings.client_rack and version >= _FIRST_WITH_RACK:
            request.rack_id = settings.client_rack
        return request

    # --- what came ---

    def _take(self, node_id: int, session: FetchSession, response: Any, moves: dict[TopicPartition, int]) -> int:
        """Returns how many bytes of records came."""
        endpoints = {one.node_id: Broker(one.node_id, one.host, one.port, one.rack) for one in response.node_endpoints}
        with_records = [one for topic in response.responses for one in topic.partitions if one.records]
        shares_buffer = len(with_records) > 1
        for topic in response.responses:
            for one in topic.partitions:
                partition = session.partition_of(topic.topic, topic.topic_id, one.partition_index)
                state = None if partition is None else self._subscription.partitions.get(partition)
                if state is None or partition is None or state.moves != moves.get(partition):
                    continue
                position = state.fetch_position
                if position is None or position.offset != session.partitions[partition].fetch_offset:
                    continue
                if one.error_code:
                    current = one.current_leader
                    if current.leader_id >= 0:
                        hint = Leader(current.leader_id, current.leader_epoch)
                        self._cluster.note_leader(partition, hint, endpoints.get(current.leader_id))
                    self._errors.on_partition(state, node_id, one.error_code)
                else:
                    self._take_partition(state, one, shares_buffer)
        if with_records:
            self._on_arrival()
        return sum(len(one.records) for one in with_records)

    def _take_partition(self, state: PartitionState, one: Any, shares_buffer: bool) -> None:
        state.high_watermark = one.high_watermark
        if one.last_stable_offset >= 0:
            state.last_stable_offset = one.last_stable_offset
        if one.log_start_offset >= 0:
            state.log_start_offset = one.log_start_offset
        if one.preferred_read_replica != _NO_REPLICA:
            state.preferred_replica = one.preferred_read_replica
            state.preferred_until_s = self._world.now_s() + self._settings.metadata_max_age_ms / 1000
        if not one.records:
            return
        aborted = [(aborted.producer_id, aborted.first_offset) for aborted in one.aborted_transactions or ()]
        if not self._chunks.add(state, one.records, aborted, shares_buffer=shares_buffer):
            self._errors.on_no_batch(state)
