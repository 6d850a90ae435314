"""The API against a table of Confluent's (Platform 8.1): operations, parameters, replies, and the errors of each."""

import json
from typing import Any

import pytest

from ottla.registry.api import ROUTES, ApiSettings
from ottla.registry.records import SchemaValue, schema_record
from ottla.runtime.http.http_server import Caller
from ottla.wire.http import HttpRequest
from tests.unit.registry.registry_scene import INT, NOW_MS, STRING, WITH_B, WITH_C, Scene

# Method, path and query parameters of every operation in Confluent's OpenAPI specification, associations aside.
SPECIFICATION = """
POST /compatibility/subjects/{subject}/versions/{version} normalize verbose
GET /
POST /
POST /compatibility/subjects/{subject}/versions normalize verbose
GET /config defaultToGlobal
PUT /config
DELETE /config
GET /config/{subject} defaultToGlobal
PUT /config/{subject}
DELETE /config/{subject}
GET /contexts offset limit contextPrefix
DELETE /contexts/{context}
GET /mode defaultToGlobal
PUT /mode force
DELETE /mode recursive
GET /mode/{subject} defaultToGlobal
PUT /mode/{subject} force
DELETE /mode/{subject} recursive
GET /schemas subjectPrefix aliases deleted latestOnly ruleType offset limit
GET /schemas/ids/{id} subject format referenceFormat findTags fetchMaxId
GET /schemas/ids/{id}/subjects subject deleted offset limit
GET /schemas/ids/{id}/versions subject deleted offset limit
GET /schemas/ids/{id}/schema subject format
GET /schemas/guids/{guid} format
GET /schemas/guids/{guid}/ids
GET /schemas/types
GET /subjects subjectPrefix offset limit deleted deletedOnly
POST /subjects/{subject} normalize format deleted
DELETE /subjects/{subject} permanent
GET /subjects/{subject}/metadata key value format deleted
GET /subjects/{subject}/versions deleted deletedOnly offset limit
POST /subjects/{subject}/versions normalize format
GET /subjects/{subject}/versions/{version} format referenceFormat deleted findTags
DELETE /subjects/{subject}/versions/{version} permanent
GET /subjects/{subject}/versions/{version}/referencedby deleted offset limit
GET /subjects/{subject}/versions/{version}/schema format deleted
POST /subjects/{subject}/versions/{version}/tags
GET /v1/metadata/id
GET /v1/metadata/version
GET /v1/metadata/deployment
"""


def test_every_operation_of_the_specification_has_a_row_with_its_parameters() -> None:
    rows = {(route.method, route.path): set(route.parameters) for route in ROUTES}
    for line in SPECIFICATION.strip().splitlines():
        method, path, *parameters = line.split()
        assert set(parameters) <= rows[method, path], line
    beyond = {path for _, path in rows} - {line.split()[1] for line in SPECIFICATION.strip().splitlines()}
    assert beyond == {"/_health", "/master_available"}, "Karapace's"


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def filled() -> Scene:
    """`a` has three versions, of which the first is soft-deleted; `b` has one; `gone` is soft-deleted."""
    scene = Scene()
    for text in (INT, WITH_B):
        scene.register("a", text)
    scene.ask("DELETE", "/subjects/a/versions/1")
    scene.register("a", '{"type":"record","name":"R","fields":[]}')
    scene.register("b", WITH_B)
    scene.register("gone", '"string"')
    scene.ask("DELETE", "/subjects/gone")
    return scene


# --- registering ---


def test_a_schema_is_registered_once(scene: Scene) -> None:
    status, first = scene.ask("POST", "/subjects/s/versions", {"schema": INT})
    assert status == 200
    assert first == {"id": 1, "version": 1, "guid": first["guid"], "schemaType": "AVRO", "schema": INT}
    assert len(scene.log) == 1
    assert scene.ask("POST", "/subjects/s/versions", {"schema": f"  {INT}  "}) == (200, first)
    assert len(scene.log) == 1, "nothing is written for what is there"
    assert scene.register("other", INT) == 1, "the same schema has the same id"
    assert scene.register("s", WITH_B) == 2
    assert scene.get("/subjects/s/versions") == [1, 2]


def test_text_is_stored_as_java_writes_it(scene: Scene) -> None:
    scene.register("s", '{"type": "string"}')
    assert scene.get("/subjects/s/versions/1")["schema"] == '"string"'
    assert scene.register("t", '"string"') == 1


def test_what_is_no_schema_is_refused(scene: Scene) -> None:
    for body in ({"schema": "{"}, {"schema": '{"type":"x"}'}, {"schema": ""}, {}, {"schema": "x", "schemaType": "XML"}):
        status, code, _ = scene.refused("POST", "/subjects/s/versions", body)
        assert (status, code) == (422, 42201), body
    assert scene.log == []


def test_a_schema_has_to_be_compatible(scene: Scene) -> None:
    scene.register("s", INT)
    status, code, message = scene.refused("POST", "/subjects/s/versions", {"schema": STRING})
    assert (status, code) == (409, 409)
    assert message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details: [{errorType:'
    )
    assert message.endswith("{validateFields: 'false', compatibility: 'BACKWARD'}]")
    scene.ask("PUT", "/config/s", {"compatibility": "NONE"})
    assert scene.register("s", STRING) == 2


@pytest.mark.parametrize(
    ("level", "status"),
    [
        ("NONE", 200),
        ("BACKWARD", 200),
        ("BACKWARD_TRANSITIVE", 409),
        ("FORWARD", 200),
        ("FORWARD_TRANSITIVE", 409),
        ("FULL", 200),
        ("FULL_TRANSITIVE", 409),
    ],
)
def test_transitive_levels_look_at_all_versions(scene: Scene, level: str, status: int) -> None:
    """The third has a field that the second has not, and that the first has with another type."""
    scene.ask("PUT", "/config", {"compatibility": "NONE"})
    scene.register("s", INT.replace("}]", '},{"name":"x","type":"int","default":1}]'))
    scene.register("s", INT)
    scene.ask("PUT", "/config", {"compatibility": level})
    third = INT.replace("}]", '},{"name":"x","type":"string","default":""}]')
    assert scene.ask("POST", "/subjects/s/versions", {"schema": third})[0] == status


def test_a_deleted_schema_comes_back_with_its_id_and_a_new_version(scene: Scene) -> None:
    scene.register("s", INT)
    scene.ask("DELETE", "/subjects/s/versions/1")
    status, reply = scene.ask("POST", "/subjects/s/versions", {"schema": INT})
    assert (status, reply["id"], reply["version"]) == (200, 1, 2)
    assert scene.get("/subjects/s/versions?deleted=true") == [2], "it is not there twice"


def test_names_may_have_slashes_percents_spaces_and_letters_of_any_kind(scene: Scene) -> None:
    for encoded, name in (("a%2Fb", "a/b"), ("50%25", "50%"), ("a%20b", "a b"), ("a+b", "a+b"), ("%C3%A4", "ä")):
        scene.register(encoded, INT)
        assert scene.get(f"/subjects/{encoded}/versions/latest")["subject"] == name
    assert scene.get("/subjects") == sorted(["a/b", "50%", "a b", "a+b", "ä"])
    assert scene.ask("GET", "/subjects/%ff/versions")[0] == 400


@pytest.mark.parametrize("subject", ["__GLOBAL", "__EMPTY", "a%01b", "%7F", ":.__GLOBAL:x"])
def test_some_names_are_refused(scene: Scene, subject: str) -> None:
    status, code, _ = scene.refused("POST", f"/subjects/{subject}/versions", {"schema": INT})
    assert (status, code) == (422, 42208)


def test_a_subject_has_a_name(scene: Scene) -> None:
    assert scene.refused("POST", "/subjects//versions", {"schema": INT})[:2] == (422, 42208)


def test_a_version_that_is_named_must_be_the_next(scene: Scene) -> None:
    assert scene.register("s", INT, version=1) == 1
    refused = scene.refused("POST", "/subjects/s/versions", {"schema": WITH_B, "version": 5})
    assert refused == (422, 42201, "Version is not one more than previous version")
    status, reply = scene.ask("POST", "/subjects/s/versions", {"schema": WITH_B, "version": 2})
    assert (status, reply["version"], reply["metadata"]) == (200, 2, {"properties": {"confluent:version": "2"}})


def test_references_are_resolved_and_hold_what_they_refer_to(scene: Scene) -> None:
    scene.register("base", '{"type":"record","name":"Base","fields":[]}')
    user = '{"type":"record","name":"User","fields":[{"name":"base","type":"Base"}]}'
    reference = {"name": "Base", "subject": "base", "version": 1}
    status, code, message = scene.refused("POST", "/subjects/user/versions", {"schema": user})
    assert (status, code) == (422, 42201), message
    missing = {"schema": user, "references": [{**reference, "version": 7}]}
    status, code, message = scene.refused("POST", "/subjects/user/versions", missing)
    assert (status, code) == (422, 42201)
    assert message.endswith('No schema reference found for subject "base" and version 7')
    id = scene.register("user", user, references=[{**reference, "version": -1}])
    assert scene.get("/subjects/user/versions/1")["references"] == [reference], "the latest at that time"
    assert scene.get("/subjects/base/versions/1/referencedby") == [id]
    for target in ("/subjects/base/versions/1", "/subjects/base"):
        status, code, message = scene.refused("DELETE", target)
        assert (status, code) == (422, 42206)
        assert message == (
            "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=base,version=1}."
        )
    scene.ask("DELETE", "/subjects/user")
    assert scene.get("/subjects/base/versions/1/referencedby") == []
    assert scene.get("/subjects/base/versions/1/referencedby?deleted=true") == [id]
    assert scene.ask("DELETE", "/subjects/base/versions/1") == (200, 1)
    assert scene.refused("DELETE", "/subjects/base/versions/1?permanent=true")[1] == 42206
    inlined = user.replace('"Base"', '{"type":"record","name":"Base","fields":[]}')
    assert scene.ask("POST", "/subjects/user?deleted=true", {"schema": inlined})[1]["id"] == id, "with all in one"


def test_a_body_must_be_a_json_object(scene: Scene) -> None:
    target = "/subjects/s/versions"
    for raw, status in (
        (b"", 422),
        (b"null", 422),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b'{"schema":1}', 400),
        (b'{"schema":"x","references":1}', 400),
        (b'{"schema":"x","id":"1"}', 400),
        (b'{"schema":"\\ud800"}', 400),
    ):
        assert scene.response("POST", target, raw=raw).status == status, raw[:30]


# --- reading ---


def test_versions_of_a_subject(filled: Scene) -> None:
    assert filled.get("/subjects/a/versions") == [2, 3]
    assert filled.get("/subjects/a/versions?deleted=true") == [1, 2, 3]
    assert filled.get("/subjects/a/versions?deletedOnly=true") == [1]
    assert filled.get("/subjects/a/versions?deletedAsNegative=true") == [-1, 2, 3]
    assert filled.get("/subjects/a/versions?deleted=true&offset=1&limit=1") == [2]
    version = filled.get("/subjects/a/versions/2")
    assert version == {
        "subject": "a",
        "version": 2,
        "id": 2,
        "guid": version["guid"],
        "schemaType": "AVRO",
        "schema": WITH_B,
        "ts": NOW_MS,
        "deleted": False,
    }
    assert filled.get("/subjects/a/versions/latest") == filled.get("/subjects/a/versions/-1")
    assert filled.get("/subjects/a/versions/latest")["version"] == 3
    assert filled.get("/subjects/a/versions/1?deleted=true")["deleted"] is True
    assert filled.response("GET", "/subjects/a/versions/2/schema").body == WITH_B.encode()
    assert filled.get("/subjects/gone/versions?deleted=true") == [1]


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("/subjects/none/versions", 40401, "Subject 'none' not found."),
        ("/subjects/gone/versions", 40401, "Subject 'gone' not found."),
        ("/subjects/none/versions/1", 40401, "Subject 'none' not found."),
        ("/subjects/a/versions/1", 40402, "Version 1 not found."),
        ("/subjects/a/versions/9", 40402, "Version 9 not found."),
        ("/subjects/gone/versions/latest?deleted=true", 40402, "Version -1 not found."),
        ("/schemas/ids/99", 40403, "Schema 99 not found"),
        ("/schemas/ids/99/subjects", 40403, "Schema not found"),
        ("/schemas/guids/00000000-0000-0000-0000-000000000000", 40403, None),
        ("/schemas/guids/nonsense", 40403, "Schema nonsense not found"),
        ("/config/a", 40408, "Subject 'a' does not have subject-level compatibility configured"),
        ("/mode/a", 40409, "Subject 'a' does not have subject-level mode configured"),
    ],
)
def test_what_is_not_there(filled: Scene, target: str, code: int, message: str | None) -> None:
    status, found, said = filled.refused("GET", target)
    assert (status, found) == (404, code)
    assert message is None or said == message


@pytest.mark.parametrize("version", ["0", "-2", "1.5", "first", "2147483648", "%20", "%D9%A1"])
def test_versions_that_are_none(filled: Scene, version: str) -> None:
    for method, target in (("GET", "/subjects/a/versions/{}"), ("DELETE", "/subjects/a/versions/{}")):
        status, code, message = filled.refused(method, target.format(version))
        assert (status, code) == (422, 42202)
        assert message.endswith('Allowed values are between [1, 2^31-1] and the string "latest"')


def test_subjects(filled: Scene) -> None:
    filled.register(":.c:a", INT)
    assert filled.get("/subjects") == [":.c:a", "a", "b"]
    assert filled.get("/subjects?deleted=true") == [":.c:a", "a", "b", "gone"]
    assert filled.get("/subjects?deletedOnly=true") == ["gone"]
    assert filled.get("/subjects?subjectPrefix=a") == ["a"]
    assert filled.get("/subjects?subjectPrefix=:*:a") == [":.c:a", "a"]
    assert filled.get("/subjects?subjectPrefix=:.c:") == [":.c:a"]
    assert filled.get("/subjects?subjectPrefix=") == ["a", "b"]
    assert filled.get("/subjects?offset=1&limit=1") == ["a"]
    assert filled.get("/contexts/.c/subjects") == [":.c:a"]


def test_schemas_by_id_and_guid(filled: Scene) -> None:
    by_id = filled.get("/schemas/ids/2")
    assert by_id == {
        "guid": by_id["guid"],
        "schemaType": "AVRO",
        "schema": WITH_B,
        "ts": NOW_MS,
        "deleted": False,
    }
    assert filled.get("/schemas/ids/2?fetchMaxId=true")["maxId"] == 4
    assert filled.get("/schemas/ids/2?subject=b")["subject"] == "b"
    assert filled.response("GET", "/schemas/ids/2/schema").body == WITH_B.encode()
    assert filled.get("/schemas/ids/2/subjects") == ["a", "b"]
    assert filled.get("/schemas/ids/2/versions") == [{"subject": "a", "version": 2}, {"subject": "b", "version": 1}]
    assert (filled.get("/schemas/ids/1/subjects"), filled.get("/schemas/ids/1/subjects?deleted=true")) == ([], ["a"])
    guid = by_id["guid"]
    assert filled.get(f"/schemas/guids/{guid}")["schema"] == WITH_B
    assert filled.get(f"/schemas/guids/{guid.replace('-', '')}")["schema"] == WITH_B
    assert filled.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 2}]
    assert filled.ask("GET", "/schemas/ids/one") == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})
    assert sorted(filled.get("/schemas/types")) == ["AVRO", "JSON", "PROTOBUF"]


def test_the_search_for_schemas(filled: Scene) -> None:
    def found(query: str) -> list[tuple[str, int]]:
        return [(one["subject"], one["version"]) for one in filled.get(f"/schemas{query}")]

    filled.register(":.c:a", INT)
    assert found("") == [("a", 2), ("a", 3), ("b", 1)]
    assert found("?deleted=true") == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("gone", 1)]
    assert found("?latestOnly=true") == [("a", 3), ("b", 1)]
    assert found("?subjectPrefix=b") == [("b", 1)]
    assert found("?subjectPrefix=:*:&latestOnly=true") == [(":.c:a", 1), ("a", 3), ("b", 1)]
    assert found("?offset=1&limit=1") == [("a", 3)]
    filled.ask("PUT", "/config/short", {"alias": "b"})
    aliased = filled.get("/schemas?aliases=true&subjectPrefix=short")
    assert [(one["subject"], one["aliases"]) for one in aliased] == [("b", ["short"])]


def test_looking_up_a_schema(filled: Scene) -> None:
    status, reply = filled.ask("POST", "/subjects/a", {"schema": WITH_B})
    assert (status, reply["subject"], reply["version"], reply["id"]) == (200, "a", 2, 2)
    assert filled.refused("POST", "/subjects/a", {"schema": INT})[1] == 40403
    assert filled.ask("POST", "/subjects/a?deleted=true", {"schema": INT})[1]["version"] == 1
    assert filled.refused("POST", "/subjects/none", {"schema": INT})[1] == 40401
    assert filled.refused("POST", "/subjects/a", {"schema": "{"})[1] == 42201


def test_the_latest_with_metadata(scene: Scene) -> None:
    scene.register("s", INT, metadata={"properties": {"owner": "a", "tier": "1"}})
    scene.register("s", WITH_B, metadata={"properties": {"owner": "b"}})
    scene.register("s", WITH_C, metadata={"properties": {"owner": "a"}})
    assert scene.get("/subjects/s/metadata?key=owner&value=a")["version"] == 3
    assert scene.get("/subjects/s/metadata?key=owner&value=a&key=tier&value=1")["version"] == 1
    assert scene.refused("GET", "/subjects/s/metadata?key=owner&value=c")[1] == 40403
    assert scene.refused("GET", "/subjects/t/metadata?key=owner&value=c")[1] == 40401


# --- deleting ---


def test_a_version_is_deleted_softly_and_then_for_good(scene: Scene) -> None:
    scene.register("s", INT)
    scene.register("s", WITH_B)
    assert scene.refused("DELETE", "/subjects/s/versions/1?permanent=true")[:2] == (404, 40407)
    assert scene.ask("DELETE", "/subjects/s/versions/1") == (200, 1)
    assert scene.refused("DELETE", "/subjects/s/versions/1")[:2] == (404, 40406)
    assert scene.ask("DELETE", "/subjects/s/versions/1?permanent=true") == (200, 1)
    assert scene.refused("DELETE", "/subjects/s/versions/1?permanent=true")[:2] == (404, 40402)
    assert scene.ask("DELETE", "/subjects/s/versions/latest") == (200, 2)
    assert scene.refused("DELETE", "/subjects/t/versions/1")[:2] == (404, 40401)


def test_a_subject_is_deleted_softly_and_then_for_good(scene: Scene) -> None:
    scene.register("s", INT)
    scene.register("s", WITH_B)
    scene.ask("PUT", "/config/s", {"compatibility": "FULL"})
    scene.ask("PUT", "/mode/s", {"mode": "READWRITE"})
    assert scene.refused("DELETE", "/subjects/s?permanent=true")[:2] == (404, 40405)
    assert scene.ask("DELETE", "/subjects/s") == (200, [1, 2])
    assert scene.refused("DELETE", "/subjects/s")[:2] == (404, 40404)
    assert scene.get("/config/s") == {"compatibilityLevel": "FULL"}
    assert scene.ask("DELETE", "/subjects/s?permanent=true") == (200, [1, 2])
    assert scene.refused("DELETE", "/subjects/s?permanent=true")[:2] == (404, 40401)
    assert scene.refused("GET", "/config/s")[1] == 40408
    assert scene.refused("GET", "/mode/s")[1] == 40409
    assert scene.register("s", STRING) == 3, "the ids of what is gone are not given out again"
    assert scene.get("/subjects/s/versions") == [1]


# --- config and mode ---


def test_configs(scene: Scene) -> None:
    assert scene.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert scene.ask("PUT", "/config", {"compatibility": "full"}) == (200, {"compatibility": "FULL"})
    assert scene.get("/config") == {"compatibilityLevel": "FULL"}
    assert scene.get("/config/s?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    changed = scene.ask("PUT", "/config/s", {"compatibility": "NONE", "normalize": True, "compatibilityGroup": "g"})
    assert changed == (200, {"normalize": True, "compatibility": "NONE", "compatibilityGroup": "g"})
    assert scene.ask("PUT", "/config/s", {"normalize": None, "alias": "t"})[1] == {
        "alias": "t",
        "compatibility": "NONE",
        "compatibilityGroup": "g",
    }
    assert scene.get("/config/s") == {"alias": "t", "compatibilityLevel": "NONE", "compatibilityGroup": "g"}
    assert scene.ask("DELETE", "/config/s")[1]["compatibilityLevel"] == "NONE"
    assert scene.refused("DELETE", "/config/s")[:2] == (404, 40401)
    assert scene.ask("DELETE", "/config") == (200, {"compatibilityLevel": "FULL"})
    assert scene.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert scene.refused("PUT", "/config", {"compatibility": "SOME"})[:2] == (422, 42203)
    assert scene.refused("PUT", "/config/__GLOBAL", {"compatibility": "FULL"})[:2] == (422, 42208)
    rule = {"name": "r", "mode": "WRITE"}
    assert scene.refused("PUT", "/config", {"defaultRuleSet": {"domainRules": [rule]}})[:2] == (422, 42210)


def test_modes(scene: Scene) -> None:
    assert scene.get("/mode") == {"mode": "READWRITE"}
    scene.register("s", INT)
    assert scene.ask("PUT", "/mode/s", {"mode": "readonly"}) == (200, {"mode": "READONLY"})
    refused = scene.refused("POST", "/subjects/s/versions", {"schema": WITH_B})
    assert refused == (422, 42205, "Subject s in context  is in read-only mode")
    assert scene.register("s", INT) == 1, "what is there may be asked for"
    assert scene.refused("DELETE", "/subjects/s")[1] == 42205
    assert scene.refused("PUT", "/config/s", {"compatibility": "FULL"})[1] == 42205
    assert scene.ask("DELETE", "/mode/s") == (200, {"mode": "READONLY"})
    assert scene.refused("DELETE", "/mode/s")[:2] == (404, 40401)
    assert scene.refused("PUT", "/mode", {"mode": "SLOW"})[:2] == (422, 42204)
    assert scene.refused("PUT", "/mode", {"mode": "FORWARD"})[:2] == (422, 42204)
    assert scene.ask("PUT", "/mode/:.__GLOBAL:", {"mode": "FORWARD"})[0] == 200
    assert scene.refused("POST", "/subjects/s/versions", {"schema": WITH_B})[1] == 42205
    fixed = Scene(ApiSettings(may_change_modes=False))
    assert fixed.refused("PUT", "/mode", {"mode": "READONLY"})[:2] == (422, 42205)


def test_modes_of_a_context_go_with_it(scene: Scene) -> None:
    for subject in (":.c:", ":.c:s", "s"):
        assert scene.ask("PUT", f"/mode/{subject}", {"mode": "READONLY"})[0] == 200
    assert scene.ask("DELETE", "/mode/:.c:?recursive=true") == (200, {"mode": "READONLY"})
    assert scene.refused("GET", "/mode/:.c:s")[1] == 40409
    assert scene.get("/mode/s") == {"mode": "READONLY"}


def test_importing_keeps_ids_and_versions(scene: Scene) -> None:
    refused = scene.refused("POST", "/subjects/s/versions", {"schema": INT, "id": 7})
    assert refused == (422, 42205, "Subject s in context  is not in import mode")
    assert scene.ask("PUT", "/mode", {"mode": "IMPORT"})[0] == 200
    assert scene.refused("POST", "/subjects/s/versions", {"schema": INT})[1] == 42205
    status, reply = scene.ask("POST", "/subjects/s/versions", {"schema": STRING, "id": 70, "version": 5})
    assert (status, reply["id"], reply["version"]) == (200, 70, 5)
    assert scene.register("s", INT, id=60, version=2) == 60, "in any order, and whatever is compatible"
    refused = scene.refused("POST", "/subjects/t/versions", {"schema": WITH_B, "id": 60, "version": 1})
    assert refused == (422, 42205, "Overwrite new schema with id 60 in context  is not permitted.")
    assert scene.register("t", INT, id=60, version=1) == 60
    scene.ask("PUT", "/mode", {"mode": "READWRITE"})
    assert scene.register("u", WITH_B) == 71
    assert scene.refused("PUT", "/mode", {"mode": "IMPORT"}) == (
        422,
        42205,
        "Cannot import since found existing subjects",
    )
    assert scene.ask("PUT", "/mode?force=true", {"mode": "IMPORT"})[0] == 200


def test_import_clears_what_was_soft_deleted(scene: Scene) -> None:
    scene.register("s", INT)
    scene.ask("DELETE", "/subjects/s")
    assert scene.ask("PUT", "/mode/s", {"mode": "IMPORT"})[0] == 200
    assert scene.get("/subjects?deleted=true") == []
    assert scene.register("s", WITH_B, id=1, version=1) == 1


# --- contexts and aliases ---


def test_contexts_by_name_and_by_path(scene: Scene) -> None:
    scene.register(":.c:s", INT)
    scene.register("s", WITH_B)
    assert scene.get("/contexts") == [".", ".c"]
    assert scene.get("/contexts?contextPrefix=.c") == [".c"]
    status, reply = scene.ask("POST", "/contexts/.c/subjects/s/versions", {"schema": WITH_B})
    assert (status, reply["id"], reply["version"]) == (200, 2, 2)
    assert scene.get("/contexts/c/subjects/s/versions") == [1, 2]
    assert scene.get("/contexts/:.c:/schemas/ids/1")["schema"] == INT
    assert scene.get("/schemas/ids/1")["schema"] == WITH_B
    assert scene.get("/schemas/ids/1?subject=:.c:")["schema"] == INT
    assert [one["subject"] for one in scene.get("/contexts/.c/schemas")] == [":.c:s", ":.c:s"]
    assert scene.ask("PUT", "/contexts/.c/config", {"compatibility": "NONE"})[0] == 200
    assert scene.get("/config/:.c:") == {"compatibilityLevel": "NONE"}
    assert scene.ask("PUT", "/contexts/.c/mode/s", {"mode": "READONLY"})[0] == 200
    assert scene.get("/mode/:.c:s") == {"mode": "READONLY"}
    verdict = scene.ask("POST", "/contexts/.c/compatibility/subjects/s/versions/latest", {"schema": STRING})
    assert verdict == (200, {"is_compatible": True})
    assert scene.ask("GET", "/contexts/a:b/subjects")[0] == 400
    assert scene.get("/contexts/./subjects/s/versions") == [1]


def test_a_context_is_deleted_when_it_is_empty(scene: Scene) -> None:
    scene.register(":.c:s", INT)
    assert scene.refused("DELETE", "/contexts/.c")[:2] == (422, 42211)
    scene.ask("DELETE", "/subjects/:.c:s")
    scene.ask("DELETE", "/subjects/:.c:s?permanent=true")
    assert scene.ask("DELETE", "/contexts/.c") == (204, None)
    assert scene.get("/contexts") == ["."]


def test_an_alias_stands_for_a_subject(scene: Scene) -> None:
    scene.register("long-name", INT)
    scene.ask("PUT", "/config/short", {"alias": "long-name"})
    assert scene.get("/subjects/short/versions/1")["subject"] == "long-name"
    assert scene.register("short", WITH_B) == 2
    assert scene.get("/subjects/long-name/versions") == [1, 2]
    assert scene.get("/schemas/ids/1?subject=short")["subject"] == "long-name"
    assert scene.get("/config/short")["alias"] == "long-name", "its config is its own"


def test_a_name_without_a_context_is_looked_for_in_the_others(scene: Scene) -> None:
    scene.register(":.c:only", INT)
    assert scene.get("/subjects/only/versions/1")["subject"] == ":.c:only"
    assert scene.ask("POST", "/subjects/only", {"schema": INT})[1]["subject"] == ":.c:only"
    assert scene.refused("GET", "/subjects/only/versions")[1] == 40401


def test_references_are_qualified_on_request(scene: Scene) -> None:
    scene.register(":.c:base", '{"type":"record","name":"Base","fields":[]}')
    user = '{"type":"record","name":"User","fields":[{"name":"base","type":"Base"}]}'
    scene.register(":.c:user", user, references=[{"name": "Base", "subject": "base", "version": 1}])
    target = "/subjects/:.c:user/versions/1"
    assert scene.get(target)["references"][0]["subject"] == "base"
    assert scene.get(f"{target}?referenceFormat=qualified")["references"][0]["subject"] == ":.c:base"
    assert "Base" in scene.get(f"{target}?format=resolved")["schema"].replace('"type":"Base"', "")


# --- compatibility ---


def test_compatibility_is_told_for_one_version_and_for_all(scene: Scene) -> None:
    scene.register("s", INT)
    scene.ask("PUT", "/config/s", {"compatibility": "NONE"})
    scene.register("s", STRING)
    scene.ask("PUT", "/config/s", {"compatibility": "BACKWARD_TRANSITIVE"})
    one, all_of_them = "/compatibility/subjects/s/versions/{}", "/compatibility/subjects/s/versions"
    assert scene.ask("POST", one.format(2), {"schema": STRING}) == (200, {"is_compatible": True})
    assert scene.ask("POST", one.format("latest"), {"schema": STRING})[1] == {"is_compatible": True}
    assert scene.ask("POST", one.format(1), {"schema": STRING}) == (200, {"is_compatible": False})
    assert scene.ask("POST", all_of_them, {"schema": STRING}) == (200, {"is_compatible": False})
    _, verbose = scene.ask("POST", f"{all_of_them}?verbose=true", {"schema": STRING})
    assert verbose["is_compatible"] is False
    assert any("TYPE_MISMATCH" in message for message in verbose["messages"])
    assert {"oldSchemaVersion: 1"} <= {message.strip("{}") for message in verbose["messages"]}
    assert scene.ask("POST", f"{all_of_them}?verbose=true", {"schema": "{"})[1]["is_compatible"] is False
    assert scene.refused("POST", all_of_them, {"schema": "{"})[:2] == (422, 42201)
    assert scene.refused("POST", one.format(9), {"schema": INT})[:2] == (404, 40402)
    assert scene.refused("POST", one.format(0), {"schema": INT})[:2] == (422, 42202)
    assert scene.ask("POST", "/compatibility/subjects/new/versions/latest", {"schema": INT})[1]["is_compatible"]


def test_compatibility_groups_are_apart(scene: Scene) -> None:
    scene.ask("PUT", "/config/s", {"compatibilityGroup": "major"})
    scene.register("s", INT, metadata={"properties": {"major": "1"}})
    scene.register("s", STRING, metadata={"properties": {"major": "2"}})
    body = {"schema": STRING.replace('"a"', '"z"'), "metadata": {"properties": {"major": "2"}}}
    assert scene.refused("POST", "/subjects/s/versions", body)[1] == 409
    assert scene.ask("POST", "/subjects/s/versions", {**body, "metadata": {"properties": {"major": "3"}}})[0] == 200


# --- metadata, rules and tags ---


def test_metadata_and_rules_come_from_the_version_before_and_from_configs(scene: Scene) -> None:
    rule = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
    scene.ask(
        "PUT",
        "/config",
        {
            "defaultMetadata": {"properties": {"owner": "nobody", "tier": "3"}},
            "overrideMetadata": {"properties": {"tier": "1"}},
            "defaultRuleSet": {"domainRules": [rule]},
        },
    )
    scene.register("s", INT, metadata={"properties": {"owner": "me"}})
    first = scene.get("/subjects/s/versions/1")
    assert first["metadata"] == {"properties": {"owner": "me", "tier": "1"}}
    assert first["ruleSet"] == {"domainRules": [{**rule, "disabled": False}]}
    scene.register("s", WITH_B)
    assert scene.get("/subjects/s/versions/2")["metadata"] == first["metadata"]
    assert scene.get("/schemas?ruleType=CEL&latestOnly=true")[0]["version"] == 2
    assert scene.get("/schemas?ruleType=OTHER") == []
    scene.register("s", "", metadata={"properties": {"owner": "you"}})
    third = scene.get("/subjects/s/versions/3")
    assert (third["schema"], third["metadata"]["properties"]["owner"]) == (WITH_B, "you"), "the text of the one before"
    bad = {"schema": INT, "ruleSet": {"domainRules": [rule, rule]}}
    assert scene.refused("POST", "/subjects/t/versions", bad) == (422, 42210, "Found rule with duplicate name 'r'")


def test_tags_are_put_into_the_text(scene: Scene) -> None:
    scene.register("s", INT)
    entity = {"entityPath": "R.a", "entityType": "sr_field"}
    body = {"newVersion": 2, "tagsToAdd": [{"schemaEntity": entity, "tags": ["PII"]}]}
    status, reply = scene.ask("POST", "/subjects/s/versions/1/tags", body)
    assert (status, reply["version"]) == (200, 2), reply
    assert json.loads(reply["schema"])["fields"][0]["confluent:tags"] == ["PII"]
    assert reply["metadata"]["properties"]["confluent:version"] == "2"
    found = scene.get("/subjects/s/versions/2?findTags=PII")["schemaTags"]
    assert found == [{"schemaEntity": entity, "tags": ["PII"]}]
    assert "schemaTags" not in scene.get("/subjects/s/versions/2?findTags=OTHER")
    assert scene.refused("POST", "/subjects/s/versions/9/tags", body)[1] == 40402
    assert scene.refused("POST", "/subjects/t/versions/1/tags", body)[1] == 40401


# --- the front ---


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, "application/vnd.schemaregistry.v1+json"),
        ("*/*", "application/vnd.schemaregistry.v1+json"),
        ("application/*", "application/vnd.schemaregistry.v1+json"),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        ("text/html, application/json;q=0.5, */*;q=0.1", "application/json"),
        ("application/vnd.schemaregistry.v1+json, application/json", "application/vnd.schemaregistry.v1+json"),
    ],
)
def test_media_types(scene: Scene, accept: str | None, media_type: str) -> None:
    headers = {} if accept is None else {"accept": accept}
    assert scene.response("GET", "/subjects", **headers).headers["content-type"] == media_type


def test_other_media_types_are_refused(scene: Scene) -> None:
    assert scene.response("GET", "/subjects", accept="text/html").status == 406
    body = {"schema": INT}
    assert scene.response("POST", "/subjects/s/versions", body, content_type="text/xml").status == 415
    for given in (
        "application/json",
        "application/vnd.schemaregistry.v1+json; charset=utf-8",
        "application/octet-stream",
    ):
        assert scene.response("POST", "/subjects/s/versions", body, content_type=given).status == 200


def test_methods_and_paths_that_there_are_not(scene: Scene) -> None:
    assert scene.refused("GET", "/nothing") == (404, 404, "HTTP 404 Not Found")
    assert scene.refused("PUT", "/subjects")[:2] == (405, 405)
    assert scene.refused("GET", "/exporters") == (404, 404, "This registry does not serve exporters yet")
    assert scene.refused("GET", "/dek-registry/v1/keks")[2] == "This registry does not serve dek-registry yet"
    assert scene.get("/") == {}
    assert scene.ask("POST", "/", {}) == (200, {})
    found: list[bytes] = []
    scene.front.handle(HttpRequest("HEAD", "/subjects", {}, b""), Caller("http", "127.0.0.1", None), found.append)
    assert found[0].endswith(b"Content-Length: 2\r\n\r\n")


def test_a_reply_is_kept_until_something_changes(scene: Scene) -> None:
    scene.register("s", INT)
    assert scene.get("/subjects") == ["s"]
    kept = dict(scene.front._kept)
    assert [target for target, _ in kept] == ["/subjects"]
    scene.get("/subjects")
    assert scene.front._kept == kept
    scene.register("t", INT)
    assert scene.get("/subjects") == ["s", "t"]


def test_what_is_stored_and_is_no_schema_is_served_as_it_is(scene: Scene) -> None:
    scene.write(schema_record(SchemaValue("s", 1, 1, "AVRO", "this is no Avro")))
    assert scene.get("/schemas/ids/1")["schema"] == "this is no Avro"
    assert scene.get("/subjects/s/versions/latest")["schema"] == "this is no Avro"
    assert scene.refused("GET", "/schemas/ids/1?format=resolved")[:2] == (422, 42201)
    scene.ask("PUT", "/config/s", {"compatibility": "NONE"})
    assert scene.register("s", INT) == 2


@pytest.mark.parametrize("target", ["/subjects?limit=x", "/subjects/s/versions?offset=x"])
def test_numbers_that_are_none(scene: Scene, target: str) -> None:
    scene.register("s", INT)
    assert scene.ask("GET", target)[0] == 404


def test_everything_is_one_json_object_or_list(filled: Scene) -> None:
    def body(target: str) -> Any:
        return json.loads(filled.response("GET", target).body)

    assert isinstance(body("/v1/metadata/id"), dict)
    assert isinstance(body("/v1/metadata/version"), dict)
    assert isinstance(body("/_health"), dict)


@pytest.mark.slow
def test_what_is_kept_of_long_questions_is_counted(scene: Scene) -> None:
    for number in range(5_000):
        scene.get(f"/subjects?subjectPrefix={number}{'x' * 15_000}")
    assert sum(len(target) + len(response) for (target, _), response in scene.front._kept.items()) <= 64 << 20


def test_old_java_clients_are_given_no_members_that_they_do_not_know(scene: Scene) -> None:
    """They fail at one. Newer ones say that they pass over them, and so are told all."""
    body = {"schema": INT}
    old, new = (
        {"user_agent": "Java/17.0.1"},
        {"user_agent": "Java/17.0.1", "confluent_accept_unknown_properties": "true"},
    )
    assert scene.ask("POST", "/subjects/s/versions", body, **old)[1] == {"id": 1}
    assert set(scene.ask("POST", "/subjects/s/versions", body, **new)[1]) > {"id", "version", "guid"}
    for target in ("/schemas/ids/1", "/subjects/s/versions/1"):
        for _ in range(2):  # The second may be a reply that was kept.
            assert "guid" in scene.ask("GET", target, **new)[1]
            assert not {"guid", "ts", "deleted"} & set(scene.ask("GET", target, **old)[1])
    assert set(scene.ask("POST", "/subjects/s", body, **old)[1]) == {"subject", "version", "id", "schemaType", "schema"}
