"""`ottla demo`: a log is written, read back, found by time, recovered and dumped, in a temporary directory.

It is a tour for a newcomer: every step prints what it does and what came of it, and the code below is the example.
"""

import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ottla.base.ids import TopicPartition, Uuid
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.log_dirs import LogDirs
from ottla.log.partition_log import PartitionLog
from ottla.records.builder import build_batch
from ottla.records.header import Compression

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = Uuid(b"ottla-demo-topic")
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
BATCHES = 300
RECORDS_PER_BATCH = 100
LINES_SHOWN = 5


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def main(arguments: list[str]) -> int:
    if arguments:
        print(__doc__)
        return 0 if arguments[0] in ("-h", "--help") else 2
    with TemporaryDirectory(prefix="ottla-demo-") as directory:
        data = Path(directory) / "data"
        write(data)
        recover_and_read(data)
        dump(data)
    print("\nThe directory is what Apache Kafka 4.3 would have written, and is gone now. Next: README.md has the tour.")
    return 0


def open_directory(data: Path) -> LogDirs:
    # A small segment, so that there are several to look at.
    directories = LogDirs(
        OsDisk(), [str(data)], SystemClock(), config_of=lambda topic: LogConfig(segment_bytes=500_000)
    )
    directories.open_all()
    return directories


def write(data: Path) -> None:
    step(
        "Write",
        f"{BATCHES} batches of {RECORDS_PER_BATCH} records to {ORDERS}, compressed in turn by nothing, lz4, zstd",
    )
    data.mkdir()
    directories = open_directory(data)
    log = directories.create(ORDERS, TOPIC_ID)
    written, start = 0, time.perf_counter()
    for number in range(BATCHES):
        batch = order_batch(number)
        written += len(batch)
        log.append_as_leader(batch, leader_epoch=0)
    log.flush()
    seconds = time.perf_counter() - start
    tell(
        f"{log.log_end_offset:,} records, {written / 1e6:.1f} MB in {len(log.segments)} segments, "
        f"on disk in {seconds:.2f} s"
    )
    directories.abandon()  # as a process that is killed would


def order_batch(number: int) -> bytearray:
    ids = range(number * RECORDS_PER_BATCH, (number + 1) * RECORDS_PER_BATCH)
    return build_batch(
        timestamps=[1_700_000_000_000 + 1000 * order for order in ids],
        keys=[b"customer-%d" % (order % 97) for order in ids],
        values=[b'{"order": %d, "total": %d.50, "currency": "EUR"}' % (order, order % 500) for order in ids],
        compression=CODECS[number % len(CODECS)],
    )


def recover_and_read(data: Path) -> None:
    step("Recover", "the log was not closed: opening it checks every batch and rebuilds the indexes")
    directories = open_directory(data)
    log = directories.get(ORDERS)
    assert log is not None, "the partition is in the directory it was created in"
    tell(f"offsets {log.log_start_offset:,} to {log.log_end_offset:,} are there")

    step("Read", "by offset, and by time")
    tell(next(record for record in records_from(log, 12_345) if record.startswith("12345 ")))
    found = log.offset_for_timestamp(1_700_000_000_000 + 20_000_000)
    assert found is not None, "the log has later records"
    tell(f"first record 20,000 seconds later: offset {found.offset}")

    if find_spec("pyarrow"):
        step("Arrow", "the same bytes as columns, with no Python object a record")
        tell(arrow_summary(log))
    directories.close()


def records_from(log: PartitionLog, offset: int) -> Iterator[str]:
    from ottla.records.batch import complete_batches
    from ottla.records.reader import read_records

    fetched = fetch(log, offset)
    for position, header in complete_batches(fetched):
        for record in read_records(fetched, position, header):
            yield f"{record.offset} {record.key!r} -> {record.value!r}"


def fetch(log: PartitionLog, offset: int) -> bytes:
    """What a fetch would send: a slice of the segment's file, as it is."""
    return log.read(offset, 1 << 20, log.log_end_offset, min_one_batch=True).read()


def arrow_summary(log: PartitionLog) -> str:
    from ottla.records import arrow

    rows = arrow.decode(fetch(log, 0), ORDERS.topic, ORDERS.partition)
    return f"a RecordBatch of {rows.num_rows:,} rows: {', '.join(rows.schema.names)}"


def dump(data: Path) -> None:
    from contextlib import redirect_stdout
    from io import StringIO
    from textwrap import wrap

    from ottla.cli import dump_log

    segment = sorted((data / str(ORDERS)).glob("*.log"))[0]
    step("Dump", f"ottla dump-log --files {ORDERS}/{segment.name}")
    printed = StringIO()
    with redirect_stdout(printed):
        dump_log.main(["--files", str(segment)])
    lines = printed.getvalue().replace(f"{data}/", "").splitlines()
    for line in lines[:LINES_SHOWN]:
        tell("\n      ".join(wrap(line, 110)))
    tell(f"… and {len(lines) - LINES_SHOWN} more lines")


def step(title: str, what: str) -> None:
    print(f"\n{title}: {what}", flush=True)


def tell(what: str) -> None:
    print(f"    {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
