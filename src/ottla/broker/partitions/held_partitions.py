"""The partitions that this node holds, the requests that wait for them, and what a failing disk does to them.

A disk that fails takes its directory away: the partitions in it are offline until the node starts anew, the requests
that wait for them are answered, and the coordinators are told (`on_leadership`). Other directories go on.

What a node cannot serve, others may: the controller is told. Of a directory that has failed it hears by a heartbeat
(`on_directory_failed`). Of a single replica it hears that it is LOST (`tell_lost`, KIP-858), which takes it out of the
lead and the ISR: of one that is broken until the next start or cannot be made, and of one that this node leads and
cannot write to, for want of room or descriptors (`give_up`). It hears nothing of the last in an ISR, which nobody else
could lead.
"""

import logging
from collections.abc import Callable, Iterable
from errno import EDQUOT, EMFILE, ENFILE, ENOMEM, ENOSPC
from functools import cached_property

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.cluster.node_identity import NodeIdentity
from ottla.broker.partitions.partition import Partition, Surroundings
from ottla.broker.partitions.purgatory import Purgatory
from ottla.broker.partitions.repeated_requests import RepeatedRequests
from ottla.broker.partitions.replication_quota import ReplicationQuotas
from ottla.broker.partitions.traffic import Traffic
from ottla.log.log_dirs import LogDirs
from ottla.runtime.sparing_log import SparingLog
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode

_log = logging.getLogger(__name__)

LOG_DIRS = "log-dirs"
"""The key of the disk jobs that change a directory's set of logs, or go through it: one at a time."""

DISK_IS_FULL = frozenset({ENOSPC, EDQUOT})
OUT_OF_DESCRIPTORS = frozenset({EMFILE, ENFILE})
PASSING = DISK_IS_FULL | OUT_OF_DESCRIPTORS | {ENOMEM}
"""What the system lacks for now. It is no word about the health of a disk."""
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
    ) -> None:
        super().__init__()
        self.logs = logs
        self.world = world
        self.clock = world.clock
        self.identity = identity
        self.node_settings = node_settings
        self.metadata = metadata
        self.offline: set[tuple[str, int]] = set()
        self.in_making: dict[tuple[str, int], list[Callable[[tuple[str, int]], None]]] = {}
        """Partitions that the metadata gives to this node and whose logs are not there yet, and who waits for each."""
        self.repeated_requests = RepeatedRequests()
        self.purgatory = Purgatory(world.timers)
        self.replication_quotas = ReplicationQuotas.of_node(metadata, identity, world.clock)
        self.traffic = Traffic()
        self.has_news_for_checkpoints = True
        self.on_leadership: Callable[[Partition], None] = _nobody_is_told
        """For the coordinators, whose state is in partitions: one has a new leader, or is gone."""
        self.propose_isr: Callable[[Partition, int], None] = _nobody_is_told
        """For what asks the controller to change the ISR: a follower out of it has fetched."""
        self.on_flushed: Callable[[Partition], None] = _nobody_is_told
        """For fetchers, which tell a leader of no record that still has to be flushed."""
        self.on_cut: Callable[[Partition], None] = _nobody_is_told
        """For moves, whose copy of the log is to be cut too."""
        self.when_directory_fails: Callable[[str], None] = _nobody_is_told
        """For moves to and from the directory."""
        self.when_broken: Callable[[TopicPartition], None] = _nobody_is_told
        """For a move of the partition."""
        self.on_directory_failed: Callable[[str, OSError], None] = _nobody_is_told
        """For the node, which tells the controller, and stops when no directory is left."""
        self.tell_lost: Callable[[Uuid, int], None] = _nobody_is_told
        """For what tells the controller where replicas are: this node does not serve one, by its topic and number."""
        self.given_up: set[Partition] = set()
        """Those that this node leads and would rather not. They are told of, and the metadata has not said more yet."""
        self._failing: set[str] = set()

    @cached_property
    def surroundings(self) -> Surroundings:
        max_lag_ms = self.node_settings.effective.integer("replica.lag.time.max.ms")
        return Surroundings(self.identity.node_id, self.metadata, max_lag_ms)

    @cached_property
    def _lacks(self) -> SparingLog:
        return SparingLog(_log, self.clock.elapsed_s)

    def holds(self, partition: Partition) -> bool:
        """Whether this very partition is still held: not deleted meanwhile, nor lost with its disk."""
        return self.get(partition.name) is partition

    def find_error(self, topic: str, index: int) -> ErrorCode:
        """Why a partition is not held here, as a client is to be told."""
        if (topic, index) in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self.metadata.knows(topic, index):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # Failing disks

    def on_storage_problem(self, partition: Partition, problem: Exception) -> ErrorCode:
        """What a client is told when its partition's log raised one of `log.errors.STORAGE_PROBLEMS`.

        A client that asks for damaged bytes is told that they are; the rest of the disk may be sound, so the directory
        stays.
        """
        if isinstance(problem, OSError):
            self.on_disk_error(partition.directory, problem)
            if problem.errno in PASSING and partition.state is not None:
                self.give_up(partition, partition.state.isr)
            return ErrorCode.KAFKA_STORAGE_ERROR
        _log.error("the log of %s is damaged: %s", partition.name, problem)
        return ErrorCode.CORRUPT_MESSAGE

    def on_disk_error(self, directory: str, problem: OSError) -> None:
        """A disk that is full still serves reads, and may have room again; other errors mostly take the directory away.

        That a file could not be opened because too many are is no word about the disk.
        """
        if problem.errno in DISK_IS_FULL:
            self._lacks.error("%s is full: %s", directory, problem)
        elif problem.errno in OUT_OF_DESCRIPTORS:
            self._lacks.error("no file of %s can be opened; allow the node more (ulimit -n): %s", directory, problem)
        elif problem.errno in PASSING:
            self._lacks.error("%s: %s", directory, problem)
        else:
            self.fail_directory(directory, problem)

    def give_up(self, partition: Partition, isr: Iterable[int]) -> None:
        """Has another replica of the ISR lead a partition that this node leads, and cannot serve as it should.

        Once it leads no more, its place is told anew (`Replicas`), and it follows as well as it can: it is in the ISR
        again when it has caught up. Where there is no other, it goes on with what it can do.

        The others may be no better off: their disks may be full too. Then it comes back, and is kept for a while, which
        grows each time. Every change of leader is a record for the metadata log, and that has to be written somewhere.
        """
        now_s = self.clock.elapsed_s()
        if partition in self.given_up or now_s < partition.kept_until_s or not self._has_others(isr):
            return
        if now_s - partition.kept_until_s > _MOST_KEPT_S:
            partition.kept_s = 0.0
        partition.kept_s = min(max(2 * partition.kept_s, _LEAST_KEPT_S), _MOST_KEPT_S)
        partition.kept_until_s = now_s + partition.kept_s
        self._lacks.error("%s cannot be written to here, and is given up to the others in its ISR", partition.name)
        self.given_up.add(partition)
        self.tell_lost(partition.topic_id, partition.name.partition)

    def tell_unserved(self, topic_id: Uuid, name: TopicPartition) -> None:
        """A replica is offline here: neither leader nor in the ISR, then, if there is another."""
        topic = self.metadata.image.topics.by_id.get(topic_id)
        image = topic.partitions.get(name.partition) if topic is not None else None
        if image is not None and self._has_others(image.isr):
            self.tell_lost(topic_id, name.partition)

    def _has_others(self, isr: Iterable[int]) -> bool:
        others = (replica for replica in isr if replica != self.identity.node_id)
        return any(self.metadata.active_epoch(replica) is not None for replica in others)

    def fail_directory(self, directory: str, problem: OSError) -> None:
        """Goes on without a directory: its partitions are offline until the node starts anew."""
        if directory not in self.logs.online or directory in self._failing:
            return
        _log.error("%s has failed and is no longer used: %s", directory, problem)
        self._failing.add(directory)
        self.when_directory_fails(directory)
        self._take_offline(list(self.logs.online[directory].logs))
        # Where logs are made, deleted and checkpointed, one at a time: none of that may be in the middle.
        self.world.workers.run(
            lambda: self.logs.take_offline(directory, problem),
            lambda lost: self._on_offline(directory, problem, lost),
            key=LOG_DIRS,
        )

    def _on_offline(self, directory: str, problem: OSError, lost: list[TopicPartition]) -> None:
        self._failing.discard(directory)
        self._take_offline(lost)
        self.on_directory_failed(directory, problem)

    def on_broken(self, partition: Partition, problem: Exception) -> None:
        """What a partition knows of itself is not so: it is offline until the next start, which recovers it.

        One that is gone already, to whose name another may have come, leaves that alone.
        """
        if not self.holds(partition):
            _log.error("%s is gone, and was broken", partition.name, exc_info=problem)
            return
        _log.error("%s is broken, and offline until the next start", partition.name, exc_info=problem)
        self.when_broken(partition.name)
        self.logs.distrust(partition.name)
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
                self.on_leadership(partition)


def _nobody_is_told(*_what: object) -> None:
    """A broker on its own."""
