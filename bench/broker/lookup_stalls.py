"""Work for the disk and the processor that comes with small requests: lookups by time, cold indexes, odd compression.

Each of these is a worker's, or is given up on the loop after a millisecond.
"""

import os
import time
from pathlib import Path
from random import Random

from contenders import Contender
from load import LARGE, LARGE_RECORDS, fetch, produce
from wire_client import WireClient, fetch_request

from ottla.records.batch import HEADER_SIZE, read_header, write_header
from ottla.records.builder import build_batch
from ottla.records.compression import compress
from ottla.records.header import Compression
from ottla.wire.messages import ListOffsetsRequest

NOW_MS = int(time.time() * 1000)
SEGMENT_BYTES = 1 << 20
MAX_TIMESTAMP = -3


def fill_expanding(node: Contender) -> None:
    """Batches that take tens of megabytes once decompressed, in two shapes: few large records, many small ones."""
    few = build_batch(NOW_MS, None, [bytes(1 << 20)] * 64, compression=Compression.ZSTD)
    many = build_batch(NOW_MS, None, [b"x" * 20] * 1_000_000, compression=Compression.ZSTD)
    with WireClient(node.bootstrap) as client:
        for name, batch in (("few", few), ("many", many)):
            client.create_topic(f"expanding-{name}")
            for _ in range(3):
                client.produce_to_all(f"expanding-{name}", 1, bytes(batch))


def lookups_that_decompress(node: Contender) -> None:
    """By a time that the first of the records has, and by the largest."""
    _look_up(node, ["expanding-few", "expanding-many"], 10)


def fill_segments(node: Contender) -> None:
    """Hundreds of segments, each with its own indexes."""
    with WireClient(node.bootstrap) as client:
        client.create_topic("segments", segment_bytes=str(SEGMENT_BYTES), index_interval_bytes="4096")
    produce(node.bootstrap, "segments", LARGE, LARGE_RECORDS, acks=1, in_flight=5, seconds=30, most_bytes=300 << 20)


def cold_lookups(node: Contender) -> None:
    for _ in range(3):
        _drop_everything(node.data / "segments-0")
        _look_up(node, ["segments"], 1)


def cold_indexes(node: Contender) -> None:
    """Small reads anywhere in the log, none of which finds anything in memory."""
    random = Random(0)
    with WireClient(node.bootstrap) as client:
        end = client.end_offset("segments")
        for _ in range(10):
            _drop_everything(node.data / "segments-0")
            fetch(client.socket, [fetch_request("segments", random.randrange(end), 4096) for _ in range(50)])


def many_members(node: Contender) -> None:
    """Batches of gzip whose records are in members of almost nothing: 60 KB, and as large as is allowed."""
    with WireClient(node.bootstrap) as client:
        client.create_topic("members")
        for size in (60_000, 900_000):
            batch = _in_members(size)
            for _ in range(5):
                client.produce_to_all("members", 1, batch)


def _in_members(size: int) -> bytes:
    plain = build_batch(NOW_MS, None, [b"x"])
    member, empty = (bytes(compress(Compression.GZIP, data)) for data in (bytes(plain[HEADER_SIZE:]), b""))
    batch = bytearray(plain[:HEADER_SIZE]) + member + empty * ((size - len(member)) // len(empty))
    header = read_header(plain)._replace(attributes=Compression.GZIP)
    write_header(batch, header)
    return bytes(batch)


def _look_up(node: Contender, topics: list[str], times: int) -> None:
    with WireClient(node.bootstrap) as client:
        for timestamp in (NOW_MS, MAX_TIMESTAMP) * times:
            asked = [
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)],
                )
                for topic in topics
            ]
            for topic in client.ask(ListOffsetsRequest(replica_id=-1, topics=asked), 7).topics:
                if topic.partitions[0].error_code:
                    raise RuntimeError(f"error {topic.partitions[0].error_code} for a time in {topic.name}")


def _drop_everything(directory: Path) -> None:
    """Indexes too."""
    for file in directory.iterdir():
        fd = os.open(file, os.O_RDWR)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
