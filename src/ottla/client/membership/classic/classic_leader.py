"""What the leader of a classic group does on top: divide the partitions, and notice when they have become others."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.view import ClusterView, TopicView
from ottla.client.errors import RequestTimedOut
from ottla.client.membership.assignors.assignor import Assignor, Division, Racks, Topics
from ottla.client.membership.classic.consumer_protocol import read_subscription

_NO_RACKS: Racks = frozenset()


class ClassicLeader:
    """Asleep until `divide`. Then `sees_change` says whether topics of the group have changed, until `resign`; and
    `on_changed` is called when they do.

    Racks count as a change only if this member has one itself, as in Java.
    """

    def __init__(self, cluster: Cluster, client_rack: str, on_changed: Callable[[], None]) -> None:
        self._cluster = cluster
        self._watches_racks = bool(client_rack)
        self._on_changed = on_changed
        self._divided: Topics | None = None
        self.sees_change = False
        cluster.on_update(self._on_update)

    def resign(self) -> None:
        self._divided = None
        self.sees_change = False

    async def divide(self, assignor: Assignor, members: Iterable[Any], timeout_ms: float) -> Division:
        """`members`: those of the JoinGroup response. Raises `KafkaError` if the topics cannot be learned in time."""
        subscriptions = {
            member.member_id: read_subscription(bytes(member.metadata), member.group_instance_id) for member in members
        }
        wanted = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        view = await self._view_with(wanted, timeout_ms)
        self._divided = self._seen(view, wanted)
        return assignor.divide(
            {topic: racks for topic, racks in _with_racks(view, wanted).items() if racks}, subscriptions
        )

    async def lead_on(self, topics: Iterable[str], timeout_ms: float) -> None:
        """The group keeps the division it has (KIP-814): only watch."""
        wanted = sorted(topics)
        self._divided = self._seen(await self._view_with(wanted, timeout_ms), wanted)

    async def _view_with(self, topics: list[str], timeout_ms: float) -> ClusterView:
        self._cluster.add_topics(topics)
        if any(topic not in self._cluster.view.topics for topic in topics):
            late = RequestTimedOut("no broker answered a metadata request for the group's topics in time")
            await self._cluster.world.within(self._cluster.refresh(), timeout_ms, lambda: late)
        return self._cluster.view

    def _on_update(self, view: ClusterView) -> None:
        divided = self._divided
        if divided is None:
            return
        if any(topic not in view.topics for topic in divided):
            # The consumer has said anew which topics it wants: those of the group's other members are wanted too.
            if self._cluster.add_topics(divided):
                self._cluster.refresh()
        elif self._seen(view, divided) != divided:
            self.sees_change = True
            self._on_changed()

    def _seen(self, view: ClusterView, topics: Iterable[str]) -> Topics:
        if self._watches_racks:
            return _with_racks(view, topics)
        return {topic: [_NO_RACKS] * len(_partitions(view, topic)) for topic in topics}


def _partitions(view: ClusterView, topic: str) -> Mapping[int, Any]:
    known: TopicView | None = view.topics.get(topic)
    return {} if known is None else known.partitions


def _with_racks(view: ClusterView, topics: Iterable[str]) -> dict[str, list[Racks]]:
    racks = {broker.id: broker.rack for broker in view.brokers.values() if broker.rack is not None}
    return {
        topic: [
            frozenset(racks[replica] for replica in partition.replicas if replica in racks)
            for _, partition in sorted(_partitions(view, topic).items())
        ]
        for topic in topics
    }
