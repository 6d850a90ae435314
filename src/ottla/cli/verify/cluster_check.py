"""The replicas of a running cluster, read side by side: each batch sound and in order, and all replicas the same.

Each replica is asked as a debugging consumer (replica id -2), which followers answer, too, up to the high watermark.
What is compared ends where the leader's high watermark was when the partition's turn came. Each replica cleans a
compacted topic in its own time: there records are compared, by offset, and one that only some replicas have is no
damage. In memory: one fetch of each replica.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.base.checksum import crc32c
from ottla.base.errors import OttlaError, ProtocolError
from ottla.base.ids import TopicPartition
from ottla.cli.verify.batch_order import BatchOrder
from ottla.cli.verify.problems import COMPARE, DAMAGE, RESTORE, Problem, Tell
from ottla.records.batch import checksum_matches, complete_batches
from ottla.records.header import BatchHeader, CorruptBatch
from ottla.records.reader import read_records
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.client.cluster.cluster import Cluster
    from ottla.client.io.loop_thread import LoopThread

_DEBUGGING_CONSUMER: Final = -2
_NEWEST_FETCH: Final = 12
"""The last version that names topics; later ones have ids."""
_FETCH_BYTES: Final = 4 << 20
_MAX_WAIT_MS: Final = 500
_MOST_EMPTY: Final = 20
"""Fetches that bring nothing in a row: ten seconds for a follower to hear of its leader's high watermark."""


class Unreadable(OttlaError):
    """A replica does not answer, or answers with an error."""


class ClusterPartition(NamedTuple):
    name: TopicPartition
    leader: int
    replicas: tuple[int, ...]
    is_compacted: bool


class _Item(NamedTuple):
    """A batch, or a record of a compacted topic."""

    offset: int
    next_offset: int
    checksum: int


class Replicas:
    """`ask` sends a Fetch to a broker, and gives its reply."""

    def __init__(self, ask: Callable[[int, Any], Any], tell: Tell, progress: Callable[[str, int], None]) -> None:
        self._ask = ask
        self._tell = tell
        self._progress = progress

    def check(self, partition: ClusterPartition) -> None:
        name = partition.name
        self._progress(str(name), 0)
        try:
            leader = self._fetch(name, partition.leader, 0, may_wait=False)
            start, end = leader.log_start_offset, leader.high_watermark
        except Unreadable as problem:
            self._damage(
                name, partition.leader, -1, f"the leader cannot be read: {problem}", "Look at the broker's log."
            )
            return
        streams: dict[int, Iterator[_Item]] = {}
        for node_id in (partition.leader, *(one for one in partition.replicas if one != partition.leader)):
            streams[node_id] = self._items(partition, node_id, start, end)
        self._compare(partition, streams)

    def _compare(self, partition: ClusterPartition, streams: Mapping[int, Iterator[_Item]]) -> None:
        """Items of all replicas in step, by offset. A replica that differs is reported once, and left out from there
        on."""
        heads = {node_id: next(items, None) for node_id, items in streams.items()}
        reported: set[int] = set()
        while any(head is not None for head in heads.values()):
            offset = min(head.offset for head in heads.values() if head is not None)
            here = {node_id: head for node_id, head in heads.items() if head is not None and head.offset == offset}
            leader = here.get(partition.leader)
            for node_id in streams.keys() - reported - {partition.leader}:
                what = _difference(partition, node_id, leader, here.get(node_id), offset)
                if what:
                    reported.add(node_id)
                    self._damage(partition.name, node_id, offset, what, COMPARE)
            for node_id in here:
                heads[node_id] = next(streams[node_id], None)

    def _items(self, partition: ClusterPartition, node_id: int, start: int, end: int) -> Iterator[_Item]:
        """What a replica has from `start` to `end`; what is wrong in itself is reported on the way."""
        order = BatchOrder(holes_before=end if partition.is_compacted else 0)
        offset, empty = start, 0
        try:
            while offset < end:
                answer = self._fetch(partition.name, node_id, offset)
                data = answer.records or b""
                before = offset
                for position, header in complete_batches(data):
                    if header.next_offset <= offset or header.base_offset >= end:
                        continue
                    offset = header.next_offset
                    self._progress(str(partition.name), header.size if node_id == partition.leader else 0)
                    yield from self._batch(
                        partition, node_id, memoryview(data)[position:][: header.size], header, order
                    )
                if offset == before:
                    empty += 1
                    if partition.is_compacted and answer.high_watermark >= end and not data:
                        return  # what was at its end has been cleaned
                    if empty >= _MOST_EMPTY:
                        what = f"it ends at offset {offset}, and its leader was at {end}"
                        self._damage(
                            partition.name, node_id, offset, what, "Wait until it has caught up, or see why not."
                        )
                        return
                else:
                    empty = 0
        except Unreadable as problem:
            self._damage(partition.name, node_id, offset, f"it cannot be read: {problem}", "Look at the broker's log.")
        except CorruptBatch as problem:
            self._damage(partition.name, node_id, offset, f"there is no batch: {problem}", RESTORE)

    def _batch(
        self, partition: ClusterPartition, node_id: int, batch: memoryview, header: BatchHeader, order: BatchOrder
    ) -> Iterator[_Item]:
        if not checksum_matches(batch, 0, header):
            self._damage(partition.name, node_id, header.base_offset, "the checksum does not match", RESTORE)
            order.skip(header)
        else:
            for what in order.take(header, batch):
                self._damage(partition.name, node_id, header.base_offset, what, RESTORE)
        if not partition.is_compacted:
            yield _Item(header.base_offset, header.next_offset, header.crc)
            return
        try:
            for record in read_records(batch, 0, header):
                content = repr((record.timestamp, record.key, record.value, record.headers))
                yield _Item(record.offset, record.offset + 1, crc32c(content.encode()))
        except ProtocolError as problem:
            self._damage(partition.name, node_id, header.base_offset, f"a record cannot be read: {problem}", RESTORE)

    def _fetch(self, name: TopicPartition, node_id: int, offset: int, *, may_wait: bool = True) -> Any:
        """One that may not wait is about offsets: it brings hardly any records."""
        from ottla.wire.messages import FetchRequest

        wanted = FetchRequest.FetchPartition(
            partition=name.partition, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES if may_wait else 1
        )
        request = FetchRequest(
            replica_id=_DEBUGGING_CONSUMER,
            max_wait_ms=_MAX_WAIT_MS if may_wait else 0,
            min_bytes=int(may_wait),
            max_bytes=_FETCH_BYTES,
            topics=[FetchRequest.FetchTopic(topic=name.topic, partitions=[wanted])],
        )
        try:
            ((answer,),) = (topic.partitions for topic in self._ask(node_id, request).responses)
        except OttlaError as problem:
            raise Unreadable(str(problem)) from problem
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE and offset < answer.log_start_offset:
            return self._fetch(name, node_id, answer.log_start_offset, may_wait=may_wait)
        if error:
            raise Unreadable(error.name)
        return answer

    def _damage(self, name: TopicPartition, node_id: int, offset: int, what: str, advice: str) -> None:
        self._tell(Problem(DAMAGE, str(name), f"broker {node_id}", -1, offset, what, advice))


def _difference(
    partition: ClusterPartition, node_id: int, leader: _Item | None, other: _Item | None, offset: int
) -> str:
    if leader is not None and other is not None:
        if leader == other:
            return ""
        kind = "record" if partition.is_compacted else "batch"
        return f"its {kind} at offset {offset} is not the one of leader {partition.leader}"
    if partition.is_compacted:
        return ""
    if leader is None and other is None:
        return ""
    if other is None:
        return f"it has no batch at offset {offset}, and leader {partition.leader} has"
    return f"it has a batch at offset {offset}, and leader {partition.leader} has none"


def check_cluster(
    loop: "LoopThread",
    cluster: "Cluster",
    partitions: list[ClusterPartition],
    tell: Tell,
    progress: Callable[[str, int], None],
) -> None:
    replicas = Replicas(
        lambda node_id, request: loop.ask(lambda: cluster.ask(node_id, request, newest=_NEWEST_FETCH)), tell, progress
    )
    for partition in partitions:
        replicas.check(partition)
