"""Directories of files, both ways."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from ottla.connect.connector import Place
from ottla.connect.connectors import files
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError, Retriable
from tests.unit.connect.connectors.sources import SourceRun, at, sink, sink_records


def source(directory: Path, format: str, **config: str) -> SourceRun:
    return SourceRun(
        directory,
        connector__class="ottla.connect.FilesSourceConnector",
        directory=str(directory),
        topic="t",
        format=format,
        file__settle__ms="0",
        **config,
    )


def settled(path: Path) -> None:
    """As if it had been written a minute ago."""
    moment_ns = time.time_ns() - 60 * 10**9
    os.utime(path, ns=(moment_ns, moment_ns))


def test_json_lines_csv_and_parquet_become_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": 1, "name": "x"}\n{"id": 2}\n')
    (tmp_path / "b.csv").write_text('id,name\n1,x\n2,"y, z"\n')
    parquet.write_table(pa.table({"id": [1, 2], "name": ["x", None]}), tmp_path / "c.parquet")
    for path in tmp_path.iterdir():
        settled(path)
    json_run = source(tmp_path, "json", pattern="*.jsonl")
    assert json_run.take(json_run.started(), 3) == [{"id": 1, "name": "x"}, {"id": 2}]
    csv_run = source(tmp_path, "csv", pattern="*.csv")
    assert csv_run.take(csv_run.started(), 3) == [{"id": "1", "name": "x"}, {"id": "2", "name": "y, z"}]
    parquet_run = source(tmp_path, "parquet", pattern="*.parquet")
    assert parquet_run.take(parquet_run.started(), 3) == [{"id": 1, "name": "x"}, {"id": 2, "name": None}]


def test_a_start_continues_in_the_middle_of_a_file_and_reads_no_file_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("".join(f'"{name}{number}"\n' for number in range(4)))
        settled(tmp_path / name)
    run = source(tmp_path, "json")
    run.max_bytes = 10  # two lines at a time
    found = []
    for _ in range(8):
        found += run.take(run.started())  # every poll is another start's
    assert found == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]


def test_a_file_that_grows_is_read_on_and_one_that_is_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1\n2\n")
    settled(path)
    run = source(tmp_path, "json")
    reader = run.started()
    assert run.take(reader, 3) == [1, 2]
    path.write_text("1\n2\n3\n")
    assert run.take(reader, 3) == [3]
    path.write_text("9\n")
    with pytest.raises(ConnectError, match="is another file now"):
        run.take(reader, 3)


def test_unfinished_and_recent_files_are_left_alone(tmp_path: Path) -> None:
    for name in (".hidden", "_manifest.json", "a.tmp"):
        (tmp_path / name).write_text("1\n")
        settled(tmp_path / name)
    (tmp_path / "recent").write_text("1\n")
    run = source(tmp_path, "json")
    run.config["file.settle.ms"] = "3600000"
    assert run.take(run.started(), 2) == []


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n{\n")
    settled(tmp_path / "a")
    run = source(tmp_path, "json")
    with pytest.raises(ConnectError, match="a cannot be read as json"):
        run.take(run.started(), 3)


ORDER = struct([("id", Schema(Type.INT64)), ("name", Schema(Type.STRING, optional=True))])


def orders(*ids: int) -> Column:
    return column_of(ORDER, [{"id": number, "name": f"n{number}"} for number in ids])


def written(directory: Path, format: str) -> list[Any]:
    found: list[Any] = []
    for path in sorted(directory.iterdir()):
        if path.suffix == ".jsonl":
            found += [json.loads(line) for line in path.read_text().splitlines()]
        elif path.suffix == ".csv":
            found += csv.read_csv(path).to_pylist()
        elif path.suffix == ".parquet":
            found += parquet.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_the_sink_writes_whole_files_named_by_their_offsets(tmp_path: Path, format: str) -> None:
    made = sink(tmp_path, connector__class="FilesSink", directory=str(tmp_path / "out"), format=format)
    made.put([sink_records("t", orders(1, 2), 0)], {at("t"): 2})
    made.put(
        [sink_records("t", orders(3), 2), sink_records("t", orders(4), 0, partition=1)], {at("t"): 3, at("t", 1): 1}
    )
    assert [row["id"] for row in written(tmp_path / "out", format)] == [1, 2, 3, 4]
    again = sink(tmp_path, connector__class="FilesSink", directory=str(tmp_path / "out"), format=format)
    assert again.positions() == {at("t"): 3, at("t", 1): 1}
    assert [row["id"] for row in written(tmp_path / "out", format)] == [1, 2, 3, 4]


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_a_put_that_dies_is_undone_by_the_next_start(tmp_path: Path, renames: int) -> None:
    out = tmp_path / "out"
    made = sink(tmp_path, connector__class="FilesSink", directory=str(out), format="json")
    made.put([sink_records("t", orders(1), 0)], {at("t"): 1})
    real, calls = os.replace, 0

    def dies(*paths: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > renames:
            raise KeyboardInterrupt
        real(*paths)

    two = [sink_records("t", orders(2), 1), sink_records("t", orders(3), 0, partition=1)]
    with patch.object(files.os, "replace", dies), pytest.raises(KeyboardInterrupt):
        made.put(two, {at("t"): 2, at("t", 1): 1})
    again = sink(tmp_path, connector__class="FilesSink", directory=str(out), format="json")
    assert again.positions() == {at("t"): 1}
    assert [row["id"] for row in written(out, "json")] == [1]
    again.put(two, {at("t"): 2, at("t", 1): 1})
    assert [row["id"] for row in written(out, "json")] == [1, 2, 3]
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == []


def files_sink(directory: Path) -> Any:
    return sink(directory, connector__class="FilesSink", directory=str(directory), format="json")


def test_a_start_beside_a_put_removes_nothing_that_is_about_to_be_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LOCK_S", 0.0)
    writer, real = files_sink(tmp_path), files.write_durably
    starts: list[str] = []

    def beside(path: Path, content: bytes) -> None:
        try:
            files_sink(tmp_path)  # the files are renamed, and in no manifest yet
        except Retriable as error:
            starts.append(str(error))
        real(path, content)

    monkeypatch.setattr(files, "write_durably", beside)
    writer.put([sink_records("t", orders(1, 2), 0)], {at("t"): 2})
    monkeypatch.undo()
    assert starts == [f"another process is writing to {tmp_path}; nothing was done"]
    assert files_sink(tmp_path).positions() == {at("t"): 2}
    assert [row["id"] for row in written(tmp_path, "json")] == [1, 2]


def test_a_worker_that_was_thought_dead_writes_nothing_when_it_wakes_up(tmp_path: Path) -> None:
    old, new = files_sink(tmp_path), files_sink(tmp_path)
    new.put([sink_records("t", orders(1, 2, 3), 0)], {at("t"): 3})
    with pytest.raises(Retriable, match="another worker has written records of t-0"):
        old.put([sink_records("t", orders(1, 2), 0)], {at("t"): 2})
    assert files_sink(tmp_path).positions() == {at("t"): 3}
    assert [row["id"] for row in written(tmp_path, "json")] == [1, 2, 3]


def test_connectors_with_other_topics_share_a_directory(tmp_path: Path) -> None:
    first, second = files_sink(tmp_path), files_sink(tmp_path)
    for number in range(2):
        first.put([sink_records("a", orders(number), number)], {at("a"): number + 1})
        second.put([sink_records("b", orders(number), number)], {at("b"): number + 1})
    assert files_sink(tmp_path).positions() == {at("a"): 2, at("b"): 2}
    assert [row["id"] for row in written(tmp_path, "json")] == [0, 1, 0, 1]


def test_a_topic_whose_name_begins_as_hidden_names_do_keeps_its_files(tmp_path: Path) -> None:
    files_sink(tmp_path).put([sink_records("._t", orders(1), 0)], {at("._t"): 1})
    assert files_sink(tmp_path).positions() == {at("._t"): 1}
    assert [row["id"] for row in written(tmp_path, "json")] == [1]


def test_a_topic_that_is_renamed_to_another_of_the_connector_is_refused(tmp_path: Path) -> None:
    """Its file would have the name of a file of the other's, and one would replace the other."""
    made = files_sink(tmp_path)
    made.context = replace(made.context, places=lambda records: [Place("a", 0, one) for one in range(len(records))])
    with pytest.raises(ConnectError, match="a transform has renamed a topic to b"):
        made.put([sink_records("b", orders(1), 0)], {at("a"): 1, at("b", 1): 5})
    assert written(tmp_path, "json") == []


def test_a_topic_whose_name_is_too_long_for_a_file_fails_and_is_not_tried_again(tmp_path: Path) -> None:
    topic = "t" * 249
    with pytest.raises(ConnectError, match="File name too long") as failed:
        files_sink(tmp_path).put([sink_records(topic, orders(1), 0)], {at(topic): 1})
    assert not isinstance(failed.value, Retriable)


def test_values_with_newlines_are_read_back_wherever_a_block_of_csv_ends(tmp_path: Path) -> None:
    with open(tmp_path / "a.csv", "w") as file:
        file.write("id,text\n")
        file.writelines(f'{number},"a\n7,8\nb"\n' for number in range(2_000))
    settled(tmp_path / "a.csv")
    run = source(tmp_path, "csv")
    run.max_bytes = 1_000  # blocks are as small
    found = run.take(run.started(), 60)
    assert [int(row["id"]) for row in found] == list(range(len(found)))
    assert {row["text"] for row in found} == {"a\n7,8\nb"}


def test_a_last_line_without_its_end_is_read_if_it_is_a_whole_document_and_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a"
    run = source(tmp_path, "json")
    found = []
    for content in ('{"id": 1}\n{"id": 2}', '{"id": 1}\n{"id": 2}\n{"id": ', '{"id": 1}\n{"id": 2}\n{"id": 3}\n4'):
        path.write_text(content)
        settled(path)
        found.append(run.take(run.started(), 3))
    assert found == [[{"id": 1}, {"id": 2}], [], [{"id": 3}]]
