"""Which members are near which partitions, for the sticky assignors (KIP-881)."""

from collections import Counter

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import Racks, Subscriptions, Topics, rack_of, racks_matter

_NONE: Racks = frozenset()


class RackMap:
    """`is_used` says whether racks make a difference at all; if not, nobody is far from anything."""

    def __init__(self, topics: Topics, subscriptions: Subscriptions) -> None:
        members = {member_id: rack for member_id, asked in subscriptions.items() if (rack := rack_of(asked))}
        self._members_in = Counter(members.values())
        self._topics = topics
        every = [racks for partitions in topics.values() for racks in partitions] if members else []
        self.is_used = racks_matter(self._members_in.keys(), every)
        self._rack_of = members if self.is_used else {}

    def is_far(self, member_id: str, partition: TopicPartition) -> bool:
        rack = self._rack_of.get(member_id)
        return rack is not None and rack not in self._racks(partition)

    def is_near(self, member_id: str, partition: TopicPartition) -> bool:
        """Known to be near: a member without a rack is neither far nor near."""
        return self._rack_of.get(member_id) in self._racks(partition)

    def fewest_members_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """The partitions that few members are near, before those that many are.

        As soon as one member has a rack, even if racks make no difference otherwise: so does Kafka.
        """
        if not self._members_in:
            return partitions
        return sorted(partitions, key=lambda partition: sum(self._members_in[rack] for rack in self._racks(partition)))

    def _racks(self, partition: TopicPartition) -> Racks:
        of_topic = self._topics[partition.topic]
        return of_topic[partition.partition] if partition.partition < len(of_topic) else _NONE
