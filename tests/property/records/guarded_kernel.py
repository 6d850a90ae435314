"""Runs the compiled kernel over memory that ends where no page is: a read past the end is the end of the process.

    python guarded_kernel.py FIRST_SEED CASES

A program of its own, so that a test outlives it.
"""

import random
import sys
from collections.abc import Callable
from contextlib import suppress

from ottla.records import _fast, fetched
from ottla.records.batch import CorruptBatch
from ottla.records.builder import build_batch
from tests.property.records.guarded_memory import Guarded
from tests.property.records.test_twins import HEADER_SIZE, mutated, repair_checksums, some_records

_MOST_COUNT = (1 << 31) - 1


def run(guarded: Guarded, chance: random.Random) -> None:
    timestamps, keys, values, headers = map(list, zip(*some_records(chance), strict=True))
    batch = build_batch(timestamps, keys, values, headers)
    data = bytearray(mutated(chance, batch))
    if chance.random() < 0.8:
        repair_checksums(data)
    del data[len(data) - chance.choice([0, 0, 1, 3, 8]) :]
    told = int.from_bytes(data[57:61], "big", signed=True) if len(data) >= HEADER_SIZE else 0
    count = chance.choice([1, 2, 6, told, told, _MOST_COUNT])

    def attempt(work: Callable[[memoryview], object], content: bytes | bytearray) -> None:
        with suppress(CorruptBatch, ValueError, OverflowError):
            work(guarded.hold(content))

    def columns(view: memoryview) -> None:
        reader = _fast.ColumnReader()
        reader.add(view, 0, 0, None, count, 0, 1 << 40)
        reader.finish()

    def take(view: memoryview) -> None:
        records, out = fetched.fetched_records("orders", 0, view, 0, check_crcs=chance.random() < 0.5), []
        while True:
            before = len(out)
            records.take(out, 5)
            if len(out) == before:
                return

    records, offsets = data[HEADER_SIZE:], _fast.OffsetMap(10, 8, bytes(16))
    attempt(lambda view: list(_fast.RecordReader(view, 0, 0, None, count)), records)
    attempt(lambda view: _fast.scan(view, 0, count), records)
    attempt(columns, records)
    attempt(lambda view: offsets.learn(view, 0, count, 0), records)
    attempt(lambda view: offsets.retain(view, 0, 0, None, count, True, False, 5, HEADER_SIZE), records)
    attempt(lambda view: _fast.PlainBatches(1 << 20, 1 << 62, 1 << 62, False).header_of(view, 0), data)
    attempt(lambda view: offsets.learn_run(view, 0, 0, 1 << 31), data)
    attempt(lambda view: offsets.retain_run(view, 0, 1 << 31, {-1: 1}, bytearray()), data)
    attempt(take, batch + data)


def main(first_seed: int, cases: int) -> None:
    guarded = Guarded()
    for seed in range(first_seed, first_seed + cases):
        sys.stderr.write(f"\rseed {seed}")  # The last one that is told of is the one to look at.
        run(guarded, random.Random(seed))
    sys.stdout.write(f"{cases} cases\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
