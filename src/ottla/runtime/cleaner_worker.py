"""The process that cleans: a job a line comes in, what is finished goes out, a line each. See `cleaner_process`.

It reads segments that no longer change and writes files with the suffix .cleaned; it touches nothing else. It ends when
its input does, whatever it is at: then the node has died, also where it had no chance to say so, and another one may be
about to open the directory. A thread reads the input for that reason: the other may wait for long, for the disk or for
`log.cleaner.io.max.bytes.per.second`.
"""

import os
import signal
import sys
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread
from time import monotonic, sleep

from ottla.base.errors import OttlaError
from ottla.log.cleaning.cleaning import clean
from ottla.log.cleaning.job import CleaningDone, CleaningFailed, CleaningJob, CleaningStep, step_to_json
from ottla.log.cleaning.throttle import Throttle
from ottla.log.disk import OsDisk

_NICENESS = 10


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A person's Ctrl-C is meant for the node, which then ends this one.
    os.nice(_NICENESS)
    jobs: SimpleQueue[str] = SimpleQueue()
    Thread(target=_read_jobs, args=(jobs,), daemon=True).start()
    while True:
        for step in steps(CleaningJob.of_json(jobs.get())):
            sys.stdout.write(step_to_json(step) + "\n")
            sys.stdout.flush()


def _read_jobs(jobs: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        jobs.put(line)
    os._exit(0)


def steps(job: CleaningJob) -> Iterator[CleaningStep]:
    """What a job comes to, its failure included."""
    begun_s = monotonic()
    throttle = Throttle(job.bytes_per_s, monotonic, sleep)
    try:
        for step in clean(OsDisk(), job, throttle.on_bytes):
            if isinstance(step, CleaningDone):
                step.stats.elapsed_s = monotonic() - begun_s
            yield step
    except OSError as problem:
        yield CleaningFailed(str(problem), problem.errno or 0)
    except OttlaError as problem:
        yield CleaningFailed(str(problem))
    except Exception as problem:  # A bug must not look like a crash of the machine: report it, leave the log alone.
        yield CleaningFailed(f"{type(problem).__name__}: {problem}")


if __name__ == "__main__":
    main()
