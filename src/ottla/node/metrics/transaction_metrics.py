"""Transactions on the metrics page: what Kafka's beans tell of them, and how many there are in which state.

Kafka's `partition-load-time` forgets a loading after half a minute, before most scrapes. Here it is reported for all
partitions that are coordinated now.
"""

from collections import Counter
from collections.abc import Iterator

from ottla.base.ids import TopicPartition
from ottla.broker.broker import Broker
from ottla.broker.partitions.partition import Partition
from ottla.machines.transaction.states import TransactionState
from ottla.runtime.exposition import Exposition

_LATE_AFTER_MS = 300_000
"""Kafka's allowance: a transaction is late when its longest possible timeout has been over for five minutes."""
_MOST_HANGING = 100
_PARTITIONS_A_PIECE = 2_000

_SHOWN = (
    TransactionState.EMPTY,
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)


def transaction_metrics(page: Exposition, broker: Broker) -> Iterator[str]:
    _add_coordinator(page, broker)
    yield from _producers(page, broker)


def _add_coordinator(page: Exposition, broker: Broker) -> None:
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


def _producers(page: Exposition, broker: Broker) -> Iterator[str]:
    prefix = "kafka_server_replicamanager_"
    partitions = list(broker.partitions.values())
    producers = 0
    silent: list[tuple[TopicPartition, int]] = []
    for start in range(0, len(partitions), _PARTITIONS_A_PIECE):
        for partition in partitions[start : start + _PARTITIONS_A_PIECE]:
            if (count := len(partition.log.producers)) > 0:
                producers += count
                if (since_ms := _open_since_ms(partition)) is not None:
                    silent.append((partition.name, since_ms))
        yield page.take()
    page.gauge(prefix + "produceridcount", producers)
    late_since_ms = broker.clock.now_ms() - broker.config.integer("transaction.max.timeout.ms") - _LATE_AFTER_MS
    late = [name for name, since_ms in silent if since_ms < late_since_ms]
    page.gauge(prefix + "partitionswithlatetransactionscount", len(late))
    longest_ms = max((broker.clock.now_ms() - since_ms for _, since_ms in silent), default=0)
    page.gauge("ottla_transaction_open_seconds_max", max(longest_ms, 0) / 1000)
    page.add(
        "ottla_transactions_hanging",
        "gauge",
        [({"topic": topic, "partition": str(index)}, 1) for topic, index in late[:_MOST_HANGING]],
    )
    yield page.take()


def _open_since_ms(partition: Partition) -> int | None:
    """Since when the oldest open transaction of a partition that is led here has been silent (KIP-664)."""
    producers = partition.log.producers
    first_offset = producers.first_undecided_offset if partition.is_leader else None
    if first_offset is None:
        return None
    (oldest,) = (one for one in producers if one.current_txn_first_offset == first_offset)
    return oldest.last_timestamp if oldest.last_timestamp > 0 else None
