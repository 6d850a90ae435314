"""Which of several registries decides: a group of the type `sr`, in Confluent's JSON, that has one leader.

Theory of operation. Each registry is a member of a classic group (KIP-62) and says who it is: host, port, scheme,
whether it may lead, whether it leads now. The member that Kafka makes the group's own leader names the one to decide:

1. the one that leads now and may, if there is one alone: a leader stays leader while it lives;
2. else the one with the smallest URL, of those that may.

Karapace and Confluent's registry are members of the same group and follow the same rules, the first one aside.

A member is known by its URL (`group.instance.id`, KIP-345): a registry that was killed and comes back takes its old
place at once, the lead included, and need not wait until its former self is taken for dead.

Being leader is a lease. It runs from when a heartbeat (or a join) was sent that the coordinator has answered, for the
session's timeout: before it is over no coordinator can have given the lead to another. When it is over, the leader
writes nothing until it has been answered again. The epochs of `log_writer` hold even if a clock does not.

    UNJOINED -> JOINING -> SYNCING -> STABLE -> (heartbeat says so) -> JOINING …
"""

import logging
from collections.abc import Callable, Iterable
from json import loads
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError, RemoteProtocolError
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.errors import ClientClosed, KafkaError, error_for
from ottla.client.membership.group_coordinator import GroupCoordinator
from ottla.registry.json_form import json_bytes
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

_log = logging.getLogger(__name__)

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
DUPLICATE_URLS: Final = 1
_NO_GENERATION: Final = -1
_JOIN_LAPSE_MS: Final = 5_000
_FIRST_WITH_MANY_MEMBERS: Final = 3
_FIRST_WITH_INSTANCES: Final = 5
_FIRST_SYNC_WITH_INSTANCES: Final = 3
_REPLACED_MS: Final = 10_000
"""How long one that was replaced waits before it takes its place back: two that do so in turn would never lead."""
_JOIN_AGAIN: Final = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
)


class Identity(NamedTuple):
    """A registry, as others reach it."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True
    leads: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def as_object(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "version": 1,
            "leader": self.leads,
        }


class MalformedMember(RemoteProtocolError):
    """Another member of the group sent something that is neither an identity nor an assignment."""


def _read(data: bytes) -> dict[str, Any]:
    try:
        found = loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise MalformedMember("a member of the group sent metadata that is not a JSON object")
    return found


def identity_bytes(identity: Identity) -> bytes:
    return json_bytes(identity.as_object())


def read_identity(data: bytes | dict[str, Any]) -> Identity:
    """Raises `MalformedMember`."""
    found = data if isinstance(data, dict) else _read(data)
    host, port = found.get("host"), found.get("port")
    if not isinstance(host, str) or type(port) is not int:
        raise MalformedMember("a member of the group has no host and port")
    return Identity(
        host,
        port,
        str(found.get("scheme") or "http"),
        bool(found.get("master_eligibility", True)),
        bool(found.get("leader", False)),
    )


class Assignment(NamedTuple):
    """What all members get: who leads, or why nobody does."""

    leader_id: str | None
    leader: Identity | None
    error: int = 0


def assignment_bytes(assignment: Assignment) -> bytes:
    members: dict[str, Any] = {"error": assignment.error}
    if assignment.leader_id is not None and assignment.leader is not None:
        members |= {"master": assignment.leader_id, "master_identity": assignment.leader.as_object()}
    return json_bytes(members | {"version": 1})


def read_assignment(data: bytes) -> Assignment:
    """Raises `MalformedMember`."""
    found = _read(data)
    leader = found.get("master_identity")
    return Assignment(
        found.get("master"),
        read_identity(leader) if isinstance(leader, dict) else None,
        int(found.get("error") or 0),
    )


def elect(members: Iterable[tuple[str, Identity]]) -> Assignment:
    """Who leads, of members and their ids."""
    known = sorted(members, key=lambda member: (member[1].url, member[0]))
    if len({identity.url for _, identity in known}) < len(known):
        return Assignment(None, None, DUPLICATE_URLS)
    eligible = [member for member in known if member[1].eligible]
    leading = [member for member in eligible if member[1].leads]
    chosen = leading if len(leading) == 1 else eligible
    return Assignment(*chosen[0]) if chosen else Assignment(None, None)


class Replaced(OttlaError):
    """Another member of the group has taken this one's place."""


class ElectionSettings(NamedTuple):
    group_id: str = "schema-registry"
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    protocol_type: str = PROTOCOL_TYPE
    protocol: str = PROTOCOL
    member_kind: str = "registry"
    """What a member is called in the log."""


class Election:
    """One registry's membership. `on_leader` is notified of each outcome: who leads, and whether that is this one."""

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        settings: ElectionSettings,
        identity: Identity,
        on_leader: Callable[[Identity | None, bool], None],
    ) -> None:
        self._world = cluster.world
        self._backoff = cluster.backoff
        self._coordinator = GroupCoordinator(cluster, coordinators, settings.group_id)
        self._settings = settings
        self._identity = identity
        self._on_leader = on_leader
        self._member_id = ""
        self.generation = _NO_GENERATION
        self.member_count = 0
        """How many registries there are, as far as this one knows: only the group's leader hears of all."""
        self._run_number = 0
        self._is_stable = False
        self.leads = False
        self._lease_until_s = 0.0
        self._problem = ""
        """What kept it from joining the last time, for the log: once."""

    @property
    def identity(self) -> Identity:
        return self._identity._replace(leads=self.leads)

    @property
    def has_lease(self) -> bool:
        """Whether this registry leads, and no other can by now."""
        return self.leads and self._world.now_s() < self._lease_until_s

    def start(self) -> None:
        self._run_number += 1
        self._world.start(self._run(self._run_number))

    async def stop(self) -> None:
        """Leaves the group, so that another leads at once."""
        self._run_number += 1
        self._lose(None)
        member_id = self._member_id
        self._member_id, self.generation = "", _NO_GENERATION
        if member_id:

            def request(version: int) -> LeaveGroupRequest:
                if version < _FIRST_WITH_MANY_MEMBERS:
                    return LeaveGroupRequest(group_id=self._settings.group_id, member_id=member_id)
                leaving = LeaveGroupRequest.MemberIdentity(
                    member_id=member_id,
                    group_instance_id=self._identity.url,
                    reason=f"the {self._settings.member_kind} stops",
                )
                return LeaveGroupRequest(group_id=self._settings.group_id, members=[leaving])

            await self._coordinator.tell(request, 2_000, api_key=ApiKey.LEAVE_GROUP, at_once=True)

    async def _run(self, run: int) -> None:
        failures = 0
        while run == self._run_number:
            try:
                if not self._is_stable:
                    await self._join(run)
                else:
                    await self._world.sleep(self._settings.heartbeat_interval_ms)
                    if run == self._run_number:
                        await self._beat()
                failures, self._problem = 0, ""
            except ClientClosed:
                return
            except Replaced as problem:
                self._note(problem)
                await self._world.sleep(_REPLACED_MS)
            except (KafkaError, RemoteProtocolError) as problem:
                self._note(problem)
                pause_ms = self._backoff.after(failures, self._world.entropy)
                await self._world.sleep(min(pause_ms, self._settings.heartbeat_interval_ms))
                failures += 1

    def _note(self, problem: Exception) -> None:
        if isinstance(problem, KafkaError):
            self._coordinator.note(problem.code)
        if str(problem) != self._problem:
            self._problem = str(problem)
            _log.warning("cannot take part in the group %s: %s", self._settings.group_id, problem)

    # --- joining ---

    async def _join(self, run: int) -> None:
        began_s = self._world.now_s()
        settings = self._settings
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name=settings.protocol, metadata=identity_bytes(self.identity)
        )

        def request(version: int) -> JoinGroupRequest:
            return JoinGroupRequest(
                group_id=settings.group_id,
                session_timeout_ms=settings.session_timeout_ms,
                rebalance_timeout_ms=settings.rebalance_timeout_ms,
                member_id=self._member_id,
                group_instance_id=self._identity.url if version >= _FIRST_WITH_INSTANCES else None,
                protocol_type=settings.protocol_type,
                protocols=[protocol],
            )

        timeout_ms = settings.rebalance_timeout_ms + _JOIN_LAPSE_MS
        joined = await self._coordinator.ask(request, timeout_ms, api_key=ApiKey.JOIN_GROUP)
        if run != self._run_number:
            return
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return
        if joined.error_code:
            self._refused(joined.error_code)
            return
        self._member_id, self.generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = self._assign(joined.members)

        def sync(version: int) -> SyncGroupRequest:
            return SyncGroupRequest(
                group_id=settings.group_id,
                generation_id=self.generation,
                member_id=self._member_id,
                group_instance_id=self._identity.url if version >= _FIRST_SYNC_WITH_INSTANCES else None,
                protocol_type=settings.protocol_type,
                protocol_name=settings.protocol,
                assignments=assignments,
            )

        sent_s = self._world.now_s()
        synced = await self._coordinator.ask(sync, settings.session_timeout_ms, api_key=ApiKey.SYNC_GROUP)
        if run != self._run_number:
            return
        if synced.error_code:
            self._refused(synced.error_code)
            return
        self._is_stable = True
        self._take(read_assignment(bytes(synced.assignment)), max(began_s, sent_s))

    def _assign(self, members: Iterable[Any]) -> list[SyncGroupRequest.SyncGroupRequestAssignment]:
        known = [(member.member_id, read_identity(bytes(member.metadata))) for member in members]
        self.member_count = len(known)
        assignment = assignment_bytes(elect(known))
        return [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
            for member_id, _ in known
        ]

    def _take(self, assignment: Assignment, since_s: float) -> None:
        if assignment.error == DUPLICATE_URLS:
            _log.error(
                "several members of the group %s say that they are at the same URL, so none can lead; "
                "set host name and port so that each has its own (this %s is %s)",
                self._settings.group_id,
                self._settings.member_kind,
                self._identity.url,
            )
            self._lose(None)
            return
        if assignment.leader is None:
            kind, group = self._settings.member_kind, self._settings.group_id
            _log.warning("no %s of the group %s may lead: nothing can be changed", kind, group)
        self.leads = assignment.leader is not None and assignment.leader.url == self._identity.url
        self._renew(since_s)
        self._on_leader(assignment.leader, self.leads)

    def _lose(self, leader: Identity | None) -> None:
        self.leads = False
        self._on_leader(leader, False)

    def _renew(self, since_s: float) -> None:
        self._lease_until_s = since_s + self._settings.session_timeout_ms / 1000

    # --- staying ---

    async def _beat(self) -> None:
        sent_s = self._world.now_s()

        def request(version: int) -> HeartbeatRequest:
            return HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=self.generation,
                member_id=self._member_id,
                group_instance_id=self._identity.url if version >= _FIRST_SYNC_WITH_INSTANCES else None,
            )

        answered = await self._coordinator.ask(request, self._settings.session_timeout_ms, api_key=ApiKey.HEARTBEAT)
        if answered.error_code:
            self._refused(answered.error_code)
        else:
            self._renew(sent_s)

    def _refused(self, code: int) -> None:
        """The coordinator has gone on without this member, or the group is being made anew."""
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._is_stable = False
            self._member_id, self.generation = "", _NO_GENERATION
            self._lose(None)
            raise Replaced(
                f"another {self._settings.member_kind} says that it is at {self._identity.url}; "
                "set host name and port so that each has its own URL"
            )
        if code not in _JOIN_AGAIN:
            raise error_for(code)
        self._is_stable = False
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        if code != ErrorCode.REBALANCE_IN_PROGRESS:
            self.generation = _NO_GENERATION
            self._lose(None)  # Another may lead by now.
