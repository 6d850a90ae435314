"""Topics: create, delete, list, describe, and give them more partitions. Ids are in Kafka's text form."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.base.ids import ZERO_UUID, Uuid, parse_uuid, uuid_text
from ottla.client.admin.asking import Asking, Deadline, is_throttled, never
from ottla.client.admin.operations import Operations, operations
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.errors import (
    InvalidTopic,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    error_for,
)
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

_FIRST_CREATE_WITH_DEFAULTS = 4
_FIRST_DELETE_WITH_IDS = 6
_PARTITIONS_PER_PAGE = 2000


class NewTopic(NamedTuple):
    """A topic to create. Numbers that are not given are the cluster's defaults."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Mapping[int, Sequence[int]] | None = None
    """Replicas by partition, in place of the two numbers: broker ids, the preferred leader first."""
    config: Mapping[str, str] = {}


class CreatedTopic(NamedTuple):
    """What the broker made. What an old broker does not tell, or not to this principal, is None."""

    name: str
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    config: Mapping[str, str | None] | None


class NewPartitions(NamedTuple):
    """How many partitions a topic is to have from now on."""

    total: int
    assignment: Sequence[Sequence[int]] | None = None
    """Replicas of each new partition, if the controller shall not choose."""


class TopicListing(NamedTuple):
    name: str
    topic_id: str | None
    is_internal: bool


class PartitionDescription(NamedTuple):
    """Replicas are broker ids, the preferred leader first. `leader` is None while no replica leads."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None
    """None if the broker does not tell (KIP-966)."""
    last_known_eligible_leader_replicas: tuple[int, ...] | None


class TopicDescription(NamedTuple):
    name: str
    topic_id: str | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: Operations | None
    """What this principal may do with the topic; None if the broker does not tell."""


async def create_topics(
    asking: Asking,
    topics: Iterable[NewTopic | str] | NewTopic | str,
    *,
    validate_only: bool = False,
    retry_on_quota: bool = True,
    timeout: float | None = None,
) -> Results[str, CreatedTopic]:
    """Creates topics; a mere name gets the cluster's defaults. With `validate_only` nothing is created.

    One topic that is given as such, and not in a list, raises what went wrong: there is nothing else to look at.
    """
    is_one = isinstance(topics, NewTopic | str)
    given: Iterable[NewTopic | str] = [topics] if isinstance(topics, NewTopic | str) else topics
    wanted = {one.name: one for one in (NewTopic(topic) if isinstance(topic, str) else topic for topic in given)}
    deadline = asking.deadline(timeout)

    async def attempt(names: list[str]) -> dict[str, Outcome[CreatedTopic]]:
        def request(version: int) -> Message:
            made = messages.CreateTopicsRequest(
                topics=[_creatable(wanted[name]) for name in names],
                timeout_ms=asking.server_timeout_ms(deadline),
                validate_only=validate_only,
            )
            if version < _FIRST_CREATE_WITH_DEFAULTS and any(map(_has_defaults, made.topics)):
                raise UnsupportedVersion("the broker needs the number of partitions and the replication factor")
            return made

        response = await asking.controller(request, deadline, api=ApiKey.CREATE_TOPICS)
        return {one.name: _created(one) for one in response.topics}

    created = await asking.each(
        "create_topics", wanted, attempt, deadline, may_pass=is_throttled if retry_on_quota else never
    )
    return created.raise_first() if is_one else created


def _creatable(topic: NewTopic) -> messages.CreateTopicsRequest.CreatableTopic:
    request = messages.CreateTopicsRequest
    return request.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.partitions is None or topic.assignment else topic.partitions,
        replication_factor=-1 if topic.replication_factor is None or topic.assignment else topic.replication_factor,
        assignments=[
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=list(broker_ids))
            for index, broker_ids in (topic.assignment or {}).items()
        ],
        configs=[request.CreatableTopicConfig(name=key, value=str(value)) for key, value in topic.config.items()],
    )


def _has_defaults(topic: messages.CreateTopicsRequest.CreatableTopic) -> bool:
    return not topic.assignments and -1 in (topic.num_partitions, topic.replication_factor)


def _created(answer: Any) -> Outcome[CreatedTopic]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    # The principal may create the topic and yet not see its settings.
    is_hidden = answer.topic_config_error_code == TopicAuthorizationFailed.code
    return CreatedTopic(
        answer.name,
        _known_id(answer.topic_id),
        None if answer.num_partitions < 0 else answer.num_partitions,
        None if answer.replication_factor < 0 else answer.replication_factor,
        None if is_hidden or answer.configs is None else {one.name: one.value for one in answer.configs},
    )


async def delete_topics(
    asking: Asking, names: Iterable[str] | str, *, retry_on_quota: bool = True, timeout: float | None = None
) -> Results[str, None]:
    """Deletes topics by name. One name that is given as such, and not in a list, raises what went wrong."""
    deadline = asking.deadline(timeout)
    given = [names] if isinstance(names, str) else names

    async def attempt(left: list[str]) -> dict[str, Outcome[None]]:
        def request(version: int) -> Message:
            made = messages.DeleteTopicsRequest(timeout_ms=asking.server_timeout_ms(deadline))
            if version >= _FIRST_DELETE_WITH_IDS:
                made.topics = [messages.DeleteTopicsRequest.DeleteTopicState(name=name) for name in left]
            else:
                made.topic_names = left
            return made

        response = await asking.controller(request, deadline, api=ApiKey.DELETE_TOPICS)
        return {one.name: failure(one) for one in response.responses}

    may_pass = is_throttled if retry_on_quota else never
    deleted = await asking.each("delete_topics", given, attempt, deadline, may_pass=may_pass)
    return deleted.raise_first() if isinstance(names, str) else deleted


async def delete_topics_by_id(
    asking: Asking, topic_ids: Iterable[str], *, retry_on_quota: bool = True, timeout: float | None = None
) -> Results[str, None]:
    """Deletes topics by id, and so never one that was made anew under the same name (KIP-516)."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[str]) -> dict[str, Outcome[None]]:
        states = [messages.DeleteTopicsRequest.DeleteTopicState(topic_id=parse_uuid(topic_id)) for topic_id in left]
        request = messages.DeleteTopicsRequest(topics=states, timeout_ms=asking.server_timeout_ms(deadline))
        response = await asking.controller(request, deadline)
        return {uuid_text(one.topic_id): failure(one) for one in response.responses}

    may_pass = is_throttled if retry_on_quota else never
    return await asking.each("delete_topics_by_id", topic_ids, attempt, deadline, may_pass=may_pass)


async def list_topics(
    asking: Asking, *, include_internal: bool = False, timeout: float | None = None
) -> list[TopicListing]:
    """All topics that this principal may see, by name."""
    deadline = asking.deadline(timeout)
    response = await asking.any(messages.MetadataRequest(topics=None, allow_auto_topic_creation=True), deadline)
    return sorted(
        TopicListing(topic.name, _known_id(topic.topic_id), topic.is_internal)
        for topic in response.topics
        if include_internal or not topic.is_internal
    )


async def describe_topics(
    asking: Asking,
    names: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    partitions_per_page: int = _PARTITIONS_PER_PAGE,
    timeout: float | None = None,
) -> Results[str, TopicDescription]:
    """Topics with their partitions. From a broker that has DescribeTopicPartitions they come in pages (KIP-966)."""
    deadline = asking.deadline(timeout)
    wanted = list(dict.fromkeys(names))

    async def attempt(left: list[str]) -> dict[str, Outcome[TopicDescription]]:
        try:
            return await _described_in_pages(asking, left, partitions_per_page, deadline)
        except UnsupportedVersion:  # an older broker
            topics = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in left]
            answer = await _metadata(asking, topics, include_authorized_operations, deadline)
            return {topic.name: _described(topic) for topic in answer}

    refused: dict[str, KafkaError] = {name: InvalidTopic("a topic's name is not empty") for name in wanted if not name}
    found = await asking.each("describe_topics", filter(None, wanted), attempt, deadline, may_pass=_is_moving)
    return Results("describe_topics", {**refused, **found.errors, **found.succeeded}) if refused else found


async def describe_topics_by_id(
    asking: Asking,
    topic_ids: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Results[str, TopicDescription]:
    """The same by id. Fails with `UnknownTopicId` where there is no such topic (any more)."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[str]) -> dict[str, Outcome[TopicDescription]]:
        topics = [
            messages.MetadataRequest.MetadataRequestTopic(topic_id=parse_uuid(topic_id), name=None) for topic_id in left
        ]
        answer = await _metadata(asking, topics, include_authorized_operations, deadline)
        return {uuid_text(topic.topic_id): _described(topic) for topic in answer}

    return await asking.each("describe_topics_by_id", topic_ids, attempt, deadline, may_pass=_is_moving)


async def create_partitions(
    asking: Asking,
    topics: Mapping[str, NewPartitions | int],
    *,
    validate_only: bool = False,
    retry_on_quota: bool = True,
    timeout: float | None = None,
) -> Results[str, None]:
    """Gives topics more partitions. The number is that of all of them afterwards."""
    wanted = {name: NewPartitions(new) if isinstance(new, int) else new for name, new in topics.items()}
    deadline = asking.deadline(timeout)

    async def attempt(names: list[str]) -> dict[str, Outcome[None]]:
        request = messages.CreatePartitionsRequest(
            topics=[_growing(name, wanted[name]) for name in names],
            timeout_ms=asking.server_timeout_ms(deadline),
            validate_only=validate_only,
        )
        response = await asking.controller(request, deadline)
        return {one.name: failure(one) for one in response.results}

    may_pass = is_throttled if retry_on_quota else never
    return await asking.each("create_partitions", wanted, attempt, deadline, may_pass=may_pass)


def _growing(name: str, new: NewPartitions) -> messages.CreatePartitionsRequest.CreatePartitionsTopic:
    request = messages.CreatePartitionsRequest
    assignments = None
    if new.assignment is not None:
        assignments = [request.CreatePartitionsAssignment(broker_ids=list(ids)) for ids in new.assignment]
    return request.CreatePartitionsTopic(name=name, count=new.total, assignments=assignments)


async def _described_in_pages(
    asking: Asking, names: list[str], partitions_per_page: int, deadline: Deadline
) -> dict[str, Outcome[TopicDescription]]:
    """A page may end within a topic, and the next one continues there."""
    request = messages.DescribeTopicPartitionsRequest
    # The broker answers in the order of names, and a cursor leaves out those before it.
    left = sorted(names)
    cursor: Any = None
    described: dict[str, Outcome[TopicDescription]] = {}
    while True:
        made = request(
            topics=[request.TopicRequest(name=name) for name in left],
            response_partition_limit=partitions_per_page,
            cursor=cursor,
        )
        response = await asking.any(made, deadline)
        for topic in response.topics:
            before, page = described.get(topic.name), _described(topic)
            if isinstance(before, TopicDescription) and isinstance(page, TopicDescription):
                page = page._replace(partitions=before.partitions + page.partitions)
            described[topic.name] = page
        if response.next_cursor is None:
            return described
        after = response.next_cursor
        cursor = request.Cursor(topic_name=after.topic_name, partition_index=after.partition_index)
        left = [name for name in left if name >= after.topic_name]


async def _metadata(asking: Asking, topics: list[Any], include_operations: bool, deadline: Deadline) -> list[Any]:
    request = messages.MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=include_operations,
    )
    return list((await asking.any(request, deadline)).topics)


def _described(answer: Any) -> Outcome[TopicDescription]:
    if answer.error_code:
        named = answer.name if answer.name else uuid_text(answer.topic_id)
        return error_for(
            answer.error_code, f"topic {named!r}: {_WORDS.get(answer.error_code, 'it cannot be described')}"
        )
    partitions = (
        PartitionDescription(
            one.partition_index,
            None if one.leader_id < 0 else one.leader_id,
            one.leader_epoch,
            tuple(one.replica_nodes),
            tuple(one.isr_nodes),
            tuple(one.offline_replicas),
            _optional(getattr(one, "eligible_leader_replicas", None)),
            _optional(getattr(one, "last_known_elr", None)),
        )
        for one in sorted(answer.partitions, key=lambda one: int(one.partition_index))
    )
    return TopicDescription(
        answer.name,
        _known_id(answer.topic_id),
        answer.is_internal,
        tuple(partitions),
        operations(answer.topic_authorized_operations),
    )


_WORDS = {
    3: "no broker knows it",
    17: "is not a name of a topic",
    29: "may not be described",
    100: "no topic has this id",
}


def _optional(ids: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)


def _is_moving(error: KafkaError) -> bool:
    """What is being described may be between two leaders; a topic that is not known is simply not there."""
    return error.retriable and not isinstance(error, UnknownTopicOrPartition | UnknownTopicId)


def _known_id(topic_id: Uuid) -> str | None:
    return None if topic_id == ZERO_UUID else uuid_text(topic_id)
