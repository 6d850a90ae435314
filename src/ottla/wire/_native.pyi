from typing import Any, TypeVar

from ottla.base.lent import Lent
from ottla.base.ports import Buffer
from ottla.wire.message import Encoder

StructT = TypeVar("StructT")

def like(prototype: StructT, /) -> StructT: ...
def split_around(frame: Lent | memoryview, at: int, compact: bool, /) -> tuple[bytes, int, Lent] | None: ...

class StructPlan:
    def __init__(
        self,
        cls: type,
        flexible: bool,
        fields: list[tuple[Any, ...]],
        tagged: list[tuple[Any, ...]],
        defaults: list[tuple[str, Any]],
    ) -> None: ...
    def decode(self, buffer: Buffer, position: int, /) -> tuple[Any, int]: ...

class EncodePlan:
    def __init__(
        self,
        cls: type,
        flexible: bool,
        fields: list[tuple[Any, ...]],
        unset: list[tuple[str, Any]],
        slow: Encoder | None = None,
    ) -> None: ...
    def encode(self, message: Any, pieces: list[Any], payloads: list[int], /) -> None: ...
    def response(self, message: Any, correlation_id: int, has_tags: bool, /) -> list[Any] | None: ...
