"""`ottla doctor` finds what would stop a node or make it lose data, says what to do, and changes nothing."""

import json
import os
import socket
from pathlib import Path

import pytest

from ottla.cli.doctor.doctor import main
from ottla.cli.doctor.findings import Finding
from ottla.cli.doctor.storage_check import check_storage
from ottla.cli.doctor.system_check import check_system
from ottla.cli.start import node_properties
from ottla.node.config import read_config
from ottla.testing import Broker

Json = dict[str, object]


def examined(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> list[Finding]:
    assert main([*words, "--json"]) == status
    shown = json.loads(capsys.readouterr().out)
    assert sum(shown["counts"].values()) == len(shown["findings"])
    return [Finding(**found) for found in shown["findings"]]


def told(findings: list[Finding], level: str) -> list[str]:
    return [f"{found.area}: {found.what}" for found in findings if found.level == level]


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    return ["--port", "0", "--data", str(tmp_path / "data")]


def test_a_node_from_nothing_has_nothing_in_its_way(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = examined(capsys, *words)
    assert {found.area for found in findings} >= {"directories", "ports", "files", "clock", "installation"}
    assert f"directories: {tmp_path}/data does not exist; the node makes and formats it" in told(findings, "ok")
    assert not (tmp_path / "data").exists()


def test_a_mistyped_setting_is_a_warning(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    findings = examined(capsys, *words, "--set", "num.oi.threads=3")
    assert any("did you mean num.io.threads?" in line for line in told(findings, "warning"))
    examined(capsys, *words, "--set", "num.oi.threads=3", "--strict", status=1)


def test_a_setting_out_of_its_bounds_is_a_problem(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    findings = examined(capsys, *words, "--set", "num.partitions=0", status=1)
    assert told(findings, "problem") == ["settings: num.partitions=0: it must be at least 1"]


def test_replicas_that_one_broker_cannot_hold_are_a_warning(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    findings = examined(capsys, *words, "--set", "offsets.topic.replication.factor=3")
    [warning] = [found for found in findings if "offsets.topic.replication.factor" in found.what]
    assert "consumer groups will not work" in warning.what
    assert warning.advice.startswith("Set offsets.topic.replication.factor=1")


def test_replicas_of_a_node_among_others_are_none(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    voters = "controller.quorum.voters=1@127.0.0.1:9093,2@127.0.0.1:9094,3@127.0.0.1:9095"
    findings = examined(capsys, *words, "--set", voters, "--set", "offsets.topic.replication.factor=3")
    assert not [found for found in findings if "offsets.topic.replication.factor" in found.what]


def test_a_port_that_is_taken_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        findings = examined(capsys, "--port", str(port), "--data", str(tmp_path / "data"), status=1)
    assert told(findings, "problem") == [f"ports: PLAINTEXT://127.0.0.1:{port} is in use by another program"]


@pytest.mark.slow
def test_a_running_node_is_no_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(directory=tmp_path / "node") as broker:
        data = next((tmp_path / "node").rglob("meta.properties")).parent
        port = broker.bootstrap.rpartition(":")[2]
        findings = examined(capsys, "--data", str(data), "--port", port)
        assert f"directories: {data}: a node is running on it" in told(findings, "note")
        assert any("the node is running" in line and line.startswith("ports") for line in told(findings, "note"))
        broker.kill()
        findings = examined(capsys, "--data", str(data), "--port", port)
        assert any("was not stopped in good order" in line for line in told(findings, "note"))
        broker.start()
        broker.stop()
    findings = examined(capsys, "--data", str(data), "--port", port)
    assert any(line.startswith(f"directories: {data}: formatted") for line in told(findings, "ok"))


def test_directories_of_another_node_are_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = "version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\nnode.id=7\ndirectory.id=4L6g3nShT-eMCtK--X86sw\n"
    (tmp_path / "meta.properties").write_text(meta)
    findings = examined(capsys, "--data", str(tmp_path), "--port", "0", status=1)
    assert any("is of node 7" in line for line in told(findings, "problem"))


def test_a_directory_that_is_not_formatted_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "something").touch()
    findings = examined(capsys, "--data", str(tmp_path), "--port", "0", status=1)
    [problem] = [found for found in findings if found.level == "problem"]
    assert "is not formatted" in problem.what
    assert "kafka-storage format" in problem.advice


def test_a_file_where_a_directory_should_be_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data").touch()
    findings = examined(capsys, "--data", str(tmp_path / "data"), "--port", "0", status=1)
    assert f"directories: {tmp_path}/data is not a directory" in told(findings, "problem")


@pytest.mark.parametrize(("free", "level"), [(1 << 20, "problem"), (500 << 20, "warning"), (1 << 40, "ok")])
def test_a_disk_with_little_room_is_told(
    free: int, level: str, words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs("/")
    room = os.statvfs_result((4096, 4096, free >> 11, free >> 12, free >> 12, *tuple(real)[5:10]))
    monkeypatch.setattr("os.statvfs", lambda path: room)
    findings = examined(capsys, *words, status=int(level == "problem"))
    assert any("free" in line for line in told(findings, level))


def test_files_from_the_future_tell_of_a_wrong_clock(tmp_path: Path) -> None:
    os.utime(tmp_path, None)
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (5_000_000_000, 5_000_000_000))
    config = read_config(
        {
            **node_properties(Options(), str(tmp_path)),
        }
    )
    findings = check_storage(config, may_format=True, now_s=4_999_999_000)
    assert f"clock: {tmp_path}: files in it were written 1000 seconds from now" in told(findings, "warning")


class Options:
    config = host = advertise = None
    port = 0
    set: tuple[str, ...] = ()


def test_a_clock_that_was_never_set_is_a_problem() -> None:
    assert "clock: the clock says that it is before 2024" in told(check_system(1000.0), "problem")


def test_few_files_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1024, 2048))
    assert any(line.startswith("files: a node may open 2048 files") for line in told(check_system(2e9), "warning"))


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", "/nowhere/server.properties"]) == 1
    shown = capsys.readouterr().out
    assert "/nowhere/server.properties" in shown
    assert shown.splitlines()[-1] == "1 problem"


def test_people_read_a_line_for_each_finding(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "\033" not in shown
    assert any(line.startswith("ok      directories") for line in shown.splitlines())
