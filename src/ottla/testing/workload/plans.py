"""What a workload sends, as data: topics, connections, requests, batches, records. Nothing of it has been sent yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.records.builder import BatchBuilder
from ottla.records.columns import Header
from ottla.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Compression
from ottla.wire.errors import ErrorCode

ACKS_ALL: Final = -1


class LaneKind(Enum):
    PLAIN = "plain"
    IDEMPOTENT = "idempotent"
    TRANSACTIONS_1 = "transactions of protocol 1"
    """Produce of at most version 11: the producer adds partitions to its transaction by a request (KIP-98)."""
    TRANSACTIONS_2 = "transactions of protocol 2"
    """Produce from version 12 on: the partition's leader adds it when the first batch comes (KIP-890)."""

    @property
    def is_transactional(self) -> bool:
        return self in (LaneKind.TRANSACTIONS_1, LaneKind.TRANSACTIONS_2)


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """`timestamp` is what the producer writes; a topic with LogAppendTime shows another."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicPlan:
    name: str
    partitions: int
    settings: Mapping[str, str]

    @property
    def is_stamped(self) -> bool:
        return self.settings.get("message.timestamp.type") == "LogAppendTime"

    @property
    def is_compacted(self) -> bool:
        return self.settings.get("cleanup.policy") == "compact"

    @property
    def codec(self) -> Compression | None:
        """What every batch is stored with; None for the producer's codec."""
        name = self.settings.get("compression.type", "producer")
        if name == "producer":
            return None
        return Compression.NONE if name == "uncompressed" else Compression[name.upper()]


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan:
    """`refusal` is the error that a broker must answer with, if it must; such a batch takes no sequence number."""

    number: int
    topic: TopicPlan
    partition: int
    codec: Compression
    records: tuple[RecordPlan, ...]
    refusal: ErrorCode = ErrorCode.NONE
    breaks_checksum: bool = False

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.partition)

    def build(
        self,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        sequence: int = NO_SEQUENCE,
        *,
        transactional: bool = False,
    ) -> bytes:
        """The batch as a producer sends it."""
        builder = BatchBuilder(
            compression=self.codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        for record in self.records:
            builder.append(record.timestamp, record.key, record.value, record.headers)
        batch = builder.build()
        if self.breaks_checksum:
            batch[-1] ^= 0xFF
        return bytes(batch)


@dataclass(frozen=True, slots=True, eq=False)
class RequestPlan:
    """`is_repeated`: it is sent twice, as after a lost reply. The repetition must get the same offsets."""

    batches: tuple[BatchPlan, ...]
    acks: int
    version: int
    is_repeated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RoundPlan:
    """Requests that are sent without waiting for each other's replies; in lanes with transactions, one transaction."""

    requests: tuple[RequestPlan, ...]
    commits: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class LanePlan:
    """One connection (to each node that it needs), or one producer of ours, and what it sends in order."""

    name: str
    kind: LaneKind
    is_encrypted: bool
    rounds: tuple[RoundPlan, ...]
    client_codec: str | None = None
    """If it is a producer of ours that sends the records: its `compression.type`. Requests are its own affair then."""

    @property
    def batches(self) -> list[BatchPlan]:
        return [batch for a_round in self.rounds for request in a_round.requests for batch in request.batches]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """All of it. The lanes run side by side."""

    seed: int
    topics: tuple[TopicPlan, ...]
    lanes: tuple[LanePlan, ...]

    @property
    def places(self) -> list[TopicPartition]:
        return [TopicPartition(topic.name, index) for topic in self.topics for index in range(topic.partitions)]

    def topic(self, name: str) -> TopicPlan:
        return next(topic for topic in self.topics if topic.name == name)
