"""Records of `_schemas` that no registry should have written: each is counted or served, and none costs an answer."""

import json
from random import Random
from typing import Any

import pytest

from ottla.registry.records import Record
from tests.unit.registry.registry_scene import INT, Scene

ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 31, 10**400, 1.5, float("nan"), "", "x", ":.c:", ":*:x", ":.__GLOBAL:", "\ud800",
    [], [1], ["a"], [[]], [{}], {}, {"a": 1}, {"a": []}, "FULL", "full", "IMPORT",
    [{"name": "R", "subject": "s", "version": 1}], [{"name": "R", "subject": "t", "version": "--1"}],
    {"properties": {"a": "b"}}, {"properties": {"a": 1}}, {"tags": {"a": ["b"]}}, {"tags": {"a": 1}},
    {"domainRules": [{"name": "a"}]}, {"domainRules": [1]}, {"domainRules": {"a": 1}},
)  # fmt: skip
SCHEMA = {
    "subject": "s", "version": 1, "id": 1, "md5": "AAAAAAAAAAAAAAAAAAAAAA==", "schemaType": "AVRO", "references": [],
    "metadata": None, "ruleSet": None, "schema": INT, "deleted": False, "offset": 1, "ts": 5,
}  # fmt: skip
CONFIG = {
    "subject": "s", "compatibilityLevel": "FULL", "alias": "t", "normalize": True, "validateFields": True,
    "validateNewSchemas": True, "compatibilityGroup": "g", "compatibilityPolicy": "STRICT", "defaultMetadata": {},
    "overrideMetadata": {}, "defaultRuleSet": {}, "overrideRuleSet": {},
}  # fmt: skip
RECORDS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    ({"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}, SCHEMA),
    ({"keytype": "CONFIG", "subject": "s", "magic": 0}, CONFIG),
    ({"keytype": "CONFIG", "magic": 0}, {"compatibilityLevel": "FULL", "alias": "x"}),
    ({"keytype": "MODE", "subject": "s", "magic": 0}, {"subject": "s", "mode": "READWRITE"}),
    ({"keytype": "DELETE_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s", "version": 1}),
    ({"keytype": "CLEAR_SUBJECT", "subject": "s", "magic": 0}, {"subject": "s"}),
    ({"keytype": "NOOP", "magic": 0}, {"maxIds": {".": 3}}),
    ({"keytype": "CONTEXT", "tenant": "default", "context": ".c", "magic": 0}, {"tenant": "default", "context": ".c"}),
)
OF_S = [{"name": "R", "subject": "s", "version": 1}]
REFERRING = '{"type":"record","name":"Q","fields":[{"name":"z","type":"R"}]}'
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    *(
        ("GET", target, None)
        for target in (
            "/subjects", "/subjects?deleted=true", "/schemas?aliases=true&deleted=true", "/schemas?ruleType=CEL",
            "/config", "/config/s?defaultToGlobal=true", "/mode/s", "/contexts", "/subjects/s/versions",
            "/subjects/s/versions/latest", "/subjects/s/versions/1?format=resolved", "/schemas/ids/1?subject=s",
            "/subjects/s/versions/1?findTags=*", "/subjects/s/versions/1?referenceFormat=qualified",
            "/subjects/s/versions/1/referencedby", "/subjects/s/metadata?key=a&value=b", "/schemas/ids/1/versions",
        )
    ),
    ("POST", "/subjects/s", {"schema": INT}),
    ("POST", "/subjects/s/versions", {"schema": INT}),
    ("POST", "/subjects/s/versions", {"schema": '"string"'}),
    ("POST", "/subjects/s/versions", {"schema": REFERRING, "references": OF_S}),
    ("POST", "/compatibility/subjects/s/versions?verbose=true", {"schema": '"int"'}),
    ("PUT", "/config/s", {"compatibility": "NONE"}),
    ("PUT", "/mode/s", {"mode": "IMPORT"}),
    ("DELETE", "/subjects/s", None),
    ("DELETE", "/subjects/s?permanent=true", None),
    ("DELETE", "/config/s", None),
)  # fmt: skip


def written(random: Random) -> tuple[bytes, bytes | None]:
    key, value = map(dict, random.choice(RECORDS))
    for part in (key, value):
        if random.random() < 0.6:
            part[random.choice([*part, "extra"])] = random.choice(ODD)
    value = random.choice(ODD) if random.random() < 0.1 else value
    return json.dumps(key).encode(), None if random.random() < 0.1 else json.dumps(value).encode()


@pytest.mark.parametrize("seed", range(8))
def test_no_record_makes_a_request_fail(seed: int) -> None:
    for number in range(25):
        random = Random(f"{seed} {number}")
        scene = Scene()
        for _ in range(random.randint(1, 5)):
            scene.write(Record(*written(random)))
        for method, target, body in REQUESTS:
            status, reply = scene.ask(method, target, body)
            assert status < 500, (number, method, target, reply)


@pytest.mark.parametrize(
    "config",
    [{"alias": [[]]}, {"compatibilityLevel": "SOMETIMES"}, {"compatibilityLevel": 5}, {"validateFields": "yes"}],
)
def test_a_config_that_cannot_be_read_leaves_what_was_set(config: dict[str, Any]) -> None:
    scene = Scene()
    scene.ask("PUT", "/config/s", {"compatibility": "NONE"})
    scene.write(Record(b'{"keytype":"CONFIG","subject":"s","magic":0}', json.dumps(config).encode()))
    assert scene.get("/config/s") == {"compatibilityLevel": "NONE"}
    assert scene.state.unreadable == 1
    assert scene.register("s", INT) == 1


@pytest.mark.parametrize("number", [1 << 31, 10**400])
def test_ids_and_versions_have_32_bits(number: int) -> None:
    """One that has more fits before no record, and after it there would be none to give out."""
    scene = Scene()
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    scene.write(Record(key, json.dumps(SCHEMA | {"id": number}).encode()))
    scene.write(Record(b'{"keytype":"NOOP","magic":0}', json.dumps({"maxIds": {".": number}}).encode()))
    assert scene.state.unreadable == 1
    assert scene.register("t", INT) == 1
    scene.ask("PUT", "/mode/u", {"mode": "IMPORT"})
    for given in ({"id": number, "version": 1}, {"id": 7, "version": number}):
        assert scene.refused("POST", "/subjects/u/versions", {"schema": '"int"', **given})[:2] == (400, 400)


@pytest.mark.parametrize(
    "target", ["/schemas/ids/{}", "/subjects/t/versions/{}", "/subjects?limit={}", "/subjects?offset={}"]
)
@pytest.mark.parametrize("number", ["9" * 5_000, "--5", "+", "-", "²", "1_0"])
def test_what_is_no_number_is_the_clients_fault(target: str, number: str) -> None:
    scene = Scene()
    scene.register("t", INT)
    assert scene.ask("GET", target.format(number.replace("²", "%C2%B2")))[0] in (404, 422)
