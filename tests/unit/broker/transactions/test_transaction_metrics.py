"""Transactions on the metrics page."""

from ottla.base.ids import TopicPartition
from ottla.node.metrics.partition_metrics import partition_metrics
from ottla.node.metrics.transaction_metrics import add_transactions
from ottla.runtime.exposition import Exposition
from tests.unit.broker.transactional_nodes import NEW, TransactionalNode

MINUTE_MS = 60_000
RETRIED = "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
LATE = "kafka_server_replicamanager_partitionswithlatetransactionscount"


def page_of(node: TransactionalNode) -> dict[str, float]:
    page = Exposition()
    text = "".join(partition_metrics(page, node.broker))
    add_transactions(page, node.broker)
    text += page.take()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {sample: float(value) for sample, _, value in (line.rpartition(" ") for line in lines)}


def test_transactional_ids_are_counted_by_state() -> None:
    node = TransactionalNode(NEW)
    for name in ("ann", "bob", "cid"):
        _, *producer = node.init(name)
        if name != "cid":
            node.write(tuple(producer), 0, b"one", name=name)
        if name == "bob":
            node.end(tuple(producer), committed=True, name=name)
    page = page_of(node)
    assert page['ottla_transactional_ids{state="Ongoing"}'] == 1
    assert page['ottla_transactional_ids{state="CompleteCommit"}'] == 1
    assert page['ottla_transactional_ids{state="Empty"}'] == 1
    assert page['ottla_transactional_ids{state="PrepareAbort"}'] == 0
    assert page["kafka_server_replicamanager_produceridcount"] == 2
    assert page[RETRIED] == page[LATE] == 0


def test_a_transaction_is_late_five_minutes_after_the_longest_timeout() -> None:
    node = TransactionalNode(NEW)
    _, *producer = node.init()
    node.write(tuple(producer), 0, b"one")
    node.clock.advance(20 * MINUTE_MS)
    assert page_of(node)[LATE] == 0
    node.clock.advance(1)
    assert page_of(node)[LATE] == 1


def test_an_end_whose_marker_finds_no_leader_waits_to_be_tried_again() -> None:
    node = TransactionalNode(NEW)
    _, *producer = node.init()
    node.write(tuple(producer), 0, b"one")
    orders = node.broker.partitions.pop(TopicPartition("orders", 0))
    node.end(tuple(producer), committed=True)
    assert page_of(node)[RETRIED] == 1
    node.broker.partitions[TopicPartition("orders", 0)] = orders
    node.timers.advance(200)
    assert page_of(node)[RETRIED] == 0
    assert node.state() == "CompleteCommit"
