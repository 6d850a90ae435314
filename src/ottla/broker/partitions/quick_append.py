"""The append that is done most often of all: to a segment with room, of no producer or the next batch of its producer.

Where there is a compiler it is done without Python code (`_partition_end.pyx`), and with the same outcome as by the
partition's own methods, which do all that is not as simple as that.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.lent import Writable
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.topic_settings import TopicSettings
from ottla.log.leader_epochs import LeaderEpochs
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import Producer, ProducerState
from ottla.log.segment import Segment
from ottla.machines.partition.leader import LeaderState
from ottla.records.header import BatchHeader
from ottla.records.kernel import is_sound

if TYPE_CHECKING:
    from ottla.broker.partitions._partition_end import PartitionEnd

NOT_NOW = -1


def append_never(*_: object) -> int:
    """The offset of a batch that was appended; NOT_NOW, and nothing has happened, if the partition's method of the same
    name is to be called: `append_made_here`, or `append_as_leader` for a batch that was produced.

    Without a compiler there is no quicker way.
    """
    return NOT_NOW


append_made_here: Callable[[Partition, bytearray, int, int], int] = append_never
append_produced: Callable[[Partition, Writable, BatchHeader], int] = append_never
partition_end: "PartitionEnd | None" = None
try:
    from ottla.broker.partitions import _partition_end
except ImportError:  # there was no C compiler when the package was installed
    pass
else:
    partition_end = _partition_end.PartitionEnd(
        Partition,
        LeaderState,
        TopicSettings,
        PartitionLog,
        Segment,
        LeaderEpochs,
        ProducerState,
        Producer,
        is_sound,
    )
    append_made_here, append_produced = partition_end.append_made_here, partition_end.append_produced
