"""A mutation fuzz of the decoders, with memory bounded: `python wire_fuzz.py SEED CASES`.

Each case takes a valid message, damages it, and gives it to all decoders. Either all refuse it with a `DecodeError`
that names a byte of the input, or all make the same message of it, which then survives being encoded and decoded
again. Anything else, a `MemoryError` under the limit included, ends the run with the seed and the bytes.
"""

import resource
import sys
from random import Random
from typing import Any

from ottla.wire.codec import encode
from ottla.wire.faults import DecodeError
from ottla.wire.message import Decoder, Message
from tests.property.wire.wire_decoders import DECODERS
from tests.property.wire.wire_values import RandomMessages, every_message

MEMORY_HEADROOM_BYTES = 128 << 20
"""Far more than any damaged message of a few kilobytes may need, far less than the sizes that damage announces."""

HOSTILE = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff",
    b"\x80\x80\x80\x80\x80\x01",
    b"\xc3\x28",
)
"""Null, the largest counts, over-long varints, broken UTF-8: what random bytes hit too rarely."""


def main(seed: int, cases: int) -> None:
    limit_memory()
    refused = Fuzz(seed).run(cases)
    decoders = " and ".join(DECODERS)
    print(f"seed {seed}: {cases} cases, {refused} refused and {cases - refused} read, alike by {decoders} decoder")


def limit_memory() -> None:
    with open("/proc/self/statm") as statm:
        used_bytes = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + MEMORY_HEADROOM_BYTES,) * 2)


class Fuzz:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.messages = RandomMessages(self.random)
        self.targets = every_message()
        self.decoders: dict[tuple[type[Message], int], list[Decoder]] = {}

    def run(self, cases: int) -> int:
        """Returns how many were refused."""
        refused = 0
        for number in range(cases):
            if number % 20 == 0:  # several cases from one message: making messages is the slow part
                target = self.random.choice(self.targets)
                valid = encode(self.messages.message(*target), target[1])
            damaged = self.damage(valid)
            try:
                refused += self.refuses(*target, damaged)
            except BaseException:
                print(f"seed {self.seed} case {number}: {target[0].__name__} version {target[1]}: {damaged.hex()}")
                raise
        return refused

    def damage(self, data: bytes) -> bytes:
        damaged = bytearray(data)
        for _ in range(self.random.choice((1, 1, 1, 2, 5))):
            at = self.random.randrange(len(damaged) + 1)
            match self.random.randrange(5):
                case 0:
                    del damaged[at:]
                case 1:
                    del damaged[at : at + self.random.randrange(1, 9)]
                case 2:
                    damaged[at:at] = self.random.randbytes(self.random.randrange(1, 9))
                case 3:
                    hostile = self.random.choice(HOSTILE)
                    damaged[at : at + len(hostile)] = hostile
                case 4 if at < len(damaged):
                    damaged[at] ^= 1 << self.random.randrange(8)
        return bytes(damaged)

    def refuses(self, message: type[Message], version: int, data: bytes) -> bool:
        decoders = self.decoders_of(message, version)
        outcomes = [attempt(decoder, data) for decoder in decoders]
        if outcomes[0] is None:
            assert not any(outcomes), "one decoder refuses what another accepts"
            return True
        value, end = outcomes[0]
        again = encode(value, version)
        for outcome, decoder in zip(outcomes, decoders, strict=True):
            assert outcome is not None, "one decoder refuses what another accepts"
            # Compared when encoded, since a not-a-number does not equal itself.
            assert (encode(outcome[0], version), outcome[1]) == (again, end)
            assert encode(decoder(again, 0)[0], version) == again
        return False

    def decoders_of(self, message: type[Message], version: int) -> list[Decoder]:
        key = message, version
        if key not in self.decoders:
            self.decoders[key] = [compile_decoder(*key) for compile_decoder in DECODERS.values()]
        return self.decoders[key]


def attempt(decoder: Decoder, data: bytes) -> tuple[Any, int] | None:
    try:
        return decoder(data, 0)
    except DecodeError as error:
        if not 0 <= error.position <= len(data):
            raise AssertionError("the position is outside the input") from error
        return None


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
