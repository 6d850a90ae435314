"""Log files: rotated, also by others, and no reason to stop when they cannot be written."""

import logging
import os
from pathlib import Path

import pytest

from ottla.cli import log_format
from ottla.cli.log_format import LogFile


@pytest.fixture(autouse=True)
def at_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_format, "_LOOK_AGAIN_S", 0.0)


def write(file: LogFile, text: str) -> None:
    file.handle(logging.LogRecord("ottla", logging.INFO, "", 0, text, (), None))


def test_a_file_that_has_grown_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    file = LogFile(str(path), most_bytes=10, kept=3)
    for number in range(5):
        write(file, f"line number {number}")
    assert path.read_text() == ""
    assert (tmp_path / "server.log.1").read_text() == "line number 4\n"
    assert (tmp_path / "server.log.2").read_text() == "line number 3\n"
    assert sorted(os.listdir(tmp_path)) == ["server.log", "server.log.1", "server.log.2"]


def test_a_file_that_is_there_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("before\n")
    write(LogFile(str(path)), "after")
    assert path.read_text() == "before\nafter\n"


def test_a_file_that_somebody_has_renamed_or_removed_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    file = LogFile(str(path))
    write(file, "first")
    path.rename(tmp_path / "server.log.1")
    write(file, "second")
    path.unlink()
    write(file, "third")
    assert path.read_text() == "third\n"
    assert (tmp_path / "server.log.1").read_text() == "first\n"


def test_a_log_that_cannot_be_written_is_told_once_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = LogFile(str(tmp_path / "logs" / "server.log"))
    os.remove(tmp_path / "logs" / "server.log")
    os.rmdir(tmp_path / "logs")
    for _ in range(3):
        write(file, "lost")
    [line] = capsys.readouterr().err.splitlines()
    assert line == f"ottla: cannot write to the log {tmp_path}/logs/server.log: No such file or directory"
    os.mkdir(tmp_path / "logs")
    write(file, "there again")
    assert (tmp_path / "logs" / "server.log").read_text() == "there again\n"


def test_names_that_are_no_text_are_written_all_the_same(tmp_path: Path) -> None:
    file = LogFile(str(tmp_path / "server.log"))
    write(file, "\udcff")
    assert (tmp_path / "server.log").read_text() == "\\udcff\n"
