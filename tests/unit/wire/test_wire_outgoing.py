"""Requests on their way out: in order, whatever the transport takes of them at a time."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.wire.exchange.outgoing import Outgoing


class Slow:
    """A transport that takes so many bytes at a time, and then none: 0 is one that would wait."""

    def __init__(self, *takes: int) -> None:
        self.takes = list(takes)
        self.taken = b""
        self.most_parts = 0

    def send_parts(self, parts: Sequence[Any], *, more: bool) -> int:
        self.most_parts = max(self.most_parts, len(parts))
        count = self.takes.pop(0) if self.takes else 0
        if not count:
            raise BlockingIOError
        data = b"".join(parts)[:count]
        self.taken += data
        return len(data)


def send(outgoing: Outgoing, transport: Any, *parts: bytes) -> bool:
    return outgoing.send(transport, list(parts))


def test_what_the_transport_takes_at_once_is_sent() -> None:
    outgoing, transport = Outgoing(), Slow(99)
    assert send(outgoing, transport, b"one", b"two")
    assert transport.taken == b"onetwo"


@pytest.mark.parametrize("first", range(6))
def test_what_it_does_not_take_waits_and_what_is_sent_later_waits_behind_it(first: int) -> None:
    outgoing, transport = Outgoing(), Slow(first)
    assert not send(outgoing, transport, b"one", b"two")
    assert not send(outgoing, transport, b"three")
    transport.takes = [2, 0]
    assert not outgoing.send_rest(transport)
    transport.takes = [99]
    assert outgoing.send_rest(transport)
    assert transport.taken == b"onetwothree"


def test_a_call_has_so_many_parts_at_most() -> None:
    outgoing, transport = Outgoing(), Slow(64, 64, 64)
    assert send(outgoing, transport, *[b"x"] * 150)
    assert (len(transport.taken), transport.most_parts) == (150, 64)


def test_a_part_counts_when_it_has_left_whole() -> None:
    outgoing, transport = Outgoing(), Slow(4)
    send(outgoing, transport, b"one", b"two")
    send(outgoing, transport, b"three")
    assert outgoing.parts_sent == 1
    transport.takes = [2]
    outgoing.send_rest(transport)
    assert outgoing.parts_sent == 2
    transport.takes = [99]
    outgoing.send_rest(transport)
    assert outgoing.parts_sent == 3


def test_a_transport_that_breaks_is_told_of() -> None:
    class Broken(Slow):
        def send_parts(self, parts: Sequence[Any], *, more: bool) -> int:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        send(Outgoing(), Broken(), b"one")
