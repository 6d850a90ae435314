"""What consumers of the classic protocol say to each other inside it, as far as a coordinator reads and writes it.

To a classic group it is bytes. A coordinator reads subscriptions to know which topics are still read; and where members
of both protocols are in one group, it reads them to divide the work, and writes the assignments itself.
"""

from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Final, TypeVar

from ottla.base.errors import RemoteProtocolError
from ottla.base.ids import Uuid
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire.codec import decode_from
from ottla.wire.faults import DecodeError
from ottla.wire.message import Message
from ottla.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.record_values import encode_versioned

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION = Struct(">h")
_NEWEST: Final = 3

MessageT = TypeVar("MessageT", bound=Message)


class MalformedEmbeddedProtocol(RemoteProtocolError):
    """These are not a consumer's bytes."""


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


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    return _read(ConsumerProtocolAssignment, data)


def _read(message: type[MessageT], data: bytes) -> MessageT:
    """A version that is not known yet is read as the newest that is: versions only add."""
    if len(data) < _VERSION.size or data[0] & 0x80:
        raise MalformedEmbeddedProtocol("it does not begin with a version")
    try:
        return decode_from(message, data, _VERSION.size, version_of(data))[0]
    except DecodeError as problem:
        raise MalformedEmbeddedProtocol(str(problem)) from problem


def version_of(data: bytes) -> int:
    """The version to answer in: that of what the consumer has said, or the oldest if that cannot be read."""
    version = int(_VERSION.unpack_from(data)[0]) if len(data) >= _VERSION.size else 0
    return min(max(version, 0), _NEWEST)


def written_assignment(topics: Mapping[Uuid, Iterable[int]], image: MetadataImage, version: int) -> bytes:
    """Partitions by topic, as a consumer that speaks this version reads them. Deleted topics are left out."""
    of_topic = ConsumerProtocolAssignment.TopicPartition
    by_id = image.topics.by_id
    assigned = [
        of_topic(topic=by_id[topic_id].name, partitions=sorted(topics[topic_id]))
        for topic_id in sorted(topics)
        if topic_id in by_id
    ]
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=None), version)


Named = ConsumerProtocolSubscription.TopicPartition | ConsumerProtocolAssignment.TopicPartition


def by_topic_id(named: Iterable[Named], image: MetadataImage) -> dict[Uuid, frozenset[int]]:
    """Partitions by the ids of their topics; topics that do not exist (any more) are left out."""
    by_name = image.topics.by_name
    return {by_name[topic.topic].id: frozenset(topic.partitions) for topic in named if topic.topic in by_name}
