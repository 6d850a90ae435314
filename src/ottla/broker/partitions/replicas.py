"""Which partitions this node holds: from committed metadata to open logs, and back.

Theory of operation. `start` matches the logs that were found on disk with the metadata: a log of a topic that has been
deleted, or deleted and made again (its id differs), is set aside as a stray, for a person to look at. From then on the
metadata's deltas say what to do. Logs are made and deleted on a disk thread, in the order of the deltas; a partition
serves from the moment its log is there, and until then its clients wait (`logs_in_making`). What comes back from the
disk is held against the metadata once more, which may have moved on: a topic that was deleted and made again in the
meantime is made when the log of the old one is out of the way.
"""

import gc
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.partitions.held_partitions import LOG_DIRS
from ottla.broker.partitions.moves.interrupted_moves import settle_interrupted_moves
from ottla.broker.partitions.partition import Partition
from ottla.log import names
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.directory_ids import is_reserved
from ottla.machines.metadata.image.partition_image import PartitionImage

if TYPE_CHECKING:
    from ottla.broker.context import Broker

_log = logging.getLogger(__name__)

# So many that the loop, which takes up what a job has made, is not held up for long.
LOGS_A_JOB = 64


class _Made(NamedTuple):
    name: TopicPartition
    topic_id: Uuid
    log: PartitionLog | None
    """None: no directory would have it."""
    directory: str


class _MadeLogs(NamedTuple):
    logs: list[_Made]
    problems: dict[str, OSError]
    """What went wrong, by directory."""


class Replicas:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.in_making: dict[tuple[str, int], list[Callable[[tuple[str, int]], None]]] = {}
        """Partitions that the metadata gives to this node and whose logs are not there yet, and who waits for each."""
        self._under_way: set[TopicPartition] = set()
        self._leaving: set[TopicPartition] = set()
        self._to_delete: deque[Partition] = deque()
        self._to_remove_from: set[str] = set()
        self._is_taking_up = False

    def start(self) -> None:
        """Takes up the logs that are open, and makes those that the metadata wants and the disk does not have."""
        broker = self._broker
        interrupted = settle_interrupted_moves(broker)
        for directory in list(broker.partitions.logs.online.values()):
            for name, log in list(directory.logs.items()):
                topic = broker.image.topics.by_name.get(name.topic)
                wanted = topic.partitions.get(name.partition) if topic else None
                is_ours = wanted is not None and broker.identity.node_id in wanted.replicas
                if topic and wanted and is_ours and directory.topic_ids.get(name, topic.id) == topic.id:
                    if name not in directory.topic_ids:
                        directory.remember_topic(name, topic.id)
                    self._serve(name, topic.id, log, wanted)
                else:
                    self.set_aside(directory, name, log)
            self._remove(directory)  # what was being deleted when the node stopped
        self._make(
            (TopicPartition(topic.name, index), topic.id, partition)
            for topic in broker.image.topics.by_name.values()
            for index, partition in topic.partitions.items()
        )
        for name, target in interrupted:
            if name in broker.partitions and name in target.futures.logs:
                broker.replica_moves.resume(broker.partitions[name], target)

    def on_metadata(self, delta: MetadataDelta) -> None:
        self._is_taking_up = True
        self._take_up_delta(delta)
        self._is_taking_up = False
        self._delete_some()

    def _take_up_delta(self, delta: MetadataDelta) -> None:
        broker = self._broker
        for topic in delta.topics_deleted.values():
            for index in topic.partitions:
                self._drop(TopicPartition(topic.name, index), topic.id)
            broker.partitions.traffic.forget(topic.name)
        wanted: list[tuple[TopicPartition, Uuid, PartitionImage]] = []
        for change in delta.partition_changes(broker.image):
            name = TopicPartition(change.topic.name, change.partition_id)
            if broker.identity.node_id not in change.after.replicas:
                self._drop(name, change.topic.id)
            elif partition := broker.partitions.get(name):
                self._take_up(partition, change.after)
            else:
                wanted.append((name, change.topic.id, change.after))
        self._make(wanted)
        self._on_settings(delta)

    def _on_settings(self, delta: MetadataDelta) -> None:
        broker = self._broker
        for type, topic_name in delta.configs:
            topic = broker.image.topics.by_name.get(topic_name) if type == ResourceType.TOPIC else None
            for index in topic.partitions if topic else ():
                if partition := broker.partitions.get(TopicPartition(topic_name, index)):
                    partition.on_settings(broker.metadata.topic_settings(topic_name))

    def on_broker_settings(self) -> None:
        """The broker's own settings have changed, and with them the defaults of every topic."""
        for partition in self._broker.partitions.values():
            partition.on_settings(self._broker.metadata.topic_settings(partition.name.topic))

    # Serving

    def _serve(self, name: TopicPartition, topic_id: Uuid, log: PartitionLog, image: PartitionImage) -> None:
        broker = self._broker
        settings = broker.metadata.topic_settings(name.topic)
        partition = Partition(name, topic_id, log, settings, broker.partitions.traffic.of(name.topic))
        partition.flushed_ms = broker.clock.now_ms()
        partition.on_settings(settings)
        broker.partitions[name] = partition
        broker.directory_assignments.note(partition, image)
        self._take_up(partition, image)

    def _take_up(self, partition: Partition, image: PartitionImage) -> None:
        broker = self._broker
        try:
            partition.on_image(image, broker.identity.node_id, broker.clock.now_ms())
        except OSError as problem:
            broker.partitions.on_disk_error(partition.directory, problem)
            return
        if partition.is_leader:
            broker.partitions.purgatory.wake(partition)
        else:
            broker.partitions.purgatory.release(partition)
        broker.coordinators.on_leadership(partition)

    # Making

    def _make(self, wanted: Iterable[tuple[TopicPartition, Uuid, PartitionImage]]) -> None:
        broker = self._broker
        missing: list[tuple[TopicPartition, Uuid, str]] = []
        for name, topic_id, image in wanted:
            is_here = name in broker.partitions or name in broker.partitions.offline
            if broker.identity.node_id not in image.replicas or is_here:
                continue
            if self._is_out_of_reach(image):
                broker.partitions.offline.add(name)
                continue
            self.in_making.setdefault(name, [])
            if name not in self._under_way and name not in self._leaving:
                self._under_way.add(name)
                preferred = broker.replica_moves.take_preferred(name)
                missing.append((name, topic_id, preferred or self._home_of(image)))
        for start in range(0, len(missing), LOGS_A_JOB):
            some = missing[start : start + LOGS_A_JOB]
            broker.workers.run(partial(self._make_logs, some), self._on_made, key=LOG_DIRS)

    def _is_out_of_reach(self, image: PartitionImage) -> bool:
        """Whether the metadata names a directory that is not online: the log is there, and a new one would hide it."""
        broker, wanted = self._broker, image.directory(self._broker.identity.node_id)
        if not broker.partitions.logs.offline or wanted is None or is_reserved(wanted):
            return False
        return not any(
            id == wanted and path in broker.partitions.logs.online for path, id in broker.identity.directory_ids.items()
        )

    def _home_of(self, image: PartitionImage) -> str:
        """The directory that the metadata names for this node's replica; "" if it names none that we have."""
        wanted = image.directory(self._broker.identity.node_id)
        return next((path for path, id in self._broker.identity.directory_ids.items() if id == wanted), "")

    def _make_logs(self, missing: list[tuple[TopicPartition, Uuid, str]]) -> _MadeLogs:
        """For a disk thread, which alone adds logs to directories. One that fails is not asked again."""
        made = _MadeLogs([], {})
        for name, topic_id, home in missing:
            made.logs.append(self._make_log(name, topic_id, home, made.problems))
        return made

    def _make_log(self, name: TopicPartition, topic_id: Uuid, home: str, problems: dict[str, OSError]) -> _Made:
        candidates = sorted(self._broker.partitions.logs.online.values(), key=lambda one: self._preference(one, home))
        for directory in candidates:
            if directory.path not in problems:
                try:
                    return _Made(name, topic_id, directory.create(name, topic_id), directory.path)
                except OSError as problem:
                    problems[directory.path] = problem
        return _Made(name, topic_id, None, "")

    def _preference(self, directory: LogDirectory, home: str) -> tuple[bool, bool, int]:
        """First where the metadata wants it, then where there are fewest; a cordoned directory is the last resort."""
        return directory.path != home, self._broker.node_settings.is_cordoned(directory.path), len(directory.logs)

    def _on_made(self, made: _MadeLogs) -> None:
        broker = self._broker
        for path, problem in made.problems.items():
            broker.partitions.on_disk_error(path, problem)
        for name, topic_id, log, directory in made.logs:
            self._under_way.discard(name)
            topic = broker.image.topics.by_id.get(topic_id)
            image = topic.partitions.get(name.partition) if topic else None
            if image is None or broker.identity.node_id not in image.replicas:
                if log is not None:
                    self._delete([log], directory)
                self._make_again(name)
            elif log is None or directory not in broker.partitions.logs.online:
                broker.partitions.offline.add(name)
            else:
                self._serve(name, topic_id, log, image)
        for name, *_ in made.logs:
            self._tell_waiting(name)
        if len(made.logs) == LOGS_A_JOB:
            # One of many jobs. What they make stays, and looking for garbage among it would hold up the loop for long.
            gc.freeze()

    def _tell_waiting(self, name: TopicPartition) -> None:
        """Lets the requests for a partition go on that is there now, offline or gone."""
        if name not in self._under_way and name not in self._leaving:
            for on_made in self.in_making.pop(name, ()):
                on_made(name)

    def _make_again(self, name: TopicPartition) -> None:
        """A topic of this name may have come while an older one was in the way."""
        topic = self._broker.image.topics.by_name.get(name.topic)
        if topic and name.partition in topic.partitions:
            self._make([(name, topic.id, topic.partitions[name.partition])])

    # Dropping

    def _drop(self, name: TopicPartition, topic_id: Uuid) -> None:
        broker = self._broker
        broker.partitions.offline.discard(name)
        for on_made in self.in_making.pop(name, ()):
            broker.timers.after(0, partial(on_made, name))  # Not in the middle of a change of metadata.
        partition = broker.partitions.get(name)
        if partition is None or partition.topic_id != topic_id:
            return  # Not made yet: it is deleted when it comes from the disk.
        del broker.partitions[name]
        broker.replica_moves.on_dropped(name)
        partition.state = None
        broker.partitions.purgatory.release(partition)
        broker.coordinators.on_leadership(partition)
        self._leaving.add(name)
        partition.when_idle(lambda: self._leave(partition))

    def _leave(self, partition: Partition) -> None:
        """Nothing is at work on the log any more."""
        self._to_delete.append(partition)
        if not self._is_taking_up:
            self._delete_some()

    def _delete_some(self) -> None:
        """Closing files takes its time, so that a few logs are deleted in each turn of the loop."""
        leaving = [self._to_delete.popleft() for _ in range(min(len(self._to_delete), LOGS_A_JOB))]
        for path in {partition.directory for partition in leaving}:
            self._delete([partition.log for partition in leaving if partition.directory == path], path)
        for partition in leaving:
            self._leaving.discard(partition.name)
            self._make_again(partition.name)
            self._tell_waiting(partition.name)
        if self._to_delete:
            self._broker.timers.after(0, self._delete_some)

    def _delete(self, logs: list[PartitionLog], path: str) -> None:
        broker = self._broker
        directory = broker.partitions.logs.online.get(path)
        if directory is None:
            return
        for log in logs:
            log.release()
        wanted = [log.partition for log in logs]
        delay_s = max(log.config.file_delete_delay_ms for log in logs) / 1000
        broker.workers.run(
            lambda: directory.delete(*(name for name in wanted if name in directory.logs)),
            lambda _: self.remove_later(directory, delay_s),
            lambda problem: self._on_problem(path, problem),
            key=LOG_DIRS,
        )

    def remove_later(self, directory: LogDirectory, delay_s: float) -> None:
        """Files go after `file.delete.delay.ms`, for readers that are still being sent a part of them."""
        if directory.path not in self._to_remove_from:
            self._to_remove_from.add(directory.path)
            self._broker.timers.after(delay_s, lambda: self._remove(directory))

    def _remove(self, directory: LogDirectory) -> None:
        self._to_remove_from.discard(directory.path)
        self._broker.workers.run(
            directory.remove_condemned,
            lambda _: None,
            lambda problem: self._on_problem(directory.path, problem),
            key=LOG_DIRS,
        )

    def _on_problem(self, path: str, problem: Exception) -> None:
        if not isinstance(problem, OSError):
            raise problem
        self._broker.partitions.on_disk_error(path, problem)

    def set_aside(self, directory: LogDirectory, name: TopicPartition, log: PartitionLog) -> None:
        """Renames a log that no topic of the cluster has. Nothing of it is deleted."""
        disk = self._broker.disk
        del directory.logs[name]
        directory.topic_ids.pop(name, None)
        log.release()
        stray = f"{directory.path}/{names.marked_dir(name, self._broker.entropy.randbytes(16).hex(), names.STRAY_DIR)}"
        _log.warning("%s belongs to no topic of this cluster; it is now %s", log.directory, stray)
        try:
            disk.rename(log.directory, stray)
            disk.sync_dir(directory.path)
        except OSError as problem:
            self._broker.partitions.on_disk_error(directory.path, problem)
