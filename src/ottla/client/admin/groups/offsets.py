"""Offsets that groups have committed: list, change, delete."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking, Deadline, is_about_the_coordinator
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.admin.routing import ask_coordinator, by_coordinator
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import KafkaError, error_for
from ottla.client.topic_partition import OffsetAndMetadata, by_topic
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

_FIRST_FETCH_OF_MANY_GROUPS: Final = 8
_NEWEST_WITH_NAMES: Final = 9
"""From version 10 on topics go by their ids, which would have to be asked for first."""

Committed = dict[TopicPartition, OffsetAndMetadata | None]
Groups = str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None]
"""One group, several, or several with the partitions that are meant of each; None for all."""


def asked_for(groups: Groups) -> dict[str, list[TopicPartition] | None]:
    if isinstance(groups, Mapping):
        return {group: None if of is None else [TopicPartition(*one) for one in of] for group, of in groups.items()}
    return dict.fromkeys([groups] if isinstance(groups, str) else groups)


async def list_consumer_group_offsets(
    asking: Asking,
    groups: Groups,
    *,
    require_stable: bool = False,
    timeout: float | None = None,
) -> Results[str, Committed]:
    """What each group has committed: for all partitions, or for those that a mapping names, None where nothing is.

    With `require_stable`, an offset that an open transaction may still change is waited for (KIP-447).
    """
    wanted = asked_for(groups)
    deadline = asking.deadline(timeout)

    async def ask(node_id: int, left: list[str]) -> dict[str, Outcome[Committed]]:
        versions = await asking.cluster.versions_of(node_id)
        if versions.serves(ApiKey.OFFSET_FETCH, _FIRST_FETCH_OF_MANY_GROUPS):
            return await _fetch_many(
                asking, node_id, {group: wanted[group] for group in left}, require_stable, deadline
            )
        answers = await asking.together(
            _fetch_one(asking, node_id, group, wanted[group], require_stable, deadline) for group in left
        )
        return dict(zip(left, answers, strict=True))

    return await asking.each(
        "list_consumer_group_offsets", wanted, by_coordinator(asking, CoordinatorKind.GROUP, ask, deadline), deadline
    )


async def _fetch_many(
    asking: Asking,
    node_id: int,
    groups: Mapping[str, list[TopicPartition] | None],
    require_stable: bool,
    deadline: Deadline,
) -> dict[str, Outcome[Committed]]:
    request = messages.OffsetFetchRequest
    made = request(
        groups=[
            request.OffsetFetchRequestGroup(
                group_id=group,
                topics=None
                if partitions is None
                else [
                    request.OffsetFetchRequestTopics(name=topic, partition_indexes=[one.partition for one in of_topic])
                    for topic, of_topic in by_topic(partitions).items()
                ],
            )
            for group, partitions in groups.items()
        ],
        require_stable=require_stable,
    )
    response = await asking.once(node_id, made, deadline, newest=_NEWEST_WITH_NAMES)
    return {group.group_id: _committed(group) for group in response.groups}


async def _fetch_one(
    asking: Asking,
    node_id: int,
    group: str,
    partitions: list[TopicPartition] | None,
    require_stable: bool,
    deadline: Deadline,
) -> Committed:
    request = messages.OffsetFetchRequest
    topics = None
    if partitions is not None:
        topics = [
            request.OffsetFetchRequestTopic(name=topic, partition_indexes=[one.partition for one in of_topic])
            for topic, of_topic in by_topic(partitions).items()
        ]
    made = request(group_id=group, topics=topics, require_stable=require_stable)
    response = await asking.once(node_id, made, deadline, newest=_FIRST_FETCH_OF_MANY_GROUPS - 1)
    committed = _committed(response)
    if isinstance(committed, KafkaError):
        raise committed
    return committed


def _committed(answer: Any) -> Outcome[Committed]:
    """The whole group fails with a partition: half of its offsets would look like all of them."""
    if answer.error_code:
        return error_for(answer.error_code)
    committed: Committed = {}
    for topic in answer.topics:
        for one in topic.partitions:
            if one.error_code:
                return error_for(one.error_code, f"the offset of {topic.name}-{one.partition_index} is unknown")
            epoch = None if one.committed_leader_epoch < 0 else one.committed_leader_epoch
            committed[TopicPartition(topic.name, one.partition_index)] = (
                None if one.committed_offset < 0 else OffsetAndMetadata(one.committed_offset, one.metadata or "", epoch)
            )
    return committed


async def alter_consumer_group_offsets(
    asking: Asking,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
    *,
    timeout: float | None = None,
) -> Results[TopicPartition, None]:
    """Commits offsets in a group's name. The group must have no members."""
    deadline = asking.deadline(timeout)
    wanted = {
        TopicPartition(*partition): OffsetAndMetadata(given) if isinstance(given, int) else given
        for partition, given in offsets.items()
    }

    def partition(one: TopicPartition) -> messages.OffsetCommitRequest.OffsetCommitRequestPartition:
        offset, metadata, leader_epoch = wanted[one]
        return messages.OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=one.partition,
            committed_offset=offset,
            committed_leader_epoch=-1 if leader_epoch is None else leader_epoch,
            committed_metadata=metadata,
        )

    async def attempt(left: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        request = messages.OffsetCommitRequest
        made = request(
            group_id=group_id,
            topics=[
                request.OffsetCommitRequestTopic(name=topic, partitions=list(map(partition, of_topic)))
                for topic, of_topic in by_topic(left).items()
            ],
        )
        return _by_partition(await _ask(asking, group_id, made, deadline))

    return await asking.each(
        "alter_consumer_group_offsets", wanted, attempt, deadline, may_pass=is_about_the_coordinator
    )


async def delete_consumer_group_offsets(
    asking: Asking, group_id: str, partitions: Iterable[TopicPartition], *, timeout: float | None = None
) -> Results[TopicPartition, None]:
    """Forgets what a group has committed for these. No member may be subscribed to their topics."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        request = messages.OffsetDeleteRequest
        made = request(
            group_id=group_id,
            topics=[
                request.OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[
                        request.OffsetDeleteRequestPartition(partition_index=one.partition) for one in of_topic
                    ],
                )
                for topic, of_topic in by_topic(left).items()
            ],
        )
        return _by_partition(await _ask(asking, group_id, made, deadline))

    wanted = [TopicPartition(*partition) for partition in partitions]
    return await asking.each(
        "delete_consumer_group_offsets", wanted, attempt, deadline, may_pass=is_about_the_coordinator
    )


async def _ask(asking: Asking, group_id: str, request: Message, deadline: Deadline) -> Any:
    return await ask_coordinator(asking, CoordinatorKind.GROUP, group_id, request, deadline, newest=_NEWEST_WITH_NAMES)


def _by_partition(response: Any) -> dict[TopicPartition, Outcome[None]]:
    return {
        TopicPartition(topic.name, one.partition_index): failure(one)
        for topic in response.topics
        for one in topic.partitions
    }
