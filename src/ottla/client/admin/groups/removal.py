"""Deleting groups, and removing members from one."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.asking import Asking
from ottla.client.admin.groups.describing import describe_consumer_groups
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.admin.routing import ask_coordinator, by_coordinator
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import error_for
from ottla.wire import messages


class MemberToRemove(NamedTuple):
    """A member by one of its names: a static one by its instance id, any other by its member id."""

    group_instance_id: str | None = None
    member_id: str = ""


async def delete_groups(
    asking: Asking, group_ids: Iterable[str], *, timeout: float | None = None
) -> Results[str, None]:
    """Deletes groups of any kind, with their offsets. They must have no members."""
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[None]]:
        response = await asking.once(node_id, messages.DeleteGroupsRequest(groups_names=left), deadline)
        return {one.group_id: failure(one) for one in response.results}

    return await asking.each(
        "delete_groups", group_ids, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline
    )


async def remove_members_from_consumer_group(
    asking: Asking,
    group_id: str,
    members: Iterable[MemberToRemove | str] | None = None,
    *,
    reason: str | None = None,
    timeout: float | None = None,
) -> Results[MemberToRemove, None]:
    """Makes members leave: these (text is a group instance id), or all if none are named."""
    deadline = asking.deadline(timeout)
    if members is None:
        described = (await describe_consumer_groups(asking, [group_id], timeout=timeout))[group_id]
        wanted = [
            MemberToRemove(one.group_instance_id, "" if one.group_instance_id is not None else one.member_id)
            for one in described.members
        ]
    else:
        wanted = [MemberToRemove(one) if isinstance(one, str) else one for one in members]
    said = f"member was removed by an admin{f': {reason}' if reason else ''}"

    async def attempt(left: list[MemberToRemove]) -> dict[MemberToRemove, Outcome[None]]:
        identity = messages.LeaveGroupRequest.MemberIdentity
        request = messages.LeaveGroupRequest(
            group_id=group_id,
            members=[
                identity(member_id=one.member_id, group_instance_id=one.group_instance_id, reason=said) for one in left
            ],
        )
        response = await ask_coordinator(asking, CoordinatorKind.GROUP, group_id, request, deadline)
        # A static member is reported with the member id that it has, which was not asked for.
        answer = {one.group_instance_id or one.member_id: one.error_code for one in response.members}
        return {
            one: error_for(code) if (code := answer.get(one.group_instance_id or one.member_id, -1)) else None
            for one in left
        }

    return await asking.each("remove_members_from_consumer_group", wanted, attempt, deadline)
