"""The last two messages of GSSAPI (RFC 4752, 3.1): the server offers security layers, the client chooses one.

Four bytes: a bit for each layer (none, integrity, confidentiality), and how much the sender takes at once. Kafka frames
its requests itself, so both sides settle for none: TLS protects what follows, or nothing does. Sizes mean nothing then.
Apache Kafka sends 65536 all the same, where the RFC wants 0, so neither side looks at them.
"""

from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import SaslError

NO_LAYER: Final = 0x01
OFFER: Final = bytes((NO_LAYER, 0, 0, 0))
"""A server's message, and a client's with an empty authorization id."""

_HEAD_BYTES: Final = 4


class Choice(NamedTuple):
    layers: int
    authorization_id: bytes


def parse_layers(message: bytes) -> Choice:
    """Either side's message. Raises `SaslError`."""
    if len(message) < _HEAD_BYTES:
        raise SaslError(f"a message about security layers has at least 4 bytes, and this has {len(message)}")
    return Choice(message[0], message[_HEAD_BYTES:])
