"""How a record says of which schema it is: Confluent's framing, before the bytes or in a header.

| where | bytes |
| --- | --- |
| before the value | `0`, the id in 4 bytes; for Protobuf the message indexes behind it |
| in the header `__key_schema_id` or `__value_schema_id` | `1`, the guid in 16 bytes; for Protobuf the message indexes
behind it |

Message indexes lead from the file to the message, from the outermost in: their number and each of them as zigzag
varints. `[0]`, the first message, is a single zero.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from ottla.schemas.faults import CannotDecode

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"
MOST_INDEXES: Final = 1_000

Header = tuple[str, bytes | None]


class Frame(NamedTuple):
    """What a record says of its schema: an id or a guid, the message indexes (Protobuf), and where its own bytes
    begin."""

    id: int | None
    guid: str | None
    indexes: tuple[int, ...]
    start: int


def prefix(id: int, indexes: Sequence[int] | None = None) -> bytes:
    """What stands before the bytes of a record."""
    return b"\0" + id.to_bytes(4, "big") + (index_bytes(indexes) if indexes is not None else b"")


def header_value(guid: str, indexes: Sequence[int] | None = None) -> bytes:
    """What stands in the header."""
    return b"\1" + UUID(guid).bytes + (index_bytes(indexes) if indexes is not None else b"")


def read_frame(
    content: bytes | bytearray | memoryview, headers: Iterable[Header], is_key: bool, has_indexes: bool
) -> Frame:
    """The frame of a record: the last header of that name, if there is one, else what stands before the bytes. Raises
    `CannotDecode` if there is neither."""
    name = KEY_HEADER if is_key else VALUE_HEADER
    found = None
    for key, value in headers or ():
        if key == name and value is not None:
            found = value
    if found is not None:
        frame = _read(bytes(found), has_indexes, f"the header {name}")
        return frame._replace(start=0)
    return _read(bytes(content[:64]) if len(content) > 64 else bytes(content), has_indexes, "the record", content)


def _read(start: bytes, has_indexes: bool, where: str, whole: bytes | bytearray | memoryview | None = None) -> Frame:
    if not start:
        raise CannotDecode(f"{where} is empty, and has no id of a schema")
    if start[0] == 0 and len(start) >= 5:
        id, guid, at = int.from_bytes(start[1:5], "big"), None, 5
    elif start[0] == 1 and len(start) >= 17:
        id, guid, at = None, str(UUID(bytes=start[1:17])), 17
    else:
        raise CannotDecode(f"{where} begins with byte {start[0]}, and has no id of a schema")
    if not has_indexes:
        return Frame(id, guid, (), at)
    indexes, at = read_indexes(start if whole is None else whole, at)
    return Frame(id, guid, indexes, at)


def index_bytes(indexes: Sequence[int]) -> bytes:
    """Message indexes in Confluent's form."""
    if list(indexes) == [0]:
        return b"\0"
    out = bytearray()
    for number in (len(indexes), *indexes):
        zigzag = number << 1
        while zigzag > 0x7F:
            out.append((zigzag & 0x7F) | 0x80)
            zigzag >>= 7
        out.append(zigzag)
    return bytes(out)


def read_indexes(content: bytes | bytearray | memoryview, at: int) -> tuple[tuple[int, ...], int]:
    """Message indexes, and where they end. Raises `CannotDecode`."""
    count, at = _varint(content, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= MOST_INDEXES:
        raise CannotDecode(f"{count} message indexes, and there may be {MOST_INDEXES}")
    indexes: list[int] = []
    for _ in range(count):
        index, at = _varint(content, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(content: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(content):
            raise CannotDecode("the record ends within its message indexes")
        byte = content[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > 28:
            raise CannotDecode("a message index has more than 32 bits")
