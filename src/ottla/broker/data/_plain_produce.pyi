from collections.abc import Container
from typing import Any

from ottla.broker.partitions._partition_end import PartitionEnd
from ottla.broker.partitions.partition import Partition

class PlainAppends:
    def __init__(
        self,
        end: PartitionEnd,
        request: Any,
        response: Any,
        partition: type,
        settings: type,
        rules: type,
        traffic: type,
        taken: Any,
        of_topic: Any,
        internal: Container[str],
    ) -> None: ...
    def append_all(
        self,
        partitions: Any,
        topics: list[Any],
        acks: int,
        uses_ids: bool,
        now_ms: int,
        grown: list[Partition],
        begin: Any,
        arguments: tuple[Any, ...],
        /,
    ) -> tuple[list[Any], Any] | None: ...
