"""`ottla demo`: a node is started, written to, killed and started again, and all that was acknowledged is read back.

It is a tour for a newcomer: every step prints what it does and what came of it, and the code below is the example. It
speaks to the node as any Kafka client does, over a socket on this machine; a temporary directory holds the data.
"""

import socket
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from ottla.base.ids import Uuid
from ottla.records.batch import complete_batches
from ottla.records.builder import build_batch
from ottla.records.header import Compression
from ottla.records.reader import read_records
from ottla.testing.node import RunningNode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.message import Message
from ottla.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)

TOPIC = "orders"
FIRST_MS = 1_700_000_000_000
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
BATCHES = 300
RECORDS_PER_BATCH = 100
IN_FLIGHT = 5
LINES_SHOWN = 5

ResponseT = TypeVar("ResponseT", bound=Message)


class Client:
    """The least that speaks Kafka's protocol: requests out, replies in, in the same order."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=30)
        self._replies = self._socket.makefile("rb")

    def send(self, request: Message, version: int) -> None:
        self._socket.sendall(encode_request(request, version, correlation_id=1, client_id="demo"))

    def receive(self, response: type[ResponseT], version: int) -> ResponseT:
        size = int.from_bytes(self._replies.read(4), "big")
        _, reply = decode_response(response, self._replies.read(size), version)
        return reply  # type: ignore[no-any-return]

    def call(self, request: Message, response: type[ResponseT], version: int) -> ResponseT:
        self.send(request, version)
        return self.receive(response, version)

    def close(self) -> None:
        self._replies.close()
        self._socket.close()


def main(arguments: list[str]) -> int:
    if arguments:
        print(__doc__)
        return 0 if arguments[0] in ("-h", "--help") else 2
    step("Start", "a broker and controller in one process, on a free port")
    started = time.perf_counter()
    with RunningNode() as node:
        tell(
            f"ready at {node.bootstrap} in {time.perf_counter() - started:.2f} s, {node.rss_bytes() >> 20} MB of memory"
        )
        topic_id = write(node)
        crash(node)
        read(node, topic_id)
        node.stop()
        dump(node.data)
    print("\nThe directory is what Apache Kafka 4.3 would have written, and is gone now. Next: README.md has the tour.")
    return 0


def write(node: RunningNode) -> Uuid:
    step("Write", f"{BATCHES} batches of {RECORDS_PER_BATCH} records to {TOPIC}-0, by turns as they are, lz4 and zstd")
    client = Client(node.address)
    created = client.call(
        CreateTopicsRequest(
            topics=[CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)],
            timeout_ms=10_000,
        ),
        CreateTopicsResponse,
        7,
    )
    topic_id = Uuid(created.topics[0].topic_id)
    requests = [produce_request(topic_id, order_batch(number)) for number in range(BATCHES)]
    acknowledged, start = 0, time.perf_counter()
    for number, request in enumerate(requests):
        client.send(request, 13)
        if number >= IN_FLIGHT:
            acknowledged += acknowledged_records(client)
    while acknowledged < BATCHES * RECORDS_PER_BATCH:
        acknowledged += acknowledged_records(client)
    tell(
        f"{acknowledged:,} records acknowledged in {time.perf_counter() - start:.2f} s, {IN_FLIGHT} requests in flight"
    )
    client.close()
    return topic_id


def order_batch(number: int) -> bytearray:
    ids = range(number * RECORDS_PER_BATCH, (number + 1) * RECORDS_PER_BATCH)
    return build_batch(
        timestamps=[FIRST_MS + 1000 * order for order in ids],
        keys=[b"customer-%d" % (order % 97) for order in ids],
        values=[b'{"order": %d, "total": %d.50, "currency": "EUR"}' % (order, order % 500) for order in ids],
        compression=CODECS[number % len(CODECS)],
    )


def produce_request(topic_id: Uuid, batch: bytearray) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])


def acknowledged_records(client: Client) -> int:
    [topic] = client.receive(ProduceResponse, 13).responses
    [partition] = topic.partition_responses
    if partition.error_code:
        raise SystemExit(f"the node refused a batch: {partition}")
    return RECORDS_PER_BATCH


def crash(node: RunningNode) -> None:
    step("Crash", "kill -9, and start again on the same directory: every batch is checked, the indexes are rebuilt")
    node.kill()
    start = time.perf_counter()
    node.start()
    tell(f"back after {time.perf_counter() - start:.2f} s")


def read(node: RunningNode, topic_id: Uuid) -> None:
    client = Client(node.address)
    step("Read", "by offset, and by time")
    end = offset_at(client, timestamp=-1)
    tell(f"offsets 0 to {end:,} are there")
    tell(next(record for record in records_from(client, topic_id, 12_345) if record.startswith("12345 ")))
    tell(f"first record 20,000 seconds later: offset {offset_at(client, FIRST_MS + 20_000_000):,}")
    if find_spec("pyarrow"):
        step("Arrow", "the same bytes as columns, with no Python object a record")
        tell(arrow_summary(fetch(client, topic_id, 0)))
    client.close()


def offset_at(client: Client, timestamp: int) -> int:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=[asked])])
    return int(client.call(request, ListOffsetsResponse, 8).topics[0].partitions[0].offset)


def fetch(client: Client, topic_id: Uuid, offset: int) -> Any:
    """What a fetch brings: a slice of the segment's file, as it is."""
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=1000,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=[asked])],
    )
    return client.call(request, FetchResponse, 17).responses[0].partitions[0].records


def records_from(client: Client, topic_id: Uuid, offset: int) -> Iterator[str]:
    fetched = fetch(client, topic_id, offset)
    for position, header in complete_batches(fetched):
        for record in read_records(fetched, position, header):
            yield f"{record.offset} {record.key!r} -> {record.value!r}"


def arrow_summary(fetched: Any) -> str:
    from ottla.records import arrow

    rows = arrow.decode(fetched, TOPIC, 0)
    return f"a RecordBatch of {rows.num_rows:,} rows: {', '.join(rows.schema.names)}"


def dump(data: Path) -> None:
    from contextlib import redirect_stdout
    from io import StringIO
    from textwrap import wrap

    from ottla.cli import dump_log

    segment = sorted((data / f"{TOPIC}-0").glob("*.log"))[0]
    step("Dump", f"ottla dump-log --files {TOPIC}-0/{segment.name}")
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
