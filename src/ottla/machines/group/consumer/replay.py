"""Records of consumer groups, and what each does to its group."""

from typing import TYPE_CHECKING

from ottla.machines.group.consumer.group import ConsumerGroup
from ottla.wire.message import Message
from ottla.wire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from ottla.machines.group.membership import Group

_OURS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)


def replay_consumer_record(groups: "dict[str, Group]", key: Message, value: Message | None) -> None:
    """Records of other kinds of groups (share, streams) are passed over.

    A compacted log may have any record of a group first, and a tombstone of what was never there. Offsets that came
    before made a simple group of the name, which gives way.
    """
    if not isinstance(key, _OURS):
        return
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    match key, value:
        case ConsumerGroupMetadataKey(), None:
            del groups[key.group_id]
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.replay_epoch(value)
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue() | None:
            group.replay_member(key.member_id, value)
        case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
            group.replay_target_epoch(value)
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue() | None:
            group.replay_target(key.member_id, value)
        case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue() | None:
            group.replay_current(key.member_id, value)
        case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue() | None:
            group.replay_regex(key.regular_expression, value)
