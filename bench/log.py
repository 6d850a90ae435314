"""The log beside what the file system itself can do, in one run.

    append     64 KB batches, against a bare loop that writes the same bytes to a file beside it
    recovery   the scan after an unclean stop, against a bare loop that reads the same bytes and sums them up (CRC-32C)
    opening    1,000 partitions after a clean stop: time, and memory per partition

Run as `python bench/log.py`; OTTLA_BENCH_DIR says where (default: a temporary directory).
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from compare import print_table
from crc32c import crc32c

from ottla.base.ids import TopicPartition, Uuid
from ottla.log.directory import LogDirectory
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.records.builder import build_batch
from ottla.testing.clock import FixedClock

ROUNDS = 9
PARTITION = TopicPartition("bench", 0)
BYTES_PER_ROUND = 256 << 20


def batch_of(size: int) -> bytearray:
    value = bytes(1000)
    return build_batch(1_700_000_000_000, None, [value] * max(1, size // 1010))


def open_log(directory: Path, **settings: int) -> PartitionLog:
    return PartitionLog.open(OsDisk(), str(directory), PARTITION, LogConfig(**settings), FixedClock())


def append_ours(directory: Path, batch: bytearray, count: int) -> float:
    log = open_log(directory)
    start = perf_counter()
    for _ in range(count):
        log.append_as_leader(batch, 0)
    took = perf_counter() - start
    log.release()
    return took


def append_bare(directory: Path, batch: bytearray, count: int) -> float:
    fd = os.open(directory / "bare", os.O_RDWR | os.O_CREAT, 0o644)
    start = perf_counter()
    for _ in range(count):
        os.write(fd, batch)
    took = perf_counter() - start
    os.close(fd)
    return took


def recover_ours(directory: Path, batch: bytearray, count: int) -> float:
    append_ours(directory, batch, count)
    start = perf_counter()
    log = open_log(directory)
    took = perf_counter() - start
    assert log.log_end_offset > 0
    log.release()
    return took


def recover_bare(directory: Path, batch: bytearray, count: int) -> float:
    """Reads the file in the pieces it was written in, and checks each: what no recovery can do without."""
    append_bare(directory, batch, count)
    fd = os.open(directory / "bare", os.O_RDONLY)
    buffer = bytearray(len(batch))
    start = perf_counter()
    position = 0
    while read := os.preadv(fd, [buffer], position):
        crc32c(memoryview(buffer)[21:read])
        position += read
    took = perf_counter() - start
    os.close(fd)
    return took


def in_rounds(
    home: Path, ours: Callable[[Path, bytearray, int], float], bare: Callable[[Path, bytearray, int], float], size: int
) -> tuple[list[float], list[float]]:
    batch = batch_of(size)
    count = BYTES_PER_ROUND // len(batch)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        for which in (0, 1) if number % 2 else (1, 0):
            directory = Path(tempfile.mkdtemp(dir=home))
            times[which].append((ours, bare)[which](directory, batch, count) / (count * len(batch)))
            shutil.rmtree(directory)
    return times


def row(label: str, times: tuple[list[float], list[float]], target: float) -> list[str]:
    ratios = [bare / ours for ours, bare in zip(*times, strict=True)]
    low, ratio, high = quantiles(ratios, n=4)
    ours, bare = (f"{1e-6 / median(per_byte):,.0f} MB/s" for per_byte in times)
    verdict = "ok" if ratio >= target else "SHORT"
    return [label, ours, bare, f"{ratio:.2f}", f"{low:.2f}-{high:.2f}", f">= {target}", verdict]


# Opening is measured in a process of its own, so that nothing else is in its memory.
_OPEN = """
import gc, os, resource, sys, time
from ottla.log.directory import LogDirectory
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.testing.clock import FixedClock
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
config = LogConfig()
gc.collect()
before = resident()
start = time.perf_counter()
directory = LogDirectory(OsDisk(), sys.argv[1], FixedClock(), config_of=lambda topic: config)
directory.open_all()
took = time.perf_counter() - start
gc.collect()
print(took, (resident() - before) / len(directory.logs), len(os.listdir("/proc/self/fd")))
directory.close()
"""


def opening(home: Path, partitions: int) -> list[list[str]]:
    path = home / "many"
    directory = LogDirectory(OsDisk(), str(path), FixedClock(), config_of=lambda topic: LogConfig())
    batch = batch_of(4096)
    for number in range(partitions):
        log = directory.create(TopicPartition("many", number), Uuid(bytes(16)))
        log.append_as_leader(batch, 0)
        log.advance_high_watermark(log.log_end_offset)
    directory.close()
    found = [
        [float(word) for word in subprocess.check_output([sys.executable, "-c", _OPEN, str(path)], text=True).split()]
        for _ in range(5)
    ]
    took, per_partition, files = (median(column) for column in zip(*found, strict=True))
    times = [values[0] for values in found]
    sizes = [values[1] / 1024 for values in found]
    return [
        [
            f"open {partitions:,} partitions",
            f"{took:.2f} s",
            "",
            "",
            f"{min(times):.2f}-{max(times):.2f}",
            "< 1 s",
            "ok" if took < 1 else "SHORT",
        ],
        [
            "memory per partition",
            f"{per_partition / 1024:.1f} KB",
            "",
            "",
            f"{min(sizes):.1f}-{max(sizes):.1f}",
            "< 20 KB",
            "ok" if per_partition < 20 * 1024 else "SHORT",
        ],
        ["file descriptors held", f"{files:.0f}", "", "", "", "", ""],
    ]


def main() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    home = Path(tempfile.mkdtemp(dir=os.environ.get("OTTLA_BENCH_DIR")))
    try:
        rows = [
            row("append, 64 KB batches", in_rounds(home, append_ours, append_bare, 64 << 10), 0.6),
            row("append, 4 KB batches", in_rounds(home, append_ours, append_bare, 4 << 10), 0.0),
            row("recovery scan, 64 KB batches", in_rounds(home, recover_ours, recover_bare, 64 << 10), 0.5),
            row("recovery scan, 4 KB batches", in_rounds(home, recover_ours, recover_bare, 4 << 10), 0.0),
            *opening(home, 1000),
        ]
    finally:
        shutil.rmtree(home)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print_table(["what", "ottla", "bare", "ratio", "spread", "target", ""], rows)


if __name__ == "__main__":
    main()
