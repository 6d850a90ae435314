"""What the log answers."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ottla.base.ports import File
from ottla.wire.errors import ErrorCode


class Appended(NamedTuple):
    """What became of an append. With an error nothing was written; a repetition has the offsets of the first time."""

    error: ErrorCode
    base_offset: int = -1
    last_offset: int = -1
    repeated: bool = False


as_appended = partial(tuple.__new__, Appended)
"""All four fields as one tuple: half the time of the constructor, for who appends batch after batch."""


@dataclass(slots=True)
class FileSlice:
    """A part of a segment's file, to be sent as it is. It begins with a batch; the last batch in it may be cut.

    Its length is that of the bytes, so that it can stand for them in a message. `data` are the bytes themselves, if
    they were read on the way, as those of a little slice mostly are; else there is nothing in it.

    It is not frozen, though nobody changes it: one is made for every partition that is fetched, and a frozen one takes
    three times as long to make.
    """

    file: File | None
    position: int
    size: int
    data: bytes = b""

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """The bytes, for a caller that cannot send the file itself."""
        return self.data or (self.file.read_at(self.position, self.size) if self.file else b"")


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int
