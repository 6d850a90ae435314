"""Which neighbouring segments are cleaned into one, so that segments do not get ever smaller."""

from collections.abc import Sequence

from ottla.log.index import MAX_RELATIVE_OFFSET
from ottla.log.segment import Segment

MOST_SEGMENTS = 128
"""In one group. Ours alone: a swap renames the files of the whole group in one turn of the loop."""


def group_segments(
    segments: Sequence[Segment], end_offset: int, segment_bytes: int, segment_index_bytes: int
) -> list[list[Segment]]:
    """Groups whose sizes together are within the settings; the sizes are those before cleaning, as in Kafka."""
    groups: list[list[Segment]] = []
    size = index_size = time_index_size = 0
    for slot, segment in enumerate(segments):
        size += segment.size
        index_size += segment.offset_index.size
        time_index_size += segment.time_index.size
        ends = segments[slot + 1].base_offset if slot + 1 < len(segments) else end_offset
        # An empty segment has no offset that would have to be written relative to the first.
        in_reach = not segment.size or (groups and ends - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        if (
            groups
            and len(groups[-1]) < MOST_SEGMENTS
            and size <= segment_bytes
            and index_size <= segment_index_bytes
            and time_index_size <= segment_index_bytes
            and in_reach
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, index_size, time_index_size = segment.size, segment.offset_index.size, segment.time_index.size
    return groups
