"""Whether the first write of a transaction to a partition really belongs to that transaction (KIP-890).

Once the coordinator has a partition in its list, the partition gets the transaction's marker; a write that came to a
partition without it would wait for its end for ever, and hold every read-committed consumer up. So before the first
batch of a transaction is taken, its coordinator is asked: to look (clients of the older protocol, which have announced
themselves), or to add the partition (clients of the newer one, which leave that to the broker).

Between the coordinator's answer and the append a marker may come, and the answer is then of the past. A `Guard` is what
tells: it is given out before the coordinator is asked, and a marker of the producer takes it back. So does a change of
the partition's leader epoch: another leader may have written the marker.
"""

from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.records.header import BatchHeader
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.transactions.coordinator_questions import CoordinatorQuestions
    from ottla.serving.node_settings import NodeSettings

# What a client may not know from a Produce is reported as something that it tries again after.
_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class Guard:
    """Questions to the coordinator about one producer in one partition, and the first sequence that was seen there."""

    __slots__ = ("askers", "epoch", "key", "leader_epoch", "lowest_sequence", "refusal")

    def __init__(self, key: tuple[TopicPartition, int], leader_epoch: int, epoch: int, sequence: int) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.askers = 0
        self.refusal = ErrorCode.NONE
        """Why what the coordinator says no longer holds, once it does not."""
        self.epoch = epoch
        self.lowest_sequence = sequence

    def see(self, epoch: int, sequence: int) -> None:
        self.askers += 1
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class Verifications:
    """The guards of a broker, by partition and producer id; `questions` go to the coordinators."""

    def __init__(self, questions: "CoordinatorQuestions", node_settings: "NodeSettings") -> None:
        self.questions = questions
        self._node_settings = node_settings
        self._guards: dict[tuple[TopicPartition, int], Guard] = {}

    def __len__(self) -> int:
        return len(self._guards)

    @property
    def is_enabled(self) -> bool:
        """Whether clients that add their partitions themselves are checked (KIP-890)."""
        return self._node_settings.effective.flag("transaction.partition.verification.enable")

    def begin_batch(self, partition: "Partition", header: BatchHeader) -> Guard | ErrorCode:
        """As `begin`. A batch that was taken before is only going to be acknowledged again."""
        producer = partition.log.producers.get(header.producer_id)
        if producer is not None and producer.repetition_of(header):
            return ErrorCode.NONE
        return self.begin(partition, header.producer_id, header.producer_epoch, header.base_sequence)

    def begin(self, partition: "Partition", producer_id: int, epoch: int, sequence: int = 0) -> Guard | ErrorCode:
        """A guard, if the coordinator has to be asked about this write; NONE if not; or why it is not taken at all.

        Every guard is to be given back (`release`).
        """
        producer = partition.log.producers.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if has_open_transaction(partition, producer_id, epoch):
            return ErrorCode.NONE
        key = partition.name, producer_id
        guard = self._guards.get(key)
        if guard is None:
            guard = self._guards[key] = Guard(key, partition.leader_epoch, epoch, sequence)
        guard.see(epoch, sequence)
        return guard

    def release(self, guard: Guard) -> None:
        guard.askers -= 1
        if not guard.askers and self._guards.get(guard.key) is guard:
            del self._guards[guard.key]

    def renewed(self, guard: Guard) -> Guard:
        """For when the coordinator is asked again: a marker that has come until now is of a transaction before.

        The coordinator has said that it still ends that one, so its marker was to be expected.
        """
        if guard.refusal is not ErrorCode.INVALID_TXN_STATE:
            return guard
        self.release(guard)
        fresh = self._guards.get(guard.key)
        if fresh is None:
            fresh = Guard(guard.key, guard.leader_epoch, guard.epoch, guard.lowest_sequence)
            self._guards[guard.key] = fresh
        fresh.see(guard.epoch, guard.lowest_sequence)
        return fresh

    def revoke(self, name: TopicPartition, producer_id: int) -> None:
        """A marker has been written: what the coordinator said before it no longer holds."""
        guard = self._guards.pop((name, producer_id), None)
        if guard is not None:
            guard.refusal = ErrorCode.INVALID_TXN_STATE

    def on_leadership(self, partition: "Partition") -> None:
        """The partition has another leader, or the same one in another epoch: its clients are to look again."""
        for key in [key for key in self._guards if key[0] == partition.name]:
            guard = self._guards[key]
            if guard.leader_epoch != partition.leader_epoch or not partition.is_leader:
                guard.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
                del self._guards[key]


def has_open_transaction(partition: "Partition", producer_id: int, epoch: int) -> bool:
    producer = partition.log.producers.get(producer_id)
    return producer is not None and producer.current_txn_first_offset >= 0 and producer.epoch == epoch


def check_guarded(partition: "Partition", header: BatchHeader, guard: Guard, *, bumps_epochs: bool) -> ErrorCode:
    """Whether a batch that the coordinator has agreed to may be appended now."""
    if has_open_transaction(partition, header.producer_id, header.producer_epoch):
        return ErrorCode.NONE  # Another batch of the same transaction was quicker.
    if guard.refusal:
        return guard.refusal
    is_unknown = partition.log.producers.get(header.producer_id) is None
    if header.base_sequence > guard.lowest_sequence or (bumps_epochs and is_unknown and header.base_sequence):
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return ErrorCode.NONE


def as_a_producer_gets_it(error: ErrorCode, *, adds_partitions: bool, knows_abortable: bool) -> ErrorCode:
    """What Produce and TxnOffsetCommit say of an error of the coordinator, to clients of their version."""
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    if error in _TRY_AGAIN or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not adds_partitions):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error
