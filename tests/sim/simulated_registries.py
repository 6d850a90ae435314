"""Several registries on a simulated cluster, ten programs that register schemas with them, and what must hold."""

import json
from dataclasses import dataclass, field
from random import Random

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.face import make_member
from ottla.client.http.http_client import HttpClient, HttpFailed, HttpLimits, Origin
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.registry.records import SCHEMA, UnreadableRecord, read_key, read_schema
from ottla.registry.registry import Registry
from ottla.registry.settings import read_registry_settings
from ottla.registry.state import State
from ottla.runtime.world import World
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.cluster.cluster_settings import ClusterSettings
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.network.fabric import Host
from ottla.testing.sim.network.links import Link
from ottla.testing.sim.simulated_node import SimulatedNode

PORT = 8081
SESSION_MS = 6_000
TOPIC = TopicPartition("_schemas", 0)


@dataclass
class Told:
    """What programs were told with a 200: (subject, version, id, text)."""

    registered: list[tuple[str, int, int, str]] = field(default_factory=list)
    refused: dict[int, int] = field(default_factory=dict)
    """How often which code."""


class RegistryMachine:
    """A machine with a registry on it, which may be killed, paused, cut off, and started again."""

    def __init__(self, scene: "Scene", number: int) -> None:
        self._scene = scene
        self.address = f"10.2.0.{number}"
        self.host: Host = scene.cluster.simulation.fabric.add_host(self.address)
        self._chance = Random(f"{scene.seed} registry {number}")
        self.life: SimulatedNode | None = None
        self.lives = 0
        self._disk = MemoryDisk(Random(number))

    @property
    def registry(self) -> Registry | None:
        if self.life is None:
            return None
        assert isinstance(self.life.node, Registry)
        return self.life.node

    @property
    def leads(self) -> bool:
        registry = self.registry
        return registry is not None and registry._driver is not None and registry.driver.leads

    def start(self) -> None:
        assert self.life is None
        self.lives += 1
        settings = read_registry_settings(
            {
                "listeners": f"http://{self.address}:{PORT}",
                "kafkastore.bootstrap.servers": self._scene.cluster.bootstrap,
                "kafkagroup.session.timeout.ms": str(SESSION_MS),
                "schema.compatibility.level": "none",
                "kafkastore.retry.backoff.ms": "50",
                "kafkastore.reconnect.backoff.ms": "50",
                "kafkastore.reconnect.backoff.max.ms": "500",
                "kafkastore.request.timeout.ms": "4000",
            }
        )

        def make(world: World) -> Registry:
            return Registry(world, settings)

        self.life = SimulatedNode(
            self._scene.cluster.simulation,
            make,
            self._disk,
            Random(self._chance.getrandbits(64)),
            self.host,
            on_outcome=self._on_outcome,
        )
        self.life.begin()

    def _on_outcome(self, problem: Exception | None) -> None:
        if problem is not None:
            # As an operator's supervisor does it: one that could not start is started again.
            agenda = self._scene.cluster.simulation.agenda
            agenda.call_at(agenda.clock.elapsed_us() + 1_000_000, self._restart)

    def _restart(self) -> None:
        if self.life is not None:
            self.kill()
            self.start()

    def kill(self) -> None:
        if self.life is not None:
            self.life.kill()
            self.life = None

    def pause(self) -> None:
        if self.life is not None:
            self.life.pause()

    def resume(self) -> None:
        if self.life is not None:
            self.life.resume()


class Scene:
    """A cluster, its registries, and their programs."""

    def __init__(self, seed: int, *, brokers: int = 1, registries: int = 3, writers: int = 10) -> None:
        self.seed = seed
        self.chance = Random(f"{seed} registries")
        self.cluster = SimulatedCluster(seed, ClusterSettings(nodes=brokers))
        self.cluster.start()
        self.told = Told()
        self.registries = [RegistryMachine(self, number) for number in range(1, registries + 1)]
        for machine in self.registries:
            machine.start()
        self.is_over = False
        self._left = writers
        self.simulation = self.cluster.simulation
        self.simulation.run_until(lambda: any(one.leads for one in self.registries), 60_000)
        for number in range(writers):
            self._begin_writer(number)

    # --- programs ---

    def _begin_writer(self, number: int) -> None:
        client = self.cluster.client(f"writer {number}")
        http = HttpClient(client.world, HttpLimits(connect_ms=1_000, read_ms=12_000))
        chance = Random(f"{self.seed} writer {number}")

        async def write() -> None:
            place = 0
            while not self.is_over:
                await client.world.sleep(chance.choice((5, 50, 300)))
                # Subjects are shared, and so are some schemas: ids and versions must be told apart all the same.
                subject = f"s{chance.randrange(4)}"
                text = f'{{"type":"record","name":"R{number}x{place}","fields":[]}}'
                if chance.random() < 0.2:
                    text = f'{{"type":"record","name":"Shared{chance.randrange(20)}","fields":[]}}'
                place += 1
                await self._register(http, chance, subject, text)
            http.close()
            self._left -= 1

        spawn(write())

    async def _register(self, http: HttpClient, chance: Random, subject: str, text: str) -> None:
        """Tries a few times, at any registry, as serializers do."""
        body = json.dumps({"schema": text}).encode()
        headers = {"content-type": "application/json"}
        for _ in range(3):
            machine = chance.choice(self.registries)
            origin = Origin("http", machine.address, PORT)
            try:
                response = await http.ask(origin, "POST", f"/subjects/{subject}/versions", body, headers)
            except HttpFailed:
                self._count(0)
                continue
            reply = json.loads(response.body)
            if response.status == 200:
                self.told.registered.append((subject, reply["version"], reply["id"], text))
                return
            self._count(reply["error_code"])

    def _count(self, code: int) -> None:
        self.told.refused[code] = self.told.refused.get(code, 0) + 1

    # --- faults ---

    def run_with_faults(self, for_ms: int) -> None:
        simulation = self.simulation
        end_us = simulation.clock.elapsed_us() + for_ms * 1_000
        while simulation.clock.elapsed_us() < end_us:
            simulation.run_for(self.chance.choice((300, 1_500, 4_000)))
            leaders = [one for one in self.registries if one.leads]
            machine = self.chance.choice(leaders or self.registries)
            if self.chance.random() < 0.3:
                machine = self.chance.choice(self.registries)
            kind = self.chance.choice((self._kill, self._pause, self._cut_off, self._cut_one_way, self._drop))
            kind(machine)

    def _kill(self, machine: RegistryMachine) -> None:
        machine.kill()
        self.simulation.run_for(self.chance.choice((100, 2_000, SESSION_MS + 2_000)))
        machine.start()

    def _pause(self, machine: RegistryMachine) -> None:
        """It wakes up as one that thinks it leads, while another does."""
        machine.pause()
        self.simulation.run_for(self.chance.choice((500, SESSION_MS - 500, SESSION_MS + 3_000)))
        machine.resume()

    def _cut_off(self, machine: RegistryMachine) -> None:
        brokers = [one.host for one in self.cluster.machines.values()]
        fabric = self.simulation.fabric
        links = fabric.links_between([machine.host], brokers) + fabric.links_between(brokers, [machine.host])
        self._cut(links)

    def _cut_one_way(self, machine: RegistryMachine) -> None:
        """What it writes arrives, and it never hears so; or the other way round."""
        brokers = [one.host for one in self.cluster.machines.values()]
        fabric = self.simulation.fabric
        if self.chance.random() < 0.5:
            self._cut(fabric.links_between(brokers, [machine.host]))
        else:
            self._cut(fabric.links_between([machine.host], brokers))

    def _cut(self, links: list[Link]) -> None:
        for link in links:
            link.cut()
        self.simulation.run_for(self.chance.choice((500, SESSION_MS + 3_000)))
        for link in links:
            link.mend()

    def _drop(self, machine: RegistryMachine) -> None:
        if machine.life is not None:
            for end in machine.life.network.connections():
                end.reset()

    # --- what must hold ---

    def settle(self) -> None:
        """Faults are over: registrations succeed again, and then the programs end."""
        before = len(self.told.registered)
        self.simulation.run_until(lambda: len(self.told.registered) > before + 20, 120_000)
        self.is_over = True
        self.simulation.run_until(lambda: self._left == 0, 120_000)

    def check(self) -> None:
        """No id was given to two schemas, and nothing that was told is lost."""
        text_of: dict[int, str] = {}
        for subject, version, id, text in self.told.registered:
            assert text_of.setdefault(id, text) == text, f"id {id} was given to two schemas ({subject} {version})"
        log = read_log(self.cluster)
        in_log: dict[int, str] = {}
        for key, value in log:
            try:
                read = read_key(key)
                if read.type == SCHEMA and value:
                    schema = read_schema(read, value)
                    assert in_log.setdefault(schema.id, schema.text) == schema.text, f"id {schema.id} twice in the log"
            except UnreadableRecord as problem:
                raise AssertionError(f"{key!r} was written") from problem
        state = State()
        for key, value in log:
            state.replay(key, value, 0)
        assert state.duplicate_ids == state.unreadable == 0
        for subject, version, id, text in self.told.registered:
            found = state.version(subject, version)
            assert found is not None, f"{subject} {version} was told and is lost"
            assert (found.id, found.text) == (id, text), f"{subject} {version} is another than was told"
        for machine in self.registries:
            registry = machine.registry
            if registry is not None and registry.driver.is_loaded:
                seen = registry.state
                for name in seen.names():
                    ours = [one.digest for one in seen.versions(name)]
                    assert ours == [one.digest for one in state.versions(name)][: len(ours)]


def read_log(cluster: SimulatedCluster) -> list[tuple[bytes, bytes | None]]:
    """All records, as a reader that comes later finds them."""
    client = cluster.client("reader of the log")
    settings = {"bootstrap.servers": cluster.bootstrap, "auto.offset.reset": "earliest"}
    core = ConsumerCore(client.world, read_settings(Scope.CONSUMER, settings, {}), make_member)
    core.assign([TOPIC])
    core.seek_to_end_of([TOPIC], beginning=True)
    found: list[tuple[bytes, bytes | None]] = []

    def poll() -> None:
        for record in core.poll(1_000):
            assert record.key is not None
            found.append((bytes(record.key), None if record.value is None else bytes(record.value)))
        client.timers.after(0.02, poll)

    poll()
    cluster.simulation.run_until(lambda: core.lag(TOPIC) == 0)
    core.stop()
    client.kill()
    return found
