"""The load of many clients, from one thread: a window of requests in flight on each of many connections.

Theory of operation: as in `load`, requests are bytes made beforehand, answers are counted by their size and not
decoded, and a connection is sent as many requests as it has been answered, in one call. An epoll tells which
connections have answers. Beside the system calls that any client needs, a request costs about two microseconds here.
"""

import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from load import RECEIVE_BYTES, first_answer
from wire_client import WireClient

Next = Callable[[int, int], bytes | bytearray]
"""The bytes to send next on a connection (by its place in the row) that has been answered so many requests."""


@contextmanager
def connected(bootstrap: str, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as opened:
        yield [opened.enter_context(WireClient(bootstrap)).socket for _ in range(count)]


def the_same(requests: Sequence[bytes], in_flight: int) -> Next:
    """Each connection sends its own request over and over."""
    several = {request: [request * count for count in range(in_flight + 1)] for request in set(requests)}
    of_connection = [several[request] for request in requests]

    def following(place: int, answered: int) -> bytes:
        return of_connection[place][answered]

    return following


def run_windows(
    connections: Sequence[socket.socket], following: Next, in_flight: int, seconds: float, most: int
) -> tuple[int, float]:
    """Keeps a window full on each connection, for so long or for so many requests in all.

    Returns how many requests were answered, and the seconds that they took. The answers to all requests must have the
    same size; the one to the first request of the first connection tells it.
    """
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    connections[0].sendall(following(0, 1))
    size = first_answer(connections[0], buffer)
    ends = {one.fileno(): (place, one.recv_into, one.sendall) for place, one in enumerate(connections)}
    surplus = dict.fromkeys(ends, 0)
    answered, sent = 0, len(connections) * in_flight
    with select.epoll() as ready:
        for fd in ends:
            ready.register(fd, select.EPOLLIN)
        started = time.perf_counter()
        until = started + seconds
        for place, _, send in ends.values():
            for _ in range(in_flight):
                send(following(place, 1))
        while answered < sent:
            goes_on = sent < most and time.perf_counter() < until
            for fd, _ in ready.poll():
                place, receive_into, send = ends[fd]
                count = receive_into(buffer)
                if not count:
                    raise ConnectionError("the node hung up")
                whole, surplus[fd] = divmod(surplus[fd] + count, size)
                if whole:
                    answered += whole
                    if goes_on:
                        send(following(place, whole))
                        sent += whole
        return answered, time.perf_counter() - started
