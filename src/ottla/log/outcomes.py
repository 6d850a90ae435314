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


class FileSlice(NamedTuple):
    """A part of a segment's file, to be sent as it is. It begins with a batch; the last batch in it may be cut."""

    file: File | None
    position: int
    size: int


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int
