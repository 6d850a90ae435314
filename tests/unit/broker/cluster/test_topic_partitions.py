"""DescribeTopicPartitions, held to what Apache Kafka 4.3.1 answered to the same requests."""

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import DescribeTopicPartitionsRequest as Request
from tests.unit.broker.brokers import TestNode, topic_id_of


def ask(node, *names, limit=2000, cursor=None):
    request = Request(
        topics=[Request.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]) if cursor else None,
    )
    return node.send(request, 0)


def page(reply):
    """What is on a page, and where the next one begins."""
    cursor = reply.next_cursor
    return (
        [(topic.name, topic.error_code, [part.partition_index for part in topic.partitions]) for topic in reply.topics],
        (cursor.topic_name, cursor.partition_index) if cursor else None,
    )


def node_with_topics():
    node = TestNode()
    node.register_broker(1, "broker-1", 9092)
    node.create_topic("b", 3)
    node.create_topic("a")
    node.create_topic("__transaction_state")
    return node


def test_all_topics_come_in_the_order_of_their_names():
    everything = [("__transaction_state", 0, [0]), ("a", 0, [0]), ("b", 0, [0, 1, 2])]
    assert page(ask(node_with_topics())) == (everything, None)


def test_a_partition_is_described_with_its_eligible_leaders():
    node = node_with_topics()
    node.change_partition("a", 0, leader=1, eligible_leader_replicas=(4,), last_known_elr=(5,))
    (topic,) = ask(node, "a").topics
    (partition,) = topic.partitions
    assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (topic_id_of("a"), False, 3576)
    assert (partition.leader_id, partition.leader_epoch, partition.replica_nodes) == (1, 1, (1,))
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ((4,), (5,))
    assert partition.offline_replicas == ()


def test_pages_follow_each_other_by_their_cursors():
    node = node_with_topics()
    assert page(ask(node, "b", "a", "a", limit=2)) == ([("a", 0, [0]), ("b", 0, [0])], ("b", 1))
    assert page(ask(node, "b", "a", limit=1, cursor=("b", 1))) == ([("b", 0, [1])], ("b", 2))
    assert page(ask(node, "b", "a", limit=1, cursor=("b", 2))) == ([("b", 0, [2])], None)


def test_a_topic_that_does_not_fit_begins_the_next_page():
    assert page(ask(node_with_topics(), "b", "nope", limit=3)) == ([("b", 0, [0, 1, 2])], ("nope", 0))


def test_a_page_has_at_least_one_partition_and_no_more_than_the_node_allows():
    node = node_with_topics()
    for limit in (0, -1):
        assert page(ask(node, "b", limit=limit)) == ([("b", 0, [0])], ("b", 1))
    node = TestNode(max_request_partition_size_limit="2")
    node.create_topic("b", 3)
    assert page(ask(node)) == ([("b", 0, [0, 1])], ("b", 2))


def test_topics_that_do_not_exist_are_told_to_who_named_them():
    reply = ask(node_with_topics(), "nope", "bad name", "a")
    assert page(reply)[0] == [
        ("a", 0, [0]),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION, []),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
    ]
    assert [topic.topic_authorized_operations for topic in reply.topics] == [3576] * 3
    assert page(ask(node_with_topics(), cursor=("c", 0))) == ([], None)


def test_a_cursor_beyond_the_topic_ends_it():
    assert page(ask(node_with_topics(), "b", cursor=("b", 7))) == ([("b", 0, [])], None)


def test_a_cursor_that_makes_no_sense_is_an_invalid_request():
    node = node_with_topics()
    refused = [("b", ErrorCode.INVALID_REQUEST, []), ("a", ErrorCode.INVALID_REQUEST, [])]
    assert page(ask(node, "b", "a", cursor=("az", 1))) == (refused, None)
    assert page(ask(node, "b", "a", cursor=("b", -1))) == (refused, None)
