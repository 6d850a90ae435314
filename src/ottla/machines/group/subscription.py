"""What consumers of the classic protocol say to each other, as far as a coordinator reads it."""

from collections.abc import Iterable
from struct import Struct

from ottla.wire.codec import decode_from
from ottla.wire.faults import DecodeError
from ottla.wire.messages import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION = Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics in these subscriptions; None if they are not consumers' after all.

    Every version begins as version 0 does, so newer ones are read as that, and what follows is passed over.
    """
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            decoded, _ = decode_from(ConsumerProtocolSubscription, subscription, _VERSION.size, 0)
            topics.update(decoded.topics)
    except DecodeError:
        return None
    return frozenset(topics)
