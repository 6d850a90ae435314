"""The client's message of OAUTHBEARER (RFC 7628, section 3.1): a header, the token, extensions (KIP-342).

`n,a=alice,^Aauth=Bearer TOKEN^Akey=value^A^A`, where ^A is the byte 1.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import SaslError
from ottla.security.sasl.scram_messages import unescaped

ABORT: Final = b"\x01"
"""What a client says when it has read why it was refused."""

_TOKEN_KEY: Final = "auth"
_KEY = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_NAME = r"(?:[^=,\x00\x01]|=2C|=3D)+"
_MESSAGE = re.compile(rf"n,(?:a=({_NAME}))?,\x01((?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01")
_BEARER = re.compile(r"bearer +([-_~+/.a-zA-Z0-9]+=*)", re.IGNORECASE)


class TokenMessage(NamedTuple):
    token: str
    authorization_id: str
    extensions: dict[str, str]


def token_message(token: str, extensions: Mapping[str, str]) -> bytes:
    """Raises `SaslError` for an extension that cannot be sent."""
    for key, value in extensions.items():
        if key == _TOKEN_KEY or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise SaslError(f"the SASL extension {key!r} is not one that can be sent")
    pairs = "".join(f"\x01{key}={value}" for key, value in extensions.items())
    return f"n,,\x01auth=Bearer {token}{pairs}\x01\x01".encode()


def parse_token_message(message: bytes) -> TokenMessage:
    """Raises `SaslError`."""
    try:
        match = _MESSAGE.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match[2].split("\x01")[:-1])
    bearer = _BEARER.fullmatch(pairs.pop(_TOKEN_KEY, ""))
    if bearer is None:
        raise SaslError("Invalid OAUTHBEARER client first message: it has no bearer token")
    return TokenMessage(bearer[1], unescaped(match[1] or ""), pairs)
