"""Which tokens are believed: signed by a key of the provider, for us, now. And how others have been fooled."""

import hashlib
import hmac
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from ottla.security.sasl.jwks import PublicKey, WrongKeys, parse_keys
from ottla.security.sasl.jwt import Expected, WrongToken, check_signed, check_unsecured
from ottla.security.sasl.mechanism import AuthenticationFailed, SaslError
from ottla.security.sasl.oauthbearer_client import OAuthBearerClient
from ottla.security.sasl.oauthbearer_server import OAuthBearerServer
from tests.unit.security.sasl.token_provider import Provider, base64url, encoded, unsecured

NOW_S = 1_700_000_000
CLAIMS = {"sub": "alice", "iss": "https://provider", "aud": ["kafka", "other"], "iat": NOW_S, "exp": NOW_S + 300}
EXPECTED = Expected(issuer="https://provider", audience=("kafka",))


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


def believed(provider: Provider, text: str, expected: Expected = EXPECTED, now_s: int = NOW_S) -> Any:
    keys = parse_keys(provider.jwks())

    def find(key_id: str | None, algorithm: str) -> PublicKey | None:
        return keys.get(key_id)

    return check_signed(text, find, expected, now_s * 1000)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256"])
def test_a_token_of_the_provider_is_believed(provider: Provider, algorithm: str) -> None:
    token = believed(provider, provider.token(CLAIMS, algorithm))
    assert (token.name, token.expires_ms) == ("alice", (NOW_S + 300) * 1000)


def test_claims_may_have_other_names(provider: Provider) -> None:
    expected = Expected(name_claim="client_id", scope_claim="scp", scope=("write",))
    token = believed(provider, provider.token(CLAIMS | {"client_id": "bob", "scp": ["read", "write"]}), expected)
    assert (token.name, token.scope) == ("bob", ("read", "write"))


@pytest.mark.parametrize(
    ("changed", "now_s"),
    [
        ({}, NOW_S + 331),
        ({"exp": None}, NOW_S),
        ({"exp": "tomorrow"}, NOW_S),
        ({"exp": 1e300}, NOW_S),
        ({"iat": None}, NOW_S),
        ({"iat": NOW_S + 31}, NOW_S),
        ({"nbf": NOW_S + 31}, NOW_S),
        ({"iss": "https://another"}, NOW_S),
        ({"iss": None}, NOW_S),
        ({"aud": "another"}, NOW_S),
        ({"aud": None}, NOW_S),
        ({"aud": {"kafka": 1}}, NOW_S),
        ({"sub": ""}, NOW_S),
        ({"sub": None}, NOW_S),
        ({"sub": ["alice"]}, NOW_S),
    ],
    ids=str,
)
def test_a_token_that_is_not_for_us_or_not_now_is_not_believed(
    provider: Provider, changed: dict[str, Any], now_s: int
) -> None:
    claims = {name: value for name, value in (CLAIMS | changed).items() if value is not None}
    with pytest.raises(WrongToken):
        believed(provider, provider.token(claims), now_s=now_s)


def test_clocks_may_differ_a_little(provider: Provider) -> None:
    assert believed(provider, provider.token(CLAIMS), now_s=NOW_S + 329).name == "alice"
    assert believed(provider, provider.token(CLAIMS | {"nbf": NOW_S + 29}), now_s=NOW_S).name == "alice"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256", "RS256"])
def test_vulnerability_an_unsigned_token_is_not_believed(provider: Provider, algorithm: str) -> None:
    with pytest.raises(WrongToken):
        believed(provider, unsecured(CLAIMS, algorithm))
    signed = provider.token(CLAIMS)
    with pytest.raises(WrongToken):
        believed(provider, signed.rpartition(".")[0] + ".")


def test_vulnerability_a_public_key_is_no_shared_secret(provider: Provider) -> None:
    """HS256 with the public key as its secret: the classic confusion of algorithms."""
    public = provider.rsa.public_key()
    for secret in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        b"secret",
    ):
        for kid in ("rsa", "shared"):
            signed = f"{encoded({'alg': 'HS256', 'kid': kid})}.{encoded(CLAIMS)}"
            signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
            with pytest.raises(WrongToken):
                believed(provider, f"{signed}.{base64url(signature)}")


def test_vulnerability_a_key_serves_its_own_algorithm_alone(provider: Provider) -> None:
    for text in (provider.token(CLAIMS, "RS256", kid="ec"), provider.token(CLAIMS, "ES256", kid="rsa")):
        with pytest.raises(WrongToken, match="no key is known"):
            believed(provider, text)


def test_a_key_that_nobody_knows_is_not_found(provider: Provider) -> None:
    with pytest.raises(WrongToken, match="no key is known"):
        believed(provider, provider.token(CLAIMS, kid="unknown"))


def test_vulnerability_another_providers_signature_is_wrong(provider: Provider) -> None:
    with pytest.raises(WrongToken, match="signature"):
        believed(provider, Provider().token(CLAIMS))


def test_claims_that_were_changed_break_the_signature(provider: Provider) -> None:
    header, _, signature = provider.token(CLAIMS).split(".")
    with pytest.raises(WrongToken, match="signature"):
        believed(provider, f"{header}.{encoded(CLAIMS | {'sub': 'admin'})}.{signature}")


@pytest.mark.parametrize(
    "text", ["", "..", "a.b", "a.b.c", "a.b.c.d", "e30.e30.e30", "W10.W10.", "[" * 3000 + "..", "é.é.é"]
)
def test_what_is_no_token_is_not_believed(provider: Provider, text: str) -> None:
    with pytest.raises(WrongToken):
        believed(provider, text)


def test_a_header_that_must_be_understood_and_is_not_is_refused(provider: Provider) -> None:
    with pytest.raises(WrongToken):
        believed(provider, provider.token(CLAIMS, crit=["exp"]))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 1}', b'{"keys": []}', b'{"keys": [{"kty": "RSA"}]}'])
def test_what_is_no_set_of_keys_is_refused(text: bytes) -> None:
    with pytest.raises(WrongKeys):
        parse_keys(text)


def test_unsecured_tokens_are_believed_where_they_are_asked_for() -> None:
    claims = {"sub": "alice", "exp": NOW_S + 10, "scope": "read write"}
    assert check_unsecured(unsecured(claims), Expected(scope=("read",)), NOW_S * 1000).name == "alice"
    for wrong in (unsecured(claims, "HS256"), unsecured(claims) + "c2ln", unsecured(claims | {"exp": NOW_S - 60})):
        with pytest.raises(WrongToken):
            check_unsecured(wrong, Expected(clock_skew_ms=0), NOW_S * 1000)
    with pytest.raises(WrongToken, match="scope"):
        check_unsecured(unsecured(claims), Expected(scope=("admin",)), NOW_S * 1000)


def server_of(provider: Provider, noted: list[str]) -> OAuthBearerServer:
    return OAuthBearerServer(lambda text: believed(provider, text), noted.append)


def test_a_client_gets_in_with_its_token(provider: Provider) -> None:
    server = server_of(provider, [])
    client = OAuthBearerClient(provider.token(CLAIMS))
    assert server.evaluate(client.respond(None) or b"") == b""
    assert (server.principal, server.expires_ms) == ("User:alice", (NOW_S + 300) * 1000)


def test_a_client_that_is_refused_hears_it_and_is_refused_then(provider: Provider) -> None:
    noted: list[str] = []
    server, client = server_of(provider, noted), OAuthBearerClient(unsecured(CLAIMS))
    challenge = server.evaluate(client.respond(None) or b"")
    assert challenge == b'{"status":"invalid_token"}'
    assert len(noted) == 1
    with pytest.raises(AuthenticationFailed, match="invalid_token"):
        server.evaluate(client.respond(challenge) or b"")
    assert not server.is_complete


def test_a_refused_client_gets_no_second_try(provider: Provider) -> None:
    server = server_of(provider, [])
    server.evaluate(OAuthBearerClient(unsecured(CLAIMS)).respond(None) or b"")
    with pytest.raises(SaslError):
        server.evaluate(OAuthBearerClient(provider.token(CLAIMS)).respond(None) or b"")
    assert not server.is_complete


def test_vulnerability_nobody_becomes_another_by_authzid(provider: Provider) -> None:
    message = f"n,a=admin,\x01auth=Bearer {provider.token(CLAIMS)}\x01\x01".encode()
    with pytest.raises(AuthenticationFailed, match="different from the token's principal name"):
        server_of(provider, []).evaluate(message)
