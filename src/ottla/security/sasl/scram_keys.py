"""What SCRAM computes (RFC 5802, section 3), and the two mechanisms of it that Kafka has."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512


class ScramHash(NamedTuple):
    """`type` is the protocol's number for the mechanism."""

    mechanism: str
    type: int
    hash: str
    min_iterations: int = 4096
    max_iterations: int = 16_384

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Takes milliseconds, on purpose."""
        return hashlib.pbkdf2_hmac(self.hash, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        return hmac.digest(salted_password, b"Client Key", self.hash)

    def server_key(self, salted_password: bytes) -> bytes:
        return hmac.digest(salted_password, b"Server Key", self.hash)

    def stored_key(self, client_key: bytes) -> bytes:
        return hashlib.new(self.hash, client_key).digest()

    def signature(self, key: bytes, auth_message: bytes) -> bytes:
        return hmac.digest(key, auth_message, self.hash)

    def credential(self, password: str, salt: bytes, iterations: int) -> "ScramCredential":
        salted = self.salted_password(password, salt, iterations)
        return ScramCredential(salt, self.stored_key(self.client_key(salted)), self.server_key(salted), iterations)


class ScramCredential(NamedTuple):
    """What a server keeps of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential([hidden], iterations={self.iterations})"


SCRAM_HASHES: Final[Mapping[str, ScramHash]] = {
    SCRAM_SHA_256: ScramHash(SCRAM_SHA_256, 1, "sha256"),
    SCRAM_SHA_512: ScramHash(SCRAM_SHA_512, 2, "sha512"),
}


def exclusive_or(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
