"""Byte equality with kio, an independent codec, for every message and version that it has."""

from random import Random

from ottla.wire.codec import decode, encode
from tests.property.wire.kio_bridge import kio_class, kio_decode, kio_encode, to_kio
from tests.property.wire.wire_values import RandomMessages, every_message

EXAMPLES = 4
KIO_HAS = 625
"""Everything in `messages.json`; fewer compared would mean that the comparison has lost its way."""


def test_kio_writes_the_same_bytes_and_reads_the_same_values() -> None:
    compared = 0
    for message, version in every_message():
        target = kio_class(message, version)
        if target is None:
            continue
        compared += 1
        random_messages = RandomMessages(Random(f"{message.__name__} {version}"), tame=True)
        for _ in range(EXAMPLES):
            ours = random_messages.message(message, version)
            theirs = to_kio(ours, target, version)
            data = encode(ours, version)
            assert kio_encode(theirs) == data, f"{message.__name__} version {version}: {ours}"
            assert kio_decode(target, data) == theirs
            assert decode(message, kio_encode(theirs), version) == ours
    assert compared >= KIO_HAS
