"""Topics that come and go, and who leads them."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from tests.interop.compared_nodes import Settle, Step, ask, topic_id

Topic = CreateTopicsRequest.CreatableTopic


def topic(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: Sequence[tuple[int, tuple[int, ...]]] = (),
    configs: Mapping[str, str | None] | None = None,
) -> Topic:
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
        ],
    )


def creation(*topics: Topic, **fields: Any) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), **{"timeout_ms": 30_000, **fields})


def create(*topics: tuple[str, int] | Topic) -> list[Step]:
    """Topics with so many partitions."""
    made = [given if isinstance(given, Topic) else topic(*given) for given in topics]
    return [*ask(creation(*made), 7)]


def assigned(name: str, *assignments: tuple[int, tuple[int, ...]]) -> Topic:
    return topic(name, -1, -1, assignments=assignments)


def created() -> list[Step]:
    requests = [
        creation(topic("made"), timeout_ms=0),
        creation(topic("made"), validate_only=True),
        creation(topic("made")),
        creation(topic("made")),
        creation(topic("twice"), topic("twice"), topic("once")),
        creation(topic("defaults", -1, -1)),
        creation(topic("none", 0)),
        creation(topic("negative", -2)),
        creation(topic("replicated", 1, 5)),
        creation(topic("unreplicated", 1, 0)),
        creation(assigned("assigned", (0, (1,)), (1, (1,)))),
        creation(assigned("with a gap", (0, (1,)), (2, (1,)))),
        creation(assigned("a.gap", (0, (1,)), (2, (1,)))),
        creation(assigned("stranger", (0, (9,)))),
        creation(assigned("nowhere", (0, ()))),
        creation(topic("both", 2, 1, assignments=[(0, (1,))])),
        creation(topic("unknown", configs={"nobody": "1"})),
        creation(topic("wrong", configs={"retention.ms": "x"})),
        creation(topic("null", configs={"retention.ms": None})),
        creation(topic("configured", configs={"cleanup.policy": "compact,delete", "min.insync.replicas": "2"})),
        creation(topic("__cluster_metadata")),
        creation(topic("bad name")),
        creation(topic("")),
        creation(topic("dot.dash")),
        creation(topic("dot_dash")),
        creation(),
    ]
    older = [step for version in (2, 3, 4, 5, 6) for step in ask(creation(topic(f"older-{version}")), version)]
    return [*(step for request in requests for step in ask(request, 7)), *older]


def more_partitions(
    name: str, count: int, *assignments: tuple[int, ...]
) -> CreatePartitionsRequest.CreatePartitionsTopic:
    given = [CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments]
    return CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=given or None)


def partitions_added() -> list[Step]:
    def request(*topics: CreatePartitionsRequest.CreatePartitionsTopic, **fields: Any) -> CreatePartitionsRequest:
        return CreatePartitionsRequest(topics=list(topics), timeout_ms=30_000, **fields)

    return [
        *create(("grows", 1), ("grows-too", 3)),
        *ask(request(more_partitions("grows", 2)), 0),
        *ask(request(more_partitions("grows", 2)), 3),
        *ask(request(more_partitions("grows", 1)), 3),
        *ask(request(more_partitions("grows", 0)), 3),
        *ask(request(more_partitions("nobody", 1), more_partitions("grows-too", 4, (1,))), 0, 3),
        *ask(request(more_partitions("grows", 5), more_partitions("grows", 6)), 3),
        *ask(request(more_partitions("grows", 4, (9,))), 3),
        *ask(request(more_partitions("grows", 3, (9,))), 3),
        *ask(request(more_partitions("grows", 3), validate_only=True), 3),
        Settle(("grows",)),
    ]


def deleted() -> list[Step]:
    state = DeleteTopicsRequest.DeleteTopicState
    nobody = Uuid(b"x" * 16)

    def request(*states: Any) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topics=list(states), timeout_ms=30_000)

    names = [f"gone-{number}" for number in range(8)]
    by_name = [
        step
        for version in (1, 2, 3, 4, 5)
        for step in ask(DeleteTopicsRequest(topic_names=[f"gone-{version}", "nobody"], timeout_ms=30_000), version)
    ]
    return [
        *create(*((name, 1) for name in names)),
        Settle(tuple(names)),
        *ask(request(state(name="gone-0"), state(name="nobody"), state(name=None, topic_id=nobody)), 6),
        *ask(request(state(name=None)), 6),
        *ask(request(state(name="gone-6"), state(name="gone-6")), 6),
        *ask(request(state(name="gone-6", topic_id=nobody)), 6),
        *ask(request(state(name=None, topic_id=topic_id("gone-6"))), 6),
        *by_name,
        *ask(DeleteTopicsRequest(topic_names=["nobody", "nobody"], timeout_ms=30_000), 5),
        *ask(DeleteTopicsRequest(topic_names=["gone-7"], timeout_ms=0), 5),
    ]


def elect(*topics: tuple[str, tuple[int, ...]], type: int = 0) -> ElectLeadersRequest:
    asked = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics]
    return ElectLeadersRequest(election_type=type, topic_partitions=asked, timeout_ms=30_000)


def reassign(*topics: tuple[str, dict[int, tuple[int, ...] | None]]) -> AlterPartitionReassignmentsRequest:
    request = AlterPartitionReassignmentsRequest
    return request(
        timeout_ms=30_000,
        topics=[
            request.ReassignableTopic(
                name=name,
                partitions=[
                    request.ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in partitions.items()
                ],
            )
            for name, partitions in topics
        ],
    )


def leaders_and_reassignments() -> list[Step]:
    one = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(name="nobody", partition_indexes=(0,))
    wishes: list[tuple[int, ...] | None] = [(2,), None, (), (1, 1), (-1,)]
    return [
        *create(("led", 1)),
        *ask(elect(("led", (0, 7)), ("nobody", (0,))), 0, 1, 2),
        *ask(elect(), 2),
        *ask(ElectLeadersRequest(topic_partitions=None, timeout_ms=30_000), 2),
        *ask(elect(("led", (0,)), type=1), 1, 2),
        *ask(elect(("led", (0,)), type=5), 2),
        *ask(reassign(("led", {0: (1,), 5: (1,)}), ("nobody", {0: (1,)})), 0, 1),
        *(step for wish in wishes for step in ask(reassign(("led", {0: wish})), 1)),
        *ask(reassign(), 1),
        *ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=30_000), 0),
        *ask(ListPartitionReassignmentsRequest(topics=[one], timeout_ms=30_000), 0),
    ]
