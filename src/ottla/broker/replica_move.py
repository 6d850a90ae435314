"""The move of one replica to another log directory of the same node (KIP-113, KIP-858), from the request to the swap.

1. A future log is begun in the target directory.
2. The current log's batches are copied into it, a bounded part at a time, on a disk thread. The current log serves as
   before; what is appended meanwhile is copied too.
3. When the copy has everything, it is made durable, and the controller is asked to write down the new directory.
4. Once that is committed, the copy catches up a last time, and the two change places: the future directory gets the
   partition's name, the other one a name with -delete, and the partition goes on with the new log. That is one step of
   the loop. It is only taken when no disk thread works on the partition, and the copy is as durable as the original; so
   flushes of the original wait from the moment that is looked for.

The metadata names the new directory before the swap, so that after a crash at any moment it tells which of the two logs
is the partition's (`broker.interrupted_moves`).

Only the loop's thread calls this. One disk job of a move is under way at a time, and counts as a job of the partition:
the files of both logs stay until it is over. A move that has ended lets go of the future log after that.
"""

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, TypeVar

from ottla.base.errors import ProtocolError, StorageError
from ottla.broker.flushing import flush
from ottla.broker.partition import Partition
from ottla.broker.replicas import LOG_DIRS
from ottla.log.directory import LogDirectory
from ottla.log.future_logs import (
    bytes_left,
    copy_batches,
    follow_offsets,
    is_part_of,
    reach_end,
    start_of_copy,
    take_over,
)
from ottla.log.outcomes import FileSlice
from ottla.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from ottla.broker.context import Broker
    from ottla.broker.replica_moves import ReplicaMoves

_log = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")

# What the loop copies itself, right before the swap, so that nothing can be appended in between.
_LAST_PART_BYTES = 128 << 10
# Small batches keep the interpreter busy, and the loop waits for it after each call to the system. So parts get smaller
# until one takes so long, and as much time is the loop's alone before the next. Large batches cost next to nothing.
_BUSY_S = 0.01
_LEAST_PART_BYTES = 128 << 10
# So that the sync at the end is a short one.
_SYNC_EVERY_BYTES = 64 << 20


class Stage(Enum):
    COPYING = "copying"
    ASKING = "asking"
    """The controller has been asked, or is about to be: the metadata may name either directory."""
    ACCEPTED = "accepted"
    ENDED = "ended"


class _CannotRead(Exception):
    """The current log's disk is to blame, or what is on it."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


class ReplicaMove:
    """`future` is None until it is begun. `moves` is told when the move has ended, and again when it has let go."""

    def __init__(
        self,
        broker: "Broker",
        moves: "ReplicaMoves",
        partition: Partition,
        target: LogDirectory,
        future: PartitionLog | None = None,
    ) -> None:
        self.partition = partition
        self.source = broker.logs.online[partition.directory]
        self.target = target
        self.future = future
        self.stage = Stage.COPYING
        self.is_started = False
        self._broker = broker
        self._moves = moves
        self._is_busy = False
        self._part_bytes = _LEAST_PART_BYTES
        self._unsynced_bytes = 0
        self._let_go: Callable[[], None] | None = None

    def start(self) -> None:
        self.is_started = True
        if self.future is None:
            self._begin()
        else:
            self._go_on()

    # 1. Begun

    def _begin(self) -> None:
        name, topic_id = self.partition.name, self.partition.topic_id
        try:
            start_offset = start_of_copy(self.partition.log)
        except (OSError, StorageError, ProtocolError) as problem:
            self._on_problem(_CannotRead(problem))
            return
        self._run(lambda: self.target.begin_future(name, topic_id, start_offset), self._on_begun, key=LOG_DIRS)

    def _on_begun(self, future: PartitionLog) -> None:
        self.future = future
        self._go_on()

    def _begin_anew(self) -> None:
        """The current log begins after the copy ends, or has been cut: what was copied is no part of it."""
        self.future = None
        self.stage = Stage.COPYING
        self.partition.is_changing_log = False
        self._run(lambda: self.target.drop_future(self.partition.name), lambda _: self._on_dropped(), key=LOG_DIRS)

    def _on_dropped(self) -> None:
        self._remove_later(self.target)
        self._begin()

    # 2. Copied

    def _go_on(self, delay_s: float = 0) -> None:
        self._broker.timers.after(delay_s, self._step)

    def _step(self) -> None:
        if self._is_busy or self.stage is Stage.ENDED or self._moves.is_stopped:
            return
        current, future = self.partition.log, self.future
        assert future is not None
        try:
            is_part = is_part_of(future, current)
            is_behind = is_part and bytes_left(future, current) > _LAST_PART_BYTES
        except (OSError, StorageError, ProtocolError) as problem:
            self._on_problem(_CannotRead(problem))
            return
        if not is_part:
            self._begin_anew()
        elif is_behind:
            self._copy(self._on_copied)
        elif self.stage is Stage.COPYING:
            self.stage = Stage.ASKING
            self._sync(self._save_cleaner_offset)
        elif self.stage is Stage.ACCEPTED:
            self._come_to_the_end()

    def _copy(self, then: Callable[[tuple[int, float]], None]) -> None:
        """`then` is given how many bytes were copied, and for how many seconds that kept the interpreter busy."""
        future = self.future
        assert future is not None
        part = self._next_part(min(self._part_bytes, self._moves.part_bytes))
        if part is None:
            return
        file = part.file
        assert file is not None, "there is something left to copy"
        file.pin()  # Retention may take the segment out of the log meanwhile.
        self._unsynced_bytes += part.size
        is_long_unsynced = self._unsynced_bytes >= _SYNC_EVERY_BYTES
        if is_long_unsynced:
            self._unsynced_bytes = 0

        def copy() -> tuple[int, float]:
            began_s = thread_time()
            size = _copied(future, part)
            busy_s = thread_time() - began_s
            if is_long_unsynced:
                future.flush()
            return size, busy_s

        self._run(copy, then, over=file.unpin)

    def _next_part(self, max_bytes: int) -> FileSlice | None:
        """What comes next in the current log. None if it cannot be read; then the move has ended."""
        current, future = self.partition.log, self.future
        assert future is not None
        future.config = current.config
        max_bytes = min(max_bytes, current.config.segment_bytes)
        offset = max(future.log_end_offset, current.log_start_offset)
        try:
            return current.read(offset, max_bytes, current.log_end_offset, min_one_batch=True)
        except (OSError, StorageError, ProtocolError) as problem:
            self._on_problem(_CannotRead(problem))
            return None

    def _on_copied(self, copied: tuple[int, float]) -> None:
        assert self.future is not None
        size, busy_s = copied
        follow_offsets(self.future, self.partition.log)
        self._broker.has_news_for_checkpoints = True
        wanted_bytes = self._part_bytes // 2 if busy_s > _BUSY_S else self._part_bytes * 2
        self._part_bytes = max(min(wanted_bytes, self._moves.part_bytes), _LEAST_PART_BYTES)
        self._go_on(max(self._moves.wait_after(size), busy_s))

    # 3. Written down

    def _sync(self, then: Callable[[], None]) -> None:
        assert self.future is not None
        self._run(self.future.flush, lambda _: then())

    def _save_cleaner_offset(self) -> None:
        """Nothing cleans a log that moves: what is clean of the one is clean of the other."""
        name, target = self.partition.name, self.target
        offset = self.source.cleaner_offset(name)
        if offset is None:
            self._ask()
        else:
            self._run(lambda: target.save_cleaner_offset(name, offset), lambda _: self._ask(), key=LOG_DIRS)

    def _ask(self) -> None:
        directory_id = self._broker.directory_ids.get(self.target.path)
        if directory_id is None:
            self._on_accepted()
        else:
            self._broker.directory_assignments.assign(self.partition, directory_id, self._on_accepted)

    def _on_accepted(self) -> None:
        if self.stage is Stage.ASKING:
            self.stage = Stage.ACCEPTED
            self._step()

    # 4. Swapped

    def _come_to_the_end(self) -> None:
        self.partition.is_changing_log = True
        self.partition.when_idle(self._finish)

    def _finish(self) -> None:
        """Nothing works on the partition now, and no flush can begin: each turn leaves less to be done."""
        if self.stage is Stage.ENDED or self._moves.is_stopped:
            return
        current, future = self.partition.log, self.future
        assert future is not None
        try:
            is_part = is_part_of(future, current)
            if is_part and bytes_left(future, current):
                part = self._next_part(_LAST_PART_BYTES)
                if part is None:
                    return
                _copied(future, part)
            is_behind = is_part and bytes_left(future, current) > 0
            if is_part and not is_behind:
                reach_end(future, current)
        except (OSError, StorageError, ProtocolError, _CannotRead) as problem:
            self._on_problem(problem)
            return
        if not is_part:
            self._begin_anew()
        elif is_behind:
            self._copy(lambda _: self.partition.when_idle(self._finish))
        elif future.recovery_point < current.recovery_point:
            self._sync(lambda: self.partition.when_idle(self._finish))
        else:
            self._swap(current, future)

    def _swap(self, current: PartitionLog, future: PartitionLog) -> None:
        broker, partition = self._broker, self.partition
        try:
            self.target.promote(partition.name)
        except OSError as problem:
            self._on_problem(problem)
            return
        take_over(future, current)
        partition.change_log(future)
        self.stage = Stage.ENDED
        self._moves.on_ended(self)
        _log.info("%s has moved from %s to %s", partition.name, self.source.path, self.target.path)
        try:
            self.source.retire(partition.name)
        except OSError as problem:
            current.release()
            broker.fail_directory(self.source.path, problem)
            self._moves.on_over(self)
        else:
            broker.workers.run(
                partial(self._settle, current), lambda _: self._on_settled(), self._unsettled, key=LOG_DIRS
            )
        if partition.held:
            flush(broker, partition)

    def _settle(self, old: PartitionLog) -> None:
        """On a disk thread: makes the two names last."""
        self._broker.disk.sync_dir(self.target.path)
        try:
            self.source.bury(old)
        except OSError as problem:
            raise _CannotRead(problem) from problem

    def _on_settled(self) -> None:
        self._broker.has_news_for_checkpoints = True
        self._remove_later(self.source)
        self._moves.on_over(self)

    def _unsettled(self, problem: Exception) -> None:
        self._blame(problem)
        self._moves.on_over(self)

    # Ending otherwise

    def cancel(self, *, keep_directory: bool = True) -> None:
        """The copy is thrown away. With `keep_directory` the metadata is made to name the current directory again."""
        if self.stage in (Stage.ASKING, Stage.ACCEPTED) and keep_directory:
            self._broker.directory_assignments.revert(self.partition)
        name, target = self.partition.name, self.target
        self._end(lambda: self._run_last(lambda: target.drop_future(name) if name in target.futures.logs else None))

    def leave(self) -> None:
        """The current log's directory has failed. The copy may be all that is left, so it stays as it is."""
        name, target = self.partition.name, self.target
        self._end(lambda: self._run_last(lambda: target.futures.close(name) if name in target.futures.logs else None))

    def release(self) -> None:
        """The target directory has failed."""
        self._end(self._release_future)

    def _release_future(self) -> None:
        if self.future is not None:
            self.future.release()
        self._moves.on_over(self)

    def _run_last(self, work: Callable[[], None]) -> None:
        self._broker.workers.run(work, lambda _: self._on_let_go(), self._unsettled, key=LOG_DIRS)

    def _on_let_go(self) -> None:
        self._remove_later(self.target)
        self._moves.on_over(self)

    def _remove_later(self, directory: LogDirectory) -> None:
        self._broker.replicas.remove_later(directory, self.partition.settings.log.file_delete_delay_ms / 1000)

    def _end(self, let_go: Callable[[], None]) -> None:
        if self.stage is Stage.ENDED:
            return
        self.stage = Stage.ENDED
        self._broker.directory_assignments.forget(self.partition)
        self.partition.is_changing_log = False
        if self.partition.held:
            flush(self._broker, self.partition)
        self._moves.on_ended(self)
        if self._is_busy:
            self._let_go = let_go
        else:
            let_go()

    # Disk jobs

    def _run(
        self,
        work: Callable[[], ResultT],
        then: Callable[[ResultT], None],
        *,
        over: Callable[[], None] = lambda: None,
        key: str | None = None,
    ) -> None:
        assert not self._is_busy, "one job at a time"
        self._is_busy = True
        self.partition.begin_job()

        def on_over() -> bool:
            over()
            self._is_busy = False
            self.partition.end_job()
            if self._let_go is not None:
                self._let_go()
            return self.stage is not Stage.ENDED

        def on_done(result: ResultT) -> None:
            if on_over():
                then(result)

        def on_failed(problem: Exception) -> None:
            if on_over():
                self._on_problem(problem)

        self._broker.workers.run(work, on_done, on_failed, key=key)

    def _on_problem(self, problem: Exception) -> None:
        """A disk that fails takes its directory away; a full one, or damage in the log, only ends the move."""
        _log.error("%s stays in %s: %s", self.partition.name, self.source.path, problem)
        self._blame(problem)
        self.cancel()

    def _blame(self, problem: Exception) -> None:
        blamed = self.target.path
        if isinstance(problem, _CannotRead):
            problem, blamed = problem.problem, self.source.path
        if isinstance(problem, OSError):
            self._broker.on_disk_error(blamed, problem)
        elif not isinstance(problem, (StorageError, ProtocolError)):
            raise problem


def _copied(future: PartitionLog, part: FileSlice) -> int:
    """As `copy_batches`, telling problems of the one log from those of the other."""
    try:
        data = part.read()
    except OSError as problem:
        raise _CannotRead(problem) from problem
    try:
        return copy_batches(future, data)
    except ProtocolError as problem:
        raise _CannotRead(problem) from problem
