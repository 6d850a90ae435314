"""Small fetches of a crowd of consumers: of batches that are there, and of those that they wait for at the end."""

import select
import socket
import struct
import time

from contenders import Contender
from load import SMALL, SMALL_RECORDS, run_window
from windows import connected, run_windows
from wire_client import WireClient, fetch_request, produce_request

CROWD = 50
STORED = "stored-small"
TAILED = "tailed"
STORED_BATCHES = 20_000
_MAX_BYTES = 1 << 20


def prepare_topics(node: Contender) -> None:
    """One topic with batches that are read again and again, and one whose end is followed."""
    with WireClient(node.bootstrap) as client:
        client.create_topic(STORED)
        client.create_topic(TAILED)
        run_window(client.socket, produce_request(STORED, bytes(SMALL), -1), 5, 60, STORED_BATCHES)


def fetch_stored(node: Contender, seconds: float) -> tuple[int, float]:
    """Fetches answered, each with one batch, and the seconds that they took."""
    with connected(node.bootstrap, CROWD) as opened:
        return run_windows(opened, Reading(CROWD).following, 1, seconds, 1 << 30)


class Reading:
    """Every connection goes through the stored batches from a place of its own, over and over."""

    def __init__(self, connections: int) -> None:
        frames = [fetch_request(STORED, offset, len(SMALL)) for offset in (0, -1)]
        self._offset_at = next(at for at, (one, other) in enumerate(zip(*frames, strict=True)) if one != other)
        self._frames = [bytearray(frames[0]) for _ in range(connections)]
        self._next = [place * (STORED_BATCHES // connections) for place in range(connections)]

    def following(self, place: int, answered: int) -> bytearray:
        assert answered == 1, "a consumer has one fetch in flight"
        batch = self._next[place]
        self._next[place] = (batch + 1) % STORED_BATCHES
        frame = self._frames[place]
        struct.pack_into(">q", frame, self._offset_at, batch * SMALL_RECORDS)
        return frame


def tail(node: Contender, seconds: float) -> tuple[int, float]:
    """Fetches answered, and the seconds that they took, of consumers that all wait at the end of one partition.

    The next batch is produced when all have the one before and have asked for more. So its cost is shared by the crowd.
    """
    with WireClient(node.bootstrap) as producer, connected(node.bootstrap, CROWD) as consumers:
        return _tail(producer, consumers, seconds)


def _tail(producer: WireClient, consumers: list[socket.socket], seconds: float) -> tuple[int, float]:
    batch = produce_request(TAILED, bytes(SMALL), -1)
    offset = producer.end_offset(TAILED)
    buffer = memoryview(bytearray(1 << 16))
    ends = {one.fileno(): (one.recv_into, one.sendall) for one in consumers}
    request = fetch_request(TAILED, offset, _MAX_BYTES)
    for one in consumers:
        one.sendall(request)
    rounds, size = 0, 0
    with select.epoll() as ready:
        for fd in ends:
            ready.register(fd, select.EPOLLIN)
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            producer.socket.sendall(batch)
            offset += SMALL_RECORDS
            request = fetch_request(TAILED, offset, _MAX_BYTES)
            if not size:
                size = _size_of_answer(consumers[0])
            received = dict.fromkeys(ends, 0)
            while received:
                for fd, _ in ready.poll():
                    receive_into, send = ends[fd]
                    received[fd] += receive_into(buffer)
                    if received[fd] >= size:
                        assert received[fd] == size, "a fetch was answered with something else than one batch"
                        del received[fd]
                        send(request)
            producer.read_frame()
            rounds += 1
        return rounds * len(consumers), time.perf_counter() - started


def _size_of_answer(consumer: socket.socket) -> int:
    """Looks at the first answer, and leaves it where it is."""
    while len(start := consumer.recv(4, socket.MSG_PEEK)) < 4:
        pass
    size: int = 4 + struct.unpack(">i", start)[0]
    return size
