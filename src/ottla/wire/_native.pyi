from typing import Any

from ottla.base.ports import Buffer

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
