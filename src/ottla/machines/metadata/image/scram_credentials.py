"""SCRAM credentials as the metadata keeps them (RFC 5802): a server can check a password by them, nobody find it."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.wire.messages import UserScramCredentialRecord


class Mechanism(NamedTuple):
    """`type` is the protocol's number for it."""

    type: int
    hash: str
    min_iterations: int = 4096
    max_iterations: int = 16384


MECHANISMS: Final[Mapping[str, Mechanism]] = {
    "SCRAM-SHA-256": Mechanism(1, "sha256"),
    "SCRAM-SHA-512": Mechanism(2, "sha512"),
}
BY_TYPE: Final[Mapping[int, Mechanism]] = {mechanism.type: mechanism for mechanism in MECHANISMS.values()}


def credential_record(
    user: str, mechanism: Mechanism, *, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """The salted password lets a thief in as well as the password does; only what is derived from it is kept."""
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.hash)
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=hashlib.new(mechanism.hash, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", mechanism.hash),
        iterations=iterations,
    )
