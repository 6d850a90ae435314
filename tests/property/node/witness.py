"""An innocent client of the node that others abuse: it writes and reads on a connection that it opened before."""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from ottla.records.builder import BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateTopicsRequest, FetchRequest, ListOffsetsRequest, ProduceRequest
from tests.property.node.raw_connection import RawConnection

_numbers = count()
PATIENCE_S = 10.0


class Witness:
    """`check` fails when the node answers late, wrongly or not at all, or has grown by more than `growth_bytes`."""

    def __init__(self, bootstrap: str, rss_bytes: Callable[[], int] | None, patience_s: float = PATIENCE_S) -> None:
        self._connection = RawConnection(bootstrap, patience_s)
        self._rss_bytes = rss_bytes
        self._topic = f"witness-{next(_numbers)}"
        topic = CreateTopicsRequest.CreatableTopic(name=self._topic, num_partitions=1, replication_factor=1)
        self._connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        self._wait_for_a_leader()
        self._count = 0
        self.slowest_s = 0.0
        for _ in range(20):
            self.check()  # first calls load code: what is measured is the damage
        self._rss_at_first = rss_bytes() if rss_bytes else 0
        self.slowest_s = 0.0

    def _wait_for_a_leader(self) -> None:
        """A node says that it leads a partition a little before it does."""
        deadline = time.monotonic() + PATIENCE_S
        partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self._topic, partitions=[partition])
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        while self._connection.ask(request, 6).topics[0].partitions[0].error_code:
            assert time.monotonic() < deadline, "the topic has no leader"
            time.sleep(0.02)

    def check(self, growth_bytes: int | None = None) -> None:
        started = time.monotonic()
        offset = self._write()
        assert offset == self._count, "a record was lost, or somebody else wrote to the topic"
        assert self._read(offset) == b"%d" % offset
        self._count += 1
        self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        if growth_bytes is not None and self._rss_bytes is not None:
            assert self.growth_bytes() <= growth_bytes, f"{self.growth_bytes() >> 20} MB more memory than before"

    def stall_s(self, pid: int | None) -> float:
        """How long a write and a read took, without the time that the node or we were ready and had no processor."""
        before_s, started = waited_s(pid) + waited_s("self"), time.monotonic()
        self.check()
        return time.monotonic() - started - (waited_s(pid) + waited_s("self") - before_s)

    def growth_bytes(self) -> int:
        return self._rss_bytes() - self._rss_at_first if self._rss_bytes else 0

    def _write(self) -> int:
        builder = BatchBuilder()
        builder.append(int(time.time() * 1000), None, b"%d" % self._count)
        partition = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name=self._topic, partition_data=[partition])
        response = self._connection.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), 9)
        (written,) = response.responses[0].partition_responses
        assert written.error_code == 0, ErrorCode(written.error_code).name
        return int(written.base_offset)

    def _read(self, offset: int) -> bytes:
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=4096)
        topic = FetchRequest.FetchTopic(topic=self._topic, partitions=[partition])
        request = FetchRequest(max_wait_ms=5000, min_bytes=1, max_bytes=4096, topics=[topic])
        response = self._connection.ask(request, 11)
        (read,) = response.responses[0].partitions
        assert read.error_code == 0, ErrorCode(read.error_code).name
        return bytes(read.records)[-1 - len(b"%d" % offset) : -1]  # after the value comes the count of headers

    def close(self) -> None:
        self._connection.close()


def waited_s(process: object) -> float:
    """How long a process's first thread was ready and had no processor."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


def slowest_while_waiting(stall_s: Callable[[], float], connection: RawConnection, most_s: float) -> float:
    """The longest stall until the connection is answered or hung up on, or so much time has passed."""
    deadline, slowest_s = time.monotonic() + most_s, 0.0
    connection.socket.settimeout(0.001)
    while True:
        slowest_s = max(slowest_s, stall_s())
        try:
            connection.socket.recv(1)
            return slowest_s
        except TimeoutError:
            if time.monotonic() > deadline:
                return slowest_s
        except OSError:
            return slowest_s
