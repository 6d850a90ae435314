from collections.abc import Callable
from typing import Any, TypeVar

from ottla.base.lent import Lent, Seen
from ottla.wire.message import Encoder, Message

StructT = TypeVar("StructT")

def like(prototype: StructT, /) -> StructT: ...
def whole_frames(received: Lent, at: int, most_bytes: int, most: int, /) -> tuple[list[Lent], int]: ...

class StructPlan:
    def __init__(
        self,
        cls: type,
        flexible: bool,
        fields: list[tuple[Any, ...]],
        tagged: list[tuple[Any, ...]],
        defaults: list[tuple[str, Any]],
    ) -> None: ...
    def decode(self, buffer: Seen, position: int, /) -> tuple[Any, int]: ...

class RequestReader:
    def __init__(self, cls: type, find: Callable[[Seen], StructPlan]) -> None: ...
    def read(self, prototype: StructT, frame: Seen, /) -> StructT: ...

class EncodePlan:
    def __init__(
        self,
        cls: type,
        flexible: bool,
        fields: list[tuple[Any, ...]],
        tagged: list[tuple[tuple[Any, ...], Any]],
        unset: list[tuple[str, Any]],
        slow: Encoder | None = None,
    ) -> None: ...
    def encode(self, message: Any, pieces: list[Any], payloads: list[int], /) -> None: ...

class ResponseWriter:
    def __init__(
        self,
        find: Callable[[Message, int], tuple[EncodePlan, bool] | None],
        slow: Callable[[Message, int, int], list[Any]],
    ) -> None: ...
    def parts(self, message: Message, version: int, correlation_id: int, /) -> list[Any]: ...
