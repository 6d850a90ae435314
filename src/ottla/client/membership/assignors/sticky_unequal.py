"""Divides partitions among members that want different topics.

Theory of operation: members keep what they have. A partition without a member goes to the member with the fewest that
wants it; near ones first where racks matter. Then partitions move, one at a time, from a member to another that has at
least two fewer, as long as that helps. Partitions that only one member wants stay out of that, as do members that have
all they want. If all the moving has not made the division more even, it is taken back. Two partitions of a topic never
swap their members: where that would happen, the earlier move is undone instead (`_Moves`).
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import Division, Topics
from ottla.client.membership.assignors.java_order import HashedPartitions, text_order
from ottla.client.membership.assignors.sticky_racks import RackMap


class EarlierOwner(NamedTuple):
    """Who had a partition some generations ago."""

    member_id: str
    generation: int


class UnequalDivision:
    """Used once."""

    def __init__(
        self,
        topics: Topics,
        racks: RackMap,
        wanted: Mapping[str, Sequence[str]],
        owned: Mapping[str, Sequence[TopicPartition]],
    ) -> None:
        self._topics = topics
        self._racks = racks
        self._wanted = {member: [topic for topic in wants if topic in topics] for member, wants in wanted.items()}
        self._candidates: dict[str, list[str]] = {topic: [] for topic in topics}
        for member_id, wants in self._wanted.items():
            for topic in wants:
                self._candidates[topic].append(member_id)
        self._most_for = {member: sum(len(topics[topic]) for topic in wants) for member, wants in self._wanted.items()}
        self._owned = owned
        self._shares: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in wanted}
        self._owner: dict[TopicPartition, str] = {}
        self._by_size = _MembersBySize(wanted)
        self._moves = _Moves()

    def divide(self, earlier: Mapping[TopicPartition, EarlierOwner]) -> Division:
        had_to_revoke = self._keep()
        by_candidates = sorted(self._topics, key=lambda topic: (len(self._candidates[topic]), topic))
        every = [TopicPartition(topic, n) for topic in by_candidates for n in range(len(self._topics[topic]))]
        free = [partition for partition in every if partition not in self._owner]
        is_first_division = not self._owner
        self._give_out(free)

        settled = self._take_out_settled_members()
        before = {member_id: dict(share) for member_id, share in self._shares.items()}
        sizes_before = self._by_size.sizes()
        if not had_to_revoke:
            self._move(self._movable(free), earlier)
        has_moved = self._move(self._movable(every), earlier)
        if has_moved and not is_first_division and _unevenness(self._by_size.sizes()) >= _unevenness(sizes_before):
            self._shares = before
        return {member_id: list(share) for member_id, share in {**self._shares, **settled}.items()}

    def _keep(self) -> bool:
        """Members keep what they have, still want and are not far from; says whether there was anything else."""
        had_to_revoke = False
        for member_id, partitions in self._owned.items():
            for partition in partitions:
                if partition.topic in self._wanted[member_id] and not self._racks.is_far(member_id, partition):
                    self._give(partition, member_id)
                else:
                    had_to_revoke = True
        return had_to_revoke

    def _give_out(self, free: list[TopicPartition]) -> None:
        left = free
        if self._racks.is_used:
            left = [partition for partition in free if not self._give_to_smallest(partition, must_be_near=True)]
        for partition in left:
            self._give_to_smallest(partition, must_be_near=False)

    def _give_to_smallest(self, partition: TopicPartition, *, must_be_near: bool) -> bool:
        for member_id in self._by_size:
            if partition.topic not in self._wanted[member_id]:
                continue
            if not (must_be_near and self._racks.is_far(member_id, partition)):
                self._give(partition, member_id)
                return True
        return False

    def _give(self, partition: TopicPartition, member_id: str) -> None:
        self._owner[partition] = member_id
        self._shares[member_id][partition] = None
        self._by_size.add_to(member_id, 1)

    def _take_out_settled_members(self) -> dict[str, dict[TopicPartition, None]]:
        """The shares of members that have all that they want and that nobody else wants: they take no further part."""
        settled = {}
        for member_id in self._wanted:
            share = self._shares[member_id]
            has_all = len(share) >= self._most_for[member_id]
            if has_all and not any(self._is_wanted_by_many(partition.topic) for partition in share):
                settled[member_id] = self._shares.pop(member_id)
                self._by_size.remove(member_id)
        return settled

    def _is_wanted_by_many(self, topic: str) -> bool:
        return len(self._candidates[topic]) > 1

    def _movable(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [partition for partition in partitions if self._is_wanted_by_many(partition.topic)]

    def _move(self, partitions: list[TopicPartition], earlier: Mapping[TopicPartition, EarlierOwner]) -> bool:
        """Moves partitions as long as one of them can be; says whether any was."""
        has_moved = False
        is_even = not partitions or self._is_even()
        while not is_even:
            moved_now = False
            for partition in partitions:
                new_owner = self._better_owner(partition, earlier.get(partition))
                if new_owner is None:
                    continue
                self._move_to(partition, new_owner)
                moved_now = has_moved = True
                is_even = self._is_even()
                if is_even:
                    break
            if not moved_now:
                break
        return has_moved

    def _better_owner(self, partition: TopicPartition, earlier: EarlierOwner | None) -> str | None:
        """The earlier owner if it has fewer, or else the member with the fewest, if any has fewer.

        Kafka does not ask whether the earlier owner still wants the topic. If not, it joins again and says so.
        """
        size = self._size(self._owner[partition])
        if earlier is not None and earlier.member_id in self._shares and size > self._size(earlier.member_id) + 1:
            return earlier.member_id
        if not any(size > self._size(other) + 1 for other in self._candidates[partition.topic]):
            return None
        return next(member_id for member_id in self._by_size if partition.topic in self._wanted[member_id])

    def _size(self, member_id: str) -> int:
        return self._by_size.size_of(member_id)

    def _move_to(self, partition: TopicPartition, new_owner: str) -> None:
        moved = self._moves.partition_to_move(partition, self._owner[partition], new_owner)
        old_owner = self._owner[moved]
        self._moves.note(moved, old_owner, new_owner)
        del self._shares[old_owner][moved]
        self._by_size.add_to(old_owner, -1)
        self._give(moved, new_owner)

    def _is_even(self) -> bool:
        """No member that wants more could take a partition from one that has at least two more."""
        if self._by_size.smallest() >= self._by_size.largest() - 1:
            return True
        largest: dict[str, int] = dict.fromkeys(self._topics, 0)
        for share in self._shares.values():
            size = len(share)
            for topic in {partition.topic for partition in share}:
                largest[topic] = max(largest[topic], size)
        return not any(
            len(share) + 1 < largest[topic]
            for member_id, share in self._shares.items()
            if len(share) != self._most_for[member_id]
            for topic in self._wanted[member_id]
        )


def _unevenness(sizes: Sequence[int]) -> int:
    """The sum of the differences between all pairs."""
    return sum(size * (2 * place - len(sizes) + 1) for place, size in enumerate(sorted(sizes)))


class _MembersBySize:
    """Members in the order of how many partitions they have, then of their ids."""

    def __init__(self, member_ids: Mapping[str, object]) -> None:
        self._size = dict.fromkeys(member_ids, 0)
        self._sorted = sorted((0, text_order(member_id), member_id) for member_id in member_ids)

    def __iter__(self) -> Iterator[str]:
        """Sees no change that is made meanwhile."""
        return (member_id for _, _, member_id in list(self._sorted))

    def add_to(self, member_id: str, count: int) -> None:
        size = self._size[member_id] + count
        self.remove(member_id)
        self._size[member_id] = size
        insort(self._sorted, (size, text_order(member_id), member_id))

    def remove(self, member_id: str) -> None:
        entry = (self._size.pop(member_id), text_order(member_id), member_id)
        del self._sorted[bisect_left(self._sorted, entry)]

    def size_of(self, member_id: str) -> int:
        return self._size[member_id]

    def sizes(self) -> list[int]:
        return list(self._size.values())

    def smallest(self) -> int:
        return self._sorted[0][0]

    def largest(self) -> int:
        return self._sorted[-1][0]


class _Moves:
    """What has moved, from which member to which, by topic."""

    def __init__(self) -> None:
        self._way_of: dict[TopicPartition, tuple[str, str]] = {}
        self._by_way: dict[tuple[str, str, str], HashedPartitions] = {}

    def partition_to_move(self, partition: TopicPartition, old_owner: str, new_owner: str) -> TopicPartition:
        """Another partition of the topic, if that one has come the opposite way: it goes back."""
        if partition in self._way_of:
            old_owner = self._way_of[partition][0]
        back = self._by_way.get((partition.topic, new_owner, old_owner))
        return partition if back is None else back.first()

    def note(self, partition: TopicPartition, old_owner: str, new_owner: str) -> None:
        """A partition that moves on has moved from where it first was; one that comes back has not moved."""
        way = self._way_of.pop(partition, None)
        if way is not None:
            key = (partition.topic, *way)
            self._by_way[key].remove(partition)
            if not self._by_way[key]:
                del self._by_way[key]
            if way[0] == new_owner:
                return
            old_owner = way[0]
        self._way_of[partition] = old_owner, new_owner
        self._by_way.setdefault((partition.topic, old_owner, new_owner), HashedPartitions()).add(partition)
