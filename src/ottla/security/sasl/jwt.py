"""Tokens (JWT, RFC 7519): what a broker believes of one.

`check_signed` is for tokens of a provider whose keys are known. `check_unsecured` believes what is written in a token
that nobody has signed: for trying things out, as Kafka's default for OAUTHBEARER does.
"""

from collections.abc import Callable, Mapping
from json import loads
from typing import Any, NamedTuple

from ottla.base.errors import OttlaError
from ottla.security.sasl.jwks import PublicKey, from_base64url

_PARTS = 3


class WrongToken(OttlaError):
    """A token that is not believed. Its message is for our log alone."""


class Token(NamedTuple):
    name: str
    expires_ms: int
    scope: tuple[str, ...]


class Expected(NamedTuple):
    """What a token must say. None, and an empty tuple, are not checked."""

    issuer: str | None = None
    audience: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    clock_skew_ms: int = 30_000
    name_claim: str = "sub"
    scope_claim: str = "scope"


FindKey = Callable[[str | None, str], PublicKey | None]
"""The key with this id that is for this algorithm."""


def check_signed(text: str, find_key: FindKey, expected: Expected, now_ms: int) -> Token:
    """Raises `WrongToken`."""
    parts = text.split(".")
    if len(parts) != _PARTS:
        raise WrongToken("a JWT has three parts, separated by dots")
    header = _json(parts[0])
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None) or "crit" in header:
        raise WrongToken("its header is not one that is understood")
    key = find_key(key_id, algorithm)
    if key is None or not key.fits(algorithm):
        raise WrongToken(f"no key is known with the id {key_id!r} for the algorithm {algorithm!r}")
    if not key.verifies(algorithm, _decoded(parts[2]), f"{parts[0]}.{parts[1]}".encode()):
        raise WrongToken("its signature is wrong")
    return _checked(_json(parts[1]), expected, now_ms)


def check_unsecured(text: str, expected: Expected, now_ms: int) -> Token:
    """For a token with the algorithm "none" and without a signature. Raises `WrongToken`."""
    parts = text.split(".")
    if len(parts) != _PARTS or parts[2] or _json(parts[0]).get("alg") != "none":
        raise WrongToken("it is not an unsecured token")
    return _checked(_json(parts[1]), expected, now_ms, needs_issued_at=False)


def _checked(claims: Mapping[str, Any], expected: Expected, now_ms: int, *, needs_issued_at: bool = True) -> Token:
    expires_ms = _time_ms(claims, "exp")
    issued_ms = _time_ms(claims, "iat") if needs_issued_at or "iat" in claims else None
    if expires_ms is None or expires_ms + expected.clock_skew_ms <= now_ms:
        raise WrongToken("it has expired")
    if needs_issued_at and issued_ms is None:
        raise WrongToken("it does not say when it was issued")
    for from_ms in (issued_ms, _time_ms(claims, "nbf") if "nbf" in claims else None):
        if from_ms is not None and from_ms - expected.clock_skew_ms > now_ms:
            raise WrongToken("it is not valid yet")
    if expected.issuer is not None and claims.get("iss") != expected.issuer:
        raise WrongToken("it is of another issuer")
    if expected.audience and not set(_words(claims.get("aud"), split=False)) & set(expected.audience):
        raise WrongToken("it is for another audience")
    name = claims.get(expected.name_claim)
    if not isinstance(name, str) or not name.strip():
        raise WrongToken(f"its claim {expected.name_claim} names nobody")
    scope = _words(claims.get(expected.scope_claim), split=True)
    if not set(expected.scope) <= set(scope):
        raise WrongToken("it lacks the required scope")
    return Token(name, expires_ms, scope)


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    seconds = claims.get(name)
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1 << 40:
        raise WrongToken(f"its claim {name} is no time")
    return int(seconds * 1000)


def _words(value: object, *, split: bool) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(value.split()) if split else (value,)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(value)
    if value is None:
        return ()
    raise WrongToken("a claim is neither a text nor a list of texts")


def _json(part: str) -> Mapping[str, Any]:
    try:
        value = loads(_decoded(part))
    except (ValueError, RecursionError) as problem:
        raise WrongToken("a part of it is no JSON") from problem
    if not isinstance(value, dict):
        raise WrongToken("a part of it is no JSON object")
    return value


def _decoded(part: str) -> bytes:
    try:
        return from_base64url(part)
    except ValueError as problem:
        raise WrongToken("a part of it is not base64url") from problem
