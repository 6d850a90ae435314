"""The order in which Java's collections give out what is in them.

Apache Kafka's sticky assignors ask members one after the other as a `HashMap` lists them, so which members keep an odd
partition follows from hash codes. To decide alike, we need the same order.
"""

from collections.abc import Iterable
from typing import Final

from ottla.base.ids import TopicPartition

_FIRST_CAPACITY: Final = 16
_MASK: Final = 0xFFFFFFFF


def text_order(text: str) -> bytes:
    """The key that sorts as Java compares strings: by UTF-16 units, where Python compares code points."""
    return text.encode("utf-16-be", "surrogatepass")


def text_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned number."""
    code = 0
    units = text_order(text)
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = code * 31 + (high << 8 | low) & _MASK
    return code


def partition_hash(partition: TopicPartition) -> int:
    """`TopicPartition.hashCode`, as an unsigned number."""
    return (31 * (31 + partition.partition) + text_hash(partition.topic)) & _MASK


def capacity_for(size: int) -> int:
    """How many buckets a hash table has that was made with the default number and has grown to this size."""
    capacity = _FIRST_CAPACITY
    while size > capacity * 3 // 4:
        capacity *= 2
    return capacity


def bucket_of(hash_code: int, capacity: int) -> int:
    return (hash_code ^ hash_code >> 16) & (capacity - 1)


def in_hash_order(keys: Iterable[str]) -> list[str]:
    """Strings in the order in which a `HashMap` lists them that they were put into one after the other.

    Java turns a bucket of more than eight keys into a tree, which may list them otherwise. Among member ids, which end
    in random digits, no such bucket is to be expected.
    """
    listed = list(keys)
    capacity = capacity_for(len(listed))
    return sorted(listed, key=lambda key: bucket_of(text_hash(key), capacity))


def in_sized_hash_order(keys: Iterable[str]) -> list[str]:
    """The same for a `HashMap` that was made for as many: with fewer buckets, that is, and another order."""
    listed = list(keys)
    capacity = 1
    while capacity < len(listed) or len(listed) > capacity * 3 // 4:
        capacity *= 2
    return sorted(listed, key=lambda key: bucket_of(text_hash(key), capacity))


class HashedPartitions:
    """A `HashSet` of partitions of one topic, of which the first is asked for."""

    __slots__ = ("_capacity", "_partitions")

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, None] = {}
        self._capacity = _FIRST_CAPACITY

    def __len__(self) -> int:
        return len(self._partitions)

    def add(self, partition: TopicPartition) -> None:
        self._partitions[partition] = None
        self._capacity = max(self._capacity, capacity_for(len(self._partitions)))

    def remove(self, partition: TopicPartition) -> None:
        """The table keeps the size to which it has grown."""
        del self._partitions[partition]

    def first(self) -> TopicPartition:
        return min(self._partitions, key=lambda partition: bucket_of(partition_hash(partition), self._capacity))
