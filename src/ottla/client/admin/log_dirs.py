"""Log directories of brokers: what is in them, and moving replicas from one to another (KIP-113)."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking, Deadline
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.admin.routing import spread
from ottla.client.errors import (
    KafkaError,
    KafkaStorageError,
    ReplicaNotAvailable,
    UnknownTopicOrPartition,
    error_for,
)
from ottla.client.topic_partition import by_topic
from ottla.wire import messages


class TopicPartitionReplica(NamedTuple):
    topic: str
    partition: int
    broker_id: int


class LogDirReplica(NamedTuple):
    size_bytes: int
    offset_lag: int
    """How far it is behind: a future replica behind the one that it will replace, another behind the high watermark."""
    is_future: bool
    """Whether it is being copied, to replace the replica in another directory."""


class LogDir(NamedTuple):
    error: KafkaError | None
    """Why the directory is offline, if it is."""
    replicas: dict[TopicPartition, LogDirReplica]
    total_bytes: int | None
    """Of the volume that the directory is on; None from a broker before version 3.3."""
    usable_bytes: int | None
    is_cordoned: bool
    """Whether no new replica is put here (KIP-1066)."""


class ReplicaPlace(NamedTuple):
    """Where a replica is, and where it is going. Paths are None if it is not there, or not going anywhere."""

    current_path: str | None
    current_lag: int | None
    future_path: str | None
    future_lag: int | None


async def describe_log_dirs(
    asking: Asking, broker_ids: Iterable[int] | None = None, *, timeout: float | None = None
) -> Results[int, dict[str, LogDir]]:
    """The directories of each broker by path; of all brokers if none are named."""
    deadline = asking.deadline(timeout)
    wanted = list(await asking.brokers(deadline) if broker_ids is None else broker_ids)

    async def ask(node_id: int, _: list[int]) -> dict[int, Outcome[dict[str, LogDir]]]:
        return {node_id: await _directories(asking, node_id, None, deadline)}

    async def attempt(left: list[int]) -> dict[int, Outcome[dict[str, LogDir]]]:
        return await spread(asking, {broker_id: broker_id for broker_id in left}, ask)

    return await asking.each("describe_log_dirs", wanted, attempt, deadline)


async def _directories(
    asking: Asking, node_id: int, partitions: Iterable[TopicPartition] | None, deadline: Deadline
) -> dict[str, LogDir]:
    topics = None
    if partitions is not None:
        topics = [
            messages.DescribeLogDirsRequest.DescribableLogDirTopic(
                topic=topic, partitions=[one.partition for one in of_topic]
            )
            for topic, of_topic in by_topic(partitions).items()
        ]
    response = await asking.broker(node_id, messages.DescribeLogDirsRequest(topics=topics), deadline)
    if response.error_code:
        raise error_for(response.error_code)
    return {one.log_dir: _directory(one) for one in response.results}


def _directory(answer: Any) -> LogDir:
    return LogDir(
        failure(answer),
        {
            TopicPartition(topic.name, one.partition_index): LogDirReplica(
                one.partition_size, one.offset_lag, one.is_future_key
            )
            for topic in answer.topics
            for one in topic.partitions
        },
        None if answer.total_bytes < 0 else answer.total_bytes,
        None if answer.usable_bytes < 0 else answer.usable_bytes,
        answer.is_cordoned,
    )


async def describe_replica_log_dirs(
    asking: Asking, replicas: Iterable[TopicPartitionReplica], *, timeout: float | None = None
) -> Results[TopicPartitionReplica, ReplicaPlace]:
    """Where each replica is on its broker."""
    deadline = asking.deadline(timeout)

    async def ask(
        node_id: int, left: list[TopicPartitionReplica]
    ) -> dict[TopicPartitionReplica, Outcome[ReplicaPlace]]:
        partitions = [TopicPartition(one.topic, one.partition) for one in left]
        directories = await _directories(asking, node_id, partitions, deadline)
        return {replica: _place(directories, partition) for replica, partition in zip(left, partitions, strict=True)}

    async def attempt(left: list[TopicPartitionReplica]) -> dict[TopicPartitionReplica, Outcome[ReplicaPlace]]:
        return await spread(asking, {replica: replica.broker_id for replica in left}, ask)

    wanted = [TopicPartitionReplica(*replica) for replica in replicas]
    return await asking.each("describe_replica_log_dirs", wanted, attempt, deadline)


def _place(directories: Mapping[str, LogDir], partition: TopicPartition) -> ReplicaPlace:
    place = ReplicaPlace(None, None, None, None)
    for path, directory in directories.items():
        replica = directory.replicas.get(partition)
        if replica is not None and replica.is_future:
            place = place._replace(future_path=path, future_lag=replica.offset_lag)
        elif replica is not None:
            place = place._replace(current_path=path, current_lag=replica.offset_lag)
    return place


async def alter_replica_log_dirs(
    asking: Asking, moves: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
) -> Results[TopicPartitionReplica, None]:
    """Moves replicas to other directories of their brokers. The move itself continues after the call."""
    deadline = asking.deadline(timeout)
    wanted = {TopicPartitionReplica(*replica): path for replica, path in moves.items()}

    async def ask(node_id: int, left: list[TopicPartitionReplica]) -> dict[TopicPartitionReplica, Outcome[None]]:
        request = messages.AlterReplicaLogDirsRequest
        paths: dict[str, list[TopicPartition]] = {}
        for replica in left:
            paths.setdefault(wanted[replica], []).append(TopicPartition(replica.topic, replica.partition))
        made = request(
            dirs=[
                request.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        request.AlterReplicaLogDirTopic(name=topic, partitions=[one.partition for one in of_topic])
                        for topic, of_topic in by_topic(partitions).items()
                    ],
                )
                for path, partitions in paths.items()
            ]
        )
        response = await asking.broker(node_id, made, deadline)
        return {
            TopicPartitionReplica(topic.topic_name, one.partition_index, node_id): failure(one)
            for topic in response.results
            for one in topic.partitions
        }

    async def attempt(left: list[TopicPartitionReplica]) -> dict[TopicPartitionReplica, Outcome[None]]:
        return await spread(asking, {replica: replica.broker_id for replica in left}, ask)

    return await asking.each("alter_replica_log_dirs", wanted, attempt, deadline, may_pass=_is_busy)


def _is_busy(error: KafkaError) -> bool:
    """A broker that does not hold the replica says so at once; REPLICA_NOT_AVAILABLE comes before the replica does."""
    answer = UnknownTopicOrPartition | ReplicaNotAvailable | KafkaStorageError
    return error.retriable and not isinstance(error, answer)
