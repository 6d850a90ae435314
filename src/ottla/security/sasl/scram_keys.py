"""What SCRAM computes (RFC 5802, section 3), and the two mechanisms of it that Kafka has.

Every node knows the mechanisms; OpenSSL, which computes, is loaded where there is something to compute.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.security.sasl.mechanism import SCRAM_SHA_256, SCRAM_SHA_512

SALT_ENTROPY_BYTES: Final = 17
"""What a salt is made of, at least."""
_SALT_BITS: Final = 130
_DIGITS: Final = b"0123456789abcdefghijklmnopqrstuvwxyz"


def salt_from(chance: bytes) -> bytes:
    """A salt as Kafka's clients and tools make them: 130 bits as a number in base 36, mostly of 25 or 26 digits.

    Every salt that is made here has this form, so that none tells which tool, or which node, made it.
    """
    assert len(chance) >= SALT_ENTROPY_BYTES, "there are too few bits for a salt"
    number = int.from_bytes(chance, "big") % (1 << _SALT_BITS)
    salt = bytearray()
    while number or not salt:
        number, digit = divmod(number, len(_DIGITS))
        salt.append(_DIGITS[digit])
    salt.reverse()
    return bytes(salt)


class ScramHash(NamedTuple):
    """`type` is the protocol's number for the mechanism."""

    mechanism: str
    type: int
    hash: str
    min_iterations: int = 4096
    max_iterations: int = 16_384

    @property
    def hash_bytes(self) -> int:
        import hashlib

        return hashlib.new(self.hash).digest_size

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Takes milliseconds, on purpose."""
        import hashlib

        return hashlib.pbkdf2_hmac(self.hash, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        return self.signature(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        return self.signature(salted_password, b"Server Key")

    def stored_key(self, client_key: bytes) -> bytes:
        import hashlib

        return hashlib.new(self.hash, client_key).digest()

    def signature(self, key: bytes, auth_message: bytes) -> bytes:
        import hmac

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
