"""A minority of the nodes is taken away, and the others have to continue: who is left serves writes within a bound.

So it must be when a majority of the controllers is well. Asked for is a record in every partition of which enough
replicas are left, and a new topic.
"""

from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, TopicAlreadyExists
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.faults.nemesis import Nemesis
from ottla.testing.sim.network.links import Link
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.workloads.actor import FAST
from ottla.testing.sim.workloads.history import Fate, History, SentRecord
from ottla.testing.sim.workloads.producing import SimulatedProducer
from ottla.testing.sim.workloads.topics import KEPT, partitions_of

SERVED_WITHIN_MS: Final = 45_000
"""A leader that hears its controller and not a follower waits for it for `replica.lag.time.max.ms`."""
_SEEDS: Final = 0.5
"""How many of the seeds have it."""
_CALL_MS: Final = 5_000


class Majority:
    """`begin` takes some nodes away, `missing` tells what the others have not done yet, `end` brings them back."""

    def __init__(self, nemesis: Nemesis, history: History) -> None:
        self._nemesis = nemesis
        self._cluster = nemesis._cluster
        self._history = history
        self._chance = self._cluster.simulation.chance("majority")
        self._away: list[Machine] = []
        self._cut: list[Link] = []
        self._sent: list[SentRecord] = []
        self._has_topic = False
        self._client: ClientInSimulation

    def is_drawn(self) -> bool:
        return len(self._cluster.settings.controllers()) >= 3 and self._chance.random() < _SEEDS

    def begin(self) -> None:
        self._client = self._cluster.client("majority")  # First: it is cut off from whom clients are cut off from.
        controllers = self._cluster.settings.controllers()
        machines = list(self._cluster.machines.values())
        self._chance.shuffle(machines)
        most = (len(controllers) - 1) // 2
        for machine in machines:
            if len(self._away) < self._chance.randrange(1, most + 1) and self._nemesis.promises.may_end(machine):
                self._take_away(machine)
        settings: dict[str, object] = {**self._client.settings, **FAST}
        patient = {**settings, "delivery.timeout.ms": SERVED_WITHIN_MS}
        producer = SimulatedProducer(self._client, self._history, patient)
        for number, partition in enumerate(self._served()):
            record = self._history.send("majority", number, partition)
            self._sent.append(record)
            spawn(producer.send(record))
        asked = read_settings(Scope.ADMIN, {**settings, "default.api.timeout.ms": _CALL_MS}, {})
        spawn(self._create(Asking(Cluster(self._client.world, asked))))

    def _take_away(self, machine: Machine) -> None:
        self._away.append(machine)
        way = self._chance.choice(("kill", "cut off", "pause"))
        self._nemesis.note(f"{way} node {machine.node_id}: the others go on")
        if way == "kill" or machine.life is None:
            machine.kill()
        elif way == "pause":
            machine.life.pause()
        else:
            fabric = self._cluster.simulation.fabric
            others = [*self._nemesis.other_nodes(machine), *self._nemesis.client_hosts()]
            links = fabric.links_between([machine.host], others) + fabric.links_between(others, [machine.host])
            for link in links:
                link.cut()
            self._cut += links

    def _served(self) -> list[TopicPartition]:
        """The partitions of which enough replicas are left."""
        well = [one for one in self._cluster.machines.values() if one not in self._away and one.metadata is not None]
        ids = {machine.node_id for machine in well}
        metadata = max((one.metadata for one in well if one.metadata), key=lambda one: one.committed_offset)
        served: list[TopicPartition] = []
        for name in partitions_of(*KEPT):
            image = metadata.image.topics.by_name[name.topic].partitions[name.partition]
            required = 1
            for machine in well:
                broker = machine.node.broker if machine.node is not None else None
                replica = broker.partitions.get(name) if broker is not None else None
                if replica is not None:
                    required = max(required, replica.settings.min_insync_replicas)
            if len(ids & set(image.replicas)) >= min(required, len(image.replicas)) and ids & set(image.replicas):
                served.append(name)
        return served

    async def _create(self, asking: Asking) -> None:
        while not self._has_topic:
            try:
                (await create_topics(asking, [NewTopic("majority", 1, 1)])).raise_first()
                self._has_topic = True
            except TopicAlreadyExists:
                self._has_topic = True
            except KafkaError:
                await self._client.world.sleep(200)
        asking.cluster.close()

    def missing(self) -> str:
        """What is not served yet; empty if all is."""
        waiting = [str(record.partition) for record in self._sent if record.fate is not Fate.ACKNOWLEDGED]
        topic = [] if self._has_topic else ["a new topic"]
        without = ", ".join(str(machine.node_id) for machine in self._away)
        return f"{', '.join([*waiting, *topic])} without {without}" if waiting or topic else ""

    def end(self) -> None:
        self._client.kill()
        for link in self._cut:
            link.mend()
        for machine in self._away:
            if machine.life is not None and machine.life.process.is_stopped:
                machine.life.resume()
            self._nemesis.start(machine)
