"""FileStreamSource and FileStreamSink, as Kafka's behave, and where ours does more."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

from ottla.connect.connectors.allowed_paths import PathNotAllowed
from ottla.connect.data.columns import Column
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import ConnectError
from tests.unit.connect.connectors.sources import SourceRun, at, sink, sink_records


@pytest.fixture
def run(tmp_path: Path) -> SourceRun:
    return SourceRun(tmp_path, connector__class="FileStreamSource", file=str(tmp_path / "in"), topic="lines")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "in"


def test_lines_are_read_when_their_end_is_there(run: SourceRun, file: Path) -> None:
    file.write_bytes(b"one\ntwo\r\nthree\rfo")
    source = run.started()
    assert run.take(source, 2) == ["one", "two", "three"]
    file.write_bytes(file.read_bytes() + b"ur\n\n")
    assert run.take(source, 2) == ["four", ""]
    assert list(run.offsets.values()) == [{"position": file.stat().st_size}]


def test_a_carriage_return_at_the_end_waits_for_what_follows(run: SourceRun, file: Path) -> None:
    file.write_bytes(b"one\r")
    source = run.started()
    assert run.take(source) == []
    file.write_bytes(b"one\r\n")
    assert run.take(source) == ["one"]
    assert list(run.offsets.values()) == [{"position": 5}]


def test_the_offset_is_that_of_kafka_and_the_next_start_continues_there(run: SourceRun, file: Path) -> None:
    file.write_text("one\ntwo\n")
    run.offsets[repr([("filename", str(file))])] = {"position": 4}
    assert run.take(run.started()) == ["two"]


def test_a_file_that_is_not_there_yet_is_waited_for(run: SourceRun, file: Path) -> None:
    source = run.started()
    assert run.take(source) == []
    file.write_text("one\n")
    assert run.take(source) == ["one"]


def test_a_file_that_became_shorter_is_read_from_its_beginning(run: SourceRun, file: Path) -> None:
    file.write_text("one\ntwo\n")
    source = run.started()
    assert run.take(source) == ["one", "two"]
    file.write_text("new\n")
    assert run.take(source) == ["new"]


def test_a_file_that_was_replaced_is_read_from_its_beginning(run: SourceRun, file: Path, tmp_path: Path) -> None:
    file.write_text("one\ntwo\n")
    source = run.started()
    assert run.take(source) == ["one", "two"]
    (tmp_path / "new").write_text("a much longer line than those\n")
    os.replace(tmp_path / "new", file)
    assert run.take(source, 2, 0.1) == ["a much longer line than those"]


def test_lines_that_were_written_before_a_file_was_rotated_are_read(run: SourceRun, file: Path, tmp_path: Path) -> None:
    file.write_text("one\n")
    source = run.started()
    assert run.take(source) == ["one"]
    with open(file, "a") as growing:
        growing.write("two\nthree\n")
    os.rename(file, tmp_path / "in.1")
    assert run.take(source) == []
    file.write_text("four\n")
    assert run.take(source, 3) == ["two", "three", "four"]
    assert list(run.offsets.values()) == [{"position": 5}]


def test_lines_are_read_that_come_to_a_file_after_it_was_rotated(run: SourceRun, file: Path, tmp_path: Path) -> None:
    with open(file, "a", buffering=1) as growing:
        growing.write("one\n")
        source = run.started()
        assert run.take(source) == ["one"]
        os.rename(file, tmp_path / "in.1")
        file.touch()  # as logrotate creates it, before it tells who writes
        assert run.take(source, 2) == []
        growing.write("two\n")
        assert run.take(source, 2) == ["two"]
        growing.write("three\n")
    file.write_text("four\n")
    assert run.take(source, 3) == ["three", "four"]
    assert list(run.offsets.values()) == [{"position": 5}]


def test_a_file_that_becomes_a_link_to_elsewhere_is_not_read(run: SourceRun, file: Path, tmp_path: Path) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    allowed.mkdir()
    secret.write_text("secret\n")
    run.worker = {"file.allowed.paths": str(allowed)}
    run.config["file"] = str(allowed / "in")
    (allowed / "in").write_text("one\n")
    source = run.started()
    assert run.take(source) == ["one"]
    (allowed / "in").unlink()
    (allowed / "in").symlink_to(secret)
    with pytest.raises(PathNotAllowed):
        run.take(source, 2)


def test_a_long_line_is_not_taken_for_the_end(run: SourceRun, file: Path) -> None:
    file.write_text("x" * 3_000_000 + "\n")
    source = run.started()
    assert [len(line) for line in run.take(source)] == [3_000_000]
    assert not source.is_at_end()
    assert run.take(source) == []
    assert source.is_at_end()


@pytest.mark.parametrize("offset", [{"pos": 4}, {"position": "4"}, {"position": -1}, {"position": True}])
def test_an_offset_of_another_connector_is_refused(run: SourceRun, file: Path, offset: dict[str, object]) -> None:
    run.offsets[repr([("filename", str(file))])] = offset
    with pytest.raises(ConnectError, match="reset the connector's offsets"):
        run.started()


def test_long_lines_and_many_lines_arrive_whole(run: SourceRun, file: Path) -> None:
    lines = ["x" * 200_000, *(f"line {number}" for number in range(50_000))]
    file.write_text("".join(f"{line}\n" for line in lines))
    assert run.take(run.started(), 12, 0.1) == lines


def test_bytes_that_are_no_characters_are_replaced_as_java_does(run: SourceRun, file: Path) -> None:
    file.write_bytes(b"good\nb\xffd\n")
    assert run.take(run.started()) == ["good", "b\ufffdd"]


def test_files_outside_the_allowed_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "link").symlink_to("/etc/passwd")
    for name in ("/etc/passwd", f"{tmp_path}/allowed/../secret", f"{tmp_path}/allowed/link"):
        run = SourceRun(tmp_path / "allowed", connector__class="FileStreamSource", file=name, topic="lines")
        with pytest.raises(PathNotAllowed, match=r"file\.allowed\.paths"):
            run.started()


def test_a_source_without_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="file: name the file"):
        SourceRun(tmp_path, connector__class="FileStreamSource", topic="lines").started()


def lines(*texts: str) -> Column:
    return Column(Schema(Type.STRING, optional=True), pa.array(texts, pa.string()))


def test_the_sink_appends_lines_and_knows_its_positions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("there before\n")
    first = sink(tmp_path, connector__class="FileStreamSink", file=str(out))
    first.put([sink_records("t", lines("one", "two"), 5)], {at("t"): 7, at("t", 1): 3})
    first.stop()
    again = sink(tmp_path, connector__class="FileStreamSink", file=str(out))
    assert again.positions() == {at("t"): 7, at("t", 1): 3}
    assert out.read_text() == "there before\none\ntwo\n"


def test_the_sink_cuts_off_what_was_written_without_its_positions(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = sink(tmp_path, connector__class="FileStreamSink", file=str(out))
    first.put([sink_records("t", lines("one"), 0)], {at("t"): 1})
    first.stop()
    with open(out, "a") as file:
        file.write("half of a put")
    again = sink(tmp_path, connector__class="FileStreamSink", file=str(out))
    again.put([sink_records("t", lines("two"), 1)], {at("t"): 2})
    assert out.read_text() == "one\ntwo\n"
