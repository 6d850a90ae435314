"""Decoding keeps nothing: neither of messages that were read and dropped, nor of those that broke half-way."""

import tracemalloc
from random import Random

import pytest

from ottla.wire.codec import encode
from tests.property.wire.wire_decoders import DECODERS
from tests.property.wire.wire_fuzz import Fuzz, attempt
from tests.property.wire.wire_values import RandomMessages, every_message

ROUNDS = 5
NOISE_BYTES = 20_000
"""What the interpreter itself may keep; one lost object per message would be a hundred times that."""


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_is_decoded_and_dropped_leaves_no_memory_behind(decoder: str) -> None:
    fuzz = Fuzz(seed=1)
    random_messages = RandomMessages(Random(1))
    cases = []
    for message, version in every_message()[::3]:
        data = encode(random_messages.message(message, version), version)
        cases.append((DECODERS[decoder](message, version), [data, *(fuzz.damage(data) for _ in range(20))]))

    def decode_all() -> None:
        for decode, inputs in cases:
            for data in inputs:
                attempt(decode, data)

    decode_all()  # fills the tables and caches that stay
    tracemalloc.start()
    try:
        decode_all()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(ROUNDS):
            decode_all()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < NOISE_BYTES
