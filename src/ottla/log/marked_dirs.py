"""Names for the directories of logs that come or go: `orders-0.<32 digits>-delete`, `-future`, `-stray`.

The digits keep such directories apart, those that an earlier life of the node has left included. Kafka takes a random
UUID. Without a source of such names they are counted; either way one that a directory here has already is passed over.
"""

from collections.abc import Callable
from itertools import count

from ottla.base.ids import TopicPartition
from ottla.base.ports import Disk
from ottla.log import names


class MarkedDirs:
    """Those of one log directory. May be asked from several threads: no name is given out twice."""

    def __init__(self, disk: Disk, path: str, unique_name: Callable[[], str] | None = None) -> None:
        self._disk = disk
        self._path = path
        self._unique_name = unique_name or map("{:032x}".format, count()).__next__

    def path_for(self, partition: TopicPartition, mark: str) -> str:
        """A path that nothing is at."""
        while self._disk.exists(path := f"{self._path}/{names.marked_dir(partition, self._unique_name(), mark)}"):
            pass
        return path
