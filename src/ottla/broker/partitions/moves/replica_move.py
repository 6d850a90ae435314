"""The move of one replica to another log directory of the same node (KIP-113, KIP-858), from the request to the swap.

1. A future log is begun in the target directory.
2. The current log's batches are copied into it, a bounded part at a time, on a disk thread. The current log serves as
   before; what is appended meanwhile is copied too. When it is cut, the copy is cut before anything else is done.
3. When the copy has everything, it is made durable, and the controller is asked to write down the new directory.
4. Once that is committed, the copy catches up a last time, and the two change places: the future directory gets the
   partition's name, the other one a name with -delete, and the partition continues with the new log. That is one step
   of the loop. It is only taken when no disk thread works on the partition, and the copy is as durable as the original;
   so flushes of the original wait from the moment that is looked for.

The metadata names the new directory before the swap, so that after a crash at any moment it tells which of the two logs
is the partition's (`interrupted_moves`).

Only the loop's thread calls this. One disk job of a move is under way at a time, and counts as a job of the partition:
the files of both logs stay until it is over. A move that has ended lets go of the future log after that.
"""

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ottla.base.errors import ProtocolError, StorageError
from ottla.broker.partitions.held_partitions import LOG_DIRS
from ottla.broker.partitions.moves.replica_copy import LAST_PART_BYTES, PROBLEMS, CannotRead, Copied, ReplicaCopy
from ottla.broker.partitions.partition import Partition
from ottla.log.directory import LogDirectory
from ottla.log.future_logs import start_of_copy, take_over
from ottla.log.partition_log import PartitionLog
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.partitions.moves.replica_moves import ReplicaMoves

_log = logging.getLogger(__name__)
ResultT = TypeVar("ResultT")


class Stage(Enum):
    COPYING = "copying"
    ASKING = "asking"
    """The controller has been asked, or is about to be: the metadata may name either directory."""
    ACCEPTED = "accepted"
    ENDED = "ended"


class ReplicaMove:
    """`moves` is called when the move has ended, and again when it has let go. `future` is what a stop left of it."""

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        moves: "ReplicaMoves",
        partition: Partition,
        target: LogDirectory,
        future: PartitionLog | None = None,
    ) -> None:
        self.partition = partition
        self.source = partitions.logs.online[partition.directory]
        self.target = target
        self.stage = Stage.COPYING
        self.may_copy = False
        self._partitions = partitions
        self._world = world
        self._moves = moves
        self._copy = self._copy_in(future, partition.log.watch_cuts()) if future is not None else None
        self._is_begun = future is not None
        self._is_busy = False
        self._let_go: Callable[[], None] | None = None

    # 1. Begun

    def begin(self) -> None:
        """Makes the future log, unless there is one. Nothing is copied into it before its turn."""
        if not self._is_begun:
            self._is_begun = True
            self._make_future()

    def _make_future(self) -> None:
        name, topic_id = self.partition.name, self.partition.topic_id
        try:
            start_offset = start_of_copy(self.partition.log)
        except PROBLEMS as problem:
            self._on_problem(CannotRead(problem))
            return
        cuts = self.partition.log.watch_cuts()
        self._run(
            lambda: self.target.begin_future(name, topic_id, start_offset),
            lambda future: self._on_begun(self._copy_in(future, cuts)),
            key=LOG_DIRS,
        )

    def _copy_in(self, future: PartitionLog, cuts: int) -> ReplicaCopy:
        return ReplicaCopy(self.partition, future, self._world.clock.thread_s, cuts)

    def _on_begun(self, copy: ReplicaCopy) -> None:
        self._copy = copy
        if self.may_copy:
            self._schedule()

    def _begin_anew(self) -> None:
        """The current log begins after the copy ends, or has been cut: what was copied is no part of it."""
        self._copy = None
        self.stage = Stage.COPYING
        self.partition.is_changing_log = False
        self._run(lambda: self.target.drop_future(self.partition.name), lambda _: self._on_dropped(), key=LOG_DIRS)

    def _on_dropped(self) -> None:
        self._remove_later(self.target)
        self._make_future()

    # 2. Copied

    def start_copying(self) -> None:
        self.may_copy = True
        if self._copy is not None:
            self._schedule()

    def _schedule(self, delay_s: float = 0) -> None:
        self._world.timers.after(delay_s, self._step)

    def _step(self) -> None:
        if not self._is_at_rest:
            return
        copy = self._copy
        assert copy is not None
        if copy.must_be_cut:
            self._cut(copy, self._step)
            return
        try:
            left = copy.bytes_left()
            if left is None:
                self._begin_anew()
            elif left > LAST_PART_BYTES:
                self._copy_part(copy, self._on_copied)
            elif self.stage is Stage.COPYING:
                self.stage = Stage.ASKING
                self._sync(self._save_cleaner_offset)
            elif self.stage is Stage.ACCEPTED:
                self._come_to_the_end()
        except CannotRead as problem:
            self._on_problem(problem)

    @property
    def _is_at_rest(self) -> bool:
        """Nothing of the move is under way, nor waits for the partition to be idle."""
        is_waiting = self._is_busy or self.partition.is_changing_log
        return not (is_waiting or self.stage is Stage.ENDED or self._moves.is_stopped)

    def _copy_part(self, copy: ReplicaCopy, then: Callable[[Copied], None]) -> None:
        part = copy.next_part(self._moves.part_bytes)
        file = part.file
        assert file is not None, "there is something left to copy"
        file.pin()  # Retention may take the segment out of the log meanwhile.

        def on_failed(problem: Exception) -> None:
            cause = problem.problem if isinstance(problem, CannotRead) else problem
            if copy.must_be_cut and isinstance(cause, (StorageError, ProtocolError)):
                then(Copied(0, 0))  # It was cut, and written anew, while it was read.
            else:
                self._on_problem(problem)

        self._run(lambda: copy.copy(part), then, on_failed, over=file.unpin)

    def on_cut(self) -> None:
        """The current log has been cut, if there was anything to cut. So is the copy, at once or after what works on it
        or waits to."""
        copy = self._copy
        if copy is not None and copy.must_be_cut and self._is_at_rest:
            self._cut(copy, lambda: self._step() if self.may_copy else None)

    def _cut(self, copy: ReplicaCopy, then: Callable[[], None]) -> None:
        self._run(copy.cutting(), lambda _: then())

    def _on_copied(self, copied: Copied) -> None:
        assert self._copy is not None
        rest_s = self._copy.on_copied(copied, self._moves.part_bytes)
        self._partitions.has_news_for_checkpoints = True
        self._schedule(max(self._moves.wait_after(copied.size), rest_s))

    # 3. Written down

    def _sync(self, then: Callable[[], None]) -> None:
        assert self._copy is not None
        self._run(self._copy.sync, lambda _: then())

    def _save_cleaner_offset(self) -> None:
        """Nothing cleans a log that moves: what is clean of the one is clean of the other."""
        name, target = self.partition.name, self.target
        offset = self.source.cleaner_offset(name)
        if offset is None:
            self._ask()
        else:
            self._run(lambda: target.save_cleaner_offset(name, offset), lambda _: self._ask(), key=LOG_DIRS)

    def _ask(self) -> None:
        directory_id = self._partitions.identity.directory_ids.get(self.target.path)
        if directory_id is None:
            self._on_accepted()
        else:
            self._moves.directory_assignments.assign(self.partition, directory_id, self._on_accepted)
            if self.stage is Stage.ASKING:
                self._step()  # The current log may have been cut while a disk thread was at work.

    def _on_accepted(self) -> None:
        if self.stage is Stage.ASKING:
            self.stage = Stage.ACCEPTED
            self._step()

    # 4. Swapped

    def _come_to_the_end(self) -> None:
        self.partition.is_changing_log = True
        self._finish_when_idle()

    def _finish_when_idle(self) -> None:
        self._partitions.when_idle(self.partition, self._finish)

    def _finish(self) -> None:
        """Nothing works on the partition now, and no flush can begin: each turn leaves less to be done."""
        if self.stage is Stage.ENDED or self._moves.is_stopped:
            return
        if not self.partition.is_idle:
            self._finish_when_idle()  # Somebody else who waited was quicker.
            return
        copy = self._copy
        assert copy is not None
        try:
            if copy.must_be_cut:
                self._cut(copy, self._finish_when_idle)
            elif copy.bytes_left() is None:
                self._begin_anew()
            elif not copy.copy_last_part():
                self._copy_part(copy, lambda _: self._finish_when_idle())
            elif not copy.is_as_durable:
                self._sync(self._finish_when_idle)
            else:
                self._swap(self.partition.log, copy.future)
        except (*PROBLEMS, CannotRead) as problem:
            self._on_problem(problem)

    def _swap(self, current: PartitionLog, future: PartitionLog) -> None:
        partitions, partition = self._partitions, self.partition
        try:
            self.target.promote(partition.name)
        except OSError as problem:
            self._on_problem(problem)
            return
        take_over(future, current)
        partition.change_log(future)
        partitions.given_up.discard(partition)  # What it could not write to was the other directory.
        self.stage = Stage.ENDED
        self._moves.on_ended(self)
        _log.info("%s has moved from %s to %s", partition.name, self.source.path, self.target.path)
        try:
            self.source.retire(partition.name)
        except OSError as problem:
            current.release()
            partitions.fail_directory(self.source.path, problem)
            self._moves.on_over(self)
        else:
            self._world.workers.run(
                partial(self._settle, current), lambda _: self._on_settled(), self._unsettled, key=LOG_DIRS
            )
        partitions.flushing.on_log_changed(partition)

    def _settle(self, old: PartitionLog) -> None:
        """On a disk thread: makes the two names last."""
        self._world.disk.sync_dir(self.target.path)
        try:
            self.source.bury(old)
        except OSError as problem:
            raise CannotRead(problem) from problem

    def _on_settled(self) -> None:
        self._partitions.has_news_for_checkpoints = True
        self._remove_later(self.source)
        self._moves.on_over(self)

    def _unsettled(self, problem: Exception) -> None:
        self._blame(problem)
        self._moves.on_over(self)

    # Ending otherwise

    def cancel(self, *, keep_directory: bool = True) -> None:
        """The copy is thrown away. With `keep_directory` the metadata is made to name the current directory again."""
        if self.stage in (Stage.ASKING, Stage.ACCEPTED) and keep_directory:
            self._moves.directory_assignments.revert(self.partition)
        name, target = self.partition.name, self.target
        self._end(lambda: self._run_last(lambda: target.drop_future(name) if name in target.futures.logs else None))

    def leave(self) -> None:
        """The current log is broken, or its directory has failed. The copy may be all that is left, so it stays."""
        name, target = self.partition.name, self.target
        self._end(lambda: self._run_last(lambda: target.futures.close(name) if name in target.futures.logs else None))

    def release(self) -> None:
        """The target directory has failed."""
        self._end(self._release_future)

    def _release_future(self) -> None:
        future = self._copy.future if self._copy else self.target.futures.logs.get(self.partition.name)
        if future is not None:
            future.release()
        self._moves.on_over(self)

    def _run_last(self, work: Callable[[], None]) -> None:
        self._world.workers.run(work, lambda _: self._on_let_go(), self._unsettled, key=LOG_DIRS)

    def _on_let_go(self) -> None:
        self._remove_later(self.target)
        self._moves.on_over(self)

    def _remove_later(self, directory: LogDirectory) -> None:
        self._moves.discarded_logs.remove_later(directory, self.partition.settings.log.file_delete_delay_ms / 1000)

    def _end(self, let_go: Callable[[], None]) -> None:
        if self.stage is Stage.ENDED:
            return
        self.stage = Stage.ENDED
        self._moves.directory_assignments.forget(self.partition)
        self.partition.is_changing_log = False
        self._partitions.flushing.flush_what_waits(self.partition)
        self._moves.on_ended(self)
        if not self._is_begun:
            self._moves.on_over(self)  # A future log that is there is of the move before, which may still work on it.
        elif self._is_busy:
            self._let_go = let_go
        else:
            let_go()

    # Disk jobs

    def _run(
        self,
        work: Callable[[], ResultT],
        then: Callable[[ResultT], None],
        failed: Callable[[Exception], None] | None = None,
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
                (failed or self._on_problem)(problem)

        self._world.workers.run(work, on_done, on_failed, key=key)

    def _on_problem(self, problem: Exception) -> None:
        """A disk that fails takes its directory away; a full one, or damage in the log, only ends the move."""
        _log.error(
            "%s: the move failed, and the replica stays in %s: %s", self.partition.name, self.source.path, problem
        )
        self._blame(problem)
        self.cancel()

    def _blame(self, problem: Exception) -> None:
        blamed = self.target.path
        if isinstance(problem, CannotRead):
            problem, blamed = problem.problem, self.source.path
        if isinstance(problem, OSError):
            self._partitions.on_disk_error(blamed, problem)
        elif not isinstance(problem, PROBLEMS):
            raise problem
