"""Streams of tests: micro-batches as the test writes them down, and what a query made of each."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tests.spark.pipelines_streams import Ran, Streamed


@pytest.fixture
def streamed(spark: SparkSession, tmp_path: Path) -> Streamed:
    """`streamed("key string, value int", [batch, batch])`: a streaming DataFrame, one list of rows a micro-batch."""
    numbers = iter(range(1000))

    def stream(schema: str, batches: Sequence[Sequence[tuple[Any, ...]]]) -> DataFrame:
        folder = tmp_path / f"stream-{next(numbers)}"
        folder.mkdir()
        names = [field.split()[0] for field in schema.split(", ")]
        for number, batch in enumerate(batches):
            lines = [json.dumps(dict(zip(names, row, strict=True)), default=str) for row in batch]
            file = folder / f"{number:04}.json"
            file.write_text("\n".join(lines))
            os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark takes the oldest first
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder))

    return stream


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """`ran(result, "append")`: runs a query to the end of its input; the rows of each micro-batch that had any."""

    def run(result: DataFrame, mode: str = "append", checkpoint: str = "checkpoint") -> list[list[Row]]:
        batches: list[list[Row]] = []
        query = (
            result.writeStream.outputMode(mode)
            .foreachBatch(lambda rows, _: batches.append(rows.collect()))
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)
        assert not query.isActive, "the query did not come to the end of its input"
        return [batch for batch in batches if batch]

    return run
