"""Large buffers that are used again, and never while somebody looks into them."""

from ottla.wire.exchange.frames import LEAST_BYTES, Frames, SpareBuffers

LARGE = 2 * LEAST_BYTES


def test_a_buffer_is_given_and_taken_the_last_one_first() -> None:
    spare = SpareBuffers(10 * LARGE)
    first, last = bytearray(LARGE + 1), bytearray(LARGE + 1)
    assert spare.give(first)
    assert spare.give(last)
    assert spare.take(LARGE) is last
    assert spare.take(LARGE) is first
    assert len(spare.take(LARGE)) > LARGE  # a new one, with room for a frame that is a little larger


def test_one_that_is_looked_into_is_not_kept() -> None:
    spare = SpareBuffers(10 * LARGE)
    buffer = bytearray(LARGE)
    with memoryview(buffer)[10:20]:
        assert not spare.give(buffer)
    assert spare.give(buffer)


def test_no_more_is_kept_than_may_be_and_rather_large_ones() -> None:
    spare = SpareBuffers(3 * LARGE)
    assert not spare.give(bytearray(LEAST_BYTES - 1))
    assert not spare.give(bytearray(4 * LARGE))
    assert spare.give(bytearray(LARGE))
    assert spare.give(bytearray(LARGE))
    assert spare.give(bytearray(2 * LARGE))
    assert spare.kept_bytes <= 3 * LARGE
    for _ in range(10):
        spare.give(bytearray(LEAST_BYTES + 1))
    assert spare.kept_bytes <= 3 * LARGE
    assert len(spare.take(2 * LARGE - 1)) == 2 * LARGE - 1


def test_a_large_frame_arrives_in_a_used_buffer() -> None:
    spare = SpareBuffers(10 * LARGE)
    used = bytearray(b"x" * (LARGE + 100))
    spare.give(used)
    taken = []
    frames = Frames(1 << 30, "limit", 1 << 20, spare)
    content = bytes(range(256)) * (LARGE // 256)
    frames.take(memoryview(len(content).to_bytes(4, "big") + content[:1000]), lambda frame: False)
    position = 1000
    while position < len(content):
        with frames.room() as room:
            count = min(len(room), 50_000)
            room[:count] = content[position : position + count]
        position += count
        frames.fill(count, lambda frame: taken.append(frame) or True)
    [frame] = taken
    assert (bytes(frame), frame.obj is used) == (content, True)
