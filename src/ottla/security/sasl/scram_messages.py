"""The messages of SCRAM (RFC 5802, section 7), as Kafka writes them: without channel binding.

    client first    n,,n=alice,r=NONCE[,tokenauth=true]
    server first    r=NONCE+SERVER,s=SALT,i=4096
    client final    c=biws,r=NONCE+SERVER,p=PROOF
    server final    v=SIGNATURE, or e=reason

`tokenauth=true` says that the name is the id of a delegation token (KIP-48). Other extensions are ignored, but for
those that the RFC calls mandatory (`m=`), which nobody understands. A message is parsed whole or not at all:
`SaslError`.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import SaslError

TOKEN_EXTENSION: Final = "tokenauth"
GS2_HEADER: Final = "n,,"

_NAME = r"(?:[^=,\x00]|=2C|=3D)+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^,\x00]+)*"
_BASE64 = r"[A-Za-z0-9+/]*={0,2}"
_CLIENT_FIRST = re.compile(rf"(n,(?:a=({_NAME}))?,)(n=({_NAME}),r=({_NONCE})({_EXTENSIONS}))")
_SERVER_FIRST = re.compile(rf"r=({_NONCE}),s=({_BASE64}),i=([0-9]{{1,9}}){_EXTENSIONS}")
_CLIENT_FINAL = re.compile(rf"(c=({_BASE64}),r=({_NONCE}){_EXTENSIONS}),p=({_BASE64})")
_SERVER_FINAL = re.compile(rf"(?:e=([^,\x00]+)|v=({_BASE64})){_EXTENSIONS}")


class ClientFirst(NamedTuple):
    gs2_header: str
    authorization_id: str
    bare: str
    user: str
    nonce: str
    extensions: dict[str, str]


class ServerFirst(NamedTuple):
    nonce: str
    salt: bytes
    iterations: int

    def __str__(self) -> str:
        return f"r={self.nonce},s={b64encode(self.salt).decode()},i={self.iterations}"


class ClientFinal(NamedTuple):
    without_proof: str
    channel_binding: bytes
    nonce: str
    proof: bytes


class ServerFinal(NamedTuple):
    error: str | None
    signature: bytes


def parse_client_first(message: bytes) -> ClientFirst:
    header, authorization_id, bare, name, nonce, extensions = _matched(_CLIENT_FIRST, message, "client first")
    pairs = dict(pair.split("=", 1) for pair in extensions.split(",")[1:])
    if "m" in pairs:
        raise SaslError("the client needs an extension of SCRAM that nobody has")
    return ClientFirst(header, unescaped(authorization_id or ""), bare, unescaped(name), nonce, pairs)


def parse_server_first(message: bytes) -> ServerFirst:
    nonce, salt, iterations = _matched(_SERVER_FIRST, message, "server first")
    return ServerFirst(nonce, _decoded(salt), int(iterations))


def parse_client_final(message: bytes) -> ClientFinal:
    without_proof, channel_binding, nonce, proof = _matched(_CLIENT_FINAL, message, "client final")
    return ClientFinal(without_proof, _decoded(channel_binding), nonce, _decoded(proof))


def parse_server_final(message: bytes) -> ServerFinal:
    error, signature = _matched(_SERVER_FINAL, message, "server final")
    return ServerFinal(error, _decoded(signature or ""))


def escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def _matched(pattern: "re.Pattern[str]", message: bytes, what: str) -> tuple[str, ...]:
    try:
        match = pattern.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    if match is None:
        raise SaslError(f"Invalid SCRAM {what} message format")
    return match.groups()


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error as problem:
        raise SaslError("a SCRAM message has a field that is not base64") from problem
