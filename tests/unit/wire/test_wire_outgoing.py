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


def send(outgoing: Outgoing[str], transport: Any, *parts: bytes) -> bool:
    return outgoing.send(transport, list(parts))


def test_what_the_transport_takes_at_once_is_sent() -> None:
    outgoing, transport = Outgoing[str](), Slow(99)
    assert send(outgoing, transport, b"one", b"two")
    assert transport.taken == b"onetwo"


@pytest.mark.parametrize("first", range(6))
def test_what_it_does_not_take_waits_and_what_is_sent_later_waits_behind_it(first: int) -> None:
    outgoing, transport = Outgoing[str](), Slow(first)
    assert not send(outgoing, transport, b"one", b"two")
    assert not send(outgoing, transport, b"three")
    transport.takes = [2, 0]
    assert not outgoing.go_on(transport)
    transport.takes = [99]
    assert outgoing.go_on(transport)
    assert transport.taken == b"onetwothree"


def test_a_call_has_so_many_parts_at_most() -> None:
    outgoing, transport = Outgoing[str](), Slow(64, 64, 64)
    assert send(outgoing, transport, *[b"x"] * 150)
    assert (len(transport.taken), transport.most_parts) == (150, 64)


def test_a_request_without_a_response_is_over_when_its_bytes_are_gone() -> None:
    outgoing, transport = Outgoing[str](), Slow(4)
    outgoing.leaves_after(2, "the first")
    send(outgoing, transport, b"one", b"two")
    outgoing.leaves_after(1, "the second")
    send(outgoing, transport, b"three")
    assert (list(outgoing.left()), outgoing.leaving()) == ([], ["the first", "the second"])
    transport.takes = [2]
    outgoing.go_on(transport)
    assert (list(outgoing.left()), outgoing.leaving()) == (["the first"], ["the second"])
    transport.takes = [99]
    outgoing.go_on(transport)
    assert (list(outgoing.left()), list(outgoing.left()), outgoing.leaving()) == (["the second"], [], [])


def test_a_transport_that_breaks_is_told_of() -> None:
    class Broken(Slow):
        def send_parts(self, parts: Sequence[Any], *, more: bool) -> int:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        send(Outgoing(), Broken(), b"one")
