from collections.abc import Callable
from typing import Any

class PlainReads:
    def __init__(
        self,
        request: Any,
        response: Any,
        partition: type,
        state: type,
        traffic: type,
        log: type,
        segment: type,
        producers: type,
        of_topic: Any,
        of_partition: Any,
        nothing: Any,
        begins_with_a_cut_batch: Callable[[Any], bool],
    ) -> None: ...
    def read_all(
        self,
        partitions: Any,
        disk: Any,
        request: Any,
        version: int,
        max_bytes: int,
        at_end: dict[Any, Any],
        read: list[Any],
        /,
    ) -> tuple[list[Any], int] | None: ...
    def count(self, read: list[Any], /) -> None: ...
