"""Balanced, and as many partitions as possible stay where they are (KIP-54); cooperative since KIP-429.

Theory of operation: members tell what they were given, and in which generation. From that follows who has a claim on
which partition: the claim of the newest generation counts, and two of the same generation cancel each other. If all
members want the same topics, `EqualDivision` divides; otherwise `UnequalDivision` does.

The eager assignor tells claims in its user data, since its members own nothing when they join. The cooperative one
takes what the subscription says, and leaves out of the division every partition that another member still owns: that
member gives it up first, all join again, and then it is free.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import (
    COOPERATIVE,
    EAGER,
    Division,
    MemberSubscription,
    Subscriptions,
    Topics,
)
from ottla.client.membership.assignors.java_order import in_hash_order
from ottla.client.membership.assignors.sticky_data import (
    NO_GENERATION,
    Held,
    read_generation,
    read_held,
    write_generation,
    write_held,
)
from ottla.client.membership.assignors.sticky_equal import EqualDivision
from ottla.client.membership.assignors.sticky_racks import RackMap
from ottla.client.membership.assignors.sticky_unequal import EarlierOwner, UnequalDivision


class Claims(NamedTuple):
    """Who may keep what, by member id in the order in which members are asked."""

    owned: dict[str, list[TopicPartition]]
    contested: frozenset[TopicPartition]
    """Claimed by two members in the same generation."""


class StickyAssignor:
    name: Final = "sticky"
    protocols: Final = (EAGER,)

    def __init__(self) -> None:
        self._held: Held | None = None
        self._newest_generation = NO_GENERATION

    def user_data(self) -> bytes | None:
        return None if self._held is None else write_held(self._held)

    def on_assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._held = Held(partitions, generation)

    def divide(self, topics: Topics, subscriptions: Subscriptions) -> Division:
        held = {member_id: _held_by_user_data(subscription) for member_id, subscription in subscriptions.items()}
        division, _, self._newest_generation = _divided(topics, subscriptions, held, self._newest_generation)
        return division


class CooperativeStickyAssignor:
    name: Final = "cooperative-sticky"
    protocols: Final = (COOPERATIVE, EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION
        self._newest_generation = NO_GENERATION

    def user_data(self) -> bytes:
        return write_generation(self._generation)

    def on_assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        self._generation = generation

    def divide(self, topics: Topics, subscriptions: Subscriptions) -> Division:
        held = {member_id: _held_by_subscription(subscription) for member_id, subscription in subscriptions.items()}
        division, moving, self._newest_generation = _divided(topics, subscriptions, held, self._newest_generation)
        if moving is None:
            moving = _moving_partitions(division, subscriptions)
        for partition, member_id in moving.items():
            division[member_id].remove(partition)
        return division


def _held_by_user_data(subscription: MemberSubscription) -> Held:
    return read_held(subscription.user_data) if subscription.user_data else Held((), None)


def _held_by_subscription(subscription: MemberSubscription) -> Held:
    """Clients before Kafka 3.3 tell the generation in the user data alone."""
    generation = subscription.generation
    if generation is None and subscription.user_data is not None:
        generation = read_generation(subscription.user_data)
    return Held(subscription.owned_partitions, generation)


def _divided(
    topics: Topics, subscriptions: Subscriptions, held: dict[str, Held], newest_generation: int
) -> tuple[Division, dict[TopicPartition, str] | None, int]:
    """The division; the partitions that move between members, if they are known already; the newest generation seen."""
    wanted_by_any = frozenset[str]().union(*(subscription.topics for subscription in subscriptions.values()))
    topics = {topic: racks for topic, racks in topics.items() if topic in wanted_by_any}
    asked = in_hash_order(subscriptions)
    newest_generation = max(newest_generation, *(_generation_of(held[member_id]) for member_id in asked))
    claims = _settled_claims(asked, topics, subscriptions, held)
    racks = RackMap(topics, subscriptions)
    if _all_want_the_same(subscriptions[member_id].topics for member_id in asked):
        equal = EqualDivision(topics, racks, claims.owned, claims.contested)
        return equal.divide(), equal.moving, newest_generation
    earlier = _earlier_owners(asked, held, newest_generation)
    wanted = {member_id: subscriptions[member_id].topics for member_id in asked}
    return UnequalDivision(topics, racks, wanted, claims.owned).divide(earlier), None, newest_generation


def _generation_of(held: Held) -> int:
    return NO_GENERATION if held.generation is None else held.generation


def _all_want_the_same(subscribed: Iterable[Sequence[str]]) -> bool:
    """Members without any topic do not count as long as no other has been asked: so does Kafka."""
    common: frozenset[str] = frozenset()
    for topics in subscribed:
        if not common:
            common = frozenset(topics)
        elif len(topics) != len(common) or not common.issuperset(topics):
            return False
    return True


def _settled_claims(asked: list[str], topics: Topics, subscriptions: Subscriptions, held: dict[str, Held]) -> Claims:
    owned: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in asked}
    owner: dict[TopicPartition, str] = {}
    contested = set()
    for member_id in asked:
        generation = _generation_of(held[member_id])
        for partition in held[member_id].partitions:
            if partition.partition >= len(topics.get(partition.topic, ())):
                continue  # the topic is gone, or was made anew with fewer partitions
            other = owner.get(partition)
            if other is not None:
                its_generation = subscriptions[other].generation
                other_generation = NO_GENERATION if its_generation is None else its_generation
                if other_generation > generation:
                    continue
                owned[other].pop(partition, None)
                if other_generation == generation:
                    contested.add(partition)
                    owner[partition] = member_id
                    continue
            owned[member_id][partition] = None
            owner[partition] = member_id
    return Claims({member_id: list(partitions) for member_id, partitions in owned.items()}, frozenset(contested))


def _earlier_owners(
    asked: list[str], held: dict[str, Held], newest_generation: int
) -> dict[TopicPartition, EarlierOwner]:
    """Who had a partition in the newest generation before the last."""
    owners: dict[TopicPartition, EarlierOwner] = {}
    for member_id in asked:
        generation = _generation_of(held[member_id])
        if generation >= newest_generation:
            continue
        for partition in held[member_id].partitions:
            if partition not in owners or generation > owners[partition].generation:
                owners[partition] = EarlierOwner(member_id, generation)
    return owners


def _moving_partitions(division: Division, subscriptions: Subscriptions) -> dict[TopicPartition, str]:
    """Partitions that a member is to get and another one still owns, with the member that is to get them."""
    added: dict[TopicPartition, str] = {}
    revoked: set[TopicPartition] = set()
    for member_id, partitions in division.items():
        owned = frozenset(subscriptions[member_id].owned_partitions)
        added.update((partition, member_id) for partition in partitions if partition not in owned)
        revoked.update(owned.difference(partitions))
    return {partition: member_id for partition, member_id in added.items() if partition in revoked}
