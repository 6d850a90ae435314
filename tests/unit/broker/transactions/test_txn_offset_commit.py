"""TxnOffsetCommit: offsets of a group that count with the transaction, and not without (KIP-447, KIP-890)."""

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddOffsetsToTxnRequest, OffsetFetchRequest, TxnOffsetCommitRequest
from tests.unit.broker.transactional_nodes import NEW, OLD, TransactionalNode

P = (1000, 0)
BOTH = pytest.mark.parametrize("version", [OLD, NEW])
Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
Partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition


class GroupNode(TransactionalNode):
    """It coordinates groups, too, and has a producer with a transactional id."""

    def __init__(self, version: int = NEW, *, flush_messages: str | None = None, **settings: str) -> None:
        super().__init__(version, **settings)
        flushes = {} if flush_messages is None else {"flush_messages": flush_messages}
        self.create_topic("__consumer_offsets", 1, cleanup_policy="compact", **flushes)
        self.init()

    def add_group(self, producer: tuple[int, int] = P) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        assert self.send(request, 3).error_code == 0

    def commit_offset(
        self,
        producer: tuple[int, int],
        offset: int,
        *indexes: int,
        api_version: int | None = None,
        group_id: str = "g",
    ) -> list[str]:
        if api_version is None:
            api_version = 5 if self.version == NEW else 4
        partitions = [Partition(partition_index=index, committed_offset=offset) for index in indexes or (0,)]
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[Topic(name="orders", partitions=partitions)],
        )
        (topic,) = self.send(request, api_version).topics
        by_index = sorted(topic.partitions, key=lambda one: one.partition_index)
        return [ErrorCode(one.error_code).name for one in by_index]

    def offset(self, *, stable: bool = False) -> int | str:
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name="orders", partition_indexes=[0])
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[topic])
        reply = self.send(OffsetFetchRequest(groups=[group], require_stable=stable), 9)
        (found,) = reply.groups[0].topics[0].partitions
        return ErrorCode(found.error_code).name if found.error_code else found.committed_offset


@BOTH
def test_offsets_count_when_the_transaction_is_committed(version: int) -> None:
    node = GroupNode(version)
    if version == OLD:
        node.add_group()
    assert node.commit_offset(P, 5) == ["NONE"]
    assert node.offset() == -1
    assert node.offset(stable=True) == "UNSTABLE_OFFSET_COMMIT"
    node.end(P, True)
    assert node.offset(stable=True) == 5


@BOTH
def test_the_group_without_a_name_keeps_no_offsets_of_transactions(version: int) -> None:
    node = GroupNode(version)
    assert node.commit_offset(P, 5, group_id="") == ["INVALID_GROUP_ID"]
    assert node.state() == "Empty"


@BOTH
def test_a_transaction_of_nothing_but_offsets_ends_when_its_marker_is_committed_later(version: int) -> None:
    node = GroupNode(version, flush_messages="1")
    if version == OLD:
        node.add_group()
    assert node.commit_offset(P, 5) == ["NONE"]
    node.workers.hold()
    node.end(P, True)
    assert (node.state(), len(node.broker.coordinators.transactions.markers)) == ("PrepareCommit", 1)
    node.workers.let_go()
    assert (node.state(), len(node.broker.coordinators.transactions.markers)) == ("CompleteCommit", 0)
    assert node.offset(stable=True) == 5


@BOTH
def test_offsets_of_an_aborted_transaction_never_were(version: int) -> None:
    node = GroupNode(version)
    if version == OLD:
        node.add_group()
    node.commit_offset(P, 5)
    node.end(P, False)
    assert node.offset(stable=True) == -1


def test_in_the_older_protocol_a_group_that_was_not_added_is_refused() -> None:
    node = GroupNode(OLD)
    assert node.commit_offset(P, 5) == ["TRANSACTION_ABORTABLE"]
    assert node.commit_offset(P, 5, api_version=3) == ["INVALID_TXN_STATE"]
    assert node.offset(stable=True) == -1


def test_kip_890_late_offsets_do_not_join_the_next_transaction() -> None:
    node = GroupNode()
    node.commit_offset(P, 5)
    node.end(P, True)
    assert node.commit_offset(P, 9) == ["INVALID_PRODUCER_EPOCH"]
    assert node.commit_offset((1000, 1), 7) == ["NONE"]
    node.end((1000, 1), True)
    assert node.offset() == 7


def test_partitions_that_do_not_exist_are_refused_one_by_one() -> None:
    node = GroupNode()
    assert node.commit_offset(P, 5, 0, 9) == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert node.commit_offset(P, 5, 9) == ["UNKNOWN_TOPIC_OR_PARTITION"]


@BOTH
def test_offsets_in_an_open_transaction_survive_a_restart(version: int) -> None:
    node = GroupNode(version)
    if version == OLD:
        node.add_group()
    node.commit_offset(P, 5)
    again = node.restart()
    node.broker, node._handle = again.broker, again._handle
    assert node.offset() == -1
    assert node.end(P, True)[0] == "NONE"
    assert node.offset(stable=True) == 5
