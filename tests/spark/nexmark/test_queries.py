"""Each question, asked of a stream and of the same events as tables."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ottla.spark.nexmark.events import closing, events
from ottla.spark.nexmark.queries import QUERIES
from ottla.spark.nexmark.records import SCHEMAS, Streams

BEGAN_MS = 1_700_000_000_000
CHUNK = 3000
CHUNKS = 2
RATE = 150.0  # events a second: each chunk is twenty seconds of the auction house


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nexmark")
    chunks = [events(n * CHUNK, CHUNK, seed=5, began_ms=BEGAN_MS, rate=RATE) for n in range(CHUNKS)]
    # Twice: a watermark is acted on in the micro-batch after the one that moved it.
    chunks += [closing(BEGAN_MS + 1_000_000), closing(BEGAN_MS + 1_000_001)]
    for number, chunk in enumerate(chunks):
        for kind, table in zip(SCHEMAS, chunk, strict=True):
            (made / kind).mkdir(exist_ok=True)
            pq.write_table(table, made / kind / f"{number}.parquet")
    return made


def streams(spark: SparkSession, folder: Path, *, is_live: bool) -> Streams:
    def rows(kind: str) -> DataFrame:
        path = str(folder / kind)
        if is_live:
            return spark.readStream.schema(SCHEMAS[kind]).option("maxFilesPerTrigger", 1).parquet(path)
        return spark.read.schema(SCHEMAS[kind]).parquet(path)

    return Streams(*map(rows, SCHEMAS))


@pytest.mark.parametrize("number", QUERIES)
def test_a_stream_answers_as_the_same_events_do_at_once(
    number: int, spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    query = QUERIES[number]
    answers: list[tuple[object, ...]] = []

    def hear(rows: DataFrame, _: int) -> None:
        answers.extend(map(tuple, rows.collect()))

    running = (
        query.answer(streams(spark, folder, is_live=True))
        .writeStream.outputMode(query.output_mode)
        .foreachBatch(hear)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(120)
    wanted = [tuple(row) for row in query.answer(streams(spark, folder, is_live=False)).collect()]
    assert wanted
    if number == 4:  # a category is told again and again; the last time, of all its auctions
        answers = list({row[0]: row for row in sorted(answers, key=lambda row: row[2])}.values())
    if number == 12:  # windows are of the time of reading: how bids fall into them differs from run to run
        newest = {row[:2]: row for row in answers}  # a window is told again when it has changed
        assert bids_by_bidder(list(newest.values())) == bids_by_bidder(wanted)
        return
    assert Counter(about_someone(answers)) == Counter(about_someone(wanted))


def bids_by_bidder(rows: list[tuple[object, ...]]) -> Counter[object]:
    """Of rows of a window, a bidder, and how many bids."""
    counts: Counter[object] = Counter()
    for _, bidder, bids in rows:
        assert isinstance(bids, int)
        counts[bidder] += bids
    return counts


def about_someone(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Without what is about the closing events, whose windows a stream leaves open."""
    return [row for row in rows if -1 not in row]
