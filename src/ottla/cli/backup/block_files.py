"""A partition's records in a back-up: files of blocks, each a few megabytes of Kafka's batches as a broker sent them.

Two files stand side by side. `….log.zst` is one zstd frame for each block, so `zstd -d` makes of it what Kafka calls a
segment; without compression it is `….log`, and is that segment. `….blocks` has a line for the file and a line for each
block: where it is, which offsets it covers, how many records are in it, and the XXH3 (128 bits) of its bytes as they
are stored. A line is JSON, a tab, and the CRC-32C of the JSON in hexadecimal.

Theory of operation. A block is written before its line is, and nothing is synced until the run ends. A crash leaves a
block without a line, a torn line, or, after a power cut, any part of both: `BlockWriter.resume` keeps the blocks up
to the first that does not match its line, and truncates both files there. A file of a finished run is never written
again.

A block may cover offsets of which it has no batch: records that compaction took, aborted transactions, markers.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ottla.base.checksum import crc32c
from ottla.base.errors import OttlaError
from ottla.base.lent import Seen
from ottla.base.ports import Buffer, Disk, File

FORMAT: Final = 1
NONE: Final = "none"
ZSTD: Final = "zstd"
COMPRESSIONS: Final = (ZSTD, NONE)
_SUFFIXES: Final = {ZSTD: ".log.zst", NONE: ".log"}
_INDEX_SUFFIX: Final = ".blocks"
_LEVEL: Final = 1
_LEVEL_OF_COMPRESSED: Final = -7
"""For batches that their producers have compressed: four times as fast, and there is nothing to gain."""
_LARGEST_BLOCK: Final = (1 << 31) + (64 << 20)
"""A batch is less than 2 GiB; a block is a few megabytes, or a batch that is larger."""


class Damaged(OttlaError):
    """Something in a back-up is not what was written there."""


class DamagedBlock(Damaged):
    """One block cannot be used. `begin` and `end` are the offsets that it covers."""

    def __init__(self, path: str, block: "Block", what: str) -> None:
        super().__init__(f"{path}, block at byte {block.at}: {what}; it has offsets {block.begin} to {block.end - 1}")
        self.path = path
        self.block = block


class FileHead(NamedTuple):
    """The first line of an index."""

    topic: str
    topic_id: str
    partition: int
    run: int
    isolation: str
    compression: str
    began_ms: int
    """When the run began to read the partition."""


class Block(NamedTuple):
    """A line of an index. Offsets are those of the source."""

    at: int
    size: int
    raw_bytes: int
    """Of its batches, when they are not compressed by us."""
    checksum: str
    begin: int
    """Records of its first batch that are before this offset do not count."""
    end: int
    batches: int
    records: int
    leader_epoch: int
    """Of its last batch; -1 if that is not known."""
    largest_batch: int
    transactions: tuple[tuple[int, int, str], ...] = ()
    """In a raw back-up: producer id, offset, and `data`, `commit` or `abort`, in the order of offsets."""


class Batches(NamedTuple):
    """What is to become a block."""

    pieces: Sequence[Seen]
    raw_bytes: int
    begin: int
    end: int
    batches: int
    records: int
    leader_epoch: int
    largest_batch: int
    transactions: tuple[tuple[int, int, str], ...]
    is_compressed: bool
    """By producers, most of it."""


_KEYS: Final = {
    "at": "at",
    "size": "size",
    "raw": "raw_bytes",
    "xxh3_128": "checksum",
    "begin": "begin",
    "end": "end",
    "batches": "batches",
    "records": "records",
    "epoch": "leader_epoch",
    "largest": "largest_batch",
}
"""Names in a line, and of the fields."""


def data_path(stem: str, compression: str) -> str:
    return stem + _SUFFIXES[compression]


def index_path(stem: str) -> str:
    return stem + _INDEX_SUFFIX


def stem_of(name: str) -> str | None:
    """What the names of both files begin with, if this is the name of an index."""
    return name.removesuffix(_INDEX_SUFFIX) if name.endswith(_INDEX_SUFFIX) else None


def checksum_of(data: Seen) -> str:
    from xxhash import xxh3_128_hexdigest

    return xxh3_128_hexdigest(data)


# Lines


def _line(document: dict[str, Any]) -> bytes:
    from json import dumps

    text = dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%s\t%08x\n" % (text, crc32c(text))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """None if the line is not as it was written."""
    text, tab, checksum = line.rpartition(b"\t")
    return parsed_json(text) if tab and checksum == b"%08x" % crc32c(text) else None


def parsed_json(text: bytes) -> dict[str, Any] | None:
    """None if it is not the JSON of an object. A checksum says that nothing was damaged, not who has written it."""
    from json import loads

    try:
        document = loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def are_counts(*values: object) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 63 for value in values)


def _head_line(head: FileHead) -> bytes:
    return _line({"format": FORMAT, **head._asdict()})


def _block_line(block: Block) -> bytes:
    document: dict[str, Any] = {key: getattr(block, field) for key, field in _KEYS.items()}
    if block.transactions:
        document["transactions"] = block.transactions
    return _line(document)


def _block_of(document: dict[str, Any]) -> Block | None:
    """None if it is not what a line should be."""
    try:
        block = Block(
            **{field: document[key] for key, field in _KEYS.items()},
            transactions=tuple(
                (producer, offset, event) for producer, offset, event in document.get("transactions", ())
            ),
        )
    except (KeyError, TypeError, ValueError):
        return None
    counts = (block.at, block.size, block.raw_bytes, block.begin, block.end, block.batches, block.records)
    is_sound = (
        are_counts(*counts, block.largest_batch)
        and type(block.leader_epoch) is int
        and max(block.raw_bytes, block.largest_batch) <= _LARGEST_BLOCK
        and block.begin <= block.end
        and all(type(producer) is int and type(offset) is int for producer, offset, _ in block.transactions)
    )
    return block if is_sound else None


def _head_of(document: dict[str, Any]) -> FileHead | None:
    try:
        head = FileHead(**document)
    except TypeError:
        return None
    is_sound = head.compression in COMPRESSIONS and are_counts(head.partition, head.run, head.began_ms)
    return head if is_sound and isinstance(head.isolation, str) else None


class Index(NamedTuple):
    """What the lines of an index say, up to the first that is damaged."""

    head: FileHead
    blocks: list[Block]
    size: int
    """Of these lines, in bytes."""
    is_whole: bool
    """Whether there is nothing behind them."""


def read_index(disk: Disk, stem: str) -> Index:
    """Raises `Damaged` if not even the head can be read, and `OSError`."""
    path = index_path(stem)
    file = disk.open(path)
    try:
        data = file.read_at(0, file.size())
    finally:
        file.close()
    head: FileHead | None = None
    blocks: list[Block] = []
    position = 0
    while (end := data.find(b"\n", position)) >= 0:
        document = _parsed(data[position:end])
        if document is None:
            break
        if head is None:
            if document.pop("format", None) != FORMAT:
                raise Damaged(f"{path}: a format that this version does not know")
            head = _head_of(document)
            if head is None:
                break
        else:
            block = _block_of(document)
            if block is None:
                break
            blocks.append(block)
        position = end + 1
    if head is None:
        raise Damaged(f"{path}: its first line is damaged")
    return Index(head, blocks, position, position == len(data))


# Blocks


def _compressed(data: Seen, compression: str, *, is_compressed: bool) -> Buffer:
    if compression == NONE:
        return data  # type: ignore[return-value]
    import cramjam

    return memoryview(cramjam.zstd.compress(data, level=_LEVEL_OF_COMPRESSED if is_compressed else _LEVEL))


def _decompressed(data: bytes, block: Block, compression: str, path: str) -> bytearray:
    if compression == NONE:
        if len(data) != block.raw_bytes:
            raise DamagedBlock(path, block, "its line gives it two sizes")
        return bytearray(data)
    import cramjam

    out = bytearray(block.raw_bytes)
    try:
        size = cramjam.zstd.decompress_into(data, out) if block.raw_bytes else 0
    except (cramjam.DecompressionError, ValueError, OSError) as problem:
        raise DamagedBlock(path, block, f"it cannot be decompressed: {problem}") from None
    if size != block.raw_bytes:
        raise DamagedBlock(path, block, f"it has {size} bytes and not {block.raw_bytes}")
    return out


class BlockReader:
    """The blocks of one file. Used by one thread at a time."""

    def __init__(self, disk: Disk, stem: str, compression: str) -> None:
        self.path = data_path(stem, compression)
        self._compression = compression
        self._file = disk.open(self.path)

    def read(self, block: Block) -> bytearray:
        """Its batches. Raises `DamagedBlock`, and `OSError` where the disk fails."""
        return _decompressed(self.stored(block), block, self._compression, self.path)

    def stored(self, block: Block) -> bytes:
        """As they are stored, and were when the block was written."""
        if not block.size:
            return b""
        # Before room is made for it.
        there = min(max(self._file.size() - block.at, 0), block.size)
        data = self._file.read_at(block.at, there)
        if len(data) != block.size:
            raise DamagedBlock(self.path, block, f"the file ends after {len(data)} of its {block.size} bytes")
        if checksum_of(data) != block.checksum:
            raise DamagedBlock(self.path, block, "it does not match its checksum")
        return data

    def close(self) -> None:
        self._file.close()


class BlockWriter:
    """One file of a run that is under way, with its index."""

    def __init__(self, disk: Disk, stem: str, head: FileHead) -> None:
        """Makes both files."""
        self.stem = stem
        self.head = head
        self.blocks: list[Block] = []
        self._data: File = disk.open(data_path(stem, head.compression), create=True)
        self._index: File = disk.open(index_path(stem), create=True)
        self._data.truncate(0)
        self._index.truncate(0)
        self.size = 0
        self._index_size = 0
        self._add_line(_head_line(head))

    @classmethod
    def resume(cls, disk: Disk, stem: str) -> "BlockWriter":
        """Opens the files that a run left which did not finish, up to where they are as they should be.

        Raises `Damaged` where nothing of them is of use, and `OSError`.
        """
        index = read_index(disk, stem)
        writer = cls.__new__(cls)
        writer.stem, writer.head, writer.blocks = stem, index.head, []
        writer.size = 0
        reader = BlockReader(disk, stem, index.head.compression)
        try:
            for block in index.blocks:
                try:
                    reader.stored(block)
                except DamagedBlock:
                    break
                writer.blocks.append(block)
                writer.size = block.at + block.size
        finally:
            reader.close()
        writer._data = disk.open(data_path(stem, index.head.compression))
        writer._index = disk.open(index_path(stem))
        writer._index_size = len(_head_line(index.head)) + sum(len(_block_line(block)) for block in writer.blocks)
        if writer._data.size() != writer.size:
            writer._data.truncate(writer.size)
        if writer._index.size() != writer._index_size:
            writer._index.truncate(writer._index_size)
        return writer

    @property
    def paths(self) -> list[str]:
        return [data_path(self.stem, self.head.compression), index_path(self.stem)]

    def append(self, batches: Batches) -> None:
        """Writes a block, and then its line. Nothing is synced."""
        stored: Buffer = b""
        if batches.raw_bytes:
            pieces = batches.pieces
            whole: Seen = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            stored = _compressed(whole, self.head.compression, is_compressed=batches.is_compressed)
            self._data.write_at(self.size, stored)
        block = Block(
            self.size,
            len(stored),
            batches.raw_bytes,
            checksum_of(stored),
            batches.begin,
            batches.end,
            batches.batches,
            batches.records,
            batches.leader_epoch,
            batches.largest_batch,
            batches.transactions,
        )
        self.size += len(stored)
        self._add_line(_block_line(block))
        self.blocks.append(block)

    def _add_line(self, line: bytes) -> None:
        self._index.write_at(self._index_size, line)
        self._index_size += len(line)

    def close(self) -> None:
        self._data.close()
        self._index.close()


def blocks_between(blocks: Sequence[Block], end: int) -> Iterator[Block]:
    """Those with offsets before `end`."""
    for block in blocks:
        if block.begin >= end:
            return
        yield block
