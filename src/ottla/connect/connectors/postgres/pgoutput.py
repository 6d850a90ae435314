"""The messages of pgoutput, PostgreSQL's output plugin: what they say, and rows of one table split into columns.

A change is a few bytes of head, and a tuple: a letter for each column (`t` text follows, with its length; `n` null; `u`
unchanged, not sent). In Python each field of each row would cost a step of the interpreter. So messages of one table
are laid end to end, and all rows go forward together, column by column: numpy reads the letter and the length of this
column in every row, and moves every row's place on. What comes out is, for each column, where its texts begin and end;
Arrow takes them out of the buffer.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.connectors.postgres.columns import slices
from ottla.connect.errors import ConnectError

EPOCH_US: Final = 946_684_800_000_000
"""PostgreSQL's times count from 2000-01-01."""

INSERT, UPDATE, DELETE, TRUNCATE = b"IUDT"
BEGIN, COMMIT, RELATION, TYPE, MESSAGE, ORIGIN = b"BCRYMO"
_TEXT, _NULL, _UNCHANGED = b"tnu"
_KEY, _OLD, _NEW = b"KON"
_HEAD: Final = struct.Struct(">QQ")


class Begin(NamedTuple):
    final_lsn: int
    commit_us: int
    xid: int


class Commit(NamedTuple):
    commit_lsn: int
    end_lsn: int
    commit_us: int


class RelationColumn(NamedTuple):
    name: str
    type_oid: int
    modifier: int
    is_key: bool
    """Whether it is of the replica identity."""


class Relation(NamedTuple):
    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Message(NamedTuple):
    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


class Truncate(NamedTuple):
    relations: tuple[int, ...]


def begin_of(body: bytes) -> Begin:
    final_lsn, commit_us, xid = struct.unpack_from(">QqI", body, 1)
    return Begin(final_lsn, commit_us + EPOCH_US, xid)


def commit_of(body: bytes) -> Commit:
    commit_lsn, end_lsn, commit_us = struct.unpack_from(">QQq", body, 2)
    return Commit(commit_lsn, end_lsn, commit_us + EPOCH_US)


def origin_of(body: bytes) -> tuple[int, str]:
    """The LSN of the commit at its origin, and the origin's name."""
    (lsn,) = struct.unpack_from(">Q", body, 1)
    return lsn, body[9 : body.index(0, 9)].decode()


def relation_of(body: bytes) -> Relation:
    (oid,) = struct.unpack_from(">I", body, 1)
    end = body.index(0, 5)
    schema = body[5:end].decode()
    stop = body.index(0, end + 1)
    name = body[end + 1 : stop].decode()
    (count,) = struct.unpack_from(">H", body, stop + 2)
    at = stop + 4
    columns: list[RelationColumn] = []
    for _ in range(count):
        end = body.index(0, at + 1)
        type_oid, modifier = struct.unpack_from(">Ii", body, end + 1)
        columns.append(RelationColumn(body[at + 1 : end].decode(), type_oid, modifier, bool(body[at] & 1)))
        at = end + 9
    return Relation(oid, schema or "pg_catalog", name, chr(body[stop + 1]), tuple(columns))


def message_of(body: bytes) -> Message:
    (lsn,) = struct.unpack_from(">Q", body, 2)
    end = body.index(0, 10)
    (size,) = struct.unpack_from(">I", body, end + 1)
    return Message(bool(body[1] & 1), lsn, body[10:end].decode(), body[end + 5 : end + 5 + size])


def truncate_of(body: bytes) -> Truncate:
    (count,) = struct.unpack_from(">I", body, 1)
    return Truncate(struct.unpack_from(f">{count}I", body, 6))


class Sent(NamedTuple):
    """One column of some rows. `unchanged` says which rows were not sent, or is None."""

    texts: Any
    unchanged: Any


@dataclass(frozen=True, slots=True)
class Rows:
    """Changes of one table, in columns. `before` and `after` have the rows that `has_before` and `has_after` choose."""

    operations: Any
    has_before: Any
    before_is_full: Any
    before: Sequence[Sent]
    has_after: Any
    after: Sequence[Sent]


def split(bodies: Sequence[bytes], head: int, width: int) -> Rows:
    """Splits inserts, updates and deletes of a table with `width` columns. Each body begins after `head` bytes.

    Raises `ConnectError` if a message is not what the relation said: then nothing of it can be believed.
    """
    lengths = np.fromiter(map(len, bodies), dtype=np.int64, count=len(bodies))
    data = b"".join([*bodies, b"\0" * 8])
    if len(data) >= 1 << 31:
        raise ConnectError("changes of one table are 2 GiB at once: lower the size of a batch")
    buffer = np.frombuffer(data, dtype=np.uint8)
    starts = np.cumsum(lengths) - lengths + head
    operations = buffer[starts]
    marks = buffer[starts + 5]
    has_before = (marks == _KEY) | (marks == _OLD)
    places = starts + 6
    held = pa.py_buffer(data)
    before, ends = _tuples(held, buffer, places[has_before], width) if has_before.any() else ([], places[:0])
    has_after = operations != DELETE
    places = places.copy()
    places[has_before] = ends + 1
    after, ends = _tuples(held, buffer, places[has_after], width) if has_after.any() else ([], places[:0])
    places[has_after] = ends
    whole = np.where(has_after, places, places - 1)
    if not np.array_equal(whole, starts - head + lengths):
        raise ConnectError("a change is longer or shorter than its table's columns: the replication stream is damaged")
    return Rows(operations, has_before, (marks == _OLD)[has_before], before, has_after, after)


def _tuples(held: Any, buffer: Any, places: Any, width: int) -> tuple[list[Sent], Any]:
    """The columns of tuples that begin at these places, and where they end."""
    counts = buffer[places].astype(np.int64) << 8 | buffer[places + 1]
    if not (counts == width).all():
        raise ConnectError("a change has another number of columns than its table: the replication stream is damaged")
    places = places + 2
    columns: list[Sent] = []
    for _ in range(width):
        letters = buffer[places]
        present = letters == _TEXT
        if not (present | (letters == _NULL) | (letters == _UNCHANGED)).all():
            raise ConnectError("a change has a value in a form that was not asked for (binary)")
        near = np.minimum(places, len(buffer) - 5)
        sizes = (
            buffer[near + 1].astype(np.int64) << 24
            | buffer[near + 2].astype(np.int64) << 16
            | buffer[near + 3].astype(np.int64) << 8
            | buffer[near + 4]
        )
        begins = np.where(present, places + 5, places)
        places = np.where(present, begins + sizes, places + 1)
        if len(places) and places.max() > len(buffer):
            raise ConnectError("a change ends before its last column: the replication stream is damaged")
        unchanged = letters == _UNCHANGED
        taken = slices(held, begins, np.where(present, places, begins), present)
        columns.append(Sent(taken.cast(pa.string()), unchanged if unchanged.any() else None))
    return columns, places
