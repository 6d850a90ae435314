"""Which broker each item of a call goes to: a partition to its leader, a group or transactional id to its coordinator.

Items of one broker go to it in one request, and all brokers are asked side by side.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking, Attempt, Deadline
from ottla.client.admin.results import Outcome
from ottla.client.cluster.coordinators import CoordinatorKind
from ottla.client.errors import KafkaError, LeaderNotAvailable, UnknownTopicOrPartition, error_for
from ottla.client.topic_partition import Broker
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from ottla.wire.exchange.open_request import Ask

K = TypeVar("K")
V = TypeVar("V")

AskNode = Callable[[int, list[K]], Coroutine[Any, Any, Mapping[K, Outcome[V]]]]
"""Asks one broker for some items, and tells the outcome of each of them."""

_FIRST_WITH_MANY_KEYS: Final = 4


async def spread(asking: Asking, nodes: Mapping[K, Outcome[int]], ask: AskNode[K, V]) -> dict[K, Outcome[V]]:
    """Asks each node for its items. An item without a node, or whose node does not answer, has that as its outcome."""
    outcomes: dict[K, Outcome[V]] = {}
    by_node: dict[int, list[K]] = {}
    for item, node_id in nodes.items():
        if isinstance(node_id, KafkaError):
            outcomes[item] = node_id
        else:
            by_node.setdefault(node_id, []).append(item)
    answers = await asking.together(ask(node_id, items) for node_id, items in by_node.items())
    for items, answer in zip(by_node.values(), answers, strict=True):
        outcomes.update(dict.fromkeys(items, answer) if isinstance(answer, KafkaError) else answer)
    return outcomes


def by_leader(asking: Asking, ask: AskNode[TopicPartition, V], deadline: Deadline) -> Attempt[TopicPartition, V]:
    """For `Asking.each`: an attempt asks the leader of each partition."""

    async def attempt(partitions: list[TopicPartition]) -> dict[TopicPartition, Outcome[V]]:
        return await spread(asking, await leaders(asking, partitions, deadline), ask)

    return attempt


def by_coordinator(asking: Asking, kind: CoordinatorKind, ask: AskNode[str, V], deadline: Deadline) -> Attempt[str, V]:
    """For `Asking.each`: an attempt asks the coordinator of each group or transactional id."""

    async def attempt(keys: list[str]) -> dict[str, Outcome[V]]:
        return await spread(asking, await coordinators(asking, kind, keys, deadline), ask)

    return attempt


async def leaders(
    asking: Asking, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[TopicPartition, Outcome[int]]:
    """The leader of each partition as brokers see it now; no topic is created by the question."""
    wanted = list(partitions)
    names = dict.fromkeys(partition.topic for partition in wanted)
    response = await asking.any(
        messages.MetadataRequest(
            topics=[messages.MetadataRequest.MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        ),
        deadline,
    )
    for node in response.brokers:
        asking.cluster.learn(Broker(node.node_id, node.host, node.port, node.rack))
    known = {node.node_id for node in response.brokers}
    topics = {topic.name: topic for topic in response.topics}
    found: dict[TopicPartition, Outcome[int]] = {}
    for partition in wanted:
        topic = topics.get(partition.topic)
        if topic is None or topic.error_code:
            found[partition] = error_for(topic.error_code) if topic is not None else UnknownTopicOrPartition()
            continue
        leader = next((one.leader_id for one in topic.partitions if one.partition_index == partition.partition), None)
        if leader is None:
            found[partition] = UnknownTopicOrPartition(
                f"topic {partition.topic!r} has no partition {partition.partition}"
            )
        else:
            found[partition] = leader if leader in known else LeaderNotAvailable(f"{partition} has no leader")
    return found


async def coordinators(
    asking: Asking, kind: CoordinatorKind, keys: list[str], deadline: Deadline
) -> dict[str, Outcome[int]]:
    """The coordinator of each group or transactional id."""
    versions = await asking.until_answered(
        lambda: asking.cluster.versions_of(asking.cluster.least_busy()),
        deadline,
    )
    if versions.serves(ApiKey.FIND_COORDINATOR, _FIRST_WITH_MANY_KEYS):
        response = await asking.any(messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys), deadline)
        entries = {one.key: one for one in response.coordinators}
    else:
        answers = await asking.together(
            asking.any(messages.FindCoordinatorRequest(key_type=kind, key=key), deadline) for key in keys
        )
        entries = dict(zip(keys, answers, strict=True))
    return {key: _coordinator(asking, entries.get(key)) for key in keys}


def _coordinator(asking: Asking, entry: Any) -> Outcome[int]:
    if entry is None:
        return error_for(-1, "the broker's answer leaves out a coordinator")
    if isinstance(entry, KafkaError):
        return entry
    if entry.error_code:
        return error_for(entry.error_code, entry.error_message)
    asking.cluster.learn(Broker(entry.node_id, entry.host, entry.port))
    return int(entry.node_id)


async def ask_coordinator(
    asking: Asking,
    kind: CoordinatorKind,
    key: str,
    request: Ask,
    deadline: Deadline,
    *,
    newest: int | None = None,
) -> Any:
    """Asks the coordinator of one key, again until it is answered. Raises the error of the answer as a whole."""

    async def attempt() -> Any:
        node_id = (await coordinators(asking, kind, [key], deadline))[key]
        if isinstance(node_id, KafkaError):
            raise node_id
        response = await asking.once(node_id, request, deadline, newest=newest)
        if code := getattr(response, "error_code", 0):
            raise error_for(code, getattr(response, "error_message", None))
        return response

    return await asking.until_answered(attempt, deadline)
