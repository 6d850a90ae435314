"""Records by their place: which offsets a partition has, and cutting off its beginning."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.admin.results import Outcome, Results
from ottla.client.admin.routing import by_leader
from ottla.client.errors import UnsupportedVersion, error_for
from ottla.client.topic_partition import by_topic
from ottla.wire import messages
from ottla.wire.apis import ApiKey


class OffsetSpec(IntEnum):
    """Places that have a name. Any other number is a time: the first record that is not older, in ms since 1970."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    """The record with the highest timestamp (KIP-734)."""
    EARLIEST_LOCAL = -4
    """The first record that is not only in tiered storage (KIP-405)."""
    LATEST_TIERED = -5
    """The last record that is in tiered storage (KIP-1005)."""
    EARLIEST_PENDING_UPLOAD = -6
    """The first record that is not in tiered storage yet (KIP-1023)."""


_SINCE_VERSION = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}


class IsolationLevel(IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ListedOffset(NamedTuple):
    """What was found; the offset is None if there is no such record."""

    offset: int | None
    timestamp_ms: int | None
    """That of the record; None where a place was asked for by name."""
    leader_epoch: int | None


async def list_offsets(
    asking: Asking,
    partitions: Mapping[TopicPartition, OffsetSpec | int],
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    timeout: float | None = None,
) -> Results[TopicPartition, ListedOffset]:
    """The offset of each place. With READ_COMMITTED, the latest is where the first open transaction begins."""
    deadline = asking.deadline(timeout)
    wanted = {TopicPartition(*partition): spec for partition, spec in partitions.items()}
    needed = max((_SINCE_VERSION.get(OffsetSpec(spec), 0) for spec in wanted.values() if spec < 0), default=0)

    async def ask(node_id: int, left: list[TopicPartition]) -> dict[TopicPartition, Outcome[ListedOffset]]:
        if needed and not (await asking.cluster.versions_of(node_id)).serves(ApiKey.LIST_OFFSETS, needed):
            raise UnsupportedVersion(f"broker {node_id} serves ListOffsets only in versions before {needed}")
        request = messages.ListOffsetsRequest
        made = request(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[
                request.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        request.ListOffsetsPartition(partition_index=one.partition, timestamp=wanted[one])
                        for one in of_topic
                    ],
                )
                for topic, of_topic in by_topic(left).items()
            ],
            timeout_ms=asking.server_timeout_ms(deadline),
        )
        response = await asking.once(node_id, made, deadline)
        return {
            TopicPartition(topic.name, one.partition_index): _listed(one)
            for topic in response.topics
            for one in topic.partitions
        }

    return await asking.each("list_offsets", wanted, by_leader(asking, ask, deadline), deadline)


def _listed(answer: Any) -> Outcome[ListedOffset]:
    if answer.error_code:
        return error_for(answer.error_code)
    return ListedOffset(
        None if answer.offset < 0 else answer.offset,
        None if answer.timestamp < 0 else answer.timestamp,
        None if answer.leader_epoch < 0 else answer.leader_epoch,
    )


HIGH_WATERMARK = -1
"""For `delete_records`: everything up to the partition's high watermark."""


async def delete_records(
    asking: Asking, before: Mapping[TopicPartition, int], *, timeout: float | None = None
) -> Results[TopicPartition, int]:
    """Deletes the records before an offset, or all with `HIGH_WATERMARK`. Tells the lowest offset that is left."""
    deadline = asking.deadline(timeout)
    wanted = {TopicPartition(*partition): offset for partition, offset in before.items()}

    async def ask(node_id: int, left: list[TopicPartition]) -> dict[TopicPartition, Outcome[int]]:
        request = messages.DeleteRecordsRequest
        made = request(
            topics=[
                request.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        request.DeleteRecordsPartition(partition_index=one.partition, offset=wanted[one])
                        for one in of_topic
                    ],
                )
                for topic, of_topic in by_topic(left).items()
            ],
            timeout_ms=asking.server_timeout_ms(deadline),
        )
        response = await asking.once(node_id, made, deadline)
        return {
            TopicPartition(topic.name, one.partition_index): (
                error_for(one.error_code) if one.error_code else one.low_watermark
            )
            for topic in response.topics
            for one in topic.partitions
        }

    return await asking.each("delete_records", wanted, by_leader(asking, ask, deadline), deadline)
