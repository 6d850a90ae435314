"""Compressed bytes that were changed: what they decompress to, within the limit, or a typed error; nothing else."""

import random

import pytest

from ottla.records.compression import compress, decompress
from ottla.records.header import Compression, CorruptBatch

CODECS = [codec for codec in Compression if codec]
LIMITS = (1000, 1 << 16, 1 << 20, 1 << 27)
LENGTHS = (b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", bytes(4))


def sources() -> list[bytes]:
    chance = random.Random(0)
    return [b"", b"x", chance.randbytes(100), b"abc" * 5000, bytes(200_000), chance.randbytes(70_000)]


def forms(codec: Compression) -> list[bytes]:
    """As we write them, and as others do."""
    valid = [bytes(compress(codec, source)) for source in sources()]
    if codec == Compression.LZ4:
        frame = pytest.importorskip("lz4.frame")
        valid += [
            frame.compress(source, content_checksum=checked, block_linked=linked, store_size=sized, block_size=size)
            for source in sources()
            for checked in (False, True)
            for linked in (False, True)
            for sized in (False, True)
            for size in (4, 7)
        ]
    if codec == Compression.SNAPPY:
        snappy = pytest.importorskip("cramjam").snappy
        valid += [bytes(snappy.compress_raw(source)) for source in sources()]
    return valid


def changed(chance: random.Random, data: bytes) -> bytes:
    changing = bytearray(data)
    for _ in range(chance.choice([0, 1, 2, 6])):
        if not changing:
            break
        at = chance.randrange(min(len(changing), chance.choice([8, 32, len(changing)])))
        kind = chance.random()
        if kind < 0.5:
            changing[at] = chance.randrange(256)
        elif kind < 0.7:
            changing[at : at + 4] = chance.choice(LENGTHS)
        elif kind < 0.85:
            del changing[at : at + chance.randint(1, 20)]
        else:
            changing[at:at] = changing[: chance.randint(0, 40)]
    return bytes(changing)


def check(codec: Compression, valid: list[bytes], seed: int) -> bool:
    """Returns whether there was an answer."""
    chance = random.Random(seed)
    data, limit = changed(chance, chance.choice(valid)), chance.choice(LIMITS)
    try:
        size = len(decompress(codec, data, limit))
    except CorruptBatch:
        return False
    except BaseException as problem:
        problem.add_note(f"seed {seed}")
        raise
    assert size <= limit, f"seed {seed}"
    return True


@pytest.mark.parametrize("codec", CODECS)
def test_changed_bytes_decompress_within_the_limit_or_are_refused(codec: Compression) -> None:
    valid = forms(codec)
    answered = sum(check(codec, valid, seed) for seed in range(1500))
    assert 100 < answered < 1400


@pytest.mark.long
@pytest.mark.parametrize("codec", CODECS)
def test_changed_bytes_decompress_within_the_limit_or_are_refused_in_the_long_run(codec: Compression) -> None:
    valid = forms(codec)
    for seed in range(10_000, 110_000):
        check(codec, valid, seed)
