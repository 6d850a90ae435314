"""Where a log begins and ends, what is taken from its beginning, and where it lies."""

from ottla.wire.messages import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    DescribeLogDirsRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from tests.interop.compared_nodes import Settle, Step, ask
from tests.interop.requests_to_compare.batches import NOW_MS, batch, produce
from tests.interop.requests_to_compare.fetches import fetch
from tests.interop.requests_to_compare.topics import create


def list_offsets(topic: str, index: int, timestamp: int, *versions: int, isolation_level: int = 0) -> list[Step]:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics, timeout_ms=30_000)
    return [*ask(request, *versions)]


def end_of_epoch(topic: str, epoch: int, current_epoch: int = -1) -> list[Step]:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=0, leader_epoch=epoch, current_leader_epoch=current_epoch
    )
    topics = [OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=topic, partitions=[asked])]
    return [*ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), 2, 4)]


def offsets() -> list[Step]:
    latest, earliest, largest_timestamp, earliest_local, latest_tiered, earliest_pending = range(-1, -7, -1)
    special = (latest, earliest, largest_timestamp, earliest_local, latest_tiered, earliest_pending, -7)
    steps: list[Step] = [*create(("listed", 1), ("unwritten", 1)), Settle(("listed", "unwritten"))]
    for timestamp in (NOW_MS - 10, NOW_MS):
        steps += ask(produce(batch(timestamp=timestamp), "listed"), 12)
    for topic in ("listed", "unwritten", "nobody"):
        for timestamp in (*special, 0, NOW_MS - 10, NOW_MS - 5, NOW_MS, NOW_MS + 1):
            steps += list_offsets(topic, 0, timestamp, 1, 7, 8, 11)
        steps += list_offsets(topic, 0, latest, 2, 11, isolation_level=1)
        for epoch in (-1, 0, 1, 5):
            steps += end_of_epoch(topic, epoch)
        steps += end_of_epoch(topic, 0, current_epoch=5)
    return [*steps, *list_offsets("listed", 9, latest, 1, 11)]


def delete_records(topic: str, offset: int, index: int = 0) -> list[Step]:
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
    topics = [DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])]
    return [*ask(DeleteRecordsRequest(timeout_ms=30_000, topics=topics), 0, 2)]


def records_deleted() -> list[Step]:
    steps: list[Step] = [*create(("cut", 1)), Settle(("cut",))]
    for _ in range(4):
        steps += ask(produce(batch(), "cut"), 12)
    for offset in (99, -2, 2, 1, 3, -1):
        steps += delete_records("cut", offset)
        steps += list_offsets("cut", 0, -2, 11)
        steps += ask(fetch(12, 0, "cut"), 12)
        steps += ask(fetch(12, 3, "cut"), 12)
    return [*steps, *delete_records("cut", 0, index=9), *delete_records("nobody", 0)]


def directories() -> list[Step]:
    def topics(*names: str) -> DescribeLogDirsRequest:
        asked = [DescribeLogDirsRequest.DescribableLogDirTopic(topic=name, partitions=(0, 1, 9)) for name in names]
        return DescribeLogDirsRequest(topics=asked)

    moved = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="placed", partitions=(0, 9))
    nowhere = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path="/nowhere", topics=[moved])
    return [
        *create(("placed", 2)),
        Settle(("placed",)),
        *ask(produce(batch(b"a" * 100), "placed"), 12),
        *ask(topics("placed", "nobody"), 1, 5),
        *ask(topics(), 1, 5),
        *ask(AlterReplicaLogDirsRequest(dirs=[nowhere]), 1, 2),
    ]
