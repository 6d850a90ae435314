"""What members of either protocol tell the log: that they have joined, what they have, and how they lost it."""

from collections.abc import Collection

from ottla.base.ids import TopicPartition
from ottla.client.client_log import ClientLog
from ottla.client.membership.member import Identity, MemberSettings

_SHOWN = 5


def tell_joined(log: ClientLog, group_id: str, identity: Identity, assigned: Collection[TopicPartition]) -> None:
    names = ", ".join(map(str, sorted(assigned)[:_SHOWN])) + (", …" if len(assigned) > _SHOWN else "")
    has = "1 partition" if len(assigned) == 1 else f"{len(assigned)} partitions"
    which = f": {names}" if names else ""
    log.over(("group", group_id), f"joined group {group_id!r}")
    log.news(
        ("assignment", group_id),
        f"member {identity.member_id} of group {group_id!r}, generation {identity.generation}, has {has}{which}",
    )


def tell_lost(log: ClientLog, group_id: str, why: str, partitions: int) -> None:
    has = "1 partition" if partitions == 1 else f"{partitions} partitions"
    log.trouble(
        ("group", group_id), f"removed from group {group_id!r} ({why}), with {has} assigned to it; joining again"
    )


def tell_no_polls(log: ClientLog, settings: MemberSettings) -> None:
    log.trouble(
        ("group", settings.group_id),
        f"leaves group {settings.group_id!r}: the application has not polled for {settings.max_poll_interval_ms} ms "
        "(max.poll.interval.ms); it joins again with the next poll",
    )
