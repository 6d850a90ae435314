"""The cluster as a client's cores see it: which broker does what, and asking one of them.

Theory of operation. A client begins with the addresses that it was given, as brokers with negative ids. One refresh of
metadata is under way at most; refreshes that are asked for meanwhile share the next one. It asks the least busy broker
that is not in a pause, and another one at once when that fails; when all have failed, it pauses. When no broker that is
known can be reached, or none has sent metadata for too long, or a broker says so, the client starts over from the
addresses it was given (KIP-899, KIP-1102).
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Final

from ottla.base.ids import TopicPartition
from ottla.base.pacing import Backoff
from ottla.client.cluster.view import NO_NODE, ClusterView, Leader, bootstrap_view, view_of
from ottla.client.errors import (
    ClientClosed,
    Disconnected,
    KafkaError,
    LeaderNotAvailable,
    NotABroker,
    RequestTimedOut,
    UnknownTopicOrPartition,
    error_for,
)
from ottla.client.network.connections import Connections, Key, Purpose
from ottla.client.promise import Promise
from ottla.client.settings import Address, ClientSettings
from ottla.client.topic_partition import Broker
from ottla.client.world import ClientWorld
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.api_versions import ApiVersions
from ottla.wire.exchange.open_request import Ask
from ottla.wire.messages import MetadataRequest

_REBOOTSTRAP: Final = "rebootstrap"
_SOON_THERE_S: Final = 2.0
"""A topic that is being created, or whose leader has just gone, is no news before."""


class Cluster:
    """One client's. `creates_topics`: whether asking for a topic that is not there may create it."""

    def __init__(self, world: ClientWorld, settings: ClientSettings, *, creates_topics: bool = False) -> None:
        self.world = world
        self.settings = settings
        self.client_id = settings.text("client.id") or None
        world.log.name = self.client_id or ""
        self.view = bootstrap_view(settings.bootstrap)
        self.backoff = Backoff(settings.integer("retry.backoff.ms"), settings.integer("retry.backoff.max.ms"))
        """Between attempts at the same request."""
        self.is_closed = False
        self._start = self.view
        self._creates_topics = creates_topics
        self._connections = Connections(world, settings, self._on_lost)
        self.spare_buffers = self._connections.spare
        self._request_timeout_ms = settings.integer("request.timeout.ms")
        self._max_age_s = settings.integer("metadata.max.age.ms") / 1000
        self._may_rebootstrap = settings.text("metadata.recovery.strategy").lower() == _REBOOTSTRAP
        self._rebootstrap_after_s = settings.integer("metadata.recovery.rebootstrap.trigger.ms") / 1000
        self._topics: dict[str, None] = {}
        self._wants_all = False
        self._listeners: list[Callable[[ClusterView], None]] = []
        self._next_refresh: Promise[ClusterView] | None = None
        self._refreshing: Promise[ClusterView] | None = None
        self._refresh_failures = 0
        self._last_problem: KafkaError | None = None
        self.on_problem: Callable[[KafkaError], None] = lambda error: None
        """Is notified of every connection that was lost or could not be made."""
        self._last_metadata_s = world.now_s()
        if self._max_age_s > 0:
            world.timers.every(self._max_age_s, self._on_max_age)

    # --- asking ---

    def ask(
        self,
        node_id: int,
        request: Ask,
        *,
        api_key: int | None = None,
        timeout_ms: float | None = None,
        newest: int | None = None,
        has_response: bool = True,
        line: Purpose = Purpose.MAIN,
    ) -> Promise[Any]:
        """One attempt at one broker, in the newest version that both know, `newest` at most.

        `request` may be a function from the version to the message; then `api_key` says of which API. Rejected with a
        `KafkaError`: `Disconnected`, `RequestTimedOut`, `UnsupportedVersion`. It may have been carried out anyway.
        """
        if self.is_closed:
            return Promise.rejected(ClientClosed("the client was closed"))
        broker = self.view.brokers.get(node_id) or self._start.brokers.get(node_id)
        if broker is None:
            return Promise.rejected(Disconnected(f"the address of broker {node_id} is not known"))
        if api_key is None:
            assert not callable(request), "a function does not tell its API"
            api_key = request._schema.api_key
        return self._connections.ask(
            Key(node_id, line),
            Address(broker.host, broker.port),
            api_key,
            request,
            timeout_ms=self._request_timeout_ms if timeout_ms is None else timeout_ms,
            newest=newest,
            has_response=has_response,
        )

    def ask_any(self, request: Ask, *, api_key: int | None = None, timeout_ms: float | None = None) -> Promise[Any]:
        """One attempt at the least busy broker."""
        return self.ask(self.least_busy(), request, api_key=api_key, timeout_ms=timeout_ms)

    def versions_of(self, node_id: int) -> Promise[ApiVersions]:
        """What a broker serves. Connects to it if need be."""
        broker = self.view.brokers.get(node_id) or self._start.brokers.get(node_id)
        if broker is None or self.is_closed:
            return Promise.rejected(Disconnected(f"the address of broker {node_id} is not known"))
        return self._connections.versions(Key(node_id, Purpose.MAIN), Address(broker.host, broker.port))

    def known_versions(self, node_id: int) -> ApiVersions | None:
        """The same, if it is known without asking."""
        return self._connections.known_versions(node_id)

    def in_flight(self, node_id: int, line: Purpose = Purpose.MAIN) -> int:
        return self._connections.in_flight(node_id, line)

    def is_pausing(self, node_id: int, line: Purpose = Purpose.MAIN) -> bool:
        """Whether the broker could not be reached a moment ago."""
        return self._connections.is_pausing(node_id, line)

    @property
    def has_reached_any(self) -> bool:
        """Whether a broker has ever let this client in."""
        return self._connections.has_reached_any

    def least_busy(self, tried: Container[int] = ()) -> int:
        """A broker with an open connection and little in flight; else one that was not found unreachable just now.

        One of those that were `tried` only when there is no other.
        """
        ids = [node_id for node_id in self.view.brokers if node_id not in tried] or list(self.view.brokers)
        self.world.entropy.shuffle(ids)
        return min(ids, key=self._busyness)

    def _busyness(self, node_id: int) -> tuple[bool, bool, int]:
        connections = self._connections
        return connections.is_pausing(node_id), not connections.is_open(node_id), connections.in_flight(node_id)

    def may_pass(self, problem: KafkaError) -> bool:
        """Whether it is worth asking again: one wrong address among several does no harm."""
        if isinstance(problem, NotABroker):
            return not all(map(self._connections.is_pausing, self.view.brokers))
        return problem.retriable

    # --- metadata ---

    def add_topics(self, topics: Iterable[str]) -> bool:
        """Wants to know about these from now on. Returns whether some are new: `refresh` brings them."""
        before = len(self._topics)
        self._topics.update(dict.fromkeys(topics))
        return len(self._topics) > before

    def set_topics(self, topics: Iterable[str]) -> None:
        """Wants to know about these and no others from now on."""
        self._topics = dict.fromkeys(topics)
        self._wants_all = False

    def want_all_topics(self) -> None:
        self._wants_all = True

    def on_update(self, callback: Callable[[ClusterView], None]) -> None:
        """Is notified of every new view."""
        self._listeners.append(callback)

    def offer_metrics(self, kind: str, read: Callable[[], Mapping[str, float]]) -> None:
        """Pushes what `read` gives to brokers that ask for metrics (KIP-714), if the settings have nothing against it.

        Whether they do is known when the first one has answered; nothing is loaded before.
        """
        if not self.settings.flag("enable.metrics.push"):
            return

        def look(_view: ClusterView) -> None:
            known = next(filter(None, map(self.known_versions, (*self.view.brokers, *self._start.brokers))), None)
            if known is not None:
                self._listeners.remove(look)
                if known.serves(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS):
                    from ottla.client.telemetry import push_metrics

                    self.world.start(push_metrics(self, kind, read))

        self.on_update(look)

    def refresh(self) -> Promise[ClusterView]:
        """The view after a refresh that begins now or later. It continues until a broker answers, so give it a limit of
        your own (`world.within`). Rejected when the client is closed, or no broker speaks our versions.
        """
        if self.is_closed:
            return Promise.rejected(ClientClosed("the client was closed"))
        asked = self._next_refresh
        if asked is None:
            asked = self._next_refresh = Promise()
            if self._refreshing is None:
                self.world.start(self._keep_refreshing())
        return asked

    def note_leader(self, partition: TopicPartition, leader: Leader, endpoint: Broker | None = None) -> None:
        """A broker's reply says who leads now (KIP-951)."""
        self._become(self.view.with_leader(partition, leader, endpoint))

    def learn(self, broker: Broker) -> None:
        """A broker that a reply named. Metadata may not have reported it yet."""
        if broker.id not in self.view.brokers:
            self.view = self.view._replace(brokers={**self.view.brokers, broker.id: broker})

    async def leader_of(self, partition: TopicPartition, deadline_s: float) -> Leader:
        """The partition's leader, asking until there is one. Raises what kept it from being known."""
        failures = 0
        self.add_topics([partition.topic])
        while True:
            leader = self.view.leader_of(partition)
            if leader is not None:
                return leader
            problem = self._problem_with(partition)
            left_ms = (deadline_s - self.world.now_s()) * 1000
            if left_ms <= 0 or (problem is not None and not problem.retriable):
                raise problem or LeaderNotAvailable(f"{partition} has no leader that is known")
            if failures:
                await self.world.sleep(min(self.backoff.after(failures - 1, self.world.entropy), left_ms))
            failures += 1
            await self.world.within(self.refresh(), left_ms, self.no_metadata)

    @property
    def last_problem(self) -> str | None:
        """Why the last broker that was asked for metadata did not tell it; None if it did."""
        return None if self._last_problem is None else str(self._last_problem)

    @property
    def last_reason(self) -> str | None:
        """The same, without what to do about it."""
        return None if self._last_problem is None else self._last_problem.message

    def no_metadata(self) -> RequestTimedOut:
        """No broker answered in time; with what the last one that was tried had to say."""
        why = "" if self._last_problem is None else f" ({self._last_problem.message})"
        return RequestTimedOut(f"no broker answered a metadata request in time{why}")

    def _problem_with(self, partition: TopicPartition) -> KafkaError | None:
        topic = self.view.topics.get(partition.topic)
        if topic is None:
            return None
        if topic.error:
            return error_for(topic.error)
        known = topic.partitions.get(partition.partition)
        if known is None:
            return UnknownTopicOrPartition(f"topic {partition.topic!r} has no partition {partition.partition}")
        return error_for(known.error) if known.error else None

    async def _keep_refreshing(self) -> None:
        while self._next_refresh is not None:
            self._refreshing, self._next_refresh = self._next_refresh, None
            try:
                await self._refresh_until_answered()
                self._refreshing.resolve_if_waiting(self.view)
            except KafkaError as problem:
                self._refreshing.reject_if_waiting(problem)
            self._refreshing = None

    async def _refresh_until_answered(self) -> None:
        tried: set[int] = set()
        while not self.is_closed:
            if self._is_stale() or all(map(self._connections.is_pausing, self.view.brokers)):
                self._rebootstrap()
            node_id = self.least_busy(tried)
            tried.add(node_id)
            try:
                response = await self.ask(node_id, self._metadata_request, api_key=ApiKey.METADATA)
                if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
                    self._rebootstrap()
                elif response.brokers:
                    self._refresh_failures = 0
                    self._last_problem = None
                    self._last_metadata_s = self.world.now_s()
                    self._become(view_of(response, self.view))
                    self._tell_missing()
                    return
            except KafkaError as problem:
                self._last_problem = problem
                if not self.may_pass(problem):
                    raise
            if not tried.issuperset(self.view.brokers):
                continue
            tried.clear()
            pause_ms = self.backoff.after(self._refresh_failures, self.world.entropy)
            self._refresh_failures += 1
            await self.world.sleep(pause_ms)

    def _tell_missing(self) -> None:
        log = self.world.log
        for name in self._topics:
            about, topic = ("topic", name), self.view.topics.get(name)
            if topic is not None and topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                patience_s = _SOON_THERE_S if self._creates_topics else 0.0
                log.trouble(about, f"topic {name!r} does not exist", after_s=patience_s)
            elif topic is not None and not topic.error:
                missing = [one.partition for one in topic.partitions.values() if one.leader == NO_NODE]
                if missing:
                    which = ", ".join(map(str, missing[:10])) + (", …" if len(missing) > 10 else "")
                    log.trouble(about, f"partitions of topic {name!r} have no leader: {which}", after_s=_SOON_THERE_S)
                elif log.is_troubled(about):
                    log.over(about, f"topic {name!r} is available")

    def _metadata_request(self, version: int) -> MetadataRequest:
        topics = None
        if not self._wants_all:
            topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in self._topics]
        creates = self._creates_topics if version >= 4 else True  # the field came with version 4
        return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)

    def _become(self, view: ClusterView) -> None:
        before, self.view = self.view, view
        for broker in before.brokers.values():
            now = view.brokers.get(broker.id, broker)
            if (now.host, now.port) != (broker.host, broker.port):
                moved = Disconnected(f"broker {broker.id} has moved from {broker.host}:{broker.port}")
                self._connections.drop(broker.id, moved)
        if view is not before:
            for callback in list(self._listeners):
                callback(view)

    def _rebootstrap(self) -> None:
        if not self._may_rebootstrap or self.view.brokers == self._start.brokers:
            return
        for node_id in self.view.brokers:
            self._connections.drop(node_id, Disconnected("starting over from the bootstrap servers"))
        self._last_metadata_s = self.world.now_s()
        self.view = self.view._replace(brokers=self._start.brokers, controller_id=NO_NODE)

    def _is_stale(self) -> bool:
        return self.world.now_s() - self._last_metadata_s > self._rebootstrap_after_s and self._refresh_failures > 0

    def _on_max_age(self) -> None:
        if not self.is_closed:
            self.refresh()

    def _on_lost(self, node_id: int, error: KafkaError) -> None:
        """A broker that is gone may lead nothing any more."""
        if not self.is_closed:
            self.on_problem(error)
        if node_id >= 0 and not self.is_closed:
            self.refresh()

    def close(self) -> None:
        """Everything that is asked and not answered is rejected with `ClientClosed`."""
        if self.is_closed:
            return
        self.is_closed = True
        self._connections.close()
        for waiting in (self._refreshing, self._next_refresh):
            if waiting is not None:
                waiting.reject_if_waiting(ClientClosed("the client was closed"))
