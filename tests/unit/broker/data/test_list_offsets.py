"""ListOffsets: offsets of times, and of the special times."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListOffsetsRequest
from tests.unit.broker.brokers import NOW_MS, TestNode, batch, only, produced

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
VERSIONS = range(1, 12)


def request(timestamp: int, topic: str = "orders", *indexes: int, **fields) -> ListOffsetsRequest:
    epoch = fields.pop("current_leader_epoch", -1)
    return ListOffsetsRequest(
        replica_id=fields.pop("replica_id", -1),
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                    )
                    for index in indexes or (0,)
                ],
            )
        ],
        **fields,
    )


@pytest.fixture
def node() -> TestNode:
    """Records at offsets 0, 1 and 2 with the times 100, 300 and 200; the log begins at 1."""
    node = TestNode()
    node.create_topic(leader_epoch=4)
    for timestamp in (100, 300, 200):
        node.produce(batch(timestamp=timestamp))
    node.partition().log.advance_log_start_offset(1)
    return node


def find(node: TestNode, timestamp: int, version: int = 11, **fields):
    answer = only(node.send(request(timestamp, **fields), version))
    return answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch


@pytest.mark.parametrize("version", VERSIONS)
def test_latest_and_earliest_in_every_version(node, version):
    epoch = 4 if version >= 4 else -1
    assert find(node, LATEST, version) == (0, -1, 3, epoch)
    assert find(node, EARLIEST, version) == (0, -1, 1, epoch)


@pytest.mark.parametrize(("timestamp", "found"), [(0, (300, 1)), (300, (300, 1)), (200, (300, 1)), (301, (-1, -1))])
def test_the_first_record_that_is_not_older(node, timestamp, found):
    error, *rest = find(node, timestamp)
    assert (error, tuple(rest[:2])) == (0, found)


def test_the_largest_timestamp(node):
    assert find(node, MAX_TIMESTAMP) == (0, 300, 1, 4)


def test_nothing_is_tiered(node):
    assert find(node, EARLIEST_LOCAL) == (0, -1, 1, 4)
    assert find(node, LATEST_TIERED) == (0, -1, -1, -1)
    assert find(node, EARLIEST_PENDING_UPLOAD) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [(MAX_TIMESTAMP, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (EARLIEST_PENDING_UPLOAD, 10), (-7, 11)],
)
def test_special_times_are_for_versions_that_know_them(node, timestamp, version):
    assert find(node, timestamp, version) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)


def test_an_empty_log_has_no_largest_timestamp_and_no_record_of_any_time():
    node = TestNode()
    node.create_topic()
    assert find(node, MAX_TIMESTAMP) == (0, -1, -1, -1)
    assert find(node, NOW_MS) == (0, -1, -1, -1)
    assert find(node, LATEST) == (0, -1, 0, 0)


def test_latest_for_read_committed_is_the_last_stable_offset(node):
    node.partition().append_as_leader(produced(7, 0, transactional=True))
    assert find(node, LATEST)[2] == 4
    assert find(node, LATEST, isolation_level=1)[2] == 3


def test_a_time_beyond_the_last_stable_offset_is_not_found(node):
    node.partition().append_as_leader(produced(7, 0, transactional=True, timestamp=NOW_MS))
    assert find(node, NOW_MS)[2] == 3
    assert find(node, NOW_MS, isolation_level=1) == (0, -1, -1, -1)


def test_a_follower_asks_for_the_end_of_the_log():
    node = TestNode()
    node.create_topic("orders", replicas=(1, 2))
    node.produce(batch(), acks=1)
    assert find(node, LATEST)[2] == 0
    assert find(node, LATEST, replica_id=2)[2] == 1


@pytest.mark.parametrize(
    ("version", "error"), [(5, ErrorCode.OFFSET_NOT_AVAILABLE), (4, ErrorCode.LEADER_NOT_AVAILABLE)]
)
def test_a_new_leader_that_does_not_know_its_high_watermark_yet_says_so(version, error):
    node = TestNode()
    node.create_topic("orders", replicas=(1, 2))
    node.produce(batch(timestamp=NOW_MS), acks=1)
    node.change_partition(leader=2)
    node.change_partition(leader=1)  # with a record that is perhaps not replicated
    assert find(node, LATEST, version)[0] == error
    assert find(node, NOW_MS, version)[0] == error
    assert find(node, EARLIEST, version)[0] == 0


def test_partitions_that_are_not_here(node):
    node.create_topic("theirs", replicas=(1, 2), leader=2)
    assert find(node, LATEST, topic="nobody")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert find(node, LATEST, topic="theirs")[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert find(node, LATEST, current_leader_epoch=3)[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert find(node, LATEST, current_leader_epoch=5)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_partition_that_is_asked_for_twice(node):
    (topic,) = node.send(request(LATEST, "orders", 0, 0), 11).topics
    assert {answer.error_code for answer in topic.partitions} == {ErrorCode.INVALID_REQUEST}
