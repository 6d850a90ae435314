"""Which partition of a coordinator's topic a group or a transactional id belongs to.

Every node and every version of Kafka must agree, so it is Java's hash of a string: over UTF-16 units, in 32 bits. The
same few groups ask again and again, so their hashes are remembered; few of very long names are.
"""

from functools import lru_cache
from operator import mul
from sys import byteorder

_INT32 = 0xFFFFFFFF
_SIGN = 0x80000000
_UTF_16 = "utf-16-le" if byteorder == "little" else "utf-16-be"
_LONGEST = 256

_powers = [1]
"""Of 31, modulo 2^32, as many as the longest text has needed: a client's names can be of 32,767 units."""


def partition_of(key: str, partition_count: int) -> int:
    hashed = (_remembered if len(key) <= _LONGEST else _remembered_of_long)(key)
    return (0 if hashed == -_SIGN else abs(hashed)) % partition_count


def java_string_hash(text: str) -> int:
    """The sum of each unit times a power of 31, without a step of Python's for each."""
    units = text.encode() if text.isascii() else memoryview(text.encode(_UTF_16, "surrogatepass")).cast("H")
    while len(_powers) < len(units):
        _powers.append(31 * _powers[-1] & _INT32)
    hashed: int = sum(map(mul, units[::-1], _powers)) & _INT32
    return hashed - (1 << 32) if hashed & _SIGN else hashed


_remembered = lru_cache(maxsize=4096)(java_string_hash)
_remembered_of_long = lru_cache(maxsize=8)(java_string_hash)
