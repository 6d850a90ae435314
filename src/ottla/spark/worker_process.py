"""What a task does for the Python process that Spark runs it in, one task after the other.

Spark collects garbage after every task (`pyspark/daemon.py`). That goes through all objects of PySpark, pandas, pyarrow
and ours, and found nothing there, for 25 to 50 ms each time: more than a task of some thousand rows takes otherwise.
The driver's planning and commits are tasks in that sense too: each micro-batch waits for one of either.
"""

import gc
import os
import sys
from typing import IO, Final

_tasks_begun: dict[str, int] = {}
_LOADED: Final = 2


def begin_task(kind: str) -> None:
    """To be called first. From a kind's second task on, the garbage collector passes over what was there then.

    The first one has loaded the modules of its kind, and Spark has collected its garbage; nothing is frozen later, so
    what tasks leave behind is collected as ever.
    """
    begun = _tasks_begun[kind] = _tasks_begun.get(kind, 0) + 1
    if begun == 1:
        leave_quietly_when_idle()
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


_TELLS_JAVA: Final = "handle_worker_exception"
_MODULES_OF_WORKERS: Final = ("pyspark.sql.worker.utils", "pyspark.worker")


def leave_quietly_when_idle() -> None:
    """Has this process end without a word when Java closes its connection, if it is a worker of Spark's.

    Spark keeps a worker for the next task, and closes its connection after a minute without one, or when the session
    ends. PySpark takes that for a task that failed and wants to tell Java: the user's terminal shows the traceback of a
    `BrokenPipeError`, after a job that succeeded. Where Java has left there is nobody to tell. Everything else is told
    as ever. To be called when a module is loaded that Spark needs in its workers; twice does no harm.
    """
    for name in _MODULES_OF_WORKERS:
        module = sys.modules.get(name)
        tell = getattr(module, _TELLS_JAVA, None)
        if tell is None or getattr(tell, "leaves_quietly", False):
            continue

        def tell_if_somebody_is_there(problem: BaseException, outfile: "IO[bytes]", tell: object = tell) -> None:
            if _has_left(outfile):
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
            assert callable(tell)
            tell(problem, outfile)

        tell_if_somebody_is_there.leaves_quietly = True  # type: ignore[attr-defined]
        setattr(module, _TELLS_JAVA, tell_if_somebody_is_there)


def _has_left(outfile: "IO[bytes]") -> bool:
    """Whether the other end of the connection is closed. What cannot be asked counts as open."""
    import socket

    try:
        with socket.socket(fileno=os.dup(outfile.fileno())) as connection:
            connection.setblocking(False)
            return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    except (OSError, ValueError):
        return False
