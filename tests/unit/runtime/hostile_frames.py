"""Frames that say of themselves, or of what is in them, that they are much larger; and some that are none."""

import struct

HUGE = b"\xff\xff\xff\xff\x07"  # 2**31 - 1 as an unsigned varint

FRAMES = [
    struct.pack(">hhih", 36, 2, 1, -1) + b"\0" + HUGE + b"abc",  # a token of two gigabytes
    struct.pack(">hhih", 36, 2, 1, -1) + b"\0\x01" + HUGE,  # two thousand million tagged fields
    struct.pack(">hhih", 36, 2, 1, -1) + HUGE + b"\0\x01\0",  # the same in the header
    struct.pack(">hhih", 36, 2, 1, -1) + b"\0\x01\x01\x09" + HUGE,  # a tagged field of two gigabytes
    struct.pack(">hhihi", 36, 0, 1, -1, 0x7FFFFFFF) + b"abc",
    struct.pack(">hhihh", 17, 1, 1, -1, 0x7FFF) + b"PLAIN",
    struct.pack(">hhih", 18, 3, 1, -1) + b"\0" + HUGE + b"abc" + HUGE,
    struct.pack(">hhih", 18, 3, 1, 0x7FFF),
    struct.pack(">hh", 36, 2),
    b"\0",
    b"",
    b"GET / HTTP/1.1",
]
