"""A member of a group of the new protocol (KIP-848): the coordinator divides, and each member moves at its own pace.

Theory of operation: one request does everything. A heartbeat tells the coordinator who the member is, what it wants and
which partitions it has; the answer carries the member's epoch, how soon to come again, and the partitions it should
have, if these have changed. Two coroutines are at work:

- `_run` sends heartbeats: when the interval is over, or at once when there is news for the coordinator. It begins by
  losing what is left of an earlier life and joins with epoch 0.
- `_reconcile` moves from the partitions that the member has to those it should have: gives up, takes on, and has that
  reported at once, so that the coordinator can pass on what was given up.

Both end when their life is no longer the current one. A member that the coordinator no longer knows (fenced), or whose
application has stopped polling, loses its partitions and begins a new life. A static member whose instance id another
consumer has taken (FENCED_INSTANCE_ID) stays out: every poll says so, until the consumer unsubscribes or is closed.
"""

from collections.abc import Collection

from ottla.base.ids import TopicPartition, random_uuid, uuid_text
from ottla.base.pacing import Backoff
from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.errors import ClientClosed, FencedInstanceId, KafkaError, UnsupportedVersion, error_for
from ottla.client.membership.consumer.consumer_heartbeat import (
    JOINING_EPOCH,
    LEAVING_EPOCH,
    STATIC_LEAVING_EPOCH,
    ConsumerHeartbeat,
    Share,
)
from ottla.client.membership.consumer.topic_names import TopicNames
from ottla.client.membership.group_coordinator import GroupCoordinator
from ottla.client.membership.holdings import Holdings
from ottla.client.membership.member import NO_GENERATION, Identity, LeaveBehaviour, MemberSettings, MembershipListener
from ottla.client.membership.member_log import tell_joined, tell_lost, tell_no_polls
from ottla.client.membership.poll_deadline import PollDeadline
from ottla.client.promise import Promise, spawn
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerGroupHeartbeatResponse

_PATIENCE = 3
"""So many times the names of topics are asked for before the member does without."""

_REMOVED = "the coordinator does not know it any more"
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class ConsumerGroupMember:
    """See `Member`."""

    def __init__(
        self, cluster: Cluster, coordinators: Coordinators, settings: MemberSettings, listener: MembershipListener
    ) -> None:
        self._world = cluster.world
        self._settings = settings
        self._listener = listener
        self._coordinator = GroupCoordinator(cluster, coordinators, settings.group_id)
        self._names = TopicNames(cluster)
        self._heartbeat = ConsumerHeartbeat(settings, uuid_text(random_uuid(self._world.entropy.randbytes)))
        self._deadline = PollDeadline(self._world.timers, settings.max_poll_interval_ms, self._on_poll_expired)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._epoch = JOINING_EPOCH
        self._target: Share | None = None
        self._share: Share | None = None
        """What the member says to the coordinator that it has."""
        self._holdings = Holdings(listener)
        self._is_subscribed = False
        self._is_running = False
        self._is_reconciling = False
        self._is_leaving = False
        self._has_news = False
        self._fenced: KafkaError | None = None
        """Another consumer has this one's instance id."""
        self._life = 0
        self._woken: Promise[None] = Promise()

    @property
    def identity(self) -> Identity:
        if self._epoch <= JOINING_EPOCH:
            return Identity(NO_GENERATION, "", self._settings.group_instance_id)
        return Identity(self._epoch, self._heartbeat.member_id, self._settings.group_instance_id)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._holdings.owned

    @property
    def is_rebalancing(self) -> bool:
        return self._is_running and (self._epoch == JOINING_EPOCH or self._is_reconciling)

    # --- what the consumer asks ---

    def subscribe(self, topics: Collection[str]) -> None:
        self._subscribe(tuple(sorted(topics)), None)

    def subscribe_pattern(self, pattern: str) -> None:
        self._subscribe((), pattern)

    def _subscribe(self, topics: tuple[str, ...], pattern: str | None) -> None:
        if (topics, pattern) != (self._heartbeat.topics, self._heartbeat.pattern):
            self._heartbeat.topics, self._heartbeat.pattern = topics, pattern
            self._tell_news()
        self._is_subscribed = True

    def on_poll(self) -> None:
        if not self._is_subscribed:
            return
        if self._fenced is not None:
            self._listener.on_failed(self._fenced)
            return
        had_expired = self._deadline.is_expired
        self._deadline.on_poll()
        if not self._is_running:
            self._begin_life()
        elif had_expired:
            self._wake()

    def request_rejoin(self, reason: str) -> None:
        """The coordinator alone decides when to divide anew."""

    def on_commit_refused(self, error: ErrorCode, identity: Identity) -> None:
        """A stale epoch is cured by the next heartbeat, which also finds out whether the member is fenced."""
        if identity == self.identity:
            self._tell_news()

    def leave(self, behaviour: LeaveBehaviour = LeaveBehaviour.DEFAULT) -> Promise[None]:
        return spawn(self._leave(behaviour))

    # --- heartbeats ---

    def _begin_life(self) -> None:
        self._is_running = True
        self._life += 1
        self._epoch = JOINING_EPOCH
        self._target = self._share = None
        self._is_reconciling = False
        self._wake()
        self._world.start(self._run(self._life))

    async def _run(self, life: int) -> None:
        await self._holdings.telling
        await self._holdings.lose()
        while self._deadline.is_expired and life == self._life:
            self._woken = Promise()
            await self._woken
        failures = 0
        pause_ms: float = 0
        while life == self._life:
            try:
                pause_ms = await self._ask_once(life)
                failures = 0
            except KafkaError as problem:
                if life != self._life:
                    return
                self._heartbeat.forget_what_was_sent()
                if not problem.retriable:
                    self._fail(problem)
                    return
                self._coordinator.note(problem.code)
                text = f"cannot send heartbeats to group {self._settings.group_id!r}; trying again: {problem}"
                self._world.log.trouble(("group", self._settings.group_id), text, after_s=LONG_S)
                self._has_news = False
                pause_ms = self._backoff.after(failures, self._world.entropy)
                failures += 1
            await self._pause(life, pause_ms)

    async def _pause(self, life: int, pause_ms: float) -> None:
        """Until that time is over, there is news for the coordinator, or this life is over."""
        if self._has_news or life != self._life:
            return
        woken = self._woken = Promise()
        timer = self._world.timers.after(pause_ms / 1000, lambda: woken.resolve_if_waiting(None))
        await woken
        timer.cancel()

    async def _ask_once(self, life: int) -> float:
        """Returns after how many milliseconds to ask again."""
        self._has_news = False
        response: ConsumerGroupHeartbeatResponse = await self._coordinator.ask(
            lambda version: self._heartbeat.request(version, self._epoch, self._share),
            self._settings.request_timeout_ms,
            api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
        )
        if life != self._life:
            return 0
        if response.error_code in _FENCED:
            self._on_fenced()
            return 0
        if response.error_code != ErrorCode.NONE:
            raise error_for(response.error_code, response.error_message)
        self._world.log.over(("group", self._settings.group_id), f"back in group {self._settings.group_id!r}")
        self._epoch = response.member_epoch
        self._heartbeat.member_id = response.member_id or self._heartbeat.member_id
        if response.assignment is not None and not self._is_leaving:
            self._target = _share_of(response.assignment)
            if not self._is_reconciling:
                self._is_reconciling = True
                self._world.start(self._reconcile(life))
        return response.heartbeat_interval_ms

    def _tell_news(self) -> None:
        self._has_news = True
        self._wake()

    def _wake(self) -> None:
        self._woken.resolve_if_waiting(None)

    def _on_fenced(self) -> None:
        if self._is_leaving:
            self._stop()
            return
        if self._holdings.owned:
            tell_lost(self._world.log, self._settings.group_id, _REMOVED, len(self._holdings.owned))
        self._begin_life()

    def _on_poll_expired(self) -> None:
        """The application may hang: others get its partitions."""
        if self._is_running and not self._is_leaving:
            tell_no_polls(self._world.log, self._settings)
            self._world.start(self._tell_that_it_leaves(LeaveBehaviour.DEFAULT))
            self._begin_life()

    def _fail(self, problem: KafkaError) -> None:
        """Stops until the application polls again."""
        self._stop()
        if isinstance(problem, ClientClosed):
            return
        if isinstance(problem, UnsupportedVersion):
            problem = UnsupportedVersion(f"group.protocol=consumer is not possible here, classic is: {problem.message}")
        self._fenced = problem if isinstance(problem, FencedInstanceId) else None
        self._world.start(self._holdings.lose())
        self._listener.on_failed(problem)

    def _stop(self) -> None:
        self._life += 1
        self._epoch = JOINING_EPOCH
        self._is_running = self._is_reconciling = self._has_news = False
        self._deadline.stop()
        self._wake()

    # --- moving ---

    async def _reconcile(self, life: int) -> None:
        """Until the member has what it should have.

        Topics that brokers cannot name yet are asked for again. If that does not help, the others are moved to first.
        """
        failures = 0
        while self._is_current(life) and self._target is not None and self._share != self._target:
            target = self._target
            knows_all = await self._names.learn(target)
            if self._is_current(life) and (knows_all or failures >= _PATIENCE):
                await self._move_to(life, {one: numbers for one, numbers in target.items() if self._names.get(one)})
            if not knows_all:
                await self._world.sleep(self._backoff.after(failures, self._world.entropy))
                failures += 1
        if life == self._life:
            self._is_reconciling = False

    def _is_current(self, life: int) -> bool:
        return life == self._life and not self._is_leaving

    async def _move_to(self, life: int, share: Share) -> None:
        if share == self._share:
            return
        wanted = frozenset(
            TopicPartition(self._names.get(topic_id) or "", number)
            for topic_id, numbers in share.items()
            for number in numbers
        )
        await self._holdings.revoke(self._holdings.owned - wanted)
        if not self._is_current(life):
            return
        tell_joined(self._world.log, self._settings.group_id, self.identity, wanted)
        await self._holdings.assign(wanted)
        if self._is_current(life):
            self._names.keep_only(share)
            self._share = share
            self._tell_news()

    # --- leaving ---

    async def _leave(self, behaviour: LeaveBehaviour) -> None:
        """Heartbeats continue until the partitions are given up."""
        self._is_subscribed = False
        self._is_leaving = True
        self._fenced = None
        await self._holdings.telling
        if self._epoch > JOINING_EPOCH:
            await self._holdings.revoke(self._holdings.owned)
        else:
            await self._holdings.lose()
        was_running = self._is_running
        self._stop()
        if was_running:
            await self._tell_that_it_leaves(behaviour)
        self._is_leaving = False

    async def _tell_that_it_leaves(self, behaviour: LeaveBehaviour) -> None:
        is_static = self._settings.group_instance_id is not None
        if behaviour is LeaveBehaviour.REMAIN and not is_static:
            return
        epoch = STATIC_LEAVING_EPOCH if is_static and behaviour is not LeaveBehaviour.LEAVE else LEAVING_EPOCH
        request = self._heartbeat.leave_request(epoch)
        await self._coordinator.tell(request, self._settings.request_timeout_ms, at_once=False)


def _share_of(assignment: ConsumerGroupHeartbeatResponse.Assignment) -> Share:
    return {one.topic_id: tuple(sorted(one.partitions)) for one in assignment.topic_partitions if one.partitions}
