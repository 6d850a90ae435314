"""Messages as pgoutput writes them, for tests without a server."""

import struct
from collections.abc import Sequence

UNCHANGED = object()


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def tuple_of(values: Sequence[object]) -> bytes:
    parts = [struct.pack(">H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is UNCHANGED:
            parts.append(b"u")
        else:
            content = str(value).encode()
            parts.append(b"t" + struct.pack(">I", len(content)) + content)
    return b"".join(parts)


def message(lsn: int, body: bytes) -> bytes:
    return b"w" + struct.pack(">QQq", lsn, lsn, 0) + body


def begin(lsn: int, final_lsn: int, xid: int, commit_us: int = 0) -> bytes:
    return message(lsn, b"B" + struct.pack(">QqI", final_lsn, commit_us, xid))


def commit(final_lsn: int, end_lsn: int, commit_us: int = 0) -> bytes:
    return message(end_lsn, b"C\0" + struct.pack(">QQq", final_lsn, end_lsn, commit_us))


def relation(
    oid: int, schema: str, name: str, columns: Sequence[tuple[str, int, int, bool]], identity: str = "d"
) -> bytes:
    parts = [b"R", struct.pack(">I", oid), text(schema), text(name), identity.encode(), struct.pack(">H", len(columns))]
    for column, type_oid, modifier, is_key in columns:
        parts.append(bytes([is_key]) + text(column) + struct.pack(">Ii", type_oid, modifier))
    return message(0, b"".join(parts))


def insert(lsn: int, oid: int, values: Sequence[object]) -> bytes:
    return message(lsn, b"I" + struct.pack(">I", oid) + b"N" + tuple_of(values))


def update(
    lsn: int, oid: int, values: Sequence[object], old: Sequence[object] | None = None, mark: bytes = b"K"
) -> bytes:
    before = b"" if old is None else mark + tuple_of(old)
    return message(lsn, b"U" + struct.pack(">I", oid) + before + b"N" + tuple_of(values))


def delete(lsn: int, oid: int, old: Sequence[object], mark: bytes = b"K") -> bytes:
    return message(lsn, b"D" + struct.pack(">I", oid) + mark + tuple_of(old))


def truncate(lsn: int, *oids: int) -> bytes:
    return message(lsn, b"T" + struct.pack(f">IB{len(oids)}I", len(oids), 0, *oids))


def logical_message(lsn: int, prefix: str, content: bytes, *, transactional: bool) -> bytes:
    head = b"M" + bytes([transactional]) + struct.pack(">Q", lsn)
    return message(lsn, head + text(prefix) + struct.pack(">I", len(content)) + content)
