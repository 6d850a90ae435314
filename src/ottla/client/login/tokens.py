"""A token of OAUTHBEARER as a client sees it: a JWT whose signature only the broker can judge."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ottla.base.errors import OttlaError

_PARTS: Final = 3
_MS_PER_S: Final = 1000


class NoToken(OttlaError):
    """What came is no token that a broker could accept. Its message never holds the token."""


class Token(NamedTuple):
    text: str
    begins_ms: int
    expires_ms: int

    def __repr__(self) -> str:
        return f"Token([hidden], expires_ms={self.expires_ms})"


def read_token(text: str, now_ms: int, subject_claim: str = "sub") -> Token:
    """Checks what a client can check, as Kafka's does: three parts, a subject, and a time at which it ends."""
    text = text.strip()
    parts = text.split(".")
    if len(parts) != _PARTS:
        raise NoToken(f"a JWT has three parts with dots between, and this has {len(parts)}")
    claims = _claims(parts[1])
    if not isinstance(claims.get(subject_claim), str) or not claims[subject_claim].strip():
        raise NoToken(f"the token has no claim {subject_claim!r}, which names its subject")
    expires_ms = _time_ms(claims, "exp")
    if expires_ms is None:
        raise NoToken("the token has no claim 'exp': it would never end")
    begins_ms = _time_ms(claims, "iat")
    return Token(text, now_ms if begins_ms is None else begins_ms, expires_ms)


def unsigned_token(claims: Mapping[str, object]) -> str:
    """A token that nobody vouches for (algorithm "none"), for trying things out."""
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _claims(part: str) -> dict[str, Any]:
    try:
        claims = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        raise NoToken("the claims of the token cannot be read") from None
    if not isinstance(claims, dict):
        raise NoToken("the claims of the token are not a JSON object")
    return claims


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoToken(f"the claim {name!r} of the token is not a time")
    return int(value * _MS_PER_S)


def _encoded(value: Mapping[str, object]) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
