"""What every handler is given: the node's identity, the metadata, the partitions it holds, and how to wait.

A plain object on the loop's thread. Handlers read and call; what belongs together is in the objects it holds.
"""

import logging
from collections.abc import Callable, Iterable
from errno import EDQUOT, EMFILE, ENFILE, ENOSPC
from typing import TYPE_CHECKING, Any

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.broker.admin.topic_creation import TopicCreation
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.cluster.local_peers import LocalPeers
from ottla.broker.coordination.coordinators import Coordinators, Groups
from ottla.broker.data.fetch_sessions import FetchSessions
from ottla.broker.partitions.directory_assignments import DirectoryAssignments
from ottla.broker.partitions.moves.replica_moves import ReplicaMoves
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.purgatory import Purgatory
from ottla.broker.partitions.replicas import LOG_DIRS, Replicas
from ottla.broker.partitions.topic_settings import SettingsOfTopics
from ottla.broker.partitions.traffic import Traffic
from ottla.broker.transactions.producer_ids import ProducerIds
from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.config.parse import Values
from ottla.log.log_dirs import LogDirs
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.channels import ControllerChannel, PeerChannel
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.cleaning.cleaner import LogCleaner

_log = logging.getLogger(__name__)

DISK_IS_FULL = frozenset({ENOSPC, EDQUOT})
OUT_OF_DESCRIPTORS = frozenset({EMFILE, ENFILE})


class Broker:
    """See the module. `offline` are partitions whose log directory has failed.

    Partitions are found by topic and number: a `TopicPartition`, or a bare tuple, which is an equal key and quicker.
    """

    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        config: Values,
        image: MetadataImage,
        logs: LogDirs,
        world: World,
        controller: ControllerChannel,
        peers: PeerChannel | None = None,
        settings: SettingsOfTopics | None = None,
        directory_ids: dict[str, Uuid] | None = None,
        node_settings: NodeSettings | None = None,
        metrics: Any = None,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.config = config
        self.metadata = ClusterMetadata(image, settings or SettingsOfTopics(config))
        self.logs = logs
        self.world = world
        self.disk = world.disk
        self.clock = world.clock
        self.entropy = world.entropy
        self.workers = world.workers
        self.timers = world.timers
        self.controller = controller
        self.peers: PeerChannel = peers or LocalPeers(self)
        self.metrics = metrics
        self.directory_ids = directory_ids or {}
        self.broker_epoch = -1
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.offline: set[tuple[str, int]] = set()
        self._failing: set[str] = set()
        self.traffic = Traffic()
        self.purgatory = Purgatory(world.timers)
        self.coordinators = Coordinators(self)
        self.directory_assignments = DirectoryAssignments(self)
        self.replica_moves = ReplicaMoves(self)
        self.replicas = Replicas(self)
        self.fetch_sessions = FetchSessions(
            config.integer("max.incremental.fetch.session.cache.slots"), world.entropy.randrange
        )
        self.producer_ids = ProducerIds(self)
        self.fetch_max_bytes = config.integer("fetch.max.bytes")
        self.has_news_for_checkpoints = True
        self.topic_creation = TopicCreation(self)
        self.cleaner: LogCleaner | None = None
        self.node_settings = node_settings or NodeSettings(node_id, config)
        self.node_settings.watch(lambda config, _changed: self.on_settings(config))
        self.on_directory_failed: Callable[[str, OSError], None] = _nobody_is_told
        """For the node, which tells the controller, and stops when no directory is left."""

    def start(self) -> None:
        """Takes up the partitions that the metadata gives to this node. The logs have been opened."""
        self.metadata.note_offset()
        self.node_settings.apply(self.image.configs)
        self.replicas.start()

    def on_metadata(self, delta: MetadataDelta) -> None:
        """`image` has been changed by committed records, and `delta` says where."""
        self.metadata.on_metadata(delta)
        self.node_settings.on_metadata(self.image.configs, delta)
        self.replicas.on_metadata(delta)
        self.coordinators.on_metadata(delta)

    def on_settings(self, config: Values) -> None:
        """Settings of this node have been changed while it runs (KIP-226)."""
        self.config = config
        self.metadata.on_node_settings(config)
        self.replicas.on_broker_settings()

    # Looking up

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    @property
    def groups(self) -> Groups:
        return self.coordinators.groups

    @property
    def transactions(self) -> Transactions:
        return self.coordinators.transactions

    def find_error(self, topic: str, index: int) -> ErrorCode:
        """Why a partition is not in `partitions`, as a client is to be told."""
        if (topic, index) in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.metadata.knows(topic, index):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_cordoned(self, directory: str) -> bool:
        """Whether a log directory gets no new partitions (KIP-1066)."""
        cordoned = self.config.list("cordoned.log.dirs")
        return directory in cordoned or "*" in cordoned

    # Failing disks

    def on_storage_problem(self, partition: Partition, problem: Exception) -> ErrorCode:
        """What a client is told when its partition's log raised one of `log.errors.STORAGE_PROBLEMS`.

        Who asks for damaged bytes is told that they are; the rest of the disk may be sound, so the directory stays.
        """
        if isinstance(problem, OSError):
            self.on_disk_error(partition.directory, problem)
            return ErrorCode.KAFKA_STORAGE_ERROR
        _log.error("the log of %s is damaged: %s", partition.name, problem)
        return ErrorCode.CORRUPT_MESSAGE

    def on_disk_error(self, directory: str, problem: OSError) -> None:
        """A disk that is full still serves reads, and may have room again; other errors mostly take the directory away.

        That a file could not be opened because too many are is no word about the disk.
        """
        if problem.errno in DISK_IS_FULL:
            _log.error("%s is full: %s", directory, problem)
        elif problem.errno in OUT_OF_DESCRIPTORS:
            _log.error("no file of %s can be opened; allow the node more than now (ulimit -n): %s", directory, problem)
        else:
            self.fail_directory(directory, problem)

    def fail_directory(self, directory: str, problem: OSError) -> None:
        """Goes on without a directory: its partitions are offline until the node starts anew."""
        if directory not in self.logs.online or directory in self._failing:
            return
        _log.error("%s has failed and is no longer used: %s", directory, problem)
        self._failing.add(directory)
        self.replica_moves.on_directory_failed(directory)
        self._take_offline(list(self.logs.online[directory].logs))
        # Where logs are made, deleted and checkpointed, one at a time: none of that may be in the middle.
        self.workers.run(
            lambda: self.logs.take_offline(directory, problem),
            lambda lost: self._on_offline(directory, problem, lost),
            key=LOG_DIRS,
        )

    def _on_offline(self, directory: str, problem: OSError, lost: list[TopicPartition]) -> None:
        self._failing.discard(directory)
        self._take_offline(lost)
        self.on_directory_failed(directory, problem)

    def on_broken(self, partition: Partition, problem: Exception) -> None:
        """What a partition knows of itself is not so: it is offline until the next start, which recovers it."""
        _log.error("%s is broken, and offline until the next start", partition.name, exc_info=problem)
        self.logs.distrust(partition.name)
        self._take_offline([partition.name])

    def _take_offline(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            if self.metadata.knows(*name):
                self.offline.add(name)
            partition = self.partitions.pop(name, None)
            if partition is not None:
                partition.state = None
                self.purgatory.release(partition)
                self.coordinators.on_leadership(partition)


def _nobody_is_told(_directory: str, _problem: OSError) -> None:
    """A broker on its own."""
