"""What a task does for the Python process that Spark runs it in, one task after the other.

Spark collects garbage after every task (`pyspark/daemon.py`). That goes through all objects of PySpark, pandas, pyarrow
and ours, and found nothing there, for 25 to 50 ms each time: more than a task of some thousand rows takes otherwise.
The driver's planning and commits are tasks in that sense too: each micro-batch waits for one of either.
"""

import gc
import os
from typing import Final

_tasks_begun: dict[str, int] = {}
_LOADED: Final = 2


def begin_task(kind: str) -> None:
    """To be called first. From a kind's second task on, the garbage collector passes over what was there then.

    The first one has loaded the modules of its kind, and Spark has collected its garbage; nothing is frozen later, so
    what tasks leave behind is collected as ever.
    """
    begun = _tasks_begun[kind] = _tasks_begun.get(kind, 0) + 1
    if begun == _LOADED:
        gc.freeze()


def end_quietly_if_java_left(problem: BaseException | None) -> None:
    """To be called when a reader is no longer wanted, with what was being raised then, or the `GeneratorExit`.

    A job with `limit` takes the rows that it needs and closes the connection, and so does a query that has ended. The
    worker's next read or write fails, PySpark ends its process, and the last that it does is to print a
    `BrokenPipeError` to the user's terminal, after a job that succeeded. Nothing else is printed by then. So, where it
    is the connection that ended, this process prints nothing any more.
    """
    while problem is not None and not isinstance(problem, ConnectionError | EOFError):
        problem = problem.__context__
    if problem is not None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
