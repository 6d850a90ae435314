"""Reads of files that are not in memory: the loop does not wait for them, a worker reads ahead.

An index or the head of a batch is a few kilobytes, and in memory nearly always. So the loop reads it itself, on the
condition that the disk is not waited for (`Disk.reads_may_wait`). Where it would be, it learns what was missing; a
worker reads that, and the loop begins anew. What it goes by is always the log as it is then.
"""

from collections.abc import Callable, Sequence

from ottla.base.ports import ColdRead, Workers

MOST_ROUNDS = 16
"""After so many the loop waits: the system throws out of its memory what has just been read."""


def warm(workers: Workers, reads: Sequence[ColdRead], then: Callable[[bool], None]) -> None:
    """Has a worker read all of these, and calls back: False if one failed, which is to be found out by reading."""

    def read_all() -> bool:
        is_warm = True
        for read in reads:
            try:
                read.warm()
            except OSError:
                is_warm = False
        return is_warm

    workers.run(read_all, then)
