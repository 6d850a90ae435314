"""How much of what is there goes into one micro-batch: Spark's admission control, in offsets and in bytes.

Limits are shared out among partitions by how much each has waiting, as Spark's connector does it. So all partitions
reach their ends together, and a full one does not starve the others.
"""

from collections.abc import Mapping
from math import ceil, floor

from ottla.base.ids import TopicPartition
from ottla.spark.source.offsets_json import Offsets


def waiting(begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> Offsets:
    """How many offsets each partition has that something waits in."""
    return {one: end - begins[one] for one, end in ends.items() if one in begins and end > begins[one]}


def limited_in_rows(begins: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], max_rows: int) -> Offsets:
    """Ends that are at most about so many offsets away, altogether; at least one in each partition that has some."""
    sizes = waiting(begins, ends)
    total = sum(sizes.values())
    if total <= max_rows:
        return dict(ends)
    shares = {one: max_rows * size / total for one, size in sizes.items()}
    steps = {one: ceil(share) if share < 1 else floor(share) for one, share in shares.items()}
    return {one: min(end, begins[one] + steps[one]) if one in steps else end for one, end in ends.items()}


def limited_in_bytes(
    begins: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    max_bytes: int,
    bytes_per_offset: Mapping[TopicPartition, float],
) -> Offsets:
    """The same in bytes, as far as what the records at the beginnings are like tells it."""
    sizes = waiting(begins, ends)
    total_bytes = sum(size * bytes_per_offset.get(one, 0.0) for one, size in sizes.items())
    if total_bytes <= max_bytes:
        return dict(ends)
    share = max_bytes / total_bytes
    return {one: begins[one] + max(floor(sizes[one] * share), 1) if one in sizes else end for one, end in ends.items()}
