"""Ports for nodes whose addresses must be known before they start, and stay theirs while they are down.

A port that the kernel is asked for (port 0) is one of those that it also gives to connections: between the moment when
the asker lets it go and the moment when the node listens there, or while the node is down, any client may take it.
These are from below that range, so that only another node could be in the way.
"""

import random
import socket
from typing import Final

# Linux gives connections ports from 32768 on, macOS and Windows from 49152 on.
_FIRST: Final = 20_000
_LAST: Final = 32_767
_HOST: Final = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """So many different ports of the loopback interface on which nothing listens now."""
    chance = random.SystemRandom()
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            one = socket.socket()
            try:
                one.bind((_HOST, chance.randint(_FIRST, _LAST)))
            except OSError:
                one.close()
            else:
                held.append(one)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def free_port() -> int:
    (port,) = free_ports(1)
    return port
