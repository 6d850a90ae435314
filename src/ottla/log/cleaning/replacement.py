"""Swapping a cleaned segment in for the old ones that it stands for, in steps that a crash may come between.

1. The new files are durable under names with .cleaned. A crash removes them.
2. They get names with .swap (`start_replacement`), and those names are made durable (`run`, on any thread). From here
   on the swap happens: a crash is followed by the rest of it.
3. The old files get the suffix .deleted, the new ones lose theirs, and the log reads the new segment
   (`finish_replacement`). None of this needs a sync: whatever part of it a power cut takes back is done again.

The new segment is below the recovery point, as it stands in the checkpoint, so that recovery takes it as it is: holes
between segments are then nothing to wonder at.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.ports import Disk
from ottla.log import file_names
from ottla.log.segment import Segment


class Replacement(NamedTuple):
    """A swap under way: `new` for `old`."""

    old: list[Segment]
    new: Segment
    run: Callable[[], None]
    truncations: int


def remove_unfinished(disk: Disk, directory: str) -> None:
    """Removes what a cleaning that did not end well has left of the segment that it was at."""
    for name in disk.list_dir(directory):
        if name.endswith(file_names.CLEANED):
            disk.remove(f"{directory}/{name}")
