"""SCRAM credentials that a cluster begins with (`--add-scram`, KIP-900), from words to a metadata record.

SCRAM-SHA-256=[name=alice,password=alice-secret]
SCRAM-SHA-512=[name=alice,iterations=8192,salt="N3E=",saltedpassword="YCE="]
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Final

from ottla.base.errors import StorageError
from ottla.machines.metadata.image.security_image import MECHANISMS, credential_record
from ottla.security.sasl.scram_keys import ScramHash, salt_from
from ottla.wire.messages import UserScramCredentialRecord

_DEFAULT_ITERATIONS: Final = 4096


class WrongScram(StorageError):
    """A credential that is not written as it must be."""


def parse_scram(text: str, salt_entropy: Callable[[], bytes]) -> UserScramCredentialRecord:
    name, equals, rest = text.strip().partition("=")
    if not equals:
        raise WrongScram(f"Failed to find equals sign in SCRAM argument '{text.strip()}'")
    if name not in MECHANISMS:
        raise WrongScram(f"The add-scram mechanism {name} is not supported.")
    if not rest.startswith("["):
        raise WrongScram("Expected configuration string to start with [")
    if not rest.endswith("]"):
        raise WrongScram("Expected configuration string to end with ]")
    given = dict(_component(part) for part in rest[1:-1].split(","))
    return _record(name, MECHANISMS[name], given, salt_entropy)


def _component(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise WrongScram(f"No equals sign found in SCRAM component: {key}")
    quoted = len(value) >= 2 and value[0] == value[-1] == '"'
    return key, value[1:-1] if quoted else value


def _record(
    name: str, mechanism: ScramHash, given: dict[str, str], salt_entropy: Callable[[], bytes]
) -> UserScramCredentialRecord:
    if (user := given.pop("name", None)) is None:
        raise WrongScram("You must supply 'name' to add-scram")
    salt_text, password = given.pop("salt", None), given.pop("password", None)
    salted_text = given.pop("saltedpassword", None)
    iterations = _iterations(name, mechanism, given.pop("iterations", None))
    if password is None and salted_text is None:
        raise WrongScram("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt_text is None:
        raise WrongScram("You must supply 'salt' with 'saltedpassword' to add-scram")
    if given:
        raise WrongScram(f"Unknown SCRAM configurations: {', '.join(sorted(given))}")
    salt = salt_from(salt_entropy()) if salt_text is None else _decode("salt", salt_text)
    if password is not None:
        salted = mechanism.salted_password(password, salt, iterations)
    else:
        salted = _decode("saltedPassword", salted_text or "")
    return credential_record(user, mechanism, salt=salt, salted_password=salted, iterations=iterations)


def _iterations(name: str, mechanism: ScramHash, text: str | None) -> int:
    try:
        iterations = _DEFAULT_ITERATIONS if text is None else int(text)
    except ValueError as problem:
        raise WrongScram(f"Failed to parse iterations count: {text}") from problem
    lowest, highest = mechanism.min_iterations, mechanism.max_iterations
    if not lowest <= iterations <= highest:
        bound = f">= {lowest}" if iterations < lowest else f"<= {highest}"
        shown = name.replace("-", "_")
        raise WrongScram(f"The 'iterations' value must be {bound} for add-scram using {shown}")
    return iterations


def _decode(what: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error as problem:
        raise WrongScram(f"Failed to decode given {what}: {text}") from problem
