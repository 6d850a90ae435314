"""A number that changes when something about a topic changes that its readers' assignment depends on (KIP-1101).

It goes into the group's record, and must be the number that Apache Kafka computes: else a group that moves between the
two would be assigned anew, for nothing.
"""

from collections.abc import Iterable
from struct import pack

from xxhash import xxh3_64_intdigest as xxh3_64

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.topics_image import TopicImage

_VERSION = b"\0"
_SIGN = 1 << 63


def group_hash(image: MetadataImage, topics: Iterable[str]) -> int:
    """Of all topics that exist among those that a group reads; of none: 0. As a signed number, as records have it."""
    found = [image.topics.by_name[name] for name in sorted(topics) if name in image.topics.by_name]
    if not found:
        return 0
    hashed = xxh3_64(b"".join(pack("<Q", topic_hash(image, topic)) for topic in found))
    return hashed - (_SIGN << 1) if hashed & _SIGN else hashed


def topic_hash(image: MetadataImage, topic: TopicImage) -> int:
    # An id is two numbers, most significant first, each of them little-endian here.
    parts = [_VERSION, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), pack("<i", len(topic.partitions))]
    for index in range(len(topic.partitions)):
        parts.append(pack("<i", index))
        for rack in sorted(_racks(image, topic.partitions[index].replicas)):
            parts += [pack("<i", len(rack)), _text(rack)]
    return xxh3_64(b"".join(parts))


def _racks(image: MetadataImage, replicas: Iterable[int]) -> list[str]:
    brokers = [image.brokers.by_id.get(replica) for replica in replicas]
    return [broker.rack for broker in brokers if broker is not None and broker.rack is not None]


def _text(text: str) -> bytes:
    """Characters of two bytes, and then how many they are."""
    encoded = text.encode("utf-16-le")
    return encoded + pack("<i", len(encoded) // 2)
