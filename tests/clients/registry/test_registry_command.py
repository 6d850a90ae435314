"""`ottla registry`, as a person uses it."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from ottla.cli.main import main
from ottla.testing import Broker, SchemaRegistry

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
WITH_B = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'


class Command:
    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self._capsys = capsys
        self.errors = ""

    def __call__(self, command: str, *words: str, status: int = 0) -> str:
        assert main(["registry", command, "--url", self.url, *words]) == status
        printed = self._capsys.readouterr()
        self.errors = printed.err
        return printed.out


@pytest.fixture
def run(ottla_registry: SchemaRegistry, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(ottla_registry.url, capsys)


@pytest.fixture
def subject() -> str:
    return f"cmd-{uuid4().hex}"


def file(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_schemas_are_registered_checked_and_shown(run: Command, subject: str, tmp_path: Path) -> None:
    first, second = file(tmp_path, "a.avsc", INT), file(tmp_path, "b.avsc", WITH_B)
    assert run("register", subject, first).startswith(f"{subject} version 1, id ")
    assert run("check", subject, first) == "compatible\n"
    refused = run("check", subject, second, status=2)
    assert refused.startswith("not compatible:\n")
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in refused
    run("register", subject, second, status=1)
    assert "incompatible" in run.errors
    assert json.loads(run("config", subject, "--compatibility", "none")) == {"compatibilityLevel": "NONE"}
    registered = json.loads(run("register", subject, second, "--json"))
    assert registered["version"] == 2
    assert run("list", subject) == "1\n2\n"
    assert subject in run("list", "--prefix", "cmd-").split()
    assert json.loads(run("show", subject, "1")) == json.loads(INT)
    assert json.loads(run("show", str(registered["id"]))) == json.loads(WITH_B)
    assert json.loads(run("show", registered["guid"])) == json.loads(WITH_B)
    differences = run("diff", subject, "1")
    assert '+      "name": "b",' in differences
    assert "version 2 does not read what version 1 writes" in differences
    assert "version 1 reads what version 2 writes" in differences
    assert "the texts are the same" in run("diff", subject, "1", first)
    run("show", subject, "9", status=1)
    assert run.errors == "ottla registry: Version 9 not found. (HTTP 404, code 40402)\n"


def test_deleting(run: Command, subject: str, tmp_path: Path) -> None:
    run("register", subject, file(tmp_path, "a.avsc", INT))
    assert run("delete", subject, "1") == f"deleted: {subject} 1\n"
    assert run("list", subject, "--deleted") == "1\n"
    assert run("delete", subject, "--permanent") == f"deleted for good: {subject} 1\n"
    run("list", subject, status=1)
    run("register", subject, file(tmp_path, "a.avsc", INT))
    assert run("delete", subject, "--permanent") == f"deleted for good: {subject} 1\n", "softly first"


def test_modes_and_configs(run: Command, subject: str) -> None:
    assert run("mode") == "READWRITE\n"
    assert run("mode", subject, "--set", "readonly") == "READONLY\n"
    assert run("mode", subject, "--delete") == "READWRITE\n"
    assert json.loads(run("config", subject, "--set", "normalize=true"))["normalize"] is True
    assert json.loads(run("config", subject, "--delete")) == {"compatibilityLevel": "BACKWARD"}


def test_references_and_formats(run: Command, subject: str, tmp_path: Path) -> None:
    run("register", f"{subject}-base", file(tmp_path, "base.proto", 'syntax = "proto3"; message Base {}'))
    user = file(tmp_path, "user.proto", 'syntax = "proto3"; import "base.proto"; message User { Base base = 1; }')
    reference = f"base.proto={subject}-base:1"
    assert run("register", subject, user, "--reference", reference).startswith(subject)
    assert "message User" in run("show", subject)
    run("register", subject, user, "--reference", "nonsense", status=1)
    assert "NAME=SUBJECT:VERSION" in run.errors
    run("register", subject, file(tmp_path, "a.txt", "x"), status=1)
    assert "--type" in run.errors


@pytest.fixture
def other(ottla_broker: Broker) -> SchemaRegistry:
    """Another registry, with a topic of its own."""
    name = uuid4().hex
    return SchemaRegistry(
        ottla_broker.bootstrap,
        {"kafkastore.topic": f"_schemas-{name}", "schema.registry.group.id": f"registry-{name}"},
    )


def test_a_registry_is_copied_with_ids_versions_and_deletions(
    run: Command, other: SchemaRegistry, subject: str, tmp_path: Path
) -> None:
    base = file(tmp_path, "base.avsc", '{"type":"record","name":"Base","fields":[]}')
    user = file(tmp_path, "user.avsc", '{"type":"record","name":"U","fields":[{"name":"b","type":"Base"}]}')
    run("register", f"{subject}-z", base)
    run("register", f"{subject}-a", user, "--reference", f"Base={subject}-z:1")
    run("config", f"{subject}-a", "--compatibility", "NONE")
    run("register", f"{subject}-a", file(tmp_path, "a.avsc", INT))
    run("delete", f"{subject}-a", "2")
    run("register", f":.c:{subject}", base)
    with other:
        assert run("copy", "--to", other.url, "--prefix", subject) == "copied 3 versions, 0 were there\n"
        assert run("copy", "--to", other.url, "--prefix", subject) == "copied 0 versions, 3 were there\n"
        there = Command(other.url, run._capsys)
        for name in (f"{subject}-a", f"{subject}-z"):
            for version in run("list", name, "--deleted").split():
                shown = [
                    json.loads(one("show", name, version, "--deleted", "--json")) | {"ts": 0} for one in (run, there)
                ]
                assert shown[0] == shown[1]
        assert json.loads(there("config", f"{subject}-a")) == {"compatibilityLevel": "NONE"}
        exported = str(tmp_path / "all.jsonl")
        run("export", exported)
        there("import", exported)
        assert set(run("list", "--deleted").split()) <= set(there("list", "--deleted").split())
        taken = there("show", f":.c:{subject}", "--json")
        assert json.loads(taken)["id"] == json.loads(run("show", f":.c:{subject}", "--json"))["id"]
