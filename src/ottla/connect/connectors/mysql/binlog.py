"""Events of the binary log: their heads, and the bodies of those that are few. Rows are read in columns (`rows`).

Every event begins with 19 bytes: when, what, of which server, how long, where the next one begins, flags. A transaction
of MariaDB's is GTID, then for each statement TABLE_MAP and ROWS, then XID (or QUERY `COMMIT` for engines without
transactions). MySQL has a QUERY `BEGIN` behind its GTID. DDL is a QUERY alone. The columns of a table come with each
TABLE_MAP: their types always, and with `binlog_row_metadata=FULL` also their names, signs, character sets, the labels
of enums and sets, and the primary key.
"""

import struct
import zlib
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.errors import ConnectError

HEAD: Final = 19
_HEAD: Final = struct.Struct("<IBIIIH")

QUERY, STOP, ROTATE, FORMAT, XID, TABLE_MAP, INCIDENT, HEARTBEAT = 2, 3, 4, 15, 16, 19, 26, 27
GTID, ANONYMOUS_GTID, XA_PREPARE, PARTIAL_UPDATE, TRANSACTION_PAYLOAD, HEARTBEAT_V2 = 33, 34, 38, 39, 40, 41
GTID_TAGGED = 42
ANNOTATE_ROWS, MARIADB_GTID, START_ENCRYPTION, QUERY_COMPRESSED = 160, 162, 164, 165

INSERT, UPDATE, DELETE = ord("I"), ord("U"), ord("D")
ROWS: Final = {
    23: (INSERT, 1, False), 24: (UPDATE, 1, False), 25: (DELETE, 1, False),
    30: (INSERT, 2, False), 31: (UPDATE, 2, False), 32: (DELETE, 2, False),
    166: (INSERT, 1, True), 167: (UPDATE, 1, True), 168: (DELETE, 1, True),
    169: (INSERT, 2, True), 170: (UPDATE, 2, True), 171: (DELETE, 2, True),
}  # fmt: skip
"""What a rows event does, the version of its form, and whether MariaDB compressed its rows (`log_bin_compress`)."""

_STANDALONE: Final = 1


class Damaged(ConnectError):
    """Bytes that are no event, or no event that was asked for."""


class Event(NamedTuple):
    """`end` is where the next event begins in its file; 0 if the server made this one up for the connection."""

    seconds: int
    kind: int
    server_id: int
    size: int
    end: int
    flags: int
    body: bytes

    @property
    def start(self) -> int:
        return self.end - self.size


def event_of(data: bytes, *, has_checksum: bool) -> Event:
    """One event, of the bytes behind the packet's 0. A checksum is held, and cut off. Raises `Damaged`."""
    if len(data) < HEAD:
        raise Damaged(f"an event of {len(data)} bytes is no event of the binary log")
    seconds, kind, server_id, size, end, flags = _HEAD.unpack_from(data)
    if size != len(data):
        raise Damaged(f"an event of kind {kind} says that it has {size} bytes, and has {len(data)}")
    if kind == FORMAT:
        return Event(seconds, kind, server_id, size, end, flags, data[HEAD:])
    if has_checksum:
        told = int.from_bytes(data[-4:], "little")
        # The bit that says that the file is in use was not set when the sum was made; only FORMAT has it.
        if zlib.crc32(data[:-4]) != told:
            raise Damaged(f"the event of kind {kind} that ends at {end} does not have its checksum: it was damaged")
        return Event(seconds, kind, server_id, size, end, flags, data[HEAD:-4])
    return Event(seconds, kind, server_id, size, end, flags, data[HEAD:])


def has_checksums(body: bytes) -> bool:
    """Whether the events behind a FORMAT event have checksums: its last five bytes are the kind and its own sum, in
    all servers since MySQL 5.6 and MariaDB 5.3."""
    version = body[2:52].split(b"\0")[0]
    numbers = [
        int("".join(letter for letter in part if letter.isdigit()) or 0)
        for part in version.decode("ascii", "replace").split("-")[0].split(".")[:3]
    ]
    return numbers >= [5, 3, 0] and len(body) > 5 and body[-5] == 1


@dataclass(frozen=True, slots=True)
class Rotate:
    file: str
    position: int


def rotate_of(body: bytes) -> Rotate:
    return Rotate(body[8:].decode(), int.from_bytes(body[:8], "little"))


@dataclass(frozen=True, slots=True)
class Gtid:
    """`text` is None for a transaction of MySQL's without a GTID. `is_alone`: one event follows, and no commit."""

    text: str | None
    begins: bool
    """Whether the transaction begins here: MariaDB's has no BEGIN."""
    is_alone: bool = False
    commit_us: int | None = None


def mariadb_gtid_of(event: Event) -> Gtid:
    sequence, domain, flags = struct.unpack_from("<QIB", event.body)
    is_alone = bool(flags & _STANDALONE)
    return Gtid(f"{domain}-{event.server_id}-{sequence}", not is_alone, is_alone)


def gtid_of(event: Event) -> Gtid:
    """MySQL's. Since 8.0.1 it says when the transaction was committed, in microseconds; the highest bit of the first
    of two times says that the other one, of the server it comes from, is there too."""
    body = event.body
    text = None
    if event.kind == GTID:
        hexed = body[1:17].hex()
        uuid = "-".join((hexed[:8], hexed[8:12], hexed[12:16], hexed[16:20], hexed[20:]))
        text = f"{uuid}:{int.from_bytes(body[17:25], 'little')}"
    commit_us = None
    if len(body) >= 42 + 7 and body[25] == 2:
        now = int.from_bytes(body[42:49], "little")
        commit_us = now & ~(1 << 55)
        if now >> 55 and len(body) >= 56:
            commit_us = int.from_bytes(body[49:56], "little")
    return Gtid(text, False, commit_us=commit_us)


@dataclass(frozen=True, slots=True)
class Query:
    database: str
    text: str
    thread: int


def query_of(body: bytes, *, is_compressed: bool = False) -> Query:
    thread, _, length, _, variables = struct.unpack_from("<IIBHH", body)
    at = 13 + variables
    database = body[at : at + length].decode("utf-8", "replace")
    text = body[at + length + 1 :]
    if is_compressed:
        text = inflated(text)
    return Query(database, text.decode("utf-8", "replace"), thread)


def inflated(content: bytes) -> bytes:
    """What MariaDB compressed: a byte that says how many bytes say how long it was, those, and a stream of zlib's."""
    if not content or not content[0] & 0x80:
        raise Damaged("a compressed event does not begin as one")
    return zlib.decompress(content[1 + (content[0] & 7) :])


def payload_events(body: bytes) -> list[bytes]:
    """The events within a TRANSACTION_PAYLOAD of MySQL's (`binlog_transaction_compression`)."""
    at, kind, size, plain = 0, 255, 0, 0
    while at < len(body):
        field_kind, at = lenenc(body, at)
        if field_kind == 0:
            break
        length, at = lenenc(body, at)
        value, _ = lenenc(body, at)
        at += length
        if field_kind == 1:
            size = value
        elif field_kind == 2:
            kind = value
        elif field_kind == 3:
            plain = value
    content = body[at : at + size] if size else body[at:]
    if kind == 0:
        content = pa.Codec("zstd").decompress(content, plain).to_pybytes()
    elif kind != 255:
        raise Damaged(f"a transaction is compressed in a way ({kind}) that is not known")
    found: list[bytes] = []
    at = 0
    while at < len(content):
        length = int.from_bytes(content[at + 9 : at + 13], "little")
        if length < HEAD:
            raise Damaged("a compressed transaction has an event without a length")
        found.append(content[at : at + length])
        at += length
    return found


def lenenc(body: bytes, at: int) -> tuple[int, int]:
    """A number of one, three, four or nine bytes, and where it ends."""
    first = body[at]
    if first < 251:
        return first, at + 1
    width = {252: 2, 253: 3, 254: 8}.get(first)
    if width is None:
        raise Damaged("a length in an event is null")
    return int.from_bytes(body[at + 1 : at + 1 + width], "little"), at + 1 + width


@dataclass(frozen=True, slots=True)
class MapColumn:
    """A column as TABLE_MAP has it. `kind` is MySQL's number of a type; `meta` its metadata. What follows is None where
    the server does not say (`binlog_row_metadata`)."""

    kind: int
    meta: int
    nullable: bool
    name: str | None = None
    unsigned: bool | None = None
    collation: int | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    number: int
    database: str
    table: str
    columns: tuple[MapColumn, ...]
    key: tuple[int, ...] | None = None
    """Places of the primary key's columns, in its order. None if the server does not say."""
    raw: bytes = field(default=b"", repr=False, compare=False)

    @property
    def has_names(self) -> bool:
        return bool(self.columns) and self.columns[0].name is not None


TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)
VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 15, 16, 17, 18, 19
JSON, NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY = 245, 246, 247, 248, 252, 253, 254, 255
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED = 249, 250, 251, 140, 141

_META_BYTES: Final = {
    FLOAT: 1, DOUBLE: 1, BLOB: 1, GEOMETRY: 1, JSON: 1, TIMESTAMP2: 1, DATETIME2: 1, TIME2: 1, BLOB_COMPRESSED: 1,
    TINY_BLOB: 1, MEDIUM_BLOB: 1, LONG_BLOB: 1,
    VARCHAR: 2, VARCHAR_COMPRESSED: 2, BIT: 2, NEWDECIMAL: 2, ENUM: 2, SET: 2, STRING: 2, VAR_STRING: 2,
}  # fmt: skip
_NUMERIC: Final = frozenset([TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, NEWDECIMAL, YEAR])
_TEXTUAL: Final = frozenset(
    [VARCHAR, VAR_STRING, STRING, BLOB, TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED]
)


def table_number(body: bytes) -> int:
    return int.from_bytes(body[:6], "little")


def table_map_of(body: bytes, *, is_mariadb: bool = True) -> TableMap:
    """MariaDB counts geometry among the columns that have a character set, MySQL does not. Raises `Damaged`."""
    try:
        return _table_map_of(body, _TEXTUAL | {GEOMETRY} if is_mariadb else _TEXTUAL)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Damaged(f"a TABLE_MAP event cannot be read: {error}") from None


def _table_map_of(body: bytes, textual_kinds: frozenset[int]) -> TableMap:
    at = 8
    length = body[at]
    database = body[at + 1 : at + 1 + length].decode()
    at += length + 2
    length = body[at]
    table = body[at + 1 : at + 1 + length].decode()
    at += length + 2
    count, at = lenenc(body, at)
    kinds = list(body[at : at + count])
    at += count
    size, at = lenenc(body, at)
    metas = _metas(kinds, body[at : at + size])
    at += size
    nulls = body[at : at + (count + 7) // 8]
    at += (count + 7) // 8
    for place, (kind, meta) in enumerate(zip(kinds, metas, strict=True)):
        if kind == STRING:  # CHAR, BINARY, ENUM and SET: the true type is in the metadata, with a part of the length
            real, low = meta & 0xFF, meta >> 8
            if real in (ENUM, SET):
                kinds[place], metas[place] = real, low
            else:
                metas[place] = ((real & 0x30) ^ 0x30) << 4 | low
    columns = [
        MapColumn(kind, meta, bool(nulls[place >> 3] >> (place & 7) & 1))
        for place, (kind, meta) in enumerate(zip(kinds, metas, strict=True))
    ]
    key = _add_optional(columns, body, at, textual_kinds)
    return TableMap(table_number(body), database, table, tuple(columns), key, body)


def _metas(kinds: list[int], content: bytes) -> list[int]:
    found: list[int] = []
    at = 0
    for kind in kinds:
        width = _META_BYTES.get(kind, 0)
        found.append(int.from_bytes(content[at : at + width], "little"))
        at += width
    return found


def _add_optional(
    columns: list[MapColumn], body: bytes, at: int, textual_kinds: frozenset[int]
) -> tuple[int, ...] | None:
    """Reads what `binlog_row_metadata` adds: fields of a kind, a length and a value."""
    told: dict[int, bytes] = {}
    while at < len(body):
        kind = body[at]
        length, start = lenenc(body, at + 1)
        told[kind] = body[start : start + length]
        at = start + length
    numeric = [place for place, one in enumerate(columns) if one.kind in _NUMERIC]
    textual = [place for place, one in enumerate(columns) if one.kind in textual_kinds]
    labelled = [place for place, one in enumerate(columns) if one.kind in (ENUM, SET)]
    changes: list[dict[str, object]] = [{} for _ in columns]
    if 1 in told:
        for number, place in enumerate(numeric):
            changes[place]["unsigned"] = bool(told[1][number >> 3] << (number & 7) & 0x80)
    for places, default, each in ((textual, 2, 3), (labelled, 10, 11)):
        if default in told:
            numbers = _numbers(told[default])
            pairs = dict(zip(numbers[1::2], numbers[2::2], strict=True))
            for number, place in enumerate(places):
                changes[place]["collation"] = pairs.get(number, numbers[0])
        elif each in told:
            for place, number in zip(places, _numbers(told[each]), strict=True):
                changes[place]["collation"] = number
    if 4 in told:
        start = 0
        for place in range(len(columns)):
            length, start = lenenc(told[4], start)
            changes[place]["name"] = told[4][start : start + length].decode()
            start += length
    for kind, wanted in ((5, SET), (6, ENUM)):
        if kind in told:
            start = 0
            for place in (one for one in labelled if columns[one].kind == wanted):
                count, start = lenenc(told[kind], start)
                labels: list[str] = []
                for _ in range(count):
                    length, start = lenenc(told[kind], start)
                    labels.append(told[kind][start : start + length].decode("utf-8", "replace"))
                    start += length
                changes[place]["labels"] = tuple(labels)
    for place, change in enumerate(changes):
        if change:
            one = columns[place]
            columns[place] = MapColumn(one.kind, one.meta, one.nullable, **change)  # type: ignore[arg-type]
    if 8 in told:
        return tuple(_numbers(told[8]))
    if 9 in told:
        return tuple(_numbers(told[9])[::2])
    return () if 4 in told else None


def _numbers(content: bytes) -> list[int]:
    found: list[int] = []
    at = 0
    while at < len(content):
        number, at = lenenc(content, at)
        found.append(number)
    return found
