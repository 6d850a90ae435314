"""Divides partitions among members that all want the same topics.

Theory of operation: every member gets `least` partitions, and as many of them one more as there are partitions over.

1. Members keep what they have, up to `least` or, for the first who have that many, `most`. Partitions far from their
   member are not kept (KIP-881).
2. Partitions without a member go to members near them, to those below `least` first, in turns.
3. The others are dealt in turns to members below `least`, and then one each to members that may have `most`.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import Division, Topics
from ottla.client.membership.assignors.java_order import text_order
from ottla.client.membership.assignors.sticky_racks import RackMap


class EqualDivision:
    """Used once. After `divide`, `moving` has the partitions that another member has to give up first."""

    def __init__(
        self,
        topics: Topics,
        racks: RackMap,
        owned: Mapping[str, Sequence[TopicPartition]],
        contested: frozenset[TopicPartition],
    ) -> None:
        self._topics = topics
        self._racks = racks
        self._owned = owned
        self._contested = contested
        self._given: Division = {member_id: [] for member_id in owned}
        self._taken_from: dict[TopicPartition, str] = {}
        self.moving: dict[TopicPartition, str] = {}

        partition_count = sum(map(len, topics.values()))
        self._least, self._largest_shares_left = divmod(partition_count, len(owned))
        self._most = self._least + (self._largest_shares_left > 0)
        self._below_least: list[str] = []
        self._at_least: list[str] = []
        """Have `least`, and may still be given one more."""

    def divide(self) -> Division:
        for member_id, owned in self._owned.items():
            self._keep(member_id, owned)
        self._below_least.sort(key=text_order)
        self._at_least.sort(key=text_order)
        free = self._racks.fewest_members_first(self._free_partitions())
        if self._racks.is_used:
            free = self._give_to_near_members(free)
        self._deal(free)
        return self._given

    def _keep(self, member_id: str, owned: Sequence[TopicPartition]) -> None:
        near = []
        for partition in owned:
            if self._racks.is_far(member_id, partition):
                self._taken_from[partition] = member_id
            elif partition not in self._contested:
                near.append(partition)
        near.sort(key=lambda partition: (partition.partition, partition.topic))
        kept = near
        if len(near) < self._least:
            self._below_least.append(member_id)
        elif len(near) >= self._most and self._largest_shares_left:
            kept = near[: self._most]
            self._count_largest_share()
        else:
            kept = near[: self._least]
            if self._largest_shares_left:
                self._at_least.append(member_id)
        self._given[member_id] += kept
        self._taken_from.update(dict.fromkeys(near[len(kept) :], member_id))

    def _count_largest_share(self) -> None:
        self._largest_shares_left -= 1
        if not self._largest_shares_left:
            self._at_least.clear()

    def _free_partitions(self) -> list[TopicPartition]:
        kept = {partition for partitions in self._given.values() for partition in partitions}
        return [
            partition
            for topic in sorted(self._topics)
            for number in range(len(self._topics[topic]))
            if (partition := TopicPartition(topic, number)) not in kept
        ]

    def _give_to_near_members(self, free: list[TopicPartition]) -> list[TopicPartition]:
        """Returns the partitions for which there was none."""
        left = []
        turn = 0
        for partition in free:
            place = self._next_near(partition, self._below_least, turn)
            if place is not None:
                turn = self._give_below_least(partition, place)
                continue
            place = self._next_near(partition, self._at_least, 0)
            if place is None:
                left.append(partition)
            else:
                member_id = self._at_least[place]
                if self._give(partition, member_id) == self._most:
                    del self._at_least[place]
                    self._count_largest_share()
        return left

    def _next_near(self, partition: TopicPartition, members: list[str], turn: int) -> int | None:
        turns = (*range(turn, len(members)), *range(turn))
        return next((place for place in turns if self._racks.is_near(members[place], partition)), None)

    def _give_below_least(self, partition: TopicPartition, place: int) -> int:
        """Returns whose turn it is next."""
        member_id = self._below_least[place]
        count = self._give(partition, member_id)
        if count < self._least:
            place += 1
        else:
            del self._below_least[place]
            if count < self._most and self._largest_shares_left:
                self._at_least.append(member_id)
        return place % len(self._below_least) if self._below_least else 0

    def _deal(self, free: list[TopicPartition]) -> None:
        below = deque(self._below_least)
        at_least = deque(self._at_least)
        for partition in free:
            if below:
                member_id = below.popleft()
                if self._give(partition, member_id) < self._least:
                    below.append(member_id)
                else:
                    at_least.append(member_id)
            else:
                self._give(partition, at_least.popleft())

    def _give(self, partition: TopicPartition, member_id: str) -> int:
        """Returns how many the member has now."""
        share = self._given[member_id]
        share.append(partition)
        if partition in self._contested or self._taken_from.get(partition, member_id) != member_id:
            self.moving[partition] = member_id
        return len(share)
