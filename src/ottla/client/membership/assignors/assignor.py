"""What an assignor is: a rule by which the leader of a classic group divides partitions among its members.

Which member leads is chance, and members may be Java's, librdkafka's or ours. A group stays balanced and sticky through
a change of leader only if every leader decides alike, so the rules here give what Apache Kafka's assignors give for the
same members, partitions and racks (KIP-881), down to which of two equal members gets the odd partition.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.java_order import text_order

Racks = frozenset[str]
Topics = Mapping[str, Sequence[Racks]]
"""Topics that exist, wanted or not: the racks of the replicas of each of their partitions, by partition."""

Division = dict[str, list[TopicPartition]]
"""What each member gets, by member id."""

EAGER: Final = "eager"
"""Members give up all partitions before they join."""
COOPERATIVE: Final = "cooperative"
"""Members keep their partitions while they join, and give up those that move afterwards (KIP-429)."""


class MemberSubscription(NamedTuple):
    """What a member says of itself when it joins."""

    topics: Sequence[str]
    user_data: bytes | None = None
    """What the member's assignor has to say to the leader's."""
    owned_partitions: Sequence[TopicPartition] = ()
    generation: int | None = None
    """The generation in which the partitions were given to it; None from clients before Kafka 3.3."""
    rack: str | None = None
    group_instance_id: str | None = None


Subscriptions = Mapping[str, MemberSubscription]
"""By member id, in the order in which the coordinator lists the members."""


class Assignor(Protocol):
    """One for each consumer: it may remember what its consumer was given."""

    @property
    def name(self) -> str:
        """What the members of a group must agree on."""
        ...

    @property
    def protocols(self) -> Collection[str]:
        """Of `EAGER` and `COOPERATIVE`, those that its divisions are fit for."""
        ...

    def user_data(self) -> bytes | None:
        """What to tell the leader's assignor when this consumer joins."""
        ...

    def divide(self, topics: Topics, subscriptions: Subscriptions) -> Division:
        """Every member has an entry. Subscribed topics that do not exist are not in `topics`."""
        ...

    def on_assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Its consumer was given these."""
        ...


def in_member_order(subscriptions: Subscriptions) -> list[str]:
    """Static members first, by their instance ids; then the others, by member id.

    A static member keeps its place through a restart, which gives it another member id (KIP-345).
    """

    def place(member_id: str) -> tuple[bool, bytes]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, text_order(member_id if instance_id is None else instance_id)

    return sorted(subscriptions, key=place)


def racks_matter(member_racks: Collection[str], partition_racks: Collection[Racks]) -> bool:
    """Whether members can be closer to some partitions than to others."""
    of_partitions = Racks().union(*partition_racks)
    if of_partitions.isdisjoint(member_racks):
        return False
    return any(racks != of_partitions for racks in partition_racks)


def rack_of(subscription: MemberSubscription) -> str | None:
    """An empty rack is none."""
    return subscription.rack or None
