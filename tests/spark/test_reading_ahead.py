"""What a task of the source does while Spark is busy: it fetches and decodes ahead, and no more than it may."""

from collections.abc import Generator
from threading import Event, current_thread
from time import monotonic, sleep

import pytest

import ottla
from ottla.base.ids import TopicPartition
from ottla.client.consumer.fetching.fetched_chunks import FetchedChunks
from ottla.spark.options import Options, Use
from ottla.spark.source import kept_consumers
from ottla.spark.source.ahead import one_ahead
from ottla.spark.source.ranges import OffsetRange
from ottla.spark.source.source_options import read_source_options
from ottla.spark.source.task import read_ranges
from ottla.testing import Broker

PATIENCE_S = 60
RECORDS, RECORD_BYTES = 4_000, 2_000


def test_the_next_item_is_made_while_the_caller_has_the_one_before() -> None:
    is_made, threads = Event(), []

    def items() -> Generator[int, None, None]:
        for number in range(3):
            threads.append(current_thread())
            yield number
            if number == 0:
                is_made.set()

    ahead = one_ahead(items())
    assert next(ahead) == 0
    assert is_made.wait(PATIENCE_S)
    assert list(ahead) == [1, 2]
    assert threads[0] is current_thread()
    assert threads[1] is not current_thread()


@pytest.mark.parametrize("good", [0, 1, 5])
def test_an_error_comes_in_the_place_of_its_item(good: int) -> None:
    def items() -> Generator[int, None, None]:
        yield from range(good)
        raise KeyError("the next one")

    ahead = one_ahead(items())
    assert [next(ahead) for _ in range(good)] == list(range(good))
    with pytest.raises(KeyError, match="the next one"):
        next(ahead)


def test_a_caller_who_stops_early_leaves_nothing_behind() -> None:
    was_closed = Event()

    def items() -> Generator[int, None, None]:
        try:
            yield from range(10)
        finally:
            was_closed.set()

    ahead = one_ahead(items())
    assert next(ahead) == 0
    ahead.close()
    assert was_closed.is_set()


@pytest.mark.parametrize("prefetch_bytes", [1 << 18, 1 << 20])
def test_a_task_holds_no_more_bytes_than_prefetch_bytes_however_slow_spark_is(
    ottla_broker: Broker, ottla_topic: str, monkeypatch: pytest.MonkeyPatch, prefetch_bytes: int
) -> None:
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        for _ in range(RECORDS):
            producer.send(ottla_topic, bytes(RECORD_BYTES))
    given = {"kafka.bootstrap.servers": ottla_broker.bootstrap, "subscribe": ottla_topic}
    options = read_source_options(
        Options({**given, "prefetchbytes": str(prefetch_bytes)}, Use.BATCH_READ), Use.BATCH_READ
    )
    held: list[int] = []
    add = FetchedChunks.add

    def counted(chunks: FetchedChunks, *args: object, **keywords: object) -> bool:
        is_added = add(chunks, *args, **keywords)  # type: ignore[arg-type]
        held.append(chunks.buffered_bytes)
        return is_added

    monkeypatch.setattr(FetchedChunks, "add", counted)
    monkeypatch.setattr(kept_consumers, "_kept", {})
    rows = read_ranges(options, [OffsetRange(TopicPartition(ottla_topic, 0), 0, RECORDS)])
    count = next(rows).num_rows
    deadline_s = monotonic() + PATIENCE_S
    while len(held) < 2:  # it fetches ahead of a reader who does nothing
        assert monotonic() < deadline_s, "nothing is fetched ahead"
        sleep(0.01)
    count += sum(batch.num_rows for batch in rows)
    assert count == RECORDS
    assert max(held) <= prefetch_bytes
    [consumer] = kept_consumers._kept.values()
    consumer.close()
