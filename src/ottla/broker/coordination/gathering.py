"""Commands whose records are bytes, taken into the batch that is open: what coordinators are asked for most.

Where there is a compiler it is done with little Python code (`_gathering.pyx`), and with the same outcome as by
`CoordinatedPartition.submit_encoded`, which does all that is not as usual.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.coordination.coordinator_log import CoordinatorLog
from ottla.broker.coordination.gathered_batch import GatheredBatch
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.topic_settings import TopicSettings
from ottla.machines.coordinator_machine import EncodedCommand
from ottla.machines.partition.leader import LeaderState
from ottla.records.validate import ProduceRules

if TYPE_CHECKING:
    from ottla.broker.coordination.coordinated_partition import CoordinatedPartition

Gather = Callable[["CoordinatedPartition[Any]", EncodedCommand], bool]


def gather_nothing(_led: "CoordinatedPartition[Any]", _command: EncodedCommand) -> bool:
    """Whether a command was taken. If not, nothing has happened. Without a compiler there is no quicker way."""
    return False


def find_gather(led: type, active: object) -> Gather:
    """For partitions of that class, which are in that state when they take commands."""
    try:
        from ottla.broker.coordination._gathering import Gathering
    except ImportError:  # there was no C compiler when the package was installed
        return gather_nothing
    gathering = Gathering(
        led, active, CoordinatorLog, GatheredBatch, Partition, LeaderState, TopicSettings, ProduceRules
    )
    gather: Gather = gathering.gather
    return gather
