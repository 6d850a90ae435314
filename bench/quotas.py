"""How closely quotas are held, and whether a throttled client slows others: a node, raw clients, about a minute.

python bench/quotas.py [RATE_BYTES_PER_S]

A producer and a consumer with a limit each take all they can for 20 s. What they got in the first and in the second
10 s is held against the limit. Then a producer without a limit sends small requests, alone and beside ten throttled
clients that keep sending. Exits with 1 if a rate is off by more than 10 %, or the other is slowed by more than a fifth.
"""

import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ottla import Admin
from ottla.admin import NewTopic, QuotaEntity
from ottla.records.builder import BatchBuilder
from ottla.testing.node import RunningNode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.messages import FetchRequest, ProduceRequest

VERSION = 12
RATE = 1_000_000
WINDOW_S = 10.0
BATCH_BYTES = 50_000
NEIGHBOURS = 10
ROUNDS = 4
ROUND_S = 1.5


class Client:
    """One connection that asks and waits."""

    def __init__(self, bootstrap: str, client_id: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), 60)
        self._client_id = client_id

    def ask(self, request: ProduceRequest | FetchRequest) -> tuple[Any, int]:
        """The reply, and the bytes of the request."""
        data = encode_request(request, VERSION, 1, self._client_id)
        self._socket.sendall(data)
        (size,) = struct.unpack(">i", self._read(4))
        return decode_response(response_type(request._schema.api_key), self._read(size), VERSION)[1], len(data)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            data += self._socket.recv(count - len(data)) or sys.exit("the node hung up")
        return bytes(data)

    def close(self) -> None:
        self._socket.close()


def produce_request(size: int) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(int(time.time() * 1000), b"", bytes(size))
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])


LARGE = produce_request(BATCH_BYTES)


def fetch_request() -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2 * BATCH_BYTES)
    topic = FetchRequest.FetchTopic(topic="orders", partitions=[partition])
    return FetchRequest(topics=[topic], max_bytes=2 * BATCH_BYTES, min_bytes=1, session_epoch=-1)


def produced(client: Client) -> int:
    return client.ask(LARGE)[1]


def fetched(client: Client) -> int:
    reply = client.ask(fetch_request())[0]
    return sum(len(one.records or b"") for topic in reply.responses for one in topic.partitions)


def take(bootstrap: str, client_id: str, once: Callable[[Client], int], windows: int) -> list[float]:
    """Bytes a second in each of so many windows."""
    client, began_s = Client(bootstrap, client_id), time.monotonic()
    taken = [0] * windows
    while (at := int((time.monotonic() - began_s) / WINDOW_S)) < windows:
        taken[at] += once(client)
    client.close()
    return [count / WINDOW_S for count in taken]


def small_requests(bootstrap: str) -> float:
    """Small requests a second of a client without a limit."""
    client, request, count = Client(bootstrap, "free"), produce_request(100), 0
    began_s = time.monotonic()
    while (elapsed_s := time.monotonic() - began_s) < ROUND_S:
        client.ask(request)
        count += 1
    client.close()
    return count / elapsed_s


def main(rate: int) -> int:
    off = False
    with RunningNode() as node, Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", 1, 1)]).raise_first()
        limits = {"producer": {"producer_byte_rate": rate}, "consumer": {"consumer_byte_rate": rate}}
        limits["neighbour"] = {"producer_byte_rate": rate / 10}
        admin.alter_client_quotas(
            {QuotaEntity((("client-id", name),)): values for name, values in limits.items()}
        ).raise_first()
        for name, once in (("producer", produced), ("consumer", fetched)):
            for number, got in enumerate(take(node.bootstrap, name, once, 2)):
                share = got / rate
                off |= not 0.9 <= share <= 1.1
                print(f"{name}, second {number * 10:>2} and 9 more: {got:>10,.0f} B/s, {share:.1%} of the limit")
        alone, beside = [], []
        for _ in range(ROUNDS):
            alone.append(small_requests(node.bootstrap))
            stop = threading.Event()
            neighbours = [threading.Thread(target=send_until, args=(node.bootstrap, stop)) for _ in range(NEIGHBOURS)]
            for neighbour in neighbours:
                neighbour.start()
            time.sleep(0.5)  # Until their bursts are over and all of them are muted.
            beside.append(small_requests(node.bootstrap))
            stop.set()
            for neighbour in neighbours:
                neighbour.join(60)
        share = max(beside) / max(alone)
        off |= share < 0.8
        print(f"without a limit: {max(alone):,.0f} requests/s alone, {max(beside):,.0f} beside {NEIGHBOURS} throttled")
    return 1 if off else 0


def send_until(bootstrap: str, stop: threading.Event) -> None:
    client, request = Client(bootstrap, "neighbour"), produce_request(BATCH_BYTES)
    client._socket.settimeout(0.2)
    while not stop.is_set():
        try:
            client.ask(request)
        except TimeoutError:
            break  # Muted: its request waits, and so does it.
    stop.wait(60)
    client.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else RATE))
