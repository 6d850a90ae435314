"""Members of one group in a simulation: their applications poll, dawdle, come, leave and die, as chance has it.

What an application has is what `on_assigned` gave it, until its listener was told of losing it or is done with giving
it up. At no moment do two applications whose members are in the group have the same partition, but for one that hangs
while it gives the partition up: the coordinator goes on without it, and it finds out when it commits.
"""

from collections.abc import Callable
from random import Random

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.membership.classic.classic_member import ClassicMember
from ottla.client.membership.consumer.consumer_member import ConsumerGroupMember
from ottla.client.membership.member import NO_GENERATION, Member, MemberSettings
from ottla.client.promise import Promise
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.simulation import Simulation
from tests.sim.simulated_cluster import PORT

SETTINGS = MemberSettings("group", session_timeout_ms=10_000, heartbeat_interval_ms=1_000, max_poll_interval_ms=20_000)
_NEW_PROTOCOL = "consumer"


class Application:
    """Polls every now and then. What its member asks of it, it does when it polls."""

    def __init__(
        self,
        simulation: Simulation,
        protocol: str,
        name: str,
        check: Callable[[], None],
        instance_id: str | None = None,
    ) -> None:
        self.name = name
        self.instance_id = instance_id
        self.has: set[TopicPartition] = set()
        self.failures: list[Exception] = []
        self.is_hanging = False
        self.client = ClientInSimulation(simulation)
        self._check = check
        self._chance = Random(simulation.random.getrandbits(64))
        self._to_do: list[tuple[Promise[None], tuple[TopicPartition, ...]]] = []
        settings = read_settings(Scope.CONSUMER, {"bootstrap.servers": f"127.0.0.1:{PORT}"}, {})
        self.cluster = Cluster(self.client.world, settings)
        coordinators = Coordinators(self.cluster)
        own = SETTINGS._replace(group_instance_id=instance_id)
        self.member: Member
        if protocol == _NEW_PROTOCOL:
            self.member = ConsumerGroupMember(self.cluster, coordinators, own, self)
        else:
            own = own._replace(partition_assignment_strategy=(protocol,))
            self.member = ClassicMember(self.cluster, coordinators, own, self)

    def begin(self, *topics: str) -> None:
        self.cluster.add_topics(topics)
        self.member.subscribe(topics)
        self._poll()

    def begin_with_pattern(self, pattern: str) -> None:
        self.member.subscribe_pattern(pattern)
        self._poll()

    def _poll(self) -> None:
        if not self.is_hanging:
            self.member.on_poll()
            self._do()
        self.client.timers.after(self._chance.choice((0.05, 0.2, 1.5)), self._poll)

    def _do(self) -> None:
        to_do, self._to_do = self._to_do, []
        for promise, given_up in to_do:
            self.has.difference_update(given_up)
            promise.resolve(None)

    def _later(self, given_up: tuple[TopicPartition, ...] = ()) -> Promise[None]:
        promise: Promise[None] = Promise()
        self._to_do.append((promise, given_up))
        return promise

    def on_assigned(self, partitions: tuple[TopicPartition, ...]) -> Promise[None]:
        assert not self.has.intersection(partitions), "given twice"
        self.has.update(partitions)
        self._check()
        return self._later()

    def on_revoked(self, partitions: tuple[TopicPartition, ...]) -> Promise[None]:
        assert self.has.issuperset(partitions), "gives up what it has not"
        return self._later(partitions)

    def on_lost(self, partitions: tuple[TopicPartition, ...]) -> Promise[None]:
        self.has.difference_update(partitions)
        return self._later()

    def on_failed(self, error: Exception) -> None:
        self.failures.append(error)

    def leave(self) -> Promise[None]:
        """As `close` does: what is waiting for a poll is done at once."""
        self.is_hanging = True
        left = self.member.leave()
        while self._to_do:
            self._do()
        assert isinstance(left, Promise)
        return left

    @property
    def holds(self) -> set[TopicPartition]:
        """What it has and may commit for."""
        if self.member.identity.generation == NO_GENERATION:
            return set()
        return self.has.difference(*(given_up for _, given_up in self._to_do)) if self.is_hanging else self.has

    def kill(self) -> None:
        self.client.kill()
        self.has.clear()
