"""Our clients with tokens against our node: of a provider, over HTTPS and renewed in time; and delegation tokens."""

import json
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Producer
from ottla.errors import PolicyViolation, SaslAuthenticationFailed
from ottla.security.tls.issuing import Authority
from tests.clients.eventually import eventually
from tests.clients.secured.logging_in import logs_in
from tests.interop.sasl_node import PLAIN_USERS, SaslNode, a_sasl_node
from tests.unit.security.sasl.token_provider import Provider

MODULES = "org.apache.kafka.common.security"
ALLOWED_URLS = "OTTLA_OAUTHBEARER_ALLOWED_URLS"
# A client renews its token after half of that, so the other half is how long a machine may be busy with other things.
TOKEN_S = 6


class TokenEndpoint(HTTPServer):
    """Gives a token that lives for a few seconds to whoever knows the secret, over HTTPS."""

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Tokens)
        self.provider = Provider()
        self.given = 0
        authority = Authority("of the provider", datetime.now(UTC))
        files = {"ca": authority.issued.certificate, "own": authority.issue("provider", ("localhost",)).both}
        for name, content in files.items():
            (directory / f"{name}.pem").write_bytes(content)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "own.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.trusted = directory / "ca.pem"
        self.url = f"https://localhost:{self.server_port}/token"

    def claims(self) -> dict[str, Any]:
        now = time.time()
        return {"sub": "alice", "iss": "https://provider", "aud": "kafka", "iat": now, "exp": now + TOKEN_S}


class _Tokens(BaseHTTPRequestHandler):
    server: TokenEndpoint

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        known = "Basic " + b64encode(b"alice:alice-secret").decode()
        is_known = self.headers["Authorization"] == known
        answer = {"access_token": self.server.provider.token(self.server.claims())} if is_known else {"error": "who?"}
        content = json.dumps(answer).encode()
        self.server.given += is_known
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Not to the screen."""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenEndpoint]:
    server = TokenEndpoint(tmp_path_factory.mktemp("provider"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def node(endpoint: TokenEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    keys = tmp_path_factory.mktemp("keys") / "jwks.json"
    keys.write_bytes(endpoint.provider.jwks())
    settings = {
        "sasl.enabled.mechanisms": "OAUTHBEARER,PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": (
            f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://provider",
        "sasl.oauthbearer.clock.skew.seconds": "0",
        "delegation.token.secret.key": "of the cluster",
    }
    with a_sasl_node(settings, {ALLOWED_URLS: keys.as_uri()}) as running:
        yield running


def by_provider(node: SaslNode, endpoint: TokenEndpoint, secret: str = "alice-secret") -> dict[str, object]:
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{endpoint.trusted}"'
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required {trust};",
        "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": endpoint.url,
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": secret,
        "sasl.login.refresh.min.period.seconds": 0,
        "sasl.login.refresh.buffer.seconds": 0,
        "sasl.login.refresh.window.factor": 0.5,
        "sasl.login.refresh.window.jitter": 0,
    }


def test_a_client_outlives_its_tokens(node: SaslNode, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is renewed, and the session with it (KIP-368), on the connection that there is."""
    monkeypatch.setenv(ALLOWED_URLS, endpoint.url)
    settings = by_provider(node, endpoint)
    eventually(lambda: logs_in(settings), True)  # The node's keys may come a moment after it is up.
    before = endpoint.given
    with Producer(settings) as producer:
        producer.send("tokens", value=b"first").result(30)
        first_ends_s = time.monotonic() + TOKEN_S
        while time.monotonic() < first_ends_s or endpoint.given - before < 3:
            assert time.monotonic() < first_ends_s + 60, "tokens are not renewed"
            producer.send("tokens", value=b"again").result(30)
            time.sleep(0.05)


def test_a_secret_that_the_provider_does_not_know_is_told_and_not_shown(
    node: SaslNode, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALLOWED_URLS, endpoint.url)
    settings = by_provider(node, endpoint, "not-the-secret")
    with Admin(settings) as admin, pytest.raises(SaslAuthenticationFailed, match="answered 401: who") as raised:
        admin.list_topics(timeout=30)
    assert "not-the-secret" not in str(raised.value)


def test_a_delegation_token_logs_in_until_it_is_ended(node: SaslNode) -> None:
    """KIP-48: it is shown by SCRAM, with its id for a name and its HMAC for a password."""
    base = {"bootstrap.servers": node.bootstrap, "security.protocol": "SASL_PLAINTEXT"}
    login = f'{MODULES}.plain.PlainLoginModule required username="alice" password="{PLAIN_USERS["alice"]}";'
    with Admin({**base, "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}) as admin:
        with pytest.raises(PolicyViolation, match=r"too many renewers\. End tokens that are not needed"):
            admin.create_delegation_token(renewers=[f"User:{number:0100d}" for number in range(200)])
        token = admin.create_delegation_token()
        hmac = b64encode(token.hmac).decode()
        shown = f'username="{token.token_id}" password="{hmac}" tokenauth="true"'
        by_token: dict[str, object] = {
            **base,
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required {shown};",
        }
        eventually(lambda: logs_in(by_token), True)
        admin.expire_delegation_token(token.hmac)
        eventually(lambda: logs_in(by_token), False)
