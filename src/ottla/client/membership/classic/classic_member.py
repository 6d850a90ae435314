"""A member of a classic group (KIP-62): all members meet at a barrier, and one of them divides the partitions.

Theory of operation:

| state | meaning | heartbeats | left when |
| --- | --- | --- | --- |
| UNJOINED | not in the group | no | the application polls |
| JOINING | JoinGroup is under way: the coordinator waits for all members | no | it answers |
| SYNCING | in a new generation; waits for the leader's division, or makes it | yes | the coordinator gives the share |
| STABLE | has its partitions | yes | a reason to join again comes up |

One coroutine, `_run`, joins whenever there is a reason to, and waits for one otherwise; it ends when its number is no
longer the current one. Partitions are given up before joining: all of them (eager), or those of topics that are no
longer wanted (cooperative, KIP-429), in which case those that another member is to get follow once the division is
known, and all join again. A member that has lost its generation has lost its partitions.

A static member whose instance id another consumer has taken (FENCED_INSTANCE_ID) stays out: every poll says so, until
the consumer unsubscribes or is closed. Were it to join again, it would fence the other, and the two would repeat that
for ever.
"""

from collections.abc import Collection
from enum import Enum

from ottla.base.ids import TopicPartition
from ottla.base.pacing import Backoff
from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.errors import ClientClosed, FencedInstanceId, InconsistentGroupProtocol, KafkaError, error_for
from ottla.client.membership.assignors.assignor import COOPERATIVE, EAGER, Assignor, Division
from ottla.client.membership.assignors.by_name import assignors_for
from ottla.client.membership.classic.classic_heartbeats import ClassicHeartbeats
from ottla.client.membership.classic.classic_leader import ClassicLeader
from ottla.client.membership.classic.classic_requests import join_request, leave_request, sync_request
from ottla.client.membership.classic.consumer_protocol import PROTOCOL_TYPE, read_assignment
from ottla.client.membership.group_coordinator import GroupCoordinator
from ottla.client.membership.holdings import Holdings, in_order
from ottla.client.membership.member import NO_GENERATION, Identity, LeaveBehaviour, MemberSettings, MembershipListener
from ottla.client.membership.member_log import tell_joined, tell_lost, tell_no_polls
from ottla.client.membership.poll_deadline import PollDeadline
from ottla.client.promise import Promise, spawn
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import JoinGroupResponse

_JOIN_LAPSE_MS = 5_000
"""How much longer than the other members may take an answer to JoinGroup may."""

_JOIN_AGAIN = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_FENCED = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID})
_INSTANCE_TAKEN = "another consumer of the group has the group.instance.id {!r} now"
_POLL_EXPIRED = "consumer poll timeout has expired."


class MemberState(Enum):
    UNJOINED = "unjoined"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


_WITH_HEARTBEATS = (MemberState.SYNCING, MemberState.STABLE)


class ClassicMember:
    """See `Member`. Longer than most files, so that all transitions are in one place."""

    def __init__(
        self, cluster: Cluster, coordinators: Coordinators, settings: MemberSettings, listener: MembershipListener
    ) -> None:
        self._world = cluster.world
        self._settings = settings
        self._listener = listener
        self._coordinator = GroupCoordinator(cluster, coordinators, settings.group_id)
        self._assignors = assignors_for(settings.partition_assignment_strategy)
        self._is_cooperative = _common_protocol(self._assignors.values()) == COOPERATIVE
        self._leader = ClassicLeader(cluster, settings.client_rack, self._wake)
        self._deadline = PollDeadline(self._world.timers, settings.max_poll_interval_ms, self._on_poll_expired)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._heartbeats = ClassicHeartbeats(
            self._world, self._coordinator, settings, lambda: self._identity, self._on_heartbeat_refused, self._fail
        )
        self._is_subscribed = False
        self._topics: frozenset[str] = frozenset()
        self._joined_topics: frozenset[str] | None = None
        self._holdings = Holdings(listener)
        self._identity = Identity(group_instance_id=settings.group_instance_id)
        self._state = MemberState.UNJOINED
        self._reason: str | None = ""
        """Why to join, if that is to be done."""
        self._is_running = False
        self._fenced: KafkaError | None = None
        """Another consumer has this one's instance id."""
        self._run_number = 0
        self._woken: Promise[None] = Promise()

    @property
    def identity(self) -> Identity:
        return self._identity

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._holdings.owned

    @property
    def is_rebalancing(self) -> bool:
        return self._state in (MemberState.JOINING, MemberState.SYNCING)

    # --- what the consumer asks ---

    def subscribe(self, topics: Collection[str]) -> None:
        self._topics = frozenset(topics)
        self._is_subscribed = True
        self._wake()

    def subscribe_pattern(self, pattern: str) -> None:
        raise ValueError("the coordinator of a classic group matches no patterns; set group.protocol=consumer")

    def on_poll(self) -> None:
        if not self._is_subscribed:
            return
        if self._fenced is not None:
            self._listener.on_failed(self._fenced)
            return
        had_expired = self._deadline.is_expired
        self._deadline.on_poll()
        if not self._is_running:
            self._is_running = True
            self._run_number += 1
            self._world.start(self._run(self._run_number))
        elif had_expired:
            self._wake()

    def request_rejoin(self, reason: str) -> None:
        self._reason = reason
        self._wake()

    def on_commit_refused(self, error: ErrorCode, identity: Identity) -> None:
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self.request_rejoin("offset commit failed since group is already rebalancing")
        elif error in _FENCED and identity == self._identity:
            self._on_fenced(error)

    def leave(self, behaviour: LeaveBehaviour = LeaveBehaviour.DEFAULT) -> Promise[None]:
        return spawn(self._leave(behaviour))

    # --- joining ---

    async def _run(self, run: int) -> None:
        failures = 0
        while run == self._run_number:
            if not self._has_reason_to_join():
                self._woken = Promise()
                await self._woken
                continue
            try:
                await self._rebalance(run)
                failures = 0
            except Exception as problem:  # an assignor may be the application's own
                if run != self._run_number:
                    return
                if not isinstance(problem, KafkaError) or not problem.retriable:
                    self._fail(problem)
                    return
                self._coordinator.note(problem.code)
                text = f"cannot join group {self._settings.group_id!r}; trying again: {problem}"
                self._world.log.trouble(("group", self._settings.group_id), text, after_s=LONG_S)
                await self._world.sleep(self._backoff.after(failures, self._world.entropy))
                failures += 1

    def _has_reason_to_join(self) -> bool:
        if self._reason is None and self._joined_topics != self._topics:
            self._reason = "subscription has changed"
        if self._reason is None and self._leader.sees_change:
            self._reason = "cached metadata has changed"
        return self._reason is not None

    def _wake(self) -> None:
        self._woken.resolve_if_waiting(None)

    async def _rebalance(self, run: int) -> None:
        """Joins once. Returns early when the coordinator says at once that this has to be done again."""
        await self._give_up_before_joining()
        while self._deadline.is_expired and run == self._run_number:
            self._woken = Promise()
            await self._woken
        if run != self._run_number:
            return
        joined = await self._join(run)
        if joined is None:
            return
        share = await self._sync(run, joined)
        if share is not None:
            await self._take(run, joined.protocol_name or "", share)

    async def _give_up_before_joining(self) -> None:
        if not self._is_member():
            await self._holdings.lose()
        elif not self._is_cooperative:
            await self._holdings.revoke(self._holdings.owned)
        else:
            await self._holdings.revoke(
                frozenset(owned for owned in self._holdings.owned if owned.topic not in self._topics)
            )
        self._leader.resign()

    def _is_member(self) -> bool:
        return self._identity.generation != NO_GENERATION and self._identity.member_id != ""

    async def _join(self, run: int) -> JoinGroupResponse | None:
        topics = self._topics
        self._become(MemberState.JOINING)
        request = join_request(
            self._settings, self._identity, self._assignors, sorted(topics), self._holdings.owned, self._reason or ""
        )
        timeout_ms = max(self._settings.request_timeout_ms, self._settings.max_poll_interval_ms + _JOIN_LAPSE_MS)
        response: JoinGroupResponse = await self._coordinator.ask(request, timeout_ms)
        if run != self._run_number or self._state is not MemberState.JOINING:
            return None
        error = response.error_code
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self._identity = self._identity._replace(generation=NO_GENERATION, member_id=response.member_id)
            self._reason = f"need to re-join with the given member-id: {response.member_id}"
            return None
        if error in _JOIN_AGAIN:
            self._on_join_refused(error)
            return None
        _check(error)
        _check_protocol_type(response.protocol_type)
        self._identity = self._identity._replace(generation=response.generation_id, member_id=response.member_id)
        self._joined_topics = topics
        self._become(MemberState.SYNCING)
        return response

    def _on_join_refused(self, error: int) -> None:
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            self._reason = "rebalance failed due to RebalanceInProgressException"
        else:
            self._on_fenced(error)

    async def _sync(self, run: int, joined: JoinGroupResponse) -> bytes | None:
        """What the leader has given to this member."""
        protocol = joined.protocol_name or ""
        division: Division = {}
        if joined.leader == joined.member_id:
            division = await self._divide(joined)
            if run != self._run_number or self._state is not MemberState.SYNCING:
                return None
        request = sync_request(self._settings.group_id, self._identity, protocol, division)
        response = await self._coordinator.ask(request, self._settings.request_timeout_ms)
        if run != self._run_number or self._state is not MemberState.SYNCING:
            return None
        if response.error_code in _JOIN_AGAIN:
            self._on_join_refused(response.error_code)
            return None
        _check(response.error_code)
        _check_protocol_type(response.protocol_type)
        if response.protocol_name not in (None, protocol):
            raise InconsistentGroupProtocol(
                f"the group has agreed on the assignor {protocol!r}, and now it is {response.protocol_name!r}"
            )
        return bytes(response.assignment)

    async def _divide(self, joined: JoinGroupResponse) -> Division:
        timeout_ms = self._settings.request_timeout_ms
        if joined.skip_assignment:
            await self._leader.lead_on(self._topics, timeout_ms)
            return {}
        return await self._leader.divide(self._assignor(joined.protocol_name), joined.members, timeout_ms)

    def _assignor(self, name: str | None) -> Assignor:
        if name not in self._assignors:
            raise InconsistentGroupProtocol(f"the group has agreed on the assignor {name!r}, which this member has not")
        return self._assignors[name]

    async def _take(self, run: int, protocol: str, share: bytes) -> None:
        """Moves from the partitions that the member has to those that it was given."""
        assigned = frozenset(read_assignment(share))
        self._become(MemberState.STABLE)
        self._reason = None
        if self._deadline.is_expired:
            self._on_poll_expired()
            return
        if any(partition.topic not in self._topics for partition in assigned):
            self._reason = "received assignment does not match the current subscription"
            return
        identity = self._identity
        if revoked := self._holdings.owned - assigned:
            await self._holdings.revoke(revoked)
            if run != self._run_number or identity != self._identity:
                return
            self._reason = self._reason or "need to revoke partitions and re-join"
        tell_joined(self._world.log, self._settings.group_id, identity, assigned)
        self._assignor(protocol).on_assigned(in_order(assigned), identity.generation)
        await self._holdings.assign(assigned)

    # --- staying a member ---

    def _become(self, state: MemberState) -> None:
        had_heartbeats = self._state in _WITH_HEARTBEATS
        self._state = state
        if state in _WITH_HEARTBEATS and not had_heartbeats:
            self._heartbeats.start()
        elif had_heartbeats and state not in _WITH_HEARTBEATS:
            self._heartbeats.stop()

    def _on_heartbeat_refused(self, error: ErrorCode, identity: Identity) -> None:
        if error == ErrorCode.REBALANCE_IN_PROGRESS:
            if self._state is MemberState.STABLE and self._reason is None:
                self.request_rejoin("group is already rebalancing")
        elif identity == self._identity:
            self._on_fenced(error)

    def _on_fenced(self, error: int) -> None:
        """The coordinator has gone on without this member. Its id is still good if only the generation is over."""
        if self._holdings.owned:
            tell_lost(self._world.log, self._settings.group_id, ErrorCode(error).name, len(self._holdings.owned))
        self._forget_generation(keeps_member_id=error == ErrorCode.ILLEGAL_GENERATION)
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self._fail(error_for(error, _INSTANCE_TAKEN.format(self._settings.group_instance_id)))
        else:
            self.request_rejoin(f"encountered {ErrorCode(error).name} from the coordinator")

    def _forget_generation(self, *, keeps_member_id: bool) -> None:
        member_id = self._identity.member_id if keeps_member_id else ""
        self._identity = self._identity._replace(generation=NO_GENERATION, member_id=member_id)
        self._become(MemberState.UNJOINED)

    def _on_poll_expired(self) -> None:
        """The application may hang: others get its partitions. The coordinator itself sees to members that join."""
        if self._state in _WITH_HEARTBEATS:
            identity = self._identity
            tell_no_polls(self._world.log, self._settings)
            self._forget_generation(keeps_member_id=False)
            if identity.group_instance_id is None:
                self._world.start(self._tell_that_it_leaves(identity, _POLL_EXPIRED, at_once=False))
            self.request_rejoin(_POLL_EXPIRED)

    def _fail(self, problem: Exception) -> None:
        """Stops until the application polls again."""
        self._stop()
        self._reason = f"rebalance failed due to {type(problem).__name__}"
        if isinstance(problem, FencedInstanceId):
            self._fenced = problem
            self._forget_generation(keeps_member_id=False)
            self._world.start(self._holdings.lose())
        if not isinstance(problem, ClientClosed):
            self._listener.on_failed(problem)

    def _stop(self) -> None:
        self._run_number += 1
        self._is_running = False
        self._deadline.stop()
        self._leader.resign()
        self._become(MemberState.UNJOINED)
        self._wake()

    # --- leaving ---

    async def _leave(self, behaviour: LeaveBehaviour) -> None:
        was_joining, was_rebalancing = self._state is MemberState.JOINING, self.is_rebalancing
        self._run_number += 1
        self._is_running = self._is_subscribed = False
        self._wake()
        await self._holdings.telling
        if self._is_member() and not was_rebalancing:
            await self._holdings.revoke(self._holdings.owned)
        else:
            await self._holdings.lose()
        identity = self._identity
        self._stop()
        self._forget_generation(keeps_member_id=False)
        self._joined_topics, self._reason, self._fenced = None, "", None
        is_dynamic = identity.group_instance_id is None
        leaves = behaviour is LeaveBehaviour.LEAVE or (behaviour is LeaveBehaviour.DEFAULT and is_dynamic)
        if leaves and identity.member_id:
            await self._tell_that_it_leaves(identity, "the consumer is being closed", at_once=was_joining)

    async def _tell_that_it_leaves(self, identity: Identity, reason: str, *, at_once: bool) -> None:
        await self._coordinator.tell(
            lambda version: leave_request(version, self._settings.group_id, identity, reason),
            self._settings.request_timeout_ms,
            api_key=ApiKey.LEAVE_GROUP,
            at_once=at_once,
        )


def _common_protocol(assignors: Collection[Assignor]) -> str:
    """The more advanced one of those that all assignors are fit for."""
    for protocol in (COOPERATIVE, EAGER):
        if all(protocol in assignor.protocols for assignor in assignors):
            return protocol
    names = ", ".join(assignor.name for assignor in assignors)
    raise ValueError(f"the assignors {names} have no rebalance protocol in common")


def _check(error: int) -> None:
    if error != ErrorCode.NONE:
        raise error_for(error)


def _check_protocol_type(protocol_type: str | None) -> None:
    if protocol_type not in (None, PROTOCOL_TYPE):
        raise InconsistentGroupProtocol(f"the group is of type {protocol_type!r}, not {PROTOCOL_TYPE!r}")
