"""Whole partitions read back: by Fetch, from the leader or a follower, and from the files of a log."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.base.ports import Buffer
from ottla.records.batch import checksum_matches, complete_batches
from ottla.records.fetched import fetched_records
from ottla.records.header import BatchHeader
from ottla.records.kernel import ConsumerRecord
from ottla.records.reader import read_records
from ottla.testing.workload.conversations import Ask, Routes, Unexpected
from ottla.testing.workload.ledger import SeenRecord
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest

_FIRST_WITH_TOPIC_IDS: Final = 13
_MAX_BYTES: Final = 32 << 20
_MOST_EMPTY: Final = 400
_MAX_WAIT_MS: Final = 20


class ReadPartition(NamedTuple):
    records: list[SeenRecord]
    high_watermark: int


def read_partition(
    place: TopicPartition,
    node: int,
    routes: Routes,
    *,
    committed_only: bool,
    version: int,
    fetch_bytes: int,
    least_end: int = 0,
) -> Generator[Sequence[Ask], list[Any], ReadPartition]:
    """A conversation that reads a partition from its start to its end, which nobody moves meanwhile.

    A follower may learn late where that is: `least_end` is what its leader has said.
    """
    seen: list[SeenRecord] = []
    offset = empty = 0
    while empty < _MOST_EMPTY:
        request = _fetch(place, routes, offset, fetch_bytes, committed_only=committed_only, version=version)
        (reply,) = yield [Ask(node, request, version)]
        ((answer,),) = (topic.partitions for topic in reply.responses)
        if answer.error_code:
            raise Unexpected(f"Fetch of {place} at offset {offset} answers {ErrorCode(answer.error_code).name}")
        data = bytes(answer.records or b"")
        aborted = [(one.producer_id, one.first_offset) for one in answer.aborted_transactions or ()]
        shown: list[ConsumerRecord] = []
        fetched_records(place.topic, place.partition, data, offset, aborted=aborted).take(shown, 1 << 30)
        seen += [SeenRecord(one.offset, one.timestamp, one.key, one.value, one.headers) for one in shown]
        offset = max((header.next_offset for _, header in complete_batches(data)), default=offset)
        end = answer.high_watermark
        if offset >= end == answer.last_stable_offset and end >= least_end:
            return ReadPartition(seen, end)
        if not data:
            empty += 1
            yield []  # a marker is on its way, or the high watermark to the follower
    raise Unexpected(
        f"{place} cannot be read beyond offset {offset}: high watermark {answer.high_watermark}, "
        f"last stable offset {answer.last_stable_offset}, and the leader said {least_end}"
    )


def _fetch(
    place: TopicPartition, routes: Routes, offset: int, fetch_bytes: int, *, committed_only: bool, version: int
) -> FetchRequest:
    partition = FetchRequest.FetchPartition(
        partition=place.partition, fetch_offset=offset, partition_max_bytes=fetch_bytes, current_leader_epoch=-1
    )
    topic = (
        FetchRequest.FetchTopic(topic_id=routes.topic_ids[place.topic], partitions=[partition])
        if version >= _FIRST_WITH_TOPIC_IDS
        else FetchRequest.FetchTopic(topic=place.topic, partitions=[partition])
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=_MAX_WAIT_MS,
        min_bytes=1,
        max_bytes=_MAX_BYTES,
        isolation_level=int(committed_only),
        session_epoch=-1,
        topics=[topic],
    )


class StoredBatch(NamedTuple):
    header: BatchHeader
    is_sound: bool
    data: Buffer
    position: int


def stored_batches(segments: Iterable[Buffer]) -> Iterator[StoredBatch]:
    """Every batch of a log's segments, in the order of their files."""
    for data in segments:
        for position, header in complete_batches(data):
            yield StoredBatch(header, checksum_matches(data, position, header), data, position)


def stored_records(batches: Iterable[StoredBatch]) -> Iterator[SeenRecord]:
    """All records but those of control batches: what was aborted is among them."""
    for batch in batches:
        if batch.header.is_control or not batch.is_sound:
            continue
        for record in read_records(batch.data, batch.position, batch.header):
            yield SeenRecord(record.offset, record.timestamp, record.key, record.value, record.headers)
