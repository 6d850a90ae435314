"""XXH3, 64 bits, seed 0: the hash by which Kafka's coordinators notice that a topic has changed (KIP-1101).

Written after the public description of the algorithm (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md). Inputs
are short and rare here, so it is plain Python, by the four ranges of lengths that the algorithm treats differently.
"""

from struct import unpack_from
from typing import Final

_MASK: Final = (1 << 64) - 1
_PRIME32: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIME64: Final = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_PRIME_MX1: Final = 0x165667919E3779F9
_PRIME_MX2: Final = 0x9FB21C651E98DF25
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_BLOCK_STRIPES: Final = (len(_SECRET) - _STRIPE) // 8


def xxh3_64(data: bytes) -> int:
    size = len(data)
    if size <= 16:
        return _short(data, size)
    if size <= 240:
        return _medium(data, size)
    return _long(data, size)


def _short(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0) ^ (_u64(_SECRET, 24) ^ _u64(_SECRET, 32))
        high = _u64(data, size - 8) ^ (_u64(_SECRET, 40) ^ _u64(_SECRET, 48))
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((size + swapped + high + _fold(low, high)) & _MASK)
    if size >= 4:
        first, last = _u32(data, 0), _u32(data, size - 4)
        value = (last | first << 32) ^ (_u64(_SECRET, 8) ^ _u64(_SECRET, 16))
        value ^= _rotate(value, 49) ^ _rotate(value, 24)
        value = value * _PRIME_MX2 & _MASK
        value ^= (value >> 35) + size
        value = value * _PRIME_MX2 & _MASK
        return value ^ value >> 28
    if size:
        combined = data[size - 1] | size << 8 | data[0] << 16 | data[size >> 1] << 24
        return _avalanche64(combined ^ (_u32(_SECRET, 0) ^ _u32(_SECRET, 4)))
    return _avalanche64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _medium(data: bytes, size: int) -> int:
    total = size * _PRIME64[0] & _MASK
    if size <= 128:
        for index in range((size - 1) // 32, -1, -1):
            total += _mix(data, 16 * index, 32 * index)
            total += _mix(data, size - 16 * (index + 1), 32 * index + 16)
        return _avalanche(total & _MASK)
    rounds = size // 16
    for index in range(8):
        total += _mix(data, 16 * index, 16 * index)
    total = _avalanche(total & _MASK)
    for index in range(8, rounds):
        total += _mix(data, 16 * index, 16 * (index - 8) + 3)
    total += _mix(data, size - 16, 136 - 17)
    return _avalanche(total & _MASK)


def _long(data: bytes, size: int) -> int:
    lanes = [
        _PRIME32[2],
        _PRIME64[0],
        _PRIME64[1],
        _PRIME64[2],
        _PRIME64[3],
        _PRIME32[1],
        _PRIME64[4],
        _PRIME32[0],
    ]
    block = _STRIPE * _BLOCK_STRIPES
    blocks = (size - 1) // block
    for number in range(blocks):
        for stripe in range(_BLOCK_STRIPES):
            _accumulate(lanes, data, number * block + stripe * _STRIPE, stripe * 8)
        for lane in range(8):
            value = lanes[lane]
            value ^= value >> 47
            value ^= _u64(_SECRET, len(_SECRET) - _STRIPE + 8 * lane)
            lanes[lane] = value * _PRIME32[0] & _MASK
    for stripe in range((size - 1 - blocks * block) // _STRIPE):
        _accumulate(lanes, data, blocks * block + stripe * _STRIPE, stripe * 8)
    _accumulate(lanes, data, size - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = size * _PRIME64[0]
    for pair in range(4):
        one = lanes[2 * pair] ^ _u64(_SECRET, 11 + 16 * pair)
        other = lanes[2 * pair + 1] ^ _u64(_SECRET, 19 + 16 * pair)
        total += _fold(one, other)
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    for lane in range(8):
        value = _u64(data, at + 8 * lane)
        keyed = value ^ _u64(_SECRET, secret_at + 8 * lane)
        lanes[lane ^ 1] = (lanes[lane ^ 1] + value) & _MASK
        lanes[lane] = (lanes[lane] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & _MASK


def _mix(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _fold(one: int, other: int) -> int:
    """The two halves of the 128-bit product, over each other."""
    product = one * other
    return product & _MASK ^ product >> 64


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _PRIME_MX1 & _MASK
    return value ^ value >> 32


def _avalanche64(value: int) -> int:
    value ^= value >> 33
    value = value * _PRIME64[1] & _MASK
    value ^= value >> 29
    value = value * _PRIME64[2] & _MASK
    return value ^ value >> 32


def _rotate(value: int, by: int) -> int:
    return (value << by | value >> 64 - by) & _MASK


def _u64(data: bytes, at: int) -> int:
    found: int = unpack_from("<Q", data, at)[0]
    return found


def _u32(data: bytes, at: int) -> int:
    found: int = unpack_from("<I", data, at)[0]
    return found
