"""Which groups there are. Every coordinator knows its own, so all brokers are asked."""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from ottla.client.admin.asking import Asking
from ottla.client.admin.known_values import named
from ottla.wire import messages


class GroupType(Enum):
    """Which protocol the members of a group speak."""

    UNKNOWN = "Unknown"
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"


class GroupState(Enum):
    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"


class GroupListing(NamedTuple):
    group_id: str
    type: GroupType
    """UNKNOWN if the broker does not tell; so do brokers before version 3.7."""
    protocol: str
    """What the group is for: "consumer", "share", "connect", …; empty if only offsets are committed under its name."""
    state: GroupState
    """UNKNOWN if the broker does not tell; so do brokers before version 2.6."""

    @property
    def is_simple_consumer_group(self) -> bool:
        return self.type in (GroupType.CLASSIC, GroupType.UNKNOWN) and not self.protocol


CONSUMER_PROTOCOL = "consumer"


async def list_groups(
    asking: Asking,
    *,
    states: Iterable[GroupState] = (),
    types: Iterable[GroupType] = (),
    protocols: Iterable[str] | None = None,
    timeout: float | None = None,
) -> list[GroupListing]:
    """All groups, or those in these states, of these types, with these protocols; in the order of their ids."""
    deadline = asking.deadline(timeout)
    request = messages.ListGroupsRequest(
        states_filter=[state.value for state in states], types_filter=[type.value.lower() for type in types]
    )

    wanted = None if protocols is None else set(protocols)
    # By id, because a group that moves meanwhile may be reported twice.
    groups = {
        one.group_id: GroupListing(
            one.group_id,
            named(GroupType, one.group_type, GroupType.UNKNOWN),
            one.protocol_type,
            named(GroupState, one.group_state, GroupState.UNKNOWN),
        )
        for response in (await asking.every_broker(request, deadline)).values()
        for one in response.groups
        if wanted is None or one.protocol_type in wanted
    }
    return sorted(groups.values(), key=lambda one: one.group_id)


async def list_consumer_groups(
    asking: Asking,
    *,
    states: Iterable[GroupState] = (),
    types: Iterable[GroupType] = (),
    timeout: float | None = None,
) -> list[GroupListing]:
    """The groups of consumers alone, of both protocols, with those that are only a name for offsets."""
    return await list_groups(asking, states=states, types=types, protocols=(CONSUMER_PROTOCOL, ""), timeout=timeout)
