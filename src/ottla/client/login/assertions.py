"""Assertions: short-lived JWTs, signed with the client's own key, that stand in for a client secret (RFC 7523).

The one that signs needs the package `cryptography` (`pip install ottla[security]`).
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_MS_PER_S: Final = 1000
_ES256_BYTES: Final = 32
_HEADER, _PAYLOAD = "header", "payload"


class FileAssertion:
    """One that somebody else has made and keeps fresh."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, now_ms: int) -> str:
        with open(self._path, encoding="utf-8") as file:
            return file.read().strip()


class AssertionClaims(NamedTuple):
    fixed: Mapping[str, str]
    """`aud`, `iss` and `sub`, those that were given."""
    valid_s: int
    back_s: int
    has_id: bool


class SignedAssertion:
    """Made anew for each request. `template` is a JSON file with a `header` and a `payload` to start from."""

    def __init__(
        self,
        algorithm: str,
        key_file: str,
        passphrase: str | None,
        claims: AssertionClaims,
        template: str | None,
        randbytes: Any,
    ) -> None:
        self._algorithm = algorithm.upper()
        self._key_file = key_file
        self._passphrase = passphrase
        self._claims = claims
        self._template = template
        self._randbytes = randbytes

    def __call__(self, now_ms: int) -> str:
        """Raises `OSError` or `ValueError`."""
        template = self._from_template()
        header = {**template[_HEADER], "alg": self._algorithm, "typ": "JWT"}
        payload = {**template[_PAYLOAD], **self._claims.fixed, **self._timed(now_ms // _MS_PER_S)}
        signed = f"{_encoded(json.dumps(header).encode())}.{_encoded(json.dumps(payload).encode())}"
        return f"{signed}.{_encoded(self._signature(signed.encode()))}"

    def _timed(self, now_s: int) -> dict[str, object]:
        timed: dict[str, object] = {
            "iat": now_s,
            "exp": now_s + self._claims.valid_s,
            "nbf": now_s - self._claims.back_s,
        }
        if self._claims.has_id:
            timed["jti"] = self._randbytes(16).hex()
        return timed

    def _from_template(self) -> dict[str, dict[str, object]]:
        if self._template is None:
            return {_HEADER: {}, _PAYLOAD: {}}
        with open(self._template, encoding="utf-8") as file:
            read = json.load(file)
        if not isinstance(read, dict):
            raise ValueError(f"{self._template} is no JSON object")
        return {part: dict(read.get(part) or {}) for part in (_HEADER, _PAYLOAD)}

    def _signature(self, signed: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        with open(self._key_file, "rb") as file:
            pem = file.read()
        try:
            key = load_pem_private_key(pem, None if self._passphrase is None else self._passphrase.encode())
        except TypeError as problem:  # A passphrase where none is needed, or none where one is.
            raise ValueError(str(problem)) from None
        if self._algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
            return key.sign(signed, padding.PKCS1v15(), SHA256())
        if self._algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey):
            numbers = decode_dss_signature(key.sign(signed, ec.ECDSA(SHA256())))
            return b"".join(number.to_bytes(_ES256_BYTES, "big") for number in numbers)
        raise ValueError(f"the key in {self._key_file} does not fit the algorithm {self._algorithm}")


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
