"""Descriptions of topics, as Apache Kafka's tool prints them."""

from ottla.cli.topics.topic_lines import Overrides, Reassigned, Wanted, lines_of
from ottla.client.admin.topics import PartitionDescription, TopicDescription

ORDERS = TopicDescription(
    "orders",
    "IiuufaZoTumY31FfhhBsTA",
    False,
    (
        PartitionDescription(0, 1, 5, (1, 2), (1, 2), (), (), ()),
        PartitionDescription(1, None, 6, (2, 1), (2,), (), (1,), None),
    ),
    None,
)
OWN = Overrides({"min.insync.replicas": "2", "cleanup.policy": "compact,delete"}, 2)


def lines(wanted: Wanted, moves: dict[int, Reassigned] | None = None) -> list[str]:
    return list(lines_of(ORDERS, OWN, moves or {}, [1, 2], wanted))


FIRST = "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: "
SECOND = "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 2,1\tIsr: 2\tElr: 1\tLastKnownElr: N/A"


def test_a_topic_and_its_partitions() -> None:
    assert lines(Wanted()) == [
        "Topic: orders\tTopicId: IiuufaZoTumY31FfhhBsTA\tPartitionCount: 2\tReplicationFactor: 2\t"
        "Configs: min.insync.replicas=2,cleanup.policy=compact,delete",
        FIRST,
        SECOND,
    ]


def test_only_topics_with_settings_of_their_own() -> None:
    assert len(lines(Wanted(partitions=False))) == 1
    assert list(lines_of(ORDERS, Overrides({}, 1), {}, [1], Wanted(partitions=False))) == []


def test_filters_leave_the_topic_out() -> None:
    assert lines(Wanted(under_replicated=True)) == [SECOND]
    assert lines(Wanted(unavailable=True)) == [SECOND]
    assert lines(Wanted(under_min_isr=True)) == [SECOND]
    assert lines(Wanted(at_min_isr=True)) == [FIRST]


def test_a_partition_whose_leader_is_down_is_unavailable() -> None:
    found = list(lines_of(ORDERS, OWN, {}, [2], Wanted(unavailable=True)))
    assert found == [FIRST, SECOND]


def test_a_move_is_shown_and_replicas_to_come_do_not_count() -> None:
    moving = lines(Wanted(), {0: Reassigned((1, 2), (2,), (3,))})
    assert "ReplicationFactor: 1" in moving[0]
    assert "\tIsr: 1,2\tAdding Replicas: 2\tRemoving Replicas: 3\tElr: " in moving[1]
