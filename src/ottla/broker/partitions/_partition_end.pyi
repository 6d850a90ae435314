from collections.abc import Callable

from ottla.base.lent import Writable
from ottla.broker.partitions.partition import Partition
from ottla.records.header import BatchHeader

class PartitionEnd:
    def __init__(
        self,
        partition: type,
        state: type,
        settings: type,
        log: type,
        segment: type,
        epochs: type,
        producers: type,
        producer: type,
        is_sound: Callable[..., bool],
    ) -> None: ...
    def append_made_here(
        self, partition: Partition, data: bytearray, record_count: int, max_timestamp: int, /
    ) -> int: ...
    def append_produced(self, partition: Partition, data: Writable, header: BatchHeader, /) -> int: ...
