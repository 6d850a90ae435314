"""The digest of rows, in Python: what the compiled twin must give. See `ottla.spark.sink.digest`."""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final

from xxhash import xxh64_intdigest

from ottla.records._slow import cell
from ottla.records.columns import BinaryColumn, HeaderColumn

_MASK: Final = (1 << 64) - 1
_BOUNDS: Final = Struct("=ii")


def rows_digest(row_count: int, columns: Sequence[BinaryColumn | None], headers: HeaderColumn | None) -> int:
    """The sum of the hashes of all rows, modulo 2**64: the same in whichever order rows come, and in how many pieces.

    A row's hash is that of its cells, XXH64 of each with the hash of those before it as seed, headers last. A null cell
    is not an empty one: it is hashed under the seed's complement. A column that is not there is a column of nulls.
    """
    total = 0
    for row in range(row_count):
        hashed = 0
        for column in columns:
            hashed = _folded(hashed, None if column is None else cell(column, row))
        for one in _header_cells(headers, row):
            hashed = _folded(hashed, one)
        total += hashed
    return total & _MASK


def _folded(hashed: int, value: bytes | None) -> int:
    return xxh64_intdigest(b"", hashed ^ _MASK) if value is None else xxh64_intdigest(value, hashed)


def _header_cells(headers: HeaderColumn | None, row: int) -> Iterator[bytes | None]:
    if headers is not None:
        first, end = _BOUNDS.unpack_from(headers.offsets, (headers.first + row) * 4)
        for entry in range(first, end):
            yield cell(headers.keys, entry)
            yield cell(headers.values, entry)
