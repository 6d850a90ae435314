"""Producer ids: handed to brokers in blocks, each id once in the life of the cluster."""

from collections.abc import Iterator

from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.wire.messages import ProducerIdsRecord


class ProducerIdsImage:
    """`next_producer_id` starts the next block; -1 before the first was given out."""

    __slots__ = ("next_producer_id",)

    def __init__(self, next_producer_id: int = -1) -> None:
        self.next_producer_id = next_producer_id

    def replay(self, record: ProducerIdsRecord, delta: MetadataDelta) -> None:
        self.next_producer_id = record.next_producer_id
        delta.producer_ids = True

    def records(self) -> Iterator[ProducerIdsRecord]:
        """Which broker got the last block no longer matters."""
        if self.next_producer_id >= 0:
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)

    def copy(self) -> "ProducerIdsImage":
        return ProducerIdsImage(self.next_producer_id)
