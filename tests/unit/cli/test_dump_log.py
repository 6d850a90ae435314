"""`ottla dump-log PATH…`, and what both of its faces do with files that are missing, broken or something else."""

import os
import shutil
import tracemalloc
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ottla.cli.dump_log import main
from ottla.records.batch import assign
from ottla.records.builder import build_batch

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
CLEAN = GOLDEN / "clean"
SEGMENT = "00000000000000000000"
KAFKAS_OPTIONS = [
    "--cluster-metadata-decoder",
    "--deep-iteration",
    "--files",
    "--help",
    "--index-sanity-check",
    "--key-decoder-class",
    "--max-bytes",
    "--max-message-size",
    "--offsets-decoder",
    "--print-data-log",
    "--remote-log-metadata-decoder",
    "--share-group-state-decoder",
    "--skip-record-metadata",
    "--transaction-log-decoder",
    "--value-decoder-class",
    "--verify-index-only",
    "--version",
]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A copy of a partition of three batches, at positions 0, 222 and 298."""
    return Path(shutil.copytree(CLEAN / "plain-0", tmp_path / "plain-0"))


@pytest.fixture
def log(partition: Path) -> Path:
    return partition / f"{SEGMENT}.log"


def overwrite(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


# ---- paths ----------------------------------------------------------------------------------------------------------


def test_a_partitions_directory_is_printed_file_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CLEAN / "epochs-0")]) == 0
    out = capsys.readouterr().out
    printed = [Path(line.removeprefix("Dumping ")).name for line in out.splitlines() if line.startswith("Dumping ")]
    assert printed == [
        f"{SEGMENT}.index",
        f"{SEGMENT}.log",
        f"{SEGMENT}.timeindex",
        "00000000000000000024.snapshot",
        "00000000000000000036.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert "leaderEpoch: 0 startOffset: 0\nleaderEpoch: 2 startOffset: 12\nleaderEpoch: 4 startOffset: 24\n" in out
    assert "payload" not in out, "records are printed on request only"


def test_a_log_directory_is_printed_with_all_that_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(CLEAN)]) == 0
    out = capsys.readouterr().out
    for line in (
        "cluster.id=b3R0bGEtaW50ZXJvcC0wMQ",
        "topic: deleted-records partition: 0 offset: 45",
        "KRaft bootstrap snapshot",
        '{"clusterId":"","leaderId":1,"leaderEpoch":3,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],'
        '"data_version":0}',
    ):
        assert f"\n{line}\n" in out
    assert f"Dumping {CLEAN}/transactions-0/00000000000000000041.txnindex\nversion: 0 producerId: 19 " in out
    assert "dropped-0." in out, "a topic that is being deleted is still there"


def test_records_of_internal_topics_are_decoded_by_their_directorys_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--records", str(CLEAN / "__cluster_metadata-0"), str(CLEAN / "__transaction_state-0")]) == 0
    out = capsys.readouterr().out
    assert 'payload: {"type":"TOPIC_RECORD","version":0,"data":{"name":"plain","topicId":"' in out
    assert 'key: {"type":"0","data":{"transactionalId":"txn-a"}} payload: {"version":"1","data":{"producerId":' in out


def test_check_says_that_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", str(CLEAN), str(GOLDEN / "killed"), str(GOLDEN / "recovered")]) == 0
    printed = capsys.readouterr()
    assert printed.out.endswith(" files, nothing wrong\n")
    assert len(printed.out.splitlines()) == 1
    assert printed.err == ""


def test_check_prints_only_what_is_wrong(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overwrite(log, 222 + 70, b"!")
    assert main(["--check", str(log.parent)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"{log}: the batch at position 222 does not match its checksum\n"


def test_an_index_entry_that_points_elsewhere_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partition = Path(shutil.copytree(CLEAN / "gzip-0", tmp_path / "gzip-0"))
    index = partition / f"{SEGMENT}.index"
    overwrite(index, 8, (98).to_bytes(4, "big"))
    assert main(["--check", str(partition)]) == 1
    assert capsys.readouterr().err == f"Mismatches in :{index}\n  Index offset: 98, log offset: 99\n"


def test_a_segment_on_its_way_out_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(GOLDEN / "killed" / "deleting-0")]) == 0
    out = capsys.readouterr().out
    assert f"{SEGMENT}.log.deleted\nLog starting offset: 0\nbaseOffset: 0 lastOffset: 7 " in out


def test_nothing_is_written(tmp_path: Path) -> None:
    """Not even the index that a time index is looked up with, when it is missing."""
    partition = Path(shutil.copytree(GOLDEN / "killed" / "transactions-0", tmp_path / "transactions-0"))
    (partition / f"{SEGMENT}.index").unlink()
    before = {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in partition.iterdir()}
    main(["--records", str(partition)])
    assert {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in partition.iterdir()} == before


def test_a_large_segment_is_not_read_whole(tmp_path: Path) -> None:
    batch = build_batch(0, None, [bytes(1024 * 1024)])
    with (tmp_path / f"{SEGMENT}.log").open("wb") as file:
        for offset in range(64):
            assign(batch, 0, offset, 0)
            file.write(batch)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        tracemalloc.start()
        try:
            assert main(["--records", str(tmp_path)]) == 0
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 16 * 1024 * 1024


# ---- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [[], ["--files"]], ids=["path", "files"])
def test_a_missing_file_is_named_and_the_others_are_printed(
    option: list[str], log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = log.with_name("00000000000000000007.log")
    assert main([*option, f"{missing},{log}"] if option else [str(missing), str(log)]) == 1
    printed = capsys.readouterr()
    assert printed.err.lower() == f"ottla dump-log: {missing}: no such file or directory\n".lower()
    assert "baseOffset: 9 lastOffset: 33 " in printed.out


def test_a_file_that_is_no_log_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "server.log").write_text("INFO started")
    assert main([str(tmp_path / "notes.txt"), str(tmp_path / "server.log")]) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"ottla dump-log: {tmp_path}/notes.txt: not a file of a log directory, by its name",
        f"ottla dump-log: {tmp_path}/server.log: the name of a log file begins with an offset, not with 'server'",
    ]


def test_kafkas_face_ignores_a_file_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", f"{CLEAN}/meta.properties"]) == 0
    assert capsys.readouterr().err == f"Ignoring unknown file {CLEAN}/meta.properties\n"


def test_a_batch_with_a_wrong_checksum_is_not_valid(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overwrite(log, 222 + 70, b"!")
    assert main(["--files", str(log)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(" ")[2] for line in lines[2:]] == ["true", "false", "true"]


def test_records_that_do_not_parse_are_told_with_their_batchs_position(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overwrite(log, 222 + 61, b"\x7f")
    assert main(["--records", str(log)]) == 1
    printed = capsys.readouterr()
    assert f"{log}: corrupt batch at position 222: record 0" in printed.err
    assert "| offset: 33 " in printed.out, "the next batch is printed all the same"


def test_bytes_that_are_no_batch_end_the_file(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overwrite(log, 222 + 8, (13).to_bytes(4, "big"))
    assert main(["--files", str(log)]) == 1
    printed = capsys.readouterr()
    assert "baseOffset: 0 " in printed.out
    assert f"{log}: corrupt batch at position 222: " in printed.err


def test_a_batch_cut_short_by_a_crash_is_counted_as_invalid_bytes(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write_bytes(log.read_bytes()[:-1])
    assert main(["--files", str(log)]) == 0
    assert capsys.readouterr().out.endswith(f" isvalid: true\nFound 840 invalid bytes at the end of {log.name}\n")


def test_max_bytes_leaves_out_the_batch_it_falls_into(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--files", str(log), "--max-bytes", "300"]) == 0
    out = capsys.readouterr().out
    assert "baseOffset: 8 " in out
    assert "baseOffset: 9 " not in out
    assert "invalid bytes" not in out


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("00000000000000000045.snapshot", b"\0\1", "too few for a producer snapshot"),
        ("00000000000000000045.snapshot", b"\0\1" + bytes(8), "the checksum does not match"),
        ("00000000000000000041.txnindex", bytes(33), "not a whole number of 34-byte entries"),
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n", "announces"),
        ("recovery-point-offset-checkpoint", b"0\n1\nplain zero 0\n", "an entry is not 'topic partition offset'"),
        ("partition.metadata", b"version: 7\ntopic_id: x", "not a partition.metadata of version 0"),
    ],
)
def test_a_broken_state_file_is_named(
    name: str, content: bytes, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main([str(tmp_path / name)]) == 1
    err = capsys.readouterr().err
    assert f"{tmp_path}/{name}: " in err
    assert complaint in err


def test_the_sanity_check_finds_a_time_index_that_runs_backwards(capsys: pytest.CaptureFixture[str]) -> None:
    """A killed node's active index ends in zeros: this is why a starting node builds it anew."""
    index = GOLDEN / "killed" / "create-time-0" / "00000000000000000045.timeindex"
    assert main(["--index-sanity-check", "--files", str(index)]) == 1
    assert "its last timestamp 0 is before its first" in capsys.readouterr().err


# ---- the command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name the files to print"),
        (["--files", "a.log", "b.log"], "name the files to print"),
        (["--files", "a.log", "--remote-log-metadata-decoder"], "there are no records of __remote_log_metadata"),
        (["--files", "a.log", "--value-decoder-class", "com.example.Mine"], "no decoder com.example.Mine"),
        (["--files", "a.log", "--value-decoder-class", "no_such_module:decode"], "No module named 'no_such_module'"),
        (["--files", "a.log", "--max-bytes", "many"], "invalid int value: 'many'"),
        (["--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_bad_arguments_exit_with_1(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(arguments)
    assert exited.value.code == 1
    assert complaint in capsys.readouterr().err


def test_every_option_of_kafkas_tool_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        main(["--help"])
    assert exited.value.code == 0
    helped = capsys.readouterr().out
    for option in KAFKAS_OPTIONS:
        assert option in helped
