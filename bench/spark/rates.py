"""What a streaming query does in a second, and in a second of the processors: its own, Java's and its workers'."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pyspark.sql import DataFrame

PATIENCE_S = 600.0
"""For one query: a benchmark that hangs must end."""


class Cost(NamedTuple):
    seconds: float
    cpu_s: float


def run_to_the_end(result: DataFrame, mode: str, take: Callable[[DataFrame, int], None] | None = None) -> Cost:
    """Runs a query over all that its sources have; rows go nowhere, or to `take`."""
    with TemporaryDirectory() as checkpoint:
        writer = result.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
        writer = writer.format("noop") if take is None else writer.foreachBatch(take)
        began_s, cpu_s = time.perf_counter(), tree_cpu_s()
        query = writer.trigger(availableNow=True).start()
        if not query.awaitTermination(PATIENCE_S):
            query.stop()
            raise TimeoutError(f"the query did not end within {PATIENCE_S:g} s")
        return Cost(time.perf_counter() - began_s, tree_cpu_s() - cpu_s)


def tree_cpu_s() -> float:
    """The processors' time of this process and all that it has started, ended children included."""
    parents: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    total, left = 0, [os.getpid()]
    while left:
        one = left.pop()
        total += ticks.get(one, 0)
        left += parents.get(one, [])
    return total / os.sysconf("SC_CLK_TCK")
