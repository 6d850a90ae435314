"""A token provider for tests: it has keys, and signs what it is told to."""

import json
from base64 import urlsafe_b64encode
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int) -> str:
    return base64url(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Provider:
    """`rsa` and `ec` are the ids of its two keys."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(65537, 2048)
        self.ec = ec.generate_private_key(ec.SECP256R1())

    def jwks(self) -> bytes:
        rsa_numbers, ec_numbers = self.rsa.public_key().public_numbers(), self.ec.public_key().public_numbers()
        keys = [
            {"kty": "RSA", "kid": "rsa", "use": "sig", "n": number(rsa_numbers.n), "e": number(rsa_numbers.e)},
            {"kty": "EC", "kid": "ec", "crv": "P-256", "x": number(ec_numbers.x), "y": number(ec_numbers.y)},
            {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        ]
        return json.dumps({"keys": keys}).encode()

    def token(self, claims: dict[str, Any], algorithm: str = "RS256", **header: Any) -> str:
        kid = "ec" if algorithm == "ES256" else "rsa"
        signed = encoded({"alg": algorithm, "kid": kid} | header) + "." + encoded(claims)
        return f"{signed}.{base64url(self._signature(algorithm, signed.encode()))}"

    def _signature(self, algorithm: str, signed: bytes) -> bytes:
        if algorithm == "ES256":
            halves = decode_dss_signature(self.ec.sign(signed, ec.ECDSA(hashes.SHA256())))
            return b"".join(half.to_bytes(32, "big") for half in halves)
        if algorithm == "PS256":
            return self.rsa.sign(signed, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256())
        return self.rsa.sign(signed, padding.PKCS1v15(), hashes.SHA256())


def encoded(part: object) -> str:
    return base64url(json.dumps(part).encode())


def unsecured(claims: dict[str, Any], algorithm: str = "none") -> str:
    return f"{encoded({'alg': algorithm})}.{encoded(claims)}."
