"""The process that cleans: a job a line comes in, what is finished goes out, a line each. See `cleaner_process`.

It reads segments that no longer change and writes files with the suffix .cleaned; it touches nothing else. It ends when
its input does. If the node dies while it works, it ends by itself: another node may be about to open the directory.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from time import monotonic, sleep

from ottla.base.errors import OttlaError
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleaningDone, CleaningFailed, CleaningJob, CleaningStep, step_to_json
from ottla.log.cleaning.throttle import Throttle
from ottla.log.disk import OsDisk

_NICENESS = 10
_BYTES_BETWEEN_LOOKS = 1 << 20


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A person's Ctrl-C is meant for the node, which then ends this one.
    os.nice(_NICENESS)
    still_wanted = _parent_check()
    for line in sys.stdin:
        for step in steps(CleaningJob.of_json(line), still_wanted):
            sys.stdout.write(step_to_json(step) + "\n")
            sys.stdout.flush()


def steps(job: CleaningJob, on_bytes: Callable[[int], None]) -> Iterator[CleaningStep]:
    """What a job comes to, its failure included."""
    begun_s = monotonic()
    throttle = Throttle(job.bytes_per_s, monotonic, sleep)

    def on_read_or_written(count: int) -> None:
        on_bytes(count)
        throttle.on_bytes(count)

    try:
        for step in clean(OsDisk(), job, on_read_or_written):
            if isinstance(step, CleaningDone):
                step.stats.elapsed_s = monotonic() - begun_s
            yield step
    except OSError as problem:
        yield CleaningFailed(str(problem), problem.errno or 0)
    except OttlaError as problem:
        yield CleaningFailed(str(problem))
    except Exception as problem:  # A bug must not look like a crash of the machine: it is told, and the log left alone.
        yield CleaningFailed(f"{type(problem).__name__}: {problem}")


def _parent_check() -> Callable[[int], None]:
    """Ends the process when its parent has gone. Looks now and then."""
    parent, unseen = os.getppid(), 0

    def on_bytes(count: int) -> None:
        nonlocal unseen
        unseen += count
        if unseen >= _BYTES_BETWEEN_LOOKS:
            unseen = 0
            if os.getppid() != parent:
                os._exit(1)

    return on_bytes


if __name__ == "__main__":
    main()
