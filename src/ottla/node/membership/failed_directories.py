"""Log directories that have failed, until the controller knows of them (KIP-858).

The controller gives the partitions of such a directory other leaders, so a broker that cannot tell it must not go on:
its clients would wait for partitions that nobody serves. After `log.dir.failure.timeout.ms` it ends, and the others
find out by its silence.
"""

from collections.abc import Callable, Iterable

from ottla.base.ids import Uuid
from ottla.base.ports import Timer, Timers


class FailedDirectories:
    """Of one life of a broker. `give_up` is told why, when the time for a directory is over."""

    def __init__(self, timers: Timers, timeout_ms: int, give_up: Callable[[str], None]) -> None:
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._give_up = give_up
        self._waiting: dict[Uuid, Timer] = {}
        self.ids: list[Uuid] = []
        """Every heartbeat names them."""

    def add(self, path: str, directory_id: Uuid) -> bool:
        """False if it has failed before."""
        if directory_id in self.ids:
            return False
        self.ids.append(directory_id)
        self._waiting[directory_id] = self._timers.after(self._timeout_ms / 1000, lambda: self._on_timeout(path))
        return True

    def on_told(self, directory_ids: Iterable[Uuid]) -> None:
        """The controller has answered a heartbeat that named these."""
        for directory_id in directory_ids:
            if directory_id in self._waiting:
                self._waiting.pop(directory_id).cancel()

    def close(self) -> None:
        """The broker leaves: nobody is to be told any more."""
        self.on_told(list(self._waiting))

    def _on_timeout(self, path: str) -> None:
        self._give_up(
            f"{path} has failed, and no controller could be told of it for {self._timeout_ms} ms "
            "(log.dir.failure.timeout.ms)"
        )
