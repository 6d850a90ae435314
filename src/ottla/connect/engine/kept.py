"""Writers that a process of Spark's keeps between batches, by connector: a quicker way, and no more.

Spark gives a batch to any process that is idle, so in time each would have a writer of every connector. The ones that
were used longest ago are closed.
"""

from collections.abc import Iterator
from typing import Final, Generic, Protocol, TypeVar

_MOST: Final = 8


class _Closable(Protocol):
    def close(self) -> None: ...


WriterT = TypeVar("WriterT", bound=_Closable)


class Kept(Generic[WriterT]):
    def __init__(self) -> None:
        self._writers: dict[str, WriterT] = {}

    def take(self, connector: str) -> WriterT | None:
        """The caller gives it back, or closes it."""
        return self._writers.pop(connector, None)

    def give(self, connector: str, writer: WriterT) -> None:
        while len(self._writers) >= _MOST:
            self._writers.pop(next(iter(self._writers))).close()
        self._writers[connector] = writer

    def forget(self) -> list[WriterT]:
        """All of them, not closed: as they would be in another process."""
        found = list(self._writers.values())
        self._writers.clear()
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._writers)
