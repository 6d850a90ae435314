"""`ottla connect`: files of connectors, what `apply` would change, and the table of `status`."""

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ottla.cli.connect import applying
from ottla.cli.connect.applying import differences
from ottla.cli.connect.command import main
from ottla.cli.connect.connector_files import BadFile, read_connectors, read_directory
from ottla.cli.connect.status import table


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_connectors_are_read_from_properties_json_and_yaml(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    write(tmp_path / "a.properties", "name=one\nconnector.class=X\n")
    write(tmp_path / "b.json", '{"name": "two", "config": {"tasks.max": 1, "flag": true}, "initial_state": "PAUSED"}')
    write(tmp_path / "c.yaml", "config: {topics: [a, b]}\n---\nname: four\nconnector.class: Y\n")
    found = read_directory(tmp_path)
    assert {name: one.config for name, one in found.items()} == {
        "one": {"name": "one", "connector.class": "X"},
        "two": {"name": "two", "tasks.max": "1", "flag": "true"},
        "c": {"name": "c", "topics": "a,b"},
        "four": {"name": "four", "connector.class": "Y"},
    }
    assert found["two"].initial_state == "PAUSED"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.json", "[]", "a connector is an object"),
        ("a.json", '{"name": "x", "config": {"name": "y"}}', "is called x, and y in its config"),
        ("a.json", '{"name": "x", "config": {}, "more": 1}', "more is no member"),
        ("a.json", '{"name": "x", "config": {"a": {}}}', "the value of a must be a text"),
        ("a.json", '{"name": "x", "config": {}, "initial_state": "flying"}', "initial_state is flying"),
        ("a.txt", "", "must end in one of"),
    ],
)
def test_a_file_that_is_no_connector_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(BadFile, match=said):
        read_connectors(write(tmp_path / name, text))


def test_one_name_in_two_files_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.json", '{"name": "x", "config": {}}')
    with pytest.raises(BadFile, match="the connector x is in"):
        read_directory(tmp_path)


class FakeWorker:
    """What `apply` asks of a worker."""

    made: ClassVar[list[tuple[str, str, object]]] = []
    there: ClassVar[dict[str, dict[str, str]]] = {}

    def __init__(self, *_: object) -> None:
        self.url = "http://worker"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        if method == "GET":
            return {name: {"info": {"config": config}} for name, config in self.there.items()}
        self.made.append((method, path, body))
        return None


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorker]:
    FakeWorker.made = []
    FakeWorker.there = {"same": {"name": "same", "a": "1"}, "old": {"name": "old", "a": "1"}, "gone": {"name": "gone"}}
    monkeypatch.setattr(applying, "RestClient", FakeWorker)
    return FakeWorker


def directory(tmp_path: Path) -> Path:
    for name, config in {"same": {"a": "1"}, "old": {"a": "2", "db.password": "s3cret"}, "new": {"b": "1"}}.items():
        write(tmp_path / f"{name}.json", json.dumps({"name": name, "config": config}))
    return tmp_path


def test_apply_shows_the_difference_and_makes_it_so(
    worker: type[FakeWorker], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", str(directory(tmp_path)), "--yes", "--delete"]) == 0
    out = capsys.readouterr().out
    assert "+ new" in out
    assert "    - a=1\n    + a=2\n    + db.password=[hidden]" in out
    assert "- gone" in out
    assert "same" not in out
    assert [(method, path) for method, path, _ in worker.made] == [
        ("PUT", "/connectors/new/config"),
        ("PUT", "/connectors/old/config"),
        ("DELETE", "/connectors/gone"),
    ]


def test_apply_changes_nothing_unless_it_is_told_to(
    worker: type[FakeWorker], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", str(directory(tmp_path)), "--dry-run"]) == 0
    assert not worker.made
    assert "- gone" not in capsys.readouterr().out


def test_nothing_differs_from_itself(tmp_path: Path) -> None:
    wanted = read_directory(directory(tmp_path))
    there = {name: one.config for name, one in wanted.items()}
    assert differences(wanted, there, prunes=True) == []


def test_the_table_of_states_has_what_failed() -> None:
    status = {
        "name": "x",
        "connector": {"state": "RUNNING", "worker_id": "w:1"},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": "a\nno disk"}],
        "type": "sink",
    }
    shown = table({"x": {"status": status}, "new": {}}, traces=False)
    assert shown.splitlines() == [
        "CONNECTOR  TYPE  STATE    TASKS   WORKER",
        "new              -        -",
        "x          sink  RUNNING  FAILED  w:1",
        "",
        "x: no disk",
    ]


def test_a_worker_that_is_not_there_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--url", "http://127.0.0.1:1"]) == 1
    assert capsys.readouterr().err.startswith("ottla connect: cannot reach the worker at http://127.0.0.1:1")
