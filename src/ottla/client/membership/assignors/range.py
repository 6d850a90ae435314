"""Each topic by itself: its partitions in ranges, one for each member in order.

Topics with the same members and as many partitions are divided alike, so that a member has the same partitions of each
(co-partitioning). With racks (KIP-881), partitions first go to members in a rack of theirs, within what each member may
have, and what is left is divided as without.
"""

from collections.abc import Callable, Sequence
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import (
    EAGER,
    Division,
    Racks,
    Subscriptions,
    Topics,
    in_member_order,
    rack_of,
    racks_matter,
)

MemberRacks = tuple[tuple[str, str | None], ...]
"""The members of a topic in order, with their racks."""


class RangeAssignor:
    name: Final = "range"
    protocols: Final = (EAGER,)

    def user_data(self) -> None:
        return None

    def on_assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Every division is made afresh."""

    def divide(self, topics: Topics, subscriptions: Subscriptions) -> Division:
        ordered = in_member_order(subscriptions)
        wanted = {member_id: frozenset(subscriptions[member_id].topics) for member_id in ordered}
        shares = []
        for topic, racks in topics.items():
            members = tuple((member, rack_of(subscriptions[member])) for member in ordered if topic in wanted[member])
            if members and racks:
                shares.append(_TopicShares(topic, racks, members))

        if any(share.racks_matter for share in shares):
            _match_racks(shares)
        for share in shares:
            share.give_ranges(lambda member_id, partition: True)

        division: Division = {member_id: [] for member_id in subscriptions}
        for share in shares:
            for member_id, partitions in share.given.items():
                division[member_id] += (TopicPartition(share.topic, partition) for partition in sorted(partitions))
        return division


class _TopicShares:
    """One topic while it is divided: who has how much of it, and what is left."""

    def __init__(self, topic: str, racks: Sequence[Racks], members: MemberRacks) -> None:
        self.topic = topic
        self.members = members
        self.given: dict[str, list[int]] = {member_id: [] for member_id, _ in members}
        self._rack_of = dict(members)
        self._racks = racks
        self._left = dict.fromkeys(range(len(racks)))
        self._each, self._larger_shares_left = divmod(len(racks), len(members))
        member_racks = {rack for _, rack in members if rack}
        self.has_racks = bool(member_racks)
        self.racks_matter = racks_matter(member_racks, racks)

    @property
    def partition_count(self) -> int:
        return len(self._racks)

    def room_for(self, member_id: str) -> int:
        """How many more this member may be given."""
        return max(0, self._each + (self._larger_shares_left > 0) - len(self.given[member_id]))

    def is_near(self, member_id: str, partition: int) -> bool:
        rack = self._rack_of[member_id]
        return rack is None or rack in self._racks[partition]

    def give(self, member_id: str, partitions: Sequence[int]) -> None:
        share = self.given[member_id]
        share += partitions
        if len(share) > self._each:
            self._larger_shares_left -= 1
        for partition in partitions:
            del self._left[partition]

    def give_ranges(self, may_have: Callable[[str, int], bool]) -> None:
        for member_id, _ in self.members:
            if not self._left:
                return
            fitting = [partition for partition in self._left if may_have(member_id, partition)]
            if chosen := fitting[: self.room_for(member_id)]:
                self.give(member_id, chosen)


def _match_racks(shares: list[_TopicShares]) -> None:
    """Gives partitions to members that are near, keeping the partitions of topics together that are divided alike."""
    alike: dict[tuple[MemberRacks, int], list[_TopicShares]] = {}
    for share in shares:
        if share.has_racks:
            alike.setdefault((share.members, share.partition_count), []).append(share)
    for together in alike.values():
        if len(together) > 1:
            _match_racks_of_all(together)
        elif together[0].racks_matter:
            together[0].give_ranges(together[0].is_near)


def _match_racks_of_all(together: list[_TopicShares]) -> None:
    """A partition number goes to the first member that is near that partition of every topic."""
    with_room = [member_id for member_id, _ in together[0].members]
    for partition in range(together[0].partition_count):
        near = (
            member_id
            for member_id in with_room
            if all(share.is_near(member_id, partition) and share.room_for(member_id) for share in together)
        )
        member_id = next(near, None)
        if member_id is None:
            continue
        for share in together:
            share.give(member_id, [partition])
        if not any(share.room_for(member_id) for share in together):
            with_room.remove(member_id)
