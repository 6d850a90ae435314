"""A member between a scripted coordinator and a consumer that does as the test says."""

from collections.abc import Callable
from typing import Any

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.membership.member import MemberSettings, MembershipListener
from ottla.client.promise import Promise
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.scripted_brokers import ScriptedBrokers
from ottla.wire.messages import FindCoordinatorResponse

GROUP = "group"
FIRST_WITH_MANY_COORDINATORS = 4


def partitions(topic: str, *numbers: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in numbers)


class ScriptedConsumer:
    """Notes what its member tells it. `holds` names events that are not done before the test says so."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[TopicPartition, ...]]] = []
        self.failures: list[Exception] = []
        self.holds: set[str] = set()
        self.held: list[Promise[None]] = []

    def on_revoked(self, revoked: tuple[TopicPartition, ...]) -> Promise[None] | None:
        return self._note("revoked", revoked)

    def on_lost(self, lost: tuple[TopicPartition, ...]) -> Promise[None] | None:
        return self._note("lost", lost)

    def on_assigned(self, assigned: tuple[TopicPartition, ...]) -> Promise[None] | None:
        return self._note("assigned", assigned)

    def on_failed(self, error: Exception) -> None:
        self.failures.append(error)

    def _note(self, event: str, about: tuple[TopicPartition, ...]) -> Promise[None] | None:
        self.events.append((event, about))
        if event not in self.holds:
            return None
        self.held.append(Promise())
        return self.held[-1]

    def take_events(self) -> list[tuple[str, tuple[TopicPartition, ...]]]:
        events, self.events = self.events, []
        return events


MakeMember = Callable[[Cluster, Coordinators, MemberSettings, MembershipListener], Any]


class GroupRig:
    """`steps` renders what was asked of the coordinator since it was last looked at."""

    def __init__(self, make_member: MakeMember, *, topics: dict[str, int] | None = None, **settings: Any) -> None:
        self.brokers = ScriptedBrokers([1, 2], {"t": 4} if topics is None else topics)
        self.coordinator_id = 1
        self.brokers.answer("FindCoordinator", self._find)
        self.cluster = Cluster(
            self.brokers.world, read_settings(Scope.CONSUMER, {"bootstrap.servers": self.brokers.bootstrap}, {})
        )
        self.consumer = ScriptedConsumer()
        self.settings = MemberSettings(GROUP, **settings)
        self.member = make_member(self.cluster, Coordinators(self.cluster), self.settings, self.consumer)
        self._seen = 0

    def _find(self, node_id: int, version: int, request: Any) -> FindCoordinatorResponse:
        host = f"broker-{self.coordinator_id}"
        if version < FIRST_WITH_MANY_COORDINATORS:
            return FindCoordinatorResponse(node_id=self.coordinator_id, host=host, port=9092)
        found = FindCoordinatorResponse.Coordinator(key=GROUP, node_id=self.coordinator_id, host=host, port=9092)
        return FindCoordinatorResponse(coordinators=[found])

    def poll(self) -> None:
        self.member.on_poll()
        self.brokers.run()

    def asked(self, *apis: str) -> list[Any]:
        """The requests of these APIs since the last look."""
        new = self.brokers.transcript[self._seen :]
        self._seen = len(self.brokers.transcript)
        return [one.request for one in new if one.api in apis]

    def names(self) -> list[str]:
        """What was asked since the last look, but for what every client asks."""
        new = self.brokers.transcript[self._seen :]
        self._seen = len(self.brokers.transcript)
        return [one.api for one in new if one.api not in ("ApiVersions", "Metadata")]

    def finish_held(self) -> None:
        """The consumer has done what it was asked."""
        held, self.consumer.held = self.consumer.held, []
        for promise in held:
            promise.resolve(None)
        self.brokers.run()
