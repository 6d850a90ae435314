"""Which member of which group a consumer is, for a transaction that commits its offsets (KIP-447)."""

from typing import NamedTuple

from ottla.client.membership.member import NO_GENERATION


class ConsumerGroupMetadata(NamedTuple):
    """What `producer.send_offsets` takes. Old once the group rebalances: ask for it anew for each transaction."""

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
