"""Whole partitions as clients of ours see them, and as the files of a node have them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import monotonic

from ottla import Consumer, TopicPartition
from ottla.records.header import CorruptBatch
from ottla.testing.workload.ledger import Ledger, SeenRecord
from ottla.testing.workload.plans import Program
from ottla.testing.workload.reading import StoredBatch, stored_batches, stored_records

Seen = dict[TopicPartition, list[SeenRecord]]
_PATIENCE_S = 30.0


def consumed(settings: dict[str, object], places: Sequence[TopicPartition], isolation: str) -> Seen:
    """By a consumer, record by record."""
    seen: Seen = {place: [] for place in places}
    with _consumer(settings, isolation) as consumer:
        ends = _begin(consumer, places)
        deadline_s = monotonic() + _PATIENCE_S
        while _is_behind(consumer, ends) and monotonic() < deadline_s:
            for one in consumer.poll(timeout=0.2):
                seen[TopicPartition(one.topic, one.partition)].append(
                    SeenRecord(one.offset, one.timestamp, one.key, one.value, one.headers)
                )
    return seen


def consumed_as_arrow(settings: dict[str, object], places: Sequence[TopicPartition], isolation: str) -> Seen:
    """By a consumer, as Arrow's columns."""
    seen: Seen = {place: [] for place in places}
    with _consumer(settings, isolation) as consumer:
        ends = _begin(consumer, places)
        deadline_s = monotonic() + _PATIENCE_S
        while _is_behind(consumer, ends) and monotonic() < deadline_s:
            batch = consumer.poll_arrow(timeout=0.2)
            if batch is None:
                continue
            names = ("offset", "key", "value", "headers", "topic", "partition")
            columns = [batch.column(name).to_pylist() for name in names]
            times = batch.column("timestamp").cast("int64").to_pylist()
            for offset, key, value, headers, topic, partition, time_us in zip(*columns, times, strict=True):
                pairs = tuple((header["key"], header["value"]) for header in headers or ())
                seen[TopicPartition(topic, partition)].append(SeenRecord(offset, time_us // 1000, key, value, pairs))
    return seen


def _consumer(settings: dict[str, object], isolation: str) -> Consumer:
    given = {"auto.offset.reset": "earliest", "isolation.level": isolation, "enable.auto.commit": False}
    return Consumer({**settings, **given})


def _begin(consumer: Consumer, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    consumer.assign(places)
    return consumer.end_offsets(places)


def _is_behind(consumer: Consumer, ends: dict[TopicPartition, int]) -> bool:
    return any(consumer.position(place) < end for place, end in ends.items())


def compare_directory(program: Program, ledger: Ledger, node: str, data: Path) -> Counter[str]:
    """The logs of a node that does not run: every batch sound, with the topic's codec, every record as it was sent."""
    counts: Counter[str] = Counter()
    for place in program.places:
        directory = data / str(place)
        if not directory.exists():
            ledger.tell(f"{node}: {place} has no log")
            continue
        batches = list(_stored(ledger, f"{node}: {place}", sorted(directory.glob("*.log"))))
        for batch in batches:
            if not batch.is_sound:
                ledger.tell(f"{node}: {place} offset {batch.header.base_offset} does not match its checksum")
        codec = program.topic(place.topic).codec
        counts["stored batches"] += len(batches)
        if codec is not None:
            _tell_other_codecs(ledger, f"{node}: {place}", batches, codec)
        counts += ledger.compare(f"the files of {node}", place, stored_records(batches), committed_only=False)
    return counts


def _stored(ledger: Ledger, where: str, files: Iterable[Path]) -> list[StoredBatch]:
    found: list[StoredBatch] = []
    try:
        found.extend(stored_batches(file.read_bytes() for file in files))
    except CorruptBatch as corrupt:
        ledger.tell(f"{where}: {corrupt}")
    return found


def _tell_other_codecs(ledger: Ledger, where: str, batches: Iterable[StoredBatch], codec: int) -> None:
    for batch in batches:
        if not batch.header.is_control and batch.header.compression != codec:
            ledger.tell(f"{where} offset {batch.header.base_offset} is stored with codec {batch.header.compression}")
