"""A member of a classic group: what it can do, what it was given, and what it waits for."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ottla.machines.coordinator_machine import CoordinatorDecision, Waiter
from ottla.wire.messages import DescribeGroupsResponse, GroupMetadataValue, JoinGroupRequest, JoinGroupResponse

DescribedMember = DescribeGroupsResponse.DescribedGroupMember


class Protocol(NamedTuple):
    """A way to divide the work, by name, and what the member has to say to the leader, who divides."""

    name: str
    metadata: bytes


def protocols_of(request: JoinGroupRequest) -> tuple[Protocol, ...]:
    return tuple(Protocol(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)


class ClassicMember:
    """`waits_for_join` and `waits_for_sync` are requests to be answered when the barrier opens; None: there is none."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "expire",
        "instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "waits_for_join",
        "waits_for_sync",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Sequence[Protocol],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = tuple(protocols)
        self.assignment = assignment
        self.is_new = False
        self.waits_for_join: Waiter | None = None
        self.waits_for_sync: Waiter | None = None
        self.expire: Callable[[Any, int], CoordinatorDecision[None]] | None = None
        """What happens when its session ends: made once, as every heartbeat sets the timer anew."""

    @classmethod
    def of_record(
        cls, record: GroupMetadataValue.MemberMetadata, protocol_type: str, protocol: str | None
    ) -> "ClassicMember":
        return cls(
            record.member_id,
            instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=(
                record.session_timeout if record.rebalance_timeout == -1 else record.rebalance_timeout
            ),
            session_timeout_ms=record.session_timeout,
            protocol_type=protocol_type,
            protocols=[Protocol(protocol or "", bytes(record.subscription))],
            assignment=bytes(record.assignment),
        )

    def record(self, protocol: str, assignment: bytes) -> GroupMetadataValue.MemberMetadata:
        return GroupMetadataValue.MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=assignment,
        )

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def keeps_its_session(self) -> bool:
        """A member that waits for the others need not be heard of; a new one, which may have given up, must."""
        return not self.is_new and (self.waits_for_join is not None or self.waits_for_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        return next(offered.metadata for offered in self.protocols if offered.name == protocol)

    def vote(self, candidates: Collection[str]) -> str:
        """The first of its protocols that everybody has."""
        return next(offered.name for offered in self.protocols if offered.name in candidates)

    def described(self, protocol: str | None) -> DescribedMember:
        """With no protocol, as one whose subscription is about to change."""
        return DescribedMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )

    def for_leader(self, protocol: str | None) -> JoinGroupResponse.JoinGroupResponseMember:
        return JoinGroupResponse.JoinGroupResponseMember(
            member_id=self.member_id, group_instance_id=self.instance_id, metadata=self.metadata(protocol)
        )
