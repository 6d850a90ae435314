"""What a task does for the Python process that Spark runs it in, one task after the other.

Spark collects garbage after every task (`pyspark/daemon.py`). That goes through all objects of PySpark, pandas, pyarrow
and ours, and found nothing there, for 25 to 50 ms each time: more than a task of some thousand rows takes otherwise.
The driver's planning and commits are tasks in that sense too: each micro-batch waits for one of either.
"""

import gc
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
