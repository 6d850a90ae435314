"""What the log answers."""

from typing import NamedTuple

from ottla.base.ports import File
from ottla.wire.errors import ErrorCode


class Appended(NamedTuple):
    """What became of an append. With an error nothing was written; a repetition has the offsets of the first time."""

    error: ErrorCode
    base_offset: int = -1
    last_offset: int = -1
    repeated: bool = False


class FileSlice:
    """A part of a segment's file, to be sent as it is. It begins with a batch; the last batch in it may be cut.

    Its length is that of the bytes, so that it can stand for them in a message. `data` are the bytes themselves, if
    they were read on the way, as those of a little slice mostly are; else there is nothing in it.
    """

    __slots__ = ("data", "file", "position", "size")

    def __init__(self, file: File | None, position: int, size: int, data: bytes = b"") -> None:
        self.file = file
        self.position = position
        self.size = size
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileSlice) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]  # no two of them are looked for

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """The bytes, for a caller that cannot send the file itself."""
        return self.data or (self.file.read_at(self.position, self.size) if self.file else b"")


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int
