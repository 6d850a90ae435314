"""Chance that cannot be foretold, from the system.

`random.SystemRandom` is the same, in a module that takes a quarter of a megabyte of each node's memory.
"""

import os
from typing import TypeVar

ItemT = TypeVar("ItemT")


class SystemEntropy:
    """The port `Entropy`."""

    def randbytes(self, count: int, /) -> bytes:
        return os.urandom(count)

    def randrange(self, stop: int, /) -> int:
        """Every number is as likely as any other: what is drawn beyond `stop` is drawn again."""
        assert stop > 0, "there is nothing to draw from"
        bits = (stop - 1).bit_length()
        size = (bits + 7) // 8
        while True:
            drawn = int.from_bytes(os.urandom(size), "big") >> (size * 8 - bits)
            if drawn < stop:
                return drawn

    def shuffle(self, items: list[ItemT], /) -> None:
        for place in range(len(items) - 1, 0, -1):
            other = self.randrange(place + 1)
            items[place], items[other] = items[other], items[place]
