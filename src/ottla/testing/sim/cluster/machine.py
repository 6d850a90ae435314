"""One machine of a simulated cluster: what outlives the node on it (disk, clock, address), and the node's lives."""

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from ottla.base.ids import random_uuid
from ottla.log import file_names
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.raft.voters import VoterSet
from ottla.node.clock import java_date
from ottla.node.config import NodeConfig, read_config
from ottla.node.node import Node
from ottla.node.storage.formatting import FormatPlan, Surroundings, format_storage
from ottla.records.batch import complete_batches
from ottla.records.header import CRC_POSITION
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.metadata.storage.snapshots import SnapshotId
from ottla.runtime.world import World
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.sim.hosts.host_clock import HostClock
from ottla.testing.sim.simulated_node import SimulatedNode

if TYPE_CHECKING:
    from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster

_SALT_BYTES = 20
_LARGEST_SKEW_MS = 2_000
_LARGEST_DRIFT = 0.002


class Machine:
    """`life` is the node that runs on it, if one does; `ends` tells why its lives ended, the last one last."""

    def __init__(self, cluster: "SimulatedCluster", node_id: int, address: str) -> None:
        simulation = cluster.simulation
        self.node_id = node_id
        self.chance = simulation.chance(f"machine {node_id}")
        self.host = simulation.fabric.add_host(address)
        self.clock = HostClock(
            simulation.clock,
            ahead_ms=self.chance.randrange(-_LARGEST_SKEW_MS, _LARGEST_SKEW_MS),
            rate=1.0 + self.chance.uniform(-_LARGEST_DRIFT, _LARGEST_DRIFT),
        )
        self.disk = MemoryDisk(Random(self.chance.getrandbits(64)))
        self.disk.syncs_lose_pages = True
        self.disk.clock = self.clock
        self.life: SimulatedNode | None = None
        self.node: Node | None = None
        """The node, if it runs: from the beginning of its start on."""
        self.is_serving = False
        self.slowness = 1.0
        self.ends: list[str] = []
        self.may_fail = False
        """Whether something was wrong with the disk in this life of the node, so that it may give up."""
        self._has_faulty_disk = False
        self.failed_directories: dict[str, int] = {}
        """Log directories whose disk is dead, and since when, in microseconds of the simulation."""
        self._removed_directories: set[str] = set()
        self._rotten_path: str | None = None
        self.has_lost_files = False
        """Whether it has started once without files that it can do without: see `lose_file`."""
        self._damaged: dict[str, tuple[bytes, str]] = {}
        """What files were before they were damaged, and how a node has to name them if it does not start with them."""
        self.on_failed: Callable[[str, bool], None] = lambda why, was_expected: None
        """Called with the reason why the node cannot continue or cannot start, and whether that was to be expected; it
        is gone then."""
        self._cluster = cluster

    @property
    def metadata(self) -> MetadataLog[Controller] | None:
        """The node's metadata, once it is loaded."""
        node = self.node
        return None if node is None else node._metadata

    @property
    def broker_epoch(self) -> int:
        """Of the broker that runs here or is about to start; -1 if it has not registered, or stops."""
        server = self.node._broker_server if self.node is not None else None
        if server is None or server.broker is None or self.life is None or self.life.is_stopping:
            return -1
        return server.broker.identity.broker_epoch

    def format(self, cluster_id: str, voters: VoterSet | None = None) -> None:
        """The directories that are not formatted. `voters` are the first ones, where they are data."""
        config = self._config({})
        self._formatted_with = cluster_id, voters
        surroundings = Surroundings(
            self.disk,
            self.clock,
            java_date(self.clock.now_ms()),
            lambda: random_uuid(self.chance.randbytes),
            lambda: self.chance.randbytes(_SALT_BYTES),
        )
        plan = FormatPlan(
            cluster_id,
            self.node_id,
            config.log_dirs,
            config.metadata_log_dir,
            initial_voters=voters if config.is_controller else None,
            has_dynamic_voters=voters is not None,
            ignore_formatted=bool(self.ends),
        )
        format_storage(plan, surroundings, lambda line: None)

    def start(self, other_settings: Mapping[str, str] | None = None) -> None:
        """The node begins to start, with some settings other than last time if they are given."""
        assert self.life is None, f"node {self.node_id} runs"
        config = self._config(other_settings or {})
        self.host.power_on()
        self.life = SimulatedNode(
            self._cluster.simulation,
            lambda world: self._make_node(world, config),
            self.disk,
            Random(self.chance.getrandbits(64)),
            self.host,
            self.clock,
            self._on_outcome,
        )
        assert isinstance(self.life.node, Node)
        self.node = self.life.node
        self.life.workers.slowness = self.slowness
        self.life.begin()

    def kill(self, why: str = "killed") -> None:
        """The process dies. What it wrote is in the system's memory, and the next life finds it."""
        if self.life is not None:
            self.mend_rot()
            self.disk = self.life.kill()
            self._ended(why)

    def cut_power(self) -> None:
        """The machine goes down: nobody is told, and what was not synced is lost, torn or there."""
        self.host.power_off()
        self.mend_rot()
        if self.life is not None:
            self.disk = self.life.cut_power()
            self._ended("lost its power")
        else:
            self.disk = self.disk.survivor(self.chance)
            self._take_over_disk()

    def stop(self) -> None:
        """The node begins to stop, in good order. It is gone when that is done."""
        if self.life is not None and self.is_serving:
            self.mend_rot()
            self.is_serving = False
            self.life.begin_stop()

    def spoil_disk(self) -> None:
        """Something is going to be wrong with the disk until `mend_disk`."""
        self.may_fail = self._has_faulty_disk = True

    def mend_disk(self) -> None:
        self.disk.repair()
        self._has_faulty_disk = False

    # Log directories

    @property
    def log_dirs(self) -> list[str]:
        """Those that the node is told to use, the one with the metadata first."""
        config = self._config({})
        return [config.metadata_log_dir, *(path for path in config.log_dirs if path != config.metadata_log_dir)]

    def fail_directory(self, path: str) -> None:
        """Everything in a log directory fails from now on, over restarts, until an operator does something about it."""
        self.failed_directories[path] = self._cluster.simulation.clock.elapsed_us()
        self.disk.fail_directory(path)
        if path == self.log_dirs[0]:
            self.spoil_disk()

    def mend_directory(self, path: str) -> None:
        """An operator brings it back, with what its disk has: as after a power cut. Nothing runs on the machine."""
        assert self.life is None
        del self.failed_directories[path]
        self.disk.mend_directory(path)
        if path == self.log_dirs[0]:
            self.may_fail = self._has_faulty_disk = False

    def replace_directory(self, path: str) -> None:
        """An operator puts an empty disk in its place, and formats it. Nothing runs on the machine."""
        assert self.life is None
        del self.failed_directories[path]
        self.disk.empty_directory(path)
        self.format(*self._formatted_with)

    def remove_directory(self, path: str) -> None:
        """An operator takes it out of `log.dirs` for good. Nothing runs on the machine."""
        assert self.life is None
        del self.failed_directories[path]
        self._removed_directories.add(path)

    @property
    def has_reported_failures(self) -> bool:
        """Whether the node has noticed that its directories have failed, and a controller knows."""
        server = self.node._broker_server if self.is_serving and self.node is not None else None
        if server is None or server.broker is None:
            return False
        offline = server.broker.partitions.logs.offline
        is_waiting = bool(server._membership._failed_directories._waiting)
        return all(path in offline for path in self.failed_directories) and not is_waiting

    @property
    def _may_give_up(self) -> bool:
        """Whether the node has had the time in which a failed directory must come to the controller's ears."""
        timeout_ms = self._config({}).values.integer("log.dir.failure.timeout.ms")
        now_us = self._cluster.simulation.clock.elapsed_us()
        return any(now_us - since_us >= timeout_ms * 990 for since_us in self.failed_directories.values())

    # Rot

    @property
    def is_rotten(self) -> bool:
        return self._rotten_path is not None

    def rot(self, chance: Random, *, of_metadata: bool = False) -> Callable[[], None] | None:
        """A bit of some records on the disk turns over. Returns what turns it back; None if there are none.

        It is one that the checksum covers. Kafka's format has none over a batch's base offset, size and leader epoch.
        """
        is_meant = _holds_metadata if of_metadata else _holds_records
        found = [(path, data) for path, data in self.disk.files().items() if is_meant(path) and data]
        if not found:
            return None
        path, data = chance.choice(found)
        position, header = chance.choice(list(complete_batches(data)))
        self._rotten_path = path
        self.spoil_disk()
        self.disk.rot(path, position + chance.randrange(CRC_POSITION, header.size), chance.randrange(8))
        return self.mend_rot

    def mend_rot(self) -> None:
        """What has rotted reads well again."""
        if self._rotten_path is not None:
            self.disk.mend(self._rotten_path)
            self._rotten_path = None
            self._has_faulty_disk = False

    # Damage at rest

    def lose_file(self, path: str, left: bytes | None) -> None:
        """Of a file that can be made again only this is left, or nothing, and nobody puts it back."""
        assert self.life is None
        self.has_lost_files = True
        self.disk.replace(path, left)

    def damage(self, path: str, left: bytes | None) -> None:
        """Of a file only this is left, or nothing. The next life continues, or says that it cannot start with it."""
        assert self.life is None
        self._damaged[path] = self.disk.files()[path], path if left is not None else f"{path.rpartition('/')[0]}: "
        self.disk.replace(path, left)

    def _restore_files(self) -> None:
        """An operator puts back what was damaged, as it was."""
        for path, (content, _) in self._damaged.items():
            self.disk.restore(path, content)
        self._damaged.clear()

    def set_slowness(self, slowness: float) -> None:
        """Disk jobs take so many times as long."""
        self.slowness = slowness
        if self.life is not None:
            self.life.workers.slowness = slowness

    def _config(self, other_settings: Mapping[str, str]) -> NodeConfig:
        properties = {**self._cluster.settings.properties(self.node_id), **other_settings}
        if self._removed_directories:
            paths = (path for path in properties["log.dirs"].split(",") if path not in self._removed_directories)
            properties["log.dirs"] = ",".join(paths)
        return read_config(properties)

    def _make_node(self, world: World, config: NodeConfig) -> Node:
        return Node(world, config, may_format=False, failed=lambda: self._on_failed("cannot go on"))

    def _on_outcome(self, problem: Exception | None) -> None:
        if problem is not None:
            self._on_failed(f"{type(problem).__name__}: {problem}")
        elif self.life is not None and not self.life.is_stopping:
            self.is_serving = True
            self._damaged.clear()
        else:
            self._later(lambda: self.kill("stopped"))

    def _on_failed(self, why: str) -> None:
        def end() -> None:
            has_named_damage = any(name in why for _, name in self._damaged.values())
            was_expected = self.may_fail or self._may_give_up or has_named_damage
            self.kill(why)
            if has_named_damage:
                self._restore_files()
            self.on_failed(why, was_expected)

        self._later(end)

    def _later(self, callback: Callable[[], None]) -> None:
        """Not in the middle of the node's own call."""
        life, agenda = self.life, self._cluster.simulation.agenda
        agenda.call_at(agenda.clock.elapsed_us(), lambda: callback() if self.life is life else None)

    def _ended(self, why: str) -> None:
        self.life = self.node = None
        self.is_serving = False
        self.may_fail = self._has_faulty_disk
        self.ends.append(why)
        self._take_over_disk()

    def _take_over_disk(self) -> None:
        self.disk.clock = self.clock
        self.disk.syncs_lose_pages = True
        for path in self.failed_directories:
            self.disk.fail_directory(path)


def _holds_records(path: str) -> bool:
    return path.endswith(file_names.LOG) and "/__" not in path


def _holds_metadata(path: str) -> bool:
    is_snapshot = SnapshotId.of_name(path.rpartition("/")[2]) is not None
    return file_names.CLUSTER_METADATA_TOPIC in path and (path.endswith(file_names.LOG) or is_snapshot)
