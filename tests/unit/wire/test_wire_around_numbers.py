"""Frames that differ in numbers alone: where the numbers are."""

from struct import Struct

from ottla.wire.around_numbers import A_NUMBER, layout_around

TWO = Struct(">qi")


def frame(*numbers: tuple[int, int]) -> bytes:
    body = b"".join(b"topic" + TWO.pack(*pair) + b"!" for pair in numbers)
    return b"\0\1\0\7" + b"\0\0\0\5" + b"client" + body


def test_a_frame_is_taken_apart_around_its_numbers() -> None:
    markers = [(A_NUMBER, 9), (A_NUMBER + 1, 9)]
    layout = layout_around(frame(*markers), [TWO.pack(*marker) for marker in markers], "qi")
    assert layout.size == len(frame(*markers))
    assert layout.unpack(frame((1, 2), (-3, 4))) == (
        b"\0\1\0\7",
        b"\0\0\0\5",
        b"clienttopic",
        1,
        2,
        b"!topic",
        -3,
        4,
        b"!",
    )


def test_no_text_has_the_bytes_of_a_marker() -> None:
    for number in range(256):
        bare = (A_NUMBER + number).to_bytes(8, "big")
        assert bare.decode(errors="ignore").encode() != bare
