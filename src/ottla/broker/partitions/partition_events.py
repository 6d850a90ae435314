"""What others do when something happens to a partition of this node: who is notified of what.

The parts that hold partitions and those that act on them need each other: a partition that has a new leader is followed
or coordinated, and what is followed is held. So the broker makes this first, gives it to those who tell, and says who
is notified when it has made them too. Nobody is notified of what nobody has asked for.
"""

from collections.abc import Callable

from ottla.base.ids import TopicPartition, Uuid
from ottla.broker.partitions.partition import Partition


def _nobody_listens(*_what: object) -> None:
    """A broker on its own."""


class PartitionEvents:
    def __init__(self) -> None:
        self.on_leadership: Callable[[Partition], None] = _nobody_listens
        """For fetchers and coordinators: a partition has a new leader, or is gone."""
        self.on_fetched: Callable[[Partition, int], None] = _nobody_listens
        """For what asks the controller to change the ISR: a follower that is not in it has fetched."""
        self.on_flushed: Callable[[Partition], None] = _nobody_listens
        """For fetchers, which tell a leader of no record that still has to be flushed."""
        self.on_truncated: Callable[[Partition], None] = _nobody_listens
        """For moves, whose copy of the log is to be truncated too."""
        self.on_directory_failing: Callable[[str], None] = _nobody_listens
        """For moves to and from the directory, before its partitions are offline."""
        self.on_directory_failed: Callable[[str, OSError], None] = _nobody_listens
        """For the node, which tells the controller, and stops when no directory is left."""
        self.on_broken: Callable[[TopicPartition], None] = _nobody_listens
        """For a move of the partition, before that is offline."""
        self.on_lost: Callable[[Uuid, int], None] = _nobody_listens
        """For what tells the controller where replicas are: this node does not serve one, by its topic and number."""
