"""Offsets by time and those at the ends of partitions, asked of their leaders (ListOffsets).

Partitions of one leader are asked for together. What a leader cannot say now is asked again, after the metadata has
been looked at, until the deadline.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, error_for
from ottla.client.promise import Promise, all_settled, spawn
from ottla.client.topic_partition import by_topic
from ottla.wire.apis import ApiKey
from ottla.wire.messages import ListOffsetsRequest

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class FoundOffset(NamedTuple):
    """-1 as offset: there is no record of that time or later."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


class _Answers(NamedTuple):
    found: dict[TopicPartition, FoundOffset]
    again: dict[TopicPartition, KafkaError]


async def look_up_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation_level: int, deadline_s: float
) -> dict[TopicPartition, FoundOffset]:
    """For each partition the first offset of that timestamp or later; -2 is the log's start, -1 its end.

    Raises the first error that trying again does not mend, or the last one at the deadline.
    """
    found: dict[TopicPartition, FoundOffset] = {}
    missing = dict(wanted)
    failures = 0
    world = cluster.world
    while missing:
        answers = await _ask_leaders(cluster, missing, isolation_level, deadline_s)
        found |= answers.found
        missing = {partition: missing[partition] for partition in missing if partition not in answers.found}
        if not missing:
            break
        problem = next(iter(answers.again.values()))
        left_ms = (deadline_s - world.now_s()) * 1000
        if left_ms <= 0:
            raise problem
        pause_ms = cluster.backoff.after(failures, world.entropy)
        failures += 1
        refreshed = world.within(cluster.refresh(), left_ms, cluster.no_metadata)
        await world.sleep(min(pause_ms, left_ms))
        await refreshed
    return found


async def _ask_leaders(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation_level: int, deadline_s: float
) -> _Answers:
    answers = _Answers({}, {})
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    epochs: dict[TopicPartition, int] = {}
    for partition, timestamp in wanted.items():
        leader = await cluster.leader_of(partition, deadline_s)
        by_leader.setdefault(leader.node_id, {})[partition] = timestamp
        epochs[partition] = leader.epoch
    asked: list[Promise[None]] = [
        spawn(_ask_one(cluster, node_id, those, epochs, isolation_level, deadline_s, answers))
        for node_id, those in by_leader.items()
    ]
    await all_settled(asked)
    for one in asked:
        one.value()
    return answers


async def _ask_one(
    cluster: Cluster,
    node_id: int,
    wanted: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int],
    isolation_level: int,
    deadline_s: float,
    answers: _Answers,
) -> None:
    left_ms = max((deadline_s - cluster.world.now_s()) * 1000, 1)

    def request(version: int) -> ListOffsetsRequest:
        def of_partition(partition: TopicPartition) -> ListOffsetsRequest.ListOffsetsPartition:
            one = ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition.partition, timestamp=wanted[partition]
            )
            if version >= 4:
                one.current_leader_epoch = epochs[partition]
            return one

        topics = [
            ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=list(map(of_partition, of_topic)))
            for topic, of_topic in by_topic(wanted).items()
        ]
        asked = ListOffsetsRequest(replica_id=-1, topics=topics)
        if version >= 2:
            asked.isolation_level = isolation_level
        if version >= 10:
            asked.timeout_ms = int(left_ms)
        return asked

    try:
        response = await cluster.ask(node_id, request, api_key=ApiKey.LIST_OFFSETS, timeout_ms=left_ms)
    except KafkaError as problem:
        if not problem.retriable:
            raise
        answers.again.update(dict.fromkeys(wanted, problem))
        return
    for topic in response.topics:
        for one in topic.partitions:
            _sort_in(TopicPartition(topic.name, one.partition_index), one, answers)


def _sort_in(partition: TopicPartition, one: Any, answers: _Answers) -> None:
    if not one.error_code:
        answers.found[partition] = FoundOffset(one.offset, one.timestamp, one.leader_epoch)
        return
    problem = error_for(one.error_code, f"the offsets of {partition} could not be looked up")
    if not problem.retriable:
        raise problem
    answers.again[partition] = problem
