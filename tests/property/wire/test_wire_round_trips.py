"""Every message and record in every version survives encoding and decoding, by every decoder."""

from random import Random

import pytest

from ottla.wire.codec import encode, encode_parts
from ottla.wire.message import Message
from tests.property.wire.wire_decoders import DECODERS
from tests.property.wire.wire_values import RandomMessages, every_message

EXAMPLES = 12


@pytest.mark.parametrize("decoder", DECODERS)
def test_every_message_comes_back_as_it_was(decoder: str) -> None:
    for message, version in every_message():
        random_messages = RandomMessages(Random(f"{message.__name__} {version}"))
        decode = DECODERS[decoder](message, version)
        for _ in range(EXAMPLES):
            original = random_messages.message(message, version)
            data = encode(original, version)
            decoded, end = decode(b"before" + data + b"after", len(b"before"))
            assert (decoded, end) == (original, len(b"before") + len(data)), f"{message.__name__} version {version}"
            assert encode(decoded, version) == data


def test_parts_put_together_are_the_whole() -> None:
    for message, version in every_message():
        if has_records(message):
            original = RandomMessages(Random(version)).message(message, version)
            parts = encode_parts(original, version)
            assert b"".join(parts) == encode(original, version)  # type: ignore[arg-type]


def test_defaults_make_a_message_of_every_version() -> None:
    for message, version in every_message():
        data = encode(message(), version)
        for compile_decoder in DECODERS.values():
            assert compile_decoder(message, version)(data, 0) == (message(), len(data))


def has_records(message: type[Message]) -> bool:
    structs = [message._schema.root, *message._schema.structs.values()]
    return any(field.type == "records" for struct in structs for field in struct.fields)
