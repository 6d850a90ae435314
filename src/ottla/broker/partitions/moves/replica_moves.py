"""The moves of replicas between this node's log directories: which are asked for, under way, or interrupted.

Theory of operation. AlterReplicaLogDirs asks for a move, and the answer is that it has begun; how far it is can be seen
in DescribeLogDirs. All that are asked for are begun, and in that order they copy: at most as many at the same time as
`num.replica.alter.log.dirs.threads` says and leave disk threads for others, and together no faster than
`replica.alter.log.dirs.io.max.bytes.per.second`, which is given at run time. Asking for the directory that the replica
is in ends a move, asking for a third one begins another.

A replica that does not exist yet will be made where it is asked to be.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.moves.replica_move import ReplicaMove
from ottla.broker.partitions.partition import Partition
from ottla.log.directory import LogDirectory
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.directory_assignments import DirectoryAssignments
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.partitions.removing import DiscardedLogs

RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
_PART_BYTES = 1 << 20
_MOST_AT_A_TIME = 2  # Half of the disk threads, which everything else needs too.
_MOST_PREFERRED = 10_000  # Anybody may name topics that never come.


class ReplicaMoves:
    """After `stop` nothing more is begun."""

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        discarded_logs: "DiscardedLogs",
        directory_assignments: "DirectoryAssignments",
    ) -> None:
        self.is_stopped = False
        self.discarded_logs = discarded_logs
        self.directory_assignments = directory_assignments
        self.leave_alone: Callable[[TopicPartition], None] = _no_cleaner
        """Tells the cleaner that a log is about to move."""
        self._partitions = partitions
        self._world = world
        self._elapsed_s = world.clock.elapsed_s
        self._moves: dict[TopicPartition, ReplicaMove] = {}
        self._leaving: set[ReplicaMove] = set()
        """Those that have ended, and of which something is still at work."""
        self._preferred: dict[TopicPartition, str] = {}
        self._paid_until_s = 0.0

    def __len__(self) -> int:
        return len(self._moves)

    def is_moving(self, name: TopicPartition) -> bool:
        """Also while what is left of a move is cleared away."""
        return name in self._moves or self._is_leaving(name)

    def _is_leaving(self, name: TopicPartition) -> bool:
        return any(move.partition.name == name for move in self._leaving)

    def ask(self, partition: Partition, path: str) -> ErrorCode:
        """Begins to move a replica to a directory that is online, unless it is there or on its way."""
        partitions, name = self._partitions, partition.name
        under_way = self._moves.get(name)
        if under_way is not None and under_way.target.path == path:
            return ErrorCode.NONE
        if under_way is not None:
            under_way.cancel()
        if partition.directory == path:
            return ErrorCode.NONE
        if partitions.logs.offline:
            # A future log of this partition may be in a directory that cannot be looked into.
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._add(ReplicaMove(partitions, self._world, self, partition, partitions.logs.online[path]))
        return ErrorCode.NONE

    def prefer(self, name: TopicPartition, path: str) -> None:
        """A replica that does not exist is to be made in this directory."""
        self._preferred[name] = path
        if len(self._preferred) > _MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def take_preferred(self, name: TopicPartition) -> str:
        """Where a replica that is about to be made is to be; "" if nobody has said."""
        return self._preferred.pop(name, "")

    def resume(self, partition: Partition, target: LogDirectory) -> None:
        """Goes on with a move that a stop has interrupted."""
        self._add(
            ReplicaMove(self._partitions, self._world, self, partition, target, target.futures.logs[partition.name])
        )

    def on_dropped(self, name: TopicPartition) -> None:
        """The replica is no longer this node's."""
        if move := self._moves.get(name):
            move.cancel(keep_directory=False)

    def on_truncated(self, partition: Partition) -> None:
        """The replica's log has been cut, to agree with its leader's."""
        if move := self._moves.get(partition.name):
            move.on_cut()

    def on_broken(self, name: TopicPartition) -> None:
        """The replica is offline until the next start, which looks what its log and the copy have in common."""
        if move := self._moves.get(name):
            move.leave()

    def on_directory_failed(self, path: str) -> None:
        for move in list(self._moves.values()):
            if move.target.path == path:
                move.release()
            elif move.source.path == path:
                move.leave()

    def stop(self) -> None:
        """For a clean stop: the copies are closed with the other logs, and gone on with at the next start."""
        self.is_stopped = True

    # The moves themselves

    def _add(self, move: ReplicaMove) -> None:
        name = move.partition.name
        self._moves[name] = move
        self.leave_alone(name)
        self._start_some()

    def _start_some(self) -> None:
        if self.is_stopped:
            return
        waiting = [move for name, move in self._moves.items() if not move.may_copy and not self._is_leaving(name)]
        copying = sum(move.may_copy for move in self._moves.values())
        for move in waiting:
            move.begin()
        for move in waiting[: max(self._threads() - copying, 0)]:
            move.start_copying()

    def _threads(self) -> int:
        threads = self._partitions.node_settings.effective["num.replica.alter.log.dirs.threads"]
        wanted = threads if isinstance(threads, int) else len(self._partitions.logs.online)
        return max(min(wanted, _MOST_AT_A_TIME), 1)

    def on_ended(self, move: ReplicaMove) -> None:
        name = move.partition.name
        if self._moves.get(name) is move:
            del self._moves[name]
        self._leaving.add(move)

    def on_over(self, move: ReplicaMove) -> None:
        """Nothing of the move is at work any more: when that is so of all, another of the same replica may begin."""
        self._leaving.discard(move)
        self._start_some()

    # How fast

    @property
    def part_bytes(self) -> int:
        """How much is copied at a time: not more than a second's worth, so that a low rate is a steady one."""
        rate = self._bytes_per_s()
        return _PART_BYTES if rate is None else max(min(rate, _PART_BYTES), 1)

    def wait_after(self, size: int) -> float:
        """How many seconds a move is to wait when it has copied so many bytes."""
        rate = self._bytes_per_s()
        if rate is None:
            return 0
        now_s = self._elapsed_s()
        self._paid_until_s = max(self._paid_until_s, now_s) + size / max(rate, 1)
        return self._paid_until_s - now_s

    def _bytes_per_s(self) -> int | None:
        configs = self._partitions.metadata.image.configs
        text = configs.of_broker(self._partitions.identity.node_id).get(RATE) or configs.of_cluster().get(RATE)
        return int(text) if text is not None and text.isdecimal() else None


def _no_cleaner(_name: TopicPartition) -> None:
    """A node without one."""
