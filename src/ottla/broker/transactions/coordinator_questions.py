"""What the leader of a partition asks the coordinator of a transaction before its first write is taken (KIP-890).

The question is AddPartitionsToTxn, as brokers ask it: to look whether partitions are in the transaction
(`verify_only`), or to add them. It goes to the node that leads the coordinator's partition, this one or another.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.placement import partition_of
from ottla.runtime.channels import PeerChannel
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

_VERSION: Final = 5
_TOPIC: Final = "__transaction_state"

_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


class Producer(NamedTuple):
    """The producer that writes, as a Produce or a TxnOffsetCommit says."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


Answered = Callable[[dict[TopicPartition, ErrorCode]], None]
"""The partitions that are not in the transaction, and what is the matter with each."""


class CoordinatorQuestions:
    """Asks; `then` is notified of the partitions that are not in the transaction."""

    def __init__(
        self, metadata: ClusterMetadata, peers: PeerChannel, node_settings: NodeSettings, world: World
    ) -> None:
        self._metadata = metadata
        self._peers = peers
        self._node_settings = node_settings
        self._world = world

    def verify(self, producer: Producer, partitions: Iterable[TopicPartition], then: Answered) -> None:
        """Asks the coordinator whether the partitions are in the transaction."""
        self._ask(producer, list(partitions), then, verify_only=True)

    def add(
        self, producer: Producer, partitions: Iterable[TopicPartition], then: Answered, on_again: Callable[[], None]
    ) -> None:
        """Asks the coordinator to take the partitions into the transaction; `on_again` runs before it is asked again.

        Right after the end of a transaction its markers may still be under way. That takes milliseconds, which are
        waited for here (`add.partitions.to.txn.retry.backoff.ms`) and not at the client's.
        """
        settings = self._node_settings.effective
        until_ms = self._world.clock.now_ms() + settings.integer("add.partitions.to.txn.retry.backoff.max.ms")
        pause_s = settings.integer("add.partitions.to.txn.retry.backoff.ms") / 1000
        names = list(partitions)

        def ask() -> None:
            self._ask(producer, names, answered, verify_only=False)

        def ask_again() -> None:
            on_again()
            ask()

        def answered(errors: dict[TopicPartition, ErrorCode]) -> None:
            if ErrorCode.CONCURRENT_TRANSACTIONS in errors.values() and self._world.clock.now_ms() < until_ms:
                self._world.timers.after(pause_s, ask_again)
            else:
                then(errors)

        ask()

    def _ask(self, producer: Producer, partitions: list[TopicPartition], then: Answered, *, verify_only: bool) -> None:
        coordinator = self._coordinator_of(producer.transactional_id)
        if coordinator is None:
            then(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return

        def answered(response: AddPartitionsToTxnResponse) -> None:
            error = ErrorCode(response.error_code)
            then(dict.fromkeys(partitions, error) if error else _errors_in(response))

        self._peers.ask(
            coordinator,
            AddPartitionsToTxnRequest(transactions=[_transaction(producer, partitions, verify_only=verify_only)]),
            _VERSION,
            answered,
            lambda error: then(dict.fromkeys(partitions, error)),
        )

    def _coordinator_of(self, transactional_id: str) -> int | None:
        """The node to ask; None while there is none."""
        topic = self._metadata.image.topics.by_name.get(_TOPIC)
        if topic is None:
            return None
        leader = self._metadata.leader_of(_TOPIC, partition_of(transactional_id, len(topic.partitions)))
        return leader if leader is not None and leader >= 0 else None


def _transaction(producer: Producer, partitions: list[TopicPartition], *, verify_only: bool) -> _Transaction:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return _Transaction(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=verify_only,
        topics=[_Topic(name=name, partitions=indexes) for name, indexes in by_topic.items()],
    )


def _errors_in(response: AddPartitionsToTxnResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, one.partition_index): ErrorCode(one.partition_error_code)
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for one in topic.results_by_partition
        if one.partition_error_code
    }
