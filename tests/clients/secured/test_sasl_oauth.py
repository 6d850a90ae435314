"""Clients of others with tokens of a provider (OAUTHBEARER): its keys come from a file or by HTTP."""

import asyncio
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient

from tests.clients.eventually import eventually
from tests.interop.sasl_node import SaslNode, a_sasl_node
from tests.unit.security.sasl.token_provider import Provider, unsecured

PROVIDER = Provider()
_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"


def settings(url: str) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": _HANDLER,
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://provider",
    }


class Keys(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PROVIDER.jwks())

    def log_message(self, format: str, *args: Any) -> None:
        """Not to the screen."""


@pytest.fixture(scope="module")
def http_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Keys)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/keys"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module", params=["file", "http"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, http_url: str) -> Iterator[SaslNode]:
    path: Path = tmp_path_factory.mktemp("keys") / "jwks.json"
    path.write_bytes(PROVIDER.jwks())
    url = http_url if request.param == "http" else path.as_uri()
    with a_sasl_node(settings(url), {"OTTLA_OAUTHBEARER_ALLOWED_URLS": url}) as running:
        # The keys may come a moment after the node is up; until then nobody is believed.
        eventually(lambda: by_confluent(running.bootstrap, PROVIDER.token(claims())), 1)
        yield running


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"sub": "alice", "iss": "https://provider", "aud": "kafka", "iat": now, "exp": now + 300} | changed


def by_confluent(bootstrap: str, token: str) -> int:
    """How many brokers it sees; 0 if it does not get in."""
    admin = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": lambda _: (token, time.time() + 300),
            "log_level": 0,
        }
    )
    admin.poll(0)
    try:
        return len(admin.list_topics(timeout=5).brokers)
    except confluent_kafka.KafkaException:
        return 0


def test_librdkafka_gets_in_with_a_token(node: SaslNode) -> None:
    assert by_confluent(node.bootstrap, PROVIDER.token(claims(), "ES256")) == 1


def test_aiokafka_gets_in_with_a_token(node: SaslNode) -> None:
    class Tokens(AbstractTokenProvider):
        async def token(self) -> str:
            return PROVIDER.token(claims())

    async def ask() -> int:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=node.bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=Tokens(),
        )
        try:
            await admin.start()
            return len((await admin.describe_cluster())["brokers"])
        finally:
            await admin.close()

    assert asyncio.run(asyncio.wait_for(ask(), 20)) == 1


@pytest.mark.parametrize(
    "token",
    [
        unsecured(claims()),
        PROVIDER.token(claims(exp=int(time.time()) - 60)),
        PROVIDER.token(claims(aud="another")),
        Provider().token(claims()),
    ],
    ids=["unsigned", "expired", "of another audience", "signed by another"],
)
def test_other_tokens_stay_out(node: SaslNode, token: str) -> None:
    assert by_confluent(node.bootstrap, token) == 0


@pytest.mark.parametrize("allowed", [None, "http://127.0.0.1/another"])
def test_vulnerability_settings_do_not_make_a_node_read_files_or_ask_servers(
    tmp_path: Path, allowed: str | None
) -> None:
    """Unless the operator has allowed the URL outside of the settings, as in Kafka."""
    from ottla.testing.node import NodeError

    environment = {} if allowed is None else {"OTTLA_OAUTHBEARER_ALLOWED_URLS": allowed}
    for url in ("file:///etc/passwd", "http://169.254.169.254/latest/meta-data", "http://127.0.0.1:1/keys"):
        refused = pytest.raises(NodeError, match=r"sasl\.oauthbearer\.jwks\.endpoint\.url")
        with refused, a_sasl_node(settings(url), environment):
            pass
