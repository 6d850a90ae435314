"""Unsigned varints, as messages use them for lengths, counts and tags."""

import pytest

from ottla.wire.faults import TruncatedError, VarintError
from ottla.wire.varint import encode_varint, read_varint


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        ((1 << 32) - 1, "ffffffff0f"),
    ],
)
def test_seven_bits_a_byte_lowest_first(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varint(b"-" + bytes.fromhex(encoded) + b"-", 1) == (value, 1 + len(encoded) // 2)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_the_end_inside_a_varint_is_an_error(data: bytes) -> None:
    with pytest.raises(TruncatedError) as caught:
        read_varint(data, 0)
    assert caught.value.position == len(data)


@pytest.mark.parametrize("data", ["808080808001", "ffffffff1f"])
def test_more_than_five_bytes_or_32_bits_are_an_error(data: str) -> None:
    with pytest.raises(VarintError) as caught:
        read_varint(bytes.fromhex(data), 0)
    assert caught.value.position == 0
