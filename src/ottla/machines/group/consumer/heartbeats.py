"""What a heartbeat says: whether it makes sense, whether it is of a member in its right epoch, and what it changes."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ottla.machines.group.consumer.assignors import ASSIGNORS
from ottla.machines.group.consumer.member import JOINING, LEAVING_FOR_A_WHILE, ConsumerMember
from ottla.machines.group.consumer.reconciling import Owned
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

Heartbeat = ConsumerGroupHeartbeatRequest
Reply = ConsumerGroupHeartbeatResponse


class Client(NamedTuple):
    """Who sends a heartbeat. `may_describe` says which topics an expression may find for it; without it, all."""

    client_id: str
    client_host: str
    may_describe: Callable[[str], bool] | None = None


class Refused(NamedTuple):
    error: ErrorCode
    message: str


def check_request(request: Heartbeat) -> Refused | None:
    """What makes no sense in a heartbeat, whatever the group."""
    problem = None
    if not request.group_id or request.instance_id == "" or request.rack_id == "":
        problem = "group, instance and rack must not be empty"
    elif request.member_epoch < LEAVING_FOR_A_WHILE:
        problem = f"{request.member_epoch} is no epoch of a member"
    elif not request.member_id and request.member_epoch != JOINING:
        problem = "a member must say its id"
    elif request.member_epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        problem = "only a static member can leave for a while"
    elif request.member_epoch == JOINING:
        if request.rebalance_timeout_ms == -1:
            problem = "who joins must say its rebalance timeout"
        elif request.topic_partitions is None or request.topic_partitions:
            problem = "who joins has no partitions"
        elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            problem = "who joins must subscribe to something"
    if problem is not None:
        return Refused(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        return Refused(ErrorCode.UNSUPPORTED_ASSIGNOR, f"{request.server_assignor} is none of {known}")
    return None


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned | None) -> Refused | None:
    """A member one step behind has not got its last reply, and is taken if it has nothing that is not its own.

    A static member that is away has said so after its last reply: a heartbeat from before that is too late.
    """
    if epoch == member.epoch:
        return None
    if epoch == member.previous_epoch < member.epoch and owned is not None:
        has_no_others = all(owned[id] <= member.assigned.get(id, {}).keys() for id in owned)
        if has_no_others:
            return None
    return Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member is in epoch {member.epoch} and not in {epoch}: it must abandon its partitions and join again",
    )


def updated_by(member: ConsumerMember, request: Heartbeat, client: Client) -> ConsumerMember:
    """What a heartbeat does not say stays as it is."""
    names, regex, timeout_ms = (
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.rebalance_timeout_ms,
    )
    return replace(
        member,
        client_id=client.client_id,
        client_host=client.client_host,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topic_names=member.topic_names if names is None else frozenset(names),
        topic_regex=member.topic_regex if regex is None else regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def owned_in(request: Heartbeat) -> Owned | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: frozenset(topic.partitions) for topic in request.topic_partitions}


def says_everything(request: Heartbeat) -> bool:
    """A member that does may know nothing: it joins, or has heard nothing for a while."""
    return request.member_epoch == JOINING or (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
