"""A record as every client sees it."""

import time
from typing import NamedTuple

from ottla.wire.errors import ErrorCode

COMPRESSIONS = ["none", "gzip", "snappy", "lz4", "zstd"]
T0_MS = (int(time.time()) - 3600) * 1000
"""An hour ago: long ago enough to be told from now, and not so long that retention takes it."""


class Record(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = T0_MS


class Placed(NamedTuple):
    """A record and where it is."""

    offset: int
    record: Record


class Refused(Exception):
    """The node said no; the text is the name of its error code."""

    def __init__(self, code: int) -> None:
        super().__init__(ErrorCode(code).name)


def a_variety(null_headers: bool = True) -> list[Record]:
    """With and without keys, values and headers; empty is not null; times do not only rise."""
    null = ("null", None if null_headers else b"this client cannot")
    return [
        Record(b"a value", b"a key", (("name", b"content"), ("name", b"again"), ("empty", b""), null)),
        Record(b"a value without a key", None, (), T0_MS + 5),
        Record(None, b"a key without a value", (), T0_MS + 3),
        Record(b"", b"", (("öttla", "grüß".encode()),), T0_MS + 4),
        Record(bytes(range(256)) * 40, b"long enough to be worth compressing", (), T0_MS + 10),
    ]
