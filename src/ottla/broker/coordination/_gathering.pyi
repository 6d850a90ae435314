from typing import Any

class Gathering:
    def __init__(
        self,
        led: type,
        active: object,
        log: type,
        batch: type,
        partition: type,
        state: type,
        settings: type,
        rules: type,
    ) -> None: ...
    def gather(self, led: Any, command: Any, /) -> bool: ...
