"""The load generator: requests are bytes made beforehand, answers are counted and not decoded.

Theory of operation: a window of requests is kept in flight on one connection. As many requests as answers came in are
sent next, in one call. So the generator costs a few microseconds a request, and an unhurried part of one core; what it
leaves unchecked, the number of records that arrived, is asked of the node at the end.
"""

import select
import socket
import struct
import time
from collections.abc import Callable

from wire_client import WireClient, produce_request

from ottla.records.builder import build_batch

# Of today: what is older than a week is deleted while it is being measured.
SMALL = build_batch(int(time.time() * 1000), None, [bytes(100)] * 10)
LARGE = build_batch(int(time.time() * 1000), None, [bytes(1000)] * 64)
SMALL_RECORDS, LARGE_RECORDS = 10, 64
RECEIVE_BYTES = 1 << 20


def run_window(sock: socket.socket, request: bytes, in_flight: int, seconds: float, most: int) -> tuple[int, float]:
    """Keeps a window full for so long, or for so many requests; requests answered, and the seconds it took."""
    several = [request * count for count in range(in_flight + 1)]
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    started = time.perf_counter()
    ends = started + seconds
    sock.sendall(request)
    size = first_answer(sock, buffer)
    sent, answered, surplus = in_flight + 1, 1, 0
    sock.sendall(several[in_flight])
    while answered < sent:
        count = sock.recv_into(buffer)
        if not count:
            raise ConnectionError("the node hung up")
        whole, surplus = divmod(surplus + count, size)
        if not whole:
            continue
        answered += whole
        if time.perf_counter() < ends and sent < most:
            sock.sendall(several[whole])
            sent += whole
    return answered, time.perf_counter() - started


def first_answer(sock: socket.socket, buffer: memoryview) -> int:
    """The size of an answer with its prefix; all answers to the same request have the same."""
    received = 0
    while received < 4 or received < 4 + struct.unpack_from(">i", buffer)[0]:
        received += sock.recv_into(buffer[received:])
    return received


def produce(
    bootstrap: str,
    topic: str,
    batch: bytes,
    records: int,
    *,
    acks: int,
    in_flight: int,
    seconds: float,
    most_bytes: int = 256 << 20,
) -> float:
    """Requests per second; raises unless every record of every acknowledged request is there."""
    with WireClient(bootstrap) as client:
        before = client.end_offset(topic)
        request = produce_request(topic, bytes(batch), acks)
        answered, took = run_window(client.socket, request, in_flight, seconds, most_bytes // len(batch))
        arrived = client.end_offset(topic) - before
    if arrived != answered * records:
        raise RuntimeError(f"{answered * records} records were acknowledged, and {arrived} are there")
    return answered / took


def latencies(sock: socket.socket, request: bytes, seconds: float) -> list[float]:
    """One request after the other."""
    buffer = bytearray(1 << 16)
    times = []
    now = time.perf_counter()
    ends = now + seconds
    while now < ends:
        sock.sendall(request)
        sock.recv_into(buffer)
        done = time.perf_counter()
        times.append(done - now)
        now = done
    return times


def latencies_at_rate(sock: socket.socket, request: bytes, seconds: float, per_second: int) -> list[float]:
    """From the moment when a request was due, so that a node that stalls is charged for all that had to wait."""
    buffer = bytearray(1 << 20)
    first = time.perf_counter()
    sock.sendall(request)
    size = len(sock.recv(1 << 16))
    interval = 1 / per_second
    total = int(seconds * per_second)
    sent, times, surplus = 1, [time.perf_counter() - first], 0
    first = time.perf_counter() - interval
    while len(times) < total:
        now = time.perf_counter()
        while sent < total and first + sent * interval <= now:
            sock.sendall(request)
            sent += 1
        wait_s = first + sent * interval - time.perf_counter() if sent < total else 1.0
        # poll(2) would wait whole milliseconds.
        if not select.select([sock], [], [], max(0.0, wait_s))[0]:
            continue
        whole, surplus = divmod(surplus + sock.recv_into(buffer), size)
        now = time.perf_counter()
        for _ in range(whole):
            times.append(now - (first + len(times) * interval))
    return times


def fetch(sock: socket.socket, requests: list[bytes]) -> tuple[int, float]:
    """Bytes received, and the seconds it took; one fetch in flight, as consumers have it."""
    buffer = memoryview(bytearray(4 << 20))
    received = 0
    started = time.perf_counter()
    for request in requests:
        sock.sendall(request)
        count = sock.recv_into(buffer)
        total = 4 + int.from_bytes(buffer[:4], "big")
        while count < total:
            count += sock.recv_into(buffer)
        received += count
    return received, time.perf_counter() - started


def alternating(rounds: int, contenders: list[Callable[[], float]]) -> list[list[float]]:
    """Each contender's results, round by round; who goes first takes turns."""
    results: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds):
        order = range(len(contenders)) if number % 2 == 0 else reversed(range(len(contenders)))
        for index in order:
            results[index].append(contenders[index]())
    return results
