"""OAUTHBEARER with signed tokens: our clients against Apache Kafka's validator, Java's clients against ours.

One provider signs tokens and gives out its keys, from a file and over HTTP. What is wrong with a token keeps a client
out at both kinds of node.
"""

import json
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin
from ottla.errors import SaslAuthenticationFailed
from tests.interop.apache_kafka import ApacheKafka, ApacheKafkaError, free_ports, java
from tests.interop.mixed_cluster import eventually
from tests.interop.sasl_node import SaslNode, a_sasl_node
from tests.interop.secured_kafka import OAUTH_MODULE
from tests.unit.security.sasl.token_provider import Provider, unsecured

pytestmark = pytest.mark.interop

TOPICS = "org.apache.kafka.tools.TopicCommand"
_OAUTH = "org.apache.kafka.common.security.oauthbearer."
_ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
_RETRY = "2000"


class TokenProvider(HTTPServer):
    """Keys at `/keys`, and at `/token` a token for the client that knows the secret."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.provider = Provider()
        self.keys_url = f"http://127.0.0.1:{self.server_port}/keys"
        self.token_url = f"http://127.0.0.1:{self.server_port}/token"


class _Answers(BaseHTTPRequestHandler):
    server: TokenProvider

    def do_GET(self) -> None:
        self._answer(200, self.server.provider.jwks())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_known = self.headers["Authorization"] == "Basic " + b64encode(b"alice:alice-secret").decode()
        answer = {"access_token": self.server.provider.token(claims())} if is_known else {"error": "who?"}
        self._answer(200 if is_known else 401, json.dumps(answer).encode())

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Not to the screen."""


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": "alice", "iss": "https://provider", "aud": "kafka", "iat": now, "exp": now + 600} | changed


@pytest.fixture(scope="module")
def provider() -> Iterator[TokenProvider]:
    server = TokenProvider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def listener_settings(url: str) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
            _OAUTH + "OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://provider",
    }


@pytest.fixture(scope="module", params=["file", "http"])
def kafka(
    request: pytest.FixtureRequest, provider: TokenProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where Apache Kafka listens for tokens."""
    directory: Path = tmp_path_factory.mktemp("kafka")
    url = _keys_url(request.param, provider, directory)
    [port] = free_ports(1)
    node = ApacheKafka(directory, java_options=("-Xmx400m", _ALLOWED + url))
    node.config["listeners"] = f"{node.config['listeners']},SASL_PLAINTEXT://127.0.0.1:{port}"
    node.config["listener.security.protocol.map"] = (
        f"{node.config['listener.security.protocol.map']},SASL_PLAINTEXT:SASL_PLAINTEXT"
    )
    node.config |= listener_settings(url) | {"inter.broker.listener.name": "PLAINTEXT"}
    with node:
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module", params=["file", "http"])
def node(
    request: pytest.FixtureRequest, provider: TokenProvider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SaslNode]:
    url = _keys_url(request.param, provider, tmp_path_factory.mktemp("ours"))
    with a_sasl_node(listener_settings(url), {"OTTLA_OAUTHBEARER_ALLOWED_URLS": url}) as running:
        yield running


def _keys_url(kind: str, provider: TokenProvider, directory: Path) -> str:
    if kind == "http":
        return provider.keys_url
    (directory / "jwks.json").write_bytes(provider.provider.jwks())
    return (directory / "jwks.json").as_uri()


def client(url: str, secret: str = "alice-secret") -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "sasl.login.callback.handler.class": _OAUTH + "OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": secret,
        "sasl.login.retry.backoff.max.ms": _RETRY,
    }


def our_admin_gets_in(bootstrap: str, url: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setenv("OTTLA_OAUTHBEARER_ALLOWED_URLS", url)
    with Admin({"bootstrap.servers": bootstrap, **client(url)}) as admin:
        try:
            admin.list_topics(timeout=30)
        except SaslAuthenticationFailed:
            return False
        return True


def javas_tool_gets_in(bootstrap: str, url: str, directory: Path) -> bool:
    file = directory / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in client(url).items()))
    try:
        java(
            TOPICS, "--bootstrap-server", bootstrap, "--command-config", str(file), "--list",
            java_options=(_ALLOWED + url,),
        )  # fmt: skip
    except ApacheKafkaError as problem:
        if "SaslAuthenticationException" not in str(problem):
            raise
        return False
    return True


def wrong_tokens(provider: Provider) -> dict[str, str]:
    now = int(time.time())
    return {
        "expired": provider.token(claims(iat=now - 7200, exp=now - 3600)),
        "of another audience": provider.token(claims(aud="another")),
        "of another issuer": provider.token(claims(iss="https://another")),
        "signed by another": Provider().token(claims()),
        "of an unknown key": provider.token(claims(), kid="unknown"),
        "unsigned": unsecured(claims()),
    }


def test_our_client_shows_kafka_a_token_of_the_endpoint(
    kafka: str, provider: TokenProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert our_admin_gets_in(kafka, provider.token_url, monkeypatch)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "PS256"])
def test_our_client_shows_kafka_a_token_of_a_file(
    kafka: str, provider: TokenProvider, algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(provider.provider.token(claims(), algorithm))
    assert our_admin_gets_in(kafka, file.as_uri(), monkeypatch)


def test_what_kafka_does_not_believe_is_told_to_our_client(
    kafka: str, provider: TokenProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, (what, token) in enumerate(wrong_tokens(provider.provider).items()):
        file = tmp_path / f"token-{number}"
        file.write_text(token)
        assert not our_admin_gets_in(kafka, file.as_uri(), monkeypatch), what


def test_javas_client_shows_our_node_a_token_of_the_endpoint(
    node: SaslNode, provider: TokenProvider, tmp_path: Path
) -> None:
    # The keys may come a moment after the node is up; until then nobody is believed.
    eventually(lambda: javas_tool_gets_in(node.bootstrap, provider.token_url, tmp_path), "Java's client is let in")


def test_what_our_node_does_not_believe_is_told_to_javas_client(
    node: SaslNode, provider: TokenProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them by Java, which takes its time; all by our client, whom both kinds of node tell the same."""
    eventually(lambda: our_admin_gets_in(node.bootstrap, provider.token_url, monkeypatch), "the keys are there")
    for number, (what, token) in enumerate(wrong_tokens(provider.provider).items()):
        file = tmp_path / f"token-{number}"
        file.write_text(token)
        assert not our_admin_gets_in(node.bootstrap, file.as_uri(), monkeypatch), what
        if what == "signed by another":
            assert not javas_tool_gets_in(node.bootstrap, file.as_uri(), tmp_path)
