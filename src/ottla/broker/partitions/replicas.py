"""Which partitions this node holds: from committed metadata to open logs, and back.

Theory of operation. `start` matches the logs that were found on disk with the metadata: a log of a topic that has been
deleted, or deleted and made again (its id differs), is set aside as a stray, for a person to look at. From then on the
metadata's deltas say what to do. Logs are made and deleted on a disk thread, in the order of the deltas; a partition
serves from the moment its log is there, and until then its clients wait (`logs_in_making`). What comes back from the
disk is held against the metadata once more, which may have moved on: a topic that was deleted and made again in the
meantime is made when the log of the old one is out of the way.

What cannot be made or led for want of descriptors, room or memory is offline, logged, and tried again after pauses
that grow. A partition that raises over its metadata goes offline by name, and the others apply theirs.
"""

import gc
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Timer
from ottla.broker.partitions.directory_assignments import DirectoryAssignments
from ottla.broker.partitions.held_partitions import LOG_DIRS
from ottla.broker.partitions.moves.interrupted_moves import settle_interrupted_moves
from ottla.broker.partitions.moves.replica_moves import ReplicaMoves
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.partitions.removing import DiscardedLogs
from ottla.log.directory import LogDirectory
from ottla.log.errors import PASSING
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.directory_ids import LOST, UNASSIGNED, is_reserved
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.partition.following import Pauses
from ottla.runtime.apart import apart, later, say_what_about
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S = 0.5
_MOST_PAUSE_MS = 30_000
# So many that the loop, which applies what a job has made, is not held up for long.
LOGS_A_JOB = 64
_NAMES_SHOWN = 10


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
    faults: list[Exception]
    """What nobody expected."""


class Replicas:
    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        events: PartitionEvents,
        discarded_logs: DiscardedLogs,
        directory_assignments: DirectoryAssignments,
        replica_moves: ReplicaMoves,
    ) -> None:
        self._partitions = partitions
        self._world = world
        self._events = events
        self._discarded_logs = discarded_logs
        self._directory_assignments = directory_assignments
        self._replica_moves = replica_moves
        self._under_way: set[TopicPartition] = set()
        self._leaving: set[TopicPartition] = set()
        self._to_delete: deque[Partition] = deque()
        self._is_taking_up = False
        self._timers = world.timers
        self._put_off: dict[TopicPartition, bool] = {}
        """What is to be tried again: whether that is to make a log, or to apply the metadata."""
        self._pauses = Pauses(_MOST_PAUSE_MS)
        self._timer: Timer | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Takes up the logs that are open, and makes those that the metadata wants and the disk does not have."""
        partitions = self._partitions
        interrupted = settle_interrupted_moves(partitions, self._world.disk, self._discarded_logs)
        for directory in list(partitions.logs.online.values()):
            try:
                self._apply_logs(directory)
            except OSError as problem:
                partitions.fail_directory(directory.path, problem)
        for directory in list(partitions.logs.online.values()):
            try:
                self._leave_damaged(directory)
            except OSError as problem:
                partitions.fail_directory(directory.path, problem)
        wanted = [
            (TopicPartition(topic.name, index), topic.id, partition)
            for topic in partitions.metadata.image.topics.by_name.values()
            for index, partition in topic.partitions.items()
        ]
        self._leave_out_of_reach(wanted)
        self._make(wanted)
        for name, target in interrupted:
            if name in partitions and name in target.futures.logs:
                self._replica_moves.resume(partitions[name], target)

    def _apply_logs(self, directory: LogDirectory) -> None:
        partitions = self._partitions
        for name, log in list(directory.logs.items()):
            wanted = self._wanted_in(directory, name)
            if wanted is None:
                self._discarded_logs.set_aside(directory, name, log)
                continue
            home = partitions.logs.online.get(self._home_of(wanted))
            if home is not None and name in home.damaged:
                continue  # What was to go after a move. What it lacks may be in the one that is damaged.
            topic = partitions.metadata.image.topics.by_name[name.topic]
            if name not in directory.topic_ids:
                directory.remember_topic(name, topic.id)
            self._serve(name, topic.id, log, wanted)
        self._discarded_logs.remove(directory)  # what was being deleted when the node stopped

    def _leave_damaged(self, directory: LogDirectory) -> None:
        """What cannot be opened is offline, if it is wanted. If not, it is set aside: else no stop would be clean."""
        for name in list(directory.damaged):
            if self._wanted_in(directory, name) is None:
                stray = directory.set_aside_damaged(name)
                _log.warning("%s in %s belongs to no topic of this cluster; renamed to %s", name, directory.path, stray)
            elif name not in self._partitions:
                self._partitions.offline.add(name)

    def _wanted_in(self, directory: LogDirectory, name: TopicPartition) -> PartitionImage | None:
        """What the metadata says of a partition of that name, if it is the one in that directory, and this node's."""
        topic = self._partitions.metadata.image.topics.by_name.get(name.topic)
        if topic is None or directory.topic_ids.get(name, topic.id) != topic.id:
            return None
        image = topic.partitions.get(name.partition)
        return image if image is not None and self._partitions.identity.node_id in image.replicas else None

    def on_metadata(self, delta: MetadataDelta) -> None:
        self._is_taking_up = True
        try:
            self._apply_delta(delta)
        finally:
            self._is_taking_up = False
        self._delete_some()

    def _apply_delta(self, delta: MetadataDelta) -> None:
        partitions = self._partitions
        for topic in delta.topics_deleted.values():
            for index in topic.partitions:
                apart(self._timers, self._drop, TopicPartition(topic.name, index), topic.id)
                apart(self._timers, self._discard_unopened, TopicPartition(topic.name, index), topic.id)
            partitions.traffic.forget(topic.name)
        # Before the roles: a smaller ISR is held against the `min.insync.replicas` that the controller went by when
        # it decided which replicas stay eligible to lead (KIP-966).
        self._on_settings(delta)
        wanted: list[tuple[TopicPartition, Uuid, PartitionImage]] = []
        for change in delta.partition_changes(partitions.metadata.image):
            name = TopicPartition(change.topic.name, change.partition_id)
            if partitions.identity.node_id not in change.after.replicas:
                apart(self._timers, self._drop, name, change.topic.id)
            elif partition := partitions.get(name):
                apart(self._timers, self._apply, partition, change.after)
            else:
                wanted.append((name, change.topic.id, change.after))
        self._make(wanted)

    def _on_settings(self, delta: MetadataDelta) -> None:
        partitions = self._partitions
        for type, topic_name in sorted(delta.configs):
            topic = partitions.metadata.image.topics.by_name.get(topic_name) if type == ResourceType.TOPIC else None
            for index in topic.partitions if topic else ():
                if partition := partitions.get(TopicPartition(topic_name, index)):
                    apart(self._timers, self._configure, partition)

    def _configure(self, partition: Partition) -> None:
        if partition.on_settings(self._partitions.metadata.topic_settings(partition.name.topic)):
            self._partitions.purgatory.wake(partition)

    def on_broker_settings(self) -> None:
        """The broker's own settings have changed, and with them the defaults of every topic."""
        for partition in self._partitions.values():
            apart(self._timers, self._configure, partition)

    # Serving

    def _serve(self, name: TopicPartition, topic_id: Uuid, log: PartitionLog, image: PartitionImage) -> None:
        partitions = self._partitions
        settings = partitions.metadata.topic_settings(name.topic)
        partition = Partition(name, topic_id, log, settings, partitions.traffic.of(name.topic))
        partition.flushed_ms = self._world.clock.now_ms()
        partition.on_settings(settings)
        partitions[name] = partition
        self._directory_assignments.note(partition, image)
        self._apply(partition, image)

    def _apply(self, partition: Partition, image: PartitionImage) -> None:
        partitions, leader_epoch = self._partitions, partition.leader_epoch
        try:
            partition.on_image(image, partitions.surroundings, self._world.clock.now_ms())
        except OSError as problem:
            partitions.on_disk_error(partition.directory, problem)
            if problem.errno in PASSING:
                partitions.give_up(partition, image.isr)
                self._try_later(partition.name, to_make=False)
            return
        except Exception as problem:
            say_what_about(problem)
            partitions.on_broken(partition, problem)
            return
        if partition in partitions.given_up and not partition.is_leader and self._has_left(image):
            partitions.given_up.discard(partition)
            self._directory_assignments.note(partition, image)
        if partition.is_leader or partition.leader_epoch == leader_epoch:
            partitions.purgatory.wake(partition)
        else:
            partitions.purgatory.release(partition)
        self._events.on_leadership(partition)

    def _has_left(self, image: PartitionImage) -> bool:
        """Whether the controller has heard that this node gives a partition up."""
        node_id = self._partitions.identity.node_id
        return node_id not in image.isr or image.directory(node_id) == LOST

    # Making

    def _make(self, wanted: Iterable[tuple[TopicPartition, Uuid, PartitionImage]]) -> None:
        partitions = self._partitions
        missing: list[tuple[TopicPartition, Uuid, str]] = []
        for name, topic_id, image in wanted:
            is_here = name in partitions or name in partitions.offline
            if partitions.identity.node_id not in image.replicas or is_here:
                continue
            self._partitions.in_making.setdefault(name, [])
            if name not in self._under_way and name not in self._leaving:
                self._under_way.add(name)
                preferred = self._replica_moves.take_preferred(name)
                missing.append((name, topic_id, preferred or self._home_of(image)))
        for start in range(0, len(missing), LOGS_A_JOB):
            some = missing[start : start + LOGS_A_JOB]
            self._world.workers.run(partial(self._make_logs, some), self._on_made, key=LOG_DIRS)

    def _leave_out_of_reach(self, wanted: list[tuple[TopicPartition, Uuid, PartitionImage]]) -> None:
        """At the start: a replica whose log may be in a directory that is offline is offline too. It is not made anew,
        which would hide the log, or even lead without its records."""
        partitions = self._partitions
        if not partitions.logs.offline:
            return
        left: list[TopicPartition] = []
        for name, topic_id, image in wanted:
            if name not in partitions and name not in partitions.offline and self._is_out_of_reach(image):
                left.append(name)
                partitions.offline.add(name)
                if is_reserved(image.directory(partitions.identity.node_id) or UNASSIGNED):
                    partitions.tell_unserved(topic_id, name)  # The controller knows of the directory, not of this.
        if left:
            _log.error(
                "%d partitions are offline, whose logs are or may be in %s: %s%s. Bring that back and restart the "
                "node; or take it out of log.dirs, and they begin anew with what other replicas have",
                len(left),
                " and ".join(partitions.logs.offline),
                ", ".join(map(str, left[:_NAMES_SHOWN])),
                ", …" if len(left) > _NAMES_SHOWN else "",
            )

    def _is_out_of_reach(self, image: PartitionImage) -> bool:
        """Whether the metadata names a directory that is not online; or no real one (KIP-858), and nobody knows.

        One that is not assigned yet is only new if it cannot lead: a node that makes a log takes records before the
        controller has heard where.
        """
        node_id = self._partitions.identity.node_id
        wanted = image.directory(node_id)
        if wanted is None or self._home_of(image) in self._partitions.logs.online:
            return False
        return wanted != UNASSIGNED or node_id in (*image.isr, *image.eligible_leader_replicas)

    def _home_of(self, image: PartitionImage) -> str:
        """The directory that the metadata names for this node's replica; "" if it names none that we have."""
        wanted = image.directory(self._partitions.identity.node_id)
        return next((path for path, id in self._partitions.identity.directory_ids.items() if id == wanted), "")

    def _make_logs(self, missing: list[tuple[TopicPartition, Uuid, str]]) -> _MadeLogs:
        """For a disk thread, which alone adds logs to directories. One that fails is not asked again."""
        made = _MadeLogs([], {}, [])
        for name, topic_id, home in missing:
            try:
                made.logs.append(self._make_log(name, topic_id, home, made.problems))
            except Exception as problem:
                made.logs.append(_Made(name, topic_id, None, ""))
                made.faults.append(problem)
        return made

    def _make_log(self, name: TopicPartition, topic_id: Uuid, home: str, problems: dict[str, OSError]) -> _Made:
        candidates = sorted(self._partitions.logs.online.values(), key=lambda one: self._preference(one, home))
        for directory in candidates:
            if directory.path not in problems:
                try:
                    return _Made(name, topic_id, directory.create(name, topic_id), directory.path)
                except OSError as problem:
                    problems[directory.path] = problem
        return _Made(name, topic_id, None, "")

    def _preference(self, directory: LogDirectory, home: str) -> tuple[bool, bool, int]:
        """First where the metadata wants it, then where there are fewest; a cordoned directory is the last resort."""
        return directory.path != home, self._partitions.node_settings.is_cordoned(directory.path), len(directory.logs)

    def _on_made(self, made: _MadeLogs) -> None:
        partitions = self._partitions
        for path, problem in made.problems.items():
            partitions.on_disk_error(path, problem)
        for one in made.logs:
            self._under_way.discard(one.name)
            apart(self._timers, self._apply_made, one)
        for fault in made.faults:
            apart(self._timers, _raise, fault)
        for name, *_ in made.logs:
            self._tell_waiting(name)
        if len(made.logs) == LOGS_A_JOB:
            # One of many jobs. What they make stays, and looking for garbage among it would hold up the loop for long.
            gc.freeze()

    def _apply_made(self, made: _Made) -> None:
        partitions, (name, topic_id, log, directory) = self._partitions, made
        topic = partitions.metadata.image.topics.by_id.get(topic_id)
        image = topic.partitions.get(name.partition) if topic else None
        if image is None or partitions.identity.node_id not in image.replicas:
            if log is not None:
                self._delete([log], directory)
            self._make_again(name)
        elif log is None or directory not in partitions.logs.online:
            partitions.offline.add(name)
            partitions.tell_unserved(topic_id, name)
            self._try_later(name, to_make=True)
        else:
            self._pauses.on_success()
            self._serve(name, topic_id, log, image)

    # Trying again

    def stop(self) -> None:
        """Nothing is tried again: the logs are about to be closed."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _try_later(self, name: TopicPartition, *, to_make: bool) -> None:
        self._put_off[name] = to_make
        if self._timer is None and not self._is_stopped:
            self._timer = later(self._timers, _FIRST_PAUSE_S + self._pauses.next_ms() / 1000, self._try_again)

    def _try_again(self) -> None:
        """All that was put off, as far as the metadata still gives it to this node."""
        partitions, self._timer = self._partitions, None
        put_off, self._put_off = self._put_off, {}
        wanted: list[tuple[TopicPartition, Uuid, PartitionImage]] = []
        for name, to_make in put_off.items():
            topic = partitions.metadata.image.topics.by_name.get(name.topic)
            image = topic.partitions.get(name.partition) if topic else None
            if topic is None or image is None:
                continue
            if to_make:
                partitions.offline.discard(name)
                wanted.append((name, topic.id, image))
            elif partition := partitions.get(name):
                apart(self._timers, self._apply, partition, image)
        self._make(wanted)

    def _tell_waiting(self, name: TopicPartition) -> None:
        """Lets the requests for a partition continue that is there now, offline or gone."""
        if name not in self._under_way and name not in self._leaving:
            for on_made in self._partitions.in_making.pop(name, ()):
                on_made(name)

    def _make_again(self, name: TopicPartition) -> None:
        """A topic of this name may have come while an older one was in the way."""
        topic = self._partitions.metadata.image.topics.by_name.get(name.topic)
        if topic and name.partition in topic.partitions:
            self._make([(name, topic.id, topic.partitions[name.partition])])

    # Dropping

    def _drop(self, name: TopicPartition, topic_id: Uuid) -> None:
        partitions = self._partitions
        partitions.offline.discard(name)
        self._put_off.pop(name, None)
        for on_made in self._partitions.in_making.pop(name, ()):
            self._world.timers.after(0, partial(on_made, name))  # Not in the middle of a change of metadata.
        partition = partitions.get(name)
        if partition is None or partition.topic_id != topic_id:
            return  # Not made yet: it is deleted when it comes from the disk.
        del partitions[name]
        self._replica_moves.on_dropped(name)
        partition.state = None
        partitions.given_up.discard(partition)
        partitions.purgatory.release(partition)
        self._events.on_leadership(partition)
        self._leaving.add(name)
        partitions.when_idle(partition, lambda: self._leave(partition))

    def _discard_unopened(self, name: TopicPartition, topic_id: Uuid) -> None:
        """Deletes what is here of a deleted topic's replica that was broken, or could not be opened.

        In a directory that is offline it stays, and is set aside at the start that finds it again. So is one that this
        node is not to have any more while its topic continues: it may have what the others have lost.
        """
        partitions = self._partitions
        broken = partitions.broken.get(name)
        if broken is not None and broken.topic_id == topic_id:
            del partitions.broken[name]
        for directory in partitions.logs.online.values():
            if directory.holds_unopened(name, topic_id):
                discard = partial(self._discard, directory, name, topic_id)
                partitions.when_idle(broken, discard) if broken is not None else discard()

    def _discard(self, directory: LogDirectory, name: TopicPartition, topic_id: Uuid) -> None:
        delay_s = self._partitions.node_settings.effective.integer("log.segment.delete.delay.ms") / 1000
        self._world.workers.run(
            lambda: directory.discard_unopened(name) if directory.holds_unopened(name, topic_id) else None,
            lambda _: self._discarded_logs.remove_later(directory, delay_s),
            lambda problem: self._discarded_logs.on_problem(directory.path, problem),
            key=LOG_DIRS,
        )

    def _leave(self, partition: Partition) -> None:
        """Nothing is at work on the log any more."""
        self._to_delete.append(partition)
        if not self._is_taking_up:
            self._delete_some()

    def _delete_some(self) -> None:
        """Closing files takes its time, so that a few logs are deleted in each turn of the loop."""
        leaving = [self._to_delete.popleft() for _ in range(min(len(self._to_delete), LOGS_A_JOB))]
        for path in dict.fromkeys(partition.directory for partition in leaving):
            self._delete([partition.log for partition in leaving if partition.directory == path], path)
        for partition in leaving:
            self._leaving.discard(partition.name)
            self._make_again(partition.name)
            self._tell_waiting(partition.name)
        if self._to_delete:
            self._world.timers.after(0, self._delete_some)

    def _delete(self, logs: list[PartitionLog], path: str) -> None:
        partitions = self._partitions
        directory = partitions.logs.online.get(path)
        if directory is None:
            return
        for log in logs:
            log.release()
        wanted = [log.partition for log in logs]
        delay_s = max(log.config.file_delete_delay_ms for log in logs) / 1000
        self._world.workers.run(
            lambda: directory.delete(*(name for name in wanted if name in directory.logs)),
            lambda _: self._discarded_logs.remove_later(directory, delay_s),
            lambda problem: self._discarded_logs.on_problem(path, problem),
            key=LOG_DIRS,
        )


def _raise(problem: Exception) -> None:
    raise problem
