"""Which member of which group a consumer is, for a transaction that commits its offsets (KIP-447)."""

from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.membership.member import NO_GENERATION
from ottla.client.topic_partition import OffsetAndMetadata


class ConsumerGroupMetadata(NamedTuple):
    """What `producer.send_offsets` takes. Old once the group rebalances: ask for it anew for each transaction."""

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    consumed: tuple[tuple[TopicPartition, OffsetAndMetadata], ...] = ()
    """Where the consumer is, with the leader epochs of what it has read."""
