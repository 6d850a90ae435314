"""Bytes as they arrive to whole frames."""

from ottla.wire.exchange.frames import Frames


def test_frames_that_had_to_wait_can_be_written_to_as_those_that_did_not() -> None:
    """A batch in them is given its offset in place."""
    frames = Frames(1000, "some.limit")
    taken: list[tuple[bytes, bool]] = []

    def take(frame: memoryview) -> bool:
        taken.append((bytes(frame), frame.readonly))
        return len(taken) > 1

    received = bytearray(b"\0\0\0\1a\0\0\0\1b\0\0\0\1c\0\0")
    frames.take(memoryview(received), take)
    assert frames.has_waiting
    frames.take_waiting(take)
    assert taken == [(b"a", False), (b"b", False), (b"c", False)]
    assert frames.has_begun
