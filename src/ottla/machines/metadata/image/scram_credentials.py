"""SCRAM credentials as the metadata keeps them (RFC 5802): a server can check a password by them, nobody find it."""

from collections.abc import Mapping
from typing import Final

from ottla.security.sasl.scram_keys import SCRAM_HASHES, ScramHash
from ottla.wire.messages import UserScramCredentialRecord

SALT_SECRET: Final = "ottla.scram.salt.secret"
"""The setting that all nodes make salts of which are nobody's; see `docs/decisions/0018-salts-of-nobody.md`."""

MECHANISMS: Final[Mapping[str, ScramHash]] = SCRAM_HASHES
BY_TYPE: Final[Mapping[int, ScramHash]] = {mechanism.type: mechanism for mechanism in MECHANISMS.values()}


def credential_record(
    user: str, mechanism: ScramHash, *, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """The salted password lets a thief in as well as the password does; only what is derived from it is kept."""
    return UserScramCredentialRecord(
        name=user,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=mechanism.stored_key(mechanism.client_key(salted_password)),
        server_key=mechanism.server_key(salted_password),
        iterations=iterations,
    )
