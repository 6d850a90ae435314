"""Who may do what: passwords, tokens and certificates, and rights by subject."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from ottla.client.promise import Promise
from ottla.registry import security
from ottla.registry.security import (
    FileSecurity,
    RegistryGate,
    WrongAuthFile,
    hash_password,
    read_auth_file,
    topic_of,
)
from ottla.runtime.http.http_server import Caller
from ottla.runtime.world import World
from ottla.security.sasl.jwks import parse_keys
from ottla.security.sasl.jwt import Expected
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_world import step_world
from ottla.wire.http import HttpRequest, ResponseReader
from tests.unit.registry.registry_scene import INT, STRING, WITH_B, Scene
from tests.unit.security.sasl.token_provider import Provider

PERMISSIONS = [
    {"username": "reader", "operation": "Read", "resource": "Subject:orders.*"},
    {"username": "writer", "operation": "Write", "resource": "Subject:orders-value$"},
    {"username": "admin", "operation": "Write", "resource": ".*"},
]


def auth_file(**passwords: str) -> bytes:
    users = [
        {
            "username": name,
            "algorithm": algorithm,
            "salt": "salt",
            "password_hash": hash_password(algorithm, "salt", password),
        }
        for (name, password), algorithm in zip(passwords.items(), ("sha256", "sha512", "scrypt", "sha1"), strict=False)
    ]
    return json.dumps({"users": users, "permissions": PERMISSIONS}).encode()


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


class Secured:
    """A registry with the users of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.world: World = step_world(clock=self.clock, timers=self.timers)
        path.write_bytes(auth_file(reader="r", writer="w", admin="a"))
        self.security = FileSecurity(self.world, str(path))
        self.gate = RegistryGate(
            self.world,
            method="BASIC",
            realm="Schemas",
            passwords=self.security,
            rights=self.security,
            super_users=("User:CN=other registry",),
        )
        self.security.on_changed = self.gate.forget
        self.scene = Scene(gate=self.gate)

    def ask(
        self, user: str, method: str, target: str, body: Any = None, password: str | None = None
    ) -> tuple[int, Any]:
        headers = {} if not user else basic(user, user[0] if password is None else password)
        return self.send(method, target, body, headers)

    def send(
        self, method: str, target: str, body: Any, headers: dict[str, str], principal: str | None = None
    ) -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        found: list[bytes] = []
        request = HttpRequest(method, target, headers, data)
        self.scene.front.handle(request, Caller("https", "127.0.0.1", principal), found.append)
        self.timers.advance(300)
        (response,) = ResponseReader(1 << 20, 1 << 30).take(found[0])
        self.headers = response.headers
        return response.status, json.loads(response.body)


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    secured = Secured(tmp_path / "users.json")
    for subject, text in (("orders-value", INT), ("orders-key", '"string"'), ("clicks-value", STRING)):
        assert secured.ask("admin", "POST", f"/subjects/{subject}/versions", {"schema": text})[0] == 200
    return secured


def test_nobody_is_let_in_without_a_password_that_is_right(secured: Secured) -> None:
    for user, password in (("", ""), ("reader", "x"), ("nobody", "r"), ("reader", "")):
        status, reply = secured.ask(user, "GET", "/subjects", password=password)
        assert (status, reply) == (401, {"error_code": 40101, "message": "Unauthorized"})
        assert secured.headers["www-authenticate"] == 'Basic realm="Schemas", charset="UTF-8"'
    for shown in ("Basic", "Basic !", "Basic " + b64encode(b"no colon").decode(), "Bearer x", "Basic /w=="):
        assert secured.send("GET", "/subjects", None, {"authorization": shown})[0] == 401
    assert secured.ask("reader", "GET", "/subjects")[0] == 200


def test_listings_and_ids_show_what_one_may_read(secured: Secured) -> None:
    assert secured.ask("admin", "GET", "/subjects")[1] == ["clicks-value", "orders-key", "orders-value"]
    assert secured.ask("reader", "GET", "/subjects")[1] == ["orders-key", "orders-value"]
    assert secured.ask("writer", "GET", "/subjects")[1] == ["orders-value"]
    assert [one["subject"] for one in secured.ask("writer", "GET", "/schemas")[1]] == ["orders-value"]
    assert secured.ask("reader", "GET", "/schemas/ids/1")[0] == 200
    assert secured.ask("reader", "GET", "/schemas/ids/3") == (
        404,
        {"error_code": 40403, "message": "Schema 3 not found"},
    )
    assert secured.ask("admin", "POST", "/subjects/clicks-key/versions", {"schema": INT})[1]["id"] == 1
    assert secured.ask("admin", "GET", "/schemas/ids/1/subjects")[1] == ["clicks-key", "orders-value"]
    assert secured.ask("reader", "GET", "/schemas/ids/1/subjects")[1] == ["orders-value"]
    guid = secured.ask("admin", "GET", "/schemas/ids/3")[1]["guid"]
    assert secured.ask("reader", "GET", f"/schemas/guids/{guid}")[0] == 404
    assert secured.ask("reader", "GET", f"/schemas/guids/{guid}/ids")[1] == []


SECRET = '{"type":"record","name":"Secret","fields":[{"name":"password","type":"string"}]}'


def test_a_namesake_in_a_context_that_one_may_not_read_is_not_there(secured: Secured) -> None:
    """A name without a context is looked for in all of them."""
    assert secured.ask("admin", "POST", "/subjects/:.hidden:orders-new/versions", {"schema": SECRET})[0] == 200
    assert secured.ask("admin", "GET", "/subjects/orders-new/versions/1")[0] == 200
    for method, target, body in (
        ("GET", "/subjects/orders-new/versions/1", None),
        ("GET", "/subjects/orders-new/versions/latest/schema", None),
        ("POST", "/subjects/orders-new", {"schema": SECRET}),
    ):
        assert secured.ask("reader", method, target, body)[0] == 404, target
    assert secured.ask("admin", "GET", "/contexts")[1] == [".", ".hidden"]
    assert secured.ask("reader", "GET", "/contexts")[1] == ["."]


def test_a_schema_refers_only_to_what_its_writer_may_read(secured: Secured) -> None:
    """Or else `format=resolved` would show it, and errors would tell whether it is there."""
    assert secured.ask("admin", "POST", "/subjects/secret/versions", {"schema": SECRET})[0] == 200
    text = INT.replace("]}", ',{"name":"s","type":["null","Secret"],"default":null}]}')
    for subject in ("secret", "not-there"):
        body = {"schema": text, "references": [{"name": "Secret", "subject": subject, "version": 1}]}
        for user, target in (
            ("writer", "/subjects/orders-value/versions?format=resolved"),
            ("reader", "/subjects/orders-value?format=resolved"),
            ("reader", "/compatibility/subjects/orders-value/versions?verbose=true"),
            ("reader", "/compatibility/subjects/orders-value/versions/1?verbose=true"),
        ):
            assert secured.ask(user, "POST", target, body)[0] == 403, target


def test_what_refers_to_a_version_and_what_else_has_an_id_is_shown_as_far_as_one_may_read_it(secured: Secured) -> None:
    body = {
        "schema": '{"type":"record","name":"Z","fields":[{"name":"a","type":"R"}]}',
        "references": [{"name": "R", "subject": "orders-value", "version": 1}],
    }
    id = secured.ask("admin", "POST", "/subjects/clicks-key/versions", body)[1]["id"]
    assert secured.ask("admin", "GET", "/subjects/orders-value/versions/1/referencedby")[1] == [id]
    assert secured.ask("reader", "GET", "/subjects/orders-value/versions/1/referencedby")[1] == []
    secured.ask("admin", "POST", "/subjects/hidden/versions", {"schema": '"bytes"'})
    id = secured.ask("admin", "POST", "/subjects/orders-last/versions", {"schema": '"bytes"'})[1]["id"]
    assert secured.ask("admin", "GET", f"/schemas/ids/{id}?subject=none")[1]["subject"] == "hidden"
    assert secured.ask("reader", "GET", f"/schemas/ids/{id}?subject=none")[1]["subject"] == "orders-last"
    for name in ("orders-alias", "hidden-alias"):
        assert secured.ask("admin", "PUT", f"/config/{name}", {"alias": "orders-value"})[0] == 200
    found = {one["subject"]: one.get("aliases") for one in secured.ask("reader", "GET", "/schemas?aliases=true")[1]}
    assert found["orders-value"] == ["orders-alias"]


def test_a_right_on_all_subjects_is_none_on_what_is_global(secured: Secured) -> None:
    found = json.loads(secured.path.read_bytes())
    found["permissions"].append({"username": "writer", "operation": "Write", "resource": "Subject:.*"})
    secured.path.write_bytes(json.dumps(found).encode())
    secured.timers.advance(3_000)
    assert secured.ask("writer", "PUT", "/config/clicks-value", {"compatibility": "NONE"})[0] == 200
    for path in ("", "/:.__GLOBAL:"):
        assert secured.ask("writer", "GET", f"/config{path}")[0] == 403
        assert secured.ask("writer", "PUT", f"/config{path}", {"compatibility": "NONE"})[0] == 403
        assert secured.ask("writer", "PUT", f"/mode{path}", {"mode": "READONLY"})[0] == 403
        assert secured.ask("writer", "DELETE", f"/mode{path}")[0] == 403


@pytest.mark.slow
@pytest.mark.parametrize(
    ("user", "method", "target", "body", "status"),
    [
        ("reader", "GET", "/subjects/orders-value/versions/1", None, 200),
        ("reader", "GET", "/subjects/clicks-value/versions/1", None, 403),
        ("reader", "POST", "/subjects/orders-value", {"schema": INT}, 200),
        ("reader", "POST", "/subjects/orders-value/versions", {"schema": WITH_B}, 403),
        ("writer", "POST", "/subjects/orders-value/versions", {"schema": WITH_B}, 200),
        ("writer", "POST", "/subjects/orders-key/versions", {"schema": INT}, 403),
        ("reader", "DELETE", "/subjects/orders-value", None, 403),
        ("writer", "DELETE", "/subjects/orders-value/versions/1", None, 200),
        ("reader", "POST", "/compatibility/subjects/orders-value/versions", {"schema": INT}, 200),
        ("reader", "POST", "/compatibility/subjects/clicks-value/versions", {"schema": INT}, 403),
        ("reader", "GET", "/config", None, 403),
        ("reader", "GET", "/config/orders-value?defaultToGlobal=true", None, 200),
        ("reader", "PUT", "/config/orders-value", {"compatibility": "NONE"}, 403),
        ("writer", "PUT", "/config/orders-value", {"compatibility": "NONE"}, 200),
        ("writer", "PUT", "/config", {"compatibility": "NONE"}, 403),
        ("admin", "PUT", "/config", {"compatibility": "NONE"}, 200),
        ("writer", "PUT", "/mode", {"mode": "READONLY"}, 403),
        ("writer", "DELETE", "/contexts/.c", None, 403),
        ("reader", "GET", "/schemas/types", None, 200),
    ],
)
def test_rights_by_subject(secured: Secured, user: str, method: str, target: str, body: Any, status: int) -> None:
    found, reply = secured.ask(user, method, target, body)
    assert found == status, reply
    if status == 403:
        assert reply["error_code"] == 40301


def test_replies_of_one_are_not_given_to_another(secured: Secured) -> None:
    for _ in range(2):
        assert secured.ask("admin", "GET", "/subjects/clicks-value/versions/1")[0] == 200
        assert secured.ask("reader", "GET", "/subjects/clicks-value/versions/1")[0] == 403


def test_a_password_is_checked_once_in_a_while_and_again_when_the_file_changes(secured: Secured) -> None:
    done = secured.world.workers.done  # type: ignore[attr-defined]
    secured.ask("reader", "GET", "/subjects")
    once = secured.world.workers.done  # type: ignore[attr-defined]
    secured.ask("reader", "GET", "/subjects")
    assert once > done
    secured.path.write_bytes(auth_file(reader="other", writer="w", admin="a"))
    secured.timers.advance(3_000)
    assert secured.ask("reader", "GET", "/subjects")[0] == 401
    assert secured.ask("reader", "GET", "/subjects", password="other")[0] == 200
    secured.path.write_bytes(b"{")
    secured.timers.advance(3_000)
    assert secured.ask("reader", "GET", "/subjects", password="other")[0] == 200, "a broken file changes nothing"


def test_certificates_name_principals(secured: Secured) -> None:
    assert secured.send("GET", "/subjects", None, {}, "User:CN=other registry")[0] == 200
    assert secured.send("PUT", "/config", {"compatibility": "FULL"}, {}, "User:CN=other registry")[0] == 200
    assert secured.send("GET", "/subjects", None, {}, "User:reader")[1] == ["orders-key", "orders-value"]
    assert secured.send("GET", "/subjects", None, {}, "User:ANONYMOUS")[0] == 401


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b'{"users":[{}]}', b'{"users":[{"username":"a","algorithm":"md5","salt":"","password_hash":""}]}'],
)
def test_files_that_cannot_be_used(content: bytes) -> None:
    with pytest.raises(WrongAuthFile):
        read_auth_file(content)


def test_tokens() -> None:
    provider = Provider()
    keys = parse_keys(provider.jwks())
    clock = FixedClock()
    now_s = clock.now_ms() // 1000
    gate = RegistryGate(
        step_world(clock=clock),
        method="BEARER",
        realm="r",
        find_key=lambda key_id, algorithm: keys.get(key_id),
        expected=Expected(issuer="https://provider", audience=("schemas",)),
    )
    scene = Scene(gate=gate)

    def status(token: str) -> int:
        return scene.response("GET", "/subjects", authorization=f"Bearer {token}").status

    claims = {"sub": "alice", "iss": "https://provider", "aud": "schemas", "iat": now_s, "exp": now_s + 300}
    assert status(provider.token(claims)) == 200
    assert status(provider.token(claims | {"exp": now_s - 3_600})) == 401
    assert status(provider.token(claims | {"iss": "another"})) == 401
    assert status(provider.token(claims | {"aud": "another"})) == 401
    assert status(provider.token(claims)[:-8] + "AAAAAAAA") == 401
    assert status("x.y.z") == 401
    assert scene.response("GET", "/subjects").headers["www-authenticate"] == 'Bearer realm="r"'


def test_subjects_are_of_topics() -> None:
    assert [topic_of(name) for name in ("a-value", "a-key", ":.c:a-value", "com.Record")] == [
        "a",
        "a",
        "a",
        "com.Record",
    ]


def test_a_name_that_is_not_there_takes_as_long_as_one_that_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scrypt takes twenty times as long as the others: with another algorithm the time would tell who is there."""
    path = tmp_path / "users.json"
    user = {"username": "me", "algorithm": "scrypt", "salt": "salt", "password_hash": "x"}
    path.write_text(json.dumps({"users": [user]}))
    used: list[str] = []

    def hashed(algorithm: str, salt: str, password: str) -> str:
        used.append(algorithm)
        return ""

    monkeypatch.setattr(security, "hash_password", hashed)
    file = FileSecurity(step_world(clock=FixedClock(), timers=StepTimers(FixedClock())), str(path))
    for name in ("me", "nobody", "é"):
        file.check(name, "")
    assert used == ["scrypt"] * 3


def test_a_password_that_was_being_checked_when_the_file_changed_is_not_remembered() -> None:
    class Slow:
        def __init__(self) -> None:
            self.asked: list[Promise[bool]] = []

        def check(self, username: str, password: str) -> Promise[bool]:
            self.asked.append(Promise())
            return self.asked[-1]

    slow = Slow()
    world = step_world(clock=FixedClock(), timers=StepTimers(FixedClock()))
    gate = RegistryGate(world, method="BASIC", realm="r", passwords=slow)
    request, caller = HttpRequest("GET", "/", basic("me", "old"), b""), Caller("https", "127.0.0.1", None)
    gate.admit(request, caller)
    gate.forget()
    slow.asked[0].resolve(True)
    gate.admit(request, caller)
    assert len(slow.asked) == 2
    slow.asked[1].resolve(True)
    gate.admit(request, caller)
    assert len(slow.asked) == 2, "what was checked since is remembered"
