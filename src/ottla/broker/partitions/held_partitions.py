"""The partitions that this node holds, the requests that wait for them, and what a failing disk does to them.

A disk that fails takes its directory away: the partitions in it are offline until the node starts anew, the requests
that wait for them are answered, and the coordinators are notified (`PartitionEvents`). Other directories continue.

What a node cannot serve, others may: the controller hears of it. Of a directory that has failed it hears by a heartbeat
(`on_directory_failed`). Of a single replica it hears that it is LOST (`on_lost`, KIP-858), which takes it out of the
lead and the ISR: of one that is broken until the next start or cannot be made, and of one that this node cannot write
to, for want of room or descriptors (`give_up`). It hears nothing of the last in an ISR, which nobody else
could lead.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from functools import cached_property

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.cluster.cluster_metadata import ClusterMetadata, NodeIdentity
from ottla.broker.partitions.flushing import Flushing
from ottla.broker.partitions.partition import Partition, Surroundings
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.partitions.purgatory import Purgatory
from ottla.broker.partitions.replication_quota import ReplicationQuotas
from ottla.broker.partitions.traffic import Traffic
from ottla.log.errors import DISK_IS_FULL, OUT_OF_DESCRIPTORS, PASSING
from ottla.log.log_dirs import LogDirs
from ottla.runtime.apart import apart
from ottla.runtime.rate_limited_log import RateLimitedLog, TroubleLog
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode

_log = logging.getLogger(__name__)

LOG_DIRS = "log-dirs"
"""The key of the disk jobs that change a directory's set of logs, or go through it: one at a time."""

_LEAST_KEPT_S = 10.0
_MOST_KEPT_S = 300.0


class Partitions(dict[tuple[str, int], Partition]):
    """Found by topic and number: a `TopicPartition`, or a bare tuple, which is an equal key and quicker.

    `offline` are partitions whose log directory has failed. `has_news_for_checkpoints`: something that the checkpoints
    of the directories tell has changed since they were written.
    """

    def __init__(
        self,
        identity: NodeIdentity,
        node_settings: NodeSettings,
        metadata: ClusterMetadata,
        logs: LogDirs,
        world: World,
        events: PartitionEvents,
    ) -> None:
        super().__init__()
        self.logs = logs
        self._timers = world.timers
        self._workers = world.workers
        self._elapsed_s = world.clock.elapsed_s
        self._events = events
        self.identity = identity
        self.node_settings = node_settings
        self.metadata = metadata
        self.offline: set[tuple[str, int]] = set()
        self.in_making: dict[tuple[str, int], list[Callable[[tuple[str, int]], None]]] = {}
        """Partitions that the metadata gives to this node and whose logs are not there yet, and who waits for each."""
        self.purgatory = Purgatory(world.timers)
        self.replication_quotas = ReplicationQuotas.of_node(metadata, identity, world.clock)
        self.traffic = Traffic()
        self.flushing = Flushing(self, world, events)
        self.has_news_for_checkpoints = True
        self.given_up: set[Partition] = set()
        """Those whose ISR this node is about to leave. They were reported, and the metadata has not said more yet."""
        self.broken: dict[TopicPartition, Partition] = {}
        """Those that were taken offline by name, until they are dropped: a disk thread may still be at work on one."""
        self._failing: set[str] = set()

    @cached_property
    def surroundings(self) -> Surroundings:
        max_lag_ms = self.node_settings.effective.integer("replica.lag.time.max.ms")
        return Surroundings(self.identity.node_id, self.metadata, max_lag_ms)

    @cached_property
    def troubles(self) -> TroubleLog:
        """For what happens until somebody mends it: a disk that is full, a log that is damaged."""
        return TroubleLog(_log, self._elapsed_s)

    @cached_property
    def rate_limited_log(self) -> RateLimitedLog:
        """For what may happen to very many partitions at once."""
        return RateLimitedLog(_log, self._elapsed_s)

    def holds(self, partition: Partition) -> bool:
        """Whether this very partition is still held: not deleted meanwhile, nor lost with its disk."""
        return self.get(partition.name) is partition

    def when_idle(self, partition: Partition, callback: Callable[[], None]) -> None:
        """As `Partition.when_idle`. What it raises costs nothing of the job that the partition was busy with."""

        def call() -> None:
            apart(self._timers, callback)

        partition.when_idle(call)

    def find_error(self, topic: str, index: int) -> ErrorCode:
        """Why a partition is not held here, as the error that a client gets."""
        if (topic, index) in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.metadata.knows(topic, index):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # Failing disks

    def on_storage_problem(self, partition: Partition, problem: Exception) -> ErrorCode:
        """The error that a client gets when its partition's log raised one of `log.errors.STORAGE_PROBLEMS`.

        A client that asks for damaged bytes gets an error that says so; the rest of the disk may be sound, so the
        directory stays.
        """
        if isinstance(problem, OSError):
            self.on_disk_error(partition.directory, problem)
            if problem.errno in PASSING:
                self.give_up(partition, self._isr_of(partition))
            return ErrorCode.KAFKA_STORAGE_ERROR
        self.troubles.error(partition.name, "the log of %s is damaged: %s", partition.name, problem)
        return ErrorCode.CORRUPT_MESSAGE

    def on_disk_error(self, directory: str, problem: OSError) -> None:
        """A disk that is full still serves reads, and may have room again; other errors mostly take the directory away.

        That a file could not be opened because too many are is no word about the disk.
        """
        if problem.errno in DISK_IS_FULL:
            self.troubles.error(directory, "%s is full: %s", directory, problem)
        elif problem.errno in OUT_OF_DESCRIPTORS:
            self.troubles.error(
                directory, "cannot open a file in %s; raise the limit on open files (ulimit -n): %s", directory, problem
            )
        elif problem.errno in PASSING:
            self.troubles.error(directory, "%s: %s", directory, problem)
        else:
            self.fail_directory(directory, problem)

    def _isr_of(self, partition: Partition) -> Collection[int]:
        """As its leader has it, or, of one that this node follows, the metadata."""
        if partition.state is not None:
            return partition.state.isr
        topic = self.metadata.image.topics.by_id.get(partition.topic_id)
        image = topic.partitions.get(partition.name.partition) if topic is not None else None
        return image.isr if image is not None else ()

    def give_up(self, partition: Partition, isr: Collection[int]) -> None:
        """Leaves the ISR of a partition that this node cannot write to: another leads it, or does not wait for it.

        Once that is so, its place is reported anew (`Replicas`), and it follows as well as it can: it is in the ISR
        again when it has caught up. Where there is no other, or it is not in the ISR, it continues with what it can do.

        The others may be no better off: their disks may be full too. Then it comes back, and is kept for a while, which
        grows each time. Every change of leader is a record for the metadata log, and that has to be written somewhere.
        """
        now_s = self._elapsed_s()
        if partition in self.given_up or now_s < partition.kept_until_s:
            return
        if self.identity.node_id not in isr or not self._has_others(isr):
            return
        if now_s - partition.kept_until_s > _MOST_KEPT_S:
            partition.kept_s = 0.0
        partition.kept_s = min(max(2 * partition.kept_s, _LEAST_KEPT_S), _MOST_KEPT_S)
        partition.kept_until_s = now_s + partition.kept_s
        self.rate_limited_log.error(
            "%s cannot be written to on this broker; asking the controller to elect another leader from its ISR",
            partition.name,
        )
        self.given_up.add(partition)
        self._events.on_lost(partition.topic_id, partition.name.partition)

    def tell_unserved(self, topic_id: Uuid, name: TopicPartition) -> None:
        """A replica is offline here: neither leader nor in the ISR, then, if there is another."""
        topic = self.metadata.image.topics.by_id.get(topic_id)
        image = topic.partitions.get(name.partition) if topic is not None else None
        if image is not None and self._has_others(image.isr):
            self._events.on_lost(topic_id, name.partition)

    def _has_others(self, isr: Iterable[int]) -> bool:
        others = (replica for replica in isr if replica != self.identity.node_id)
        return any(self.metadata.active_epoch(replica) is not None for replica in others)

    def fail_directory(self, directory: str, problem: OSError) -> None:
        """Goes on without a directory: its partitions are offline until the node starts anew."""
        if directory not in self.logs.online or directory in self._failing:
            return
        _log.error("%s has failed and is no longer used: %s", directory, problem)
        self._failing.add(directory)
        self._events.on_directory_failing(directory)
        self._take_offline(list(self.logs.online[directory].logs))
        # Where logs are made, deleted and checkpointed, one at a time: none of that may be in the middle.
        self._workers.run(
            lambda: self.logs.take_offline(directory, problem),
            lambda lost: self._on_offline(directory, problem, lost),
            key=LOG_DIRS,
        )

    def _on_offline(self, directory: str, problem: OSError, lost: list[TopicPartition]) -> None:
        self._failing.discard(directory)
        self._take_offline(lost)
        self._events.on_directory_failed(directory, problem)

    def on_broken(self, partition: Partition, problem: Exception) -> None:
        """What a partition knows of itself is not so: it is offline until the next start, which recovers it.

        One that is gone already, to whose name another may have come, leaves that alone.
        """
        if not self.holds(partition):
            _log.error("%s failed after it had been removed", partition.name, exc_info=problem)
            return
        _log.error("%s failed, and is offline until this broker restarts", partition.name, exc_info=problem)
        self._events.on_broken(partition.name)
        self.logs.distrust(partition.name)
        self.broken[partition.name] = partition
        self._take_offline([partition.name])
        self.tell_unserved(partition.topic_id, partition.name)

    def _take_offline(self, names: Iterable[TopicPartition]) -> None:
        for name in names:
            if self.metadata.knows(*name):
                self.offline.add(name)
            partition = self.pop(name, None)
            if partition is not None:
                self.given_up.discard(partition)
                partition.state = None
                self.purgatory.release(partition)
                self._events.on_leadership(partition)
