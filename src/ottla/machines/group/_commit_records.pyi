from collections.abc import Callable, Mapping
from typing import Any

class CommitRecords:
    def __init__(
        self,
        request: Any,
        response: Any,
        committed: type,
        taken: Any,
        of_topic: Any,
        key_up_to_partition: Callable[[str, str], bytes],
        too_large: int,
        no_id: bytes,
    ) -> None: ...
    def name_all(self, topics: list[Any], known: Mapping[Any, Any], by_id: bool, /) -> bool: ...
    def encode(
        self, group_id: str, topics: list[Any], now_ms: int, longest: int, /
    ) -> tuple[list[Any], list[tuple[bytes, bytes | None]], int, list[Any]]: ...
    def replay(
        self, topics: dict[Any, Any], committed: list[Any], now_ms: int, expires_ms: int, order: int, /
    ) -> int: ...
