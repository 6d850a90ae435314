"""Which partition of a coordinator's topic a group or a transactional id belongs to.

Every node and every version of Kafka must agree, so it is Java's hash of a string: over UTF-16 units, in 32 bits. The
same few groups ask again and again, so their hashes are remembered.
"""

from functools import lru_cache

_INT32 = 0xFFFFFFFF
_SIGN = 0x80000000


def partition_of(key: str, partition_count: int) -> int:
    hashed = java_string_hash(key)
    return (0 if hashed == -_SIGN else abs(hashed)) % partition_count


@lru_cache(maxsize=4096)
def java_string_hash(text: str) -> int:
    hashed = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            hashed = (31 * hashed + unit) & _INT32
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for index in range(0, len(units), 2):
            hashed = (31 * hashed + (units[index] << 8 | units[index + 1])) & _INT32
    return hashed - (1 << 32) if hashed & _SIGN else hashed
