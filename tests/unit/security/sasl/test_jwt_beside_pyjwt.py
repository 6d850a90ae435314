"""Our checks of tokens beside PyJWT's: what we believe, PyJWT believes; the reverse does not hold (decision 19)."""

import json
from random import Random
from time import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ottla.security.sasl.jwks import WrongKeys, parse_keys
from ottla.security.sasl.jwt import Expected, WrongToken, check_signed
from tests.unit.security.sasl.token_provider import Provider, number

ISSUER = "https://provider"
EXPECTED = Expected(issuer=ISSUER, audience=("kafka",), clock_skew_ms=30_000)
ALGORITHMS = ["RS256", "PS256", "ES256"]
ODD: tuple[Any, ...] = (None, True, -1, 0, 0.5, 1e300, "", "kafka", ISSUER, "tomorrow", [], ["kafka", 1], {})


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


def we_believe(provider: Provider, text: str) -> bool:
    keys = parse_keys(provider.jwks())
    try:
        check_signed(text, lambda key_id, algorithm: keys.get(key_id), EXPECTED, round(time() * 1000))
    except WrongToken:
        return False
    return True


def pyjwt_believes(provider: Provider, text: str, algorithm: str) -> bool:
    key: Any = (provider.ec if algorithm == "ES256" else provider.rsa).public_key()
    required: Any = {"require": ["exp", "iat", "sub"]}
    try:
        jwt.decode(text, key, [algorithm], required, audience="kafka", issuer=ISSUER, leeway=30)
    except jwt.InvalidTokenError:
        return False
    return True


def drawn(provider: Provider, random: Random, algorithm: str) -> str:
    """A token that is good, or has something odd about one of its claims, its header or its text."""
    now_s = round(time())
    claims: dict[str, Any] = {"sub": "alice", "iss": ISSUER, "aud": "kafka", "iat": now_s, "exp": now_s + 300}
    header: dict[str, Any] = {}
    kind = random.randrange(5)
    if kind == 0:
        claims[random.choice([*claims, "nbf"])] = random.choice(ODD)
    elif kind == 1:
        claims[random.choice(["iat", "exp", "nbf"])] = now_s + random.choice([-3600, -20, 20, 3600])
    elif kind == 2:
        header = random.choice([{"crit": ["x"], "x": 1}, {"typ": "JWT"}, {"x": [[[]]]}, {"alg": "none"}])
    text = provider.token(claims, algorithm, **header)
    if kind == 3:
        at = random.randrange(len(text))
        text = text[:at] + random.choice(["", "A", "=", ".", "\n", "é"]) + text[at + 1 :]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_we_believe_is_believed_by_pyjwt(provider: Provider, algorithm: str) -> None:
    random = Random(f"tokens {algorithm}")
    ours = 0
    for text in [drawn(provider, random, algorithm) for _ in range(150)]:
        if we_believe(provider, text):
            ours += 1
            assert pyjwt_believes(provider, text, algorithm), text
    assert ours > 30, "good ones are among them"


def test_pyjwt_believes_a_time_that_is_text_and_a_short_key(provider: Provider) -> None:
    """Why we do not leave it to PyJWT."""
    now_s = round(time())
    claims = {"sub": "alice", "iss": ISSUER, "aud": "kafka", "iat": now_s, "exp": str(now_s + 300)}
    text = provider.token(claims)
    assert pyjwt_believes(provider, text, "RS256")
    assert not we_believe(provider, text)

    provider = Provider()
    provider.rsa = rsa.generate_private_key(65537, 1024)
    with pytest.warns(Warning, match="below the minimum"):
        assert pyjwt_believes(provider, provider.token(claims | {"exp": now_s + 300}), "RS256")


def test_a_short_key_is_no_key() -> None:
    short = rsa.generate_private_key(65537, 1024).public_key().public_numbers()
    key = {"kty": "RSA", "kid": "rsa", "n": number(short.n), "e": number(short.e)}
    with pytest.raises(WrongKeys):
        parse_keys(json.dumps({"keys": [key]}).encode())
