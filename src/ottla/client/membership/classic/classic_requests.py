"""The requests of a classic member."""

from collections.abc import Collection, Mapping
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import Assignor, Division, MemberSubscription
from ottla.client.membership.classic.consumer_protocol import PROTOCOL_TYPE, write_assignment, write_subscription
from ottla.client.membership.member import NO_GENERATION, Identity, MemberSettings
from ottla.wire.messages import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

_LONGEST_REASON: Final = 255
_FIRST_WITH_MANY_MEMBERS: Final = 3


def join_request(
    settings: MemberSettings,
    identity: Identity,
    assignors: Mapping[str, Assignor],
    topics: Collection[str],
    owned: Collection[TopicPartition],
    reason: str,
) -> JoinGroupRequest:
    """One protocol for each assignor, the preferred one first: the coordinator takes one that all members have."""
    generation = None if identity.generation == NO_GENERATION else identity.generation
    protocols = []
    for name, assignor in assignors.items():
        said = MemberSubscription(tuple(topics), assignor.user_data(), tuple(owned), generation, settings.client_rack)
        protocols.append(JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=write_subscription(said)))
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.max_poll_interval_ms,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason[:_LONGEST_REASON],
    )


def sync_request(group_id: str, identity: Identity, protocol: str, division: Division) -> SyncGroupRequest:
    """`division` is empty but for the leader's."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in division.items()
        ],
    )


def heartbeat_request(group_id: str, identity: Identity) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group_id,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
    )


def leave_request(version: int, group_id: str, identity: Identity, reason: str) -> LeaveGroupRequest:
    if version < _FIRST_WITH_MANY_MEMBERS:
        return LeaveGroupRequest(group_id=group_id, member_id=identity.member_id)
    leaving = LeaveGroupRequest.MemberIdentity(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, reason=reason[:_LONGEST_REASON]
    )
    return LeaveGroupRequest(group_id=group_id, members=[leaving])
