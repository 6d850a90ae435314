"""Public keys of a token provider (JWKS, RFC 7517), and signatures checked by them (RFC 7515, 7518).

Only signatures of public keys count: a token that is signed by a shared secret, or not at all, has none that could be
checked here, whatever it says of itself. A key is used for its own kind of algorithm only.
"""

from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from json import loads
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError

_RSA: Final = {"RS256": "SHA256", "RS384": "SHA384", "RS512": "SHA512"}
_PSS: Final = {"PS256": "SHA256", "PS384": "SHA384", "PS512": "SHA512"}
_EC: Final = {"ES256": ("SHA256", "P-256", 32), "ES384": ("SHA384", "P-384", 48), "ES512": ("SHA512", "P-521", 66)}
_CURVES: Final = {"P-256": "SECP256R1", "P-384": "SECP384R1", "P-521": "SECP521R1"}
_LEAST_RSA_BITS: Final = 2048


class WrongKeys(OttlaError):
    """What was read is no set of keys."""


class PublicKey(NamedTuple):
    """`kind` is RSA or the name of a curve; `algorithm` the only one it is for, if the provider says so."""

    key: Any
    kind: str
    algorithm: str | None

    def fits(self, algorithm: str) -> bool:
        if self.algorithm not in (None, algorithm):
            return False
        if algorithm in _EC:
            return self.kind == _EC[algorithm][1]
        return self.kind == "RSA" and (algorithm in _RSA or algorithm in _PSS)

    def verifies(self, algorithm: str, signature: bytes, signed: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        assert self.fits(algorithm), "a key for another algorithm"
        try:
            self._verify(algorithm, signature, signed)
        except (InvalidSignature, ValueError):
            return False
        return True

    def _verify(self, algorithm: str, signature: bytes, signed: bytes) -> None:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils

        if algorithm in _EC:
            name, _, size = _EC[algorithm]
            if len(signature) != 2 * size:
                raise ValueError("a signature of another length")
            halves = (int.from_bytes(signature[:size], "big"), int.from_bytes(signature[size:], "big"))
            self.key.verify(utils.encode_dss_signature(*halves), signed, ec.ECDSA(getattr(hashes, name)()))
        elif algorithm in _PSS:
            digest = getattr(hashes, _PSS[algorithm])()
            pss = padding.PSS(mgf=padding.MGF1(digest), salt_length=digest.digest_size)
            self.key.verify(signature, signed, pss, digest)
        else:
            self.key.verify(signature, signed, padding.PKCS1v15(), getattr(hashes, _RSA[algorithm])())


Keys = Mapping[str | None, PublicKey]
"""By key id; a provider's only key may have none."""


def parse_keys(text: bytes) -> Keys:
    """The keys for signatures. Those of other kinds are passed over. Raises `WrongKeys`."""
    try:
        entries = loads(text)["keys"]
        found = [(entry.get("kid"), _key(entry)) for entry in entries if entry.get("use", "sig") == "sig"]
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise WrongKeys(f"it is no JSON Web Key Set: {type(problem).__name__}") from problem
    keys = {kid: key for kid, key in found if key is not None}
    if not keys:
        raise WrongKeys("it has no key for signatures of RSA or elliptic curves")
    return keys


def _key(entry: Mapping[str, Any]) -> PublicKey | None:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    algorithm = entry.get("alg")
    if entry["kty"] == "RSA":
        key = rsa.RSAPublicNumbers(_number(entry["e"]), _number(entry["n"])).public_key()
        return PublicKey(key, "RSA", algorithm) if key.key_size >= _LEAST_RSA_BITS else None
    if entry["kty"] == "EC" and entry["crv"] in _CURVES:
        curve = getattr(ec, _CURVES[entry["crv"]])()
        numbers = ec.EllipticCurvePublicNumbers(_number(entry["x"]), _number(entry["y"]), curve)
        return PublicKey(numbers.public_key(), entry["crv"], algorithm)
    return None


def _number(text: str) -> int:
    return int.from_bytes(from_base64url(text), "big")


def from_base64url(text: str) -> bytes:
    """Without padding, as in tokens. Raises `ValueError`."""
    if not text.isascii() or any(sign in text for sign in "=+/\n\r "):
        raise ValueError("not base64url")
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except Base64Error as problem:
        raise ValueError("not base64url") from problem
