"""The codecs of record batches, as Kafka's clients write them, with levels, and with an end to what they may expand to.

A batch's records are compressed as one piece. `decompress` takes the most bytes its caller can bear, and no
codec here allocates more than that: what would be larger raises `DecompressionBomb`. Each codec finds out how
much room it needs from its own framing before it takes it (the lengths it finds there are claims, and are
held against the limit first).

The same records give Java's bytes in every golden batch of gzip (where both sit on the same zlib), lz4 and zstd; snappy
has an encoder of its own in each library, and only promises that everyone can read it.
"""

from functools import cache
from importlib import import_module
from typing import Final, Protocol, cast

from ottla.base.ports import Buffer
from ottla.records.faults import DecompressionBomb
from ottla.records.header import Compression, CorruptBatch

__all__ = ["DEFAULT_LEVELS", "DEFAULT_LIMIT", "LEVELS", "NAMES", "DecompressionBomb", "compress", "decompress"]

DEFAULT_LIMIT: Final = 128 << 20
"""As much as the largest zstd window, and a hundred times Kafka's default `max.message.bytes`."""

NAMES: Final = {codec.name.lower(): codec for codec in Compression}
"""Codecs by the names that `compression.type` knows them by."""

LEVELS: Final = {Compression.GZIP: range(1, 10), Compression.LZ4: range(1, 18), Compression.ZSTD: range(-131072, 23)}
"""The bounds of `compression.{gzip,lz4,zstd}.level` (KIP-390)."""

DEFAULT_LEVELS: Final = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}

_MODULES: Final = {
    Compression.GZIP: "gzip_member",
    Compression.SNAPPY: "xerial",
    Compression.LZ4: "lz4_frame",
    Compression.ZSTD: "zstd_frame",
}


class _Codec(Protocol):
    def compress(self, data: Buffer, level: int) -> Buffer: ...
    def decompress(self, data: memoryview, limit: int) -> Buffer: ...


@cache
def _codec(codec: int) -> _Codec:
    """Imported with the first batch that needs it: their libraries are larger than all else that a node loads."""
    return cast("_Codec", import_module(f"ottla.records.{_MODULES[Compression(codec)]}"))


def compress(codec: int, data: Buffer, level: int | None = None) -> Buffer:
    """`data` compressed; `level` is Kafka's number for the codec, or None for its default."""
    if codec == Compression.NONE:
        return data
    codec = Compression(codec)
    default = DEFAULT_LEVELS.get(codec, 0)
    if level is None or level == default:
        return _codec(codec).compress(data, default)
    if codec not in LEVELS or level not in LEVELS[codec]:
        raise ValueError(f"{codec.name.lower()} has no compression level {level}")
    return _codec(codec).compress(data, level)


def decompress(codec: int, data: Buffer, limit: int = DEFAULT_LIMIT) -> Buffer:
    """What was compressed. Raises `CorruptBatch` for what is not this codec's, `DecompressionBomb` beyond `limit`."""
    if codec == Compression.NONE:
        return data
    if codec not in _MODULES:
        raise CorruptBatch(f"no compression codec has the number {codec}")
    return _codec(codec).decompress(memoryview(data), limit)
