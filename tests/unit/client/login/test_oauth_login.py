"""Logins by tokens: where they come from, when they are renewed, and what is said when there is none."""

import json
import threading
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from ottla.client.errors import Disconnected, SaslAuthenticationFailed
from ottla.client.io.real_ports import RealEntropy
from ottla.client.login.choice import Login, login_for
from ottla.client.settings import read_settings
from ottla.client.world import ClientWorld
from ottla.config.parse import ConfigError
from ottla.config.scopes import Scope
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ALLOWED_URLS, ALLOWED_FILES = "OTTLA_OAUTHBEARER_ALLOWED_URLS", "OTTLA_OAUTHBEARER_ALLOWED_FILES"
DAY_S = 86_400


def token(begins_s: float, lives_s: float, **claims: object) -> str:
    payload = json.dumps({"sub": "alice", "iat": begins_s, "exp": begins_s + lives_s, **claims}).encode()
    return "e30." + urlsafe_b64encode(payload).rstrip(b"=").decode() + ".c2ln"


class Provider(HTTPServer):
    """A token endpoint on loopback that keeps what it was asked, and answers as the test says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[dict[str, str], dict[str, list[str]]]] = []
        self.answers: list[tuple[int, dict[str, object]]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/token"


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((dict(self.headers), parse_qs(body)))
        status, answer = self.server.answers.pop(0)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    provider = Provider()
    thread = threading.Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv(ALLOWED_URLS, provider.url)
    yield provider
    provider.shutdown()
    thread.join()
    provider.server_close()


class World:
    """Time stands still until a test fires timers; requests to a provider are made where they are asked for."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.problems: list[Exception] = []
        nowhere: Any = None
        self.client = ClientWorld(self.clock, self.timers, RealEntropy(), nowhere, self.problems.append)

    def login(self, options: str = "", **settings: object) -> Login:
        given = {
            "bootstrap.servers": "localhost:1",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": f"{MODULE} required {options};",
        }
        login = login_for(self.client, read_settings(Scope.ADMIN, given, settings))
        assert login is not None
        return login

    @property
    def now_s(self) -> float:
        return self.clock.now_ms() / 1000

    def shown(self, login: Login) -> str:
        """The token in the first message to a broker."""
        promise = login.mechanism("broker")
        while not promise.is_done:
            assert self.timers.agenda.fire_next(), "it waits for something that never comes"
        first = promise.value().respond(None)
        assert first is not None
        return first.decode().partition("auth=Bearer ")[2].partition("\x01")[0]


@pytest.fixture
def world() -> World:
    return World()


CREDENTIALS = {
    "sasl_oauthbearer_client_credentials_client_id": "the id",
    "sasl_oauthbearer_client_credentials_client_secret": "the secret",
}


def test_client_credentials_are_exchanged_for_a_token_which_serves_all_connections(
    provider: Provider, world: World
) -> None:
    wanted = token(world.now_s, DAY_S)
    provider.answers = [(200, {"access_token": wanted})]
    login = world.login(
        'extension_tenant="blue"',
        sasl_oauthbearer_token_endpoint_url=provider.url,
        sasl_oauthbearer_scope="a b",
        **CREDENTIALS,
    )
    assert world.shown(login) == wanted
    assert world.shown(login) == wanted
    [(headers, form)] = provider.asked
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"the id:the secret"
    assert form == {"grant_type": ["client_credentials"], "scope": ["a b"]}
    first = login.mechanism("broker").value().respond(None)
    assert b"tenant=blue" in (first or b"")


def test_options_of_jaas_stand_in_for_settings(provider: Provider, world: World) -> None:
    provider.answers = [(200, {"access_token": token(world.now_s, DAY_S)})]
    options = 'clientId="öl" clientSecret="s+s" scope="c"'
    world.shown(
        world.login(options, sasl_oauthbearer_token_endpoint_url=provider.url, sasl_oauthbearer_header_urlencode=True)
    )
    [(headers, form)] = provider.asked
    assert b64decode(headers["Authorization"].removeprefix("Basic ")) == b"%C3%B6l:s%2Bs"
    assert form["scope"] == ["c"]


def test_a_token_is_renewed_in_the_background_late_in_its_life(provider: Provider, world: World) -> None:
    first, second = token(world.now_s, DAY_S), token(world.now_s, 3 * DAY_S)
    provider.answers = [(200, {"access_token": first}), (200, {"access_token": second})]
    login = world.login(sasl_oauthbearer_token_endpoint_url=provider.url, **CREDENTIALS)
    begun_s = world.now_s
    assert world.shown(login) == first
    assert world.timers.agenda.fire_next()
    assert 0.8 * DAY_S <= world.now_s - begun_s <= 0.86 * DAY_S
    assert world.shown(login) == second
    login.close()


def test_a_provider_that_fails_is_asked_again_and_a_renewal_that_fails_keeps_the_old_token(
    provider: Provider, world: World
) -> None:
    first = token(world.now_s, DAY_S)
    provider.answers = [(503, {}), (200, {"nothing": 1}), (200, {"access_token": first}), (401, {}), (500, {})]
    login = world.login(sasl_oauthbearer_token_endpoint_url=provider.url, **CREDENTIALS)
    assert world.shown(login) == first
    assert len(provider.asked) == 3
    assert world.timers.agenda.fire_next(), "the renewal"
    assert world.shown(login) == first
    assert not world.problems


def test_what_the_provider_says_is_told_and_the_secret_is_not(provider: Provider, world: World) -> None:
    provider.answers = [(401, {"error": "invalid_client", "error_description": "who are you?"})]
    login = world.login(sasl_oauthbearer_token_endpoint_url=provider.url, **CREDENTIALS)
    with pytest.raises(SaslAuthenticationFailed) as raised:
        world.shown(login)
    assert "answered 401: invalid_client - who are you?" in str(raised.value)
    assert "the secret" not in str(raised.value) + repr(raised.value)


def test_a_provider_that_is_away_may_come_back(provider: Provider, world: World) -> None:
    provider.answers = [(503, {})] * 20
    login = world.login(sasl_oauthbearer_token_endpoint_url=provider.url, **CREDENTIALS)
    with pytest.raises(Disconnected, match="answered 503"):
        world.shown(login)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no-token", "three parts"),
        ("a.b.c", "cannot be read"),
        ("e30.e30.", "no claim 'sub'"),
        ("e30.eyJzdWIiOiAiYSJ9.", "would never end"),
        (token(0, 10), "has expired"),
    ],
)
def test_what_is_no_token_is_not_shown(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    monkeypatch.setenv(ALLOWED_URLS, file.as_uri())
    login = world.login(sasl_oauthbearer_token_endpoint_url=file.as_uri())
    with pytest.raises(SaslAuthenticationFailed, match=why):
        world.shown(login)


def test_a_file_may_hold_the_token(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(token(world.now_s, DAY_S) + "\n")
    monkeypatch.setenv(ALLOWED_URLS, file.as_uri())
    assert world.shown(world.login(sasl_oauthbearer_token_endpoint_url=file.as_uri())) == token(world.now_s, DAY_S)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_an_assertion_signed_with_our_key_stands_in_for_a_secret(
    provider: Provider, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    """RFC 7523: as a grant of its own (jwt-bearer), and as the proof of a client (client_assertion)."""
    key = rsa.generate_private_key(65537, 2048) if algorithm == "RS256" else ec.generate_private_key(ec.SECP256R1())
    encryption = serialization.BestAvailableEncryption(b"open")
    file = tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"header": {"kid": "k1"}, "payload": {"extra": True}}))
    monkeypatch.setenv(ALLOWED_FILES, f"{file},{template}")
    provider.answers = [(200, {"access_token": token(world.now_s, DAY_S)})] * 2
    settings: dict[str, object] = {
        "sasl_oauthbearer_token_endpoint_url": provider.url,
        "sasl_oauthbearer_assertion_algorithm": algorithm,
        "sasl_oauthbearer_assertion_private_key_file": str(file),
        "sasl_oauthbearer_assertion_private_key_passphrase": "open",
        "sasl_oauthbearer_assertion_template_file": str(template),
        "sasl_oauthbearer_assertion_claim_iss": "us",
        "sasl_oauthbearer_assertion_claim_jti_include": True,
    }
    retriever = MODULE.rpartition(".")[0] + ".JwtBearerJwtRetriever"
    world.shown(world.login(sasl_oauthbearer_jwt_retriever_class=retriever, **settings))
    world.shown(world.login(**settings))
    (_, by_itself), (_, for_client) = provider.asked
    assert by_itself["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert for_client["client_assertion_type"] == ["urn:ietf:params:oauth:client-assertion-type:jwt-bearer"]
    for assertion in (by_itself["assertion"][0], for_client["client_assertion"][0]):
        header, payload, signature = (urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in assertion.split("."))
        assert json.loads(header) == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
        claims = json.loads(payload)
        assert claims.pop("jti")
        now_s = int(world.now_s)
        assert claims == {"extra": True, "iss": "us", "iat": now_s, "exp": now_s + 300, "nbf": now_s - 60}
        signed = assertion.rpartition(".")[0].encode()
        if isinstance(key, rsa.RSAPrivateKey):
            from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

            key.public_key().verify(signature, signed, PKCS1v15(), SHA256())
        else:
            numbers = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            key.public_key().verify(encode_dss_signature(*numbers), signed, ec.ECDSA(SHA256()))


def test_vulnerability_urls_and_files_that_nobody_has_allowed_are_refused(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings alone must not make a process read files or ask servers."""
    monkeypatch.delenv(ALLOWED_URLS, raising=False)
    for url in ("file:///etc/passwd", "http://169.254.169.254/latest", "https://provider.example/token"):
        with pytest.raises(ConfigError, match=ALLOWED_URLS):
            world.login(sasl_oauthbearer_token_endpoint_url=url, **CREDENTIALS)
    with pytest.raises(ConfigError, match="begins with"):
        world.login(sasl_oauthbearer_token_endpoint_url="ftp://provider.example/token", **CREDENTIALS)
    monkeypatch.setenv("KAFKA_OPTS", "-Xmx1g -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a/t,https://b/t")
    world.login(sasl_oauthbearer_token_endpoint_url="https://b/t", **CREDENTIALS)
    with pytest.raises(ConfigError, match=ALLOWED_FILES):
        world.login(
            sasl_oauthbearer_token_endpoint_url="https://b/t",
            sasl_oauthbearer_assertion_file=str(tmp_path / "assertion"),
            **CREDENTIALS,
        )


def test_what_is_missing_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED_URLS, "https://b/t")
    with pytest.raises(ConfigError, match=r"token\.endpoint\.url is missing"):
        world.login()
    with pytest.raises(ConfigError, match=r"client\.id is missing"):
        world.login(sasl_oauthbearer_token_endpoint_url="https://b/t")
    with pytest.raises(ConfigError, match=r"client\.secret is missing"):
        world.login('clientId="a"', sasl_oauthbearer_token_endpoint_url="https://b/t")


def test_claims_of_jaas_options_become_an_unsigned_token(world: World) -> None:
    shown = world.shown(world.login('unsecuredLoginStringClaim_sub="alice" unsecuredLoginLifetimeSeconds="60"'))
    header, payload, signature = shown.split(".")
    assert json.loads(b64decode(header + "==")) == {"alg": "none"}
    assert json.loads(urlsafe_b64decode(payload + "==="))["sub"] == "alice"
    assert signature == ""
