"""How far groups are behind, on the metrics page."""

from ottla.broker.coordination.coordinators import GROUPS
from ottla.node.metrics.group_lags import GroupLags
from ottla.node.metrics.group_metrics import group_metrics
from ottla.runtime.exposition import Exposition
from ottla.wire.messages import OffsetCommitRequest
from tests.unit.broker.brokers import NOW_MS, TestNode, batch


def node_with_records() -> TestNode:
    """Ten records in `orders`, one a second, the last of them now."""
    node = TestNode()
    node.create_topic(GROUPS, 2)
    node.create_topic("orders", 2)
    for number in range(10):
        node.produce(batch(b"%d" % number, timestamp=NOW_MS - 1000 * (9 - number)))
    return node


def commit(node: TestNode, group_id: str, offset: int, index: int = 0) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=[partition])
    node.send(OffsetCommitRequest(group_id=group_id, topics=[topic]), 9)


def page_of(node: TestNode) -> dict[str, float]:
    page = Exposition()
    text = "".join(group_metrics(page, node.broker, GroupLags(node.broker))) + page.take()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {sample: float(value) for sample, _, value in (line.rpartition(" ") for line in lines)}


def test_lag_is_told_in_records_and_in_seconds() -> None:
    node = node_with_records()
    commit(node, "slow", 4)
    commit(node, "quick", 10)
    page = page_of(node)
    slow, quick = (f'{{consumergroup="{name}",topic="orders",partition="0"}}' for name in ("slow", "quick"))
    assert page[f"kafka_consumergroup_current_offset{slow}"] == 4
    assert page[f"kafka_consumergroup_lag{slow}"] == 6
    assert page[f"ottla_consumergroup_lag_seconds{slow}"] == 5, "the record at 4 was written five seconds ago"
    assert page[f"kafka_consumergroup_lag{quick}"] == page[f"ottla_consumergroup_lag_seconds{quick}"] == 0
    assert page['kafka_consumergroup_members{consumergroup="slow"}'] == 0


def test_lag_is_summed_over_the_partitions_of_a_topic() -> None:
    node = node_with_records()
    node.produce(batch(b"x"), index=1)
    commit(node, "slow", 4)
    commit(node, "slow", 0, index=1)
    page = page_of(node)
    assert page['kafka_consumergroup_lag_sum{consumergroup="slow",topic="orders"}'] == 7
    assert page['kafka_consumergroup_current_offset_sum{consumergroup="slow",topic="orders"}'] == 4


def test_who_was_overtaken_by_retention_is_as_far_behind_as_the_log_goes() -> None:
    node = node_with_records()
    commit(node, "slow", 2)
    node.partition().log.advance_log_start_offset(7)
    page = page_of(node)
    assert page['ottla_consumergroup_lag_seconds{consumergroup="slow",topic="orders",partition="0"}'] == 2


def test_partitions_that_another_node_leads_are_not_told_of_before_it_has_said_where_they_end() -> None:
    node = node_with_records()
    commit(node, "slow", 4)
    node.change_partition(leader=2)
    assert not any("lag" in sample for sample in page_of(node))


def test_groups_and_partitions_of_the_coordinator_are_counted() -> None:
    node = node_with_records()
    commit(node, "slow", 4)
    page = page_of(node)
    assert page['kafka_server_group_coordinator_metrics_group_count{protocol="classic"}'] == 1
    assert page['kafka_server_group_coordinator_metrics_num_partitions{state="active"}'] == 2
