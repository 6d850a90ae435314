"""Who may ask a worker: passwords and rights of a file, tokens; and what must not be started open by mistake."""

import json
import logging
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.connect.options import InvalidOption
from ottla.registry.security import hash_password
from ottla.testing.node import RunningNode
from tests.unit.connect.worker.worker_in_a_thread import FILE_SOURCE, WorkerInAThread, wait_for
from tests.unit.security.sasl.token_provider import Provider

pytestmark = pytest.mark.slow

CONFIG = {"connector.class": FILE_SOURCE, "file": "/in", "topic": "t"}
PASSWORD = "correct horse"
KAFKAS = "BasicAuthSecurityRestExtension"


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with RunningNode(config={"group.initial.rebalance.delay.ms": 0}) as node:
        yield node


def basic(user: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def auth_file(path: Path, permissions: list[tuple[str, str, str]]) -> dict[str, str]:
    users = [
        {
            "username": name,
            "algorithm": "sha256",
            "salt": "salt",
            "password_hash": hash_password("sha256", "salt", PASSWORD),
        }
        for name in ("admin", "reader", "owner")
    ]
    said = [{"username": user, "operation": right, "resource": pattern} for user, right, pattern in permissions]
    path.write_text(json.dumps({"users": users, "permissions": said}))
    return {"authentication.method": "BASIC", "ottla.connect.auth.file": str(path)}


def test_passwords_are_asked_for_and_rights_count_and_a_follower_passes_the_login_on(
    node: RunningNode, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rights = [("admin", "Write", ".*"), ("reader", "Read", ".*"), ("owner", "Write", "Connector:mine")]
    properties = auth_file(tmp_path / "users.json", rights)
    with WorkerInAThread(node.bootstrap, "login", properties=properties) as worker:
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "probes need no login")
        refused = worker.ask("GET", "/connectors")
        assert refused.status == 401
        assert refused.body == {"error_code": 401, "message": "Unauthorized"}
        assert refused.headers["WWW-Authenticate"] == 'Basic realm="connect", charset="UTF-8"'
        for wrong in (basic("admin", "wrong"), basic("nobody"), {"Authorization": "Basic ?"}, {"Authorization": "x"}):
            assert worker.ask("GET", "/connectors", headers=wrong).status == 401
        assert worker.ask("GET", "/metrics").status == 401
        assert worker.ask("GET", "/metrics", headers=basic("reader")).status == 200
        assert worker.ask("PUT", "/connectors/mine/config", CONFIG, basic("reader")).status == 403
        assert worker.ask("PUT", "/connectors/mine/config", CONFIG, basic("owner")).status == 201
        for other in ("other", "mine-too"):
            assert worker.ask("PUT", f"/connectors/{other}/config", CONFIG, basic("owner")).status == 403
        assert worker.ask("POST", "/connectors", {"name": "other", "config": CONFIG}, basic("owner")).status == 403
        assert worker.ask("GET", "/connectors", headers=basic("owner")).status == 403
        with WorkerInAThread(node.bootstrap, "login", properties=properties) as second:
            wait_for(lambda: second.ask("GET", "/health").status == 200, "it knows the leader")
            assert second.ask("PUT", "/connectors/more/config", CONFIG).status == 401
            assert second.ask("PUT", "/connectors/more/config", CONFIG, basic("admin")).status == 201
        assert PASSWORD not in caplog.text
        assert basic("admin")["Authorization"].split()[1] not in caplog.text


def test_tokens_are_asked_for(node: RunningNode, tmp_path: Path) -> None:
    provider = Provider()
    keys = tmp_path / "keys.json"
    keys.write_bytes(provider.jwks())
    properties = {
        "authentication.method": "BEARER",
        "ottla.connect.jwks.url": keys.as_uri(),
        "ottla.connect.jwt.issuer": "https://provider",
    }
    now_s = int(time.time())
    claims = {"sub": "alice", "iss": "https://provider", "iat": now_s, "exp": now_s + 600}
    with WorkerInAThread(node.bootstrap, "tokens", properties=properties) as worker:
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "it is ready")

        def status(token: str) -> int:
            return worker.ask("GET", "/connectors", headers={"Authorization": f"Bearer {token}"}).status

        wait_for(lambda: status(provider.token(claims)) == 200, "the keys are read")
        assert status(provider.token(claims | {"iss": "another"})) == 401
        assert status(provider.token(claims)[:-8] + "AAAAAAAA") == 401
        assert worker.ask("GET", "/connectors", headers=basic("admin")).status == 401
        assert worker.ask("GET", "/connectors").headers["WWW-Authenticate"] == 'Bearer realm="connect"'


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"authentication.method": "BASIC"}, "needs ottla.connect.auth.file"),
        ({"authentication.method": "BASIC", "ottla.connect.auth.file": "/missing"}, "ottla.connect.auth.file=/missing"),
        ({"authentication.method": "BEARER"}, "needs ottla.connect.jwks.url"),
        ({"authentication.method": "BEARER", "ottla.connect.jwks.url": "ftp://keys"}, "ottla.connect.jwks.url"),
        ({"authentication.method": "KERBEROS"}, "authentication.method"),
        (
            {"rest.extension.classes": f"org.apache.kafka.connect.rest.basic.auth.extension.{KAFKAS}"},
            "set authentication.method=BASIC",
        ),
    ],
)
def test_a_worker_that_cannot_ask_for_a_login_does_not_start(
    node: RunningNode, properties: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidOption, match=said):
        WorkerInAThread(node.bootstrap, "no-login", properties=properties).start()
