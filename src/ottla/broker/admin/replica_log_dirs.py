"""DescribeLogDirs, versions 1 to 5, and AlterReplicaLogDirs, versions 1 and 2: what is in which directory (KIP-113).

A replica that moves is in both: in the one as it is, in the other as a future one, with how far that is behind.
"""

from posixpath import normpath

from ottla.base.ids import TopicPartition
from ottla.base.ports import Disk, Space
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.moves.replica_moves import ReplicaMoves
from ottla.log.directory import LogDirectory
from ottla.log.file_names import FUTURE_DIR, marked_dir
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.topic_names import LONGEST
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

_Result = DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
_Partition = DescribeLogDirsResponse.DescribeLogDirsPartition

_UNKNOWN_BYTES = -1
_UNKNOWN_LAG = -1


def _space_of(disk: Disk, path: str) -> Space:
    """For a disk thread."""
    try:
        return disk.space(path)
    except OSError:
        return Space(_UNKNOWN_BYTES, _UNKNOWN_BYTES)


def handle_describe_log_dirs(
    partitions: Partitions,
    world: World,
    node_settings: NodeSettings,
    _context: RequestContext,
    request: DescribeLogDirsRequest,
    respond: Respond,
) -> None:
    paths = list(partitions.logs.online)
    world.workers.run(
        lambda: {path: _space_of(world.disk, path) for path in paths},
        lambda space: respond(_described(partitions, node_settings, request, space)),
    )


def _described(
    partitions: Partitions, node_settings: NodeSettings, request: DescribeLogDirsRequest, space: dict[str, Space]
) -> DescribeLogDirsResponse:
    asked: set[tuple[str, int]] | None = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = []
    for path, directory in list(partitions.logs.online.items()):
        total_bytes, usable_bytes = space.get(path, (_UNKNOWN_BYTES, _UNKNOWN_BYTES))
        results.append(
            _Result(
                log_dir=path,
                topics=_topics(partitions, directory, asked),
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
                is_cordoned=node_settings.is_cordoned(path),
            )
        )
    results += [_Result(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR) for path in partitions.logs.offline]
    return DescribeLogDirsResponse(results=results)


def _topics(
    partitions: Partitions, directory: LogDirectory, asked: set[tuple[str, int]] | None
) -> list[DescribeLogDirsResponse.DescribeLogDirsTopic]:
    topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}

    def add(name: TopicPartition, log: PartitionLog, offset_lag: int, *, is_future: bool) -> None:
        topics.setdefault(name.topic, _Topic(name=name.topic)).partitions.append(
            _Partition(
                partition_index=name.partition,
                partition_size=log.size,
                offset_lag=offset_lag,
                is_future_key=is_future,
            )
        )

    for name, log in list(directory.logs.items()):
        if asked is None or name in asked:
            add(name, log, max(log.high_watermark - log.log_end_offset, 0), is_future=False)
    for name, log in list(directory.futures.logs.items()):
        if asked is None or name in asked:
            add(name, log, _lag_of_future(partitions, name, log), is_future=True)
    return list(topics.values())


def _lag_of_future(partitions: Partitions, name: TopicPartition, future: PartitionLog) -> int:
    partition = partitions.get(name)
    return _UNKNOWN_LAG if partition is None else partition.log.log_end_offset - future.log_end_offset


def handle_alter_replica_log_dirs(
    partitions: Partitions,
    node_settings: NodeSettings,
    replica_moves: ReplicaMoves,
    _context: RequestContext,
    request: AlterReplicaLogDirsRequest,
    respond: Respond,
) -> None:
    def move(name: TopicPartition, path: str) -> ErrorCode:
        return _move(partitions, node_settings, replica_moves, name, path)

    topics: dict[str, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for target in request.dirs:
        for topic in target.topics:
            result = topics.setdefault(
                topic.name, AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(topic_name=topic.name)
            )
            result.partitions += [
                AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=move(TopicPartition(topic.name, index), target.path)
                )
                for index in topic.partitions
            ]
    respond(AlterReplicaLogDirsResponse(results=list(topics.values())))


def _move(
    partitions: Partitions, node_settings: NodeSettings, replica_moves: ReplicaMoves, name: TopicPartition, path: str
) -> ErrorCode:
    if len(name.topic) > LONGEST or len(f"{name}.{'0' * 32}{FUTURE_DIR}") > len(marked_dir(name, "0" * 32, FUTURE_DIR)):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    path = normpath(path)
    if path in partitions.logs.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if path not in partitions.logs.online:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if node_settings.is_cordoned(path):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if name in partitions.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = partitions.get(name)
    if partition is not None:
        return replica_moves.ask(partition, path)
    replica_moves.prefer(name, path)
    return ErrorCode.REPLICA_NOT_AVAILABLE if partitions.metadata.knows(*name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
