"""Transactions on the metrics page: what Kafka's beans tell of them, and how many there are in which state.

Kafka's `partition-load-time` forgets a loading after half a minute, before most scrapes. Here it is reported for all
partitions that are coordinated now.
"""

from collections import Counter

from ottla.base.ids import TopicPartition
from ottla.broker.broker import Broker
from ottla.broker.partitions.partition import Partition
from ottla.machines.transaction.states import TransactionState
from ottla.runtime.exposition import Exposition

_LATE_AFTER_MS = 300_000
"""Kafka's allowance: a transaction is late when its longest possible timeout has been over for five minutes."""
_MOST_HANGING = 100

_SHOWN = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)


def add_transactions(page: Exposition, broker: Broker) -> None:
    transactions = broker.coordinators.transactions
    active = list(transactions.active)
    times_ms = [led.load_time_ms for led in active] or [0]
    prefix = "kafka_server_transaction_coordinator_metrics_partition_load_time_"
    page.gauge(prefix + "max", max(times_ms))
    page.gauge(prefix + "avg", sum(times_ms) / len(times_ms))
    prefix = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
    page.gauge(prefix + "unknowndestinationqueuesize", transactions.markers.unwritten)
    page.gauge(prefix + "logappendretryqueuesize", transactions.markers.uncompleted)
    counts = Counter(one.state for led in active for one in led.machine.transactions.values())
    page.add("ottla_transactional_ids", "gauge", [({"state": state.public_name}, counts[state]) for state in _SHOWN])


class OpenTransactions:
    """Producers of the partitions of a node, and which of their transactions are open and silent."""

    def __init__(self) -> None:
        self.producers = 0
        self._silent: list[tuple[TopicPartition, int]] = []

    def note(self, partition: Partition) -> None:
        """For each partition that has transactions."""
        producers = partition.log.producers
        first_offset = producers.first_undecided_offset if partition.is_leader else None
        if first_offset is not None:
            (oldest,) = (one for one in producers if one.current_txn_first_offset == first_offset)
            if oldest.last_timestamp > 0:
                self._silent.append((partition.name, oldest.last_timestamp))

    def add_to(self, page: Exposition, broker: Broker) -> None:
        """Silent is a transaction since its last record or marker (KIP-664)."""
        prefix = "kafka_server_replicamanager_"
        page.gauge(prefix + "produceridcount", self.producers)
        now_ms = broker.clock.now_ms()
        late_since_ms = now_ms - broker.config.integer("transaction.max.timeout.ms") - _LATE_AFTER_MS
        late = [name for name, since_ms in self._silent if since_ms < late_since_ms]
        page.gauge(prefix + "partitionswithlatetransactionscount", len(late))
        longest_ms = max((now_ms - since_ms for _, since_ms in self._silent), default=0)
        page.gauge("ottla_transaction_open_seconds_max", max(longest_ms, 0) / 1000)
        page.add(
            "ottla_transactions_hanging",
            "gauge",
            [({"topic": topic, "partition": str(index)}, 1) for topic, index in late[:_MOST_HANGING]],
        )
