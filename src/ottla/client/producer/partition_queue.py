"""What a producer holds for one partition: batches that wait, batches that are not acknowledged, and its sequence."""

from collections import deque
from typing import NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.client.cluster.view import NO_NODE
from ottla.client.producer.batch import ProducerBatch
from ottla.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.wire.request_forms import RecordsForm


class Identity(NamedTuple):
    """Under which a broker knows an idempotent producer."""

    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


NOBODY = Identity()


class PartitionQueue:
    """`waiting` has the batches to be sent, in order; the last one may still be filled. `unacked` has those that have a
    sequence and no answer yet, in the order of their sequences; one that is to be sent again is in both.
    """

    __slots__ = (
        "form",
        "identity",
        "is_in_transaction",
        "is_muted",
        "last_acked_offset",
        "last_acked_sequence",
        "last_problem",
        "late_sequence",
        "leader",
        "leader_epoch",
        "next_sequence",
        "partition",
        "topic",
        "topic_partition",
        "unacked",
        "unresolved_sequence",
        "waiting",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_partition = TopicPartition(topic, partition)
        self.leader = NO_NODE
        self.leader_epoch = -1
        self.form: tuple[int, Uuid, RecordsForm | None] | None = None
        """Of the last request with a batch of this partition alone: version, id of the topic, and what is around it."""
        self.waiting: deque[ProducerBatch] = deque()
        self.unacked: list[ProducerBatch] = []
        self.last_problem: str | None = None
        """Why a batch is sent again, until one is acknowledged."""
        self.is_muted = False
        """One batch is on its way, and only one may be (`max.in.flight.requests.per.connection=1`)."""
        self.is_in_transaction = False
        """The coordinator knows that the transaction writes here."""
        self.identity = NOBODY
        """Whose sequences these are."""
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.last_acked_offset = -1
        self.unresolved_sequence: int | None = None
        """The one after a batch that was given up, as long as nobody knows whether it was written."""
        self.late_sequence: int | None = None
        """The one after a batch that was given up and may come late: what is behind it may be written then, too."""

    @property
    def has_complete(self) -> bool:
        """Whether a batch waits that takes no more records, or waited for them long enough."""
        return len(self.waiting) > 1 or (bool(self.waiting) and (self.waiting[0].is_closed or self.waiting[0].is_due))

    def put_back(self, batch: ProducerBatch) -> None:
        """A batch is to be sent again: before all that have no sequence, and in the order of those that have one."""
        if not batch.has_sequence:
            self.waiting.appendleft(batch)
            return
        again = set(map(id, self.waiting)) | {id(batch)}
        fresh = [other for other in self.waiting if not other.has_sequence]
        self.waiting = deque([other for other in self.unacked if id(other) in again] + fresh)

    def forget_sequence(self) -> None:
        """The broker has no state of this producer (any more): it expects sequence 0."""
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.last_acked_offset = -1
        self.late_sequence = None
