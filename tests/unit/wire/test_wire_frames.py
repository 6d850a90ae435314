"""Bytes as they arrive to whole frames."""

import pytest

from ottla.base.lent import Lent, lend
from ottla.wire.exchange import frames
from ottla.wire.exchange.frames import Frames, whole_frames_in_python


def test_frames_that_had_to_wait_can_be_written_to_as_those_that_did_not() -> None:
    """A batch in them is given its offset in place."""
    exchange = Frames(1000, "some.limit")
    taken: list[tuple[bytes, bool]] = []

    def take(frame: memoryview) -> bool:
        taken.append((bytes(frame), frame.readonly))
        return len(taken) > 1

    received = bytearray(b"\0\0\0\1a\0\0\0\1b\0\0\0\1c\0\0")
    exchange.take(lend(memoryview(received)), take)
    assert exchange.has_waiting
    exchange.take_waiting(take)
    assert taken == [(b"a", False), (b"b", False), (b"c", False)]
    assert exchange.has_begun


def test_frames_that_wait_are_not_looked_for_or_copied_again_for_each_that_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a megabyte of small requests, which a node takes a few at a time, would cost it seconds."""
    count, found, buffers = 5000, 0, set[int]()

    def counted(received: Lent, at: int, most_bytes: int, most: int) -> tuple[list[Lent], int]:
        nonlocal found
        whole, rest_at = whole_frames_in_python(received, at, most_bytes, most)
        found += len(whole)
        return whole, rest_at

    monkeypatch.setattr(frames, "whole_frames", counted)
    taken: list[bytes] = []

    def take_one(frame: memoryview) -> bool:
        taken.append(bytes(frame))
        return False

    exchange = Frames(1000, "some.limit")
    sent = [number.to_bytes(4, "big") for number in range(count)]
    exchange.take(lend(memoryview(bytearray(b"".join(b"\0\0\0\4" + one for one in sent)))), take_one)
    while exchange.has_waiting:
        buffers.add(id(exchange._waiting.obj))
        exchange.take_waiting(take_one)
    assert taken == sent
    assert found <= count * 33
    assert len(buffers) <= count.bit_length() + 1
