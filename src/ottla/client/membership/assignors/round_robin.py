"""All partitions of all topics in a row, dealt to the members in turn. A member passes on what it does not want."""

from collections.abc import Sequence
from itertools import cycle
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import EAGER, Division, Subscriptions, Topics, in_member_order


class RoundRobinAssignor:
    name: Final = "roundrobin"
    protocols: Final = (EAGER,)

    def user_data(self) -> None:
        return None

    def on_assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Every division is made afresh."""

    def divide(self, topics: Topics, subscriptions: Subscriptions) -> Division:
        division: Division = {member_id: [] for member_id in subscriptions}
        wanted = {member_id: frozenset(subscription.topics) for member_id, subscription in subscriptions.items()}
        wanted_by_any = frozenset().union(*wanted.values())
        turns = cycle(in_member_order(subscriptions))
        for topic in sorted(wanted_by_any.intersection(topics)):
            for partition in range(len(topics[topic])):
                member_id = next(member_id for member_id in turns if topic in wanted[member_id])
                division[member_id].append(TopicPartition(topic, partition))
        return division
