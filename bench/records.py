"""Record batches beside aiokafka's compiled record classes, in one run: `python bench/records.py`.

Batches of 64 KB of records with 100 byte or 1 KB values (text that lz4 makes about half as long) and 10 byte keys;
reading takes the 16 batches that make up a fetch of 1 MB. Each side does what its producer or consumer does for a
batch: building ends with the finished, checksummed batch; iterating checks the checksum (as `check.crcs` has it) and
reads offset, timestamp, key and value of every record. Arrow decoding checks it too, and is held against aiokafka's
iteration of the same bytes.
"""

import random
import sys
from collections.abc import Callable

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from compare import compare, print_table

from ottla.records import arrow
from ottla.records.batch import Compression, CorruptBatch, batches, checksum_matches
from ottla.records.builder import BatchBuilder, build_batch
from ottla.records.kernel import IS_COMPILED
from ottla.records.reader import read_records

BATCH_BYTES = 64 * 1024
BATCHES_IN_A_FETCH = 16
NOW = 1_700_000_000_000
TARGETS = {"build, a call per record": 1.5, "build, in bulk": 4.0, "iterate": 2.0, "decode to Arrow": 10.0}


class Workload:
    """The same records for both sides, and what each side does with them."""

    def __init__(self, value_size: int, compression: Compression) -> None:
        self.compression = compression
        self.count = BATCH_BYTES // value_size
        self.values = _text(value_size, self.count)
        self.keys = [b"key-%06d" % number for number in range(self.count)]
        self.timestamps = [NOW + number for number in range(self.count)]
        self.fetched = bytes(self.build_ours()) * BATCHES_IN_A_FETCH

    def build_ours(self) -> bytearray:
        builder = BatchBuilder(compression=self.compression, limit=10 * BATCH_BYTES)
        append = builder.append
        for timestamp, key, value in zip(self.timestamps, self.keys, self.values, strict=True):
            append(timestamp, key, value)
        return builder.build()

    def build_ours_in_bulk(self) -> bytearray:
        return build_batch(self.timestamps, self.keys, self.values, compression=self.compression)

    def build_theirs(self) -> bytearray:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=DefaultRecordBatch.CODEC_LZ4 if self.compression else 0,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=10 * BATCH_BYTES,
        )
        append = builder.append
        for offset, (timestamp, key, value) in enumerate(zip(self.timestamps, self.keys, self.values, strict=True)):
            append(offset, timestamp, key, value, [])
        return builder.build()

    def iterate_ours(self) -> None:
        for position, header in batches(self.fetched):
            if not checksum_matches(self.fetched, position, header):
                raise CorruptBatch("checksum")
            for record in read_records(self.fetched, position, header):
                read = record.offset
                read = record.timestamp
                read = record.key
                read = record.value  # noqa: F841 - reading is the work

    def iterate_theirs(self) -> None:
        records = MemoryRecords(self.fetched)
        while records.has_next():
            batch = records.next_batch()
            if not batch.validate_crc():
                raise CorruptBatch("checksum")
            for record in batch:
                read = record.offset
                read = record.timestamp
                read = record.key
                read = record.value  # noqa: F841 - reading is the work

    def decode_ours(self) -> None:
        for position, header in batches(self.fetched):
            if not checksum_matches(self.fetched, position, header):
                raise CorruptBatch("checksum")
        arrow.decode(self.fetched, "clicks", 0)


def main() -> None:
    if not IS_COMPILED:
        sys.exit("The compiled kernel is not built: python setup.py build_ext --inplace")
    rows = []
    for value_size in (100, 1000):
        for compression in (Compression.NONE, Compression.LZ4):
            load = Workload(value_size, compression)
            fetch = load.count * BATCHES_IN_A_FETCH
            what = f"{value_size} B, {compression.name.lower()}"
            rows += [
                _row("build, a call per record", what, load.count, load.build_ours, load.build_theirs),
                _row("build, in bulk", what, load.count, load.build_ours_in_bulk, load.build_theirs),
                _row("iterate", what, fetch, load.iterate_ours, load.iterate_theirs),
                _row("decode to Arrow", what, fetch, load.decode_ours, load.iterate_theirs),
            ]
    header = ["work", "records", "ours, M/s", "aiokafka, M/s", "times faster", "spread", "target", ""]
    print_table(header, sorted(rows, key=lambda row: list(TARGETS).index(row[0])))


def _row(work: str, what: str, count: int, ours: Callable[[], object], theirs: Callable[[], object]) -> list[str]:
    result = compare(ours, theirs, rounds=31, round_seconds=0.02)
    ratio = 1 / result.ratio
    return [
        work,
        what,
        f"{count / result.ours / 1e6:.2f}",
        f"{count / result.theirs / 1e6:.2f}",
        f"{ratio:.2f}",
        f"{1 / result.ratio_high:.2f}-{1 / result.ratio_low:.2f}",
        f"{TARGETS[work]:g}",
        "pass" if ratio >= TARGETS[work] else "FALLS SHORT",
    ]


def _text(value_size: int, count: int) -> list[bytes]:
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(2000)]
    text = " ".join(chance.choices(words, k=value_size * count // 4)).encode()
    return [text[number * value_size : (number + 1) * value_size] for number in range(count)]


if __name__ == "__main__":
    main()
