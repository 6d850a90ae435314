"""A streaming query of the source whose rows a test looks at: each micro-batch is collected in the driver."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StreamingQuery

PATIENCE_S = 120


class Stream:
    """Started anew with the same checkpoint as often as a test likes."""

    def __init__(self, spark: "SparkSession", checkpoint: Path, options: Mapping[str, object]) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self._options = options
        self.batches: dict[int, list[Row]] = {}

    def start(self, *, available_now: bool = False, **options: object) -> "StreamingQuery":
        reader = self._spark.readStream.format("ottla")
        for name, value in {**self._options, **options}.items():
            if value is not None:
                reader = reader.option(name, str(value))
        writer = reader.load().writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def run(self, **options: object) -> list[str]:
        """With the trigger AvailableNow, to its end. Returns the values that came, in order."""
        before = set(self.batches)
        query = self.start(available_now=True, **options)
        try:
            assert query.awaitTermination(PATIENCE_S), "the query did not end"
        finally:
            query.stop()
        return self.values(set(self.batches) - before)

    def values(self, batches: "set[int] | None" = None) -> list[str]:
        wanted = sorted(self.batches if batches is None else batches)
        return sorted(row.value.decode() for batch in wanted for row in self.batches[batch])

    def sizes(self) -> list[int]:
        return [len(self.batches[batch]) for batch in sorted(self.batches)]

    def _take(self, rows: "DataFrame", batch: int) -> None:
        self.batches[batch] = rows.collect()


def run_until(queries: "Sequence[StreamingQuery]", batch_id: int) -> None:
    """Lets queries come to a batch, and stops them. Raises what ended one of them before."""
    try:
        for query in queries:
            deadline_s = monotonic() + PATIENCE_S
            while query.lastProgress is None or query.lastProgress["batchId"] < batch_id:
                assert not query.awaitTermination(0.1), "it ended by itself"
                assert monotonic() < deadline_s, "it takes too long"
    finally:
        for query in queries:
            query.stop()
