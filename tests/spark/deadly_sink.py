"""The sink with a death in it: `format("deadly")` writes as `ottla` does, until its process is killed at a given point.

Its classes go to Spark's workers by value, so that these need not find this file. A death happens once: the file that
the option `kafka.client.id` names is there until then.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from ottla.spark.data_source import OttlaDataSource
from ottla.spark.sink.decided_writes import Written
from ottla.spark.sink.stream_writer import StreamWriter

cloudpickle.register_pickle_by_value(sys.modules[__name__])

POINTS = {
    "in a task, after its rows are written": ("task", "", False),
    "before the decision is sent": ("Committer", "_send", False),
    "after the decision is sent": ("Committer", "_send", True),
    "after the decision is committed": ("Committer", "_decide", True),
    "after the transactions are committed": ("Committer", "_finish", True),
    "before Spark notes the commit": ("Committer", "commit", True),
}


class DeadlySource(OttlaDataSource):
    @classmethod
    def name(cls) -> str:
        return "deadly"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
        writer = super().streamWriter(schema, overwrite)
        writer.__class__ = DeadlyWriter
        return writer


class DeadlyWriter(StreamWriter):
    def write(self, iterator: Iterator[Any]) -> Written:
        written = super().write(iterator)
        if self._point()[0] == "task" and written.task.number == 0:
            self._die()
        return written

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        owner, name, after = self._point()
        if owner == "Committer":
            from ottla.spark.sink.committer import Committer

            real = getattr(Committer, name)

            def deadly(*args: Any, **keywords: Any) -> Any:
                if after:
                    real(*args, **keywords)
                self._die()

            setattr(Committer, name, deadly)
        super().commit(messages, batchId)

    def _order(self) -> Path:
        return Path(self._options.settings["client.id"])

    def _point(self) -> tuple[str, str, bool]:
        return POINTS[self._order().read_text()] if self._order().exists() else ("", "", False)

    def _die(self) -> None:
        self._order().unlink()
        os.kill(os.getpid(), signal.SIGKILL)
